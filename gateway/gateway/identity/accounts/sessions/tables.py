"""The table of sessions."""

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

# A session. One that a person ends is deleted at once, one that is over by its age or idleness, or that newer ones
# displaced, a week later. `rules.was_displaced` tells from its instants why it ended.
session = Table(
    "session",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("account_id", BigInteger, ForeignKey("account.id", ondelete="CASCADE"), nullable=False),
    # SHA-256 of the text that the browser holds.
    Column("digest", LargeBinary, nullable=False),
    instant("started_at"),
    instant("last_seen_at"),
    instant("stepped_up_at"),
    Column("ends_at", DateTime(timezone=True), nullable=False),
    Column("method", Text, nullable=False),
    Column("address", Text, nullable=False),
    Column("user_agent", Text, nullable=False),
    UniqueConstraint("digest", name="session_digest"),
    CheckConstraint(
        "method IN ('password', 'password and code', 'passkey', 'link', 'link and code')", name="session_method"
    ),
)
Index("session_of_account", session.c.account_id, session.c.id)
Index("session_ends", session.c.ends_at)
