"""A write that goes on after its claim is stored: what it has done so far stands in place of its reply."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from chassis.db.database import Connection, Database
from chassis.writes.idempotency import Claim
from chassis.writes.resuming import ResumableWrite
from testkit.plugin import PostgresServer

from ..databases import database_with
from ..parcels import COMPANY, claims, clear, metadata

WRITE = ResumableWrite(claims)
CLAIM = Claim(COMPANY, 1, "key", b"the same request")


@pytest.fixture(scope="module")
async def opened(postgres_server: PostgresServer) -> AsyncIterator[Database]:
    async with database_with(postgres_server, "chassis_resuming", metadata) as database:
        yield database


@pytest.fixture
async def database(opened: Database) -> Database:
    await clear(opened)

    async def begin(_connection: Connection) -> bytes:
        return b"begun"

    await WRITE.once(opened, CLAIM, begin)
    return opened


async def stored(database: Database) -> bytes | None:
    reply = await WRITE.stored(database, CLAIM)
    return None if reply is None else reply.body


async def test_of_requests_that_go_on_at_once_the_first_ones_step_stays(database: Database) -> None:
    steps = [b"step %d" % number for number in range(8)]
    seen = set(await asyncio.gather(*(WRITE.replaced(database, CLAIM, b"begun", step) for step in steps)))
    assert len(seen) == 1 and seen == {await stored(database)} and seen < set(steps)


async def test_the_key_of_a_refused_write_is_free_unless_another_request_has_gone_on(database: Database) -> None:
    await WRITE.replaced(database, CLAIM, b"begun", b"done")
    await WRITE.drop(database, CLAIM, b"begun")
    assert await stored(database) == b"done"
    await WRITE.drop(database, CLAIM, b"done")
    assert await stored(database) is None
    assert await WRITE.replaced(database, CLAIM, b"done", b"more") is None
