"""The table of administrators."""

from __future__ import annotations

from sqlalchemy import BigInteger, CheckConstraint, Column, ForeignKey, Identity, Table, Text, UniqueConstraint

from gateway.identity.schema import instant, metadata

administrator = Table(
    "administrator",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("company_id", BigInteger, ForeignKey("company.id"), nullable=False),
    Column("email", Text, nullable=False),
    Column("name", Text, nullable=False),
    # Null: the administrator can't sign in until a password is set.
    Column("password", Text),
    instant("created_at"),
    UniqueConstraint("email", name="administrator_email"),
    UniqueConstraint("company_id", "id", name="administrator_of_company"),
    CheckConstraint("email = lower(email)", name="administrator_email_lower_case"),
)
