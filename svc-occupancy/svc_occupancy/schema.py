"""Shared by all aggregates: the MetaData, the platform's tables, and the replicas of other contexts' rows."""

from __future__ import annotations

import datetime
from collections.abc import Iterable

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    MetaData,
    Text,
    literal_column,
    text,
)
from sqlalchemy.sql.elements import ColumnElement

from chassis.changes.tables import add_change_tables
from chassis.imports.tables import import_table
from chassis.messaging.consumer import inbox_table
from chassis.messaging.outbox import outbox_table
from chassis.replicas.tables import company_replica, replica_table
from chassis.reports.tables import add_report_tables
from chassis.writes.audit import audit_table
from chassis.writes.idempotency import ledger

metadata = MetaData()

# Lists by date have rows without a date last: in the keys of their indexes such a row has this date.
NO_DATE: ColumnElement[datetime.date] = literal_column("'infinity'::date")

outbox = outbox_table(metadata)
inbox = inbox_table(metadata)
idempotency = ledger(metadata)
audit = audit_table(metadata)
changes_to_touch, changes_epoch = add_change_tables(metadata)
import_batch = import_table(metadata)
reports = add_report_tables(metadata)


def one_of(table: str, column: str, values: Iterable[str]) -> CheckConstraint:
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=f"{table}_{column}")


def at_most(table: str, **points: int) -> list[CheckConstraint]:
    """CHECK constraints: the maximum length of texts in code points."""
    return [
        CheckConstraint(f"char_length({column}) <= {most}", name=f"{table}_{column}") for column, most in points.items()
    ]


# Replicas: rows of other contexts, with their owners' ids. Version 0 marks a row that has not arrived yet: a unit may
# arrive before its property. No row refers to a company's row, so the company may arrive last.

company = company_replica(metadata)


property_ = replica_table(metadata, "property")
unit = replica_table(
    metadata,
    "unit",
    Column("property_id", BigInteger, ForeignKey("property.id"), nullable=False),
    Column("unit_number", Text),
    # The name of its floorplan.
    Column("floorplan", Text),
)
vendor = replica_table(metadata, "vendor", Column("on_hold", Boolean, nullable=False, server_default=text("false")))
staff = replica_table(metadata, "staff")
# The turn board pages through a company's units, or a property's.
Index("unit_page", unit.c.company_id, unit.c.id)
Index("unit_page_of_property", unit.c.company_id, unit.c.property_id, unit.c.id)
