"""The table of API keys."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    Identity,
    Index,
    LargeBinary,
    Table,
    Text,
    UniqueConstraint,
)

from gateway.identity.schema import instant, metadata

api_key = Table(
    "api_key",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("company_id", BigInteger, ForeignKey("company.id"), nullable=False),
    # Of the company, or of the live company whose sandbox it is. Null: no administrator is on record as its minter.
    Column("administrator_id", BigInteger, ForeignKey("administrator.id", name="api_key_administrator")),
    Column("name", Text, nullable=False),
    Column("prefix", Text, nullable=False),
    # SHA-256 of the key; the key itself is returned once and never stored.
    Column("digest", LargeBinary, nullable=False),
    Column("scope", Text, nullable=False),
    instant("created_at"),
    Column("revoked_at", DateTime(timezone=True)),
    # From then on the key is refused as revoked.
    Column("expires_at", DateTime(timezone=True)),
    # The key in whose place a rotation made this one.
    Column("replaces", BigInteger, ForeignKey("api_key.id", name="api_key_replaces_a_key")),
    UniqueConstraint("digest", name="api_key_digest"),
    CheckConstraint("scope IN ('read', 'write', 'webhook_only')", name="api_key_scope"),
    CheckConstraint("octet_length(digest) = 32", name="api_key_digest_length"),
)
Index("api_key_of_company", api_key.c.company_id, api_key.c.id)
Index(
    "api_key_not_revoked",
    api_key.c.company_id,
    api_key.c.id,
    postgresql_where=api_key.c.revoked_at.is_(None),
)
# A key is rotated once.
Index("api_key_replaces", api_key.c.replaces, unique=True, postgresql_where=api_key.c.replaces.is_not(None))
