"""Runs Alembic without its command line. Each service's migrations are in its package."""

from __future__ import annotations

import asyncio
import importlib.resources
from typing import Any

import asyncpg
import structlog
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, MetaData, pool
from sqlalchemy.ext.asyncio import create_async_engine

from chassis.db import revisions, roles
from chassis.db.database import LOST, SERVER_SETTINGS, DatabaseUnavailable, refuse_older
from chassis.db.servers import Servers
from chassis.runtime.settings import SettingsError

LOCK = 0x6D616B65  # one migration at a time, across processes

log = structlog.stdlib.get_logger(__name__)


def alembic_config(package: str, connection: Connection, metadata: MetaData) -> Config:
    config = Config(attributes={"connection": connection, "target_metadata": metadata})
    config.set_main_option("script_location", str(importlib.resources.files(package) / "migrations"))
    return config


async def with_connection(url: str, work: Any) -> Any:
    """Runs `work(connection)` in one transaction of SQLAlchemy's own engine.

    Raises SettingsError if the tables belong to another role, and as `refuse_older` does.
    """
    # asyncpg parses the URL: SQLAlchemy would turn its sslmode into an argument that asyncpg refuses. NullPool keeps no
    # connection open.
    engine = create_async_engine("postgresql+asyncpg://", async_creator=Servers(url).connect, poolclass=pool.NullPool)
    async with engine.begin() as connection:
        raw: Any = (await connection.get_raw_connection()).driver_connection
        # A role that also serves may have the timeouts of requests as its defaults.
        await raw.execute("; ".join(f"SET {name} = 0" for name in SERVER_SETTINGS if name.endswith("_timeout")))
        await _refuse_foreign(raw)
        await refuse_older(raw)
        return await connection.run_sync(work)


def migrate(url: str, package: str, metadata: MetaData, service_role: str = "") -> None:
    """Brings the database to the newest revision, in one transaction under a lock, and records all that it has had.

    A database of a later release that has had the newest revision stays as it is, also its privileges.
    service_role: a role that gets the privileges of a service, if it is not the owner's that `url` names.

    Raises SettingsError if the tables belong to another role, and as `refuse_older` does. Raises DatabaseUnavailable
    if the server is away, and also if a release that lacks the newest revision made the database.
    """

    def upgrade(connection: Connection) -> None:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({LOCK})")
        config = alembic_config(package, connection, metadata)
        scripts = ScriptDirectory.from_config(config)
        known = [script.revision for script in scripts.walk_revisions()]
        unknown = set(MigrationContext.configure(connection).get_current_heads()).difference(known)
        connection.exec_driver_sql(revisions.CREATE)
        if unknown:
            revision, head = min(unknown), scripts.get_current_head()
            if connection.exec_driver_sql(revisions.IS_RECORDED, (head,)).scalar():
                log.info("schema_is_newer", head=head, revision=revision)
                return
            raise DatabaseUnavailable(f"revision {revision} of the database is unknown here: a later release made it")
        command.upgrade(config, "head")
        connection.exec_driver_sql(revisions.RECORD, (known,))
        if service_role:
            connection.exec_driver_sql(roles.grant(service_role))

    try:
        asyncio.run(with_connection(url, upgrade))
    except (*LOST, asyncpg.PostgresError) as error:  # raised before SQLAlchemy has a connection and wraps errors
        raise DatabaseUnavailable(str(error) or type(error).__name__) from error


async def _refuse_foreign(connection: Any) -> None:
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


def is_a_contexts(name: str | None, kind: str, _parents: Any) -> bool:
    """Alembic's `include_name`: whether a comparison of the database with a context's tables looks at this."""
    return kind != "table" or name not in revisions.OF_MIGRATIONS


def run_environment() -> None:
    """The body of every service's `migrations/env.py`."""
    from alembic import context  # noqa: PLC0415 - exists only while Alembic runs the environment

    context.configure(**context.config.attributes, transactional_ddl=True, include_name=is_a_contexts)
    context.run_migrations()
