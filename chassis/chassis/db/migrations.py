"""Runs Alembic without its command line. Each service's migrations are in its package.

The release before serves while its database is migrated. A revision that locks several tables which exist names them in
`locks`, with the mode that its statements need: `{"api_key": "ACCESS EXCLUSIVE", "audit": "SHARE"}`, first what readers
lock first. It takes them at its beginning, all of them within LOCK_MILLISECONDS, or gives way and tries again: so no
statement of the release before becomes the victim of a deadlock.
"""

from __future__ import annotations

import asyncio
import importlib.resources
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import asyncpg
import structlog
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, MetaData, pool
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from chassis.db import revisions, roles
from chassis.db.database import LOST, SERVER_SETTINGS, DatabaseUnavailable, refuse_older
from chassis.db.servers import Servers
from chassis.runtime.settings import SettingsError

LOCK = 0x6D616B65  # one migration at a time, across processes
LOCK_MILLISECONDS = 800
"""How long a revision waits for all its locks. Statements of the release before queue behind it meanwhile. Shorter than
`deadlock_timeout`, a second by default: before PostgreSQL looks for a deadlock the revision has given way."""
ATTEMPTS, PAUSE_SECONDS = 60, 2.0
"""Of a revision that can't have its locks, about three minutes: somebody else's transaction holds them."""
_GAVE_WAY = frozenset({"55P03", "40P01"})  # lock_not_available, deadlock_detected

Outcome = TypeVar("Outcome")

log = structlog.stdlib.get_logger(__name__)


def alembic_config(package: str, connection: Connection, metadata: MetaData) -> Config:
    config = Config(attributes={"connection": connection, "target_metadata": metadata})
    config.set_main_option("script_location", str(importlib.resources.files(package) / "migrations"))
    return config


@asynccontextmanager
async def _connected(url: str) -> AsyncIterator[AsyncConnection]:
    """A connection of SQLAlchemy's own engine.

    Raises SettingsError if the tables belong to another role, and as `refuse_older` does.
    """
    # asyncpg parses the URL: SQLAlchemy would turn its sslmode into an argument that asyncpg refuses. NullPool keeps no
    # connection open.
    engine = create_async_engine("postgresql+asyncpg://", async_creator=Servers(url).connect, poolclass=pool.NullPool)
    async with engine.connect() as connection:
        raw: Any = (await connection.get_raw_connection()).driver_connection
        # A role that also serves may have the timeouts of requests as its defaults.
        await raw.execute("; ".join(f"SET {name} = 0" for name in SERVER_SETTINGS if name.endswith("_timeout")))
        await _refuse_foreign(raw)
        await refuse_older(raw)
        yield connection


async def with_connection(url: str, work: Callable[[Connection], Outcome]) -> Outcome:
    """Runs `work(connection)` in one transaction. Raises as `_connected` does."""
    async with _connected(url) as connection, connection.begin():
        return await connection.run_sync(work)


def migrate(url: str, package: str, metadata: MetaData, service_role: str = "") -> None:
    """Brings the database to the newest revision, each in a transaction of its own, and records all that it has had.
    After an interruption the same call goes on from there.

    A database of a later release that has had the newest revision stays as it is, also its privileges.
    The role `service_role` gets the privileges of a service, if it is not the owner's that `url` names.

    Raises SettingsError if the tables belong to another role, and as `refuse_older` does. Raises DatabaseUnavailable
    if the server is away, if a revision can't have its locks, and if a release that lacks the newest revision made the
    database.
    """

    def upgrade(connection: Connection) -> bool:
        """Takes the next step. Returns whether there are more."""
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({LOCK})")
        config = alembic_config(package, connection, metadata)
        scripts = ScriptDirectory.from_config(config)
        revision_ids = [script.revision for script in scripts.walk_revisions()]
        current = MigrationContext.configure(connection).get_current_revision()
        connection.exec_driver_sql(revisions.CREATE)
        if current is not None and current not in revision_ids:
            head = scripts.get_current_head()
            if connection.exec_driver_sql(revisions.IS_RECORDED, (head,)).scalar():
                log.info("schema_is_newer", head=head, revision=current)
                return False
            raise DatabaseUnavailable(f"revision {current} of the database is unknown here: a later release made it")
        to_do = list(reversed([*scripts.iterate_revisions("head", current or "base")]))
        for script in to_do[:1]:
            config.attributes["locks"] = getattr(script.module, "locks", {})
            command.upgrade(config, script.revision)
            current = script.revision
        had = [script.revision for script in scripts.iterate_revisions(current or "base", "base")]
        connection.exec_driver_sql(revisions.RECORD, (had,))
        if len(to_do) > 1:
            return True
        if service_role:
            connection.exec_driver_sql(roles.grant(service_role))
        return False

    async def all_steps() -> None:
        async with _connected(url) as connection:
            while await _gives_way(connection, upgrade):
                pass

    try:
        asyncio.run(all_steps())
    except (*LOST, asyncpg.PostgresError) as error:  # raised before SQLAlchemy has a connection and wraps errors
        raise DatabaseUnavailable(str(error) or type(error).__name__) from error


def _lock(connection: Connection, tables: Mapping[str, str]) -> None:
    """Locks the tables that a revision names, or gives way after LOCK_MILLISECONDS in all; later locks have as long."""
    connection.exec_driver_sql(f"SET LOCAL lock_timeout = {LOCK_MILLISECONDS // max(1, len(tables))}")
    for table, mode in tables.items():
        connection.exec_driver_sql(f"LOCK TABLE {table} IN {mode} MODE")


async def _gives_way(connection: AsyncConnection, step: Callable[[Connection], Outcome]) -> Outcome:
    """Runs `step(connection)` in a transaction, and again if it can't have its locks. Raises DatabaseUnavailable."""
    statement = ""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            async with connection.begin():
                return await connection.run_sync(step)
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) not in _GAVE_WAY:
                raise
            statement = " ".join((error.statement or "").split())[:200]
            log.warning("migration_gives_way", attempt=attempt, attempts=ATTEMPTS, statement=statement)
        await asyncio.sleep(PAUSE_SECONDS)
    raise DatabaseUnavailable(
        f"a migration could not have its locks in {ATTEMPTS} attempts ({statement}): another transaction, such as a "
        "dump, holds one of its tables. Start it again after that; it goes on from there"
    )


async def _refuse_foreign(connection: asyncpg.Connection) -> None:
    foreign = await connection.fetchrow(
        "SELECT pg_get_userbyid(relowner) AS owner, current_user AS migrating FROM pg_class"
        " WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT pg_has_role(relowner, 'USAGE')"
        " LIMIT 1"
    )
    if foreign is not None:
        raise SettingsError(
            f"the tables of this database belong to the role {foreign['owner']}, not to {foreign['migrating']}; the "
            "server's administrator must hand them over first (deploy/README.md, Upgrade)."
        )


def is_a_contexts(name: str | None, kind: str, _parents: object) -> bool:
    """Alembic's `include_name`: whether a comparison of the database with a context's tables looks at this."""
    return kind != "table" or name not in revisions.OF_MIGRATIONS


def run_environment() -> None:
    """The body of every service's `migrations/env.py`."""
    from alembic import context  # noqa: PLC0415 - exists only while Alembic runs the environment

    attributes = dict(context.config.attributes)
    locks = attributes.pop("locks", {})
    context.configure(**attributes, transactional_ddl=True, include_name=is_a_contexts)
    started = time.monotonic()
    _lock(attributes["connection"], locks)  # as late as possible: requests wait from here on
    context.run_migrations()
    log.info("migrated", seconds=round(time.monotonic() - started, 3))
