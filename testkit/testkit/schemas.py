"""What a database is made of, for the test that migrations end where the tables are declared."""

from typing import Any

import asyncpg
from sqlalchemy import MetaData, create_mock_engine
from sqlalchemy.dialects import postgresql

# Alembic compares neither constraints by their definition nor sequences nor defaults.
_SCHEMA = """
SELECT 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid)
  FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND contype <> 'n'
UNION ALL SELECT 'index', tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'
UNION ALL SELECT 'sequence', '', sequencename, data_type::text FROM pg_sequences WHERE schemaname = 'public'
UNION ALL SELECT 'column', table_name, column_name, concat_ws(' ', data_type, is_nullable, column_default)
  FROM information_schema.columns WHERE table_schema = 'public'
"""


async def schema(url: str) -> set[tuple[str, str, str, str]]:
    """Every column, constraint, index and sequence: what it is, its table, its name, its definition."""
    connection = await asyncpg.connect(url)
    try:
        found = {(row[0], row[1], row[2], row[3]) for row in await connection.fetch(_SCHEMA)}
    finally:
        await connection.close()
    return {row for row in found if "alembic_version" not in row}


async def declare(url: str, metadata: MetaData) -> None:
    """Makes the tables in an empty database as they are declared, without migrations."""
    statements: list[str] = []

    def collect(clause: Any, *_arguments: Any, **_more: Any) -> None:
        statements.append(str(clause.compile(dialect=postgresql.dialect())))  # type: ignore[no-untyped-call]

    metadata.create_all(create_mock_engine("postgresql://", collect), checkfirst=False)
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(";\n".join(statements))
    finally:
        await connection.close()
