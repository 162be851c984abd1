"""`make test`: the test files in shards, several at a time, each shard with servers of its own. One warm parent forks
the shards, and the services of all of them.

A folder that takes long is split into shards of whole files, by the seconds that `.ci/durations.json` has of each; the
longest shards start first. Much of a shard's time is waiting for its own processes, so two cores have six lanes. The
output of a shard is printed when it has ended. At the end: the counts, every reason for a skip with its count, and
every failed test with its error, in the last lines, for a CI may show no others.

Files with failed tests run once more, each alone, if they are few. A test that passes then depends on the machine's
load or on chance. The run passes, and its last lines name the test as UNSTABLE, with its first error: mend the cause.
A test that has not ended after ten minutes ends its shard, which prints where each thread was.

With arguments for pytest there is one run, of what they name. `--record` writes `.ci/durations.json` anew.
`--repeat N PLACE…` runs each shard (or each folder or file that is named) N times, one run at a time, and prints how
many runs failed, with which tests. Ends with 1 where a test failed.
"""

from __future__ import annotations

import json
import os
import queue
import resource
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from testkit.folders import server_folder
from testkit.warm import SOCKET, SharedParent, WarmParent, python_program

ROOT = Path(__file__).resolve().parents[1]
DURATIONS = ROOT / ".ci" / "durations.json"
LANES = 2 + 2 * min(os.cpu_count() or 2, 4)
# About the longest shard: a shorter one would start its servers and services too often, and of longer ones the last
# would run alone.
SHARD_SECONDS_MIN, SHARDS_A_LANE = 220, 1.7
NEW_FILE_SECONDS = 3.0  # a file that DURATIONS does not have
SECOND_LOOKS_MAX = 3  # files; more do not fail by chance
STOP_SECONDS = 30.0  # of the shards, after a Ctrl-C
# Of one test: ten times what the longest takes alone. One that waits for ever would keep everybody from what it said.
TEST_SECONDS_MAX = 600
NO_TESTS = 5  # pytest's exit status where a folder has none


@dataclass
class Shard:
    """Test files that run in one process; all files of a folder where `number` is empty."""

    folder: str
    files: list[str]
    seconds: float
    number: str = ""

    @property
    def name(self) -> str:
        return f"{self.folder}{self.number}"


@dataclass
class Run:
    """What the shards have reported so far."""

    failed: list[str] = field(default_factory=list)
    """The shards in which something failed."""
    errors: dict[str, str] = field(default_factory=dict)
    """The error of each failed test, in one line."""
    unstable: dict[str, str] = field(default_factory=dict)
    """The first error of each test that passed when it ran again."""
    counts: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=dict)
    printing: threading.Lock = field(default_factory=threading.Lock)


def main(arguments: list[str]) -> int:
    """Runs every shard, or pytest once with the arguments that were given."""
    os.chdir(ROOT)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # each shard would compile the plugins and helpers anew, for 2 s
    if arguments[:1] == ["--repeat"]:
        return repeat(int(arguments[1]), arguments[2:])
    if arguments and arguments != ["--record"]:
        return subprocess.call([sys.executable, "-P", "-m", "pytest", *arguments])  # noqa: S603
    started = time.monotonic()
    waiting: queue.SimpleQueue[Shard] = queue.SimpleQueue()
    planned = sorted(shards(test_folders(), durations()), key=lambda shard: -shard.seconds)
    for shard in planned:
        waiting.put(shard)
    run = Run()
    with server_folder() as cache, WarmParent() as parent:
        shared = {"MAKEREADY_TEST_CACHE": str(cache), SOCKET: parent.address}
        lanes = [threading.Thread(target=lane, args=(waiting, run, shared, parent), daemon=True) for _ in range(LANES)]
        for thread in lanes:
            thread.start()
        try:
            for thread in lanes:
                thread.join()
        except KeyboardInterrupt:  # each shard was interrupted too, and stops its servers
            while not waiting.empty():
                waiting.get_nowait()
            give_up_at = time.monotonic() + STOP_SECONDS  # a browser that got the Ctrl-C may answer its test no more
            for thread in lanes:
                thread.join(max(0.0, give_up_at - time.monotonic()))
            return 130
    look_again(run)
    summary(run, len(planned), time.monotonic() - started)
    if arguments and not run.failed:
        DURATIONS.write_text(json.dumps(dict(sorted(run.seconds.items())), indent=1) + "\n")
    return 1 if run.failed else 0


def test_folders() -> list[str]:
    """The folders of tests that pyproject.toml lists."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    folders: list[str] = settings["testpaths"]
    return folders


def durations() -> dict[str, float]:
    """The seconds of each test file, as last recorded."""
    seconds: dict[str, float] = json.loads(DURATIONS.read_text()) if DURATIONS.exists() else {}
    return seconds


def shards(folders: list[str], seconds: dict[str, float]) -> list[Shard]:
    """The folders, a long one in several shards whose files take about the same time together."""
    all_shards = []
    files_of = {
        folder: [str(path.relative_to(ROOT)) for path in (ROOT / folder).rglob("test_*.py")] for folder in folders
    }
    each = {file: seconds.get(file, NEW_FILE_SECONDS) for files in files_of.values() for file in files}
    longest = max(SHARD_SECONDS_MIN, sum(each.values()) / LANES / SHARDS_A_LANE)
    for folder, files in files_of.items():
        total = sum(each[file] for file in files)
        parts = min(round(total / longest) or 1, len(files) or 1)
        if parts == 1:
            all_shards.append(Shard(folder, [folder], total))
            continue
        split = [Shard(folder, [], 0.0, f" {number} of {parts}") for number in range(1, parts + 1)]
        for file in sorted(files, key=lambda file: (-each[file], file)):
            least = min(split, key=lambda shard: shard.seconds)
            least.files.append(file)
            least.seconds += each[file]
        for shard in split:
            shard.files.sort()
        all_shards += split
    return all_shards


def lane(
    waiting: queue.SimpleQueue[Shard], run: Run, shared: Mapping[str, str], parent: SharedParent | None = None
) -> None:
    """Runs shards until none is left. shared: the settings of all of them."""
    while True:
        try:
            shard = waiting.get_nowait()
        except queue.Empty:
            return
        with tempfile.TemporaryDirectory() as folder:
            report, output = Path(folder) / "report.json", Path(folder) / "output"
            started = time.monotonic()
            status = run_pytest(shard.files, output, parent, MAKEREADY_TEST_REPORT=str(report), **shared)
            took = time.monotonic() - started
            with run.printing:
                if status not in (0, NO_TESTS):
                    run.failed.append(shard.name)
                if report.exists():
                    add(run, json.loads(report.read_text()))
                else:
                    run.errors[shard.name] = (
                        f"pytest ended with {status}, without a report{running(report)}: {last_line(output)}"
                    )
                say(f"{shard.name}, {took:.0f} s")
                sys.stdout.buffer.write(output.read_bytes())
                sys.stdout.buffer.flush()


def look_again(run: Run) -> None:
    """Runs the files with failed tests once more, one at a time; what passes then is no failure, but unstable."""
    files = sorted({test.partition("::")[0] for test in run.errors})
    if len(files) > SECOND_LOOKS_MAX or any("::" not in test for test in run.errors):
        return
    for file in files:
        with tempfile.TemporaryDirectory() as folder:
            output = Path(folder) / "output"
            status = run_pytest([file], output)
            say(f"{file} again: {last_line(output)}")
            if status == 0:
                again = {test for test in run.errors if test.partition("::")[0] == file}
                run.unstable |= {test: run.errors.pop(test) for test in sorted(again)}
            else:
                sys.stdout.write(output.read_text(errors="replace"))
    if not run.errors:
        run.failed.clear()


def run_pytest(files: list[str], output: Path, parent: SharedParent | None = None, **settings: str) -> int:
    """One run of pytest; returns its exit status. parent: forks it, which saves a second of imports."""
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", *files]
    command += ["-o", f"faulthandler_timeout={TEST_SECONDS_MAX}", "-o", "faulthandler_exit_on_timeout=true"]
    environment = os.environ | settings
    program = python_program(command, environment) if parent is not None else None
    if parent is not None and program is not None:
        return parent.fork(program, environment, output).wait()
    with output.open("wb") as stream:
        return subprocess.call(command, stdout=stream, stderr=stream, env=environment)  # noqa: S603


def add(run: Run, report: dict[str, Any]) -> None:
    """Adds a shard's report, see `testkit.plugin`."""
    run.counts.update(report["counts"])
    run.errors.update(report["failed"])
    run.skipped.update(report["skipped"])
    run.seconds.update(report["seconds"])


def repeat(times: int, places: list[str]) -> int:
    """Runs each shard so many times; returns the exit status."""
    chosen = [Shard(place, [place], 0.0) for place in places] or shards(test_folders(), durations())
    failed = sum(failures(shard, times) for shard in chosen)
    say(f"{failed} of {len(chosen) * times} runs failed")
    return 1 if failed else 0


def failures(shard: Shard, times: int) -> int:
    """Runs one shard so many times and prints its line and the end of every failed output; returns how many failed."""
    failed, tests = 0, Counter[str]()
    counts: dict[str, int] = {}
    wall: list[float] = []
    cpu: list[float] = []
    for _ in range(times):
        with tempfile.TemporaryDirectory() as folder:
            report, output = Path(folder) / "report.json", Path(folder) / "output"
            began, used = time.monotonic(), cpu_seconds()
            status = run_pytest(shard.files, output, MAKEREADY_TEST_REPORT=str(report))
            wall.append(time.monotonic() - began)
            cpu.append(cpu_seconds() - used)
            summary: dict[str, Any] = {"counts": {}, "failed": {f"no report{running(report)}": ""}}
            if report.exists():
                summary = json.loads(report.read_text())
            counts = summary["counts"]
            if status not in (0, NO_TESTS):
                failed += 1
                tests.update(summary["failed"])
                sys.stdout.write(output.read_text(errors="replace")[-8000:])
    totals = ", ".join(f"{count} {name}" for name, count in counts.items())
    figures = f"{min(wall):.0f} to {max(wall):.0f} s, {min(cpu):.0f} to {max(cpu):.0f} s of CPU"
    say(f"{shard.name}: {failed} of {times} runs failed; {totals}; {figures}")
    for test, count in tests.most_common():
        say(f"  {count} times: {test}")
    return failed


def cpu_seconds() -> float:
    """The CPU that ended child processes have used so far, with theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def summary(run: Run, shards_: int, seconds: float) -> None:
    """Prints the counts, the reasons for skips, and how the run ended."""
    for reason, count in sorted(run.skipped.items()):
        say(f"skipped {count}: {reason}")
    say(", ".join(f"{count} {name}" for name, count in run.counts.items()) or "no test ran")
    ended = f"FAILED: {', '.join(sorted(run.failed))}" if run.failed else "all passed"
    say(f"{shards_} shards ended after {seconds:.0f} s, {cpu_seconds():.0f} s of CPU: {ended}")
    for test, error in sorted(run.unstable.items()):
        say(f"UNSTABLE {test}: {error}")
    for test, error in sorted(run.errors.items()):
        say(f"FAILED {test}: {error}")


def running(report: Path) -> str:
    """The test that ran when pytest ended without this report, as `testkit.plugin` has noted it."""
    test = report.with_suffix(".test")
    return f", in {test.read_text()}" if test.exists() else ""


def last_line(output: Path) -> str:
    """The last line of a shard's output that is not blank."""
    lines = [line for line in output.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else "it wrote nothing"


def say(text: str) -> None:
    """Prints one line of the run's own."""
    sys.stdout.write(f"== {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
