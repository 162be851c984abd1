"""The database `tickets`: its metadata, the tables that every service has, and the replicas."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import BigInteger, Boolean, CheckConstraint, Column, ForeignKey, MetaData, Text, text

from chassis.changes.tables import add_change_tables
from chassis.imports.tables import import_table
from chassis.messaging.consumer import inbox_table
from chassis.messaging.outbox import outbox_table
from chassis.replicas.tables import company_replica, replica_table
from chassis.reports.tables import add_report_tables
from chassis.writes.audit import audit_table
from chassis.writes.idempotency import ledger

metadata = MetaData()

# The list filters that name a record's place. A unit never moves to another property.
PLACES = ("property_id", "unit_id")

idempotency = ledger(metadata)
audit = audit_table(metadata)
outbox = outbox_table(metadata)
inbox = inbox_table(metadata)
changes_to_touch, changes_epoch = add_change_tables(metadata)
import_batch = import_table(metadata)
reports = add_report_tables(metadata)


def one_of(table: str, column: str, values: Iterable[str]) -> CheckConstraint:
    """A constraint: the column has one of these values, or is null."""
    listed = ", ".join("'" + value.replace("'", "''") + "'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=f"{table}_{column}")


# Replicas: rows of other contexts, by their own ids. Version 0 marks a placeholder for a row that has not arrived yet.

company = company_replica(metadata)
property_ = replica_table(metadata, "property")
unit = replica_table(
    metadata,
    "unit",
    Column("property_id", BigInteger, ForeignKey("property.id"), nullable=False),
    Column("unit_number", Text),
)
asset = replica_table(metadata, "asset", Column("property_id", BigInteger, ForeignKey("property.id"), nullable=False))
vendor = replica_table(metadata, "vendor", Column("on_hold", Boolean, nullable=False, server_default=text("false")))
staff = replica_table(metadata, "staff")
