"""The RPCs of TicketsService. Each checks the identity and the rules, runs statements and renders records."""

from __future__ import annotations

import operator

import msgspec

from chassis.auth import identity
from chassis.changes.reads import RecordReads
from chassis.db.database import Database
from chassis.db.ids import Ids
from chassis.imports.importer import Importer
from chassis.records import bodies
from chassis.schedule.clocks import CompanyClocks
from chassis.writes import idempotency
from chassis.writes.commands import CommandRunner
from makeready.tickets.v1 import tickets_pb2 as pb
from svc_tickets import schema
from svc_tickets.policy import queries as policy_queries
from svc_tickets.policy import service as policy
from svc_tickets.replicas.fetch import ReplicaFetcher
from svc_tickets.tickets import inputs, records
from svc_tickets.tickets import tables as t
from svc_tickets.tickets.imports import TicketImport
from svc_tickets.tickets.opening import TicketOpener
from svc_tickets.tickets.photos import PhotoRequest
from svc_tickets.tickets.queries import read, stale, write
from svc_tickets.tickets.rules import fields, status
from svc_tickets.tickets.status_change import StatusChanges


class TicketsService:
    """Lists, fetches and opens tickets, changes their status (spec 4.2) and adds photos; serves history, imports and
    the policy."""

    def __init__(
        self,
        database: Database,
        commands: CommandRunner,
        replicas: ReplicaFetcher,
        renderer: records.TicketRenderer,
        clocks: CompanyClocks,
        opener: TicketOpener,
        statuses: StatusChanges,
    ) -> None:
        self.database = database
        self.commands = commands
        self.outbox = commands.outbox
        self.replicas = replicas
        self.renderer = renderer
        self.tickets = RecordReads("ticket", database, renderer, read.TICKETS_PAGE, read.TICKET_CHANGES)
        self.clocks = clocks
        self.opener = opener
        self.statuses = statuses
        self.comment_ids = Ids(database, t.comment_id)
        self.importer = Importer(database, commands.outbox, schema.idempotency, clocks)

    async def ListTickets(self, request: pb.ListTicketsRequest, call: identity.Call) -> pb.ListTicketsResponse:
        caller = identity.caller(call)
        filters = read.TICKETS_PAGE.filters_of(request)
        if filters.get("ticket_number", 0) >= 2**31:  # no ticket has such a number, and the column cannot hold it
            filters["ticket_number"] = 0
        return pb.ListTicketsResponse(page=await self.tickets.page(caller.company_id, request, filters))

    async def GetTicket(self, request: pb.GetTicketRequest, call: identity.Call) -> pb.GetTicketResponse:
        company_id = identity.caller(call).company_id
        return pb.GetTicketResponse(document=await self.tickets.fetch(company_id, request.ticket_id))

    async def ListTicketChanges(
        self, request: pb.ListTicketChangesRequest, call: identity.Call
    ) -> pb.ListTicketChangesResponse:
        company_id = identity.caller(call).company_id
        return pb.ListTicketChangesResponse(feed=await self.tickets.feed(company_id, request))

    async def CreateTicket(self, request: pb.CreateTicketRequest, call: identity.Call) -> pb.CreateTicketResponse:
        caller = identity.caller(call)
        body, canonical = bodies.decode(inputs.TicketCreate, request.body)
        claim = idempotency.claim_of(request, caller, "POST /tickets", canonical)
        values = msgspec.structs.asdict(body) | {
            "description": body.description or "",
            "created_by_administrator_id": caller.administrator_id,
        }
        reply = await self.opener.open(call, claim, "api", values, operator.attrgetter("json"))
        return pb.CreateTicketResponse(reply=reply)

    async def ChangeTicketStatus(
        self, request: pb.ChangeTicketStatusRequest, call: identity.Call
    ) -> pb.ChangeTicketStatusResponse:
        caller = identity.caller(call)
        sent, canonical = bodies.decode(inputs.StatusChange, request.body)
        target = status.target_status(sent.status, sent.note, sent.cancellation_reason_code, sent.cancellation_notes)
        claim = idempotency.claim_of(request, caller, f"PATCH /tickets/{request.ticket_id}", canonical)
        reply = await self.statuses.change(call, claim, request.ticket_id, target, operator.attrgetter("json"))
        return pb.ChangeTicketStatusResponse(reply=reply)

    async def CreateTicketPhoto(
        self, request: pb.CreateTicketPhotoRequest, call: identity.Call
    ) -> pb.CreateTicketPhotoResponse:
        caller = identity.caller(call)
        sent, canonical = bodies.decode(inputs.PhotoCreate, request.body)
        fields.check_photo_url(sent.photo_url)
        operation = f"POST /tickets/{request.ticket_id}/photos"
        claim = idempotency.claim_of(request, caller, operation, canonical)
        photo = PhotoRequest(
            self.renderer, await self.clocks.of(call), caller, sent.photo_url, await self.comment_ids.next()
        )
        reply = await write.ADD_PHOTO.write(
            self.database,
            claim,
            request.ticket_id,
            photo.decide,
            company_id=caller.company_id,
            ticket_id=request.ticket_id,
        )
        return pb.CreateTicketPhotoResponse(reply=reply)

    async def ListTicketHistory(
        self, request: pb.ListTicketHistoryRequest, call: identity.Call
    ) -> pb.ListTicketHistoryResponse:
        company_id = identity.company_id(call)
        rows = await read.history(self.database, company_id, request.ticket_id, request.after_version)
        if rows is None:
            raise fields.no_such_ticket()
        page = rows[: read.HISTORY_ROWS]
        answer = pb.ListTicketHistoryResponse(changes=map(records.history_entry, page))
        if len(rows) > len(page):
            answer.next_after_version = page[-1].version or 0
        return answer

    async def ImportTickets(self, request: pb.ImportTicketsRequest, call: identity.Call) -> pb.ImportTicketsResponse:
        work = TicketImport(
            self.database, self.replicas, self.opener, self.outbox, self.renderer, call, events=request.events
        )
        results = await self.importer.run(work.save, inputs.TicketRow, request, call, work.prepare)
        return pb.ImportTicketsResponse(results=results)

    async def GetTicketPolicy(
        self, _request: pb.GetTicketPolicyRequest, call: identity.Call
    ) -> pb.GetTicketPolicyResponse:
        stored = await policy_queries.policy(self.database, identity.company_id(call))
        return pb.GetTicketPolicyResponse(**stored._asdict())

    async def CountStaleTickets(
        self, request: pb.CountStaleTicketsRequest, call: identity.Call
    ) -> pb.CountStaleTicketsResponse:
        company_id = identity.company_id(call)
        stored_hours = (await policy_queries.policy(self.database, company_id)).stale_after_hours
        hours = request.stale_after_hours if request.HasField("stale_after_hours") else stored_hours
        policy.check_threshold(hours)
        counts = await stale.counted(self.database, company_id, stored_hours, hours, await self.clocks.now(call))
        return pb.CountStaleTicketsResponse(**counts._asdict())

    async def UpdateTicketPolicy(
        self, request: pb.UpdateTicketPolicyRequest, call: identity.Call
    ) -> pb.UpdateTicketPolicyResponse:
        changes: dict[str, object] = {}
        if request.HasField("photo_required_to_complete"):
            changes["photo_required_to_complete"] = request.photo_required_to_complete
        if request.HasField("stale_after_hours"):
            changes["stale_after_hours"] = request.stale_after_hours
        stored = await policy.update(self.database, self.commands, call, changes, stale.restart)
        return pb.UpdateTicketPolicyResponse(**stored._asdict())
