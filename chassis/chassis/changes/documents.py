"""A record's document: its public JSON, stored in its row when it is written, without the base of its links.

    PARCEL_DOCUMENTS = Documents(PARCEL, PARCELS, parcel)  # in queries.py, after the SELECT with all joins

Reads serve documents and join nothing. A row without a document, or with one of an older shape, is rendered when it is
read, from the same snapshot, and soon after in the background: see `chassis.changes.tracking`. A statement that writes
a record may store its document. It need not: the trigger of the table clears the document of a row that changes
otherwise, whichever statement changes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, NamedTuple

import sqlalchemy as sa
from asyncpg import Record

from chassis.changes.tables import served_of
from chassis.db.database import Connection, Database
from chassis.db.rows import array_rows
from chassis.db.statements import Selection, Statement
from chassis.lists.updated_since import is_of
from chassis.records.shapes import DOCUMENT, DOCUMENT_SHAPE, Renderer, Shape, Struct
from makeready.common.v1.documents_pb2 import Document

ONE_SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"
# A record's company and id.
Key = tuple[int, int]


class Documents(Generic[Struct]):
    """The documents of the records of one kind.

    In `joined`, a `shape.select`, the table is joined with all that the records show, each with one row or none. The
    `table` is declared with `make_followable`.
    """

    def __init__(self, shape: Shape[Struct], joined: Selection, table: sa.Table) -> None:
        self.shape, self.joined, self.table = shape, joined, table
        self._stored = shape.renderer().stored
        c = table.c
        number = sa.literal_column(str(shape.number), sa.Integer)
        self.number: sa.ColumnElement[int] = number
        self.is_missing = c[DOCUMENT_SHAPE].is_distinct_from(number)
        """The condition of rows without a document of this shape."""
        document = sa.case((c[DOCUMENT_SHAPE] == number, c[DOCUMENT])).label("document")
        self.rows: Selection = sa.select(c.id, document)
        """The SELECT of a list: id, document. The document is null if it is missing."""
        keys = array_rows("keys", {"company_ids": sa.BigInteger, "ids": sa.BigInteger}, numbered=True)
        company = (c.company_id, keys.c.company_ids)
        same = [company[0] == company[1]] if c.company_id.primary_key else is_of([company])
        of_keys = (*same, c.id == keys.c.ids, *served_of(table))
        self._fetched = Statement(
            sa.select(keys.c.n, c.id, shape.columns[-1].label("version"), document).where(*of_keys)
        )
        self._rendered = Statement(joined.add_columns(keys.c.company_ids, keys.c.n).where(*of_keys))

    async def rendered(self, connection: Connection, keys: Sequence[Key]) -> list[Rendered]:
        """The documents of records as they are now, in any order; without those that no reader sees."""
        if not keys:
            return []
        width = len(self.shape.columns)
        rows = await connection.rows(self._rendered, **columns_of_keys(keys))
        return [
            Rendered(row["n"], row["company_ids"], row[0], row[width - 1], self._stored(tuple(row)[:width]))
            for row in rows
        ]

    async def of_rows(self, connection: Connection, company_id: int, rows: Sequence[Record]) -> list[bytes]:
        """The documents of rows of `rows`. The connection is in ONE_SNAPSHOT if one is missing."""
        missing = [(company_id, row[0]) for row in rows if row[1] is None]
        rendered = {document.entity_id: document.document for document in await self.rendered(connection, missing)}
        return [rendered[row[0]] if row[1] is None else row[1] for row in rows]

    async def fetch(self, database: Database, renderer: Renderer[Struct], keys: Sequence[Key]) -> list[Document | None]:
        """The records of one or more keys, in their order; None for one that does not exist or that no reader sees."""
        fetched: list[Document | None] = [None] * len(keys)
        async with database.connection() as connection:
            rows: list[Any] = await connection.rows(self._fetched, **columns_of_keys(keys))
            missing = [row["n"] for row in rows if row["document"] is None]
            rendered = await self.rendered(connection, [keys[n - 1] for n in missing])
        for n, entity_id, version, document in rows:
            if document is not None:
                fetched[n - 1] = Document(json=renderer.served(document), entity_id=entity_id, version=version)
        for n, _, entity_id, version, document in rendered:
            json = renderer.served(document)
            fetched[missing[n - 1] - 1] = Document(json=json, entity_id=entity_id, version=version)
        return fetched


class Rendered(NamedTuple):
    """A record that was rendered. Its position among the keys, from 1, is `n`."""

    n: int
    company_id: int
    entity_id: int
    version: int
    document: bytes


def columns_of_keys(keys: Sequence[Key]) -> dict[str, list[int]]:
    companies, ids = map(list, zip(*keys, strict=True))
    return {"company_ids": companies, "ids": ids}


def has_all(rows: Sequence[Record]) -> bool:
    """Whether each row of `Documents.rows` has its document."""
    return all(row[1] is not None for row in rows)
