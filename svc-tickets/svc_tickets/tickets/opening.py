"""Opens tickets for all sources: the row, and the photo, the event and the audit entry that belong to it."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chassis.auth.identity import Call
from chassis.db.database import Connection
from chassis.messaging.outbox import Outbox
from chassis.writes.audit import Audit
from makeready.common.v1.documents_pb2 import Document
from svc_tickets.tickets import tables as t
from svc_tickets.tickets.queries import numbering, opening, read, write
from svc_tickets.tickets.records import TicketRenderer
from svc_tickets.tickets.rules import fields, staleness

# A ticket with no values set.
_BLANK: dict[str, Any] = dict.fromkeys(t.ticket.c.keys()) | {
    "version": 1,
    "status": fields.FIRST_STATUS,
    "priority": fields.DEFAULT_PRIORITY,
    "permission_to_enter": False,
}
_AUDITED = (
    "source",
    "title",
    "description",
    "category",
    "subcategory",
    "priority",
    "property_id",
    "unit_id",
    "asset_id",
    "room",
    "room_instance",
    "permission_to_enter",
    "preferred_access_time",
    "photo_url",
)


@dataclass(frozen=True, slots=True)
class NewTicket:
    """A ticket to be opened. row: all its columns by name except `id` and `ticket_number`."""

    row: dict[str, Any]

    @classmethod
    def of(
        cls,
        company_id: int,
        source: fields.Source,
        opened_at: datetime.datetime,
        given: Mapping[str, Any],
        stale_after_hours: int = 0,
    ) -> NewTicket:
        """given: column values; a value that is absent or None takes its default. stale_after_hours: the company's
        threshold, needed for a resident's ticket."""
        row = {**_BLANK, "updated_at": opened_at}
        row |= {name: value for name, value in given.items() if value is not None}
        row |= {"company_id": company_id, "source": source, "created_at": opened_at}
        found = staleness.staleness_from(source, row["status"], opened_at, stale_after_hours)
        row["quiet_since"], row["stale_due_at"] = found
        return cls(row)

    def created(
        self, outbox: Outbox, ticket_id: int, occurred_at: datetime.datetime, data: bytes, request_id: str
    ) -> dict[str, Any]:
        """The event's row. data: the ticket as GET returns it."""
        return outbox.public(
            "ticket.created",
            company_id=self.row["company_id"],
            entity_id=ticket_id,
            occurred_at=occurred_at,
            data=data,
            request_id=request_id,
        )

    def audited(self) -> dict[str, Any]:
        """The values that the audit log records of the opening."""
        return {name: self.row[name] for name in _AUDITED if self.row[name] is not None}


class TicketOpener:
    """Opens tickets in the caller's transaction."""

    def __init__(self, outbox: Outbox, audit: Audit, renderer: TicketRenderer) -> None:
        self._outbox, self._audit, self._renderer = outbox, audit, renderer

    async def open(
        self, connection: Connection, call: Call, new: NewTicket, ticket_number: int, author: str
    ) -> Document:
        """Opens the ticket for the caller. author: of its photo, if it has one."""
        ticket_id = await opening.open_ticket(connection, new.row, ticket_number)
        return await self._follow(connection, call, new, ticket_id, author, new.audited())

    async def open_of_row(
        self, connection: Connection, call: Call, new: NewTicket, inspection_row: Mapping[str, int]
    ) -> None:
        """Opens the ticket of a failed inspection row, with staff as author; does nothing if the row already has a
        ticket.

        inspection_row: inspection_id and row_id.
        """
        company_id, property_id = new.row["company_id"], new.row["property_id"]
        if await opening.ticket_of_row(connection, company_id, **inspection_row) is not None:
            return
        number = await numbering.take_number(connection, property_id)
        ticket_id = await opening.open_ticket_of_row(connection, new.row, number, inspection_row)
        audited = {name: new.row[name] for name in ("source", "title", "property_id")} | dict(inspection_row)
        await self._follow(connection, call, new, ticket_id, fields.STAFF, audited)

    async def _follow(
        self,
        connection: Connection,
        call: Call,
        new: NewTicket,
        ticket_id: int,
        author: str,
        audited: Mapping[str, Any],
    ) -> Document:
        row = new.row
        if row["photo_url"] is not None:
            await write.add_comment(
                connection,
                call.identity,
                company_id=row["company_id"],
                ticket_id=ticket_id,
                kind=fields.PHOTO,
                body=row["photo_url"],
                created_at=row["created_at"],
                author=author,
            )
        document = self._renderer.document(await read.served(connection, row["company_id"], ticket_id))
        event = new.created(self._outbox, ticket_id, row["created_at"], document.json, call.request_id)
        await self._outbox.add(connection, event)
        await self._audit.add(connection, call, row["company_id"], "ticket.opened", "ticket", ticket_id, {}, audited)
        return document
