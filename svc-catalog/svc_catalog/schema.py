"""What the tables of the database `catalog` share: their metadata, the kinds of columns and constraints, and the tables
of the platform: events, idempotency, the audit log, replicas of the gateway's rows.

Every key begins with the company, and every reference carries the company and, where there is one, the property
along: a record can name nothing of another company, and nothing that lies in another property. No index begins
with the id: a planner that knows few companies would page through all of them by it. Ids are unique all the same,
for each comes from its kind's sequence.
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

IDS = ARRAY(BigInteger)

outbox = outbox_table(metadata)
idempotency = ledger(metadata)
audit = audit_table(metadata)
inbox = inbox_table(metadata)

# Replicas: rows of the gateway by their own ids. Version 0 stands for a row that has not arrived yet.
company = company_replica(metadata)
staff = replica_table(metadata, "staff")
# An inspection names its assignee with the company.
staff.append_constraint(UniqueConstraint("company_id", "id", name="staff_of_company"))


def ids(name: str) -> Sequence:
    """The sequence of one kind's ids, for all companies."""
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
    """The columns of a record that imports and people set, besides external_id. without: those that others own."""
    not_set = {"company_id", "id", "version", "updated_at", "external_id", "source", *without}
    return [column.name for column in table.c if column.name not in not_set and column.computed is None]
