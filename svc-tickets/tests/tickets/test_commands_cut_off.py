"""Kills the process at each failpoint: a back-office command happens once, wherever it was cut off."""

from __future__ import annotations

import asyncio
import secrets
from typing import Any

import grpc
import pytest

from chassis.db.database import Database

from .changing import NOTE, events_of, history_of, opened, served
from .commands import audited, comments_of, request_of

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
