"""Shared parts of the tables of the database `catalog`: the metadata, helpers for columns and constraints, and the
platform's tables (events, idempotency, audit log, replicas of the gateway's rows).

Every key begins with the company. Every reference includes the company and, if there is one, the property, so a record
cannot refer to another company's record or to one in another property. No index begins with the id: a planner that
knows few companies would use it to page through all of them. Ids are unique all the same, because each kind takes them
from one sequence.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ColumnElement,
    DateTime,
    ForeignKeyConstraint,
    Index,
    MetaData,
    Sequence,
    Table,
    Text,
    UniqueConstraint,
    func,
    literal_column,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY

from chassis.changes.tables import CHANGE_COLUMNS, add_change_tables
from chassis.imports.tables import import_table
from chassis.messaging.consumer import inbox_table
from chassis.messaging.outbox import outbox_table
from chassis.replicas.tables import company_replica, replica_table
from chassis.reports.tables import add_report_tables
from chassis.writes.audit import audit_table
from chassis.writes.idempotency import ledger

metadata = MetaData()

# List filters by place. A unit never changes its property.
PLACES = ("property_id", "unit_id")

IDS = ARRAY(BigInteger)

outbox = outbox_table(metadata)
idempotency = ledger(metadata)
audit = audit_table(metadata)
inbox = inbox_table(metadata)
changes_to_touch, changes_epoch = add_change_tables(metadata)
import_batch = import_table(metadata)
reports = add_report_tables(metadata)

# Replicas of the gateway's rows, with the gateway's ids. Version 0 marks a row that has not arrived yet.
company = company_replica(metadata)
staff = replica_table(metadata, "staff")
# An inspection refers to its assignee by company and id.
staff.append_constraint(UniqueConstraint("company_id", "id", name="staff_of_company"))


def ids(name: str) -> Sequence:
    """The sequence of one kind's ids, shared by all companies."""
    return Sequence(name, metadata=metadata, data_type=BigInteger)


def id_of(sequence: Sequence) -> Column[int]:
    return Column(
        "id", BigInteger, primary_key=True, autoincrement=False, server_default=text(f"nextval('{sequence.name}')")
    )


def company_key() -> Column[int]:
    return Column("company_id", BigInteger, primary_key=True, autoincrement=False)


def version() -> Column[int]:
    return Column("version", BigInteger, nullable=False, server_default=text("1"))


def instant(name: str) -> Column[object]:
    return Column(name, DateTime(timezone=True), nullable=False)


def one_of(table: str, column: str, values: Iterable[str]) -> CheckConstraint:
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=f"{table}_{column}")


def between(table: str, column: str, lowest: int, highest: int) -> CheckConstraint:
    return CheckConstraint(f"{column} BETWEEN {lowest} AND {highest}", name=f"{table}_{column}")


def lies_in_property() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(["company_id", "property_id"], ["property.company_id", "property.id"])


def within_property(column: str, place: str) -> ForeignKeyConstraint:
    return ForeignKeyConstraint(
        ["company_id", "property_id", column], [f"{place}.company_id", f"{place}.property_id", f"{place}.id"]
    )


def editable_columns(table: Table, *without: str) -> list[str]:
    """The columns that imports and people can set, except external_id. without: columns that another service owns."""
    fixed = {"company_id", "id", "version", "searched_version", "updated_at", "external_id", "source", *CHANGE_COLUMNS}
    return [column.name for column in table.c if column.name not in {*fixed, *without} and column.computed is None]


def in_order_of_names(name: ColumnElement[str]) -> ColumnElement[str]:
    """The text by which people's lists are ordered: a name without case, its numbers with nine digits, so that "Unit 9"
    precedes "Unit 10". An index on it must have this very expression."""
    padded = func.regexp_replace(func.lower(name), literal_column(r"'(\d+)'"), literal_column(r"'00000000\1'"), _ALL)
    return func.regexp_replace(padded, literal_column(r"'\d*(\d{9})'"), literal_column(r"'\1'"), _ALL, type_=Text)


_ALL: ColumnElement[str] = literal_column("'g'")


def searched_version() -> Column[int]:
    """The version of the row whose words `place_search` has."""
    return Column("searched_version", BigInteger, nullable=False, server_default=text("0"))


def people_indexes(table: Table, **others: Iterable[ColumnElement[object]]) -> None:
    """The indexes of people's lists in the order of names: all rows, and those that have each of `others`, which are
    columns by the index's name; and the rows whose words are not up to date."""
    name = in_order_of_names(table.c.name)
    for suffix, columns in {"": (), **others}.items():
        Index(f"{table.name}_names{suffix and '_of_'}{suffix}", table.c.company_id, *columns, name, table.c.id)
    stale = text("searched_version <> version")
    Index(f"{table.name}_unsearched", table.c.company_id, table.c.id, postgresql_where=stale)
