"""Partitions of days."""

import asyncio
import datetime
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chassis.db.database import Database
from svc_webhooks.days import day_of, first_id
from svc_webhooks.events.partitions import Partitions

DAY = datetime.timedelta(days=1)


@given(st.dates(datetime.date(1970, 1, 2), datetime.date(5000, 1, 1)))
def test_a_day_begins_with_its_first_id(day: datetime.date) -> None:
    assert day_of(first_id(day)) == day
    assert day_of(uuid.UUID(int=first_id(day).int - 1)) == day - DAY


async def covered(database: Database) -> list[tuple[uuid.UUID, uuid.UUID]]:
    """The bounds of each table's partitions, which must be the same for all three tables."""
    days = []
    for table in ("event", "delivery", "attempt"):
        async with database.connection() as connection:
            rows = await connection.raw.fetch(
                "SELECT pg_get_expr(c.relpartbound, c.oid) FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid"
                " WHERE inhparent = $1::regclass ORDER BY c.relname",
                table,
            )
        days.append([tuple(uuid.UUID(part) for part in row[0].split("'")[1::2]) for row in rows])
    assert days[0] == days[1] == days[2]
    return days[0]  # type: ignore[return-value]


async def test_days_ahead_are_made_once_for_all_tables(database: Database) -> None:
    """Also if several processes make them at once, and if the service was away for weeks."""
    later = datetime.datetime.now(datetime.UTC) + 20 * DAY
    makers = [Partitions(database, lambda: later) for _ in range(4)]
    await asyncio.gather(*(maker.ahead() for maker in makers))
    bounds = await covered(database)
    for number in range(4):
        day = later.date() + number * DAY
        assert bounds.count((first_id(day), first_id(day + DAY))) == 1


@pytest.mark.parametrize("days_ago", [-30, 0, 29, 30])
async def test_a_day_is_made_before_its_event_is_stored(database: Database, days_ago: int) -> None:
    partitions = Partitions(database, lambda: datetime.datetime.now(datetime.UTC))
    day = datetime.datetime.now(datetime.UTC).date() - days_ago * DAY
    assert await partitions.ensure_day(first_id(day))
    assert (first_id(day), first_id(day + DAY)) in await covered(database)


async def test_an_id_of_a_broken_clock_makes_no_partitions(database: Database) -> None:
    partitions = Partitions(database, lambda: datetime.datetime.now(datetime.UTC))
    before = await covered(database)
    with pytest.raises(ValueError, match="clock"):
        await partitions.ensure_day(first_id(datetime.date(4000, 1, 1)))
    assert await covered(database) == before


async def test_an_id_of_a_day_that_is_over_is_not_held(database: Database) -> None:
    partitions = Partitions(database, lambda: datetime.datetime.now(datetime.UTC))
    over = datetime.datetime.now(datetime.UTC).date() - 31 * DAY
    before = await covered(database)
    assert not await partitions.ensure_day(first_id(over))
    assert await covered(database) == before


@pytest.mark.parametrize("days_wrong", [-1000, 40, 10000])
async def test_an_event_of_today_is_held_though_the_clock_of_this_machine_is_wrong(
    database: Database, days_wrong: int
) -> None:
    today = datetime.datetime.now(datetime.UTC)
    partitions = Partitions(database, lambda: today + days_wrong * DAY)
    assert await partitions.ensure_day(first_id(today.date()))
    assert (first_id(today.date()), first_id(today.date() + DAY)) in await covered(database)
