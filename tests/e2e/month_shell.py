"""Runs the command line some hundred times within a minute: its processes are forked from one that has imported it.

Every command is a process of its own, with its own words, output and exit status, as a shell would run it; what they
share is that the program was read from disk once, which is nearly all that a command costs.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

from system import System

PROGRAM = r"""
import json, os, signal, socket, sys, tempfile, traceback
from gateway.cli.program import main

def run(connection):
    with connection.makefile() as lines:
        told = json.loads(lines.readline())
    given, out, err = (tempfile.TemporaryFile() for _ in range(3))
    given.write((told["stdin"] or "").encode())
    given.seek(0)
    for number, file in enumerate((given, out, err)):
        os.dup2(file.fileno(), number)
    try:
        status = main(told["words"])
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

signal.signal(signal.SIGCHLD, signal.SIG_IGN)
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen(16)
print("ready", flush=True)
while True:
    connection, _ = server.accept()
    if os.fork() == 0:
        server.close()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        run(connection)
        os._exit(0)
    connection.close()
"""


class HouseWithShell(System):
    """A system with a shell beside it, which ends with it."""

    shell: subprocess.Popen[str] | None = None

    def start(self, **more: str) -> float:
        """Starts both; returns the seconds until the system's first 200."""
        took = super().start(**more)
        self.shell = subprocess.Popen(
            [sys.executable, "-P", "-c", PROGRAM, self._address],
            env=self.environment,
            cwd=self.state,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.shell.stdout is not None and self.shell.stdout.readline() == "ready\n"
        return took

    def stop(self) -> int:
        if self.shell is not None:
            self.shell.kill()
            self.shell.wait(10)
            Path(self._address).unlink(missing_ok=True)
        return super().stop()

    @property
    def _address(self) -> str:
        return str(self.state.with_name("shell"))

    def run(self, *words: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(120)
            connection.connect(self._address)
            connection.sendall(json.dumps({"words": words, "stdin": stdin}).encode() + b"\n")
            with connection.makefile() as answer:
                status, out, err = json.loads(answer.read())
        return subprocess.CompletedProcess(words, status, out, err)
