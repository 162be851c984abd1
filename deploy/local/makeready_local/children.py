"""Child processes that die with their parent: their logs, ports and end."""

import atexit
import errno
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from chassis.runtime import pdeathsig
from makeready_local.forks import Forked, Forks

LOOPBACK = "127.0.0.1"
PDEATHSIG = Path(pdeathsig.__file__)
LOG_TAIL_BYTES = 8192
LOG_BYTES_MAX = 10_000_000
_keepers: list[socket.socket] = []


@atexit.register
def _free_ports() -> None:
    for keeper in _keepers:
        keeper.close()


class LocalError(Exception):
    """An error for the user; its text is the one line that they read."""


@dataclass(frozen=True)
class Account:
    """The user and group of a child."""

    uid: int
    gid: int


class Child:
    """One running program; its output goes to `log`."""

    def __init__(
        self,
        name: str,
        program: Sequence[str],
        *,
        log: Path,
        orphan_signal: signal.Signals = signal.SIGKILL,
        environment: Mapping[str, str] | None = None,
        account: Account | None = None,
        folder: Path = Path("/"),
        forks: Forks | None = None,
    ) -> None:
        """Starts it in a new session: a Ctrl-C at the terminal reaches only the runner.

        The child receives `orphan_signal` when the thread that started it ends: start from the main thread.
        forks: starts a Python module, whose name and words are the program; it is killed when the runner ends.
        """
        self.name = name
        self.log = log
        uid, gid = (account.uid, account.gid) if account else (-1, -1)
        words = [str(number) for number in (os.getpid(), int(orphan_signal), uid, gid)]
        with log.open("ab") as output:
            self._log_start = output.tell()
            self._process: Forked | subprocess.Popen[bytes]
            if forks is not None:
                self._process = forks.fork(name, program, environment, output.fileno(), folder)
                return
            self._process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-I", "-S", str(PDEATHSIG), *words, *program],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment,
                cwd=folder,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it is still running."""
        return self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        return self._process.poll()

    def send(self, number: signal.Signals) -> None:
        """Sends `number`, unless it has ended."""
        with suppress(ProcessLookupError):
            self._process.send_signal(number)

    def wait(self, timeout_seconds: float) -> bool:
        """Waits; returns whether it has ended within the time."""
        try:
            self._process.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def stop(self, number: signal.Signals = signal.SIGTERM, timeout_seconds: float = 20) -> None:
        """Signals it to end, and kills it if it does not."""
        self.send(number)
        if not self.wait(timeout_seconds):
            self.kill()

    def kill(self) -> None:
        """Kills it."""
        self.send(signal.SIGKILL)
        self._process.wait()

    def ending(self) -> str:
        """How it ended, in words."""
        if self.exit_code is not None and self.exit_code < 0:
            return f"killed by {signal.Signals(-self.exit_code).name}"
        return f"exit status {self.exit_code}"

    def bound_log(self) -> None:
        """Begins a log anew that is longer than LOG_BYTES_MAX; the old one stays next to it, and the one before goes.

        The child appends to the same file all the time. Lines that it writes between copy and cut are lost.
        """
        with suppress(OSError):  # a log that cannot be bounded must not end the system
            if self.log.stat().st_size > LOG_BYTES_MAX:
                try:
                    shutil.copyfile(self.log, earlier_log(self.log))
                finally:  # a full disk has no room for the copy
                    os.truncate(self.log, 0)
                    self._log_start = 0

    def last_words(self, mark: str = "") -> str:
        """The last line with `mark` in its log since its start; without one, the last that is not blank."""
        line = last_line(self.log, self._log_start, mark) or last_line(self.log, self._log_start)
        return line or "it wrote nothing"

    @property
    def missed_disk_space(self) -> bool:
        """Whether one of its last lines says that a disk is full."""
        return any(os.strerror(errno.ENOSPC) in line for line in _tail(self.log, self._log_start))


def earlier_log(log: Path) -> Path:
    """The file of a log's lines before it began anew."""
    return log.with_suffix(".log.1")


def last_line(log: Path, start: int = 0, mark: str = "") -> str:
    """The last line of a file that is not blank and has `mark`, at or after byte `start`; empty if it has none."""
    return next((line.strip() for line in reversed(_tail(log, start)) if line.strip() and mark in line), "")


def _tail(log: Path, start: int) -> list[str]:
    """The last lines of a file, at or after byte `start`."""
    try:
        with log.open("rb") as stream:
            stream.seek(max(start, stream.seek(0, os.SEEK_END) - LOG_TAIL_BYTES))
            return stream.read().decode(errors="replace").split("\n")
    except OSError:
        return []


def port_is_free(port: int, host: str = LOOPBACK) -> bool:
    """Whether a server can listen on the port now."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen(1)
        except OSError:
            return False
    return True


def free_port() -> int:
    """A free loopback port, reserved for this process's children while it lives.

    It lies below the ports that the kernel gives to clients, so that none takes it while a server restarts. This
    process stays bound to it without listening: other runners find it in use, but a child does not, because it sets
    SO_REUSEADDR as every server does.
    """
    try:
        first_of_clients = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except (OSError, ValueError):
        first_of_clients = 0
    for attempt in range(100):
        port = first_of_clients - 1 - secrets.randbelow(12_000) if first_of_clients > 20_000 and attempt < 90 else 0
        keeper = socket.socket()
        try:
            keeper.bind((LOOPBACK, port))
        except OSError:
            keeper.close()
            continue
        keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        _keepers.append(keeper)
        return int(keeper.getsockname()[1])
    raise LocalError("no free port was found on the loopback address")


def processes_bearing(mark: str) -> list[int]:
    """Process ids whose command line contains `mark`, without this process."""
    pids = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            with suppress(OSError):
                if mark.encode() in (folder / "cmdline").read_bytes():
                    pids.append(int(folder.name))
    return pids


def end_leftovers(mark: str, patience_seconds: float = 10) -> None:
    """Waits until the processes of a killed runner have ended, and kills those that have not in time."""
    deadline = time.monotonic() + patience_seconds
    while leftovers := processes_bearing(mark):
        if time.monotonic() > deadline:
            for pid in leftovers:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
