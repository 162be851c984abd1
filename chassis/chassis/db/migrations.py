"""Alembic, driven without its command line: each service's migrations lie in its package."""

from __future__ import annotations

import asyncio
import importlib.resources
from typing import Any

import asyncpg
from alembic import command
from alembic.config import Config
from sqlalchemy import MetaData, pool
from sqlalchemy.engine import Connection
from sqlalchemy.ext.asyncio import create_async_engine

from chassis.db.database import LOST, DatabaseUnavailable

LOCK = 0x6D616B65  # one migration at a time, whoever starts it


def alembic_config(package: str, connection: Connection, metadata: MetaData) -> Config:
    config = Config()
    config.set_main_option("script_location", str(importlib.resources.files(package) / "migrations"))
    config.attributes.update(connection=connection, metadata=metadata)
    return config


async def with_connection(url: str, work: Any) -> Any:
    """Runs `work(connection)` in one transaction of SQLAlchemy's own engine."""
    # The driver reads the URL: SQLAlchemy would turn its sslmode into an argument that the driver refuses.
    engine = create_async_engine("postgresql+asyncpg://", connect_args={"dsn": url}, poolclass=pool.NullPool)
    try:
        async with engine.begin() as connection:
            return await connection.run_sync(work)
    finally:
        await engine.dispose()


def migrate(url: str, package: str, metadata: MetaData) -> None:
    """Brings the database to the newest revision, in one transaction under a lock. Raises DatabaseUnavailable."""

    def upgrade(connection: Connection) -> None:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({LOCK})")
        command.upgrade(alembic_config(package, connection, metadata), "head")

    try:
        asyncio.run(with_connection(url, upgrade))
    except (*LOST, asyncpg.PostgresError) as error:  # before SQLAlchemy has a connection, and wraps what goes wrong
        raise DatabaseUnavailable(str(error) or type(error).__name__) from error


def run_environment() -> None:
    """The body of every service's `migrations/env.py`."""
    from alembic import context  # noqa: PLC0415 - exists only while Alembic runs the environment

    context.configure(
        connection=context.config.attributes["connection"],
        target_metadata=context.config.attributes["metadata"],
        transactional_ddl=True,
    )
    context.run_migrations()
