"""Alembic, driven without its command line: each service's migrations lie in its package."""

from __future__ import annotations

import asyncio
import importlib.resources
from typing import Any

import asyncpg
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, MetaData, pool
from sqlalchemy.ext.asyncio import create_async_engine

from chassis.db.database import LOST, DatabaseUnavailable, refuse_older

LOCK = 0x6D616B65  # one migration at a time, whoever starts it


def alembic_config(package: str, connection: Connection, metadata: MetaData) -> Config:
    config = Config(attributes={"connection": connection, "target_metadata": metadata})
    config.set_main_option("script_location", str(importlib.resources.files(package) / "migrations"))
    return config


async def with_connection(url: str, work: Any) -> Any:
    """Runs `work(connection)` in one transaction of SQLAlchemy's own engine.

    Raises SettingsError: see `refuse_older`.
    """
    # The driver reads the URL: SQLAlchemy would turn its sslmode into an argument that the driver refuses.
    # Nothing of it stays: this pool keeps no connection.
    engine = create_async_engine("postgresql+asyncpg://", connect_args={"dsn": url}, poolclass=pool.NullPool)
    async with engine.begin() as connection:
        await refuse_older((await connection.get_raw_connection()).driver_connection)
        return await connection.run_sync(work)


def migrate(url: str, package: str, metadata: MetaData) -> None:
    """Brings the database to the newest revision, in one transaction under a lock.

    Raises SettingsError where a version before the first release made the database, and DatabaseUnavailable, also
    where its revision is one that these migrations do not know: a later release made it.
    """

    def upgrade(connection: Connection) -> None:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({LOCK})")
        config = alembic_config(package, connection, metadata)
        known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
        unknown = set(MigrationContext.configure(connection).get_current_heads()) - known
        if unknown:
            raise DatabaseUnavailable(
                f"revision {min(unknown)} of the database is unknown here: a later release made it"
            )
        command.upgrade(config, "head")

    try:
        asyncio.run(with_connection(url, upgrade))
    except (*LOST, asyncpg.PostgresError) as error:  # before SQLAlchemy has a connection, and wraps what goes wrong
        raise DatabaseUnavailable(str(error) or type(error).__name__) from error


def run_environment() -> None:
    """The body of every service's `migrations/env.py`."""
    from alembic import context  # noqa: PLC0415 - exists only while Alembic runs the environment

    context.configure(**context.config.attributes, transactional_ddl=True)
    context.run_migrations()
