"""Kills the process at each failpoint: a back-office command happens once, wherever it was cut off."""

from __future__ import annotations

import asyncio
import secrets
from typing import Any

import grpc
import pytest
from sqlalchemy import func, select

from chassis.db.database import Database
from chassis.db.statements import Statement
from svc_tickets import tables as t

from .changing import NOTE, events_of, history_of, opened, served
from .commands import audited, comments_of, opening, request_of

pytestmark = pytest.mark.usefixtures("places")


CHANGE = {"status": "Completed", "note": NOTE}
PHOTO = {"photo_url": "https://example.com/1.jpg"}


@pytest.mark.parametrize(
    ("rpc", "sent", "kind", "point"),
    [
        *(("SetTicketStatus", CHANGE, "closing_note", f"write-{at}") for at in ("before-statement", "decided")),
        ("SetTicketStatus", CHANGE, "closing_note", "write-after-commit"),
        *(("AddTicketPhoto", PHOTO, "photo", f"write-{at}") for at in ("decided", "before-commit", "after-commit")),
    ],
)
async def test_a_change_cut_off_at_any_point_happens_once(
    service: Any,
    client: Any,
    staff: Any,
    administrator: Any,
    database: Database,
    rpc: str,
    sent: dict[str, str],
    kind: str,
    point: str,
) -> None:
    ticket_id = await opened(client)
    done = request_of(rpc, ticket_id=ticket_id, idempotency_key=secrets.token_hex(8), **sent)
    service.stop()
    service.start(MAKEREADY_KILL_AT=point)
    try:
        with pytest.raises(grpc.aio.AioRpcError):
            await client(rpc, done, staff)
        await asyncio.to_thread(service.process.wait, 20)
        assert service.process.returncode == -9, f"{point} was not reached"
    finally:
        service.kill()
        service.start()
    happened = point == "write-after-commit"
    assert len(await audited(client, administrator, "ticket", ticket_id)) == happened
    first, again = [(await client(rpc, done, staff)).document for _ in range(2)]
    assert first == again and first.json == await served(client, ticket_id)
    assert len(await audited(client, administrator, "ticket", ticket_id)) == 1
    changes = ["ticket.status_changed"] if rpc == "SetTicketStatus" else []
    assert len(await history_of(client, staff, ticket_id)) == len(changes)
    assert [comment[0] for comment in await comments_of(client, staff, ticket_id)] == [kind]
    published = [event.public.event for event in await events_of(database, ticket_id)]
    assert published == ["ticket.created", *changes]


@pytest.mark.parametrize("point", ["write-before-statement", "write-after-commit"])
async def test_an_opening_cut_off_at_any_point_happens_once(
    service: Any, client: Any, staff: Any, administrator: Any, database: Database, point: str
) -> None:
    title = f"Cut off {secrets.token_hex(6)}"
    request = opening(title=title, by="OPENER_RESIDENT", photo_url=PHOTO["photo_url"])
    service.stop()
    service.start(MAKEREADY_KILL_AT=point)
    try:
        with pytest.raises(grpc.aio.AioRpcError):
            await client("OpenTicket", request, staff)
        await asyncio.to_thread(service.process.wait, 20)
        assert service.process.returncode == -9, f"{point} was not reached"
    finally:
        service.kill()
        service.start()
    count = Statement(select(func.count()).select_from(t.ticket).where(t.ticket.c.title == title))
    assert await database.value(count) == (point == "write-after-commit")
    first, again = [(await client("OpenTicket", request, staff)).document for _ in range(2)]
    assert first == again and first.json == await served(client, first.entity_id)
    assert await database.value(count) == 1
    assert [entry["action"] for entry in await audited(client, administrator, "ticket", first.entity_id)] == [
        "ticket.opened"
    ]
    assert [comment[0] for comment in await comments_of(client, staff, first.entity_id)] == ["photo"]
    assert [event.public.event for event in await events_of(database, first.entity_id)] == ["ticket.created"]
