"""Concurrent writes share a statement and its commit, and each gets its own answer."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest
import sqlalchemy as sa
import structlog

from chassis.db.coalescing import AT_ONCE
from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.messaging.outbox import Outbox, uuid7
from chassis.refusals import Refusal
from chassis.writes import coalescing
from chassis.writes.coalescing import CoalescingInsert
from chassis.writes.idempotency import Claim
from makeready.common.v1.documents_pb2 import WriteReply
from testkit.plugin import PostgresServer

from ..databases import database_with
from ..parcels import COMPANY, claims, clear, count, metadata, outbox, parcel, parcel_row

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
    writing = (INSERT.write(database, claim, 201, reply, rows) for claim, reply, rows in writes)
    return await asyncio.gather(*writing, return_exceptions=True)


async def stored(database: Database) -> list[int]:
    return [await count(database, table) for table in (parcel, outbox, claims)]


async def test_writes_at_once_are_all_done(database: Database) -> None:
    writes = [a_write(number, f"key {number}") for number in range(1, 2 * AT_ONCE)]
    replies = await write_at_once(database, *writes)
    assert replies == [WriteReply(status=201, body=reply) for _, reply, _ in writes]
    assert await stored(database) == [len(writes)] * 3


async def test_one_key_at_once_is_written_once(database: Database) -> None:
    _, *replies = await write_at_once(database, a_write(1, "other"), *(a_write(n, "same") for n in range(2, 20)))
    fresh = [reply for reply in replies if isinstance(reply, WriteReply) and not reply.replayed]
    replayed = [reply for reply in replies if isinstance(reply, WriteReply) and reply.replayed]
    refused = [reply for reply in replies if isinstance(reply, Refusal) and reply.code == "idempotency_in_progress"]
    assert len(fresh) == 1 and len(fresh) + len(replayed) + len(refused) == 18
    assert {reply.body for reply in replayed} <= {fresh[0].body}
    assert await stored(database) == [2, 2, 2]


async def test_a_key_used_for_another_request_is_refused_alone(database: Database) -> None:
    await write_at_once(database, a_write(1, "used"))
    claim, reply, rows = a_write(2, "used")
    other = (dataclasses.replace(claim, fingerprint=b"another request"), reply, rows)
    *fresh, refused = await write_at_once(database, a_write(3, "a"), a_write(4, "b"), other)
    assert isinstance(refused, Refusal) and refused.code == "idempotency_mismatch"
    assert [answer.replayed for answer in fresh] == [False, False]
    assert await stored(database) == [3, 3, 3]


async def test_a_row_that_the_database_refuses_fails_alone_and_is_not_logged(database: Database) -> None:
    writes = [a_write(number, f"key {number}") for number in range(1, 6)]
    writes[3] = a_write(4, "key 4", label="longer than a label may be")
    with structlog.testing.capture_logs() as logs:
        replies = await write_at_once(database, *writes)
    assert isinstance(replies.pop(3), asyncpg.CheckViolationError)
    assert [reply.replayed for reply in replies] == [False] * 4
    assert [reply["reason"] for reply in logs] == ["CheckViolationError"] and "longer" not in str(logs)
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
    batch = [coalescing._Write(database, claim, 201, reply, rows, (), {}) for claim, reply, rows in writes]
    async with database.transaction("SELECT pg_advisory_xact_lock(4711)"):
        answers = await INSERT._write_several(batch)
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
    batch = [coalescing._Write(database, claim, 201, reply, rows, (), {}) for claim, reply, rows in writes]
    async with database.transaction(f"SELECT pg_advisory_xact_lock({claim.lock})"):
        answers = await INSERT._write_several(batch)
    assert [answer is None for answer in answers] == [False, True, False]
    assert await INSERT.stored(database, claim) is None and await stored(database) == [2, 2, 2]
