"""The table of preventive-maintenance tasks."""

from __future__ import annotations

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
    UniqueConstraint,
    text,
)

from svc_tickets.maintenance import rules
from svc_tickets.schema import metadata, one_of

pm_task_id = Sequence("pm_task_id", metadata=metadata, data_type=BigInteger)

# A task that repeats has its successor as a row of its own.
pm_task = Table(
    "pm_task",
    metadata,
    Column("company_id", BigInteger, primary_key=True, autoincrement=False),
    Column("id", BigInteger, primary_key=True, autoincrement=False, server_default=text("nextval('pm_task_id')")),
    Column("version", BigInteger, nullable=False, server_default=text("1")),
    Column("task_name", Text, nullable=False),
    Column("status", Text, nullable=False, server_default=text("'Open'")),
    Column("property_id", BigInteger, ForeignKey("property.id"), nullable=False),
    Column("unit_id", BigInteger, ForeignKey("unit.id")),
    Column("area", Text),
    Column("asset_id", BigInteger, ForeignKey("asset.id")),
    Column("due_date", Date, nullable=False),
    Column("repeat_days", Integer),
    Column("repeat_months", Integer),
    # The day on which a monthly task is due, in months that have such a day.
    Column("day_of_month", Integer),
    Column("previous_id", BigInteger),
    Column("completed_at", DateTime(timezone=True)),
    Column("cancelled_at", DateTime(timezone=True)),
    # When the task was announced as overdue. That happens once, even if its due date changes later.
    Column("stale_at", DateTime(timezone=True)),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("updated_at", DateTime(timezone=True), nullable=False),
    Column("external_id", Text),
    Column("source", Text, nullable=False),
    Column("assignee_id", BigInteger, ForeignKey("staff.id")),
    UniqueConstraint("company_id", "external_id", name="pm_task_external_id"),
    UniqueConstraint("company_id", "previous_id", name="pm_task_previous"),
    ForeignKeyConstraint(["company_id", "previous_id"], ["pm_task.company_id", "pm_task.id"], name="pm_task_after"),
    one_of("pm_task", "status", rules.PM_STATUSES),
    one_of("pm_task", "source", rules.PM_SOURCES),
    CheckConstraint("unit_id IS NULL OR area IS NULL", name="pm_task_place"),
    CheckConstraint("repeat_days IS NULL OR repeat_months IS NULL", name="pm_task_repeat"),
    CheckConstraint("(repeat_months IS NULL) = (day_of_month IS NULL)", name="pm_task_day_of_month"),
    CheckConstraint("(status = 'Completed') = (completed_at IS NOT NULL)", name="pm_task_completed_at"),
    CheckConstraint("(status = 'Cancelled') = (cancelled_at IS NOT NULL)", name="pm_task_cancelled_at"),
    CheckConstraint("updated_at >= created_at", name="pm_task_updated_after_created"),
)
_open = text("status = 'Open'")
Index("pm_task_open", pm_task.c.company_id, pm_task.c.id, postgresql_where=_open)
Index("pm_task_of_property", pm_task.c.company_id, pm_task.c.property_id, pm_task.c.id)
Index(
    "pm_task_due",
    pm_task.c.company_id,
    pm_task.c.due_date,
    postgresql_where=text("status = 'Open' AND stale_at IS NULL"),
)
# The lists in the order of due dates: of the company, its open tasks, and those of one place.
Index("pm_task_by_due", pm_task.c.company_id, pm_task.c.due_date, pm_task.c.id)
Index("pm_task_open_by_due", pm_task.c.company_id, pm_task.c.due_date, pm_task.c.id, postgresql_where=_open)
for _place in ("property_id", "unit_id", "asset_id"):
    _name = f"pm_task_of_{_place.removesuffix('_id')}_by_due"
    Index(_name, pm_task.c.company_id, pm_task.c[_place], pm_task.c.due_date, pm_task.c.id)
Index(
    "pm_task_open_of_assignee",
    pm_task.c.company_id,
    pm_task.c.assignee_id,
    pm_task.c.due_date,
    pm_task.c.id,
    postgresql_where=text("status = 'Open' AND assignee_id IS NOT NULL"),
)
