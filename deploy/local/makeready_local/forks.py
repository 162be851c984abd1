"""Starts the installation's Python programs: each is forked from one process that has imported what all of them share.

Every program has its own process, environment, log, signals and exit status, and dies with the runner. Without this
most of a start's CPU went into imports: the same packages, once in each service and once more in each migration.
"""

import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from chassis.runtime.pdeathsig import die_with, name_process

# What the services, the console and their migrations import. None of these modules reads a setting, starts a thread or
# opens a connection at its import.
MODULES = (
    "aiohttp.web",
    "alembic.command",
    "chassis.app.process",
    "chassis.db.migrations",
    "cryptography.hazmat.primitives.ciphers.aead",
    "grpc_health.v1.health",
    "sqlalchemy.dialects.postgresql.asyncpg",
)
_WARM = b"warm\n"
_CHUNK_BYTES = 65_536


@dataclass(frozen=True)
class _Job:
    """A program to fork, as it travels to the process that forks: one line of JSON."""

    name: str
    program: list[str]
    """A module and its words, as after `python -m`."""
    environment: dict[str, str]
    folder: str


class Forked:
    """A forked program, with the methods of `subprocess.Popen` that `children.Child` uses."""

    def __init__(self, pid: int, handle: int, connection: socket.socket) -> None:
        """handle: its pidfd; connection: brings its exit status."""
        self.pid = pid
        self.returncode: int | None = None
        self._handle = handle
        self._connection = connection

    def poll(self) -> int | None:
        """Its exit status, negative for a signal; None while it runs."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status, once it has ended. Raises subprocess.TimeoutExpired."""
        if self.returncode is None:
            if not select.select([self._connection], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
            # Without an answer the process that forks was killed, and all its children with it.
            self.returncode = int(self._connection.recv(_CHUNK_BYTES) or -signal.SIGKILL)
            self._connection.close()
            os.close(self._handle)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Sends the signal. Raises ProcessLookupError if it has ended."""
        if self.poll() is None:
            signal.pidfd_send_signal(self._handle, signal.Signals(number))


class Forks:
    """The process that forks the programs. Make it before this process starts a thread."""

    def __init__(self) -> None:
        """It imports nothing before `warm`. In the forked processes this ends with SystemExit, or the program's error:
        nothing on the way up may catch it."""
        self._channel, theirs = socket.socketpair()
        runner = os.getpid()
        self._pid = os.fork()
        if self._pid == 0:
            self._channel.close()
            os.setsid()
            die_with(runner, signal.SIGKILL)
            _serve(theirs)
        theirs.close()

    def warm(self) -> None:
        """Lets it import while this process goes on. Without this the first program does."""
        self._channel.sendall(_WARM)

    def fork(
        self, name: str, program: Sequence[str], environment: Mapping[str, str] | None, log: int, folder: Path
    ) -> Forked:
        """program: a module and its words, as after `python -m`; environment: by default this process's own; log: the
        descriptor of an open file. Raises OSError."""
        variables = dict(os.environ if environment is None else environment)
        job = _Job(name, list(program), variables, os.fspath(folder))
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        line = json.dumps(asdict(job)).encode() + b"\n"
        with theirs:
            sent = socket.send_fds(self._channel, [line], [theirs.fileno(), log])
            self._channel.sendall(line[sent:])
        answer, handles, _, _ = socket.recv_fds(ours, _CHUNK_BYTES, 1)
        if not answer:
            ours.close()
            raise OSError(0, "the process that starts the services has ended", name)
        return Forked(int(answer), handles[0], ours)

    def stop(self) -> None:
        """Ends it. A program that still runs is killed."""
        self._channel.close()
        os.waitpid(self._pid, 0)


def _serve(channel: socket.socket) -> None:
    """Forks a child for each job and reports its end, until the channel ends. Raises SystemExit in every process."""
    # The runner's lock and ports must not stay in use while a child ends.
    _close_all_but(channel.fileno())
    if not sys.flags.safe_path:  # as `python -P`: no program finds modules in its working directory
        sys.path.pop(0)
    name_process("makeready-forks")
    warm = False
    running: dict[int, tuple[int, socket.socket]] = {}
    while True:
        for ready in select.select([channel.fileno(), *running], [], [])[0]:
            if ready in running:
                pid, connection = running.pop(ready)
                os.close(ready)
                with suppress(OSError), connection:
                    connection.sendall(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())
                continue
            line, descriptors, _, _ = socket.recv_fds(channel, _CHUNK_BYTES, 2)
            if not line:  # the kernel kills what still runs
                os._exit(0)
            line = line.removeprefix(_WARM)  # a job may have followed at once
            if not warm:
                for module in MODULES:
                    importlib.import_module(module)
                gc.collect()
                gc.freeze()  # a collection in a child would copy the pages that it shares with this process
                warm = True
            if not descriptors:
                continue
            while not line.endswith(b"\n"):
                line += channel.recv(_CHUNK_BYTES)
            parent, pid = os.getpid(), os.fork()
            if pid == 0:
                _become(_Job(**json.loads(line)), descriptors[1], parent)
            os.close(descriptors[1])
            connection, handle = socket.socket(fileno=descriptors[0]), os.pidfd_open(pid)
            running[handle] = pid, connection
            with suppress(OSError):  # the runner has gone
                socket.send_fds(connection, [str(pid).encode()], [handle])


def _become(job: _Job, log: int, parent: int) -> None:
    """Runs the job's program in this process as `python -m` would. Raises SystemExit or the program's error."""
    os.setsid()
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    _close_all_but(2)
    die_with(parent, signal.SIGKILL)
    name_process(job.name)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(job.folder)
    os.environ.clear()
    os.environ.update(job.environment)
    sys.argv = job.program
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    sys.exit(0)


def _close_all_but(descriptor: int) -> None:
    """Closes the files of this process but the standard ones and the descriptor."""
    for open_descriptor in [int(file.name) for file in Path("/proc/self/fd").iterdir()]:
        if open_descriptor > 2 and open_descriptor != descriptor:
            with suppress(OSError):
                os.close(open_descriptor)
