"""Databases of the tests, with the tables that a test declares."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import sqlalchemy as sa

from chassis.db.database import Database
from testkit.plugin import PostgresServer
from testkit.poolers import PgBouncer

POSTGRESQL = "postgresql://"


async def make_tables(database: Database, metadata: sa.MetaData) -> None:
    """Makes the sequences, tables and indexes of the metadata."""
    statements: list[Any] = []
    metadata.create_all(
        sa.create_mock_engine(POSTGRESQL, lambda ddl, *_, **__: statements.append(ddl)), checkfirst=False
    )
    dialect = sa.make_url(POSTGRESQL).get_dialect()()
    async with database.connection() as connection:
        for statement in statements:
            await connection.raw.execute(str(statement.compile(dialect=dialect)))


def reached(url: str, pooler: PgBouncer | None = None) -> dict[str, Any]:
    """The arguments of a `Database` that say how it is reached; url: the server's own."""
    return {"url": url} if pooler is None else {"url": pooler.url(url), "pooler": pooler.mode, "direct_url": url}


@asynccontextmanager
async def database_with(
    server: PostgresServer, name: str, metadata: sa.MetaData, pooler: PgBouncer | None = None
) -> AsyncIterator[Database]:
    """An empty database with these tables, opened; through the pooler, if there is one."""
    database = Database(**reached(server.create_database(name), pooler), application="tests")
    await database.open()
    try:
        await make_tables(database, metadata)
        yield database
    finally:
        await database.close()
