"""The RPCs of the back office of tickets: each one act, once and audited."""

from __future__ import annotations

import datetime
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from google.protobuf.message import Message

from chassis.auth import identity
from chassis.db.database import Database
from chassis.records import bodies
from chassis.refusals import Refusal, invalid_request
from chassis.writes.commands import Command, CommandRunner, fields
from makeready.common.v1.documents_pb2 import Document
from makeready.tickets.v1 import ticket_commands_pb2 as pb
from svc_tickets import queries_desk as q
from svc_tickets import queries_opening, queries_quiet, records, records_desk, rules, rules_desk, rules_quiet
from svc_tickets.owners import Owners
from svc_tickets.queries_places import place as place_of

_STATUS_LABELS = dict(enumerate(rules.STATUSES, start=1))
_OPENERS = dict(enumerate(rules_desk.SOURCES, start=1))
_AUTHORS = dict(enumerate(rules_desk.AUTHORS, start=1))
_STANDING = tuple(rules.Standing.__dataclass_fields__)

Response = TypeVar("Response", bound=Message)
Decide = Callable[[Command, dict[str, Any]], Awaitable[dict[str, Any]]]


class TicketCommandsService:
    """Opens, assigns, comments on, photographs and moves tickets for people of the company."""

    def __init__(self, commands: CommandRunner, database: Database, owners: Owners, links: records.TicketLinks) -> None:
        self.commands = commands
        self.database = database
        self.owners = owners
        self.links = links

    async def OpenTicket(self, request: pb.OpenTicketRequest, call: identity.Call) -> pb.OpenTicketResponse:
        given = fields(request, *records_desk.TicketOpening.__struct_fields__)
        wanted = bodies.check(records_desk.TicketOpening, given)
        opener = _label(_OPENERS, request, "by")
        source = rules_desk.SOURCES[opener]
        if wanted.photo_url is not None:
            rules_desk.check_photo_url(wanted.photo_url)
        await self._find_place(identity.company_id(call), wanted)

        async def work(command: Command) -> pb.OpenTicketResponse:
            # As a sequence's value is, it is taken at once and for good: nobody else who opens a ticket there waits.
            async with self.database.connection() as beside:
                number = await queries_opening.take_number(beside, wanted.property_id)
            opened = {name: getattr(wanted, name, None) for name in queries_opening.OPENED} | {
                "description": wanted.description or "",
                "priority": wanted.priority or rules.DEFAULT_PRIORITY,
                "permission_to_enter": wanted.permission_to_enter or False,
                "source": source,
            }
            hours = await queries_quiet.stale_after_hours(command.connection, command.company_id)
            quiet = rules_quiet.quiet_from(source, "Open", command.now, hours)._asdict()
            place = {"property_id": wanted.property_id, "unit_id": wanted.unit_id, "asset_id": wanted.asset_id}
            ticket_id = await queries_opening.open_ticket(
                command.connection,
                company_id=command.company_id,
                ticket_number=number,
                now=command.now,
                **opened | quiet,
                **place,
            )
            if wanted.photo_url is not None:
                await _add_comment(command, ticket_id, rules_desk.PHOTO, wanted.photo_url, opener, command.now)
            document = await self._served(command, ticket_id)
            await command.publish_event("ticket.created", ticket_id, command.now, document.json)
            await command.audit("ticket.opened", "ticket", ticket_id, {}, _present(opened | place))
            return pb.OpenTicketResponse(document=document)

        return await self.commands.run(call, request, pb.OpenTicketResponse, work)

    async def _find_place(self, company_id: int, wanted: records_desk.TicketOpening) -> None:
        """Asks the owner once for what a replica lacks. Raises Refusal 404 where it is not there either."""
        unit_id, asset_id = wanted.unit_id, wanted.asset_id
        for has_asked in (False, True):
            place = await place_of(self.database, company_id, wanted.property_id, unit_id or 0, asset_id or 0)
            if place is not None and (place["unit_id"], place["asset_id"]) == (unit_id, asset_id):
                return
            if not has_asked:
                await self.owners.fetch(
                    company_id,
                    property_ids=[wanted.property_id],
                    unit_ids=[] if unit_id is None else [unit_id],
                    asset_ids=[] if asset_id is None else [asset_id],
                )
        if place is None:
            raise Refusal(404, "not_found", "The company has no property with that id.", "property_id")
        kind = "unit" if place["unit_id"] != unit_id else "asset"
        raise Refusal(404, "not_found", f"The property has no {kind} with that id; check both ids.", f"{kind}_id")

    async def AssignTicket(self, request: pb.AssignTicketRequest, call: identity.Call) -> pb.AssignTicketResponse:
        given = fields(request, "assignee_id", "vendor_id")
        wanted = bodies.check(records_desk.Assignment, given)
        if not given:
            raise invalid_request("Give assignee_id or vendor_id, or clear one of them.")
        after = {name: getattr(wanted, name) for name in given}
        await self._find_people(
            identity.company_id(call), {name: one for name, one in after.items() if one is not None}
        )

        async def assign(command: Command, ticket: dict[str, Any]) -> dict[str, Any]:
            vendor_id = after.get("vendor_id")
            on_hold = vendor_id is not None and await q.is_on_hold(command.connection, command.company_id, vendor_id)
            rules_desk.check_vendor(ticket["vendor_id"], vendor_id, on_hold=on_hold)
            return after

        return await self._change(request, call, pb.AssignTicketResponse, "ticket.assigned", rules_desk.STAFF, assign)

    async def _find_people(self, company_id: int, named: Mapping[str, int]) -> None:
        lacking = await q.lacking(self.database, company_id, named)
        if lacking:
            await self.owners.fetch(
                company_id,
                staff_ids=[named[name] for name in lacking if name == "assignee_id"],
                vendor_ids=[named[name] for name in lacking if name == "vendor_id"],
            )
            for name in await q.lacking(self.database, company_id, named):
                noun = {"assignee_id": "member of staff", "vendor_id": "vendor"}[name]
                raise Refusal(404, "not_found", f"The company has no {noun} with that id.", name)

    async def CommentOnTicket(
        self, request: pb.CommentOnTicketRequest, call: identity.Call
    ) -> pb.CommentOnTicketResponse:
        wanted = bodies.check(records_desk.Comment, fields(request, "body"))
        author = _label(_AUTHORS, request, "by")

        async def work(command: Command) -> pb.CommentOnTicketResponse:
            ticket = await self._held(command, request.ticket_id)
            at = command.next_instant(ticket["updated_at"])
            comment_id = await _add_comment(command, ticket["id"], rules_desk.COMMENT, wanted.body, author, at)
            # The record is what it was: neither its version nor its instant moves.
            await q.save_ticket(command.connection, ticket | rules_desk.quiet(ticket, author, at))
            told = {"comment_id": comment_id, "author": author}
            await command.audit("ticket.commented", "ticket", ticket["id"], {}, told)
            return pb.CommentOnTicketResponse(document=await self._served(command, ticket["id"]))

        return await self.commands.run(call, request, pb.CommentOnTicketResponse, work)

    async def AddTicketPhoto(self, request: pb.AddTicketPhotoRequest, call: identity.Call) -> pb.AddTicketPhotoResponse:
        wanted = bodies.check(records_desk.Photo, fields(request, "photo_url"))
        rules_desk.check_photo_url(wanted.photo_url)
        author = _label(_AUTHORS, request, "by")

        async def photograph(command: Command, ticket: dict[str, Any]) -> dict[str, Any]:
            if ticket["photo_url"] != wanted.photo_url:
                at = command.next_instant(ticket["updated_at"])
                await _add_comment(command, ticket["id"], rules_desk.PHOTO, wanted.photo_url, author, at)
            return {"photo_url": wanted.photo_url}

        return await self._change(request, call, pb.AddTicketPhotoResponse, "ticket.photographed", author, photograph)

    async def SetTicketStatus(
        self, request: pb.SetTicketStatusRequest, call: identity.Call
    ) -> pb.SetTicketStatusResponse:
        given = fields(request, "note", "cancellation_reason_code", "cancellation_notes")
        given["status"] = _label(_STATUS_LABELS, request, "status")
        sent = bodies.check(records.StatusChange, given)
        wanted = rules.wanted_change(sent.status, sent.note, sent.cancellation_reason_code, sent.cancellation_notes)

        async def work(command: Command) -> pb.SetTicketStatusResponse:
            ticket = await self._held(command, request.ticket_id)
            before = rules.Standing(*(ticket[name] for name in _STANDING))
            changed = rules.change_status(
                before,
                ticket["updated_at"],
                wanted,
                command.next_instant(ticket["updated_at"]),
                photo_required=ticket["photo_required"],
                has_photo=ticket["has_photo"],
            )
            if changed.at is None:
                return pb.SetTicketStatusResponse(document=await self._served(command, ticket["id"]))
            after = ticket | {name: getattr(changed.standing, name) for name in _STANDING}
            document = await self._save(command, after, changed.at, rules_desk.STAFF)
            comment_id = None
            if wanted.comment is not None:
                kind = rules.COMMENT_KINDS[wanted.status]
                comment_id = await _add_comment(
                    command, ticket["id"], kind, wanted.comment, rules_desk.STAFF, changed.at
                )
            await _add_entry(command, before, after, comment_id)
            if changed.moved:
                change = records.change("status", before.status, after["status"])
                await command.publish_event("ticket.status_changed", ticket["id"], changed.at, document.json, change)
            told = ("status", "cancellation_reason_code")
            sides = [{name: one[name] for name in told} for one in (ticket, after)]
            if comment_id is not None:
                sides[1]["comment_id"] = comment_id
            await command.audit("ticket.status_changed", "ticket", ticket["id"], *sides)
            return pb.SetTicketStatusResponse(document=document)

        return await self.commands.run(call, request, pb.SetTicketStatusResponse, work)

    async def ListTicketComments(
        self, request: pb.ListTicketCommentsRequest, call: identity.Call
    ) -> pb.ListTicketCommentsResponse:
        company_id = identity.company_id(call)
        rows = await q.comments(self.database, company_id, request.ticket_id, request.after_comment_id)
        if rows is None:
            raise _no_ticket()
        shown = rows[: q.COMMENT_ROWS]
        answer = pb.ListTicketCommentsResponse(comments=map(records_desk.told, shown))
        if len(rows) > len(shown):
            answer.next_after_comment_id = shown[-1]["id"]
        return answer

    # What they share

    async def _change(
        self,
        request: Any,
        call: identity.Call,
        response: type[Response],
        action: str,
        author: str,
        decide: Decide,
    ) -> Response:
        """Gives a ticket new values of its own columns; decide: those, of the ticket as it is while it is held."""
        answered: Callable[..., Response] = response

        async def work(command: Command) -> Response:
            ticket = await self._held(command, request.ticket_id)
            values = await decide(command, ticket)
            before = {name: ticket[name] for name in values}
            if before == values:
                return answered(document=await self._served(command, ticket["id"]))
            document = await self._save(command, ticket | values, command.next_instant(ticket["updated_at"]), author)
            await command.audit(action, "ticket", ticket["id"], before, values)
            return answered(document=document)

        return await self.commands.run(call, request, response, work)

    async def _held(self, command: Command, ticket_id: int) -> dict[str, Any]:
        ticket = await q.ticket_for_update(command.connection, command.company_id, ticket_id)
        if ticket is None:
            raise _no_ticket()
        return ticket

    async def _save(self, command: Command, ticket: dict[str, Any], at: datetime.datetime, author: str) -> Document:
        """Stores a ticket that changed, and serves it. It is given its next version."""
        ticket |= {"updated_at": at, "version": ticket["version"] + 1} | rules_desk.quiet(ticket, author, at)
        await q.save_ticket(command.connection, ticket)
        return await self._served(command, ticket["id"])

    async def _served(self, command: Command, ticket_id: int) -> Document:
        row = await q.served(command.connection, command.company_id, ticket_id)
        return Document(json=records.encode(self.links.ticket(row)), entity_id=row[0], version=row[1])


def _no_ticket() -> Refusal:
    return Refusal(404, "not_found", "The company has no ticket with that id.")


def _label(labels: Mapping[int, str], request: Any, name: str) -> str:
    """The word for an enum's number; the first one where the field is absent. Raises Refusal 422 for no such number."""
    absent = request.DESCRIPTOR.fields_by_name[name].has_presence and not request.HasField(name)
    label = labels.get(1 if absent else getattr(request, name))
    if label is None:
        raise invalid_request(f"{name} must be one of: {', '.join(labels.values())}.", name, 422)
    return label


def _present(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


async def _add_comment(
    command: Command, ticket_id: int, kind: str, body: str, author: str, at: datetime.datetime
) -> int:
    return await q.add_comment(
        command.connection,
        company_id=command.company_id,
        ticket_id=ticket_id,
        kind=kind,
        body=body,
        created_at=at,
        administrator_id=command.call.identity.administrator_id,
        author=author,
        actor=command.call.identity.actor,
    )


async def _add_entry(
    command: Command, before: rules.Standing, after: Mapping[str, Any], comment_id: int | None
) -> None:
    await q.add_entry(
        command.connection,
        company_id=command.company_id,
        ticket_id=after["id"],
        version=after["version"],
        occurred_at=after["updated_at"],
        from_status=before.status,
        to_status=after["status"],
        cancellation_reason_code=after["cancellation_reason_code"],
        comment_id=comment_id,
        administrator_id=command.call.identity.administrator_id,
        actor=command.call.identity.actor,
        request_id=command.call.request_id,
    )
