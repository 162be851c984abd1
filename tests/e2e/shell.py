"""Runs the command line many times at little cost: each process is forked from one that has imported the program.

Every command has its own process, arguments, environment, output and exit status, as in a shell. The import of the
program and its tree of commands are shared, which are nearly the whole cost of a command.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path

from testkit.patience import PATIENCE_SECONDS

SECONDS = 300
PROGRAM = r"""
import gc, json, os, select, signal, socket, sys, tempfile, traceback
from makeready_cli.program import main, parser

tree = parser()
gc.freeze()  # a collection in a child would copy the pages that it shares with this process

def run(connection):
    with connection.makefile() as lines:
        command = json.loads(lines.readline())
    os.chdir(command["folder"])
    os.environ.clear()
    os.environ.update(command["environment"])
    given, out, err = (tempfile.TemporaryFile() for _ in range(3))
    given.write((command["stdin"] or "").encode())
    given.seek(0)
    for number, file in enumerate((given, out, err)):
        os.dup2(file.fileno(), number)
    try:
        status = main(command["words"], tree)
    except SystemExit as ended:
        status = ended.code
    except BaseException:
        traceback.print_exc()
        status = 70
    sys.stdout.flush()
    sys.stderr.flush()
    outputs = []
    for file in (out, err):
        file.seek(0)
        outputs.append(file.read().decode())
    connection.sendall(json.dumps([status, *outputs]).encode())

signal.signal(signal.SIGINT, signal.SIG_DFL)
signal.signal(signal.SIGCHLD, lambda *_: None)
ended, wakes = os.pipe()
os.set_blocking(wakes, False)
signal.set_wakeup_fd(wakes)
children = set()
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen(16)
print("ready", flush=True)
while True:
    ready = select.select([server, sys.stdin, ended], [], [])[0]
    if sys.stdin in ready:  # whoever started it has gone
        break
    if ended in ready:  # the CPU of a child that nobody waits for counts nowhere
        os.read(ended, 4096)
        children -= {pid for pid in children if os.waitpid(pid, os.WNOHANG)[0]}
    if server not in ready:
        continue
    connection, _ = server.accept()
    child = os.fork()
    if child == 0:
        server.close()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        run(connection)
        os._exit(0)
    children.add(child)
    connection.close()
"""


class Shell:
    """The process that forks the commands. It ends with `stop`, or with the process that started it."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._address = str(Path(self._folder.name) / "shell")
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", PROGRAM, self._address],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None and self._process.stdout.readline() == "ready\n"

    def stop(self) -> None:
        self._process.kill()
        self._process.wait(PATIENCE_SECONDS)
        for stream in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                stream.close()  # type: ignore[union-attr]
        self._folder.cleanup()

    def run(
        self, words: tuple[str, ...], environment: Mapping[str, str], folder: Path, stdin: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Runs one command; returns its exit status and output."""
        command = {"words": words, "environment": dict(environment), "folder": str(folder), "stdin": stdin}
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(SECONDS)
            connection.connect(self._address)
            connection.sendall(json.dumps(command).encode() + b"\n")
            with connection.makefile() as answer:
                status, out, err = json.loads(answer.read())
        return subprocess.CompletedProcess(words, status, out, err)


_shells: list[Shell] = []
_starting = threading.Lock()


def shell() -> Shell:
    """The session's, started at its first use and stopped when this process ends."""
    with _starting:
        if not _shells:
            started = Shell()
            _shells.append(started)
            atexit.register(started.stop)
        return _shells[0]
