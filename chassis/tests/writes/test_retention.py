"""Claims are retained 30 days: which are deleted, which stay, and that no write waits for a sweep (spec 4.13)."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import AsyncIterator
from typing import Any

import pytest
import sqlalchemy as sa

from chassis.auth.identity import INTEGRATION, OPERATOR, Call, Identity
from chassis.db.database import Database
from chassis.refusals import Refusal
from chassis.schedule.instants import slot_of
from chassis.writes.idempotency import Claim, IdempotentInsert, claim, ledger
from chassis.writes.retention import BATCH, KEPT, PERIOD_SECONDS, Retention, every_slot
from makeready.common.v1 import retention_pb2 as pb
from makeready.common.v1.documents_pb2 import WriteReply
from testkit.patience import PATIENCE_SECONDS
from testkit.plugin import PostgresServer

from ..databases import database_with

NOW = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)
SECOND = datetime.timedelta(seconds=1)

metadata = sa.MetaData()
claims = ledger(metadata)
note = sa.Table("note", metadata, sa.Column("text", sa.Text, primary_key=True))
WRITE = IdempotentInsert(claims, note)
WHO = Identity(INTEGRATION, "gateway", company_id=7, api_key_id=1, scope="write", administrator_id=3)


@pytest.fixture(scope="module")
async def opened(postgres_server: PostgresServer) -> AsyncIterator[Database]:
    async with database_with(postgres_server, "retention_test", metadata) as database:
        yield database


@pytest.fixture
async def database(opened: Database) -> Database:
    async with opened.connection() as connection:
        await connection.raw.execute("TRUNCATE idempotency, note")
    return opened


@pytest.fixture
def retention(database: Database) -> Retention:
    return Retention(database, claims)


def claimed(key: str) -> Claim:
    return claim(WHO, key, "POST /notes", b"{}")


async def write(database: Database, key: str, text: str) -> WriteReply:
    """Stores a text, once for each key."""
    return await WRITE.write(database, claimed(key), 201, text.encode(), {note: {"text": text}})


async def age(database: Database, recorded_at: datetime.datetime, keys: str = "%") -> None:
    async with database.connection() as connection:
        like = "UPDATE idempotency SET recorded_at = $1 WHERE idempotency_key LIKE $2"
        await connection.raw.execute(like, recorded_at, keys)


async def fill(database: Database, many: int, recorded_at: datetime.datetime, step: datetime.timedelta) -> None:
    """Claims old-1, old-2, … a step apart."""
    async with database.connection() as connection:
        await connection.raw.execute(
            "INSERT INTO idempotency SELECT 7, 1, 'old-' || n, $3, 201, 'old', $1::timestamptz - n * $2::interval"
            " FROM generate_series(1, $4::integer) n",
            recorded_at,
            step,
            claimed("").fingerprint,
            many,
        )


async def keys(database: Database) -> list[str]:
    async with database.connection() as connection:
        rows = await connection.raw.fetch("SELECT idempotency_key FROM idempotency ORDER BY 1")
    return [row[0] for row in rows]


async def held(database: Database, key: str, work: Any) -> Any:
    """Does the work while another write holds the key."""
    async with database.transaction(f"SELECT pg_advisory_xact_lock({claimed(key).lock})"):
        return await work


async def test_a_key_of_almost_30_days_is_replayed(database: Database, retention: Retention) -> None:
    await write(database, "k", "first")
    await age(database, NOW - KEPT + SECOND)
    assert await retention.sweep(NOW) == 0
    again = await write(database, "k", "second")
    assert (again.replayed, again.body) == (True, b"first")


async def test_a_key_of_30_days_is_new_again(database: Database, retention: Retention) -> None:
    await write(database, "k", "first")
    await age(database, NOW - KEPT)
    assert await retention.sweep(NOW) == 1
    assert await WRITE.stored(database, claimed("k")) is None
    again = await write(database, "k", "second")
    assert (again.replayed, again.body) == (False, b"second")
    assert await retention.sweep(NOW) == 0 and await keys(database) == ["k"]


async def test_a_key_that_is_due_and_not_swept_yet_is_replayed(database: Database) -> None:
    await write(database, "k", "first")
    await age(database, NOW - 2 * KEPT)
    assert (await write(database, "k", "second")).body == b"first"


async def test_a_write_under_way_keeps_its_key_until_it_has_ended(database: Database, retention: Retention) -> None:
    for key in ("k", "other"):
        await write(database, key, key)
    await age(database, NOW - KEPT)
    assert await held(database, "k", retention.sweep(NOW)) == 1, "it does not wait for the write either"
    assert await keys(database) == ["k"]
    assert await retention.sweep(NOW) == 1


async def test_a_write_never_waits_for_a_key_that_is_being_forgotten(database: Database, retention: Retention) -> None:
    for key in ("k", "other"):
        await write(database, key, key)
    await age(database, NOW - KEPT)
    # This transaction holds one row, and stops the sweep in the middle of its statement, with all its locks taken.
    async with database.transaction("SELECT FROM idempotency WHERE idempotency_key = 'other' FOR UPDATE"):
        sweep = asyncio.create_task(retention.sweep(NOW))
        await waits_for_a_row(database)
        assert (await write(database, "k", "again")).body == b"k"
        assert not (await write(database, "new", "new")).replayed
        assert not sweep.done()
    assert await sweep == 2 and await keys(database) == ["new"]


async def waits_for_a_row(database: Database) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS), database.connection() as connection:
        waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        while await connection.raw.fetchval(waiting) is None:  # noqa: ASYNC110 - polls the server
            await asyncio.sleep(0.01)


async def test_a_key_used_again_after_it_was_found_to_be_due_stays(database: Database, retention: Retention) -> None:
    await fill(database, BATCH + 1, NOW - KEPT, SECOND)
    oldest = f"old-{BATCH + 1}"
    async with database.transaction("SELECT FROM idempotency WHERE idempotency_key = 'old-1' FOR UPDATE") as connection:
        sweep = asyncio.create_task(retention.sweep(NOW))
        await waits_for_a_row(database)  # in its second batch: the oldest is deleted
        await write(database, oldest, "new")
        await connection.raw.execute("UPDATE idempotency SET recorded_at = $1 WHERE idempotency_key = 'old-1'", NOW)
    assert await sweep == BATCH
    assert await keys(database) == ["old-1", oldest]


@pytest.mark.parametrize("step", [SECOND, datetime.timedelta()], ids=["one a second", "all at one instant"])
async def test_sweeps_at_once_forget_each_claim_once(database: Database, step: datetime.timedelta) -> None:
    await fill(database, 5 * BATCH, NOW - KEPT, step)
    await write(database, "new", "new")
    await age(database, NOW, "new")
    counts = await asyncio.gather(*(Retention(database, claims).sweep(NOW) for _ in range(3)))
    forgotten_later = await Retention(database, claims).sweep(
        NOW
    )  # a sweep skips the batch that another one holds locked
    assert sum(counts) + forgotten_later == 5 * BATCH and await keys(database) == ["new"]


async def test_a_batch_that_is_in_use_ends_no_sweep_and_keeps_none_going(
    database: Database, retention: Retention
) -> None:
    await fill(database, 3 * BATCH, NOW - KEPT, SECOND)
    locks = " ".join(f"SELECT pg_advisory_xact_lock({claimed(f'old-{n}').lock});" for n in range(BATCH, 2 * BATCH))
    async with database.transaction(locks):
        assert await retention.sweep(NOW) == 2 * BATCH
    assert await retention.sweep(NOW) == BATCH


async def test_an_enormous_ledger_is_forgotten_while_writes_go_on(database: Database, retention: Retention) -> None:
    many = 100 * BATCH
    await fill(database, many, NOW - KEPT, SECOND)
    sweep = asyncio.create_task(retention.sweep(NOW))
    replayed = written = 0
    while not sweep.done():
        for key, text in ((f"new-{written}", f"new {written}"), (f"old-{1 + written * 37 % many}", f"o {written}")):
            try:
                reply = await write(database, key, text)
            except Refusal as refusal:
                assert refusal.code == "idempotency_in_progress"  # at the very instant of its deletion
                continue
            replayed += reply.replayed
            assert reply.body == (b"old" if reply.replayed else text.encode())
        written += 1
    assert written and replayed
    assert await sweep + await retention.sweep(NOW) == many, "what a write held at that moment goes next time"
    async with database.connection() as connection:
        assert await connection.raw.fetchval("SELECT count(*) FROM idempotency WHERE reply = 'old'") == 0


async def test_an_instant_before_all_clocks_forgets_nothing(database: Database, retention: Retention) -> None:
    await write(database, "k", "first")
    for year in (1, 1969, 1970):
        assert await retention.sweep(datetime.datetime(year, 1, 1, tzinfo=datetime.UTC)) == 0
    assert await retention.sweep(datetime.datetime(9999, 12, 31, tzinfo=datetime.UTC)) == 1


async def test_the_operator_sees_the_instant_and_the_deleted_counts(database: Database, retention: Retention) -> None:
    call = Call(Identity(OPERATOR, "operator"), "")
    await write(database, "k", "first")
    by_clock = await retention.SweepRetention(pb.SweepRetentionRequest(), call)
    assert by_clock.idempotency_keys == 0 and by_clock.now.ToDatetime().year >= 2026
    request = pb.SweepRetentionRequest(yes_for_all_companies=True)
    request.now.FromDatetime(datetime.datetime.now(datetime.UTC) + KEPT)
    answer = await retention.SweepRetention(request, call)
    assert (answer.idempotency_keys, answer.now) == (1, request.now)


async def test_retention_ahead_of_the_clock_is_refused_unless_it_is_confirmed(
    database: Database, retention: Retention
) -> None:
    await write(database, "k", "first")
    request = pb.SweepRetentionRequest()
    request.now.FromDatetime(datetime.datetime.now(datetime.UTC) + KEPT)
    with pytest.raises(Refusal, match="ahead of the clock: the sweep forgets the Idempotency-Keys") as refusal:
        await retention.SweepRetention(request, Call(Identity(OPERATOR, "operator"), ""))
    assert (refusal.value.status, refusal.value.field) == (400, "now")
    assert await retention.sweep(request.now.ToDatetime(datetime.UTC)) == 1, "it was still there"


async def test_the_plan_reads_the_due_rows_alone(database: Database, retention: Retention) -> None:
    await fill(database, 20 * BATCH, NOW, SECOND)
    async with database.connection() as connection:
        await connection.raw.execute("ANALYZE idempotency")
        values = [NOW - KEPT, NOW - KEPT, BATCH]
        plan = await connection.raw.fetch(f"EXPLAIN {retention._due.sql}", *values)
    assert "Index Scan using ix_idempotency_recorded_at" in "\n".join(row[0] for row in plan)


def test_slots_are_full_hours() -> None:
    assert (
        slot_of(NOW, PERIOD_SECONDS) == NOW == slot_of(NOW + datetime.timedelta(minutes=59, seconds=59), PERIOD_SECONDS)
    )
    assert slot_of(NOW - SECOND, PERIOD_SECONDS) == NOW - datetime.timedelta(hours=1)


async def test_a_start_does_the_work_of_the_last_slot_and_then_of_each() -> None:
    clock = [NOW + datetime.timedelta(minutes=20)]
    slots: list[datetime.datetime] = []

    async def work(slot: datetime.datetime) -> None:
        slots.append(slot)
        clock[0] = slot + datetime.timedelta(hours=1, milliseconds=-20)
        asyncio.get_running_loop().call_later(0.02, clock.__setitem__, 0, slot + datetime.timedelta(hours=1))

    task = asyncio.create_task(every_slot(work, lambda: clock[0]))
    async with asyncio.timeout(PATIENCE_SECONDS):
        while len(slots) < 3:  # noqa: ASYNC110 - polls a task
            await asyncio.sleep(0.01)
    task.cancel()
    assert slots[:3] == [NOW + datetime.timedelta(hours=n) for n in range(3)]
