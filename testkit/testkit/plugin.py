"""A pytest plugin: real PostgreSQL and NATS for the tests.

The plugin starts a server once in a session, when a test first requests it, in a folder that is deleted at the end. If
MAKEREADY_DATABASE_URL or MAKEREADY_NATS_URL is set, the tests use that server, and those that would stop it are
skipped. `--backend containers` runs both servers in a Docker engine. MAKEREADY_TEST_POOLER=session or transaction runs
Debian's PostgreSQL with TLS, and the services reach it through PgBouncer.
"""

import gc
import itertools
import json
import os
import secrets
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Protocol

import pytest
import structlog
from hypothesis import settings

from chassis.db import database
from chassis.db.roles import OWNER
from makeready_local.databases import execute, make_service_database
from makeready_local.nats import Nats
from makeready_local.streams import kept_streams
from testkit import containers, databases, examples, poolers
from testkit.folders import server_folder
from testkit.patience import FIGURES
from testkit.prepared import prepare_cluster
from testkit.requirements import lacks, required

__all__ = ["GivenServer", "PostgresServer", "Server", "embedded_nats", "server_folder"]

SERVICE_CONNECTIONS = 100  # several processes of a service may share a test's database
REPORT = "MAKEREADY_TEST_REPORT"
GC_THRESHOLDS = 20_000, 20, 20
ERROR_CHARACTERS = 300  # of a line of an error
OUTCOMES = ("passed", "failed", "error", "skipped", "xfailed", "xpassed")


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
        databases.drop_database(self.url, name)
        password = secrets.token_urlsafe(16)
        database = make_service_database(self.url, name, password, password, SERVICE_CONNECTIONS, partitions=True)
        # A test may see and end the connections of the service's role, such as those that wait for a lock.
        execute(self.url, f'GRANT pg_read_all_stats, pg_signal_backend TO "{name}{OWNER}"')
        return database.owner_url


class GivenServer:
    """A server that runs outside the tests."""

    def __init__(self, url: str) -> None:
        self.url = url

    def start(self) -> None:
        """It runs already."""

    def stop(self) -> None:
        """Does nothing: the tests do not own the server."""
        lacks("own-servers", "the server was given by its URL: it is not ours to stop")

    kill = stop


def pytest_configure(config: pytest.Config) -> None:
    """Checks MAKEREADY_REQUIRE before any test runs. The tests' own process logs in plain text: `rich`, if installed,
    prints the local variables of every frame, which took 4 s an exception."""
    required()
    # A test that holds a lock is idle in its transaction while a service waits: in the services' 5 s a busy machine may
    # not have come to the point.
    database.SERVER_SETTINGS["idle_in_transaction_session_timeout"] = "1min"
    if config.getoption("--hypothesis-profile", None) is None:
        settings.load_profile(examples.CI)
    plain = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[structlog.contextvars.merge_contextvars, structlog.processors.add_log_level, plain])


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `--backend`."""
    parser.addoption("--backend", choices=("embedded", "containers"), default="embedded")


def pytest_collection_finish() -> None:
    """Modules and tests stay until the end: to scan them again and again took a fifth of some runs' own CPU."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints the figures that tests have given to `took`.

    Writes the counts, the failed tests with their errors, the skips with their reasons and the seconds of each file for
    `.ci/test.py`, which names the file in MAKEREADY_TEST_REPORT."""
    if FIGURES:
        terminalreporter.section("Seconds")
        for line in FIGURES:
            terminalreporter.write_line(line)
    if not (path := os.environ.get(REPORT)):
        return
    stats: dict[str, list[Any]] = terminalreporter.stats
    seconds: defaultdict[str, float] = defaultdict(float)
    for report in itertools.chain.from_iterable(stats.values()):
        if isinstance(report, pytest.TestReport):
            seconds[report.nodeid.partition("::")[0]] += report.duration
    summary = {
        "counts": {name: len(stats[name]) for name in OUTCOMES if name in stats},
        "failed": {report.nodeid: error_of(report) for name in ("failed", "error") for report in stats.get(name, [])},
        "skipped": [report.longrepr[2].removeprefix("Skipped: ") for report in stats.get("skipped", [])],
        "seconds": {file: round(value, 1) for file, value in seconds.items()},
    }
    Path(path).write_text(json.dumps(summary))


def pytest_runtest_logstart(nodeid: str) -> None:
    """Notes beside the report which test runs, in case that the process ends without one."""
    if path := os.environ.get(REPORT):
        with open(path.removesuffix(".json") + ".test", "w") as note:  # noqa: PTH123 - five times as quick as Path
            note.write(nodeid)


def error_of(report: Any) -> str:
    """The error of a failed test in one line: the first line of its message, and the last if there are more."""
    crash = getattr(report.longrepr, "reprcrash", None)
    lines = [line.strip() for line in (crash.message if crash else report.longreprtext).splitlines() if line.strip()]
    chosen = [*lines[:1], *lines[1:][-1:]] if crash else lines[-1:]
    return " … ".join(line[:ERROR_CHARACTERS] for line in chosen)


@pytest.fixture(scope="session")
def postgres_server(request: pytest.FixtureRequest) -> Iterator[PostgresServer]:
    """The session's PostgreSQL: `.create_database(name)`, `.url`, `.stop()`, `.start()`, `.kill()`."""
    if url := os.environ.get("MAKEREADY_DATABASE_URL"):
        yield PostgresServer(GivenServer(url))
    elif mode := os.environ.get("MAKEREADY_TEST_POOLER"):
        with (
            server_folder() as folder,
            poolers.tls_postgres(folder) as tls,
            poolers.pgbouncer(folder, tls.url, mode, files=tls.certificates) as pooler,
        ):
            databases.through = pooler.environment
            yield PostgresServer(tls)
            databases.through = None
    elif request.config.getoption("--backend") == "containers":
        with containers.postgres() as server:
            yield PostgresServer(server)
    else:
        with server_folder() as folder:
            embedded = prepare_cluster(folder)
            embedded.start()
            try:
                yield PostgresServer(embedded)
            finally:
                embedded.stop()


@pytest.fixture(scope="session")
def nats_server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """The session's NATS: `.url`, `.stop()`, `.start()`, `.kill()`."""
    if url := os.environ.get("MAKEREADY_NATS_URL"):
        with kept_streams(url):
            yield GivenServer(url)
    elif request.config.getoption("--backend") == "containers":
        with containers.nats() as server, kept_streams(server.url):
            yield server
    else:
        with embedded_nats() as embedded:
            yield embedded


@contextmanager
def embedded_nats(*, streams: bool = True) -> Iterator[Nats]:
    """A separate NATS, for a suite whose service must receive no other suite's events and share its durable consumer
    with no other process. Each service has its own user; `testkit.nats_users` has its URL. streams: as the
    operator makes them; without, the test makes its own."""
    with server_folder() as folder:
        server = Nats(folder / "nats", "test", log=folder / "nats.log")
        server.start()
        try:
            with kept_streams(server.url) if streams else nullcontext():
                yield server
        finally:
            server.stop()
