"""The table of inspection templates."""

from __future__ import annotations

import datetime

import msgspec
from sqlalchemy import Boolean, CheckConstraint, Column, Index, Table, Text, func, text
from sqlalchemy.dialects.postgresql import ARRAY

from svc_catalog.schema import company_key, id_of, ids, instant, metadata, version

inspection_template_id = ids("inspection_template_id")

inspection_template = Table(
    "inspection_template",
    metadata,
    company_key(),
    id_of(inspection_template_id),
    version(),
    Column("name", Text, nullable=False),
    Column("inspection_type", Text),
    # Inspections of the type have its rows when none are given.
    Column("is_default", Boolean, nullable=False),
    # The labels, in their order.
    Column("rows", ARRAY(Text), nullable=False),
    instant("created_at"),
    instant("updated_at"),
    CheckConstraint("NOT is_default OR inspection_type IS NOT NULL", name="inspection_template_default_of_a_type"),
)
NAMED, DEFAULT = "inspection_template_named", "inspection_template_default"
Index(NAMED, inspection_template.c.company_id, func.lower(inspection_template.c.name), unique=True)
Index(
    DEFAULT,
    inspection_template.c.company_id,
    func.lower(inspection_template.c.inspection_type),
    unique=True,
    postgresql_where=text("is_default"),
)


class StoredTemplate(msgspec.Struct, frozen=True, gc=False):
    """A row of `inspection_template`."""

    company_id: int
    id: int
    version: int
    name: str
    inspection_type: str | None
    is_default: bool
    rows: list[str]
    created_at: datetime.datetime
    updated_at: datetime.datetime
