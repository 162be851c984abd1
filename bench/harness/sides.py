"""The systems under comparison: starts them, lists their processes, stops them."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.receiver import Receiver
from makeready.events.v1 import events_pb2
from makeready_cli.calls import Operator
from makeready_cli.system import Runtime, runtime
from makeready_local.children import LOOPBACK, Child, LocalError, free_port, port_is_free
from makeready_local.databases import make_database
from makeready_local.postgres import Postgres

START_SECONDS, INSTALL_SECONDS = 90.0, 120.0
SETTLE_SECONDS = 30.0
CURSOR_KEY = ("bench", secrets.token_bytes(32))
OURS = "Makeready"
PEER_FOLDER = Path(__file__).parents[1]


@dataclass
class Side:
    """One running system. keys: bearer keys by scope; roots: its server processes by name; statuses: by id, of the
    tickets that were changed."""

    name: str
    base_url: str
    roots: dict[str, int]
    settled: Callable[[], Awaitable[None]]
    keys: dict[str, list[str]] = field(default_factory=dict)
    statuses: dict[int, str] = field(default_factory=dict)


async def until(condition: Callable[[], bool], child: Child, name: str) -> None:
    """Waits until a child is ready. Raises LocalError."""
    deadline = time.monotonic() + START_SECONDS
    while not condition():
        if not child.alive:
            raise LocalError(f"{name} did not start: {child.last_words()}")
        if time.monotonic() > deadline:
            raise LocalError(f"{name} was not ready within {START_SECONDS:.0f} s; see {child.log}")
        await asyncio.sleep(0.1)


class Ours:
    """A whole Makeready, as `make run` starts it."""

    def __init__(self, folder: Path) -> None:
        self.receiver = Receiver(folder)
        self.environment = os.environ | {
            **self.receiver.environment,
            "MAKEREADY_STATE_DIR": str(folder / "state"),
            "MAKEREADY_API_PORT": str(free_port()),
            "MAKEREADY_ADMIN_PORT": str(free_port()),
            "MAKEREADY_DEMO": "0",
            "MAKEREADY_CURSOR_KEYS": f"{CURSOR_KEY[0]}:{base64.b64encode(CURSOR_KEY[1]).decode()}",
        }
        self.start_seconds = 0.0
        self.links_url = f"http://localhost:{self.environment['MAKEREADY_ADMIN_PORT']}"
        self._log = folder / "makeready.log"
        self._child: Child | None = None

    async def start(self) -> Side:
        self.receiver.start()
        began = time.monotonic()
        self._child = Child(
            "Makeready",
            [sys.executable, "-P", "-m", "makeready_local"],
            log=self._log,
            orphan_signal=signal.SIGTERM,
            environment=self.environment,
        )
        ready = Path(self.environment["MAKEREADY_STATE_DIR"]) / "runtime.json"
        await until(ready.exists, self._child, "Makeready")
        self.start_seconds = time.monotonic() - began
        self.runtime: Runtime = runtime(self.environment)
        addresses = json.loads(ready.read_text())
        self.database_url: str = addresses["database_url"]
        roots = {name: int(process["pid"]) for name, process in addresses["processes"].items()}
        return Side(OURS, addresses["base_url"], {**roots, "runner": self._child.pid}, self._settled)

    async def command(self, *words: str, may_reject: bool = False) -> dict[str, Any]:
        """Runs `makeready --json …` and returns its answer. Raises LocalError if it fails."""
        program = Path(sys.executable).with_name("makeready")
        process = await asyncio.create_subprocess_exec(
            program,
            "--json",
            *words,
            env=self.environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        output, errors = await process.communicate()
        if process.returncode:
            raise LocalError(f"makeready {words[0]} failed: {errors.decode().strip()[-300:]}")
        answer: dict[str, Any] = json.loads(output)
        return answer

    async def _settled(self) -> None:
        """Waits until the events of the writes have reached svc-webhooks: that CPU belongs to the writes too."""
        async with Operator(self.runtime) as operator:
            deadline = time.monotonic() + SETTLE_SECONDS
            while time.monotonic() < deadline:
                waiting = await operator.call(
                    "svc-tickets", events_pb2.GetOutboxRequest(), events_pb2.GetOutboxResponse
                )
                if not waiting.unpublished:
                    lag = await operator.call("svc-webhooks", events_pb2.GetLagRequest(), events_pb2.GetLagResponse)
                    if lag.HasField("pending") and not lag.pending:
                        return
                await asyncio.sleep(0.05)
        raise LocalError(f"events were still on their way after {SETTLE_SECONDS:.0f} s")

    def stop(self) -> None:
        if self._child is not None:
            self._child.stop(signal.SIGTERM, 60)
        self.receiver.stop()


class LeftOutError(Exception):
    """This machine lacks what a peer needs; the text says what."""


@dataclass(frozen=True)
class PeerKind:
    """A monolith that does the same work. parts: what it is made of. process: the name of its server. packages: of
    Python, with whose versions it is named. command: starts it in a folder on a port."""

    name: str
    parts: str
    process: str
    packages: tuple[str, ...]
    command: Callable[[Path, int], list[str]]


def _uvicorn(app: str) -> Callable[[Path, int], list[str]]:
    # Without the access log, because Makeready writes no line for each request either.
    # A busy machine may be silent on a connection for longer than uvicorn's 5 s.
    options = ["--no-access-log", "--log-level", "warning", "--timeout-keep-alive", "75"]
    return lambda _folder, port: [*_PYTHON, "uvicorn", app, "--host", LOOPBACK, "--port", str(port), *options]


def _aiohttp(_folder: Path, port: int) -> list[str]:
    return [*_PYTHON, "peer.by_aiohttp", "--host", LOOPBACK, "--port", str(port)]


def _fastify(folder: Path, port: int) -> list[str]:
    """Raises LeftOutError if its packages can't be installed."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        raise LeftOutError("npm and node are not here")
    shutil.copytree(PEER_FOLDER / "peer" / "fastify", folder)
    quiet = ("--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts", "--no-update-notifier")
    try:
        done = subprocess.run(  # noqa: S603 - constants alone
            [npm, "install", *quiet], cwd=folder, capture_output=True, text=True, check=False, timeout=INSTALL_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise LeftOutError(f"npm did not install its packages within {INSTALL_SECONDS:.0f} s") from None
    if done.returncode:
        raise LeftOutError(f"npm can't install its packages: {(done.stderr.strip() or 'no reason').splitlines()[-1]}")
    _run_of_peer("peer.export", str(folder / "shared.json"))
    return [node, "server.js", LOOPBACK, str(port)]


def _run_of_peer(*words: str, environment: Mapping[str, str] | None = None) -> None:
    """Runs a module of the peers to its end. Raises LocalError."""
    environment = {**(environment or os.environ), "PYTHONPATH": str(PEER_FOLDER)}
    done = subprocess.run([*_PYTHON, *words], env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise LocalError(f"{words[0]} failed: {done.stderr.strip()[-300:]}")


_PYTHON = [sys.executable, "-P", "-m"]
_BY_HAND = ("asyncpg", "msgspec", "uvloop")
USUAL = PeerKind(
    "FastAPI",
    "FastAPI, SQLAlchemy's ORM on asyncpg, Pydantic, uvicorn",
    "uvicorn",
    ("fastapi", "starlette", "pydantic", "sqlalchemy", "asyncpg", "uvicorn", "uvloop", "httptools"),
    _uvicorn("peer.app:app"),
)
FLOORS = (
    PeerKind("aiohttp", "aiohttp, asyncpg by hand, msgspec", "aiohttp", ("aiohttp", *_BY_HAND), _aiohttp),
    PeerKind(
        "Litestar",
        "Litestar, asyncpg by hand, msgspec, uvicorn",
        "uvicorn",
        ("litestar", *_BY_HAND, "uvicorn", "httptools"),
        _uvicorn("peer.by_litestar:app"),
    ),
)
NODE = PeerKind("Fastify", "Fastify, pg by hand, on Node", "node", (), _fastify)
PEERS = (USUAL, *FLOORS, NODE)


class Peer:
    """A monolith with a PostgreSQL of its own."""

    def __init__(self, folder: Path, kind: PeerKind) -> None:
        self.kind = kind
        self._folder = folder / kind.name.lower()
        self._log = folder / f"{kind.name.lower()}.log"
        log = folder / f"{kind.name.lower()}-postgres.log"
        self._postgres = Postgres(folder / f"{kind.name.lower()}-database", secrets.token_urlsafe(16), log=log)
        self._child: Child | None = None
        self.database_url = ""

    async def start(self, links_url: str) -> Side:
        """Raises LeftOutError if the machine lacks what it needs, LocalError if it does not start."""
        port = free_port()
        command = await asyncio.to_thread(self.kind.command, self._folder, port)
        self._folder.mkdir(exist_ok=True)
        self._postgres.start()
        self.database_url = make_database(self._postgres.url, "peer", secrets.token_urlsafe(16))
        url = self.database_url
        if self.kind is USUAL:
            url = _orm_url(url)
        environment = os.environ | {
            "PYTHONPATH": str(PEER_FOLDER),
            "PEER_DATABASE_URL": url,
            "PEER_CURSOR_KEY": secrets.token_urlsafe(32),
            "PEER_LINKS_URL": links_url,
        }
        tables = environment | {"PEER_DATABASE_URL": _orm_url(self.database_url)}
        await asyncio.to_thread(_run_of_peer, "peer.tables", environment=tables)
        self._child = Child(
            self.kind.name,
            command,
            log=self._log,
            orphan_signal=signal.SIGTERM,
            environment=environment,
            folder=self._folder,
        )
        await until(lambda: not port_is_free(port), self._child, f"the peer on {self.kind.name}")
        roots = {self.kind.process: self._child.pid, "postgres": self._postgres.child.pid}
        return Side(self.kind.name, f"http://{LOOPBACK}:{port}/api/v1", roots, self._settled)

    async def _settled(self) -> None:
        """Does nothing: a peer does no work after its answers."""

    def stop(self) -> None:
        if self._child is not None:
            self._child.stop(signal.SIGTERM, 20)
        self._postgres.stop()


def _orm_url(url: str) -> str:
    return url.replace("postgresql:", "postgresql+asyncpg:", 1)
