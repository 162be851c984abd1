"""Idempotent writes: `IdempotentInsert`, which only inserts, and `IdempotentWrite`, which reads and decides first."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from types import SimpleNamespace
from typing import Any

import asyncpg
import pytest
import sqlalchemy as sa
from asyncpg import Record
from hypothesis import given
from hypothesis import strategies as st

from chassis.db.database import Connection, Database, DatabaseUnavailable
from chassis.db.rows import InsertMany
from chassis.db.statements import Statement, param
from chassis.messaging.outbox import uuid7
from chassis.refusals import Refusal, not_found
from chassis.writes.idempotency import Claim, Decision, IdempotentInsert, IdempotentWrite, KeyUses, claim, claim_of
from makeready.common.v1 import idempotency_pb2 as pb
from makeready.common.v1.documents_pb2 import WriteReply
from testkit.patience import PATIENCE_SECONDS
from testkit.plugin import PostgresServer

from ..databases import database_with
from ..parcels import COMPANY, OTHER_COMPANY, claims, clear, count, integration, metadata, outbox, parcel, parcel_row

INSERT = IdempotentInsert(claims, parcel, outbox)
COMPANY_ID, PARCEL_ID = param("company_id", sa.BigInteger), param("parcel_id", sa.BigInteger)
LOOK = sa.select(parcel.c.id, parcel.c.version, parcel.c.status).where(
    parcel.c.company_id == COMPANY_ID, parcel.c.id == PARCEL_ID
)
SET_STATUS = (
    sa.update(parcel)
    .where(parcel.c.company_id == param("of_company_id", sa.BigInteger), parcel.c.id == param("of_id", sa.BigInteger))
    .values(status=param("status", sa.Text), version=parcel.c.version + 1)
)
HAND_OVER = IdempotentWrite(
    claims,
    parcel,
    LOOK,
    inserts=[outbox],
    updates=[SET_STATUS],
    refusals={"outbox_pkey": lambda: Refusal(409, "event_taken", "Taken.")},
)


@pytest.fixture(scope="module")
async def opened(postgres_server: PostgresServer) -> AsyncIterator[Database]:
    async with database_with(postgres_server, "chassis_idempotency", metadata) as database:
        yield database


@pytest.fixture
async def database(opened: Database) -> Database:
    await clear(opened)
    await INSERT.write(opened, Claim(COMPANY, 9, "first", b""), 201, b"", {parcel: parcel_row(1), outbox: event()})
    async with opened.connection() as connection:
        await connection.raw.execute("TRUNCATE idempotency, outbox")
    return opened


def event() -> dict[str, Any]:
    return {"event_id": uuid7(), "subject": "events.svc-parcels.public.parcel.handed_over", "message": b""}


def a_claim(key: str = "key", body: bytes = b"{}", api_key_id: int = 1, company_id: int = COMPANY) -> Claim:
    return claim(integration(api_key_id, company_id).identity, key, "POST /parcels/1/hand-over", body)


class HandOver:
    """The rule: an existing parcel is handed over, once."""

    def __init__(self, database: Database, decides: Callable[[Record | None], Decision] | None = None) -> None:
        self.database, self._decides = database, decides
        self.times = 0

    def decide(self, row: Record | None) -> Decision:
        self.times += 1
        if self._decides is not None:
            return self._decides(row)
        if row is None:
            raise not_found("parcel")
        if row["status"] == "HandedOver":
            raise Refusal(422, "handed_over", "It was handed over.")
        return Decision(200, b"done", {outbox: [event()]}, handed_over(row["id"]))

    async def __call__(self, claimed: Claim | None = None, parcel_id: int = 1) -> WriteReply:
        claimed = claimed or a_claim()
        return await HAND_OVER.write(
            self.database, claimed, parcel_id, self.decide, company_id=claimed.company_id, parcel_id=parcel_id
        )


def handed_over(parcel_id: int, company_id: int = COMPANY) -> dict[str, Any]:
    return {"of_company_id": company_id, "of_id": parcel_id, "status": "HandedOver"}


async def stored(database: Database) -> list[int]:
    """The numbers of handed-over parcels, events, and claims."""
    handed = await count(database, parcel, parcel.c.status == sa.literal_column("'HandedOver'"))
    return [handed, await count(database, outbox), await count(database, claims)]


async def code_of(write: Any) -> str:
    with pytest.raises(Refusal) as refusal:
        await write
    return refusal.value.code


async def test_a_decision_updates_inserts_and_keeps_its_reply(database: Database) -> None:
    assert await HandOver(database)() == WriteReply(status=200, body=b"done")
    assert await stored(database) == [1, 1, 1]
    row = await database.row(Statement(LOOK), company_id=COMPANY, parcel_id=1)
    assert row is not None and tuple(row) == (1, 2, "HandedOver")


async def test_a_replay_is_answered_with_the_kept_reply_before_the_rule_is_asked(database: Database) -> None:
    write = HandOver(database)
    await write()
    assert await write() == WriteReply(status=200, body=b"done", replayed=True)
    assert write.times == 1 and await stored(database) == [1, 1, 1]


async def test_the_key_of_another_request_is_a_mismatch_before_the_rule_is_asked(database: Database) -> None:
    write = HandOver(database)
    await write()
    assert await code_of(write(a_claim(body=b'{"a":1}'))) == "idempotency_mismatch"
    assert await code_of(write(a_claim(body=b'{"a":1}'), parcel_id=404)) == "idempotency_mismatch"
    assert write.times == 1


async def test_what_the_rule_refuses_leaves_nothing_and_frees_the_key(database: Database) -> None:
    write = HandOver(database)
    assert await code_of(write(parcel_id=404)) == "not_found"
    assert await stored(database) == [0, 0, 0]
    assert not (await write()).replayed
    assert await code_of(write(a_claim("other"))) == "handed_over"
    assert await stored(database) == [1, 1, 1]


async def test_keys_are_the_callers_own(database: Database) -> None:
    """Another integration's or company's key is another key, and another company's parcel is not found."""
    await HandOver(database)()
    assert await code_of(HandOver(database)(a_claim(api_key_id=2))) == "handed_over"
    assert await code_of(HandOver(database)(a_claim(company_id=OTHER_COMPANY))) == "not_found"


async def test_a_decision_may_write_nothing_but_its_reply(database: Database) -> None:
    same = Decision(200, b"as it was", values={**handed_over(1), "of_id": 0})
    await HandOver(database, lambda _row: same)()
    assert await stored(database) == [0, 0, 1]
    assert (await HandOver(database)()).body == b"as it was"


async def test_a_decision_may_insert_several_rows(database: Database) -> None:
    several = Decision(200, b"", {outbox: [event(), event(), event()]}, handed_over(1))
    await HandOver(database, lambda _row: several)()
    assert await stored(database) == [1, 3, 1]


async def test_of_two_who_decide_on_one_row_the_second_sees_what_the_first_did(database: Database) -> None:
    done = await asyncio.gather(*(HandOver(database)(a_claim(f"{n}")) for n in range(4)), return_exceptions=True)
    assert sum(isinstance(outcome, WriteReply) for outcome in done) == 1
    assert [outcome.code for outcome in done if isinstance(outcome, Refusal)] == ["handed_over"] * 3
    assert await stored(database) == [1, 1, 1]


async def test_a_row_that_comes_after_the_lock_is_not_decided_on(database: Database) -> None:
    """Nothing holds it: a rival could decide on it at the same time."""
    async with database.transaction() as rival:
        # The write looks for the row to lock, finds none, and then waits for the claims.
        await rival.raw.execute("LOCK TABLE idempotency IN ACCESS EXCLUSIVE MODE")
        await InsertMany(parcel, parcel.c.keys()).run(rival, [parcel_row(2)])
        writing = asyncio.create_task(HandOver(database)(parcel_id=2))
        waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'idempotency'::regclass"
        async with asyncio.timeout(60):
            while not await rival.raw.fetchval(waiting):  # noqa: ASYNC110 - a lock sets no event
                await asyncio.sleep(0.01)
    assert await code_of(writing) == "not_found"
    assert not (await HandOver(database)(parcel_id=2)).replayed


def held(database: Database, key: str = "key") -> AbstractAsyncContextManager[Connection]:
    """A transaction that holds the key's lock."""
    return database.transaction(f"SELECT pg_advisory_xact_lock({a_claim(key).lock})")


async def test_a_key_in_flight_is_refused_at_once_and_waits_for_no_row(database: Database) -> None:
    async with held(database) as connection:
        await connection.raw.execute("SELECT FROM parcel FOR UPDATE")
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await code_of(HandOver(database)()) == "idempotency_in_progress"
    assert not (await HandOver(database)()).replayed


async def test_a_constraint_that_a_rival_breaks_is_the_refusal_that_was_named(database: Database) -> None:
    taken = event()
    await INSERT.write(database, a_claim("other"), 201, b"", {parcel: parcel_row(2), outbox: taken})
    twice = Decision(200, b"", {outbox: [taken]}, handed_over(1))
    assert await code_of(HandOver(database, lambda _row: twice)()) == "event_taken"
    assert await stored(database) == [0, 1, 1]


async def test_an_unexpected_constraint_is_a_fault(database: Database) -> None:
    bad = Decision(200, b"", {}, {**handed_over(1), "status": None})
    with pytest.raises(asyncpg.NotNullViolationError):
        await HandOver(database, lambda _row: bad)()
    assert await stored(database) == [0, 0, 0]


class Lost:
    """Ends the connection just before or just after the commit of a transaction."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, after_commit: bool) -> None:
        execute = Connection.execute

        async def dies(connection: Connection, statement: Statement, **values: Any) -> str:
            done = await execute(connection, statement, **values)
            if statement is HAND_OVER._write:
                if after_commit:
                    await connection.raw.execute("COMMIT")
                await connection.raw.execute("SELECT pg_terminate_backend(pg_backend_pid())")
            return done

        monkeypatch.setattr(Connection, "execute", dies)


@pytest.mark.parametrize("after_commit", [False, True])
async def test_of_a_write_whose_connection_was_lost_the_claim_knows_whether_it_happened(
    after_commit: bool, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        Lost(patch, after_commit)
        if after_commit:
            assert await HandOver(database)() == WriteReply(status=200, body=b"done", replayed=True)
        else:
            with pytest.raises(DatabaseUnavailable):
                await HandOver(database)()
    assert await stored(database) == ([1, 1, 1] if after_commit else [0, 0, 0])


# IdempotentInsert


async def insert(database: Database, claimed: Claim, entity_id: int) -> WriteReply:
    rows = {parcel: parcel_row(entity_id), outbox: event()}
    return await INSERT.write(database, claimed, 201, b"%d" % entity_id, rows)


async def test_an_insert_is_done_once_a_key(database: Database) -> None:
    assert await insert(database, a_claim(), 2) == WriteReply(status=201, body=b"2")
    assert await insert(database, a_claim(), 3) == WriteReply(status=201, body=b"2", replayed=True)
    assert await code_of(insert(database, a_claim(body=b"[]"), 4)) == "idempotency_mismatch"
    assert [await count(database, table) for table in (parcel, outbox, claims)] == [2, 1, 1]


async def test_of_inserts_with_one_key_at_once_one_happens(database: Database) -> None:
    done: Sequence[Any] = await asyncio.gather(
        *(insert(database, a_claim(), number) for number in range(2, 12)), return_exceptions=True
    )
    fresh = [outcome for outcome in done if isinstance(outcome, WriteReply) and not outcome.replayed]
    assert len(fresh) == 1
    assert all(outcome.body == fresh[0].body for outcome in done if isinstance(outcome, WriteReply))
    assert {outcome.code for outcome in done if isinstance(outcome, Refusal)} <= {"idempotency_in_progress"}
    assert [await count(database, table) for table in (parcel, outbox, claims)] == [2, 1, 1]


async def test_a_service_says_what_a_key_was_used_for(database: Database) -> None:
    uses = KeyUses(database, claims)

    async def use(api_key_id: int = 1, company_id: int = COMPANY) -> pb.KeyUse.ValueType:
        request = pb.GetKeyUseRequest(idempotency_key=a_claim().idempotency_key)
        return (await uses.GetKeyUse(request, integration(api_key_id, company_id))).use

    assert await use() == pb.KEY_USE_FREE
    async with held(database):
        assert await use() == pb.KEY_USE_IN_PROGRESS
    assert await code_of(HandOver(database)(parcel_id=404)) == "not_found"
    assert await use() == pb.KEY_USE_FREE, "a refusal uses no key"
    await HandOver(database)()
    assert await use() == pb.KEY_USE_USED
    assert await use(api_key_id=2) == pb.KEY_USE_FREE
    assert await use(company_id=OTHER_COMPANY) == pb.KEY_USE_FREE
    assert await stored(database) == [1, 1, 1]


@pytest.mark.parametrize(
    ("used_elsewhere", "code"),
    [
        (pb.KEY_USE_UNSPECIFIED, ""),
        (pb.KEY_USE_FREE, ""),
        (pb.KEY_USE_IN_PROGRESS, "idempotency_in_progress"),
        (pb.KEY_USE_USED, "idempotency_mismatch"),
    ],
)
def test_a_key_that_another_service_has_makes_no_claim(used_elsewhere: pb.KeyUse.ValueType, code: str) -> None:
    request = SimpleNamespace(idempotency_key="key", used_elsewhere=used_elsewhere)
    who = integration().identity
    if not code:
        assert claim_of(request, who, "POST /tickets", b"{}") == claim(who, "key", "POST /tickets", b"{}")
        return
    with pytest.raises(Refusal) as refusal:
        claim_of(request, who, "POST /tickets", b"{}")
    assert (refusal.value.status, refusal.value.code) == (409, code)


async def test_an_insert_in_flight_is_refused_and_an_earlier_reply_can_be_read(database: Database) -> None:
    async with held(database):
        assert await code_of(insert(database, a_claim(), 2)) == "idempotency_in_progress"
        assert await code_of(INSERT.stored(database, a_claim())) == "idempotency_in_progress"
    assert await INSERT.stored(database, a_claim()) is None
    await insert(database, a_claim(), 2)
    kept = await INSERT.stored(database, a_claim())
    assert kept is not None and (kept.body, kept.replayed) == (b"2", True)


@given(st.integers(1, 2**62), st.integers(0, 2**62), st.text(st.characters(codec="ascii"), min_size=1, max_size=20))
def test_the_lock_of_a_claim_is_that_of_its_key_alone(company_id: int, api_key_id: int, key: str) -> None:
    claimed = Claim(company_id, api_key_id, key, b"")
    assert -(2**63) <= claimed.lock < 2**63
    assert dataclasses.replace(claimed, fingerprint=b"other").lock == claimed.lock
    assert dataclasses.replace(claimed, idempotency_key=key + "x").lock != claimed.lock
    assert dataclasses.replace(claimed, api_key_id=api_key_id + 1).lock != claimed.lock
