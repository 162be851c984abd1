"""Hints: gathered, sent after a commit, and none while NATS is away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import nats
import pytest

from chassis.db.database import Database
from chassis.messaging.hints import EACH_MAX, WAITING_MAX, Hints, gathered
from chassis.messaging.transport import Transport
from testkit.patience import PATIENCE_SECONDS
from testkit.plugin import PostgresServer, Server


@pytest.fixture(scope="module")
async def database(postgres_server: PostgresServer) -> AsyncIterator[Database]:
    database = Database(postgres_server.create_database("chassis_hints"), application="tests")
    await database.open()
    yield database
    await database.close()


def test_many_records_of_a_kind_share_one_hint() -> None:
    several = [(7, "unit", number) for number in range(1, EACH_MAX + 2)]
    few = [(8, "unit", number) for number in range(1, EACH_MAX + 1)]
    assert gathered([*several, *few, (7, "ticket", 5)]) == [(7, "ticket", 5), (7, "unit", 0), *few]


async def test_a_committed_change_makes_one_hint_and_a_rolled_back_one_none(
    database: Database, nats_server: Server
) -> None:
    transport = Transport(nats_server.url, "svc-hinting")
    hints = Hints("svc-hinting", transport)
    database.committed = hints.add
    running = [asyncio.create_task(transport.run()), asyncio.create_task(hints.run())]
    await asyncio.wait_for(transport.connected(), PATIENCE_SECONDS)
    listener = await nats.connect(nats_server.url)
    heard = await listener.subscribe("hints.svc-hinting.>")
    await listener.flush()
    with pytest.raises(ValueError, match="rolled back"):
        async with database.transaction() as connection:
            connection.changed.add((7, "parcel", 1))
            raise ValueError("rolled back")
    for _ in range(3):
        async with database.transaction() as connection:
            connection.changed.add((7, "parcel", 2))
    message = await heard.next_msg(timeout=20)
    assert (message.subject, message.data) == ("hints.svc-hinting.7.parcel.2", b"")
    async with database.transaction() as connection:
        connection.changed.add((7, "parcel", 3))
    while (message := await heard.next_msg(timeout=20)).subject.endswith(".2"):
        """A slow machine commits the three apart from each other."""
    assert message.subject == "hints.svc-hinting.7.parcel.3"
    for task in running:
        task.cancel()
    await transport.close()
    await listener.close()


async def test_while_nats_is_away_nothing_is_stored_and_nothing_waits() -> None:
    hints = Hints("svc-hinting", Transport("nats://127.0.0.1:1", "svc-hinting"))
    hints.add((7, "parcel", number) for number in range(WAITING_MAX))
    assert not hints._waiting
