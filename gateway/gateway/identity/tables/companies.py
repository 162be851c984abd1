"""The table of companies."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    Identity,
    Index,
    Interval,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from chassis.db.belonging import to_no_company
from chassis.schedule.clocks import OFFSET_MAX
from gateway.identity.rules import NAME_POINTS_MAX
from gateway.identity.schema import instant, metadata

company = Table(
    "company",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    # Replicas in the other contexts accept a row if its version is higher than theirs.
    Column("version", BigInteger, nullable=False, server_default=text("1")),
    Column("name", Text, nullable=False),
    Column("active", Boolean, nullable=False, server_default=text("true")),
    Column("timezone", Text, nullable=False),
    # Whether administrators must have one.
    Column("second_factor_required", Boolean, nullable=False, server_default=text("false")),
    # By which a file of companies finds them again.
    Column("external_id", Text),
    Column("is_sandbox", Boolean, nullable=False, server_default=text("false")),
    # The live company whose administrators administer the sandbox.
    Column("sandbox_of", BigInteger, ForeignKey("company.id", name="company_sandbox_of")),
    # How far the company's clock is ahead of the real one. It only grows.
    Column("clock_offset", Interval, nullable=False, server_default=text("'0'")),
    # The row of a company that was ended stays for good: it tells late events and replicas that nothing of it is kept.
    Column("ended_at", DateTime(timezone=True)),
    # What a sandbox starts with, and when it had all of that.
    Column("content", Text, nullable=False, server_default=text("'empty'")),
    Column("filled_at", DateTime(timezone=True)),
    # When the console last said that it keeps nothing of it, and when nothing was left in any database.
    Column("console_purged_at", DateTime(timezone=True)),
    Column("purged_at", DateTime(timezone=True)),
    instant("created_at"),
    instant("updated_at"),
    UniqueConstraint("external_id", name="company_external_id"),
    CheckConstraint(f"char_length(name) BETWEEN 1 AND {NAME_POINTS_MAX}", name="company_name"),
    CheckConstraint("is_sandbox OR sandbox_of IS NULL AND ended_at IS NULL", name="company_live"),
    CheckConstraint(
        "content = 'empty' OR content = 'copy' AND sandbox_of IS NOT NULL OR content = 'demo' AND is_sandbox",
        name="company_content",
    ),
    CheckConstraint("ended_at IS NULL OR NOT active", name="company_ended"),
    CheckConstraint("num_nonnulls(console_purged_at, purged_at) = 0 OR ended_at IS NOT NULL", name="company_purged"),
    CheckConstraint(
        "clock_offset BETWEEN '0' AND"
        f" CASE WHEN is_sandbox THEN interval '{OFFSET_MAX.days} days' ELSE interval '0' END",
        name="company_clock_offset",
    ),
    info=to_no_company("the row of a company that has ended says so"),
)
Index("company_sandboxes", company.c.sandbox_of, company.c.id, postgresql_where=company.c.sandbox_of.is_not(None))
Index("company_to_fill", company.c.id, postgresql_where=text("content <> 'empty' AND filled_at IS NULL"))
Index("company_ended_sandboxes", company.c.id, postgresql_where=company.c.ended_at.is_not(None))
