"""The SQL statements about the usage of API keys, named for what they return or do."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Sequence
from typing import NamedTuple

from asyncpg import Record
from sqlalchemy import (
    BigInteger,
    Column,
    Table,
    Uuid,
    any_,
    delete,
    func,
    literal_column,
    select,
    tuple_,
)
from sqlalchemy.dialects.postgresql import ARRAY

from chassis.db.database import Database
from chassis.db.statements import TIME, Statement, param, sql
from gateway.identity.usage import rules
from gateway.identity.usage.tables import OUTCOMES, key_last_use, key_usage, usage_writer


class HourOfKey(NamedTuple):
    """A row of key_usage."""

    api_key_id: int
    hour: datetime.datetime
    company_id: int
    succeeded: int
    refused: int
    rate_limited: int
    failed: int


class LastUse(NamedTuple):
    """A row of key_last_use."""

    api_key_id: int
    used_at: datetime.datetime
    address: str
    used_for: str


class Part(NamedTuple):
    """What one gateway process has counted; its number grows with each part."""

    writer: uuid.UUID
    number: int
    hours: list[HourOfKey]
    last_uses: list[LastUse]

    @property
    def requests(self) -> int:
        return sum(sum(hour[3:]) for hour in self.hours)


def _arrays(name: str, row: type[HourOfKey | LastUse], table: Table) -> dict[str, ARRAY[object]]:
    """The types of the parameters that bring rows: an array for each field."""
    return {f"{name}_{field}": ARRAY(table.c[field].type) for field in row._fields}


# Each list of rows travels as one array for each column. `is_new` is empty if the part is stored already.
_STORE = Statement(
    sql(
        """
WITH is_new AS (
    INSERT INTO usage_writer (id, part) VALUES (:writer, :number)
    ON CONFLICT (id) DO UPDATE SET part = excluded.part, written_at = clock_timestamp()
    WHERE usage_writer.part < excluded.part
    RETURNING id
), hours AS (
    INSERT INTO key_usage (api_key_id, hour, company_id, succeeded, refused, rate_limited, failed)
    SELECT api_key_id, hour, max(company_id), sum(succeeded), sum(refused), sum(rate_limited), sum(failed)
    FROM is_new, unnest(
        :hours_api_key_id, :hours_hour, :hours_company_id,
        :hours_succeeded, :hours_refused, :hours_rate_limited, :hours_failed
    ) AS counted (api_key_id, hour, company_id, succeeded, refused, rate_limited, failed)
    GROUP BY api_key_id, hour
    ON CONFLICT (api_key_id, hour) DO UPDATE SET
        succeeded = key_usage.succeeded + excluded.succeeded,
        refused = key_usage.refused + excluded.refused,
        rate_limited = key_usage.rate_limited + excluded.rate_limited,
        failed = key_usage.failed + excluded.failed
), uses AS (
    INSERT INTO key_last_use (api_key_id, used_at, address, used_for)
    SELECT DISTINCT ON (api_key_id) api_key_id, used_at, address, used_for
    FROM is_new, unnest(:uses_api_key_id, :uses_used_at, :uses_address, :uses_used_for)
        AS used (api_key_id, used_at, address, used_for)
    -- A key is deleted with its sandbox.
    WHERE EXISTS (SELECT FROM api_key WHERE api_key.id = used.api_key_id)
    ORDER BY api_key_id, used_at DESC
    ON CONFLICT (api_key_id) DO UPDATE SET
        used_at = excluded.used_at, address = excluded.address, used_for = excluded.used_for
    WHERE key_last_use.used_at < excluded.used_at
)
SELECT count(*) FROM is_new
""",
        writer=Uuid(),
        number=BigInteger(),
        **_arrays("hours", HourOfKey, key_usage),
        **_arrays("uses", LastUse, key_last_use),
    )
)


def _columns(name: str, fields: Sequence[str], rows: Sequence[Sequence[object]]) -> dict[str, list[object]]:
    """Rows as the parameters of `_arrays`."""
    columns = map(list, zip(*rows, strict=True)) if rows else ([] for _ in fields)
    return dict(zip((f"{name}_{field}" for field in fields), columns, strict=True))


async def store(database: Database, part: Part) -> None:
    """Adds the part, unless it is stored already: its sender may not know."""
    rows = _columns("hours", HourOfKey._fields, part.hours)
    rows |= _columns("uses", LastUse._fields, part.last_uses)
    await database.value(_STORE, writer=part.writer, number=part.number, **rows)


_company = param("company_id", BigInteger)
_in_hours = (key_usage.c.hour >= param("first", TIME), key_usage.c.hour < param("last", TIME))
_USAGE_OF_KEYS = Statement(
    select(key_usage.c.api_key_id, key_usage.c.hour, *(key_usage.c[name] for name in OUTCOMES))
    .where(
        key_usage.c.api_key_id == any_(param("key_ids", ARRAY(BigInteger))),
        *_in_hours,
        # A key of another company is not there; no index shall be chosen for it.
        (key_usage.c.company_id == _company).is_(literal_column("true")),
    )
    .order_by(key_usage.c.hour, key_usage.c.api_key_id)
)
_USAGE_OF_COMPANY = Statement(
    select(
        literal_column("0", BigInteger).label("api_key_id"),
        key_usage.c.hour,
        *(func.sum(key_usage.c[name]).cast(BigInteger).label(name) for name in OUTCOMES),
    )
    .where(key_usage.c.company_id == _company, *_in_hours)
    .group_by(key_usage.c.hour)
    .order_by(key_usage.c.hour)
)


async def usage(
    database: Database, company_id: int, key_ids: Sequence[int], first: datetime.datetime, last: datetime.datetime
) -> list[Record]:
    """Hours with requests, ascending; without key_ids their sums over all keys of the company."""
    if not key_ids:
        return await database.rows(_USAGE_OF_COMPANY, company_id=company_id, first=first, last=last)
    return await database.rows(_USAGE_OF_KEYS, company_id=company_id, key_ids=list(key_ids), first=first, last=last)


DELETED_AT_ONCE = 5000


def _delete_before(table: Table, instant: Column[datetime.datetime]) -> Statement:
    due = select(*table.primary_key).where(instant < param("before", TIME)).order_by(instant).limit(DELETED_AT_ONCE)
    return Statement(delete(table).where(tuple_(*table.primary_key).in_(due)))


_DELETES = (
    (_delete_before(key_usage, key_usage.c.hour), rules.USAGE_RETENTION),
    (_delete_before(usage_writer, usage_writer.c.written_at), rules.USAGE_RETENTION),
)


async def delete_old(database: Database, now: datetime.datetime) -> int:
    """Deletes what is stored no longer as of `now`, in small batches; returns the number of rows."""
    deleted = 0
    for statement, retention in _DELETES:
        rows = DELETED_AT_ONCE
        while rows == DELETED_AT_ONCE:
            rows = int((await database.execute(statement, before=now - retention)).split()[-1])
            deleted += rows
    return deleted
