"""The one way in which tests and tools run a program: start it, wait until it is ready, stop it, kill it, read its log.

Imports no service, so that end-to-end tests may use it.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from makeready_local.children import free_port
from testkit.warm import Forked, python_program, warm_parent

__all__ = ["Process", "accepts_connections", "free_port"]

READY_SECONDS = 120.0  # at a load of 30 on two cores a gateway had not begun to log after 30 s
STOP_SECONDS = 60.0
LOOK_SECONDS = 0.05
LOG_TAIL_CHARACTERS = 4000


class Process:
    """A program that can be started, stopped and started again. Its output is appended to `log`.

    Unlike the runner's `Child` it may be started from any thread, and does not end with its parent: stop or kill it.
    """

    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        environment: Mapping[str, str] | None = None,
        *,
        own_session: bool = False,
        warm: bool = False,
    ) -> None:
        """environment: all variables, by default this process's own; own_session: a Ctrl-C at the terminal does not
        reach it; warm: a Python program is forked from `testkit.warm_parent`, which saves most of its start's CPU.
        A forked process does end with this one, and its command line in /proc is the parent's."""
        self._command = command
        self._environment = dict(os.environ if environment is None else environment)
        self._own_session = own_session
        self.warm = warm
        self.log = log
        self.process: subprocess.Popen[bytes] | Forked | None = None
        """The last started process."""

    @property
    def command(self) -> Sequence[str]:
        return self._command

    @property
    def environment(self) -> dict[str, str]:
        return self._environment

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def pid(self) -> int:
        """The pid of the last started process."""
        assert self.process is not None
        return self.process.pid

    @property
    def exit_status(self) -> int | None:
        """Negative for a signal; None while it runs, and before the first start."""
        return None if self.process is None else self.process.poll()

    def launch(self, **more: str) -> None:
        """Starts it and does not wait for anything. more: further environment."""
        self.process = self._started(self.command, self.environment | more)

    def run_to_end(self, *words: str, seconds: float = READY_SECONDS) -> None:
        """Runs the program with further words to its end, beside the process. Fails if its exit status is not 0."""
        status = self._started([*self.command, *words], self.environment).wait(seconds)
        assert status == 0, f"{words} ended with {status}:\n{self.log_tail()}"

    def _started(self, command: Sequence[str], environment: dict[str, str]) -> subprocess.Popen[bytes] | Forked:
        program = python_program(command, environment) if self.warm else None
        if program is not None:
            self.log.touch()  # at once, as for any other process: the forked one opens it a moment later
            return warm_parent().fork(program, environment, self.log, own_session=self._own_session)
        with self.log.open("ab") as log:
            return subprocess.Popen(
                command, env=environment, stdout=log, stderr=log, start_new_session=self._own_session
            )

    def wait_until(self, is_ready: Callable[[], bool], seconds: float = READY_SECONDS) -> None:
        """Waits until it is ready. Fails with the end of the log if it ends before, or is not ready in time."""
        deadline = time.monotonic() + seconds
        while not is_ready():
            assert self.is_running, f"ended with {self.exit_status}:\n{self.log_tail()}"
            assert time.monotonic() < deadline, f"not ready after {seconds:g} s:\n{self.log_tail()}"
            time.sleep(LOOK_SECONDS)

    def send(self, number: signal.Signals) -> None:
        """Sends the signal; does nothing if it has ended."""
        assert self.process is not None
        self.process.send_signal(number)

    def end(self, number: signal.Signals = signal.SIGTERM, seconds: float = STOP_SECONDS) -> int:
        """Sends the signal if it still runs; waits for its end and returns its exit status."""
        self.send(number)
        return self.wait(seconds)

    def wait(self, seconds: float = STOP_SECONDS) -> int:
        """Waits until it ends by itself; returns its exit status."""
        assert self.process is not None
        return self.process.wait(seconds)

    def kill(self) -> None:
        """Kills it. Does nothing if it was never started."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(STOP_SECONDS)

    def log_tail(self, characters: int = LOG_TAIL_CHARACTERS) -> str:
        """The end of its log, read alone: a long run's log has megabytes."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 4 * characters))  # a character has four bytes at most
            return file.read().decode(errors="replace")[-characters:]


def accepts_connections(target: str) -> bool:
    """Whether a server listens at HOST:PORT."""
    host, _, port = target.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=1).close()
    except OSError:
        return False
    return True
