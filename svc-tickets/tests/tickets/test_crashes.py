"""Kills the process at each failpoint: a create has one effect and one event after a retry."""

from __future__ import annotations

import asyncio
import json
import secrets
from typing import Any

import grpc
import pytest
from sqlalchemy import func, select

from chassis.db.database import Database
from chassis.db.statements import Statement
from makeready.tickets.v1 import tickets_pb2 as pb
from svc_tickets import tables as t

from .changing import events_of

pytestmark = [pytest.mark.chaos, pytest.mark.usefixtures("places")]

POINTS = ["write-before-statement", "write-after-commit", "relay-claimed", "relay-published"]


@pytest.mark.parametrize("point", POINTS)
async def test_a_create_cut_off_at_any_point_happens_once(
    service: Any, client: Any, database: Database, own_nats: Any, point: str
) -> None:
    service.stop()
    # The rows that a killed relay had claimed wait for its lease.
    service.start(MAKEREADY_KILL_AT=point, MAKEREADY_RELAY_LEASE_SECONDS="1")
    title = f"Cut off {secrets.token_hex(6)}"
    body = json.dumps({"unit_id": 100, "title": title, "category": "Leak"}).encode()
    request = pb.CreateTicketRequest(idempotency_key=title, body=body)
    try:
        await client("CreateTicket", request)
    except grpc.aio.AioRpcError as error:
        assert error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INTERNAL, grpc.StatusCode.CANCELLED)
    service.process.wait(20)
    assert service.process.returncode == -9, f"{point} was not reached"
    service.start()
    reply = (await client("CreateTicket", request)).reply
    again = (await client("CreateTicket", request)).reply
    assert reply.status == 201 and again.replayed and again.body == reply.body
    assert reply.replayed is (point != "write-before-statement")
    count = Statement(select(func.count()).select_from(t.ticket).where(t.ticket.c.title == title))
    assert await database.value(count) == 1
    mine = await events_of(database, json.loads(reply.body)["entity_id"])
    assert [event.public.event for event in mine] == ["ticket.created"]
    await published(database)


async def published(database: Database) -> None:
    import asyncio

    waiting = Statement(select(func.count()).where(t.outbox.c.published_at.is_(None)))
    for _ in range(250):
        if await database.value(waiting) == 0:
            return
        await asyncio.sleep(0.1)
    pytest.fail("the outbox did not empty")


async def test_writes_go_on_without_nats_and_the_events_come_after(
    client: Any, database: Database, own_nats: Any
) -> None:
    await published(database)
    own_nats.kill()
    try:
        titles = [f"Without NATS {secrets.token_hex(4)}" for _ in range(5)]
        for title in titles:
            body = json.dumps({"unit_id": 100, "title": title, "category": "Leak"}).encode()
            reply = (await client("CreateTicket", pb.CreateTicketRequest(idempotency_key=title, body=body))).reply
            assert reply.status == 201
        waiting = Statement(select(func.count()).where(t.outbox.c.published_at.is_(None)))
        assert await database.value(waiting) == 5
    finally:
        own_nats.start()
    await published(database)


async def test_postgresql_restarts_and_the_service_recovers_by_itself(client: Any, postgres_server: Any) -> None:
    postgres_server.kill()
    with pytest.raises(grpc.aio.AioRpcError) as fault:
        await client("GetTicket", pb.GetTicketRequest(ticket_id=1))
    assert fault.value.code() is grpc.StatusCode.UNAVAILABLE
    postgres_server.start()
    for attempt in range(600):
        try:
            await client("ListTickets", pb.ListTicketsRequest(limit=1))
            break
        except grpc.aio.AioRpcError:
            assert attempt < 599
            await asyncio.sleep(0.1)  # a pooler looks for its server once a second
