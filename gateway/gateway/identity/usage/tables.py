"""The tables of the usage of API keys. The rows name keys without a foreign key, which would lock the keys' rows."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, DateTime, Index, Table, Text, Uuid, text

from chassis.db.belonging import through, to_no_company
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
    info=through("api_key_id", "api_key.id"),
)

# What each gateway process has stored: a part that is sent again, because its answer was lost, is stored once.
usage_writer = Table(
    "usage_writer",
    metadata,
    Column("id", Uuid, primary_key=True),
    # The number of the last part.
    Column("part", BigInteger, nullable=False),
    instant("written_at"),
    info=to_no_company("ids of processes"),
)
