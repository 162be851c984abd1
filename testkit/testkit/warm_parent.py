"""Starts Python programs at little cost: each process is forked from one that has imported the third-party packages.

Every program still has its own process, arguments, environment, log, signals and exit status, and imports the product's
own modules itself. Only the import of the third-party packages is shared: 0.7 of the 0.9 s of CPU that a service's
start cost.

`python -m testkit.warm_parent SOCKET` is the parent. It ends when its standard input ends, and kills its children.
"""

from __future__ import annotations

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
    "limits.aio",
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

Job = dict[str, Any]


def main(address: str) -> Job | None:
    """Forks a child for each connection. Returns its job in the child, and None in the parent at its end."""
    for module in MODULES:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()  # a collection in a child would copy the pages that it shares with this process
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C at the terminal: the tests stop their processes themselves
    ended_read, ended_write = os.pipe()
    os.set_blocking(ended_write, False)
    signal.set_wakeup_fd(ended_write)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    children: dict[int, socket.socket] = {}
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen(16)
        sys.stdout.buffer.write(READY)
        sys.stdout.buffer.flush()
        while True:
            ready = select.select([server, sys.stdin, ended_read], [], [])[0]
            if ended_read in ready:
                os.read(ended_read, 4096)
                report(children)
            if server in ready:
                connection = server.accept()[0]
                job = read_job(connection)
                pid = os.fork()
                if pid == 0:
                    signal.set_wakeup_fd(-1)
                    return job
                children[pid] = connection
                send(connection, {"pid": pid})
            if sys.stdin in ready:
                for pid in children:
                    os.kill(pid, signal.SIGKILL)  # not reaped yet, so the pid is still the child's
                return None


def read_job(connection: socket.socket) -> Job:
    with connection.makefile() as lines:
        found: Job = json.loads(lines.readline())
    return found


def send(connection: socket.socket, message: dict[str, int]) -> None:
    with suppress(OSError):  # the test's process has gone, or does not wait any longer
        connection.sendall(json.dumps(message).encode() + b"\n")


def report(children: dict[int, socket.socket]) -> None:
    """Reaps the children that have ended and sends each one's exit status to the process that started it."""
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        connection = children.pop(pid)
        send(connection, {"status": os.waitstatus_to_exitcode(status)})
        connection.close()


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
    os.closerange(3, max(int(one.name) for one in Path("/proc/self/fd").iterdir()) + 1)
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


if __name__ == "__main__":
    mine = main(sys.argv[1])
    if mine is not None:
        become(mine)
