"""Undoing imports of tickets: they go with their row of the search, their status goes back with an entry of history."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select

from chassis.db.database import Database
from chassis.db.statements import Statement
from makeready.common.v1 import import_undo_pb2
from makeready.tickets.v1 import ticket_commands_pb2 as commands
from svc_tickets import tables as t
from testkit.patience import eventually

from .changing import events_of, history_of
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
