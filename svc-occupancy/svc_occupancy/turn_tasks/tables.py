"""The table of make-ready tasks, its rows, and the indexes of their lists and sweeps."""

from __future__ import annotations

import datetime

import msgspec
from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Date,
    DateTime,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    Sequence,
    Table,
    Text,
    and_,
    func,
    literal_column,
    text,
)
from sqlalchemy.sql.elements import ColumnElement

from svc_occupancy.schema import NO_DATE, at_most, metadata, one_of, staff, vendor
from svc_occupancy.turn_tasks import rules

# The work that makes a unit ready.
turn_task_id = Sequence("turn_task_id", metadata=metadata, data_type=BigInteger)
turn_task = Table(
    "turn_task",
    metadata,
    Column("company_id", BigInteger, primary_key=True, autoincrement=False),
    Column(
        "id", BigInteger, primary_key=True, autoincrement=False, server_default=text(f"nextval('{turn_task_id.name}')")
    ),
    Column("version", BigInteger, nullable=False, server_default=text("1")),
    Column("transition_id", BigInteger, nullable=False),
    # The transition's unit.
    Column("unit_id", BigInteger, nullable=False),
    Column("task_type", Text, nullable=False),
    # open -> completed; open -> cancelled
    Column("status", Text, nullable=False),
    Column("scheduled_date", Date),
    Column("completed_at", DateTime(timezone=True)),
    Column("cancelled_at", DateTime(timezone=True)),
    # When turn.task.stale fired, or an import without events counted it as fired. It fires once.
    Column("stale_at", DateTime(timezone=True)),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("updated_at", DateTime(timezone=True), nullable=False),
    Column("external_id", Text),
    Column("source", Text, nullable=False),
    # The unit's. Null in rows that the release before wrote, until the sweep fills it.
    Column("property_id", BigInteger),
    Column("assignee_id", BigInteger, ForeignKey(staff.c.id)),
    Column("vendor_id", BigInteger, ForeignKey(vendor.c.id)),
    # Its place among the open tasks of its turn, if a person has put them in order; else they go by their dates.
    Column("position", Integer),
    ForeignKeyConstraint(["company_id", "transition_id"], ["transition.company_id", "transition.id"]),
    one_of("turn_task", "status", rules.TASK_STATUSES),
    one_of("turn_task", "source", rules.TASK_SOURCES),
    CheckConstraint("(status = 'completed') = (completed_at IS NOT NULL)", name="turn_task_completed_at"),
    CheckConstraint("(status = 'cancelled') = (cancelled_at IS NOT NULL)", name="turn_task_cancelled_at"),
    CheckConstraint("updated_at >= created_at", name="turn_task_updated_after_created"),
    *at_most("turn_task", task_type=rules.TASK_TYPE_POINTS_MAX),
)


class StoredTask(msgspec.Struct, frozen=True, gc=False):
    """A row of `turn_task`: the columns in their order."""

    company_id: int
    id: int
    version: int
    transition_id: int
    unit_id: int
    task_type: str
    status: rules.TaskStatus
    scheduled_date: datetime.date | None
    completed_at: datetime.datetime | None
    cancelled_at: datetime.datetime | None
    stale_at: datetime.datetime | None
    created_at: datetime.datetime
    updated_at: datetime.datetime
    external_id: str | None
    source: rules.TaskSource
    property_id: int | None
    assignee_id: int | None
    vendor_id: int | None
    position: int | None


Index("turn_task_external_id", turn_task.c.company_id, turn_task.c.external_id, unique=True)
Index("turn_task_of_transition", turn_task.c.company_id, turn_task.c.transition_id, turn_task.c.id)
_open: ColumnElement[bool] = turn_task.c.status == literal_column("'open'")
Index("turn_task_open_in_unit", turn_task.c.company_id, turn_task.c.unit_id, turn_task.c.id, postgresql_where=_open)
# The list of open tasks has the early ones first, those without a date last.
date_key: ColumnElement[datetime.date] = func.coalesce(turn_task.c.scheduled_date, NO_DATE)
Index("turn_task_open", turn_task.c.company_id, date_key, turn_task.c.id, postgresql_where=_open)
Index(
    "turn_task_open_in_property",
    turn_task.c.company_id,
    turn_task.c.property_id,
    date_key,
    turn_task.c.id,
    postgresql_where=_open,
)
# Of one turn or unit: those that a person has put in order come first. See `rules.place`.
open_order = (turn_task.c.position, turn_task.c.scheduled_date, turn_task.c.id)
for _name, _lead, _more in (
    ("of_assignee", [turn_task.c.assignee_id], turn_task.c.assignee_id.is_not(None)),
    ("of_vendor", [turn_task.c.vendor_id], turn_task.c.vendor_id.is_not(None)),
    ("unassigned", [], and_(turn_task.c.assignee_id.is_(None), turn_task.c.vendor_id.is_(None))),
):
    Index(
        f"turn_task_open_{_name}",
        turn_task.c.company_id,
        *_lead,
        date_key,
        turn_task.c.id,
        postgresql_where=and_(_open, _more),
    )
Index("turn_task_unplaced", turn_task.c.id, postgresql_where=turn_task.c.property_id.is_(None))
# The sweep's index: only tasks that may become overdue.
Index(
    "turn_task_to_tell_of",
    turn_task.c.company_id,
    turn_task.c.scheduled_date,
    turn_task.c.id,
    postgresql_where=and_(_open, turn_task.c.stale_at.is_(None)),
)
