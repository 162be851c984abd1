"""Many rows in one statement: each column travels as one array."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import FromClause, Table, bindparam, func, insert, select, update
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.sql.elements import ColumnElement

from chassis.db.database import Connection
from chassis.db.statements import Statement


def offered(table: Table, names: Sequence[str], prefix: str = "") -> Any:
    """The rows that the parameters hold: an array for each column of the table, by its name after the prefix."""
    arrays = [bindparam(prefix + name, type_=ARRAY(table.c[name].type)) for name in names]
    return func.unnest(*arrays).table_valued(*names).render_derived(name="given")


def turned(rows: Sequence[Mapping[str, Any]], names: Sequence[str], prefix: str = "") -> dict[str, list[Any]]:
    """Rows as columns, for the parameters of `offered`."""
    return {prefix + name: [row[name] for row in rows] for name in names}


class InsertMany:
    """Inserts rows of one table; columns that are not named are left to their server defaults."""

    def __init__(self, table: Table, names: Sequence[str], *returning: ColumnElement[Any]) -> None:
        self._names = names
        source: FromClause = offered(table, names)
        form = insert(table).from_select(list(names), select(*source.c), include_defaults=False)
        self._statement = Statement(form.returning(*returning) if returning else form)

    async def run(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> list[Any]:
        """What the statement returns of each row, in any order."""
        return await connection.rows(self._statement, **turned(rows, self._names)) if rows else []


class UpdateMany:
    """Updates rows of one table by their primary key."""

    def __init__(self, table: Table, names: Sequence[str]) -> None:
        key = [column.name for column in table.primary_key]
        rest = [name for name in names if name not in key]
        self._names = (*key, *rest)
        source: FromClause = offered(table, self._names)
        form = update(table).where(*(table.c[name] == source.c[name] for name in key))
        self._statement = Statement(form.values({name: source.c[name] for name in rest}))

    async def run(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        if rows:
            await connection.execute(self._statement, **turned(rows, self._names))
