"""Concurrent requests share a statement, and each gets its own answer."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Sequence
from typing import Any

import asyncpg
import pytest
import sqlalchemy as sa
import structlog
from hypothesis import given, settings
from hypothesis import strategies as st

from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.messaging.outbox import Outbox, uuid7
from chassis.refusals import Refusal
from chassis.writes import coalescing
from chassis.writes.coalescing import AT_ONCE, Coalescer, CoalescingInsert
from chassis.writes.idempotency import Claim
from makeready.common.v1.documents_pb2 import WriteReply
from testkit import patience
from testkit.plugin import PostgresServer

from ..databases import database_with
from ..parcels import COMPANY, claims, clear, count, metadata, outbox, parcel, parcel_row


class Doubling:
    """Answers numbers with their double, and records which numbers shared a call."""

    def __init__(self, bad: Sequence[int] = (), passed_on: Sequence[int] = ()) -> None:
        self.batches: list[list[int]] = []
        self.begun: asyncio.Queue[list[int]] = asyncio.Queue()
        self.may_end = asyncio.Event()
        self.may_end.set()
        self.bad, self.passed_on = frozenset(bad), frozenset(passed_on)
        self.coalescer = Coalescer(self._several, self._alone)

    async def _several(self, numbers: Sequence[int]) -> list[int | None]:
        await self._work(list(numbers))
        if self.bad & set(numbers):
            raise ValueError("one of them is bad")
        return [None if number in self.passed_on else 2 * number for number in numbers]

    async def _alone(self, number: int) -> int:
        await self._work([number])
        if number in self.bad:
            raise ValueError(f"{number} is bad")
        return 2 * number

    async def _work(self, numbers: list[int]) -> None:
        self.batches.append(numbers)
        self.begun.put_nowait(numbers)
        await self.may_end.wait()


async def test_a_request_that_comes_alone_is_answered_alone_at_once() -> None:
    doubling = Doubling()
    assert await doubling.coalescer.ask(4) == 8
    assert doubling.batches == [[4]]


async def test_requests_that_come_while_one_is_answered_share_the_next_batch() -> None:
    doubling = Doubling()
    doubling.may_end.clear()
    first = asyncio.create_task(doubling.coalescer.ask(1))
    await doubling.begun.get()
    others = [asyncio.create_task(doubling.coalescer.ask(number)) for number in (2, 3, 4)]
    await asyncio.sleep(0)
    doubling.may_end.set()
    assert await asyncio.gather(first, *others) == [2, 4, 6, 8]
    assert doubling.batches == [[1], [2, 3, 4]]


async def test_after_a_shared_batch_those_that_come_a_moment_later_share_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(coalescing, "BUSY_SECONDS", 60)
    doubling = Doubling()
    await asyncio.gather(*map(doubling.coalescer.ask, (1, 2)))
    gathering, gathered = asyncio.Event(), asyncio.Event()

    async def gather(seconds: float) -> None:
        assert seconds == coalescing.GATHER_SECONDS
        gathering.set()
        await gathered.wait()

    with monkeypatch.context() as patched:
        patched.setattr(asyncio, "sleep", gather)
        third = asyncio.create_task(doubling.coalescer.ask(3))
        async with asyncio.timeout(patience.PATIENCE_SECONDS):
            await gathering.wait()
    fourth = asyncio.create_task(doubling.coalescer.ask(4))
    await asyncio.sleep(0)
    gathered.set()
    assert [await third, await fourth] == [6, 8]
    assert doubling.batches == [[1, 2], [3, 4]]


async def test_a_request_that_comes_later_does_not_wait_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coalescing, "BUSY_SECONDS", 0)
    monkeypatch.setattr(coalescing, "GATHER_SECONDS", 3600)
    doubling = Doubling()
    await asyncio.gather(*map(doubling.coalescer.ask, (1, 2)))
    async with asyncio.timeout(patience.PATIENCE_SECONDS):
        assert await doubling.coalescer.ask(3) == 6


async def test_the_first_request_waits_for_others_while_its_caller_says_that_they_come() -> None:
    doubling = Doubling()
    is_busy = True
    coalescer = Coalescer(doubling._several, doubling._alone, is_busy=lambda: is_busy)
    first = asyncio.create_task(coalescer.ask(1))
    await asyncio.sleep(0)
    second = asyncio.create_task(coalescer.ask(2))
    assert [await first, await second] == [2, 4]
    assert doubling.batches == [[1, 2]]


async def test_a_batch_that_hangs_does_not_hold_up_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coalescing, "PATIENCE_SECONDS", 0.001)
    doubling = Doubling()
    doubling.may_end.clear()
    hanging = asyncio.create_task(doubling.coalescer.ask(1))
    await doubling.begun.get()
    later = asyncio.create_task(doubling.coalescer.ask(2))
    async with asyncio.timeout(patience.PATIENCE_SECONDS):
        assert await doubling.begun.get() == [2]
    assert not hanging.done()
    doubling.may_end.set()
    assert [await hanging, await later] == [2, 4]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=80), st.sets(st.integers(0, 9)), st.sets(st.integers(0, 9)))
async def test_each_request_gets_its_own_answer_or_fault(
    numbers: list[int], bad: set[int], passed_on: set[int]
) -> None:
    doubling = Doubling(sorted(bad), sorted(passed_on - bad))
    answers = await asyncio.gather(*map(doubling.coalescer.ask, numbers), return_exceptions=True)
    wanted = [f"{number} is bad" if number in bad else str(2 * number) for number in numbers]
    assert list(map(str, answers)) == wanted
    assert max(map(len, doubling.batches)) <= AT_ONCE


async def test_a_caller_that_gives_up_leaves_the_others_their_answers() -> None:
    doubling = Doubling()
    doubling.may_end.clear()
    tasks = [asyncio.create_task(doubling.coalescer.ask(number)) for number in (1, 2, 3)]
    await doubling.begun.get()
    tasks[1].cancel()
    doubling.may_end.set()
    async with asyncio.timeout(patience.PATIENCE_SECONDS):
        first, second, third = await asyncio.gather(*tasks, return_exceptions=True)
    assert first == 2 and third == 6 and isinstance(second, asyncio.CancelledError)


# The statement of many writes

INSERT = CoalescingInsert(claims, parcel, outbox)
EVENTS = Outbox("svc-parcels", outbox)
Write = tuple[Claim, bytes, dict[sa.Table, dict[str, Any]]]


@pytest.fixture(scope="module")
async def opened(postgres_server: PostgresServer) -> AsyncIterator[Database]:
    async with database_with(postgres_server, "chassis_coalescing", metadata) as database:
        yield database


@pytest.fixture
async def database(opened: Database) -> Database:
    await clear(opened)
    return opened


def a_write(entity_id: int, key: str, **values: Any) -> Write:
    event = {"event_id": uuid7(), "subject": "events.svc-parcels.public.parcel.received", "message": b""}
    rows = {parcel: parcel_row(entity_id, **values), outbox: event}
    return Claim(COMPANY, 1, key, b"the request"), str(entity_id).encode(), rows


async def write_at_once(database: Database, *writes: Write) -> list[Any]:
    """The first is written alone, the others in one statement."""
    asked = (INSERT.write(database, claim, 201, reply, rows) for claim, reply, rows in writes)
    return await asyncio.gather(*asked, return_exceptions=True)


async def stored(database: Database) -> list[int]:
    return [await count(database, table) for table in (parcel, outbox, claims)]


async def test_writes_at_once_are_all_done(database: Database) -> None:
    writes = [a_write(number, f"key {number}") for number in range(1, 2 * AT_ONCE)]
    replies = await write_at_once(database, *writes)
    assert replies == [WriteReply(status=201, body=reply) for _, reply, _ in writes]
    assert await stored(database) == [len(writes)] * 3


async def test_one_key_at_once_is_written_once(database: Database) -> None:
    _, *replies = await write_at_once(database, a_write(1, "other"), *(a_write(n, "same") for n in range(2, 20)))
    fresh = [one for one in replies if isinstance(one, WriteReply) and not one.replayed]
    replayed = [one for one in replies if isinstance(one, WriteReply) and one.replayed]
    refused = [one for one in replies if isinstance(one, Refusal) and one.code == "idempotency_in_progress"]
    assert len(fresh) == 1 and len(fresh) + len(replayed) + len(refused) == 18
    assert {one.body for one in replayed} <= {fresh[0].body}
    assert await stored(database) == [2, 2, 2]


async def test_a_key_used_for_another_request_is_refused_alone(database: Database) -> None:
    await write_at_once(database, a_write(1, "used"))
    claim, reply, rows = a_write(2, "used")
    other = (dataclasses.replace(claim, fingerprint=b"another request"), reply, rows)
    *fresh, refused = await write_at_once(database, a_write(3, "a"), a_write(4, "b"), other)
    assert isinstance(refused, Refusal) and refused.code == "idempotency_mismatch"
    assert [one.replayed for one in fresh] == [False, False]
    assert await stored(database) == [3, 3, 3]


async def test_a_row_that_the_database_refuses_fails_alone_and_is_not_logged(database: Database) -> None:
    writes = [a_write(number, f"key {number}") for number in range(1, 6)]
    writes[3] = a_write(4, "key 4", label="longer than a label may be")
    with structlog.testing.capture_logs() as logs:
        replies = await write_at_once(database, *writes)
    assert isinstance(replies.pop(3), asyncpg.CheckViolationError)
    assert [one.replayed for one in replies] == [False] * 4
    assert [one["reason"] for one in logs] == ["CheckViolationError"] and "longer" not in str(logs)
    assert await stored(database) == [4, 4, 4]


class HeldClaim(Claim):
    """A claim whose lock another transaction holds."""

    @property
    def lock(self) -> int:
        return 4711


@pytest.mark.parametrize("held", [0, 1])
async def test_of_one_key_twice_in_a_statement_the_one_that_got_the_lock_is_kept(held: int, database: Database) -> None:
    writes = [a_write(number, "same") for number in (1, 2)]
    claim, reply, rows = writes[held]
    writes[held] = (HeldClaim(*dataclasses.astuple(claim)), reply, rows)
    some = [coalescing._Write(database, claim, 201, reply, rows) for claim, reply, rows in writes]
    async with database.transaction("SELECT pg_advisory_xact_lock(4711)"):
        answers = await INSERT._write_several(some)
    done = 1 - held
    assert answers[held] is None and answers[done] == WriteReply(status=201, body=writes[done][1])
    assert await database.value(Statement(sa.select(parcel.c.id))) == done + 1
    stored_reply = await INSERT.stored(database, writes[done][0])
    assert stored_reply is not None and stored_reply.body == writes[done][1]
    assert await stored(database) == [1, 1, 1]


async def test_a_key_in_flight_leaves_no_claim_behind(database: Database) -> None:
    """It leaves no row either: its caller gets the refusal, and the others are served."""
    claim, reply, rows = a_write(2, "held")
    writes = [a_write(1, "first"), (claim, reply, rows), a_write(3, "third")]
    some = [coalescing._Write(database, claim, 201, reply, rows) for claim, reply, rows in writes]
    async with database.transaction(f"SELECT pg_advisory_xact_lock({claim.lock})"):
        answers = await INSERT._write_several(some)
    assert [answer is None for answer in answers] == [False, True, False]
    assert await INSERT.stored(database, claim) is None and await stored(database) == [2, 2, 2]
