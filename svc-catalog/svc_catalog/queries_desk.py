"""The SQL statements of the back office: one record at a time, locked, added and changed."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

from asyncpg import Record
from sqlalchemy import BigInteger, Table, insert, select, update
from sqlalchemy.sql.elements import ColumnElement

from chassis.db.database import Connection
from chassis.db.statements import Statement, param

_STAMPS = ("created_at", "updated_at", "version")


class Kept:
    """The records of one table, whose key is company_id and id, and which has external_id, source and created_at.

    columns: what people set, besides external_id. also: what a record must fulfil to be found.
    """

    def __init__(self, table: Table, *columns: str, also: Sequence[ColumnElement[bool]] = ()) -> None:
        self.columns = ("external_id", *(name for name in columns if name not in _STAMPS))
        self.stamps = tuple(name for name in _STAMPS if name in table.c)
        same = (table.c.company_id == param("company_id", BigInteger), table.c.id == param("entity_id", BigInteger))
        there = (*same, *also)
        self._for_update = Statement(select(table).where(*there).with_for_update(key_share=True))
        self._as_it_is = Statement(select(table).where(*there).with_for_update(read=True, key_share=True))
        fresh = ("company_id", "source", *self.columns, *(name for name in self.stamps if name != "version"))
        self._insert = Statement(
            insert(table).values({name: param(name, table.c[name].type) for name in fresh}).returning(table.c.id)
        )
        values: dict[str, Any] = {name: param(f"new_{name}", table.c[name].type) for name in self.columns}
        if "updated_at" in self.stamps:
            values["updated_at"] = param("new_updated_at", table.c.updated_at.type)
        if "version" in self.stamps:
            values["version"] = table.c.version + 1
        self._update = Statement(update(table).where(*same).values(values))

    async def for_update(self, connection: Connection, company_id: int, entity_id: int) -> Record | None:
        """The company's record, locked against changes."""
        return await connection.row(self._for_update, company_id=company_id, entity_id=entity_id)

    async def as_it_is(self, connection: Connection, company_id: int, entity_id: int) -> Record | None:
        """The company's record, which stays there until the commit."""
        return await connection.row(self._as_it_is, company_id=company_id, entity_id=entity_id)

    async def insert(
        self, connection: Connection, company_id: int, values: Mapping[str, Any], at: datetime.datetime
    ) -> int:
        """The id of the new record; columns without a value are null."""
        row: dict[str, Any] = {**dict.fromkeys(self.columns), **values}
        stamped = {name: at for name in self.stamps if name != "version"}
        entity_id: int = await connection.value(self._insert, company_id=company_id, source="staff", **row, **stamped)
        return entity_id

    async def update(self, connection: Connection, row: Mapping[str, Any], at: datetime.datetime) -> None:
        """row: the whole record as it will be."""
        values = {f"new_{name}": row[name] for name in self.columns}
        if "updated_at" in self.stamps:
            values["new_updated_at"] = at
        await connection.execute(self._update, company_id=row["company_id"], entity_id=row["id"], **values)
