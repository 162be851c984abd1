"""The table of administrators."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Identity,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from gateway.identity.schema import instant, metadata

administrator = Table(
    "administrator",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("company_id", BigInteger, ForeignKey("company.id"), nullable=False),
    Column("email", Text, nullable=False),
    Column("name", Text, nullable=False),
    # Only release 0.2.0 writes a password here; the gateway moves it to the account when it starts.
    Column("password", Text),
    Column("active", Boolean, nullable=False, server_default=text("true")),
    instant("created_at"),
    UniqueConstraint("email", name="administrator_email"),
    UniqueConstraint("company_id", "id", name="administrator_of_company"),
    CheckConstraint("email = lower(email)", name="administrator_email_lower_case"),
)
