"""A context's own PostgreSQL database: a pool, compiled statements, and one exception for every lost connection."""

from __future__ import annotations

import asyncio
import datetime
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import sqlalchemy as sa
from prometheus_client import Gauge

from chassis.db import clocks, poolers, servers
from chassis.db.servers import Servers
from chassis.db.statements import CLOCK, Statement
from chassis.refusals import Unavailable
from chassis.runtime import database_urls
from chassis.runtime.settings import SESSION, TRANSACTION, SettingsError

# A stopped process must not hold its locks for long, and no statement may outlive its caller by much.
SERVER_SETTINGS = {
    **servers.SETTINGS,
    "timezone": "UTC",
    "jit": "off",
    "statement_timeout": "30s",
    "lock_timeout": "3s",
    "idle_in_transaction_session_timeout": "5s",
}

# Statements are written for one generic plan. By default the server plans the first five calls on each connection anew.
# It also plans later calls anew if it estimates that knowing the values saves more than planning costs.
ONE_PLAN, NEW_PLANS = "force_generic_plan", "force_custom_plan"
# Low page costs make the planner choose that plan by the number of rows read. With the default costs it prefers many
# adjacent rows to few scattered ones, on statistics that may miss the one large property.
BY_ROWS = {"seq_page_cost": "0.01", "random_page_cost": "0.01"}
# At the start of a transaction that reads lists. Its statements then read rows in the order of the index that has all
# of a list, and joined rows one by one. Otherwise wrong statistics may make a sort of all of a company's rows look as
# cheap, or a table that has grown look empty.
IN_ORDER = "; ".join(
    f"SET LOCAL enable_{way} = off" for way in ("sort", "incremental_sort", "seqscan", "hashjoin", "mergejoin")
)

# asyncpg raises InternalClientError on a terminated backend; it is neither a PostgresError nor an InterfaceError.
LOST = (
    OSError,
    asyncio.TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.exceptions.OperatorInterventionError,
    asyncpg.exceptions.InsufficientResourcesError,
    asyncpg.exceptions.CannotConnectNowError,
    # A lock that is not to be had, and a database that takes no connections, as while it is restored.
    asyncpg.exceptions.ObjectNotInPrerequisiteStateError,
    asyncpg.exceptions.DeadlockDetectedError,
    asyncpg.exceptions.IdleInTransactionSessionTimeoutError,
    asyncpg.exceptions.OutdatedSchemaCacheError,
    asyncpg.exceptions.ReadOnlySQLTransactionError,
)
# Some of LOST that no waiting mends: a setting is wrong.
WRONG = (asyncpg.exceptions.ClientConfigurationError, ssl.SSLCertVerificationError)


class DatabaseUnavailable(Unavailable):
    """The database did not answer. Whether the statement ran is unknown."""


class DatabaseRefused(DatabaseUnavailable):
    """The database does not let this process in: a wrong password, a wrong name, a certificate of another."""


class ClockSkew(DatabaseUnavailable):
    """This process's clock and PostgreSQL's are five minutes apart or more, so nothing is written. Reads go on."""


class DatabaseFull(DatabaseUnavailable):
    """The disk of the database is full. The statement had no effect; reads still work."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the disk of the database is full: {reason}")


def unavailable(error: BaseException) -> DatabaseUnavailable:
    """The exception for one of LOST."""
    reason = str(error) or type(error).__name__
    return DatabaseFull(reason) if isinstance(error, asyncpg.DiskFullError) else DatabaseUnavailable(reason)


# Taking a connection from asyncpg's pool and giving it back costs as much as a statement. So that many are handed on
# without the pool, and are back in it after this time: it replaces connections that are idle or old.
KEPT_MAX = 2
KEPT_SECONDS = 60.0
CONNECTIONS = Gauge("makeready_database_connections", "Connections of the pool to the database", ["state"])
CONNECTIONS_MAX = Gauge("makeready_database_connections_max", "Connections that the pool may have")
WAITING = Gauge("makeready_database_waiting", "Tasks that wait for a connection of the pool")
_CLOCK = Statement(sa.select(CLOCK))
# A record that a write changes: its company, its kind, its id. Id 0 means several records of the kind.
Change = tuple[int, str, int]


class Connection:
    """One connection, inside a transaction or not. Every method takes the statement's named parameters."""

    __slots__ = ("__weakref__", "changed", "raw")

    def __init__(self, raw: Any) -> None:
        self.raw = raw
        self.changed: set[Change] = set()
        """The records that the transaction changes, passed to `Database.committed` once it has committed."""

    async def rows(self, statement: Statement, **values: object) -> list[asyncpg.Record]:
        records: list[asyncpg.Record] = await self.raw.fetch(statement.sql, *statement.arguments(values))
        return records

    async def row(self, statement: Statement, **values: object) -> asyncpg.Record | None:
        record: asyncpg.Record | None = await self.raw.fetchrow(statement.sql, *statement.arguments(values))
        return record

    async def value(self, statement: Statement, **values: object) -> Any:
        return await self.raw.fetchval(statement.sql, *statement.arguments(values))

    async def execute(self, statement: Statement, **values: object) -> str:
        status: str = await self.raw.execute(statement.sql, *statement.arguments(values))
        return status


def _unheard(_changed: Iterable[Change]) -> None:
    """For a database that no service writes through."""


async def _no_reset(_connection: asyncpg.Connection) -> None:
    """No reset query on release: 34 µs instead of 214 a use.

    Safe because pooled connections hold nothing beyond a transaction: SET LOCAL and *_xact_lock only, no
    LISTEN, no WITH HOLD. The pool still rolls back an open transaction.
    """


async def refuse_older(connection: asyncpg.Connection) -> None:
    """Raises SettingsError if a version before the first release made the database: its revisions are bare numbers.

    Any other revision is served: after a rollback of the code, the database has the revision of the next release.
    """
    bare = "SELECT version_num FROM alembic_version WHERE version_num ~ '^[0-9]{4}$'"
    if await connection.fetchval("SELECT to_regclass('alembic_version')") and await connection.fetchval(bare):
        raise SettingsError(
            "this database was made by a version before 0.2.0 and cannot be upgraded; start with an empty one "
            "(delete the state directory, or drop the database), then import again."
        )


def _is_closed(raw: Any) -> bool:
    """The pool takes a connection back that the server has closed: each call of it then raises InterfaceError."""
    try:
        return bool(raw.is_closed())
    except asyncpg.InterfaceError:
        return True


class Database:
    """The pool. Every method raises DatabaseUnavailable if the server can't be reached, and DatabaseFull if its disk is
    full."""

    def __init__(
        self,
        url: str,
        *,
        application: str,
        connections: int = 10,
        plans: str = ONE_PLAN,
        clock: Callable[[], datetime.datetime] = clocks.real_clock,
        pooler: str = "",
        direct_url: str = "",
    ) -> None:
        """PostgreSQL's plan_cache_mode is `plans`. Writes compare the process's `clock` with PostgreSQL's. For `pooler`
        and `direct_url` see `DatabaseSettings`."""
        self.url = url
        self._pooler = pooler
        self._servers, self._direct = Servers(url), Servers(direct_url or url)
        self._clocks = clocks.ClockComparison(clock)
        self._settings = SERVER_SETTINGS | {"application_name": application, "plan_cache_mode": plans}
        if plans == ONE_PLAN:
            self._settings |= BY_ROWS
        self._connections = connections
        self._pool: Any = None
        self._kept: list[tuple[Any, float]] = []
        """Connections that the next statement takes without the pool, and when the pool gave them."""
        self._waiting = 0
        self._left_standby_at = -1.0
        self.waiters = asyncio.Semaphore(max(1, connections // 2))
        """Limits writes that may wait long for a row to half of the connections, so that reads have the others."""
        self.committed: Callable[[Iterable[Change]], None] = _unheard
        """Called after a commit with the records that it changed. It must neither wait nor raise."""
        self.hand_over: Callable[[Sequence[Any]], Awaitable[None]] | None = None
        """Called after the commit of a write with its rows of the outbox, before the write is answered. It must not
        raise."""

    async def open(self, wait_seconds: float = 30) -> None:
        """Connects, for up to `wait_seconds` while the server is away.

        Raises DatabaseRefused at once, and SettingsError: see `refuse_older`.
        """
        for file in database_urls.files(self.url):
            if not os.access(file, os.R_OK):
                raise SettingsError(f"MAKEREADY_DATABASE_URL names the file {file}, which cannot be read.")
        give_up_at = asyncio.get_running_loop().time() + wait_seconds
        while True:
            try:
                self._pool = await self._open_pool()
            except (*LOST, asyncpg.PostgresError) as error:
                if "unsupported startup parameter" in str(error):
                    raise SettingsError(
                        "MAKEREADY_DATABASE_URL leads to a pooler: MAKEREADY_DATABASE_POOLER must say its mode."
                    ) from None
                if isinstance(error, WRONG) or not isinstance(error, LOST):
                    raise DatabaseRefused(str(error)) from error
                if asyncio.get_running_loop().time() >= give_up_at:
                    raise unavailable(error) from error
                await asyncio.sleep(0.2)
            else:
                break
        self._count_connections()
        try:
            async with self.connection() as connection:
                if self._pooler == TRANSACTION:
                    await poolers.refuse_others(connection.raw, self._settings)
                await refuse_older(connection.raw)
                await self._compare_clocks(connection)
        except asyncpg.InsufficientPrivilegeError as error:
            await self.close()
            raise DatabaseUnavailable(f"{error}; the migrations of this release give the right: run them") from None
        except BaseException:
            await self.close()
            raise

    async def _open_pool(self) -> Any:
        keeps_statements = True
        if self._pooler == TRANSACTION:
            async with self.session(self._settings["application_name"]) as session:
                await poolers.keep_as_defaults(session, self._settings)
            probe = await self._servers.connect(statement_cache_size=0)
            try:
                keeps_statements = await poolers.keeps_statements(probe)
            finally:
                await probe.close(timeout=5)
        connect: Any = self._servers.connect  # types of asyncpg know no subclass of its connection here
        return await asyncpg.create_pool(
            self.url,
            connect=connect,
            min_size=2,
            max_size=self._connections,
            max_inactive_connection_lifetime=300,
            command_timeout=35,
            timeout=5,
            statement_cache_size=1024 if keeps_statements else 0,
            max_cached_statement_lifetime=0,
            server_settings=self._at_start(self._settings),
            init=self._set if self._pooler == SESSION else None,
            reset=_no_reset,
        )

    def _at_start(self, settings: dict[str, str]) -> dict[str, str]:
        """Those that a connection may be started with."""
        if not self._pooler:
            return settings
        return {name: value for name, value in settings.items() if name in poolers.TRACKED}

    async def _set(self, connection: asyncpg.Connection) -> None:
        await connection.execute(poolers.assignments(self._settings))

    @asynccontextmanager
    async def session(
        self, application: str, *, connect_seconds: float = 5.0, **settings: str
    ) -> AsyncIterator[asyncpg.Connection]:
        """A connection of its own to the server itself, beside the pool: for LISTEN, and for locks and roles that last
        longer than a transaction. It has these settings instead of the pool's. Raises LOST."""
        all_settings = self._settings | {"application_name": application} | settings
        # No pooler is asked for more than it takes: the direct URL may lead through one in session mode.
        session = await self._direct.connect(
            timeout=connect_seconds, command_timeout=35, server_settings=self._at_start(all_settings)
        )
        try:
            if self._pooler:
                await session.execute(poolers.assignments(all_settings))
            yield session
        finally:
            await session.close(timeout=5)

    def _count_connections(self) -> None:
        """For the metrics: a process has one pool that lasts."""
        pool = self._pool
        CONNECTIONS.labels("idle").set_function(lambda: pool.get_idle_size() + len(self._kept))
        CONNECTIONS.labels("used").set_function(lambda: pool.get_size() - pool.get_idle_size() - len(self._kept))
        CONNECTIONS_MAX.set_function(pool.get_max_size)
        WAITING.set_function(lambda: self._waiting)

    async def renew(self) -> None:
        """Replaces each connection before its next use: what a migration set for the role holds for new ones only."""
        await self._pool.expire_connections()
        await self._release_kept()

    async def close(self) -> None:
        if self._pool is not None:
            try:
                async with asyncio.timeout(5):
                    await self._release_kept()
                    await self._pool.close()
            except (TimeoutError, *LOST):
                self._pool.terminate()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """A connection where each statement commits by itself."""
        try:
            kept = self._kept
            raw, since = await self._acquire()
            is_clean = False
            try:
                yield Connection(raw)
                is_clean = not (_is_closed(raw) or raw.is_in_transaction())
            finally:
                oldest = asyncio.get_running_loop().time() - KEPT_SECONDS
                if is_clean and kept is self._kept and since > oldest and len(kept) < KEPT_MAX and not self._waiting:
                    kept.append((raw, since))
                else:
                    await self._pool.release(raw)
            if kept and kept[0][1] <= oldest:
                await self._pool.release(kept.pop(0)[0])
        except LOST as error:
            if isinstance(error, asyncpg.exceptions.ReadOnlySQLTransactionError):
                await self._leave_standby()
            raise unavailable(error) from error
        except asyncpg.PostgresError as error:
            error.detail = None  # it holds the failing row's values, which a handler might log
            raise

    async def _acquire(self) -> tuple[Any, float]:
        """A connection, and when the pool gave it."""
        while self._kept:
            raw, since = self._kept.pop()
            if not _is_closed(raw):
                return raw, since
            await self._pool.release(raw)
        self._waiting += 1
        try:
            return await self._pool.acquire(timeout=5), asyncio.get_running_loop().time()
        finally:
            self._waiting -= 1

    async def _release_kept(self) -> None:
        kept, self._kept = self._kept, []
        while kept:
            await self._pool.release(kept.pop()[0])

    async def _leave_standby(self) -> None:
        """The server cannot write any more: every connection is replaced at its next use, by one to the URL's server
        that can. At most once a second, in case there is none."""
        now = asyncio.get_running_loop().time()
        if now - self._left_standby_at >= 1:
            self._left_standby_at = now
            await self.renew()

    async def compare_clocks(self) -> None:
        """Compares this process's clock with PostgreSQL's every COMPARE_SECONDS, until cancelled."""
        while True:
            await asyncio.sleep(clocks.COMPARE_SECONDS)
            async with self.connection() as connection:
                await self._compare_clocks(connection)

    async def _compare_clocks(self, connection: Connection) -> None:
        up = self._clocks.up
        self._clocks.asked_at = before = up()
        theirs = await connection.value(_CLOCK)
        self._clocks.learn(before, theirs, up())

    async def check_clock(self, connection: Connection | None = None) -> None:
        """Raises ClockSkew if this process's clock and PostgreSQL's are too far apart to write. It costs no round
        trip while they agree. Before it refuses, it compares them anew (at most once a second), so that writes go on as
        soon as the clock is right. It asks by the `connection` that the caller holds, if any."""
        if not self._clocks.are_skewed:
            return
        if self._clocks.up() - self._clocks.asked_at >= clocks.RETRY_SECONDS:
            if connection is None:
                async with self.connection() as beside:
                    await self._compare_clocks(beside)
            else:
                await self._compare_clocks(connection)
        if self._clocks.are_skewed:
            self._clocks.report()
            clocks.REFUSED.inc()
            raise ClockSkew(f"this clock is {self._clocks.ahead:+.0f} s from PostgreSQL's")

    @asynccontextmanager
    async def transaction(self, first: str = "", *, writes: bool = True) -> AsyncIterator[Connection]:
        """One transaction: committed at the end, rolled back if the block raises.

        The SQL `first` is sent together with BEGIN, which saves a round trip. One that only reads (`writes` is False)
        goes on despite a skew. Raises ClockSkew also at its end: the clock may have jumped meanwhile.
        """
        async with self.connection() as connection:
            raw = connection.raw
            if writes:
                await self.check_clock(connection)
            try:
                await raw.execute(f"BEGIN; {first}")
                yield connection
                if writes:
                    await self.check_clock(connection)
                await raw.execute("COMMIT")
            except BaseException:
                # No flag says whether BEGIN ran: an interrupted BEGIN may have run, and hold its locks.
                if not raw.is_closed():
                    await raw.execute("ROLLBACK")
                raise
            if connection.changed:
                self.committed(connection.changed)

    async def rows(self, statement: Statement, **values: object) -> list[asyncpg.Record]:
        async with self.connection() as connection:
            return await connection.rows(statement, **values)

    async def row(self, statement: Statement, **values: object) -> asyncpg.Record | None:
        async with self.connection() as connection:
            return await connection.row(statement, **values)

    async def value(self, statement: Statement, **values: object) -> Any:
        async with self.connection() as connection:
            return await connection.value(statement, **values)

    async def execute(self, statement: Statement, **values: object) -> str:
        async with self.connection() as connection:
            return await connection.execute(statement, **values)
