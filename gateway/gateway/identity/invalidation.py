"""Notifies every gateway, when a transaction commits, that a key which it caches is out of date."""

from __future__ import annotations

from sqlalchemy import Text, bindparam, func, select

from chassis.db.database import Connection
from chassis.db.statements import Statement

# The channel of PostgreSQL's NOTIFY. The payload is "key ID" or "company ID".
CHANNEL = "identity"

_NOTIFY = Statement(select(func.pg_notify(CHANNEL, bindparam("payload", type_=Text))))


async def notify(connection: Connection, payload: str) -> None:
    """Reaches every gateway when, and only when, the transaction commits."""
    await connection.execute(_NOTIFY, payload=payload)
