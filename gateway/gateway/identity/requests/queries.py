"""The SQL of the request log."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple

from asyncpg import Record
from sqlalchemy import BigInteger, DateTime, Integer, Text, Uuid
from sqlalchemy.dialects.postgresql import ARRAY

from chassis.db.database import Database
from chassis.db.partitions import DayTables
from chassis.db.statements import Statement, sql
from chassis.records.bodies import ID_MAX
from gateway.identity.requests import records, rules
from gateway.identity.requests.tables import WRITTEN, request

NEVER = datetime.datetime(9999, 1, 1, tzinfo=datetime.UTC)
_RECORD_TYPE, _RECORD_ID = map(records.Details.__struct_fields__.index, ("record_type", "record_id"))
DAYS = DayTables(("request",), "id", rules.first_id, rules.day_of)
_SHOWN = ("company_id", "api_key_id", "requested_at", "request_id", "method", "route", "status", "code", "details")
_BODIES = ("request_body", "response_body")
COLUMNS = (*_SHOWN, *_BODIES)
"""Of a row to be stored, in this order."""

_STORED = ", ".join(COLUMNS)
# Pages leave the bodies out.
_NAMES = ", ".join(_SHOWN)
# `is_new` is empty if the part is stored already. The row of request_end is locked until the part is visible.
_STORE = Statement(
    sql(
        f"""
WITH is_new AS (
    INSERT INTO usage_writer (id, part) VALUES (:writer, :number)
    ON CONFLICT (id) DO UPDATE SET part = excluded.part, written_at = clock_timestamp()
    WHERE usage_writer.part < excluded.part
    RETURNING id
), ended AS (
    INSERT INTO request_end AS e (is_only, id)
    SELECT true, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + :rows FROM is_new
    ON CONFLICT (is_only) DO UPDATE SET id = greatest(e.id + :rows, excluded.id)
    RETURNING e.id
)
INSERT INTO request (id, {_STORED})
SELECT ended.id - :rows + row.n, {_STORED}
FROM ended, unnest({", ".join(f":{name}" for name in COLUMNS)}) WITH ORDINALITY AS row ({_STORED}, n)
""",  # noqa: S608 - names of columns alone
        writer=Uuid(),
        number=BigInteger(),
        rows=Integer(),
        **{name: ARRAY(request.c[name].type) for name in COLUMNS},
    )
)


async def store(database: Database, writer: uuid.UUID, number: int, rows: Sequence[Sequence[object]]) -> None:
    """Stores the rows of a part, unless it is stored already: its sender may not know."""
    columns = dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True))
    await database.execute(_STORE, writer=writer, number=number, rows=len(rows), **columns)


class Filters(NamedTuple):
    """Which requests of a company a page is about."""

    company_id: int
    key_id: int | None
    status: tuple[int, int]
    code: str
    route: str
    since: datetime.datetime
    request_id: str = ""
    but_route: str = ""
    """All but those of this route."""
    writes: bool = False
    """Only writes that succeeded."""
    until: datetime.datetime = NEVER
    record: tuple[str, int] = ("", 0)
    """Only writes to records of this kind, to the one with this id; empty and 0: to all."""


_TYPES: dict[str, Any] = {
    "company_id": BigInteger(),
    "key_id": BigInteger(),
    "after": BigInteger(),
    "before": BigInteger(),
    "scanned": Integer(),
    "rows": Integer(),
    "status_from": Integer(),
    "status_to": Integer(),
    "code": Text(),
    "route": Text(),
    "request_id": Text(),
    "but_route": Text(),
    "since": DateTime(timezone=True),
    "until": DateTime(timezone=True),
    "record_type": Text(),
    "record_id": Text(),
}


def _page(order: str, *conditions: str) -> Statement:
    """A page next to how far it looked; one row without an id if nothing there meets the filters.

    order: ASC or DESC, by id.
    """
    where = " AND ".join(("company_id = :company_id", "id > :after", "id < :before", *conditions))
    furthest = "min" if order == "DESC" else "max"
    text = f"""
WITH scanned AS MATERIALIZED (
    SELECT id, {_NAMES} FROM request
    WHERE {where}
    ORDER BY id {order} LIMIT :scanned
)
SELECT about.*, met.* FROM (SELECT count(*) AS looked_at, {furthest}(id) AS looked_to FROM scanned) AS about
LEFT JOIN LATERAL (
    SELECT * FROM scanned
    WHERE status BETWEEN :status_from AND :status_to AND requested_at >= :since
        AND (:code = '' OR code = :code) AND (:route = '' OR route = :route)
        AND (:request_id = '' OR request_id = :request_id) AND (:but_route = '' OR route <> :but_route)
        AND requested_at < :until
        AND (:record_type = '' OR details::json ->> {_RECORD_TYPE} = :record_type)
        AND (:record_id = '' OR details::json ->> {_RECORD_ID} = :record_id)
    ORDER BY id {order} LIMIT :rows
) AS met ON true
ORDER BY met.id {order}
"""  # noqa: S608 - names of columns and conditions of this module
    types = {name: kind for name, kind in _TYPES.items() if f":{name}" in text}
    return Statement(sql(text, **types))


_REFUSED = "status >= 400"
_PAGES = {
    (order, of_key, outcome, of_id): _page(
        order,
        *["api_key_id = :key_id"] * of_key,
        *[outcome] * bool(outcome),
        *["request_id = :request_id"] * of_id,
    )
    for order in ("ASC", "DESC")
    for of_key in (False, True)
    for outcome in ("", _REFUSED, WRITTEN)
    for of_id in (False, True)
}


class Page(NamedTuple):
    """Requests in the order of a page. looked_to: up to which id it looked; has_more: whether another may follow."""

    rows: list[Record]
    looked_to: int | None
    has_more: bool


async def _read(database: Database, order: str, by: Filters, after: int, before: int, limit: int) -> Page:
    is_of_key = by.key_id is not None
    outcome = WRITTEN if by.writes else _REFUSED if by.status[0] >= 400 else ""
    statement = _PAGES[order, is_of_key, outcome, bool(by.request_id)]
    values: dict[str, object] = {"key_id": by.key_id} if is_of_key else {}
    rows = await database.rows(
        statement,
        company_id=by.company_id,
        after=after,
        before=before,
        scanned=rules.SCANNED_MAX,
        rows=limit + 1,
        status_from=by.status[0],
        status_to=by.status[1],
        code=by.code,
        route=by.route,
        request_id=by.request_id,
        but_route=by.but_route,
        since=by.since,
        until=by.until,
        record_type=by.record[0],
        record_id=str(by.record[1] or ""),
        **values,
    )
    met = [row for row in rows if row["id"] is not None]
    if len(met) > limit:
        return Page(met[:limit], met[limit - 1]["id"], True)
    return Page(met, rows[0]["looked_to"], rows[0]["looked_at"] == rules.SCANNED_MAX)


async def newest(database: Database, by: Filters, before_id: int, limit: int) -> Page:
    """Up to `limit` requests that were stored before the one with an id, the newest first."""
    after_id = max(rules.id_at(by.since) - rules.CLOCK_MICROSECONDS, -1)
    return await _read(
        database, "DESC", by, after_id, min(before_id, rules.id_at(by.until) + rules.LATE_MICROSECONDS), limit
    )


async def oldest(database: Database, by: Filters, after_id: int, limit: int) -> Page:
    """Up to `limit` requests that were stored after the one with an id, the oldest first."""
    return await _read(database, "ASC", by, after_id, ID_MAX, limit)


_BY_REQUEST_ID = Statement(
    sql(
        f"SELECT id, {_STORED} FROM request WHERE request_id = :request_id ORDER BY id LIMIT 1",  # noqa: S608
        request_id=Text(),
    )
)


async def with_request_id(database: Database, request_id: str) -> Record | None:
    """The request whose answer had this id in its header."""
    if not rules.is_request_id(request_id):
        return None
    return await database.row(_BY_REQUEST_ID, request_id=request_id)
