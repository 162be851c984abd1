"""`make test` runs every test file once, and reports what was skipped."""

from __future__ import annotations

import importlib.util
import queue
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def suite() -> ModuleType:
    """`.ci/test.py`, which is no module of a package."""
    spec = importlib.util.spec_from_file_location("makeready_suite", ROOT / ".ci" / "test.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def files_of(suite: ModuleType, seconds: dict[str, float]) -> Counter[str]:
    names: Counter[str] = Counter()
    for shard in suite.shards(suite.test_folders(), seconds):
        for name in shard.files:
            path = ROOT / name
            names.update(
                [name] if path.is_file() else (str(file.relative_to(ROOT)) for file in path.rglob("test_*.py"))
            )
    return names


def test_every_file_is_in_one_shard_whatever_is_known_of_its_time(suite: ModuleType) -> None:
    every = {
        str(path.relative_to(ROOT)) for place in suite.test_folders() for path in (ROOT / place).rglob("test_*.py")
    }
    assert len(every) > 100
    for seconds in ({}, suite.durations(), dict.fromkeys(every, 500.0), {min(every): 5000.0}):
        assert files_of(suite, seconds) == Counter(every)


def test_a_long_folder_is_split_into_shards_that_take_about_the_same_time(suite: ModuleType) -> None:
    files = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests/e2e").rglob("test_*.py"))
    seconds = {file: 10.0 + number for number, file in enumerate(files)}
    split = suite.shards(["tests/e2e"], seconds)
    total = sum(seconds.values())
    assert len(split) == round(total / max(suite.SHARD_SECONDS_MIN, total / suite.LANES / suite.SHARDS_A_LANE)) > 1
    assert max(shard.seconds for shard in split) - min(shard.seconds for shard in split) <= max(seconds.values())
    assert [shard.name for shard in suite.shards(["tests/e2e"], {})] == ["tests/e2e"]


def test_skips_of_all_shards_are_counted_with_their_reasons(
    suite: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    run = suite.Run()
    for skipped in (["openssl: none here"], ["openssl: none here", "podman: no engine"]):
        suite.add(
            run, {"counts": {"passed": 3, "skipped": len(skipped)}, "failed": {}, "skipped": skipped, "seconds": {}}
        )
    suite.summary(run, 2, 1.0)
    assert capsys.readouterr().out.splitlines()[:3] == [
        "== skipped 2: openssl: none here",
        "== skipped 1: podman: no engine",
        "== 6 passed, 3 skipped",
    ]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder for tests that report as those of this project do."""
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["testkit.plugin"]')
    (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    return tmp_path


FAILING = """
import pytest

@pytest.fixture
def broken():
    raise OSError("no such server")

def test_sums():
    assert 1 + 1 == 3, "first line\\n\\nlast line"

def test_of_a_fixture(broken): ...

def test_good(): ...
"""


def test_the_last_lines_name_every_failed_test_with_its_error(
    suite: ModuleType, project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (project / "test_sums.py").write_text(FAILING)
    (project / "test_import.py").write_text("import no_module_of_this_name")
    waiting: queue.SimpleQueue[object] = queue.SimpleQueue()
    waiting.put(suite.Shard("all", [str(project), "--continue-on-collection-errors"], 1.0))
    waiting.put(suite.Shard("none", ["-p", "no_such_plugin"], 1.0))
    run = suite.Run()
    suite.lane(waiting, run, {})
    suite.summary(run, 2, 1.0)
    lines = capfd.readouterr().out.splitlines()
    at = next(index for index, line in enumerate(lines) if "2 shards ended after" in line)
    assert lines[at].endswith("FAILED: all, none")
    assert lines[at + 1 :] == [
        "== FAILED none: pytest ended with 4, without a report: " + last_of(lines[:at], "no_such_plugin"),
        "== FAILED test_import.py: E   ModuleNotFoundError: No module named 'no_module_of_this_name'",
        "== FAILED test_sums.py::test_of_a_fixture: OSError: no such server",
        "== FAILED test_sums.py::test_sums: AssertionError: first line … assert (1 + 1) == 3",
    ]
    assert run.counts == {"passed": 1, "failed": 1, "error": 2}


HANGING = """
import threading

def test_good(): ...

def test_that_waits():
    threading.Event().wait()

def test_good_too(): ...
"""


def test_a_test_that_waits_for_ever_ends_its_shard_and_is_named(
    suite: ModuleType, project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (project / "test_waits.py").write_text(HANGING)
    monkeypatch.setattr(suite, "TEST_SECONDS_MAX", 5)
    waiting: queue.SimpleQueue[object] = queue.SimpleQueue()
    waiting.put(suite.Shard("waits", [str(project)], 1.0))
    run = suite.Run()
    suite.lane(waiting, run, {})
    suite.look_again(run)
    assert run.failed == ["waits"]
    assert run.errors["waits"].startswith("pytest ended with 1, without a report, in test_waits.py::test_that_waits: ")
    output = capfd.readouterr().out
    assert "Timeout (0:00:05)" in output and "line 7 in test_that_waits" in output


ONCE = """
from pathlib import Path

def test_once():
    mark = Path(__file__).with_suffix(".ran")
    ran = mark.exists()
    mark.touch()
    assert ran, "the first time"

def test_good(): ...
"""


@pytest.mark.parametrize("files", [1, 4])
def test_few_failed_files_run_again_and_are_unstable_if_they_pass(
    suite: ModuleType, project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], files: int
) -> None:
    names = [f"test_{number}.py" for number in range(files)]
    for name in names:
        (project / name).write_text(ONCE)
    monkeypatch.chdir(project)
    monkeypatch.setenv("PYTHONPATH", str(suite.ROOT / "testkit"))
    waiting: queue.SimpleQueue[object] = queue.SimpleQueue()
    waiting.put(suite.Shard("once", names, 1.0))
    run = suite.Run()
    suite.lane(waiting, run, {})
    assert run.failed == ["once"] and len(run.errors) == files
    first = dict(run.errors)
    suite.look_again(run)
    if files == 1:
        assert (run.failed, run.errors, run.unstable) == ([], {}, first)
        (project / "test_0.py").write_text("def test_once():\n    assert False")
        run.errors, run.unstable, run.failed = first, {}, ["once"]
        suite.look_again(run)
    assert (run.failed, run.errors, run.unstable) == (["once"], first, {})
    suite.summary(run, 1, 1.0)
    assert f"FAILED {names[0]}::test_once: AssertionError: the first time" in capfd.readouterr().out


def last_of(lines: list[str], word: str) -> str:
    return [line for line in lines if word in line][-1]
