"""A skip names what the machine lacks; MAKEREADY_REQUIRE makes it a failure."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from testkit.requirements import REQUIREMENTS, VARIABLE, lacks, required

ROOT = Path(__file__).resolve().parents[2]
OTHER_WAYS = re.compile(r"pytest\.skip\(|mark\.skip|importorskip\(|unittest\.skip|mark\.xfail")
CALLS = re.compile(r"lacks\(\s*\"([\w-]+)\"")


@pytest.mark.parametrize(("value", "fails"), [("", False), ("node", False), ("valkey, openssl", True), ("all", True)])
def test_what_is_required_fails_and_anything_else_is_skipped(
    monkeypatch: pytest.MonkeyPatch, value: str, fails: bool
) -> None:
    monkeypatch.setenv(VARIABLE, value)
    with pytest.raises(pytest.fail.Exception if fails else pytest.skip.Exception, match="openssl: none here"):
        lacks("openssl", "none here")


def test_a_name_that_no_test_knows_is_refused_before_any_test_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "opensll")
    with pytest.raises(pytest.UsageError, match="opensll"):
        required()
    command = [sys.executable, "-P", "-m", "pytest", "-q", "--collect-only", __file__]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR and "opensll is none of" in done.stderr


def test_no_test_is_skipped_in_another_way_and_every_name_is_known_and_used() -> None:
    listed = subprocess.check_output(["git", "ls-files", "-co", "--exclude-standard", "*.py"], cwd=ROOT, text=True)
    used: set[str] = set()
    for name in listed.splitlines():
        path = ROOT / name
        if path in (Path(__file__), ROOT / "testkit/testkit/requirements.py") or not path.exists():
            continue
        text = path.read_text()
        assert not OTHER_WAYS.search(text), name
        used |= set(CALLS.findall(text))
    assert used <= REQUIREMENTS.keys()
    assert REQUIREMENTS.keys() - used <= {"chromium"}


def test_the_makefile_names_requirements() -> None:
    values = re.findall(rf"{VARIABLE}=(\S+)", (ROOT / "Makefile").read_text())
    assert values
    for value in values:
        assert set(value.split(",")) <= REQUIREMENTS.keys() and os.sep not in value
