"""A running service forgets idempotency keys after 30 days (spec 4.13): at its start, and on request."""

from __future__ import annotations

import asyncio
import datetime
import json
import secrets
from typing import Any

import pytest
from sqlalchemy import bindparam, update

from chassis.db.database import Database
from chassis.db.statements import TIME, Statement
from chassis.writes import idempotency
from makeready.common.v1 import retention_pb2
from makeready.tickets.v1 import tickets_pb2 as pb
from svc_tickets import tables as t
from testkit.patience import PATIENCE_SECONDS

from ..conftest import caller
from .changing import NOTE, SENT, change, history_of, kept, opened

pytestmark = pytest.mark.usefixtures("places")

MONTH = datetime.timedelta(days=30)
_AGE = Statement(
    update(t.idempotency)
    .values(recorded_at=bindparam("instant", type_=TIME))
    .where(t.idempotency.c.idempotency_key == bindparam("used", type_=t.idempotency.c.idempotency_key.type))
)


async def age(database: Database, key: str, instant: datetime.datetime) -> None:
    """Sets the time at which the key was used."""
    assert await database.execute(_AGE, instant=instant, used=key) == "UPDATE 1"


async def create(client: Any, key: str) -> Any:
    body = json.dumps({"unit_id": 100, "title": f"Tap {key}", "category": "Plumbing"}).encode()
    return (await client("CreateTicket", pb.CreateTicketRequest(idempotency_key=key, body=body))).reply


async def sweep(service: Any, operator: Any, now: datetime.datetime) -> int:
    """The number of keys that the service has forgotten as of an instant."""
    request = retention_pb2.SweepRetentionRequest(yes_for_all_companies=True)
    request.now.FromDatetime(now)
    async with service.channel() as channel:
        answer = await service.call(channel, request, operator)
    assert answer.now == request.now
    return int(answer.idempotency_keys)


async def test_a_start_forgets_what_fell_due_while_no_service_ran(
    client: Any, database: Database, service: Any
) -> None:
    old, young = secrets.token_hex(8), secrets.token_hex(8)
    firsts = {key: await create(client, key) for key in (old, young)}
    now = datetime.datetime.now(datetime.UTC)
    # A start sweeps as of the last full hour.
    await age(database, old, now - MONTH - datetime.timedelta(hours=1))
    await age(database, young, now - MONTH + datetime.timedelta(hours=1))
    await asyncio.to_thread(service.stop)
    await asyncio.to_thread(service.start)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while await kept(database, old):  # noqa: ASYNC110 - polls a process
            await asyncio.sleep(0.05)
    again = await create(client, young)
    assert again.replayed and again.body == firsts[young].body
    anew = await create(client, old)
    assert not anew.replayed and json.loads(anew.body)["entity_id"] > json.loads(firsts[old].body)["entity_id"]


async def test_a_change_that_was_made_a_month_ago_is_made_anew(
    client: Any, database: Database, service: Any, operator: Any
) -> None:
    ticket_id, key = await opened(client), secrets.token_hex(8)
    await change(client, ticket_id, SENT["Completed"], key)
    await change(client, ticket_id, SENT["Open"])
    now = datetime.datetime.now(datetime.UTC)
    await age(database, key, now - MONTH)
    assert await sweep(service, operator, now - datetime.timedelta(seconds=1)) == 0
    assert (await change(client, ticket_id, SENT["Completed"], key)).replayed
    assert await sweep(service, operator, now) == 1
    other = {"status": "Completed", "note": NOTE + " twice"}
    reply = await change(client, ticket_id, other, key)
    assert not reply.replayed and json.loads(reply.body)["status"] == "Completed"
    assert [entry.to_status for entry in await history_of(client, operator, ticket_id)][-1] == "Completed"


async def test_a_key_in_use_is_not_forgotten_and_its_write_not_held_up(
    client: Any, database: Database, service: Any, operator: Any
) -> None:
    ticket_id, key = await opened(client), secrets.token_hex(8)
    first = await change(client, ticket_id, SENT["On Hold"], key)
    now = datetime.datetime.now(datetime.UTC)
    await age(database, key, now - MONTH)
    used = idempotency.claim(caller(), key, f"PATCH /tickets/{ticket_id}", b"").lock
    async with database.transaction(f"SELECT pg_advisory_xact_lock({used})"):
        assert await sweep(service, operator, now) == 0
        assert await kept(database, key) == 1
        again = await change(client, ticket_id, SENT["On Hold"], key)
        assert again.replayed and again.body == first.body
    assert await sweep(service, operator, now) == 1 and await kept(database, key) == 0
