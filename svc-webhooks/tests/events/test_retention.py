"""Days are dropped 30 days after their end, as a whole and in steps, despite blockers and crashes (spec 6.3.3)."""

import asyncio
import datetime
from collections.abc import AsyncIterator, Iterator

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chassis.db.database import Database, DatabaseUnavailable
from svc_webhooks import tables as t
from svc_webhooks.days import first_day_kept, first_id
from svc_webhooks.dispatch.queries import claims as queries_claims
from svc_webhooks.events.partitions import Partitions
from svc_webhooks.events.queries import partitions as queries_partitions
from testkit.plugin import PostgresServer
from testkit.schemas import declare

from ..days_of_events import DAY, NOON, SUB, TODAY, Doomed, event_id, left, partitions_of, put, rows

OVER = TODAY - 31 * DAY  # its last instant was 30 days and twelve hours ago
EMPTY = dict.fromkeys(t.PARTITIONED, 0)


@pytest.fixture(scope="module")
async def opened(postgres_server: PostgresServer) -> AsyncIterator[Database]:
    url = postgres_server.create_database("webhooks_days")
    await declare(url, t.metadata)
    database = Database(url, application="tests", plans="auto")
    await database.open()
    async with database.connection() as connection:
        await connection.raw.execute("CREATE SCHEMA partitions")
        await connection.raw.execute(
            "INSERT INTO subscription (id, company_id, destination_url, events, secret_prefix, secret_key_id,"
            " secret_sealed, created_at, source)"
            f" VALUES ({SUB}, 1, 'https://receiver.test/', '{{ticket.created}}', '', '', '', now(), 'api')"
        )
    yield database
    await database.close()


@pytest.fixture
async def database(opened: Database) -> AsyncIterator[Database]:
    """A database without any day, before and after the test."""
    yield opened
    await partitions_of(opened).drop(NOON + 10_000 * DAY)
    assert await left(opened) == {table: set() for table in t.PARTITIONED}


@pytest.fixture(scope="module")
def killed_at() -> Iterator[Doomed]:
    doomed = Doomed()
    yield doomed
    doomed.close()


async def stored(database: Database, *days: datetime.date) -> Partitions:
    """Makes the days at a time when they could be stored, and adds a delivery to each."""
    maker = partitions_of(database, NOON - 40 * DAY)
    for day in days:
        assert await maker.ensure_day(event_id(day))
        await put(database, day)
    return partitions_of(database)


@given(st.datetimes(datetime.datetime(2000, 1, 1), datetime.datetime(2200, 1, 1)), st.integers(0, 40))
def test_a_day_is_kept_until_thirty_days_after_its_end(now: datetime.datetime, days_ago: int) -> None:
    day = now.date() - days_ago * DAY
    end = datetime.datetime.combine(day, datetime.time()) + DAY
    assert (day < first_day_kept(now)) == (now - end >= 30 * DAY)


async def test_what_is_over_goes_and_the_rest_stays(database: Database) -> None:
    partitions = await stored(database, OVER - DAY, OVER, OVER + DAY, TODAY)
    assert await partitions.drop(NOON) == 2
    assert await rows(database) == dict.fromkeys(t.PARTITIONED, 2)
    assert await partitions.drop(NOON) == 0
    midnight = datetime.datetime.combine(TODAY, datetime.time(), datetime.UTC) + DAY
    assert await partitions.drop(midnight - datetime.timedelta(microseconds=1)) == 0
    assert await partitions.drop(midnight) == 1
    assert await rows(database) == dict.fromkeys(t.PARTITIONED, 1)


async def test_a_partition_that_spans_thirty_days_goes_when_its_last_day_is_over(database: Database) -> None:
    """Installations that are older than the making of days on demand have such a partition."""
    since = TODAY - 60 * DAY
    async with database.connection() as connection:
        for table in t.PARTITIONED:
            name = f"partitions.{table}_{since:%Y%m%d}"
            await connection.raw.execute(
                f"CREATE TABLE {name} (LIKE {table} INCLUDING ALL); ALTER TABLE {table} ATTACH PARTITION {name}"
                f" FOR VALUES FROM ('{first_id(since)}') TO ('{first_id(OVER + DAY)}')"
            )
    partitions = partitions_of(database)
    assert await partitions.drop(NOON - DAY) == 0
    assert await partitions.ensure_day(event_id(OVER + DAY))
    assert await partitions.drop(NOON) == 30


@pytest.mark.parametrize("year", [1, 1970, 9999])
async def test_an_odd_instant_is_no_fault(database: Database, year: int) -> None:
    partitions = await stored(database, TODAY)
    assert await partitions.drop(datetime.datetime(year, 1, 1, tzinfo=datetime.UTC)) == (year == 9999)


async def test_several_at_once_share_the_work(database: Database) -> None:
    days = [OVER - number * DAY for number in range(6)]
    await stored(database, *days, TODAY)
    counts = await asyncio.gather(*(partitions_of(database).drop(NOON) for _ in range(3)))
    assert sum(counts) == 6
    assert await rows(database) == dict.fromkeys(t.PARTITIONED, 1)


async def claims(database: Database) -> int:
    """Claims all due deliveries as a sweep does, then releases them. Every claimed row must have its event."""
    count = 0
    for due in await queries_claims.subscriptions_due(database, NOON + 10_000 * DAY, 0, 10):
        claimed = (await queries_claims.claimed_deliveries(database, {due.id: 10}, NOON + 10_000 * DAY, 1)).rows
        count += len(claimed)
        assert claimed, "a delivery was due and could not be claimed"
    async with database.connection() as connection:
        await connection.raw.execute("UPDATE delivery SET leased_until = NULL")
    return count


async def test_killed_at_every_step_the_next_sweep_finishes_and_claims_go_on_meanwhile(
    database: Database, killed_at: Doomed
) -> None:
    partitions = await stored(database, OVER, TODAY)
    for step in range(6):
        assert await claims(database) == (2 if step == 0 else 1)
        await asyncio.to_thread(killed_at, database.url, ("day-detached", "day-dropped")[step % 2], NOON)
    assert await left(database) == {table: {f"{TODAY:%Y%m%d}"} for table in t.PARTITIONED}
    assert await claims(database) == 1
    assert await partitions.drop(NOON) == 0


async def test_killed_when_the_feed_is_shorter_the_next_sweep_drops_the_day(
    database: Database, killed_at: Doomed
) -> None:
    partitions = await stored(database, OVER, TODAY)
    async with database.connection() as connection:
        await connection.raw.execute("UPDATE feed_entry SET stored_at = $1 WHERE event_id = $2", NOON, event_id(TODAY))
        await connection.raw.execute("UPDATE feed_entry SET stored_at = $1 WHERE stored_at > $2", NOON - 31 * DAY, NOON)
    await asyncio.to_thread(killed_at, database.url, "feed-shortened", NOON)
    async with database.connection() as connection:
        assert [row[0] for row in await connection.raw.fetch("SELECT event_id FROM feed_entry")] == [event_id(TODAY)]
    assert await rows(database) == dict.fromkeys(t.PARTITIONED, 2)
    assert await partitions.drop(NOON) == 1


@pytest.mark.parametrize("steps", range(1, 6))
async def test_what_a_killed_sweep_left_is_finished_though_it_is_not_over(
    database: Database, killed_at: Doomed, steps: int
) -> None:
    """`--now` was far ahead, or the day is needed again before the next sweep."""
    partitions = await stored(database, TODAY)
    for step in range(steps):
        await asyncio.to_thread(killed_at, database.url, ("day-detached", "day-dropped")[step % 2], NOON + 40 * DAY)
    if steps % 2:
        assert await partitions.drop(NOON) == 1
    assert await partitions.ensure_day(event_id(TODAY))
    await put(database, TODAY)
    assert await rows(database) == dict.fromkeys(t.PARTITIONED, 1)
    assert await partitions.drop(NOON) == 0


async def constraints(database: Database, partition: str) -> set[str]:
    async with database.connection() as connection:
        rows = await connection.raw.fetch(
            "SELECT conname FROM pg_constraint WHERE conrelid = $1::text::regclass", f"partitions.{partition}"
        )
    return {row["conname"] for row in rows}


@pytest.mark.parametrize("by", ["this release", "an earlier release"])
async def test_detaching_adds_no_constraint_to_what_others_write_to(
    database: Database, killed_at: Doomed, by: str
) -> None:
    """A statement that continues with one constraint more than it began with would crash the server."""
    partitions = await stored(database, OVER)
    name = f"delivery_{OVER:%Y%m%d}"
    before = await constraints(database, name)
    if by != "this release":
        async with database.connection() as connection:
            await connection.raw.execute(f"ALTER TABLE partitions.{name} DROP CONSTRAINT bounds")
    await asyncio.to_thread(killed_at, database.url, "day-detached", NOON)
    assert await constraints(database, name) == before
    assert await partitions.drop(NOON) == 1


async def test_a_long_query_delays_the_drop_and_nothing_else(database: Database) -> None:
    partitions = await stored(database, OVER, TODAY)
    reader = await asyncpg.connect(database.url)
    await reader.execute("BEGIN; SELECT count(*) FROM delivery")
    for tries in range(1, 3):  # the second call finds the first one's remains
        with pytest.raises(DatabaseUnavailable):
            await partitions.drop(NOON)
        assert await claims(database) == tries  # claims no longer read the day that is being dropped, but all others
        another = TODAY + tries * DAY
        assert await partitions.ensure_day(event_id(another))
        await put(database, another)
    await reader.execute("COMMIT")
    await reader.close()
    assert await partitions.drop(NOON) == 1
    assert await rows(database) == dict.fromkeys(t.PARTITIONED, 3)


async def test_hourly_work_survives_what_is_in_the_way(database: Database) -> None:
    partitions = await stored(database, OVER)
    reader = await asyncpg.connect(database.url)
    await reader.execute("BEGIN; SELECT count(*) FROM delivery")
    await partitions.every_hour(NOON)
    await reader.close()
    await partitions.every_hour(NOON)
    assert await rows(database) == EMPTY


async def test_a_clock_that_is_years_ahead_drops_nothing_by_itself(database: Database) -> None:
    now = datetime.datetime.now(datetime.UTC)
    partitions = partitions_of(database, now)
    await partitions.ensure_day(event_id(now.date()))
    await put(database, now.date())
    await partitions.every_hour(now + 1000 * DAY)
    assert await rows(database) == dict.fromkeys(t.PARTITIONED, 1)


async def test_what_waits_or_is_parked_and_expires_within_a_day_is_counted(database: Database) -> None:
    partitions = await stored(database, OVER + DAY, OVER + 2 * DAY)
    soon = first_id(OVER + 2 * DAY)
    assert await queries_partitions.undelivered_before(database, soon) == {"waiting": 1, "parked": 0}
    assert await partitions.drop(NOON) == 0


async def test_an_event_of_a_day_that_is_over_is_not_held_though_its_partition_is_there(database: Database) -> None:
    await stored(database, OVER)
    assert not await partitions_of(database).ensure_day(event_id(OVER))
    assert await partitions_of(database, NOON - DAY).ensure_day(event_id(OVER))


async def test_a_day_that_another_process_dropped_is_made_again(database: Database) -> None:
    mine, other = partitions_of(database), partitions_of(database)
    assert await mine.ensure_day(event_id(TODAY))
    assert await other.drop(NOON + 40 * DAY) == 1
    assert await mine.ensure_day(event_id(TODAY))  # from the cache
    with pytest.raises(asyncpg.CheckViolationError):
        await put(database, TODAY)
    mine.forget()
    assert await mine.ensure_day(event_id(TODAY))
    await put(database, TODAY)


async def test_makers_and_droppers_side_by_side_end_well(database: Database) -> None:
    """Each process has its own `now`: some make days that others drop."""
    days = [TODAY + number * DAY for number in range(4)]

    async def make(day: datetime.date) -> None:
        for _ in range(3):
            partitions = partitions_of(database)
            assert await partitions.ensure_day(event_id(day))

    await asyncio.gather(*map(make, days), *(partitions_of(database).drop(NOON + 33 * DAY) for _ in range(3)))
    names = await left(database)
    assert names["event"] == names["delivery"] == names["attempt"]
