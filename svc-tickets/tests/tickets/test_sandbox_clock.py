"""A sandbox's clock in a running svc-tickets: records have its instants, and what is due by it is done, each once."""

from __future__ import annotations

import dataclasses
import datetime
import json
from typing import Any

import pytest

from chassis.auth.identity import SERVICE, Identity
from chassis.db.database import Database
from chassis.refusals import Refusal
from chassis.schedule import instants
from makeready.common.v1 import company_clock_pb2 as clock_pb
from makeready.tickets.v1 import ticket_commands_pb2 as commands_pb
from testkit.services import RunningService

from ..companies import Company, fired, import_tickets, new_company, sweep
from .changing import SENT, change, opened, served

GATEWAY = Identity(SERVICE, "gateway")
HOUR = datetime.timedelta(hours=1)
THRESHOLD = 72 * HOUR


class Sandbox:
    def __init__(self, service: RunningService, company: Company) -> None:
        self.service, self.company = service, company
        self.caller = dataclasses.replace(company.caller, is_sandbox=True)

    async def ask(self, request: Any) -> Any:
        request.company_id = self.company.id
        async with self.service.channel() as channel:
            return await self.service.call(channel, request, GATEWAY)

    async def advance(self, offset: datetime.timedelta) -> None:
        request = clock_pb.SetClockRequest()
        request.offset.FromTimedelta(offset)
        await self.ask(request)

    async def next_due(self) -> tuple[datetime.datetime | None, str]:
        due = await self.ask(clock_pb.NextDueRequest())
        return (due.due_at.ToDatetime(datetime.UTC) if due.HasField("due_at") else None), due.what


async def make_sandbox(service: RunningService, database: Database) -> Sandbox:
    company = await new_company(database)
    async with database.connection() as connection:
        await connection.raw.execute("UPDATE company SET is_sandbox = true WHERE id = $1", company.id)
    return Sandbox(service, company)


async def test_a_sandboxs_records_and_events_have_its_clocks_instants(
    service: RunningService, client: Any, database: Database
) -> None:
    sandbox, ahead = await make_sandbox(service, database), 400 * 24 * HOUR
    await sandbox.advance(ahead)
    began = instants.now() + ahead
    ticket_id = await opened(client, sandbox.caller, sandbox.company.id)
    first = json.loads(await served(client, ticket_id, sandbox.caller))
    await sandbox.advance(ahead + HOUR)
    later = instants.now() + ahead + HOUR
    await change(client, ticket_id, SENT["Completed"], who=sandbox.caller)
    ended = instants.now() + ahead + HOUR
    ticket = json.loads(await served(client, ticket_id, sandbox.caller))
    assert instants.printed(began) <= first["created_at"] == first["updated_at"] < instants.printed(later)
    assert instants.printed(later) <= ticket["completed_at"] == ticket["updated_at"] <= instants.printed(ended)
    (created,), (changed,) = [
        await fired(database, sandbox.company, event) for event in ("ticket.created", "ticket.status_changed")
    ]
    occurred = [instants.printed(event.occurred_at.ToDatetime(datetime.UTC)) for event in (created, changed)]
    assert occurred == [first["created_at"], ticket["updated_at"]]


async def test_what_is_due_by_a_sandboxs_clock_is_done_once(
    service: RunningService, client: Any, database: Database
) -> None:
    sandbox, live = await make_sandbox(service, database), await new_company(database)
    for company in (sandbox.company, live):
        await import_tickets(client, company, {"source": "resident_portal"}, events=True)
    ahead = datetime.timedelta()
    for firing in range(1, 4):
        due_at, due = await sandbox.next_due()
        assert due_at is not None and due == "ticket.stale"
        assert (await sandbox.ask(clock_pb.DoDueRequest())).done["ticket.stale"] == 0
        ahead = due_at - instants.now() + datetime.timedelta(milliseconds=1)
        await sandbox.advance(ahead)
        assert [(await sandbox.ask(clock_pb.DoDueRequest())).done["ticket.stale"] for _ in range(2)] == [1, 0]
        events = await fired(database, sandbox.company, "ticket.stale")
        assert len(events) == firing and events[-1].occurred_at.ToDatetime(datetime.UTC) >= due_at
        assert (await sandbox.next_due())[0] == due_at + THRESHOLD
    # Neither the gateway nor a sweep as of a future instant takes one for the other.
    await sweep(service, instants.now() + 2 * ahead)
    assert len(await fired(database, sandbox.company, "ticket.stale")) == 3
    assert len(await fired(database, live, "ticket.stale")) == 1
    for request in (clock_pb.SetClockRequest(), clock_pb.DoDueRequest()):
        with pytest.raises(Refusal) as refusal:
            await Sandbox(service, live).ask(request)
        assert refusal.value.status == 404


async def test_a_file_of_a_sandbox_may_say_what_has_happened_by_its_clock(
    service: RunningService, client: Any, database: Database
) -> None:
    sandbox = await make_sandbox(service, database)
    stamps = {name: instants.printed(instants.now() + 24 * HOUR) for name in ("created_at", "updated_at")}
    with pytest.raises(AssertionError, match="lies in the future"):
        await import_tickets(client, sandbox.company, stamps)
    await sandbox.advance(25 * HOUR)
    await import_tickets(client, sandbox.company, stamps)


async def test_a_threshold_is_let_pass_once_for_each_key_and_in_sandboxes_alone(
    service: RunningService, client: Any, database: Database
) -> None:
    sandbox, live = await make_sandbox(service, database), await new_company(database)
    await sandbox.advance(1000 * HOUR)
    ids = []
    for company in (sandbox.company, live):
        await import_tickets(client, company, {"source": "resident_portal"}, {"source": "staff"}, events=True)
        sql = "SELECT id FROM ticket WHERE company_id = $1 ORDER BY source"
        async with database.connection() as connection:
            ids.append([row["id"] for row in await connection.raw.fetch(sql, company.id)])

    async def let_pass(company: Company, key: str, ticket_id: int) -> None:
        request = commands_pb.PassStaleThresholdRequest(idempotency_key=key, ticket_id=ticket_id)
        async with service.channel() as channel:
            await service.call(channel, request, dataclasses.replace(GATEWAY, company_id=company.id))

    for firing in (1, 2):
        for _ in range(2):
            await let_pass(sandbox.company, f"key {firing}", ids[0][0])
            await sandbox.ask(clock_pb.DoDueRequest())
        assert len(await fired(database, sandbox.company, "ticket.stale")) == firing
    for company, ticket_id, status in (
        (sandbox.company, ids[0][1], 422),
        (sandbox.company, ids[1][0], 404),
        (live, ids[1][0], 404),
    ):
        with pytest.raises(Refusal) as refusal:
            await let_pass(company, "another key", ticket_id)
        assert refusal.value.status == status
