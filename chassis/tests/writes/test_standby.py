"""A write is acknowledged once the synchronous standby has it, also by a replay.

A commit that is interrupted while it waits for the standby is seen by everyone on the primary all the same. An answer
from there would be lost with that server.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from typing import Any

import asyncpg
import pytest
import sqlalchemy as sa

from chassis.db.database import Connection, Database, DatabaseUnavailable
from chassis.db.statements import Statement, param
from chassis.messaging.outbox import Outbox, uuid7
from chassis.writes.audit import Audit
from chassis.writes.coalescing import CoalescingInsert, CoalescingWrite
from chassis.writes.commands import Command, CommandRunner
from chassis.writes.idempotency import Claim, Decision, IdempotentInsert, IdempotentWrite
from makeready.common.v1.documents_pb2 import Document
from testkit.folders import server_folder
from testkit.standbys import Pair, primary_and_standby

from ..contract import AddParcelRequest
from ..databases import make_tables
from ..parcels import COMPANY, audit, claims, clear, count, metadata, outbox, parcel, parcel_row, person

KEY = Claim(COMPANY, 9, "key", b"")
INSERT = IdempotentInsert(claims, parcel, outbox)
INSERT_TOGETHER = CoalescingInsert(claims, parcel, outbox)
ADD_EVENT = IdempotentWrite(
    claims,
    parcel,
    sa.select(parcel.c.id).where(parcel.c.id == param("parcel_id", sa.BigInteger)),
    inserts=[outbox],
)
COLLECT = CoalescingWrite(
    claims, parcel, sa.select(parcel.c.id, parcel.c.version), sets=("version", "status"), inserts=[outbox]
)


def event() -> dict[str, Any]:
    return {"event_id": uuid7(), "subject": "x.y", "message": b""}


async def insert(database: Database) -> Any:
    return await INSERT.write(database, KEY, 201, b"", {parcel: parcel_row(2), outbox: event()})


async def insert_checked(database: Database) -> Any:
    async def is_allowed(_connection: Connection) -> None:
        pass

    rows = {parcel: parcel_row(2), outbox: event()}
    return await INSERT.write_checked(database, KEY, 201, b"", rows, lock=1, check=is_allowed)


async def insert_together(database: Database) -> Any:
    return await INSERT_TOGETHER.write(database, KEY, 201, b"", {parcel: parcel_row(2), outbox: event()})


async def decide(database: Database) -> Any:
    return await ADD_EVENT.write(database, KEY, 1, lambda _: Decision(200, b"", {outbox: [event()]}), parcel_id=1)


async def decide_together(database: Database) -> Any:
    values = {"company_id": COMPANY, "id": 1, "new_version": 2, "new_status": "Collected"}
    return await COLLECT.change(database, KEY, 1, lambda _: Decision(200, b"", {outbox: [event()]}, values))


async def command(database: Database) -> Any:
    async def work(command: Command) -> Document:
        await command.publish_event("ticket.created", 1, command.now, b"{}")
        return Document(json=b"{}")

    runner = CommandRunner(database, claims, Audit(audit, database), Outbox("svc-parcels", outbox))
    return await runner.run(person(), AddParcelRequest(idempotency_key="key", label="a box"), Document, work)


Write = Callable[[Database], Awaitable[Any]]
WRITES = [insert, insert_checked, insert_together, decide, decide_together, command]


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with server_folder() as folder, primary_and_standby(folder) as running:
        yield running


@pytest.fixture(scope="module")
async def opened(pair: Pair) -> AsyncIterator[Database]:
    database = Database(pair.create_database("chassis_standby"), application="tests")
    await database.open()
    await make_tables(database, metadata)
    await pair.attach()
    yield database
    await database.close()


@pytest.fixture
async def database(opened: Database) -> Database:
    await clear(opened)
    await opened.execute(Statement(sa.insert(parcel).values(parcel_row(1))))
    return opened


async def answered(database: Database, write: Write) -> Any:
    """The answer to a client that sends its write again until it has one."""
    while True:
        try:
            return await write(database)
        except DatabaseUnavailable:
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.__name__)
async def test_a_write_whose_commit_was_interrupted_is_acknowledged_when_the_standby_has_it(
    pair: Pair, database: Database, write: Write
) -> None:
    pair.second.stop()
    writing = asyncio.create_task(answered(database, write))
    try:
        for _ in range(3):  # the commit of the write, and those of its replays
            await pair.interrupt(await before(writing, pair.waiting_commit()))
        assert await seen(pair) == 1
    finally:
        pair.second.start()
    reply = await writing
    assert getattr(reply, "replayed", True)
    assert (await count(database, claims), await count(database, outbox)) == (1, 1)


async def before(writing: asyncio.Task[Any], waiting: Coroutine[Any, Any, int]) -> int:
    """The process that waits; fails if the write is answered before."""
    looking = asyncio.create_task(waiting)
    await asyncio.wait({writing, looking}, return_when=asyncio.FIRST_COMPLETED)
    assert not writing.done(), "it was acknowledged without the standby"
    return await looking


async def seen(pair: Pair) -> int:
    """The claims that a reader sees on the first server."""
    reader = await asyncpg.connect(pair.first.url, database="chassis_standby")
    rows: int = await reader.fetchval("SELECT count(*) FROM idempotency")
    await reader.close()
    return rows
