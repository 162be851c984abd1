"""Many rows in one statement: each column travels as one array."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from asyncpg import Record
from sqlalchemy import FromClause, Table, TableValuedAlias, bindparam, func, insert, select, update
from sqlalchemy.dialects.postgresql import ARRAY

from chassis.db.database import Connection
from chassis.db.statements import Expression, SqlType, Statement, Values

# Parameters of `array_rows`: the values of each column.
Arrays = dict[str, list[Any]]


def array_rows(
    name: str, columns: Mapping[str, SqlType], *, prefix: str = "", numbered: bool = False
) -> TableValuedAlias:
    """A table called `name` whose rows come from parameters: one array parameter, PREFIX + COLUMN, for each column.

    The `columns` are types by name. A column `n`, the row's number from 1, is added if `numbered`.
    """
    arrays = [bindparam(prefix + column, type_=ARRAY(kind)) for column, kind in columns.items()]
    rows = func.unnest(*arrays).table_valued(*columns, with_ordinality="n" if numbered else None)
    return rows.render_derived(name=name)


def array_rows_of(table: Table, names: Sequence[str], prefix: str = "") -> TableValuedAlias:
    """`array_rows` of some columns of a table, called `given`."""
    return array_rows("given", {name: table.c[name].type for name in names}, prefix=prefix)


def columns_of(rows: Sequence[Values] | Sequence[Record], names: Sequence[str], prefix: str = "") -> Arrays:
    """Rows as arrays, for the parameters of `array_rows`."""
    return {prefix + name: [row[name] for row in rows] for name in names}


def columns_of_tuples(rows: Sequence[Any]) -> Arrays:
    """As `columns_of`, for one or more NamedTuples of one class; twice as fast as by name."""
    return dict(zip(rows[0]._fields, map(list, zip(*rows, strict=True)), strict=True))


class InsertMany:
    """Inserts rows of one table; columns that are not named take their server defaults."""

    def __init__(self, table: Table, names: Sequence[str], *returning: Expression) -> None:
        self._names = names
        source: FromClause = array_rows_of(table, names)
        form = insert(table).from_select(list(names), select(*source.c), include_defaults=False)
        self._statement = Statement(form.returning(*returning) if returning else form)

    async def run(self, connection: Connection, rows: Sequence[Values]) -> list[Any]:
        """Returns the `returning` columns of each row, in any order."""
        return await connection.rows(self._statement, **columns_of(rows, self._names)) if rows else []


class UpdateMany:
    """Updates rows of one table by their primary key."""

    def __init__(self, table: Table, names: Sequence[str]) -> None:
        key = [column.name for column in table.primary_key]
        set_names = [name for name in names if name not in key]
        self._names = (*key, *set_names)
        source: FromClause = array_rows_of(table, self._names)
        form = update(table).where(*(table.c[name] == source.c[name] for name in key))
        self._statement = Statement(form.values({name: source.c[name] for name in set_names}))

    async def run(self, connection: Connection, rows: Sequence[Values]) -> None:
        if rows:
            await connection.execute(self._statement, **columns_of(rows, self._names))
