"""Rows of svc-catalog that other contexts replicate: fields of the messages in makeready.events.v1."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from asyncpg import Record
from sqlalchemy import BigInteger, Table, func, not_, or_, select

from chassis.db.database import Connection
from chassis.db.statements import TEXTS, Selection, Statement, param
from chassis.imports.tables import is_leaving
from makeready.events.v1.events_pb2 import References
from svc_catalog.schema import IDS


class ReferenceRows:
    """The rows of one kind. all: selects the rows of all companies."""

    def __init__(self, field: str, table: Table, rows: Selection) -> None:
        """field: the field of References for this kind. table: the kind's table. rows: selects the message's fields."""
        self.field, self.all = field, rows
        self._names = tuple(rows.selected_columns.keys())
        ids, external_ids = param("ids", IDS), param("external_ids", TEXTS)
        these = rows.where(
            table.c.company_id == param("company_id", BigInteger),
            or_(table.c.id == func.any(ids), table.c.external_id == func.any(external_ids)),
        )
        self._by_ids, self._given = Statement(these), Statement(these.where(not_(is_leaving(table, field))))

    async def by_ids(
        self, connection: Connection, company_id: int, ids: Sequence[int], external_ids: Sequence[str] = ()
    ) -> list[Record]:
        """The company's rows that have one of the ids or external ids."""
        if not ids and not external_ids:
            return []
        return await connection.rows(self._by_ids, company_id=company_id, ids=ids, external_ids=external_ids)

    async def given(
        self, connection: Connection, company_id: int, ids: Sequence[int], external_ids: Sequence[str] = ()
    ) -> list[Record]:
        """As `by_ids`, for a context that lacks them: without those that an undo of an import is about to withdraw."""
        if not ids and not external_ids:
            return []
        return await connection.rows(self._given, company_id=company_id, ids=ids, external_ids=external_ids)

    async def of(self, connection: Connection, company_id: int, entity_id: int) -> References:
        """References with one record's row."""
        return self.made_of(await self.by_ids(connection, company_id, [entity_id]))

    def made_of(self, rows: Iterable[Mapping[str, object] | Record]) -> References:
        """References with these rows. A row may have fields that the message lacks."""
        references = References()
        self.add(references, rows)
        return references

    def add(self, references: References, rows: Iterable[Mapping[str, object] | Record]) -> None:
        """Adds rows to references."""
        several = getattr(references, self.field)
        for row in rows:
            several.add(**{name: row[name] for name in self._names})


def columns_of(table: Table, *more: str) -> Selection:
    """Selects the columns that every message has, and more."""
    return select(*(table.c[name] for name in ("id", "version", "company_id", *more, "name", "external_id")))
