"""A status change happens once (spec 4.13): replays, mismatches, keys in progress, callers that disconnect."""

from __future__ import annotations

import asyncio
import json
import random
import secrets
import time
from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from chassis.auth.identity import Identity
from chassis.db.database import Database
from chassis.refusals import Refusal
from makeready.tickets.v1 import tickets_pb2 as pb

from .changing import (
    NOTE,
    SENT,
    change,
    events_of,
    held,
    history_of,
    kept,
    opened,
    refusal_of,
    served,
    until_it_waits,
)

pytestmark = pytest.mark.usefixtures("places")


@pytest.fixture
def quiet(service: Any) -> Iterator[None]:
    """Checks that the log shows no fault of the service, whatever happens to the caller."""
    before = len(service.log.read_text())
    yield
    lines = service.log.read_text()[before:]
    assert "Traceback" not in lines and "Resetting" not in lines, lines[-3000:]


async def test_the_same_request_gets_the_same_answer_whatever_happened_since(
    client: Any, database: Database, operator: Any
) -> None:
    ticket_id, key = await opened(client), secrets.token_hex(8)
    first = await change(client, ticket_id, SENT["Completed"], key)
    await change(client, ticket_id, SENT["Open"])
    events, now = await events_of(database, ticket_id), await served(client, ticket_id)
    for spelled in (SENT["Completed"], f' {{"note":  "{NOTE}", "status": "Comple\\u0074ed"}}'.encode()):
        again = await change(client, ticket_id, spelled, key)
        assert (again.status, again.body, again.replayed) == (200, first.body, True)
    assert not first.replayed and await served(client, ticket_id) == now != first.body
    assert await events_of(database, ticket_id) == events and len(await history_of(client, operator, ticket_id)) == 2


async def test_a_replay_needs_neither_a_photo_nor_an_administrator_any_more(
    client: Any, operator: Any, nobody: Any
) -> None:
    ticket_id, key = await opened(client), secrets.token_hex(8)
    first = await change(client, ticket_id, SENT["Completed"], key)
    policy = pb.UpdateTicketPolicyRequest(photo_required_to_complete=True)
    await client("UpdateTicketPolicy", policy, operator)
    try:
        for who in (None, nobody):
            again = await change(client, ticket_id, SENT["Completed"], key, who)
            assert again.replayed and again.body == first.body
    finally:
        await client("UpdateTicketPolicy", pb.UpdateTicketPolicyRequest(photo_required_to_complete=False), operator)


async def test_another_request_with_the_key_is_a_mismatch(client: Any) -> None:
    ticket_id, other, key = await opened(client), await opened(client), secrets.token_hex(8)
    await change(client, ticket_id, SENT["On Hold"], key)
    mismatches = [
        change(client, ticket_id, SENT["Open"], key),
        change(client, other, SENT["On Hold"], key),
        change(client, 10**15, SENT["On Hold"], key),
        change(client, ticket_id, SENT["On Hold"] | {"note": None}, key),
        client(
            "CreateTicket",
            pb.CreateTicketRequest(idempotency_key=key, body=b'{"unit_id":100,"title":"x","category":"HVAC"}'),
        ),
    ]
    for answer in mismatches:
        assert (await refusal_of(answer)).code == "idempotency_mismatch"
    assert json.loads(await served(client, other))["status"] == "Open"


async def test_a_key_belongs_to_one_api_key(client: Any) -> None:
    ticket_id, key = await opened(client), secrets.token_hex(8)
    await change(client, ticket_id, SENT["On Hold"], key)
    another = Identity("caller", "gateway", 7, 2, "write", 3)
    assert not (await change(client, ticket_id, SENT["In Progress"], key, another)).replayed


async def test_refusals_hold_no_key(client: Any, database: Database, nobody: Any, operator: Any) -> None:
    ticket_id, key = await opened(client), secrets.token_hex(8)
    policy = pb.UpdateTicketPolicyRequest(photo_required_to_complete=True)
    await client("UpdateTicketPolicy", policy, operator)
    try:
        assert (await refusal_of(change(client, ticket_id, SENT["Completed"], key))).status == 422
    finally:
        await client("UpdateTicketPolicy", pb.UpdateTicketPolicyRequest(photo_required_to_complete=False), operator)
    assert (await refusal_of(change(client, ticket_id, {"status": "Completed"}, key))).status == 422
    assert (await refusal_of(change(client, 10**15, SENT["Open"], key))).status == 404
    assert (await refusal_of(change(client, ticket_id, SENT["Open"], key, nobody))).code == "created_by_missing"
    assert await kept(database, key) == 0
    assert await history_of(client, operator, ticket_id) == []
    assert not (await change(client, ticket_id, SENT["On Hold"], key)).replayed


async def test_a_key_in_flight_is_refused_at_once_while_the_first_waits_for_its_ticket(
    client: Any, database: Database, operator: Any
) -> None:
    ticket_id, other, key = await opened(client), await opened(client), secrets.token_hex(8)
    async with held(database, ticket_id):
        first = asyncio.create_task(change(client, ticket_id, SENT["On Hold"], key))
        await until_it_waits(database)
        for target, sent in ((ticket_id, SENT["On Hold"]), (ticket_id, SENT["Open"]), (other, SENT["On Hold"])):
            refused = await refusal_of(change(client, target, sent, key))
            assert (refused.status, refused.code) == (409, "idempotency_in_progress")
        # Other keys and other tickets do not wait.
        assert (await change(client, other, SENT["On Hold"])).status == 200
        assert not first.done()
    assert not (await first).replayed
    assert (await change(client, ticket_id, SENT["On Hold"], key)).body == (await first).body
    assert len(await history_of(client, operator, ticket_id)) == 1


async def test_fifty_at_once_with_one_key_have_one_effect(client: Any, database: Database, operator: Any) -> None:
    ticket_id, key = await opened(client), secrets.token_hex(8)
    outcomes = await asyncio.gather(
        *(change(client, ticket_id, SENT["Completed"], key) for _ in range(50)), return_exceptions=True
    )
    refused = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    assert all(isinstance(refusal, Refusal) and refusal.code == "idempotency_in_progress" for refusal in refused)
    answered = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
    assert (
        len([reply for reply in answered if not reply.replayed]) == 1 and len({reply.body for reply in answered}) == 1
    )
    assert len(await history_of(client, operator, ticket_id)) == 1
    assert len(await events_of(database, ticket_id)) == 2


@pytest.mark.usefixtures("quiet")
async def test_a_ticket_held_for_too_long_is_a_fault_that_leaves_nothing(
    client: Any, database: Database, operator: Any
) -> None:
    ticket_id, key = await opened(client), secrets.token_hex(8)
    async with held(database, ticket_id):
        with pytest.raises(grpc.aio.AioRpcError) as fault:
            await change(client, ticket_id, SENT["On Hold"], key)
        assert fault.value.code() is grpc.StatusCode.UNAVAILABLE
        assert await kept(database, key) == 0
    assert not (await change(client, ticket_id, SENT["On Hold"], key)).replayed
    assert len(await history_of(client, operator, ticket_id)) == 1


@pytest.mark.usefixtures("quiet")
async def test_writes_that_wait_for_one_ticket_hold_up_no_reads(client: Any, database: Database) -> None:
    ticket_id = await opened(client)
    async with held(database, ticket_id):
        waiting = [asyncio.create_task(change(client, ticket_id, SENT["Open"])) for _ in range(20)]
        await until_it_waits(database, 5)  # of ten connections
        for _ in range(5):
            await client("ListTickets", pb.ListTicketsRequest(limit=1))
        assert not any(task.done() for task in waiting)
    assert {reply.status for reply in await asyncio.gather(*waiting)} == {200}


async def test_a_caller_that_leaves_at_any_moment_leaves_nothing_half_done(
    client: Any, database: Database, operator: Any
) -> None:
    ticket_id = await opened(client)
    started, moment = time.monotonic(), random.Random(4)
    await change(client, ticket_id, SENT["Open"])
    twice_as_long = 2 * (time.monotonic() - started)
    for number in range(120):
        key, sent = secrets.token_hex(8), SENT[["Completed", "Open"][number % 2]]
        leaving = asyncio.create_task(change(client, ticket_id, sent, key))
        await asyncio.sleep(moment.uniform(0, twice_as_long))
        leaving.cancel()
        await asyncio.wait({leaving})
        reply = None
        while reply is None:
            try:
                reply = await change(client, ticket_id, sent, key)
            except Refusal as refused:  # the first one is still in progress
                assert refused.code == "idempotency_in_progress"
        assert reply.body == await served(client, ticket_id)
    history = await history_of(client, operator, ticket_id)
    assert [entry.to_status for entry in history] == ["Completed", "Open"] * 60
    assert len(await events_of(database, ticket_id)) == 121


async def test_a_caller_that_leaves_while_it_waits_for_its_ticket_changes_nothing(
    client: Any, database: Database, operator: Any
) -> None:
    ticket_id, key = await opened(client), secrets.token_hex(8)
    async with held(database, ticket_id):
        leaving = asyncio.create_task(change(client, ticket_id, SENT["On Hold"], key))
        await until_it_waits(database)
        leaving.cancel()
        await asyncio.wait({leaving})
        await until_it_waits(database, 0)
    assert await history_of(client, operator, ticket_id) == []
    assert not (await change(client, ticket_id, SENT["On Hold"], key)).replayed
