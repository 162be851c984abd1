"""Parts of the SELECTs that read records of any kind. The first parameter is the company."""

from __future__ import annotations

from sqlalchemy import BigInteger, Table, and_
from sqlalchemy.sql.elements import ColumnElement

from chassis.db.statements import Selection, Statement, param


def refers_to(table: Table, column: str, other: Table) -> ColumnElement[bool]:
    """The condition that a row's column refers to the other row, by its whole key."""
    shared = (name for name in other.primary_key.columns.keys() if name != "id")  # noqa: SIM118 - columns by name
    return and_(other.c.id == table.c[column], *(other.c[name] == table.c[name] for name in shared))


def equals_parameter(table: Table, column: str) -> ColumnElement[bool]:
    """The condition that a column equals the parameter of the same name."""
    return table.c[column] == param(column, table.c[column].type)


def by_id(rows: Selection, table: Table) -> Statement:
    """The company's record with the id `entity_id`."""
    company_id, entity_id = param("company_id", BigInteger), param("entity_id", BigInteger)
    return Statement(rows.where(table.c.company_id == company_id, table.c.id == entity_id))
