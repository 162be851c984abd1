"""Undoing imports of tickets: they go with their row of the search, their status goes back with an entry of history."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest
from sqlalchemy import select, text

from chassis.auth.clients import CHANNEL_OPTIONS
from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.refusals import Refusal
from makeready.common.v1 import import_undo_pb2
from makeready.events.v1 import events_pb2
from makeready.tickets.v1 import ticket_commands_pb2 as commands
from makeready.tickets.v1 import tickets_pb2
from svc_tickets import tables as t
from svc_tickets.replicas.consumer import put_references
from testkit.patience import eventually

from ..conftest import COMPANY, caller
from .changing import events_of, history_of, until_it_waits
from .test_importing_tickets import imported, row, served

pytestmark = pytest.mark.usefixtures("places")


async def undone(client: Any, operator: Any, key: str) -> import_undo_pb2.UndoImportResponse:
    request = import_undo_pb2.UndoImportRequest(import_key=key, kind="tickets")
    response: import_undo_pb2.UndoImportResponse = await client("UndoImport", request, operator)
    return response


async def found(database: Database, ids: list[int]) -> set[int]:
    rows = await database.rows(_SEARCHED)
    return {ticket["id"] for ticket in rows} & set(ids)


_SEARCHED = Statement(select(t.ticket_search.c.id))


async def test_tickets_go_or_go_back_and_those_with_work_stay(client: Any, operator: Any, database: Database) -> None:
    old = row(unit="U1", room="Kitchen", title="Old")
    await imported(client, operator, [old])
    before = await served(client, old["external_id"])
    fresh = [row(title=f"New {n}") for n in range(3)]
    changed = old | {"status": "Completed", "completed_at": "2026-01-01T00:00:00Z", "room": "", "title": "Newer"}
    await imported(client, operator, [changed, *fresh], import_key="tickets-1")
    ids = [(await served(client, each["external_id"]))["entity_id"] for each in fresh]
    comment = commands.CommentOnTicketRequest(ticket_id=ids[2], body="Seen by us", idempotency_key="undo-comment")
    await client("CommentOnTicket", comment, operator)

    async def has_all() -> bool:
        return await found(database, ids) == set(ids)

    await eventually(has_all)
    told = len(await events_of(database, before["entity_id"]))
    response = await undone(client, operator, "tickets-1")
    assert (response.withdrawn, response.restored) == (2, 1)
    (kept,) = response.kept
    assert (kept.id, kept.external_id) == (ids[2], fresh[2]["external_id"])
    after = await served(client, old["external_id"])
    assert after | {"updated_at": ""} == before | {"updated_at": ""}
    assert await found(database, ids) == {ids[2]}
    changes = await history_of(client, operator, before["entity_id"])
    assert [(change.from_status, change.to_status) for change in changes][-2:] == [
        ("Open", "Completed"), ("Completed", "Open"),
    ]  # fmt: skip
    assert len(await events_of(database, before["entity_id"])) == told
    # A ticket that comes back has its id, and another number.
    await imported(client, operator, [fresh[0]], import_key="tickets-2")
    again = await served(client, fresh[0]["external_id"])
    assert again["entity_id"] == ids[0]
    assert again["ticket_number"] > after["ticket_number"]
    assert (await undone(client, operator, "tickets-2")).withdrawn == 1


@pytest.mark.usefixtures("reached")
async def test_a_ticket_of_a_unit_that_is_withdrawn_meanwhile_is_refused(service: Any, database: Database) -> None:
    """It was found when the create began, and is gone when the ticket is inserted."""
    unit = events_pb2.UnitReference(id=190, version=1, company_id=COMPANY, property_id=10, name="Unit 9")
    async with database.transaction() as connection:
        await put_references(connection, [events_pb2.References(units=[unit])])
    body = b'{"unit_id":190,"title":"Lift stuck","category":"Elevator"}'
    request = tickets_pb2.CreateTicketRequest(idempotency_key="withdrawn-unit", body=body)
    async with grpc.aio.insecure_channel(service.target, options=CHANNEL_OPTIONS) as channel:
        async with database.transaction() as connection:
            await connection.execute(Statement(text("DELETE FROM unit WHERE id = 190")))
            create = asyncio.create_task(service.call(channel, request, caller()))
            await until_it_waits(database)
        with pytest.raises(Refusal) as refused:
            await create
    assert (refused.value.status, refused.value.code) == (404, "not_found")
