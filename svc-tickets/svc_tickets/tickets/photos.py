"""A photo that an integration adds to a ticket: the new column values, and the row of the photo."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from asyncpg import Record

from chassis.auth.identity import Identity
from chassis.records.shapes import DOCUMENT, DOCUMENT_SHAPE, encode
from chassis.refusals import created_by_missing, not_found
from chassis.schedule.instants import Clock, after
from chassis.writes.idempotency import Decision
from svc_tickets.tickets import tables as t
from svc_tickets.tickets.records import TICKET, TicketRenderer
from svc_tickets.tickets.rules import fields, staleness

# The positions of the ticket's own columns in a row of its shape.
_AT = TICKET.positions
_WIDTH = len(TICKET.columns)
_VERSION = _WIDTH - 1


@dataclass(frozen=True, slots=True)
class PhotoRequest:
    """A valid request over the API. comment_id: of the row that the photo gets."""

    renderer: TicketRenderer
    clock: Clock
    caller: Identity
    photo_url: str
    comment_id: int

    def decide(self, row: Record | None) -> Decision:
        """row: of `queries.write.ADD_PHOTO`, locked until the commit. Raises Refusal 404 and 422.

        The photo that the ticket shows already changes nothing.
        """
        if self.caller.administrator_id is None:
            raise created_by_missing()
        if row is None:
            raise not_found("ticket")
        ticket: list[Any] = list(row[:_WIDTH])
        company_id, ticket_id = self.caller.company_id, ticket[_AT["entity_id"]]
        values = {"company_id": company_id, "ticket_id": ticket_id, "new_photo_url": self.photo_url}
        if ticket[_AT["photo_url"]] == self.photo_url:
            # The new version is the ticket's own, so the update changes no row.
            values |= {"new_version": ticket[_VERSION], "new_updated_at": ticket[_AT["updated_at"]]}
            values |= dict.fromkeys(f"new_{name}" for name in (*staleness.COLUMNS, DOCUMENT, DOCUMENT_SHAPE))
            return Decision(201, encode(self.renderer.record(ticket)), {}, values)
        at = after(self.clock(), ticket[_AT["updated_at"]])
        its_status, hours = ticket[_AT["status"]], row["stale_after_hours"]
        quiet = staleness.staleness_from(row["of_resident"], its_status, at, hours)
        ticket[_AT["photo_url"]], ticket[_AT["updated_at"]] = self.photo_url, at
        ticket[_VERSION] += 1
        values |= {"new_version": ticket[_VERSION], "new_updated_at": at}
        columns = self.renderer.columns(ticket)
        values |= {f"new_{name}": value for name, value in (quiet._asdict() | columns).items()}
        photo = {
            "company_id": company_id,
            "ticket_id": ticket_id,
            "id": self.comment_id,
            "kind": fields.PHOTO,
            "body": self.photo_url,
            "created_at": at,
            "administrator_id": self.caller.administrator_id,
            "api_key_id": self.caller.api_key_id,
            "author": None,
            "actor": None,
        }
        return Decision(201, self.renderer.served(columns[DOCUMENT]), {t.ticket_comment: [photo]}, values)
