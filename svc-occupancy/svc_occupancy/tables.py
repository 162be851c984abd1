"""The tables of the database `occupancy`. Constraints make impossible what the rules forbid."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Date,
    DateTime,
    ForeignKey,
    Index,
    MetaData,
    Sequence,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from chassis.consumer import inbox_table
from chassis.outbox import outbox_table
from chassis.paging import page_indexes
from chassis.replicas import company_replica, replica_table
from svc_occupancy import rules

metadata = MetaData()

outbox = outbox_table(metadata)
inbox = inbox_table(metadata)


def _one_of(table: str, column: str, values: Iterable[str]) -> CheckConstraint:
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=f"{table}_{column}")


# Replicas: rows of other contexts by their own ids. Version 0 stands for a row that has not arrived yet: a unit may
# arrive before its property. Nothing refers to a company's row, so the company may arrive last of all.

company = company_replica(metadata)


property_ = replica_table(metadata, "property")
unit = replica_table(
    metadata,
    "unit",
    Column("property_id", BigInteger, ForeignKey("property.id"), nullable=False),
    Column("unit_number", Text),
)

# What this context owns.

transition_id = Sequence("transition_id", metadata=metadata, data_type=BigInteger)

# The API's turns, one row a residency (spec 2.10).
transition = Table(
    "transition",
    metadata,
    # The key begins with the company: by an index of the ids alone, a planner that knows few companies would page
    # through everybody's turns to find one company's.
    Column("company_id", BigInteger, primary_key=True, autoincrement=False),
    Column(
        "id", BigInteger, primary_key=True, autoincrement=False, server_default=text(f"nextval('{transition_id.name}')")
    ),
    Column("version", BigInteger, nullable=False, server_default=text("1")),
    Column("property_id", BigInteger, ForeignKey("property.id"), nullable=False),
    Column("unit_id", BigInteger, ForeignKey("unit.id"), nullable=False),
    # active -> completed, when the next resident moves in; active -> cancelled
    Column("status", Text, nullable=False),
    Column("move_out_date", Date),
    Column("move_in_date", Date),
    Column("projected_ready_on", Date),
    Column("occupancy_source", Text),
    Column("occupancy_fed_at", DateTime(timezone=True)),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("updated_at", DateTime(timezone=True), nullable=False),
    # The turn's own: by it a file finds the turn again.
    Column("external_id", Text),
    Column("source", Text, nullable=False),
    UniqueConstraint("company_id", "external_id", name="transition_external_id"),
    _one_of("transition", "status", rules.TRANSITION_STATUSES),
    _one_of("transition", "source", rules.SOURCES),
    CheckConstraint("projected_ready_on IS NULL OR move_out_date IS NOT NULL", name="transition_ready_after_move_out"),
    CheckConstraint("occupancy_fed_at IS NULL OR occupancy_source IS NOT NULL", name="transition_fed_by_somebody"),
    CheckConstraint(
        f"char_length(occupancy_source) BETWEEN 1 AND {rules.PROVIDER_POINTS_MAX}", name="transition_occupancy_source"
    ),
    CheckConstraint("updated_at >= created_at", name="transition_updated_after_created"),
)
page_indexes(transition)
Index(
    "transition_active_in_unit",
    transition.c.company_id,
    transition.c.unit_id,
    unique=True,
    postgresql_where=text("status = 'active'"),
)

# What svc-catalog serves of a unit; a unit that never had a turn has no row. The version tells svc-catalog which of
# two is the newer.
unit_state = Table(
    "unit_state",
    metadata,
    Column("company_id", BigInteger, primary_key=True, autoincrement=False),
    Column("unit_id", BigInteger, ForeignKey("unit.id"), primary_key=True, autoincrement=False),
    Column("version", BigInteger, nullable=False),
    Column("unit_status", Text, nullable=False),
    # Of the unit's active turn.
    Column("projected_ready_on", Date),
    _one_of("unit_state", "unit_status", rules.UNIT_STATUSES),
)
