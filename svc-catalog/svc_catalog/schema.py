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
    DateTime,
    ForeignKeyConstraint,
    MetaData,
    Sequence,
    Table,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY

from chassis.messaging.consumer import inbox_table
from chassis.messaging.outbox import outbox_table
from chassis.replicas.tables import company_replica, replica_table
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
    not_set = {"company_id", "id", "version", "updated_at", "external_id", "source", *without}
    return [column.name for column in table.c if column.name not in not_set and column.computed is None]
