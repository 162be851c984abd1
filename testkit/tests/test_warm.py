"""A process that is forked from the warm parent behaves as one that was started anew."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from testkit.processes import Process
from testkit.warm import Forked, python_program, warm_parent

PROGRAM = """
import os, signal, sys, time
print(sys.argv[1:], os.environ.get("WORD"), os.getcwd(), sys.stdin.read() == "", __name__, flush=True)
print("chassis" in sys.modules, "MAKEREADY_KILL_AT" in os.environ, file=sys.stderr, flush=True)
match sys.argv[1]:
    case "exit":
        sys.exit(int(sys.argv[2]))
    case "text":
        sys.exit("one line")
    case "raise":
        raise ValueError("of the program")
    case "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    case "wait":
        time.sleep(60)
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "program.py").write_text(PROGRAM)
    return tmp_path / "program.py"


def process(program: Path, *words: str, warm: bool) -> Process:
    log = program.with_name(f"{'warm' if warm else 'cold'}.log")
    return Process([sys.executable, str(program), *words], log, os.environ | {"WORD": "ä b"}, warm=warm)


@pytest.mark.parametrize("words", [("exit", "0"), ("exit", "3"), ("text",), ("raise",), ("kill",), ("end",)])
def test_it_ends_and_says_the_same(program: Path, words: tuple[str, ...]) -> None:
    ends, outputs = [], []
    for warm in (False, True):
        child = process(program, *words, warm=warm)
        child.launch()
        assert isinstance(child.process, Forked) is warm
        ends.append(child.wait(20))
        outputs.append([line for line in child.log_tail().splitlines() if not line.startswith("  ")])
    assert ends[0] == ends[1]
    assert outputs[0] == outputs[1] and len(outputs[0]) >= 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_signals_reach_it_and_its_status_says_so(program: Path, number: signal.Signals) -> None:
    child = process(program, "wait", warm=True)
    child.launch()
    child.wait_until(lambda: "wait" in child.log_tail() and child.log_tail().count("\n") == 2)
    with pytest.raises(subprocess.TimeoutExpired):
        child.wait(0.01)  # short: it runs on
    assert child.end(number, 20) == -number
    assert not child.is_running and child.exit_status == -number
    child.send(number)  # nothing is there any more: no other process gets the signal


RUNNER = """
import sys, time
from pathlib import Path
from testkit.warm import fork
bound = fork(sys.argv[1], sys.argv[2:], {}, Path(sys.argv[3] + ".log"), orphan_signal=15, folder=Path("/"))
time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_it_gets_its_signal_when_the_process_that_asked_for_it_ends(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "bound.py").write_text(
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit('got it'))\n"
        "print(os.getpid(), os.getcwd(), flush=True)\n"
        "time.sleep(60)\n"
    )
    log = tmp_path / "bound.py.log"
    words = [sys.executable, "-P", "-c", RUNNER, warm_parent().address, "file", str(tmp_path / "bound.py")]
    runner = Process(words, tmp_path / "runner.log")
    runner.launch()
    runner.wait_until(lambda: log.exists() and "\n" in log.read_text())
    assert log.read_text().endswith(" /\n")
    assert runner.end(number, 20) == -number
    wait_until(lambda: "got it" in log.read_text())


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_later_processes_of_a_module_are_the_first(tmp_path: Path) -> None:
    """The first is forked before the module's own modules were imported, later ones after."""
    outputs = []
    for number, name in enumerate(("svc_catalog", "svc_tickets") * 3):
        log = tmp_path / f"{number}.log"
        child = Process([sys.executable, "-m", name], log, os.environ | {"MAKEREADY_LOG_LEVEL": "loud"}, warm=True)
        child.launch()
        assert isinstance(child.process, Forked) and child.wait(20) == 2
        outputs.append((name, child.log_tail()))
    assert len(set(outputs)) == 2, "one answer of each program, whichever of its processes gave it"
    assert all(text.count("\n") == 1 for _, text in outputs)


def test_a_process_reads_its_own_environment(tmp_path: Path) -> None:
    for number in range(3):
        folder = tmp_path / f"state {number}"
        environment = os.environ | {"MAKEREADY_STATE_DIR": str(folder)}
        child = Process(
            [sys.executable, "-m", "makeready_cli", "company", "list"], folder / "log", environment, warm=True
        )
        folder.mkdir()
        child.launch()
        assert child.wait(20) != 0
        assert str(folder) in child.log_tail()


def test_where_a_new_interpreter_would_differ_it_is_a_new_one(program: Path) -> None:
    command, same = [sys.executable, str(program)], dict(os.environ)
    assert python_program(command, same) == ("file", str(program))
    assert python_program([sys.executable, "-P", "-m", "svc_tickets", "migrate"], same) == (
        "module",
        "svc_tickets",
        "migrate",
    )
    assert python_program(command, same | {"PYTHONPATH": "elsewhere"}) is None
    assert python_program(["sleep", "1"], same) is None and python_program([sys.executable, "-c", "1"], same) is None
