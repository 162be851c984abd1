"""ListTicketChanges against a running svc-tickets: what is written in any way comes, as GetTicket returns it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from chassis.db.database import Database
from chassis.refusals import Refusal
from makeready.common.v1.documents_pb2 import Feed
from makeready.events.v1 import events_pb2
from makeready.tickets.v1 import tickets_pb2 as pb
from svc_tickets.replicas.consumer import put_references
from svc_tickets.tickets.queries.read import TICKET_CHANGES
from testkit.patience import PATIENCE_SECONDS
from testkit.stored_documents import compare_documents

from ..companies import Company, import_tickets, new_company
from .commands import open_ticket, run_command


class Reader:
    """Follows a company's tickets."""

    def __init__(self, client: Any, company: Company) -> None:
        self.client, self.company, self.position = client, company, b""

    async def page(self, limit: int = 50) -> Feed:
        request = pb.ListTicketChangesRequest(position=self.position, limit=limit)
        feed: Feed = (await self.client("ListTicketChanges", request, self.company.caller)).feed
        self.position = feed.position
        return feed

    async def now(self) -> None:
        request = pb.ListTicketChangesRequest(limit=1, from_now=True)
        feed = (await self.client("ListTicketChanges", request, self.company.caller)).feed
        assert not feed.documents
        self.position = feed.position

    async def until(self, ids: set[int]) -> None:
        """Reads until these tickets have come, and checks that each is as GetTicket returns it."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while ids:
                for document in (await self.page()).documents:
                    ticket = json.loads(document)
                    ids = ids - {ticket["entity_id"]}
                    request = pb.GetTicketRequest(ticket_id=ticket["entity_id"])
                    served = (await self.client("GetTicket", request, self.company.caller)).document.json
                    head = b'{"schema_version":1,"entity_type":"ticket","entity_id":%d,"gone":false,"record":'
                    assert document == head % ticket["entity_id"] + served + b"}"
                await asyncio.sleep(0.05)


@pytest.fixture(scope="module")
async def company(database: Database) -> Company:
    return await new_company(database)


async def put(database: Database, **kinds: Any) -> None:
    async with database.transaction() as connection:
        await put_references(connection, [events_pb2.References(**kinds)])


async def test_whatever_writes_a_ticket_it_comes(client: Any, database: Database, company: Company) -> None:
    reader, others = Reader(client, company), Reader(client, await new_company(database))
    body = {"unit_id": company.id, "title": "Drip", "category": "Leak"}
    request = pb.CreateTicketRequest(idempotency_key="c1", body=json.dumps(body).encode())
    created = json.loads((await client("CreateTicket", request, company.caller)).reply.body)["entity_id"]
    await reader.until({created})
    moved = pb.ChangeTicketStatusRequest(
        idempotency_key="s1", ticket_id=created, body=json.dumps({"status": "In Progress"}).encode()
    )
    await client("ChangeTicketStatus", moved, company.caller)
    await reader.until({created})
    photo = json.dumps({"photo_url": "https://photos.example/1.jpg"}).encode()
    added = pb.CreateTicketPhotoRequest(idempotency_key="p1", ticket_id=created, body=photo)
    await client("CreateTicketPhoto", added, company.caller)
    await reader.until({created})
    await run_command(client, "UpdateTicket", company.staff, ticket_id=created, title="Drips")
    await reader.until({created})
    await run_command(client, "CommentOnTicket", company.staff, ticket_id=created, body="Nothing that a ticket shows")
    long_ago = {"created_at": "2020-01-01T00:00:00Z", "updated_at": "2020-01-01T00:00:00Z"}
    for title in ("Old", "Older"):
        rows = [{"external_id": f"I{n}", "title": title, **long_ago} for n in range(3)]
        await import_tickets(client, company, *rows)
        async with database.connection() as connection:
            ids = "SELECT id FROM ticket WHERE company_id = $1 AND title = $2"
            imported = {row["id"] for row in await connection.raw.fetch(ids, company.id, title)}
        assert len(imported) == 3
        await reader.until(imported)
    assert not (await reader.page()).documents
    assert not (await others.page()).documents


async def test_a_new_name_of_anything_that_a_ticket_shows_brings_it(client: Any, database: Database) -> None:
    company = await new_company(database)
    key: dict[str, Any] = {"id": company.id, "company_id": company.id}
    await put(
        database,
        staff=[events_pb2.StaffReference(version=1, name="Ada", **key)],
        vendors=[events_pb2.VendorReference(version=1, name="Otis", **key)],
    )
    assigned = (await open_ticket(client, company.staff, property_id=company.id, unit_id=company.id))["entity_id"]
    await run_command(client, "AssignTicket", company.staff, ticket_id=assigned, assignee_id=company.id)
    ticket_id = (await open_ticket(client, company.staff, property_id=company.id))["entity_id"]
    await run_command(client, "AssignTicket", company.staff, ticket_id=ticket_id, vendor_id=company.id)
    reader = Reader(client, company)
    await reader.until({assigned, ticket_id})
    renamed: tuple[tuple[str, Any, set[int]], ...] = (
        (
            "properties",
            events_pb2.PropertyReference(version=2, name="New", external_id="N", **key),
            {assigned, ticket_id},
        ),
        ("units", events_pb2.UnitReference(version=2, name="New", property_id=company.id, **key), {assigned}),
        ("staff", events_pb2.StaffReference(version=2, name="Grace", **key), {assigned}),
        ("vendors", events_pb2.VendorReference(version=2, name="Kone", **key), {ticket_id}),
        ("vendors", events_pb2.VendorReference(version=3, name="Kone", external_id="K", **key), {ticket_id}),
    )
    for kind, reference, shown_by in renamed:
        await put(database, **{kind: [reference]})
        await reader.until(shown_by)
        assert not (await reader.page()).documents, kind
    # The hold of a vendor is nothing that a ticket shows.
    newest = "SELECT max(id) FROM changes_to_touch"
    async with database.connection() as connection:
        before = await connection.raw.fetchval(newest)
        held = events_pb2.VendorReference(version=4, name="Kone", external_id="K", on_hold=True, **key)
        await put(database, vendors=[held])
        assert await connection.raw.fetchval(newest) in (before, None)


async def test_staleness_moves_no_ticket_and_keeps_its_document(client: Any, database: Database) -> None:
    """No ticket shows when it becomes stale."""
    company = await new_company(database)
    ticket_id = (await open_ticket(client, company.staff, property_id=company.id))["entity_id"]
    await compare_documents(database, TICKET_CHANGES)
    stored = "SELECT changed_xid, document, stale_due_at FROM ticket WHERE id = $1"
    async with database.connection() as connection:
        before = await connection.raw.fetchrow(stored, ticket_id)
        await connection.raw.execute(
            "UPDATE ticket SET quiet_since = created_at, stale_due_at = created_at + interval '1 day' WHERE id = $1",
            ticket_id,
        )
        after = await connection.raw.fetchrow(stored, ticket_id)
    assert before["document"] is not None and after["stale_due_at"] != before["stale_due_at"]
    assert (after["changed_xid"], after["document"]) == (before["changed_xid"], before["document"])


async def test_from_now_leaves_out_what_was(client: Any, database: Database, company: Company) -> None:
    reader = Reader(client, company)
    await open_ticket(client, company.staff, property_id=company.id)
    await reader.now()
    later = (await open_ticket(client, company.staff, property_id=company.id))["entity_id"]
    await reader.until({later})
    assert not (await reader.page()).documents
    other = await new_company(database)
    reader.position = b"x"
    with pytest.raises(Refusal) as refused:
        await reader.page()
    assert (refused.value.status, refused.value.code) == (410, "cursor_expired")
    foreign = Reader(client, other)
    assert not (await foreign.page()).documents
