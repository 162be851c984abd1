"""Ids reserved before their rows are written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import sqlalchemy as sa

from chassis.db.database import Database
from chassis.db.ids import BLOCK, LIFE_SECONDS, Ids
from testkit.plugin import PostgresServer

from ..databases import database_with

metadata = sa.MetaData()
SEQUENCE = sa.Sequence("thing_id", metadata=metadata)


@pytest.fixture(scope="module")
async def database(postgres_server: PostgresServer) -> AsyncIterator[Database]:
    async with database_with(postgres_server, "chassis_ids", metadata) as database:
        yield database


async def test_reserved_ids_are_ascending_and_never_given_twice(database: Database) -> None:
    ids = [Ids(database, SEQUENCE, block=3) for _ in range(2)]
    taken = [await ids[number % 2].take(size) for number, size in enumerate([1, 2, 5, 1, 7, 3])]
    assert all(block == sorted(block) for block in taken)
    flat = [reserved_id for block in taken for reserved_id in block]
    assert len(flat) == len(set(flat)) == 19


async def test_ids_taken_at_once_are_never_given_twice(database: Database) -> None:
    ids = Ids(database, SEQUENCE, block=5)
    taken = await asyncio.gather(*(ids.next() for _ in range(40)))
    assert len(set(taken)) == 40


async def test_a_block_costs_one_statement_however_many_ask_at_once(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids, statements = Ids(database, SEQUENCE, block=50), 0
    rows = database.rows

    async def counted(*args: object, **values: object) -> object:
        nonlocal statements
        statements += 1
        return await rows(*args, **values)  # type: ignore[arg-type]

    monkeypatch.setattr(database, "rows", counted)
    await asyncio.gather(*(ids.next() for _ in range(50)))
    assert statements == 1
    await ids.next()
    assert statements == 2


async def test_a_process_at_rest_keeps_no_ids_for_later(database: Database) -> None:
    """An id that waited in an idle process would appear below those that a walk has passed."""
    seconds = 0.0
    pods = [Ids(database, SEQUENCE, clock=lambda: seconds) for _ in range(3)]
    highest = 0
    for number in (0, 1, 2, 0, 0, 2, 1):
        taken = [await pods[number].next()]  # idle: exactly one
        for _ in range(13):
            taken.append(await pods[number].next())  # busy: from blocks
        assert highest < min(taken) and taken == sorted(taken)
        highest = max(taken)
        seconds += LIFE_SECONDS


async def test_one_at_rest_reserves_one_and_a_busy_one_a_block(database: Database) -> None:
    seconds = 0.0
    ids, other = (Ids(database, SEQUENCE, clock=lambda: seconds) for _ in range(2))
    first = await ids.next()
    assert await other.next() == first + 1
    busy = await ids.next()  # within a second: with a block
    assert (busy, await other.next()) == (first + 2, first + 2 + BLOCK)
    seconds += LIFE_SECONDS
    assert await ids.next() == first + 2 + 2 * BLOCK  # the rest of both blocks is dropped
