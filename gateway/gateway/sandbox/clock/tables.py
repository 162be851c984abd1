"""The table of advances. A sandbox has a row from its first advance on, which is about the last one."""

from __future__ import annotations

from sqlalchemy import BigInteger, CheckConstraint, Column, DateTime, ForeignKey, Index, Table, Text, Uuid, text
from sqlalchemy.dialects.postgresql import JSONB

from gateway.identity.schema import instant, metadata

advance = Table(
    "advance",
    metadata,
    Column(
        "company_id",
        BigInteger,
        ForeignKey("company.id", name="advance_company"),
        primary_key=True,
        autoincrement=False,
    ),
    # By the company's clock.
    Column("start_at", DateTime(timezone=True), nullable=False),
    Column("target_at", DateTime(timezone=True), nullable=False),
    # Counts by event and by kind of change.
    Column("done", JSONB, nullable=False, server_default=text("'{}'")),
    # The real clock, here and below.
    instant("begun_at"),
    Column("finished_at", DateTime(timezone=True)),
    # Until then, the process that has the token carries it out.
    Column("lease_token", Uuid),
    Column("leased_until", DateTime(timezone=True), nullable=False, server_default=text("'-infinity'")),
    # A service that does not answer, and since when.
    Column("missing", Text),
    Column("missing_since", DateTime(timezone=True)),
    CheckConstraint("target_at >= start_at", name="advance_forward"),
    CheckConstraint("(missing IS NULL) = (missing_since IS NULL)", name="advance_missing"),
)
Index("advance_unfinished", advance.c.begun_at, postgresql_where=advance.c.finished_at.is_(None))
