"""Lists on a real PostgreSQL: every set of filters finds what a plain query finds, page by page, at a bounded cost."""

from __future__ import annotations

import datetime
import itertools
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa
from asyncpg import Record
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chassis.db.database import Database
from chassis.db.statements import TIME, Statement, param
from chassis.lists.paging import ROWS_MAX, Inside, Pages, page, page_indexes
from testkit.examples import examples
from testkit.plans import page_plan
from testkit.plugin import PostgresServer

from ..databases import database_with

COMPANY, OTHER_COMPANY = 7, 8
STATUSES = ("afloat", "ashore", "sunk")
PLACES = ("harbour_id", "berth_id")
NOON = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)
HOUR = datetime.timedelta(hours=1)
BOATS = 3000

metadata = sa.MetaData()
berth = sa.Table(
    "berth",
    metadata,
    sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("company_id", sa.BigInteger, nullable=False),
    sa.Column("harbour_id", sa.BigInteger, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
)
boat = sa.Table(
    "boat",
    metadata,
    sa.Column("company_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("harbour_id", sa.BigInteger, nullable=False),
    sa.Column("berth_id", sa.BigInteger),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("hidden", sa.Boolean, nullable=False),
    sa.Column("updated_at", TIME, nullable=False),
    sa.UniqueConstraint("company_id", "harbour_id", "number", name="boat_number"),
)
VISIBLE = sa.not_(boat.c.hidden)
page_indexes(boat, visible=VISIBLE, places=PLACES)
LISTED = Pages(
    sa.select(boat.c.id, berth.c.name).select_from(boat.outerjoin(berth, berth.c.id == boat.c.berth_id)),
    boat.c.id,
    {
        "harbour_id": boat.c.harbour_id == param("harbour_id", sa.BigInteger),
        "berth_id": boat.c.berth_id == param("berth_id", sa.BigInteger),
        "number": boat.c.number == param("number", sa.Integer),
        "status": boat.c.status == param("status", sa.Text),
        "updated_since": boat.c.updated_at >= param("updated_since", TIME),
    },
    VISIBLE,
    STATUSES,
    places=PLACES,
    inside=[Inside("berth_id", "harbour_id", berth)],
)


def filter_sets() -> Iterator[tuple[str, ...]]:
    """Every set of filters; a number is unique in its harbour."""
    for size in range(len(LISTED.filters) + 1):
        for names in itertools.combinations(LISTED.filters, size):
            if "number" not in names or "harbour_id" in names:
                yield names


@pytest.fixture(scope="module")
async def database(postgres_server: PostgresServer) -> AsyncIterator[Database]:
    """3,000 boats of two companies in 3 harbours each, with 4 berths each; every eleventh is hidden."""
    async with database_with(postgres_server, "chassis_paging", metadata) as database:
        async with database.connection() as connection:
            await connection.raw.execute(
                "INSERT INTO berth SELECT 1000 * company + 10 * harbour + n, company, 100 * company + harbour, 'B' || n"
                " FROM generate_series(7, 8) company, generate_series(1, 3) harbour, generate_series(1, 4) n"
            )
            await connection.raw.execute(
                "INSERT INTO boat SELECT company, n, 100 * company + harbour,"
                " CASE WHEN n % 5 > 0 THEN 1000 * company + 10 * harbour + n % 5 END, n,"
                " (ARRAY['afloat', 'ashore', 'sunk'])[1 + n / 7 % 3], n % 11 = 0,"
                f" $1::timestamptz - interval '1 hour' * (n % 4) FROM generate_series(1, {BOATS}) n,"
                " LATERAL (SELECT 7 + n % 2 AS company, 1 + n / 13 % 3 AS harbour) x",
                NOON,
            )
            await connection.raw.execute("ANALYZE boat")
        yield database


class Boats(list[dict[str, Any]]):
    """All boats, ascending by id."""

    def __repr__(self) -> str:
        return f"{len(self)} boats"


@pytest.fixture(scope="module")
async def boats(database: Database) -> Boats:
    return Boats(map(dict, await database.rows(Statement(sa.select(boat).order_by(boat.c.id)))))


VALUES: dict[str, list[Any]] = {
    "harbour_id": [701, 702, 801, 0],
    "berth_id": [7011, 7024, 8011],
    "number": [2, 14, 22, 28, 33],
    "status": list(STATUSES),
    "updated_since": [NOON - 4 * HOUR, NOON - HOUR, NOON, NOON + HOUR],
}


def wanted(boats: Boats, filters: dict[str, Any]) -> list[int]:
    same = {name: value for name, value in filters.items() if name != "updated_since"}
    since = filters.get("updated_since", NOON - 99 * HOUR)
    return [
        row["id"]
        for row in boats
        if row["company_id"] == COMPANY and row["updated_at"] >= since
        if all(row[name] == value for name, value in same.items())
        if not row["hidden"]
    ]


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), names=st.sampled_from(list(filter_sets())), limit=st.sampled_from([1, 7, 50, ROWS_MAX]))
async def test_a_walk_with_any_filters_finds_what_a_plain_query_finds(
    database: Database, boats: Boats, data: st.DataObject, names: tuple[str, ...], limit: int
) -> None:
    filters = {name: data.draw(st.sampled_from(VALUES[name]), label=name) for name in names}
    expected, after_id, listed_ids = wanted(boats, filters), 0, []
    for _ in range(5):
        rows = await LISTED.rows(database, COMPANY, after_id, limit, filters)
        visible, after_id = rows[:limit], rows[limit - 1][0] if len(rows) > limit else 0
        listed_ids += [row[0] for row in visible]
        if not after_id:
            break
    assert listed_ids == (expected if not after_id else expected[: 5 * limit])


async def test_a_record_that_is_not_shown_is_not_found_by_its_key_either(database: Database) -> None:
    pages = [await LISTED.rows(database, COMPANY, 0, 5, {"harbour_id": 702, "number": number}) for number in (14, 22)]
    assert [[row[0] for row in rows] for rows in pages] == [[14], []]


async def test_a_page_is_never_longer_than_the_longest(database: Database) -> None:
    assert len(await LISTED.rows(database, COMPANY, 0, 10 * ROWS_MAX, {})) == ROWS_MAX + 1


class Boat(msgspec.Struct):
    entity_id: int
    berth: str | None


def rendered(row: Record) -> Boat:
    return Boat(*row)


@pytest.mark.parametrize(("limit", "has_more"), [(2, True), (3, False), (4, False)])
async def test_a_page_names_the_start_of_the_next(limit: int, has_more: bool, database: Database) -> None:
    last = [row[0] for row in await LISTED.rows(database, COMPANY, BOATS - 8, 50, {})][-3:]
    rows = await LISTED.rows(database, COMPANY, last[0] - 1, limit, {})
    answer = page(rows, limit, rendered)
    assert [record["entity_id"] for record in json.loads(answer.data)] == last[:limit]
    assert answer.HasField("next_after_id") is has_more
    assert not has_more or answer.next_after_id == last[limit - 1]


def test_no_records_are_an_empty_page() -> None:
    answer = page([], 10, rendered)
    assert (answer.data, answer.HasField("next_after_id")) == (b"[]", False)


@pytest.mark.parametrize("names", [names for names in filter_sets() if "updated_since" not in names])
async def test_a_page_meets_no_more_than_its_own_rows(names: tuple[str, ...], database: Database) -> None:
    """For any filters, and for values that no record has: a bad plan would read all rows in vain there."""
    filters = {name: VALUES[name][0] for name in names}
    for nothing in ({}, *({name: VALUES[name][-1]} for name in names)):
        plan = await page_plan(database, LISTED, COMPANY, 20, 0, **filters | nothing)
        # The page's rows, those that follow in the longest page, and each row's berth.
        assert plan.rows_met <= 2 * (ROWS_MAX + 1) + 5, nothing
        assert "boat" not in plan.whole_tables
