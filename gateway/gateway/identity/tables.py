"""The tables of the database `gateway`: companies, administrators, staff, API keys, what operators did."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    ForeignKeyConstraint,
    Identity,
    Index,
    LargeBinary,
    MetaData,
    Sequence,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from chassis.messaging.outbox import outbox_table
from chassis.writes.audit import audit_table
from chassis.writes.idempotency import ledger
from gateway.identity import rules

metadata = MetaData()

outbox = outbox_table(metadata)
idempotency = ledger(metadata)
audit = audit_table(metadata)

_NOW = text("clock_timestamp()")


def _instant(name: str) -> Column[object]:
    return Column(name, DateTime(timezone=True), nullable=False, server_default=_NOW)


company = Table(
    "company",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    # Replicas in the other contexts take a row when its version is higher than theirs.
    Column("version", BigInteger, nullable=False, server_default=text("1")),
    Column("name", Text, nullable=False),
    Column("active", Boolean, nullable=False, server_default=text("true")),
    Column("timezone", Text, nullable=False),
    _instant("created_at"),
    _instant("updated_at"),
    CheckConstraint(f"char_length(name) BETWEEN 1 AND {rules.NAME_POINTS_MAX}", name="company_name"),
)

administrator = Table(
    "administrator",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("company_id", BigInteger, ForeignKey("company.id"), nullable=False),
    Column("email", Text, nullable=False),
    Column("name", Text, nullable=False),
    # Null: can't sign in until one is set.
    Column("password", Text),
    _instant("created_at"),
    UniqueConstraint("email", name="administrator_email"),
    UniqueConstraint("company_id", "id", name="administrator_of_company"),
    CheckConstraint("email = lower(email)", name="administrator_email_lower_case"),
)

staff_id = Sequence("staff_id", metadata=metadata, data_type=BigInteger)

# Members of a company's staff, to whom tickets and inspections are assigned. They don't sign in with this.
staff = Table(
    "staff",
    metadata,
    # The company comes first, as in every table that a list or an import reads.
    Column("company_id", BigInteger, ForeignKey("company.id"), primary_key=True, autoincrement=False),
    Column("id", BigInteger, primary_key=True, autoincrement=False, server_default=text("nextval('staff_id')")),
    Column("version", BigInteger, nullable=False, server_default=text("1")),
    Column("name", Text, nullable=False),
    Column("email", Text),
    Column("title", Text),
    Column("external_id", Text),
    _instant("created_at"),
    Column("source", Text, nullable=False),
    UniqueConstraint("company_id", "external_id", name="staff_external_id"),
    CheckConstraint(f"char_length(name) BETWEEN 1 AND {rules.NAME_POINTS_MAX}", name="staff_name"),
    CheckConstraint("email = lower(email)", name="staff_email_lower_case"),
    CheckConstraint("source IN ('staff', 'import')", name="staff_source"),
)

api_key = Table(
    "api_key",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("company_id", BigInteger, ForeignKey("company.id"), nullable=False),
    # Null: no minting administrator on record.
    Column("administrator_id", BigInteger),
    Column("name", Text, nullable=False),
    Column("prefix", Text, nullable=False),
    # SHA-256 of the key; the key itself is told once and never stored.
    Column("digest", LargeBinary, nullable=False),
    Column("scope", Text, nullable=False),
    _instant("created_at"),
    Column("revoked_at", DateTime(timezone=True)),
    UniqueConstraint("digest", name="api_key_digest"),
    ForeignKeyConstraint(
        ["company_id", "administrator_id"],
        ["administrator.company_id", "administrator.id"],
        name="api_key_administrator_of_the_same_company",
    ),
    CheckConstraint("scope IN ('read', 'write', 'webhook_only')", name="api_key_scope"),
    CheckConstraint("octet_length(digest) = 32", name="api_key_digest_length"),
)
Index("api_key_of_company", api_key.c.company_id, api_key.c.id)
