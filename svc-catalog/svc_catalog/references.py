"""Rows of svc-catalog that other contexts keep as replicas: fields of the messages in makeready.events.v1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from asyncpg import Record
from sqlalchemy import BigInteger, Select, Table, Text, func, or_, select
from sqlalchemy.dialects.postgresql import ARRAY

from chassis.db.database import Connection
from chassis.db.statements import Statement, param


class ReferenceRows:
    """The rows of one kind. all: every one that there is, of all companies."""

    def __init__(self, table: Table, rows: Select[Any]) -> None:
        """table: the kind's own. rows: its message's fields, by name."""
        self.all = rows
        ids, external_ids = param("ids", ARRAY(BigInteger)), param("external_ids", ARRAY(Text))
        self._by_ids = Statement(
            rows.where(
                table.c.company_id == param("company_id", BigInteger),
                or_(table.c.id == func.any(ids), table.c.external_id == func.any(external_ids)),
            )
        )

    async def by_ids(
        self, connection: Connection, company_id: int, ids: Sequence[int], external_ids: Sequence[str] = ()
    ) -> list[Record]:
        """Those of the company's records that have one of the ids or external ids."""
        if not ids and not external_ids:
            return []
        return await connection.rows(self._by_ids, company_id=company_id, ids=ids, external_ids=external_ids)


def columns_of(table: Table, *more: str) -> Select[Any]:
    """The fields that are columns of the kind's own table: those of every kind, and more."""
    return select(*(table.c[name] for name in ("id", "version", "company_id", *more, "name", "external_id")))
