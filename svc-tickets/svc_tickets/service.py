"""The RPCs of svc-tickets: identity, rule, statement, record."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

from asyncpg import Record

from chassis.auth import identity
from chassis.db.database import Database
from chassis.db.ids import Ids
from chassis.imports.importer import Importer
from chassis.lists.paging import page
from chassis.records import bodies
from chassis.refusals import Refusal, created_by_missing, not_found
from chassis.writes import idempotency
from chassis.writes.commands import CommandRunner
from makeready.common.v1.documents_pb2 import Document, WriteReply
from makeready.tickets.v1 import tickets_pb2 as pb
from svc_tickets import policy, queries, queries_changes, records, rules
from svc_tickets import tables as t
from svc_tickets.changes import StatusChange
from svc_tickets.imports import TicketImport
from svc_tickets.owners import Owners
from svc_tickets.queries_places import place_and_number

Clock = Callable[[], datetime.datetime]

_STATUS_LABELS = dict(enumerate(rules.STATUSES, start=1))


class TicketsService:
    """Lists, fetches and opens tickets, and changes their status (spec 4.2); their history, imports, the policy."""

    def __init__(
        self, database: Database, commands: CommandRunner, owners: Owners, links: records.TicketLinks, clock: Clock
    ) -> None:
        self.database = database
        self.commands = commands
        self.outbox = outbox = commands.outbox
        self.owners = owners
        self.links = links
        self.clock = clock
        self.ids = Ids(database, t.ticket_id)
        self.comment_ids = Ids(database, t.comment_id)
        self.importer = Importer(database, outbox, clock)

    async def ListTickets(self, request: pb.ListTicketsRequest, call: identity.Call) -> pb.ListTicketsResponse:
        caller = identity.caller(call)
        filters: dict[str, Any] = {}
        if request.HasField("property_id"):
            filters["property_id"] = request.property_id
        if request.HasField("unit_id"):
            filters["unit_id"] = request.unit_id
        if request.HasField("status"):
            filters["status"] = _STATUS_LABELS[request.status]
        if request.HasField("updated_since"):
            filters["updated_since"] = request.updated_since.ToDatetime(datetime.UTC)
        if request.HasField("ticket_number"):
            number = request.ticket_number
            filters["ticket_number"] = number if number < 2**31 else 0
        rows = await queries.TICKETS_PAGE.rows(
            self.database, caller.company_id, request.after_id, request.limit, filters
        )
        return pb.ListTicketsResponse(page=page(rows, request.limit, self.links.ticket))

    async def GetTicket(self, request: pb.GetTicketRequest, call: identity.Call) -> pb.GetTicketResponse:
        row = await queries.ticket(self.database, identity.caller(call).company_id, request.ticket_id)
        if row is None:
            raise not_found("ticket")
        json = records.encode(self.links.ticket(row))
        return pb.GetTicketResponse(document=Document(json=json, entity_id=row[0], version=row[1]))

    async def CreateTicket(self, request: pb.CreateTicketRequest, call: identity.Call) -> pb.CreateTicketResponse:
        caller = identity.caller(call)
        wanted, canonical = bodies.decode(records.TicketCreate, request.body)
        claim = idempotency.claim(caller, request.idempotency_key, "POST /tickets", canonical)
        try:
            if caller.administrator_id is None:
                raise created_by_missing()
            place = await self._place(caller.company_id, wanted)
        except Refusal:
            kept = await queries.CREATE_TICKET.kept(self.database, claim)
            if kept is None:
                raise
            return pb.CreateTicketResponse(reply=kept)
        return pb.CreateTicketResponse(reply=await self._open(caller, wanted, place, claim, call.request_id))

    async def _place(self, company_id: int, wanted: records.TicketCreate) -> Record:
        """The unit with its property and the asset, asked of their owner where a replica lacks one."""
        asset_id = wanted.asset_id or 0
        place = await place_and_number(self.database, company_id, wanted.unit_id, asset_id)
        lacking = place is None or (wanted.asset_id is not None and place["asset_id"] is None)
        if lacking:
            await self.owners.fetch(company_id, unit_ids=[wanted.unit_id], asset_ids=[asset_id])
            place = await place_and_number(self.database, company_id, wanted.unit_id, asset_id)
        if place is None:
            raise not_found("unit")
        if wanted.asset_id is not None and place["asset_id"] is None:
            raise Refusal(
                404, "not_found", "No asset with that id is visible to this key on the unit's property; check both ids."
            )
        return place

    async def _open(
        self,
        caller: identity.Identity,
        wanted: records.TicketCreate,
        place: Record,
        claim: idempotency.Claim,
        request_id: str,
    ) -> WriteReply:
        now = self.clock()
        ticket_id = await self.ids.next()
        row = dict.fromkeys(t.ticket.c.keys()) | {
            "id": ticket_id,
            "company_id": caller.company_id,
            "version": 1,
            "ticket_number": place["ticket_number"],
            "title": wanted.title,
            "description": wanted.description or "",
            "category": wanted.category,
            "priority": wanted.priority or rules.DEFAULT_PRIORITY,
            "status": "Open",
            "property_id": place["property_id"],
            "unit_id": place["unit_id"],
            "asset_id": place["asset_id"],
            "unit_number": place["unit_number"],
            "permission_to_enter": False,
            "created_at": now,
            "updated_at": now,
            "source": "api",
            "created_by_administrator_id": caller.administrator_id,
        }
        shown = tuple(_shown(column, row, place) for column in queries.TICKET_COLUMNS)
        json = records.encode(self.links.ticket(shown))
        event = self.outbox.public(
            "ticket.created",
            company_id=caller.company_id,
            entity_id=ticket_id,
            occurred_at=now,
            data=json,
            request_id=request_id,
        )
        reply = await queries.CREATE_TICKET.write(self.database, claim, 201, json, {t.ticket: row, t.outbox: event})
        self.outbox.wake()
        return reply

    async def ChangeTicketStatus(
        self, request: pb.ChangeTicketStatusRequest, call: identity.Call
    ) -> pb.ChangeTicketStatusResponse:
        caller = identity.caller(call)
        sent, canonical = bodies.decode(records.StatusChange, request.body)
        wanted = rules.wanted_change(sent.status, sent.note, sent.cancellation_reason_code, sent.cancellation_notes)
        claim = idempotency.claim(caller, request.idempotency_key, f"PATCH /tickets/{request.ticket_id}", canonical)
        comment_id = await self.comment_ids.next() if wanted.comment is not None else None
        change = StatusChange(self.outbox, self.links, self.clock, caller, call.request_id, wanted, comment_id)
        reply = await queries_changes.CHANGE_STATUS.write(
            self.database,
            claim,
            request.ticket_id,
            change.decide,
            company_id=caller.company_id,
            ticket_id=request.ticket_id,
        )
        if not reply.replayed:
            self.outbox.wake()
        return pb.ChangeTicketStatusResponse(reply=reply)

    async def ListTicketHistory(
        self, request: pb.ListTicketHistoryRequest, call: identity.Call
    ) -> pb.ListTicketHistoryResponse:
        company_id = identity.company_id(call)
        rows = await queries_changes.history(self.database, company_id, request.ticket_id, request.after_version)
        if rows is None:
            raise Refusal(404, "not_found", "The company has no ticket with that id.")
        shown = rows[: queries_changes.HISTORY_ROWS]
        answer = pb.ListTicketHistoryResponse(changes=map(records.told, shown))
        if len(rows) > len(shown):
            answer.next_after_version = shown[-1]["version"]
        return answer

    async def ImportTickets(self, request: pb.ImportTicketsRequest, call: identity.Call) -> pb.ImportTicketsResponse:
        work = TicketImport(
            self.database, self.owners, self.outbox, self.links, events=request.events, request_id=call.request_id
        )
        results = await self.importer.run(work.save, records.TicketRow, request, call, work.prepare)
        return pb.ImportTicketsResponse(results=results)

    async def UpdateTicketPolicy(
        self, request: pb.UpdateTicketPolicyRequest, call: identity.Call
    ) -> pb.UpdateTicketPolicyResponse:
        changes: dict[str, Any] = {}
        if request.HasField("photo_required_to_complete"):
            changes["photo_required_to_complete"] = request.photo_required_to_complete
        if request.HasField("stale_after_hours"):
            changes["stale_after_hours"] = request.stale_after_hours
        kept = await policy.update(self.database, self.commands, call, changes)
        return pb.UpdateTicketPolicyResponse(**kept)


def _shown(column: Any, row: dict[str, Any], place: Record) -> Any:
    """The value of one of TICKET_COLUMNS in a ticket that is about to be inserted."""
    table = column.table
    if table is t.ticket:
        return row[column.name]
    if table is t.property_ or table is t.unit:
        return place[f"{table.name}_{column.name}"]
    return None
