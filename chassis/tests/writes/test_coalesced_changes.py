"""Concurrent changes share two statements; whatever stands in the way of one is left to a transaction of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import sqlalchemy as sa
from asyncpg import Record

from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.messaging.outbox import uuid7
from chassis.refusals import Refusal, not_found
from chassis.writes.coalescing import CoalescingWrite
from chassis.writes.idempotency import Claim, Decision
from makeready.common.v1.documents_pb2 import WriteReply
from testkit.plugin import PostgresServer

from ..databases import database_with
from ..parcels import COMPANY, OTHER_COMPANY, claims, clear, metadata, outbox, parcel

GRAMS = sa.func.coalesce(parcel.c.grams, sa.text("0"), type_=sa.Integer).label("weight")
WEIGHED = CoalescingWrite(
    claims,
    parcel,
    sa.select(parcel.c.id, parcel.c.version, parcel.c.status, GRAMS),
    sets=("version", "status"),
    guards=[GRAMS],
    inserts=[outbox],
)
MANY = 20


@pytest.fixture(scope="module")
async def opened(postgres_server: PostgresServer) -> AsyncIterator[Database]:
    async with database_with(postgres_server, "chassis_changes_together", metadata) as database:
        yield database


@pytest.fixture
async def database(opened: Database) -> Database:
    await clear(opened)
    async with opened.connection() as connection:
        await connection.raw.execute("TRUNCATE idempotency, outbox, parcel")
        await connection.raw.execute(
            "INSERT INTO parcel (company_id, id, label, sender_id, created_at, updated_at, source)"
            f" SELECT {COMPANY}, n, 'Box', (SELECT min(id) FROM sender), now(), now(), 'api'"
            f" FROM generate_series(1, {MANY}) n"
        )
    return opened


class Deciding:
    """Collects a parcel, and notes how many decisions were made."""

    def __init__(self, parcel_id: int, to: str = "Collected", refuses: str = "") -> None:
        self.parcel_id, self.to, self.refuses = parcel_id, to, refuses
        self.times = 0

    def __call__(self, row: Record | None) -> Decision:
        self.times += 1
        if row is None:
            raise not_found("parcel")
        if row["status"] == self.refuses:
            raise Refusal(422, "refused", "No.")
        version = row["version"] + (row["status"] != self.to)
        values = {
            "company_id": COMPANY,
            "id": self.parcel_id,
            "new_version": version,
            "new_status": self.to,
        }
        event = {"event_id": uuid7(), "subject": "x.y", "message": b"%d" % self.parcel_id}
        rows = {outbox: [event] * (row["status"] != self.to)}
        return Decision(200, b'{"version":%d}' % version, rows, values)


async def change(database: Database, decide: Deciding, key: str, fingerprint: bytes = b"") -> WriteReply:
    return await WEIGHED.change(database, Claim(COMPANY, 9, key, fingerprint), decide.parcel_id, decide)


async def stored(database: Database) -> dict[int, tuple[int, str]]:
    rows = await database.rows(Statement(sa.select(parcel.c.id, parcel.c.version, parcel.c.status)))
    return {row["id"]: (row["version"], row["status"]) for row in rows}


async def counts(database: Database) -> tuple[int, int]:
    """Claims and events."""
    return (
        await database.value(Statement(sa.select(sa.func.count()).select_from(claims))),
        await database.value(Statement(sa.select(sa.func.count()).select_from(outbox))),
    )


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was sent to the database."""
    sent: list[str] = []
    rows, transaction = Database.rows, Database.transaction

    async def noted(self: Database, statement: Statement, **values: Any) -> list[Any]:
        sent.append("together")
        return await rows(self, statement, **values)

    def alone(self: Database, *arguments: Any, **named: Any) -> Any:
        sent.append("alone")
        return transaction(self, *arguments, **named)

    monkeypatch.setattr(Database, "rows", noted)
    monkeypatch.setattr(Database, "transaction", alone)
    return sent


async def test_changes_of_several_rows_share_two_statements(database: Database, statements: list[str]) -> None:
    first = asyncio.ensure_future(change(database, Deciding(1), "0"))
    await asyncio.sleep(0)  # it is on its way, and the others wait for it
    replies = await asyncio.gather(first, *(change(database, Deciding(n), f"{n}") for n in range(2, MANY + 1)))
    assert statements == ["together"] * 4
    assert {reply.body for reply in replies} == {b'{"version":2}'} and not any(reply.replayed for reply in replies)
    assert set((await stored(database)).values()) == {(2, "Collected")}
    assert await counts(database) == (MANY, MANY)
    again = await asyncio.gather(*(change(database, Deciding(n), f"{n}") for n in range(2, MANY + 1)))
    assert all(reply.replayed and reply.body == b'{"version":2}' for reply in again)
    assert await counts(database) == (MANY, MANY)


async def test_what_changes_nothing_stores_its_reply_and_no_event(database: Database) -> None:
    replies = await asyncio.gather(*(change(database, Deciding(n, to="Received"), f"{n}") for n in range(1, 4)))
    assert {reply.body for reply in replies} == {b'{"version":1}'}
    assert await counts(database) == (3, 0)
    assert set((await stored(database)).values()) == {(1, "Received")}


async def test_changes_of_one_row_happen_one_after_another(database: Database) -> None:
    deciders = [Deciding(1, to=f"Shelf {n}") for n in range(MANY)]
    replies = await asyncio.gather(*(change(database, decider, f"{n}") for n, decider in enumerate(deciders)))
    assert sorted(decider.body for decider in replies) == sorted(b'{"version":%d}' % n for n in range(2, MANY + 2))
    assert (await stored(database))[1][0] == MANY + 1


async def test_one_key_has_one_effect_and_another_request_with_it_is_refused(database: Database) -> None:
    replies = await asyncio.gather(
        *(change(database, Deciding(n), "same", b"%d" % n) for n in (1, 2, 3)),
        *(change(database, Deciding(4), "other") for _ in range(5)),
        return_exceptions=True,
    )
    codes = [reply.code for reply in replies[:3] if isinstance(reply, Refusal)]
    assert len(codes) == 2 and set(codes) <= {"idempotency_mismatch", "idempotency_in_progress"}
    done = [reply for reply in replies[3:] if isinstance(reply, WriteReply)]
    assert [reply.replayed for reply in done].count(False) == 1
    assert await counts(database) == (2, 2)


async def test_a_refusal_is_decided_under_the_locks_and_leaves_nothing(database: Database) -> None:
    refused, missing = Deciding(1, refuses="Received"), Deciding(99)
    replies = await asyncio.gather(
        change(database, refused, "1"),
        change(database, missing, "2"),
        change(database, Deciding(2), "3"),
        return_exceptions=True,
    )
    assert [getattr(reply, "status", None) for reply in replies] == [422, 404, 200]
    assert refused.times == 2 and await counts(database) == (1, 1)


async def test_a_row_that_is_locked_or_changes_meanwhile_delays_nobody_else(database: Database) -> None:
    async with database.transaction() as holder:
        await holder.raw.execute("SELECT FROM parcel WHERE id = 1 FOR UPDATE")
        waiting = asyncio.ensure_future(change(database, Deciding(1), "1"))
        replies = await asyncio.gather(*(change(database, Deciding(n), f"{n}") for n in (2, 3)))
        assert len(replies) == 2 and not waiting.done()
        await holder.raw.execute("UPDATE parcel SET version = 7 WHERE id = 1")
    assert (await waiting).body == b'{"version":8}'


@pytest.mark.parametrize("changed", ["version = 5", "grams = 3"])
async def test_a_decision_is_made_anew_if_what_it_was_made_from_has_changed(database: Database, changed: str) -> None:
    late = Deciding(1)
    rows = Database.rows
    passed: list[int] = []

    async def noted(self: Database, statement: Statement, **values: Any) -> list[Any]:
        rows_read = await rows(self, statement, **values)
        if not passed:
            passed.append(1)
            async with self.connection() as connection:
                await connection.raw.execute(f"UPDATE parcel SET {changed} WHERE id = 1")
        return rows_read

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Database, "rows", noted)
        reply = await change(database, late, "1")
    assert late.times == 2
    assert reply.body == (b'{"version":6}' if "version" in changed else b'{"version":2}')
    assert await counts(database) == (1, 1)


async def test_companies_are_apart(database: Database) -> None:
    with pytest.raises(Refusal) as refused:
        await WEIGHED.change(database, Claim(OTHER_COMPANY, 9, "1", b""), 1, Deciding(1))
    assert refused.value.status == 404
    assert (await stored(database))[1] == (1, "Received")
