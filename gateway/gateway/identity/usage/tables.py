"""The tables of the usage of API keys. The rows name keys without a foreign key, which would lock the keys' rows."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, DateTime, Identity, Index, Integer, Table, Text, Uuid, text

from gateway.identity.schema import instant, metadata

OUTCOMES = ("succeeded", "refused", "rate_limited", "failed")

key_usage = Table(
    "key_usage",
    metadata,
    Column("api_key_id", BigInteger, primary_key=True, autoincrement=False),
    # The start of the hour.
    Column("hour", DateTime(timezone=True), primary_key=True),
    Column("company_id", BigInteger, nullable=False),
    *(Column(name, BigInteger, nullable=False, server_default=text("0")) for name in OUTCOMES),
)
Index("key_usage_of_company", key_usage.c.company_id, key_usage.c.hour)
Index("key_usage_hour", key_usage.c.hour)

key_last_use = Table(
    "key_last_use",
    metadata,
    Column("api_key_id", BigInteger, primary_key=True, autoincrement=False),
    Column("used_at", DateTime(timezone=True), nullable=False),
    Column("address", Text, nullable=False),
    # Method and route.
    Column("used_for", Text, nullable=False),
)

refused_request = Table(
    "refused_request",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("company_id", BigInteger, nullable=False),
    Column("api_key_id", BigInteger, nullable=False),
    Column("requested_at", DateTime(timezone=True), nullable=False),
    Column("method", Text, nullable=False),
    Column("route", Text, nullable=False),
    Column("status", Integer, nullable=False),
    Column("code", Text, nullable=False),
    Column("request_id", Text, nullable=False),
)
_newest = (refused_request.c.requested_at, refused_request.c.id)
Index("refused_request_of_company", refused_request.c.company_id, *_newest)
Index("refused_request_of_key", refused_request.c.company_id, refused_request.c.api_key_id, *_newest)
Index("refused_request_requested_at", refused_request.c.requested_at)

# What each gateway process has stored: a part that is sent again, because its answer was lost, is stored once.
usage_writer = Table(
    "usage_writer",
    metadata,
    Column("id", Uuid, primary_key=True),
    # The number of the last part.
    Column("part", BigInteger, nullable=False),
    instant("written_at"),
)
