"""The tables of templates and of their tasks."""

from __future__ import annotations

import datetime

import msgspec
from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    Sequence,
    Table,
    Text,
    text,
)

from svc_occupancy.schema import at_most, metadata, property_, staff, vendor
from svc_occupancy.turn_tasks.rules import TASK_TYPE_POINTS_MAX
from svc_occupancy.turn_templates import rules

turn_template_id = Sequence("turn_template_id", metadata=metadata, data_type=BigInteger)
turn_template = Table(
    "turn_template",
    metadata,
    Column("company_id", BigInteger, primary_key=True, autoincrement=False),
    Column(
        "id",
        BigInteger,
        primary_key=True,
        autoincrement=False,
        server_default=text(f"nextval('{turn_template_id.name}')"),
    ),
    Column("version", BigInteger, nullable=False, server_default=text("1")),
    Column("name", Text, nullable=False),
    # It is offered for units of this property, and of the floorplan with this name; null: for all.
    Column("property_id", BigInteger, ForeignKey(property_.c.id)),
    Column("floorplan", Text),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("updated_at", DateTime(timezone=True), nullable=False),
    *at_most("turn_template", name=rules.NAME_POINTS_MAX, floorplan=rules.NAME_POINTS_MAX),
)
Index(
    "turn_template_named",
    turn_template.c.company_id,
    turn_template.c.name,
    turn_template.c.property_id,
    turn_template.c.floorplan,
    unique=True,
    postgresql_nulls_not_distinct=True,
)
turn_template_task = Table(
    "turn_template_task",
    metadata,
    Column("company_id", BigInteger, primary_key=True, autoincrement=False),
    Column("template_id", BigInteger, primary_key=True, autoincrement=False),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("task_type", Text, nullable=False),
    Column("days_after_move_out", Integer),
    Column("assignee_id", BigInteger, ForeignKey(staff.c.id)),
    Column("vendor_id", BigInteger, ForeignKey(vendor.c.id)),
    ForeignKeyConstraint(
        ["company_id", "template_id"], ["turn_template.company_id", "turn_template.id"], ondelete="CASCADE"
    ),
    *at_most("turn_template_task", task_type=TASK_TYPE_POINTS_MAX),
)


class StoredTemplate(msgspec.Struct, frozen=True, gc=False):
    """A row of `turn_template`: the columns in their order."""

    company_id: int
    id: int
    version: int
    name: str
    property_id: int | None
    floorplan: str | None
    created_at: datetime.datetime
    updated_at: datetime.datetime


class StoredTemplateTask(msgspec.Struct, frozen=True, gc=False):
    """A row of `turn_template_task`: the columns in their order."""

    company_id: int
    template_id: int
    position: int
    task_type: str
    days_after_move_out: int | None
    assignee_id: int | None
    vendor_id: int | None
