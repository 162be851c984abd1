"""The back-office RPCs of tickets, and what integrations do by the same commands: idempotent and audited."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, TypeVar, get_args

import msgspec
from asyncpg import Record
from google.protobuf.message import Message

from chassis.auth import identity
from chassis.db.database import Database
from chassis.records import bodies
from chassis.records.shapes import encode
from chassis.refusals import Refusal, invalid_request
from chassis.schedule.instants import printed
from chassis.writes import idempotency
from chassis.writes.commands import Command, CommandRunner, claim_of_actor
from chassis.writes.commands import fields as given_fields
from chassis.writes.editing import EditableFields, LockedRecord, RecordEditor, RecordWording, audited_columns
from makeready.common.v1.documents_pb2 import Document
from makeready.tickets.v1 import ticket_commands_pb2 as pb
from svc_tickets.replicas import places
from svc_tickets.replicas.fetch import RecordKind, ReplicaFetcher
from svc_tickets.tickets import inputs, records
from svc_tickets.tickets.opening import TicketOpener
from svc_tickets.tickets.queries import read, write
from svc_tickets.tickets.rules import fields, staleness, status
from svc_tickets.tickets.status_change import StatusChanges

_STATUS_LABELS: dict[int, fields.Status] = dict(enumerate(get_args(fields.Status), start=1))
_OPENERS: dict[int, fields.Author] = dict(enumerate(fields.OPENERS, start=1))
_AUTHORS: dict[int, fields.Author] = dict(enumerate(get_args(fields.Author), start=1))
# The fields of an assignment, each with the one that says who the person saw there.
_ASSIGNMENT: tuple[tuple[str, Literal["from_assignee_id", "from_vendor_id"]], ...] = (
    ("assignee_id", "from_assignee_id"),
    ("vendor_id", "from_vendor_id"),
)
# Fields of a correction, each with the one that says what the person saw there.
_SEEN: tuple[tuple[str, Literal["from_priority", "from_category"]], ...] = (
    ("priority", "from_priority"),
    ("category", "from_category"),
)
_CORRECTIONS = EditableFields(
    inputs.TicketOpening,
    *("title", "category", "priority", "permission_to_enter"),
    *inputs.CLEARABLE_TEXTS,
    ids=("unit_id", "asset_id"),
    clearable=("unit_id", "asset_id", *inputs.CLEARABLE_TEXTS),
)

Response = TypeVar("Response", bound=Message)
Label = TypeVar("Label", bound=str)
LockedTicket = LockedRecord[records.Ticket]
# Returns the new column values. Arguments: the command, the locked ticket row and the instant of the change.
Decide = Callable[[Command, Record, datetime.datetime], Awaitable[Mapping[str, object]]]


class TicketCommandsService:
    """Opens, assigns and comments on tickets, adds photos and changes statuses, for people of the company."""

    def __init__(
        self,
        commands: CommandRunner,
        database: Database,
        replicas: ReplicaFetcher,
        renderer: records.TicketRenderer,
        opener: TicketOpener,
        statuses: StatusChanges,
    ) -> None:
        self.commands = commands
        self.database = database
        self.replicas = replicas
        self.opener = opener
        self.statuses = statuses
        self.editor = RecordEditor(
            "ticket",
            write.EDITABLE,
            write.EDITED,
            renderer,
            audit=audited_columns(write.AUDITED),
            wording=RecordWording(missing=fields.no_such_ticket),
        )

    async def OpenTicket(self, request: pb.OpenTicketRequest, call: identity.Call) -> pb.OpenTicketResponse:
        sent = given_fields(request, *inputs.TicketOpening.__struct_fields__)
        opening = bodies.check(inputs.TicketOpening, sent)
        author = _label(_OPENERS, request, "by")
        if opening.photo_url is not None:
            fields.check_photo_url(opening.photo_url)
        values = msgspec.structs.asdict(opening) | {"description": opening.description or ""}

        def reply(opened: Document) -> bytes:
            return pb.OpenTicketResponse(document=opened).SerializeToString()

        claim = claim_of_actor(call, request, identity.company_id(call))
        written = await self.opener.open(call, claim, "staff", values, reply, author)
        return pb.OpenTicketResponse.FromString(written.body)

    async def UpdateTicket(self, request: pb.UpdateTicketRequest, call: identity.Call) -> pb.UpdateTicketResponse:
        corrections = _CORRECTIONS.of(request)
        if not corrections:
            raise invalid_request("Give at least one field to change, or clear one.")
        company_id = identity.company_id(call)
        if corrections.get("unit_id") or corrections.get("asset_id"):
            property_id = await read.property_of(self.database, company_id, request.ticket_id)
            if property_id is None:
                raise fields.no_such_ticket()
            place = (property_id, corrections.get("unit_id"), corrections.get("asset_id"))
            await places.find(self.database, self.replicas, company_id, *place)

        async def correct(command: Command, ticket: Record, _at: datetime.datetime) -> Mapping[str, object]:
            fields.check_version(request.version if request.HasField("version") else None, ticket["version"])
            after = dict(corrections)
            for name, seen_field in _SEEN:
                # A value that has come true meanwhile is no conflict.
                if request.HasField(seen_field) and after.get(name) != ticket[name]:
                    fields.check_value_seen(name, getattr(request, seen_field), ticket[name])
            if "description" in after:
                after["description"] = after["description"] or ""
            place = (ticket["property_id"], corrections.get("unit_id"), corrections.get("asset_id"))
            fault = await places.fault(command.connection, command.company_id, *place)
            if fault is not None:  # an import has moved the ticket in the meantime
                raise fault
            if "unit_id" in after and after["unit_id"] != ticket["unit_id"]:
                after["unit_number"] = await write.unit_number(command.connection, command.company_id, after["unit_id"])
            return after

        return await self._change(request, call, pb.UpdateTicketResponse, "updated", fields.STAFF, correct)

    async def AssignTicket(self, request: pb.AssignTicketRequest, call: identity.Call) -> pb.AssignTicketResponse:
        sent = given_fields(request, "assignee_id", "vendor_id")
        assignment = bodies.check(inputs.Assignment, sent)
        if not sent:
            raise invalid_request("Give assignee_id or vendor_id, or clear one of them.")
        after = {name: getattr(assignment, name) for name in sent}
        await self._find_people(
            identity.company_id(call), {name: entity_id for name, entity_id in after.items() if entity_id is not None}
        )

        async def assign(command: Command, ticket: Record, _at: datetime.datetime) -> Mapping[str, object]:
            for name, seen_field in _ASSIGNMENT:
                seen = getattr(request, seen_field) if request.HasField(seen_field) else None
                # An assignment that has come true meanwhile is no conflict.
                if name in after and after[name] != ticket[name]:
                    now = await write.name_of(command.connection, command.company_id, name, ticket[name])
                    fields.check_assignment_seen(name, seen, ticket[name], now)
            await _check_vendor(command, ticket, after.get("vendor_id"))
            return after

        return await self._change(request, call, pb.AssignTicketResponse, "assigned", fields.STAFF, assign)

    async def SetTicketAssignment(
        self, request: pb.SetTicketAssignmentRequest, call: identity.Call
    ) -> pb.SetTicketAssignmentResponse:
        sent, canonical = bodies.decode(inputs.Assignment, request.body)
        operation = f"PUT /tickets/{request.ticket_id}/assignment"
        claim = idempotency.claim_of(request, identity.caller(call), operation, canonical)
        after = msgspec.structs.asdict(sent)
        named = {name: entity_id for name, entity_id in after.items() if entity_id is not None}

        async def assign(command: Command, ticket: Record, _at: datetime.datetime) -> Mapping[str, object]:
            await _check_vendor(command, ticket, after["vendor_id"])
            return after

        async def work(command: Command) -> bytes:
            return (await self._changed(command, request.ticket_id, "assigned", fields.STAFF, assign)).json

        prepare = functools.partial(self._find_people, claim.company_id, named)
        return pb.SetTicketAssignmentResponse(reply=await self.commands.write(call, claim, 200, work, prepare))

    async def _find_people(self, company_id: int, named: Mapping[str, int]) -> None:
        lacking = await write.lacking(self.database, company_id, named)
        if lacking:
            kinds: Mapping[str, RecordKind] = {"assignee_id": "staff", "vendor_id": "vendor"}
            await self.replicas.fetch(company_id, {kinds[name]: named[name] for name in lacking})
            for name in await write.lacking(self.database, company_id, named):
                noun = {"assignee_id": "member of staff", "vendor_id": "vendor"}[name]
                raise Refusal(404, "not_found", f"The company has no {noun} with that id; check the id.", name)

    async def CommentOnTicket(
        self, request: pb.CommentOnTicketRequest, call: identity.Call
    ) -> pb.CommentOnTicketResponse:
        comment = bodies.check(inputs.Comment, given_fields(request, "body"))
        author = _label(_AUTHORS, request, "by")

        async def work(command: Command) -> pb.CommentOnTicketResponse:
            locked = await self.editor.lock(command, request.ticket_id)
            await _comment(command, locked, comment.body, author)
            return pb.CommentOnTicketResponse(document=locked.document)

        return await self.commands.run(call, request, pb.CommentOnTicketResponse, work)

    async def CreateTicketComment(
        self, request: pb.CreateTicketCommentRequest, call: identity.Call
    ) -> pb.CreateTicketCommentResponse:
        sent, canonical = bodies.decode(inputs.CommentCreate, request.body)
        operation = f"POST /tickets/{request.ticket_id}/comments"
        claim = idempotency.claim_of(request, identity.caller(call), operation, canonical)

        async def work(command: Command) -> bytes:
            locked = await self.editor.lock(command, request.ticket_id)
            return encode(await _comment(command, locked, sent.text, sent.author or fields.STAFF))

        return pb.CreateTicketCommentResponse(reply=await self.commands.write(call, claim, 201, work))

    async def AddTicketPhoto(self, request: pb.AddTicketPhotoRequest, call: identity.Call) -> pb.AddTicketPhotoResponse:
        photo = bodies.check(inputs.Photo, given_fields(request, "photo_url"))
        fields.check_photo_url(photo.photo_url)
        author = _label(_AUTHORS, request, "by")

        async def photograph(command: Command, ticket: Record, at: datetime.datetime) -> Mapping[str, object]:
            if ticket["photo_url"] != photo.photo_url:
                await _add_comment(command, ticket["id"], fields.PHOTO, photo.photo_url, author, at)
            return {"photo_url": photo.photo_url}

        return await self._change(request, call, pb.AddTicketPhotoResponse, "photographed", author, photograph)

    async def RemoveTicketPhoto(
        self, request: pb.RemoveTicketPhotoRequest, call: identity.Call
    ) -> pb.RemoveTicketPhotoResponse:
        photo = bodies.check(inputs.Photo, given_fields(request, "photo_url"))

        async def work(command: Command) -> pb.RemoveTicketPhotoResponse:
            locked = await self.editor.lock(command, request.ticket_id)
            company_id, ticket_id = command.company_id, locked.row["id"]
            was_added = await write.remove_photo(command.connection, company_id, ticket_id, photo.photo_url)
            removed = {"removed_photo": photo.photo_url}
            if locked.row["photo_url"] == photo.photo_url:
                values = {"photo_url": await write.newest_photo(command.connection, company_id, ticket_id)}
                document = await self.editor.change(command, locked, values, action="photo_removed", also=removed)
                return pb.RemoveTicketPhotoResponse(document=document)
            if not was_added:
                raise fields.no_such_photo()
            # The record stays, and so do its version and updated_at.
            await command.audit("ticket.photo_removed", "ticket", ticket_id, {}, removed)
            return pb.RemoveTicketPhotoResponse(document=locked.document)

        return await self.commands.run(call, request, pb.RemoveTicketPhotoResponse, work)

    async def SetTicketStatus(
        self, request: pb.SetTicketStatusRequest, call: identity.Call
    ) -> pb.SetTicketStatusResponse:
        sent = given_fields(request, "note", "cancellation_reason_code", "cancellation_notes")
        sent["status"] = _label(_STATUS_LABELS, request, "status")
        body = bodies.check(inputs.StatusChange, sent)
        target = status.target_status(body.status, body.note, body.cancellation_reason_code, body.cancellation_notes)
        seen = _label(_STATUS_LABELS, request, "from_status") if request.HasField("from_status") else None

        def reply(ticket: Document) -> bytes:
            return pb.SetTicketStatusResponse(document=ticket).SerializeToString()

        claim = claim_of_actor(call, request, identity.company_id(call))
        written = await self.statuses.change(call, claim, request.ticket_id, target, reply, seen)
        return pb.SetTicketStatusResponse.FromString(written.body)

    async def PassStaleThreshold(
        self, request: pb.PassStaleThresholdRequest, call: identity.Call
    ) -> pb.PassStaleThresholdResponse:
        await self.commands.clocks.sandbox(identity.company_id(call))

        async def work(command: Command) -> pb.PassStaleThresholdResponse:
            ticket = await self.editor.lock(command, request.ticket_id)
            staleness.check_may_go_stale(ticket.facts["of_resident"], ticket.row["status"])
            before = ticket.row["quiet_since"]
            columns = staleness.threshold_passed(before, ticket.facts["stale_after_hours"], command.now)
            await write.save_staleness(command.connection, command.company_id, request.ticket_id, columns._asdict())
            sides = ({"quiet_since": printed(at)} for at in (before, columns.quiet_since))
            await command.audit("ticket.threshold_passed", "ticket", request.ticket_id, *sides)
            return pb.PassStaleThresholdResponse()

        return await self.commands.run(call, request, pb.PassStaleThresholdResponse, work)

    async def ListTicketComments(
        self, request: pb.ListTicketCommentsRequest, call: identity.Call
    ) -> pb.ListTicketCommentsResponse:
        company_id = identity.company_id(call)
        rows = await read.comments(self.database, company_id, request.ticket_id, request.after_comment_id)
        if rows is None:
            raise fields.no_such_ticket()
        page = rows[: read.COMMENT_ROWS]
        answer = pb.ListTicketCommentsResponse(comments=map(records.comment, page))
        if len(rows) > len(page):
            answer.next_after_comment_id = page[-1].id or 0
        return answer

    async def _change(
        self,
        request: Any,
        call: identity.Call,
        response: type[Response],
        action: str,
        author: str,
        decide_values: Decide,
    ) -> Response:
        """Sets columns of a ticket and responds with the ticket."""
        answered: Callable[..., Response] = response

        async def work(command: Command) -> Response:
            return answered(document=await self._changed(command, request.ticket_id, action, author, decide_values))

        return await self.commands.run(call, request, response, work)

    async def _changed(
        self, command: Command, ticket_id: int, action: str, author: str, decide_values: Decide
    ) -> Document:
        locked = await self.editor.lock(command, ticket_id)
        at = command.next_instant(locked.row["updated_at"])
        values = await decide_values(command, locked.row, at)
        if all(locked.row[name] == value for name, value in values.items()):
            return locked.document
        values = {**values, **_staleness_after(locked, author, at)}
        return await self.editor.change(command, locked, values, action=action, at=at)


async def _check_vendor(command: Command, ticket: Record, vendor_id: int | None) -> None:
    """Raises Refusal 422 if a vendor on hold would get the ticket."""
    on_hold = vendor_id is not None and await write.is_on_hold(command.connection, command.company_id, vendor_id)
    fields.check_vendor(ticket["vendor_id"], vendor_id, on_hold=on_hold)


async def _comment(command: Command, locked: LockedTicket, body: str, author: fields.Author) -> records.TicketComment:
    """Adds a comment, which changes neither the ticket's version nor its updated_at."""
    at, ticket_id = command.next_instant(locked.row["updated_at"]), locked.row["id"]
    comment_id = await _add_comment(command, ticket_id, fields.COMMENT, body, author, at)
    columns = _staleness_after(locked, author, at)
    if columns:
        await write.save_staleness(command.connection, command.company_id, ticket_id, columns)
    after = {"comment_id": comment_id, "author": author}
    await command.audit("ticket.commented", "ticket", ticket_id, {}, after)
    return records.TicketComment(1, "ticket_comment", comment_id, ticket_id, body, author, printed(at))


def _staleness_after(locked: LockedTicket, author: str, at: datetime.datetime) -> dict[str, datetime.datetime | None]:
    """The columns of `staleness.Staleness` after a change by the author; empty if they stay."""
    facts = locked.facts
    columns = staleness.staleness_after(
        author, facts["of_resident"], locked.row["status"], at, facts["stale_after_hours"]
    )
    return {} if columns is None else columns._asdict()


def _label(labels: Mapping[int, Label], request: Message, name: str) -> Label:
    """An enum number's label; the first one if the field is absent. Raises Refusal 422 for an unknown number."""
    absent = request.DESCRIPTOR.fields_by_name[name].has_presence and not request.HasField(name)
    label = labels.get(1 if absent else getattr(request, name))
    if label is None:
        raise invalid_request(f"{name} must be one of: {', '.join(labels.values())}.", name, 422)
    return label


async def _add_comment(
    command: Command, ticket_id: int, kind: str, body: str, author: str, at: datetime.datetime
) -> int:
    return await write.add_comment(
        command.connection,
        command.call.identity,
        company_id=command.company_id,
        ticket_id=ticket_id,
        kind=kind,
        body=body,
        created_at=at,
        author=author,
    )
