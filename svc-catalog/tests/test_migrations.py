"""A migrated database is what tables.py says."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
from sqlalchemy import create_mock_engine
from sqlalchemy.dialects import postgresql

from chassis import migrations
from makeready_local.testing import PostgresServer
from svc_catalog import tables as t

# What Alembic does not compare: constraints by their definition, sequences, defaults.
CATALOGUE = """
SELECT 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid)
  FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND contype <> 'n'
UNION ALL SELECT 'index', tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'
UNION ALL SELECT 'sequence', '', sequencename, data_type::text FROM pg_sequences WHERE schemaname = 'public'
UNION ALL SELECT 'column', table_name, column_name, concat_ws(' ', data_type, is_nullable, column_default)
  FROM information_schema.columns WHERE table_schema = 'public'
"""


async def catalogue(url: str) -> set[tuple[Any, ...]]:
    connection = await asyncpg.connect(url)
    try:
        found = {tuple(row) for row in await connection.fetch(CATALOGUE)}
    finally:
        await connection.close()
    return {row for row in found if "alembic_version" not in row}


def _text(clause: Any) -> str:
    return str(clause.compile(dialect=postgresql.dialect()))  # type: ignore[no-untyped-call]


async def test_a_migrated_database_equals_the_tables(postgres_server: PostgresServer) -> None:
    migrated = postgres_server.create_database("catalog_migrated")
    declared = postgres_server.create_database("catalog_declared")
    await asyncio.to_thread(migrations.migrate, migrated, "svc_catalog", t.metadata)
    statements: list[str] = []
    engine: Any = create_mock_engine("postgresql://", lambda sql, *_a, **_k: statements.append(_text(sql)))
    t.metadata.create_all(engine, checkfirst=False)
    connection = await asyncpg.connect(declared)
    await connection.execute(";\n".join(statements))
    await connection.close()
    assert await migrations.differences(migrated, t.metadata) == []
    assert await catalogue(migrated) == await catalogue(declared)


async def test_migrating_twice_changes_nothing(postgres_server: PostgresServer) -> None:
    url = postgres_server.create_database("catalog_twice")
    await asyncio.to_thread(migrations.migrate, url, "svc_catalog", t.metadata)
    before = await catalogue(url)
    await asyncio.to_thread(migrations.migrate, url, "svc_catalog", t.metadata)
    assert await catalogue(url) == before
