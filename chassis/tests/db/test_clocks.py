"""Writes are refused while the process's clock and PostgreSQL's are five minutes apart or more; reads go on."""

from __future__ import annotations

import datetime
from collections.abc import AsyncIterator
from typing import Any

import pytest
import sqlalchemy as sa
import structlog
from hypothesis import given
from hypothesis import strategies as st

from chassis.auth.identity import INTEGRATION, Identity
from chassis.db import clocks
from chassis.db.database import ClockSkew, Database
from chassis.db.statements import Statement
from chassis.schedule import instants
from chassis.writes import idempotency
from chassis.writes.coalescing import CoalescingInsert
from testkit.alarms import check_fires, own
from testkit.plugin import PostgresServer

from ..databases import make_tables

METADATA = sa.MetaData()
CLAIMS = idempotency.ledger(METADATA)
NOTE = sa.Table("note", METADATA, sa.Column("id", sa.BigInteger, primary_key=True))
COUNT = Statement(sa.select(sa.func.count()).select_from(NOTE))
ADD = "INSERT INTO note SELECT coalesce(max(id), 0) + 1 FROM note"
HOUR = 3600.0
CALLER = Identity(INTEGRATION, "gateway", 7, 1, "write", 3)


class Shifted:
    """The real clock, and the uptime, moved by some seconds."""

    def __init__(self) -> None:
        self.by = 0.0
        self.up_by = 0.0

    def now(self) -> datetime.datetime:
        return instants.now() + datetime.timedelta(seconds=self.by)

    def up(self) -> float:
        return clocks.uptime() + self.up_by


@pytest.fixture
def clock() -> Shifted:
    return Shifted()


@pytest.fixture(scope="module")
async def url(postgres_server: PostgresServer) -> str:
    database = Database(postgres_server.create_database("chassis_clocks"), application="tests")
    await database.open()
    await make_tables(database, METADATA)
    await database.close()
    return database.url


@pytest.fixture
async def database(url: str, clock: Shifted) -> AsyncIterator[Database]:
    opened = Database(url, application="tests", clock=clock.now)
    opened._clocks.up = clock.up
    await opened.open()
    async with opened.connection() as connection:
        await connection.raw.execute("TRUNCATE note, idempotency")
    yield opened
    await opened.close()


async def add(database: Database) -> None:
    async with database.transaction() as connection:
        await connection.raw.execute(ADD)


async def count(database: Database) -> int:
    async with database.transaction(writes=False) as connection:
        rows: int = await connection.value(COUNT)
    assert rows == await database.value(COUNT)
    return rows


@pytest.mark.parametrize("by", [HOUR, -HOUR, 320.0, -320.0])
async def test_a_clock_that_jumps_writes_nothing_until_it_is_right_again(
    database: Database, clock: Shifted, by: float
) -> None:
    await add(database)
    clock.by = by
    for _ in range(3):
        with pytest.raises(ClockSkew):
            await add(database)
        assert await count(database) == 1
    clock.by = 0
    await add(database)
    assert await count(database) == 2


@pytest.mark.parametrize("by", [290.0, -290.0])
async def test_a_small_difference_is_accepted_and_asks_nothing(database: Database, clock: Shifted, by: float) -> None:
    asked_at = database._clocks.asked_at
    clock.by = by
    await add(database)
    assert (await count(database), database._clocks.asked_at) == (1, asked_at)


async def test_a_process_that_starts_with_a_wrong_clock_writes_nothing(url: str, clock: Shifted) -> None:
    clock.by = -HOUR
    late = Database(url, application="tests", clock=clock.now)
    await late.open()
    with pytest.raises(ClockSkew):
        await add(late)
    await late.close()


async def test_a_clock_that_jumps_within_a_transaction_leaves_nothing(database: Database, clock: Shifted) -> None:
    with pytest.raises(ClockSkew):
        async with database.transaction() as connection:
            await connection.raw.execute(ADD)
            clock.by = HOUR
    assert await count(database) == 0
    clock.by = 0
    await add(database)


async def test_a_clock_that_was_set_right_before_the_next_comparison_is_believed(
    database: Database, clock: Shifted
) -> None:
    """The machine slept, or its uptime stood still: only PostgreSQL knows, and it is asked before a refusal."""
    clock.up_by = -HOUR
    database._clocks.asked_at -= 2 * HOUR
    assert database._clocks.are_skewed
    await add(database)
    assert await count(database) == 1 and not database._clocks.are_skewed


async def test_writes_ask_at_most_once_a_second(database: Database, clock: Shifted) -> None:
    clock.by, clock.up_by = HOUR, 2 * clocks.RETRY_SECONDS
    frozen = clock.up()
    database._clocks.up = lambda: frozen
    questions: list[float] = []
    learn = database._clocks.learn

    def counted(before: float, theirs: datetime.datetime, after: float) -> None:
        questions.append(before)
        learn(before, theirs, after)

    database._clocks.learn = counted  # type: ignore[method-assign]
    for _ in range(20):
        with pytest.raises(ClockSkew):
            await add(database)
    assert len(questions) == 1


@pytest.mark.parametrize("kind", [idempotency.IdempotentInsert, CoalescingInsert])
async def test_a_write_of_one_statement_is_refused_and_a_replay_is_answered(
    database: Database, clock: Shifted, kind: Any
) -> None:
    form = kind(CLAIMS, NOTE)
    first, second = (idempotency.claim(CALLER, key, "POST /notes", b"{}") for key in ("first", "second"))
    await form.write(database, first, 201, b"1", {NOTE: {"id": 1}})
    clock.by = HOUR
    with pytest.raises(ClockSkew):
        await form.write(database, second, 201, b"2", {NOTE: {"id": 2}})
    assert (await form.write(database, first, 201, b"3", {NOTE: {"id": 3}})).body == b"1"
    assert await count(database) == 1
    clock.by = 0
    assert (await form.write(database, second, 201, b"2", {NOTE: {"id": 2}})).body == b"2"


async def test_it_is_logged_once_and_measured(database: Database, clock: Shifted) -> None:
    with structlog.testing.capture_logs() as lines:
        refused = clocks.REFUSED._value.get()
        clock.by = HOUR
        database._clocks.asked_at -= 2
        for _ in range(5):
            with pytest.raises(ClockSkew):
                await add(database)
        assert clocks.REFUSED._value.get() == refused + 5
        assert HOUR - 5 < clocks.AHEAD._value.get() <= HOUR
        clock.by = 0
        database._clocks.asked_at -= 2
        await add(database)
        async with database.connection() as connection:
            await database._compare_clocks(connection)
    assert [line["event"] for line in lines] == ["clocks_apart", "clocks_agree"]
    assert abs(clocks.AHEAD._value.get()) < 5


NOON = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)


@given(
    really=st.floats(-1e6, 1e6),
    latency=st.floats(0, 1e4),
    when=st.floats(0, 1),
    later=st.floats(0, 1e6),
)
def test_a_slow_answer_never_makes_the_clocks_seem_further_apart(
    really: float, latency: float, when: float, later: float
) -> None:
    """really: by how much the clock is ahead. when: the moment at which PostgreSQL read its own, within the latency."""
    up = 1000.0
    clock = clocks.ClockComparison(lambda: NOON + datetime.timedelta(seconds=up - 1000 + really), lambda: up)
    theirs = NOON + datetime.timedelta(seconds=when * latency)
    up += latency
    clock.learn(1000.0, theirs, up)
    up += later
    assert abs(clock.ahead) <= abs(really) + 1e-3
    assert clock.ahead * really >= -1e-3  # never on the other side
    assert abs(clock.ahead) >= abs(really) - latency - 1e-3


async def test_clocks_apart_fires_for_real(database: Database, clock: Shifted) -> None:
    await add(database)
    before = {"svc-tickets": own()}
    clock.by = HOUR
    database._clocks.asked_at -= 2
    with pytest.raises(ClockSkew):
        await add(database)
    check_fires("ClockApart", "WritesRefusedByClock", before=before, after={"svc-tickets": own()})
