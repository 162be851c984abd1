"""Starts Python programs at little cost: each process is forked from one that has imported the third-party packages.

Every program still has its own process, arguments, environment, log, signals and exit status. Only imports are shared:
those of the third-party packages, 0.7 of the 0.9 s of CPU that a service's start cost, and from a program's second
process on those of its own modules, 0.2 s.

`python -m testkit.warm_parent SOCKET` is the parent. It ends when its standard input ends, and kills its children.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

# Imported once. None of them reads a setting of ours, starts a thread or opens a connection at its import.
MODULES = (
    "aiohttp.web",
    "alembic.command",
    "alembic.runtime.migration",
    "asyncpg",
    "cryptography.hazmat.primitives.ciphers.aead",
    "google.protobuf.descriptor_pb2",
    "google.protobuf.json_format",
    "google.protobuf.timestamp_pb2",
    "grpc.aio",
    "grpc_health.v1.health",
    "httptools",
    "jwt",
    "limits",
    "msgspec",
    "nats.aio.client",
    "nats.js",
    "prometheus_client",
    "sqlalchemy.dialects.postgresql.asyncpg",
    "sqlalchemy.ext.asyncio",
    "structlog",
    "uvloop",
)
READY = b"ready\n"
JOB_BYTES_MAX = 200_000  # what a socket pair takes at once

Job = dict[str, Any]
_status: int | None = None
"""How a forked process ends; None in a parent."""


def main(address: str) -> Job | None:
    """Forks a child for each connection. Returns its job in the child, and None in the parent at its end.

    The second job of a module makes a parent of its own, which has imported the module too; it gets that job and later
    ones. So no process has two programs' modules.
    """
    for module in MODULES:
        importlib.import_module(module)
    parent = Parent()
    seen: set[str] = set()
    children: dict[str, tuple[int, socket.socket]] = {}
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen(16)
        sys.stdout.buffer.write(READY)
        sys.stdout.buffer.flush()
        while True:
            ready = parent.wait(server, sys.stdin)
            if server in ready:
                connection = server.accept()[0]
                line = read_line(connection)
                job: Job = json.loads(line)
                kind, name, *_ = job["program"]
                if kind == "module" and name in seen:
                    if name not in children:
                        channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                        pid = os.fork()
                        if pid == 0:
                            for open_file in (
                                server,
                                connection,
                                channel,
                                *(channel for _, channel in children.values()),
                            ):
                                open_file.close()
                            parent.close()
                            return of_module(name, theirs)
                        theirs.close()
                        children[name] = pid, channel
                    socket.send_fds(children[name][1], [line], [connection.fileno()])
                    connection.close()
                else:
                    seen.add(name)
                    if parent.fork(connection, job["orphan_signal"]) == 0:
                        return job
            if sys.stdin in ready:
                parent.kill()
                for pid, channel in children.values():
                    channel.close()
                    os.waitpid(pid, 0)
                return None


def of_module(name: str, channel: socket.socket) -> Job | None:
    """The parent of one module's processes: as `main`, for the jobs that come through the channel."""
    with suppress(ImportError):  # a module that is no package has no `__main__`; it has been imported itself
        importlib.import_module(f"{name}.__main__")
    for imported in (name, f"{name}.__main__"):  # each process runs it anew
        if getattr(sys.modules.get(imported), "__path__", None) is None:
            sys.modules.pop(imported, None)
    parent = Parent()
    while True:
        if channel in parent.wait(channel):
            line, files, _, _ = socket.recv_fds(channel, JOB_BYTES_MAX, 1)
            if not line:  # the first parent has ended
                parent.kill()
                return None
            job: Job = json.loads(line)
            if parent.fork(socket.socket(fileno=files[0]), job["orphan_signal"]) == 0:
                return job


class Parent:
    """A process that forks others and sends each one's exit status to the process that asked for it."""

    def __init__(self) -> None:
        gc.collect()
        gc.freeze()  # a collection in a child would copy the pages that it shares with this process
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C at the terminal: the tests stop their processes
        self._ended, ended = os.pipe()
        os.set_blocking(ended, False)
        signal.set_wakeup_fd(ended)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._children: dict[int, socket.socket] = {}
        self._bound: dict[socket.socket, tuple[int, int]] = {}

    def wait(self, *sources: Any) -> list[Any]:
        """The readable sources. Ended children are reaped; a child whose connection has closed gets its signal."""
        ready = select.select([*sources, self._ended, *self._bound], [], [])[0]
        for connection in self._bound.keys() & set(ready):
            os.kill(*self._bound.pop(connection))  # not reaped yet, so the pid is still the child's
        if self._ended in ready:
            os.read(self._ended, 4096)
            self._report()
        return ready

    def fork(self, connection: socket.socket, orphan_signal: int) -> int:
        """Returns 0 in the child. connection: to the process that asked for it; orphan_signal: what the child gets when
        that process closes the connection or ends, 0 for none."""
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
        else:
            self._children[pid] = connection
            if orphan_signal:
                self._bound[connection] = pid, orphan_signal
            send(connection, {"pid": pid})
        return pid

    def close(self) -> None:
        """Called in a parent that this one has forked: lets go of the children, which are not its own."""
        signal.set_wakeup_fd(-1)
        for connection in self._children.values():
            connection.close()

    def kill(self) -> None:
        """Kills all children."""
        for pid in self._children:
            os.kill(pid, signal.SIGKILL)  # not reaped yet, so the pid is still the child's

    def _report(self) -> None:
        for pid in list(self._children):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                connection = self._children.pop(pid)
                self._bound.pop(connection, None)
                send(connection, {"status": os.waitstatus_to_exitcode(status)})
                connection.close()


def read_line(connection: socket.socket) -> bytes:
    with connection.makefile("rb") as lines:
        return lines.readline()


def send(connection: socket.socket, message: dict[str, int]) -> None:
    with suppress(OSError):  # the test's process has gone, or does not wait any longer
        connection.sendall(json.dumps(message).encode() + b"\n")


def become(job: Job) -> None:
    """Runs the program of a job in this process, as `python -m MODULE …` or `python FILE …` would."""
    for number in (signal.SIGINT, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if job["own_session"]:
        os.setsid()
    inputs, output = os.open(os.devnull, os.O_RDONLY), os.open(job["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for source, target in ((inputs, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    os.closerange(3, max(int(descriptor.name) for descriptor in Path("/proc/self/fd").iterdir()) + 1)
    os.chdir(job["folder"])
    os.environ.clear()
    os.environ.update(job["environment"])
    kind, name, *words = job["program"]
    sys.argv = [name, *words]
    if kind == "module":
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, str(Path(name).parent))
        runpy.run_path(name, run_name="__main__")


def leave() -> None:
    """The last step of a forked process: it does not take the interpreter apart, which copies each page that it shares
    with its parent."""
    if _status is not None:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(_status)


if __name__ == "__main__":
    atexit.register(leave)  # before any import registers a step, so that it is the last
    mine = main(sys.argv[1])
    if mine is not None:
        _status = 1  # of an exception that nobody catches, and of a text
        try:
            become(mine)
            _status = 0
        except SystemExit as ended:
            if ended.code is None or isinstance(ended.code, int):
                _status = ended.code or 0
            raise
        except KeyboardInterrupt:
            _status = None  # the interpreter ends by that very signal
            raise
