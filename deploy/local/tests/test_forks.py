"""Programs that are forked: each is as a new interpreter would run it, and none outlives the runner."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .installation import wait_for

RUNNER = """
import json, os, signal, sys
from pathlib import Path
from makeready_local.children import Child
from makeready_local.forks import Forks

folder = Path(sys.argv[1])
sys.path.append(str(folder))
lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT)
forks = Forks()
forks.warm()
environment = {"NAME": "words", "LONG": "x" * 300_000, "PYTHONPATH": str(folder)}

def child(*words):
    log = folder / words[0]
    return Child("one program", ["program", *words], log=log, environment=environment, folder=folder, forks=forks)

ended = child("say", "two words")
assert ended.wait(60) and ended.exit_code == 3, ended.last_words()
failed = child("fail")
assert failed.wait(60) and failed.exit_code == 1 and failed.last_words() == "ValueError: no", failed.last_words()
waiting = child("wait")
assert waiting.alive and not waiting.wait(0)
waiting.kill()
assert waiting.exit_code == -signal.SIGKILL and waiting.ending() == "killed by SIGKILL"
waiting.send(signal.SIGTERM)
left = child("wait")
print(left.pid, flush=True)
sys.stdin.readline()
forks.stop()
left.wait(60)  # the kernel kills it a moment later
print(left.exit_code, flush=True)
"""
PROGRAM = """
import json, os, signal, sys
word = sys.argv[1]
if word == "fail":
    raise ValueError("no")
if word == "wait":
    signal.pause()
files = sorted(os.readlink(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd") if int(name) < 100
               and os.path.exists(f"/proc/self/fd/{name}"))
print(json.dumps({
    "words": sys.argv[1:], "name": os.environ["NAME"], "long": len(os.environ["LONG"]), "folder": os.getcwd(),
    "variables": len(os.environ), "main": __name__, "files": files, "safe": sys.path[0] != "",
    "signal": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
    "session": os.getsid(0) == os.getpid(), "process": open("/proc/self/comm").read().strip(),
}))
sys.exit(3)
"""


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-P", "-c", RUNNER, str(tmp_path)]
    with subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as started:
        yield started
        started.kill()


def test_a_program_has_its_own_words_variables_folder_log_and_exit_status(
    runner: subprocess.Popen[str], tmp_path: Path
) -> None:
    assert runner.stdin is not None and runner.stdout is not None
    status = runner.stdout.readline().strip()
    answer = json.loads((tmp_path / "say").read_text())
    log = str(tmp_path / "say")
    assert answer == {
        "words": ["say", "two words"],
        "name": "words",
        "long": 300_000,
        "folder": str(tmp_path),
        "variables": 3,
        "main": "__main__",
        "files": ["/dev/null", log, log],
        "safe": True,
        "signal": True,
        "session": True,
        "process": "one program",
    }
    runner.stdin.write("\n")
    runner.stdin.flush()
    assert runner.stdout.readline() == f"{-signal.SIGKILL}\n", "the end of the forks ends what they forked"
    wait_for(lambda: has_ended(status))


def test_a_killed_runner_takes_its_programs_along(runner: subprocess.Popen[str]) -> None:
    assert runner.stdout is not None
    leftover = runner.stdout.readline().strip()
    os.kill(runner.pid, signal.SIGKILL)
    runner.wait(60)
    wait_for(lambda: has_ended(leftover))


def has_ended(pid: str) -> bool:
    try:
        return "\nState:\tZ" in Path("/proc", pid, "status").read_text()
    except OSError:
        return True
