"""The tests' side of `testkit.warm_parent`: one parent for all shards of `make test`, else one a session, started at
its first use."""

from __future__ import annotations

import atexit
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from testkit.patience import PATIENCE_SECONDS
from testkit.warm_parent import READY

SOCKET = "MAKEREADY_TEST_WARM_PARENT"  # the parent's address, for `testkit.warm_runner` and for shards
# Prefixes of the variables that an interpreter or a library reads at its start: PYTHONPATH may name other packages than
# those that the parent has imported. A forked process never has its working directory on its path.
EARLY, WITHOUT_EFFECT = ("PYTHON", "GRPC_", "LD_"), ("PYTHONSAFEPATH",)


class Forked:
    """A process that the warm parent has forked, with the methods of `subprocess.Popen` that tests use."""

    def __init__(self, pid: int, connection: socket.socket) -> None:
        self.pid = pid
        self.returncode: int | None = None
        """Negative for a signal; None while it runs, as far as `poll` and `wait` have seen."""
        self._connection = connection
        self._reading = threading.Lock()
        try:
            self._process = os.pidfd_open(pid)
        except ProcessLookupError:  # it has ended already
            self._process = -1

    def __del__(self) -> None:
        self._connection.close()
        if self._process >= 0:
            os.close(self._process)

    def poll(self) -> int | None:
        """Its exit status; None while it runs."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status, once it has ended. Raises subprocess.TimeoutExpired."""
        if self.returncode is None and not readable(self._connection, timeout):
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
        with self._reading:
            if self.returncode is None:
                with self._connection.makefile() as lines:
                    answer = lines.readline()
                assert answer, "the warm parent has ended"
                self.returncode = int(json.loads(answer)["status"])
            return self.returncode

    def send_signal(self, number: int) -> None:
        """Sends the signal; does nothing if the process has ended."""
        if self.poll() is None and self._process >= 0:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._process, signal.Signals(number))

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def readable(connection: socket.socket, timeout: float | None) -> bool:
    """Whether there is something to read within the time, or the other side has closed it."""
    with selectors.DefaultSelector() as selector:
        selector.register(connection, selectors.EVENT_READ)
        return bool(selector.select(timeout))


class SharedParent:
    """The parent at an address, which another process has started: `.ci/test.py` does for all its shards. What this
    process has it fork dies with this process."""

    def __init__(self, address: str) -> None:
        self.address = address

    def fork(
        self, program: Sequence[str], environment: Mapping[str, str], log: Path, *, own_session: bool = False
    ) -> Forked:
        """program: as `python_program` returns it."""
        return fork(self.address, program, environment, log, own_session=own_session, orphan_signal=signal.SIGKILL)


class WarmParent(SharedParent):
    """A parent that this process starts. It ends with this process."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="makeready-warm-")
        super().__init__(str(Path(self._folder.name) / "socket"))
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "testkit.warm_parent", self.address],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None and self._process.stdout.readline() == READY

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                stream.close()  # type: ignore[union-attr]
        self._process.wait(PATIENCE_SECONDS)
        self._folder.cleanup()


def fork(
    address: str,
    program: Sequence[str],
    environment: Mapping[str, str],
    log: Path,
    *,
    own_session: bool = False,
    folder: Path | None = None,
    orphan_signal: int = 0,
) -> Forked:
    """Has the parent at this address fork a program, which `python_program` returns.

    folder: its working directory, by default this process's; orphan_signal: what it gets when this process ends.
    """
    job = {
        "program": list(program),
        "environment": dict(environment),
        "folder": str(folder or Path.cwd()),
        "log": str(log.absolute()),
        "own_session": own_session,
        "orphan_signal": orphan_signal,
    }
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address)
    connection.sendall(json.dumps(job).encode() + b"\n")
    answer = b""
    while not answer.endswith(b"\n"):
        answer += connection.recv(1)
    return Forked(int(json.loads(answer)["pid"]), connection)


_parents: list[SharedParent] = []
_starting = threading.Lock()


def warm_parent() -> SharedParent:
    """The parent that SOCKET names, else one of this process, which is stopped when this process ends."""
    with _starting:
        if not _parents and SOCKET in os.environ:
            _parents.append(SharedParent(os.environ[SOCKET]))
        elif not _parents:
            parent = WarmParent()
            _parents.append(parent)
            atexit.register(parent.stop)
        return _parents[0]


def early(name: str) -> bool:
    """Whether an interpreter or a library reads the variable at its start."""
    return name.startswith(EARLY) and name not in WITHOUT_EFFECT


def early_variables() -> dict[str, str]:
    """This process's variables of that kind, for an environment that is written anew: one that lacks them cannot be
    that of a forked process."""
    return {name: value for name, value in os.environ.items() if early(name)}


def python_program(command: Sequence[str], environment: Mapping[str, str]) -> tuple[str, ...] | None:
    """The program of a Python command: `module NAME WORDS…` or `file PATH WORDS…`.

    None where a process that is forked from the parent would differ: for any other command, and where the environment
    has settings that an interpreter or a library reads at its start.
    """
    if "COVERAGE_PROCESS_CONFIG" in os.environ:  # measured processes are new interpreters
        return None
    if any(os.environ.get(name) != environment.get(name) for name in {**os.environ, **environment} if early(name)):
        return None
    words = list(command)
    if not words or words.pop(0) != sys.executable:
        return None
    if words[:1] == ["-P"]:
        words.pop(0)
    match words:
        case ["-m", name, *arguments]:
            return ("module", name, *arguments)
        case [name, *arguments] if name.endswith(".py"):
            return ("file", name, *arguments)
    return None
