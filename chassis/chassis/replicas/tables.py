"""Replicas: rows of other contexts, stored so that reads need no other service. The owner's higher version wins."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa
from google.protobuf.message import Message
from sqlalchemy.dialects.postgresql import insert

from chassis.db.database import Connection
from chassis.db.rows import array_rows_of
from chassis.db.statements import Statement


def company_replica(metadata: sa.MetaData) -> sa.Table:
    """The companies, which are the tenants: every row of a context belongs to one. A company that has not arrived yet
    counts as active."""
    return sa.Table(
        "company",
        metadata,
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("version", sa.BigInteger, nullable=False, server_default=sa.text("0")),
        sa.Column("name", sa.Text, nullable=False, server_default=sa.text("''")),
        sa.Column("active", sa.Boolean, nullable=False, server_default=sa.text("true")),
        sa.Column("timezone", sa.Text, nullable=False, server_default=sa.text("'UTC'")),
    )


def replica_table(metadata: sa.MetaData, name: str, *columns: sa.Column[Any]) -> sa.Table:
    """Rows of another context, by their ids there. Version 0 marks a row that has not arrived yet."""
    table = sa.Table(
        name,
        metadata,
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("version", sa.BigInteger, nullable=False, server_default=sa.text("0")),
        sa.Column("company_id", sa.BigInteger, nullable=False),
        sa.Column("name", sa.Text, nullable=False, server_default=sa.text("''")),
        sa.Column("external_id", sa.Text),
        *columns,
    )
    sa.Index(f"{name}_external_id", table.c.company_id, table.c.external_id)
    return table


class Replica:
    """One replica table, whose columns are fields of the reference message by name.

    parents: by column, the replica whose row it names. A row may arrive before its parent. The parent is then stored
    as a row of version 0, which no read returns, until the owner's row arrives.
    """

    def __init__(self, table: sa.Table, parents: dict[str, sa.Table] | None = None) -> None:
        self._names = [column.name for column in table.c]
        rows = array_rows_of(table, self._names)
        put = insert(table).from_select(self._names, sa.select(*rows.c).order_by(rows.c.id), include_defaults=False)
        changed = {name: put.excluded[name] for name in self._names if name != "id"}
        newer = put.excluded.version > table.c.version
        update = put.on_conflict_do_update
        self._puts = [Statement(update(index_elements=["id"], set_=changed, where=one)) for one in (newer, None)]
        self._stubs = {column: _stub(parent) for column, parent in (parents or {}).items()}

    async def put(self, connection: Connection, references: Iterable[Message], overwrite: bool = False) -> None:
        """Saves the rows; a row's highest version wins. With `overwrite`, stored versions do not count."""
        newest: dict[int, Any] = {}
        for one in references:
            reference: Any = one
            if reference.id not in newest or reference.version > newest[reference.id].version:
                newest[reference.id] = reference
        if not newest:
            return
        rows = [newest[entity_id] for entity_id in sorted(newest)]
        for column, stub in self._stubs.items():
            found = sorted({(getattr(row, column), row.company_id) for row in rows})
            await connection.execute(stub, id=[one for one, _ in found], company_id=[company for _, company in found])
        columns = {name: [_value(row, name) for row in rows] for name in self._names}
        await connection.execute(self._puts[overwrite], **columns)


def _value(row: Any, name: str) -> Any:
    field = row.DESCRIPTOR.fields_by_name[name]
    return getattr(row, name) if not field.has_presence or row.HasField(name) else None


def _stub(parent: sa.Table) -> Statement:
    names = ["id", "company_id"]
    put = insert(parent).from_select(names, sa.select(*array_rows_of(parent, names).c), include_defaults=False)
    return Statement(put.on_conflict_do_nothing())
