"""The tables of unit states and of the changes of units' status."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Date, DateTime, ForeignKey, Index, Table, Text, func, literal_column
from sqlalchemy.sql.elements import ColumnElement

from svc_occupancy.schema import NO_DATE, metadata, one_of
from svc_occupancy.units import rules

# The unit fields that svc-catalog serves. A unit has no row until it has a turn or staff set its status. svc-catalog
# stores the highest version.
unit_state = Table(
    "unit_state",
    metadata,
    Column("company_id", BigInteger, primary_key=True, autoincrement=False),
    Column("unit_id", BigInteger, ForeignKey("unit.id"), primary_key=True, autoincrement=False),
    Column("version", BigInteger, nullable=False),
    # Null again when the import of the unit's only turns is undone.
    Column("unit_status", Text),
    # The active turn's date.
    Column("projected_ready_on", Date),
    # The unit's. Null in rows that the release before wrote, until the sweep fills it.
    Column("property_id", BigInteger),
    one_of("unit_state", "unit_status", rules.UNIT_STATUSES),
)
# The board lists units by their ready date; those without one come last.
ready_key: ColumnElement[object] = func.coalesce(unit_state.c.projected_ready_on, NO_DATE)
# Of the units on their way to ready alone, so that a move-in adds no entry.
is_under_way: ColumnElement[bool] = unit_state.c.unit_status != literal_column("'Occupied'")
Index(
    "unit_state_board",
    unit_state.c.company_id,
    unit_state.c.unit_status,
    ready_key,
    unit_state.c.unit_id,
    postgresql_where=is_under_way,
)
Index(
    "unit_state_board_of_property",
    unit_state.c.company_id,
    unit_state.c.property_id,
    unit_state.c.unit_status,
    ready_key,
    unit_state.c.unit_id,
    postgresql_where=is_under_way,
)
Index("unit_state_unplaced", unit_state.c.unit_id, postgresql_where=unit_state.c.property_id.is_(None))

# Every change of a unit's status, written in the transaction of the change. Changes from before the table are unknown.
unit_status_change = Table(
    "unit_status_change",
    metadata,
    Column("company_id", BigInteger, primary_key=True, autoincrement=False),
    Column("unit_id", BigInteger, primary_key=True, autoincrement=False),
    # The version of the unit's state that has the new status: it ascends with a unit's changes.
    Column("version", BigInteger, primary_key=True, autoincrement=False),
    Column("changed_at", DateTime(timezone=True), nullable=False),
    # Null for the unit's first status.
    Column("from_status", Text),
    Column("to_status", Text, nullable=False),
    Column("cause", Text, nullable=False),
    # As the audit log spells it.
    Column("actor", Text, nullable=False),
    # The unit's active turn after the change.
    Column("turn_id", BigInteger),
    one_of("unit_status_change", "from_status", rules.UNIT_STATUSES),
    one_of("unit_status_change", "to_status", rules.UNIT_STATUSES),
    one_of("unit_status_change", "cause", rules.STATUS_CAUSES),
)
