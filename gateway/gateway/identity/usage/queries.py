"""The SQL statements about the usage of API keys, named for what they return or do."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple

from asyncpg import Record
from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Integer,
    Table,
    Uuid,
    any_,
    delete,
    func,
    literal_column,
    select,
    tuple_,
)
from sqlalchemy.dialects.postgresql import ARRAY, insert

from chassis.db.database import Database
from chassis.db.rows import array_rows
from chassis.db.statements import CLOCK, TIME, Statement, param
from gateway.identity.usage import rules
from gateway.identity.usage.tables import OUTCOMES, key_last_use, key_usage, refused_request, usage_writer


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


class RefusedRequest(NamedTuple):
    """A row of refused_request."""

    company_id: int
    api_key_id: int
    requested_at: datetime.datetime
    method: str
    route: str
    status: int
    code: str
    request_id: str


class Part(NamedTuple):
    """What one gateway process has counted; its number grows with each part."""

    writer: uuid.UUID
    number: int
    hours: list[HourOfKey]
    last_uses: list[LastUse]
    refused: list[RefusedRequest]

    @property
    def requests(self) -> int:
        return sum(sum(hour[3:]) for hour in self.hours)


# Gateways store one after the other: each sees how many refused requests of the day are stored, and none waits for a
# key's row while it holds another's.
_LOCK = "SELECT pg_advisory_xact_lock(8239175002647)"


def _store() -> Statement:
    writer = insert(usage_writer).values(id=param("writer", Uuid), part=param("number", BigInteger))
    writer = writer.on_conflict_do_update(
        index_elements=[usage_writer.c.id],
        set_={"part": writer.excluded.part, "written_at": CLOCK},
        where=usage_writer.c.part < writer.excluded.part,
    )
    # Empty if the part is stored already.
    is_new = writer.returning(usage_writer.c.id).cte("is_new")

    def rows(kind: type[Any], table: Any, name: str) -> Any:
        return array_rows(name, {one: table.c[one].type for one in kind._fields}, prefix=f"{name}_", numbered=True)

    hours = rows(HourOfKey, key_usage, "hours")
    usage = insert(key_usage).from_select(
        list(HourOfKey._fields),
        select(
            hours.c.api_key_id,
            hours.c.hour,
            func.max(hours.c.company_id),
            *(func.sum(hours.c[name]) for name in OUTCOMES),
        )
        .select_from(hours.join(is_new, literal_column("true")))
        .group_by(hours.c.api_key_id, hours.c.hour),
    )
    usage = usage.on_conflict_do_update(
        index_elements=[key_usage.c.api_key_id, key_usage.c.hour],
        set_={name: key_usage.c[name] + usage.excluded[name] for name in OUTCOMES},
    )

    uses = rows(LastUse, key_last_use, "uses")
    age = func.row_number().over(partition_by=uses.c.api_key_id, order_by=uses.c.used_at.desc()).label("age")
    newest = select(*uses.c, age).select_from(uses.join(is_new, literal_column("true"))).subquery("newest")
    last = insert(key_last_use).from_select(
        list(LastUse._fields),
        select(*(newest.c[name] for name in LastUse._fields)).where(newest.c.age == literal_column("1")),
    )
    last = last.on_conflict_do_update(
        index_elements=[key_last_use.c.api_key_id],
        set_={name: last.excluded[name] for name in LastUse._fields[1:]},
        where=key_last_use.c.used_at < last.excluded.used_at,
    )

    given = rows(RefusedRequest, refused_request, "refused")
    day = func.date_trunc("day", given.c.requested_at, literal_column("'UTC'"))
    place = func.row_number().over(partition_by=(given.c.company_id, day), order_by=given.c.n)
    sent = (
        select(*(given.c[name] for name in RefusedRequest._fields), day.label("day"), place.label("place"))
        .select_from(given.join(is_new, literal_column("true")))
        .cte("sent")
    )
    days = select(sent.c.company_id, sent.c.day).distinct().subquery("days")
    stored = (
        select(func.count().label("rows"))
        .where(
            refused_request.c.company_id == days.c.company_id,
            refused_request.c.requested_at >= days.c.day,
            refused_request.c.requested_at < days.c.day + literal_column("interval '1 day'"),
        )
        .lateral("stored")
    )
    counted = select(days.c.company_id, days.c.day, stored.c.rows)
    room = counted.select_from(days.join(stored, literal_column("true"))).subquery("room")
    refused = insert(refused_request).from_select(
        list(RefusedRequest._fields),
        select(*(sent.c[name] for name in RefusedRequest._fields))
        .select_from(sent.join(room, (sent.c.company_id == room.c.company_id) & (sent.c.day == room.c.day)))
        .where(sent.c.place + room.c.rows <= literal_column(str(rules.REFUSED_A_DAY)))
        .order_by(sent.c.requested_at),
        include_defaults=False,
    )
    return Statement(
        select(func.count())
        .select_from(is_new)
        .add_cte(usage.cte("usage"), last.cte("last"), refused.cte("refused_now"))
    )


_STORE = _store()


def _columns(name: str, kind: type[Any], rows: Sequence[Any]) -> dict[str, list[Any]]:
    columns = map(list, zip(*rows, strict=True)) if rows else ([] for _ in kind._fields)
    return dict(zip((f"{name}_{field}" for field in kind._fields), columns, strict=True))


async def store(database: Database, part: Part) -> None:
    """Adds the part, unless it is stored already: its sender may not know."""
    values = _columns("hours", HourOfKey, part.hours)
    values |= _columns("uses", LastUse, part.last_uses)
    values |= _columns("refused", RefusedRequest, part.refused)
    async with database.transaction(_LOCK) as connection:
        await connection.value(_STORE, writer=part.writer, number=part.number, **values)


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


_c = refused_request.c
_ANCHOR = Statement(select(_c.requested_at).where(_c.id == param("request_id", BigInteger), _c.company_id == _company))


def _refused_page(*of_key: ColumnElement[bool]) -> Statement:
    page = select(_c.id, *(_c[name] for name in RefusedRequest._fields[1:])).where(
        _c.company_id == _company,
        *of_key,
        _c.requested_at >= param("requested_from", TIME),
        tuple_(_c.requested_at, _c.id) < tuple_(param("before_at", TIME), param("before_id", BigInteger)),
    )
    return Statement(page.order_by(_c.requested_at.desc(), _c.id.desc()).limit(param("rows", Integer)))


_REFUSED_OF_COMPANY = _refused_page()
_REFUSED_OF_KEY = _refused_page(_c.api_key_id == param("key_id", BigInteger))


async def requested_at(database: Database, company_id: int, request_id: int) -> datetime.datetime | None:
    """When a stored request was refused; None if it is not stored any longer."""
    instant: datetime.datetime | None = await database.value(_ANCHOR, company_id=company_id, request_id=request_id)
    return instant


async def refused_requests(
    database: Database,
    company_id: int,
    key_id: int | None,
    requested_from: datetime.datetime,
    before: tuple[datetime.datetime, int],
    rows: int,
) -> list[Record]:
    """The newest first, older than the instant and id of `before`."""
    values = {"requested_from": requested_from, "before_at": before[0], "before_id": before[1], "rows": rows}
    if key_id is None:
        return await database.rows(_REFUSED_OF_COMPANY, company_id=company_id, **values)
    return await database.rows(_REFUSED_OF_KEY, company_id=company_id, key_id=key_id, **values)


DELETED_AT_ONCE = 5000


def _delete_before(table: Table, instant: Column[Any]) -> Statement:
    due = select(*table.primary_key).where(instant < param("before", TIME)).order_by(instant).limit(DELETED_AT_ONCE)
    return Statement(delete(table).where(tuple_(*table.primary_key).in_(due)))


_DELETES = (
    (_delete_before(key_usage, key_usage.c.hour), rules.USAGE_RETENTION),
    (_delete_before(refused_request, refused_request.c.requested_at), rules.REFUSED_RETENTION),
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
