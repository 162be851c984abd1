"""Reads of another context follow a write at once; if they can't, the write is answered all the same."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
import sqlalchemy as sa

from chassis.auth.clients import ServiceClient
from chassis.auth.identity import TokenSigner, make_keys
from chassis.messaging import handover as module
from chassis.messaging.handover import HANDED_OVER, Handover
from chassis.messaging.outbox import Outbox, OutboxEvent, outbox_table
from makeready.events.v1 import events_pb2 as pb
from testkit.grpc_servers import serve
from testkit.processes import free_port

OUTBOX = Outbox("svc-parcels", outbox_table(sa.MetaData()))
NOW = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)
REFERENCES = pb.References(units=[pb.UnitReference(id=3, company_id=7, version=2)])


def events() -> list[OutboxEvent]:
    """A write's events."""
    public = OUTBOX.public("turn.status_changed", company_id=7, entity_id=1, occurred_at=NOW, data=b"{}")
    return [OUTBOX.references(REFERENCES, company_id=7, occurred_at=NOW), public]


def outcomes() -> dict[str, float]:
    return {name: HANDED_OVER.labels(name)._value.get() for name in ("taken", "failed", "left")}


class Other:
    """The consumer. It answers once `goes_on` is set."""

    def __init__(self) -> None:
        self.port = 0
        self.taken: list[pb.Event] = []
        self.goes_on = asyncio.Event()

    async def TakeEvents(self, request: pb.TakeEventsRequest, _context: Any) -> pb.TakeEventsResponse:
        self.taken += map(pb.Event.FromString, request.messages)
        await self.goes_on.wait()
        return pb.TakeEventsResponse()


@pytest.fixture
async def other() -> AsyncIterator[Other]:
    consumer, server = Other(), grpc.aio.server()
    serve(server, pb.DESCRIPTOR.services_by_name["ConsumerService"], consumer)
    consumer.port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    yield consumer
    consumer.goes_on.set()
    await server.stop(0)


async def handover_to(port: int, folder: Path) -> Handover:
    make_keys(folder, [OUTBOX.producer])
    signer = TokenSigner(folder / f"{OUTBOX.producer}.jwk")
    return Handover(OUTBOX, ServiceClient("svc-orders", f"127.0.0.1:{port}", signer))


async def test_references_are_brought_before_the_answer_and_nothing_else(other: Other, tmp_path: Path) -> None:
    other.goes_on.set()
    handover, before = await handover_to(other.port, tmp_path), outcomes()
    OUTBOX.woken.clear()
    written = events()
    await handover.bring(written)
    assert [event.references for event in other.taken] == [REFERENCES]
    assert other.taken[0].event_id == str(written[0].event_id)
    assert OUTBOX.woken.is_set()
    await handover.bring(written[1:])
    await handover.bring([])
    assert len(other.taken) == 1
    assert outcomes() == before | {"taken": before["taken"] + 1}


async def test_a_consumer_that_hangs_is_left_alone_for_a_while(
    other: Other, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handover, before = await handover_to(other.port, tmp_path), outcomes()
    for _ in range(3):
        await handover.bring(events())  # returns, although nobody answers
    assert len(other.taken) == 1
    assert outcomes() == before | {"failed": before["failed"] + 1, "left": before["left"] + 2}
    monkeypatch.setattr(module, "PAUSE_SECONDS", 0.0)
    handover = await handover_to(other.port, tmp_path)
    await handover.bring(events())
    other.goes_on.set()
    await handover.bring(events())
    assert len(other.taken) == 3
    assert outcomes()["taken"] == before["taken"] + 1


async def test_a_consumer_that_is_away_fails_no_write(tmp_path: Path) -> None:
    handover, before = await handover_to(free_port(), tmp_path), outcomes()
    await handover.bring(events())
    await handover.bring(events())
    assert outcomes() == before | {"failed": before["failed"] + 1, "left": before["left"] + 1}
