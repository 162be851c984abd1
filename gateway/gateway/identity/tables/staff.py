"""The table of members of staff."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Sequence,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from gateway.identity.rules import NAME_POINTS_MAX
from gateway.identity.schema import instant, metadata

staff_id = Sequence("staff_id", metadata=metadata, data_type=BigInteger)

# Members of a company's staff, to whom tickets and inspections are assigned. Those with an account sign in.
staff = Table(
    "staff",
    metadata,
    # company_id is the first column, as in every table that a list or an import reads.
    Column("company_id", BigInteger, ForeignKey("company.id"), primary_key=True, autoincrement=False),
    Column("id", BigInteger, primary_key=True, autoincrement=False, server_default=text("nextval('staff_id')")),
    Column("version", BigInteger, nullable=False, server_default=text("1")),
    Column("name", Text, nullable=False),
    Column("email", Text),
    Column("title", Text),
    Column("external_id", Text),
    Column("active", Boolean, nullable=False, server_default=text("true")),
    instant("created_at"),
    Column("source", Text, nullable=False),
    UniqueConstraint("company_id", "external_id", name="staff_external_id"),
    CheckConstraint(f"char_length(name) BETWEEN 1 AND {NAME_POINTS_MAX}", name="staff_name"),
    CheckConstraint("email = lower(email)", name="staff_email_lower_case"),
    CheckConstraint("source IN ('staff', 'import')", name="staff_source"),
)
