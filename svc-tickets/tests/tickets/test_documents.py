"""The stored documents of tickets: every one equals what rendering gives, also those of a large file."""

from __future__ import annotations

import json
from typing import Any

from chassis.db.database import Database
from makeready.tickets.v1 import tickets_pb2 as pb
from svc_tickets.tickets.queries.read import TICKET_CHANGES
from testkit.examples import is_whole
from testkit.stored_documents import compare_documents

from ..companies import import_tickets, new_company

AT_ONCE = 1000
MINUTES_OF_THE_BACKGROUND = 10


async def test_every_ticket_of_a_large_file_gets_its_document(client: Any, database: Database) -> None:
    company = await new_company(database)
    rows = 100_000 if is_whole() else 2000
    before = (await compare_documents(database, TICKET_CHANGES))["ticket"]
    for start in range(0, rows, AT_ONCE):
        file = ({"external_id": f"D{n}", "title": f"Drip {n}"} for n in range(start, start + AT_ONCE))
        await import_tickets(client, company, *file)
        request = pb.ListTicketsRequest(after_id=0, limit=200)
        page = (await client("ListTickets", request, company.caller)).page
        assert len(json.loads(page.data)) == 200, "a list that is stored in part is whole"
    compared = await compare_documents(database, TICKET_CHANGES, seconds=60 * MINUTES_OF_THE_BACKGROUND)
    assert compared["ticket"] == before + rows
