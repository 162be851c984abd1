"""A process that is forked from the warm parent behaves as one that was started anew."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from testkit.processes import Process
from testkit.warm import Forked, python_program

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
    ends, said = [], []
    for warm in (False, True):
        one = process(program, *words, warm=warm)
        one.launch()
        assert isinstance(one.process, Forked) is warm
        ends.append(one.wait(20))
        said.append([line for line in one.log_tail().splitlines() if not line.startswith("  ")])
    assert ends[0] == ends[1]
    assert said[0] == said[1] and len(said[0]) >= 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_signals_reach_it_and_its_status_says_so(program: Path, number: signal.Signals) -> None:
    one = process(program, "wait", warm=True)
    one.launch()
    one.wait_until(lambda: "wait" in one.log_tail() and one.log_tail().count("\n") == 2)
    with pytest.raises(subprocess.TimeoutExpired):
        one.wait(0.01)
    assert one.end(number, 20) == -number
    assert not one.is_running and one.exit_status == -number
    one.send(number)  # nothing is there any more: no other process gets the signal


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
