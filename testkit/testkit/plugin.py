"""A pytest plugin: real PostgreSQL and NATS for the tests.

The plugin starts a server once in a session, when a test first requests it, in a folder that is deleted at the end. If
MAKEREADY_DATABASE_URL or MAKEREADY_NATS_URL is set, the tests use that server, and those that would stop it are
skipped. `--backend containers` runs both servers in a Docker engine.
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

from makeready_local.databases import close_own_databases, drop_database, make_service_database
from makeready_local.nats import Nats
from makeready_local.postgres import Postgres
from makeready_local.streams import kept_streams
from testkit import containers

FOLDER_PREFIX = "makeready-test-"
SERVICE_CONNECTIONS = 100  # several processes of a service may share a test's database


class Server(Protocol):
    """The operations of every kind of server."""

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
        """Makes an empty database with its roles and returns the owner's URL. An older database is dropped.

        The owner may do anything. `service_url` gives the URL with which a service runs.
        """
        drop_database(self.url, name)
        password = secrets.token_urlsafe(16)
        made = make_service_database(self.url, name, password, password, SERVICE_CONNECTIONS, partitions=True)
        return made.owner_url


class GivenServer:
    """A server that runs outside the tests."""

    def __init__(self, url: str) -> None:
        self.url = url

    def start(self) -> None:
        """It runs already."""

    def stop(self) -> None:
        """Does nothing: the tests do not own the server."""
        pytest.skip("the server was given by its URL: it is not ours to stop")

    kill = stop


def pytest_configure() -> None:
    """Logs of the tests' own process in plain text: `rich`, if installed, prints the local variables of every frame,
    which took 4 s an exception."""
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
            # Killed processes lose no written data without fsync; only a machine that stops does.
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
        with kept_streams(given):
            yield GivenServer(given)
    elif request.config.getoption("--backend") == "containers":
        with containers.nats() as server, kept_streams(server.url):
            yield server
    else:
        with embedded_nats() as embedded:
            yield embedded


@contextmanager
def embedded_nats() -> Iterator[Nats]:
    """A separate NATS, for a suite whose service must receive no other suite's events and share its durable consumer
    with no other process. Each service has its own user; `testkit.nats_users` has its URL."""
    with server_folder() as folder:
        server = Nats(folder / "nats", "test", log=folder / "nats.log")
        server.start()
        try:
            with kept_streams(server.url):
                yield server
        finally:
            server.stop()


@contextmanager
def server_folder() -> Iterator[Path]:
    """A folder that other users may enter (PostgreSQL's user, if the tests run as root); deleted at the end.

    First it deletes the folders of killed sessions: no process holds their lock.
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
        folder = made.rename(made.with_name(made.name.removeprefix("new-")))  # locked before it is visible
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
