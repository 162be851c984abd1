"""Real PostgreSQL and NATS for the tests: a pytest plugin.

Servers are started for a session where a test asks for them, in a folder that goes with it. A server whose
URL is in MAKEREADY_DATABASE_URL or MAKEREADY_NATS_URL is used instead; it is not ours to stop, so tests that
stop it are skipped. `--backend containers` takes both from a Docker engine.
"""

import fcntl
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import pytest
import structlog

from makeready_local.databases import close_own_databases, drop_database, make_database
from makeready_local.nats import Nats
from makeready_local.postgres import Postgres
from testkit import containers

FOLDER_PREFIX = "makeready-test-"


class Server(Protocol):
    """What every kind of server can do."""

    @property
    def url(self) -> str: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...
    def kill(self) -> None: ...


class PostgresServer:
    """A PostgreSQL server for tests."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.start, self.stop, self.kill = server.start, server.stop, server.kill

    @property
    def url(self) -> str:
        """The administrative URL."""
        return self._server.url

    def create_database(self, name: str) -> str:
        """An empty database of this name with a role of its own; the role's URL. An older one is dropped."""
        drop_database(self.url, name)
        return make_database(self.url, name, secrets.token_urlsafe(16))


class GivenServer:
    """A server that somebody else runs."""

    def __init__(self, url: str) -> None:
        self.url = url

    def start(self) -> None:
        """It runs already."""

    def stop(self) -> None:
        """Not ours to stop."""
        pytest.skip("the server was given by its URL: it is not ours to stop")

    kill = stop


def pytest_configure() -> None:
    """Logs of the tests' own process in plain text: `rich`, where it is there, prints the local variables of every
    frame, which took 4 s an exception."""
    plain = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[structlog.contextvars.merge_contextvars, structlog.processors.add_log_level, plain])


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `--backend`."""
    parser.addoption("--backend", choices=("embedded", "containers"), default="embedded")


@pytest.fixture(scope="session")
def postgres_server(request: pytest.FixtureRequest) -> Iterator[PostgresServer]:
    """The session's PostgreSQL: `.create_database(name)`, `.url`, `.stop()`, `.start()`, `.kill()`."""
    if given := os.environ.get("MAKEREADY_DATABASE_URL"):
        yield PostgresServer(GivenServer(given))
    elif request.config.getoption("--backend") == "containers":
        with containers.postgres() as server:
            yield PostgresServer(server)
    else:
        with server_folder() as folder:
            # Killed processes lose nothing that they have written; only a machine that stops would.
            unsafe = {"fsync": "off"}
            embedded = Postgres(folder / "postgres", "test", log=folder / "postgres.log", settings=unsafe)
            embedded.start()
            try:
                close_own_databases(embedded.url)
                yield PostgresServer(embedded)
            finally:
                embedded.stop()


@pytest.fixture(scope="session")
def nats_server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """The session's NATS: `.url`, `.stop()`, `.start()`, `.kill()`."""
    if given := os.environ.get("MAKEREADY_NATS_URL"):
        yield GivenServer(given)
    elif request.config.getoption("--backend") == "containers":
        with containers.nats() as server:
            yield server
    else:
        with embedded_nats() as embedded:
            yield embedded


@contextmanager
def embedded_nats() -> Iterator[Nats]:
    """A NATS of its own, for a suite whose service is to hear of no other suite's records, and to share its durable
    consumer with no other process."""
    with server_folder() as folder:
        server = Nats(folder / "nats", "test", log=folder / "nats.log")
        server.start()
        try:
            yield server
        finally:
            server.stop()


@contextmanager
def server_folder() -> Iterator[Path]:
    """A folder that other users may enter (PostgreSQL's, where we are root); goes at the end.

    Those of sessions that were killed go first: nobody holds their lock.
    """
    for old in Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*"):
        try:
            with (old / "lock").open() as held:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(old, ignore_errors=True)
        except OSError:
            continue
    made = Path(tempfile.mkdtemp(prefix=f"new-{FOLDER_PREFIX}"))
    made.chmod(0o711)
    with (made / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        folder = made.rename(made.with_name(made.name.removeprefix("new-")))  # locked before it is seen
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
