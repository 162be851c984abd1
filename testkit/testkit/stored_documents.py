"""Compares the stored documents of a database with what rendering gives, record by record."""

from __future__ import annotations

import asyncio
from typing import Any

import sqlalchemy as sa

from chassis.changes.documents import ONE_SNAPSHOT
from chassis.changes.feed import Changes
from chassis.changes.tables import served_of
from chassis.db.database import Connection, Database
from chassis.db.statements import Statement, param
from testkit.patience import PATIENCE_SECONDS

_ROWS = sa.literal_column("1000", sa.Integer)


async def compare_documents(database: Database, *kinds: Changes, seconds: float = PATIENCE_SECONDS) -> dict[str, int]:
    """How many documents each kind has, all of which equal what rendering gives.

    Waits until no record is without a document and all records that show a changed row have moved. Raises
    AssertionError.
    """
    async with asyncio.timeout(seconds):
        while True:
            async with database.transaction(ONE_SNAPSHOT, writes=False) as connection:
                if not [kind for kind in kinds if await _is_behind(connection, kind)]:
                    return {kind.kind: await _compared(connection, kind) for kind in kinds}
            await asyncio.sleep(0.1)


async def check_documents(url: str, *kinds: Changes) -> dict[str, int]:
    """`compare_documents` of the database with this URL, which its service goes on to serve."""
    database = Database(url, application="tests", connections=2)
    await database.open()
    try:
        return await compare_documents(database, *kinds)
    finally:
        await database.close()


def written_columns(table: sa.Table) -> list[sa.Column[Any]]:
    """The columns that writes set. The service fills the others soon after: the document, and what its search knows."""
    return [column for column in table.c if column.name not in ("document", "document_shape", "searched_version")]


async def _is_behind(connection: Connection, kind: Changes) -> bool:
    documents, table = kind.documents, kind.table
    assert documents is not None
    marks = table.metadata.tables["changes_to_touch"]
    missing = sa.select(table.c.id).where(*served_of(table), documents.is_missing).exists()
    waiting = sa.select(marks.c.id).where(marks.c.record == param("record", sa.Text), marks.c.horizon.is_(None))
    return bool(await connection.value(Statement(sa.select(sa.or_(missing, waiting.exists()))), record=table.name))


async def _compared(connection: Connection, kind: Changes) -> int:
    documents, table = kind.documents, kind.table
    assert documents is not None
    c = table.c
    after = sa.tuple_(param("company_id", sa.BigInteger), param("id", sa.BigInteger))
    rows = sa.select(c.company_id, c.id, c.document).where(sa.tuple_(c.company_id, c.id) > after, *served_of(table))
    statement = Statement(rows.order_by(c.company_id, c.id).limit(_ROWS))
    compared, key = 0, (0, 0)
    while stored := await connection.rows(statement, company_id=key[0], id=key[1]):
        keys = [(row["company_id"], row["id"]) for row in stored]
        rendered = {record.n: record.document for record in await documents.rendered(connection, keys)}
        for n, row in enumerate(stored, start=1):
            assert row["document"] == rendered[n], f"the {kind.kind} {row['id']} has another document"
        compared, key = compared + len(stored), keys[-1]
    return compared
