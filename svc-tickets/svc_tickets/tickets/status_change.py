"""Changes a ticket's status for all callers: the new column values, and the rows of history, comment and event."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from asyncpg import Record

from chassis.auth.identity import Identity
from chassis.messaging.outbox import Outbox
from chassis.records.shapes import DOCUMENT, DOCUMENT_SHAPE, encode
from chassis.refusals import created_by_missing, not_found
from chassis.schedule.instants import Clock
from chassis.writes.idempotency import Decision
from svc_tickets import schema
from svc_tickets.tickets import tables as t
from svc_tickets.tickets.records import TICKET, TicketRenderer, change
from svc_tickets.tickets.rules import fields, staleness, status

STATE = tuple(status.TicketState.__dataclass_fields__)


def state_of(row: Mapping[str, Any] | Record) -> status.TicketState:
    """The state of a row of the table."""
    return status.TicketState(*(row[name] for name in STATE))


@dataclass(frozen=True, slots=True)
class TicketFacts:
    """The facts that decide a status change. They still hold when it is written."""

    version: int
    updated_at: datetime.datetime
    source: str
    state: status.TicketState
    cancellation_notes: str | None
    photo_required: bool
    has_photo: bool
    stale_after_hours: int


@dataclass(frozen=True, slots=True)
class StatusChange:
    """A decided change. version, at: of the ticket after the change; comment: the one sent with it."""

    company_id: int
    ticket_id: int
    version: int
    at: datetime.datetime
    before: status.TicketState
    after: status.TicketState
    comment: str | None = None

    def state(self) -> dict[str, Any]:
        """The ticket's columns that make up its state."""
        return {name: getattr(self.after, name) for name in STATE}

    @property
    def comment_kind(self) -> str:
        return fields.COMMENT_KINDS[self.after.status]

    def entry(self, comment_id: int | None, request_id: str) -> dict[str, Any]:
        """The row of the ticket's history, without the identity that made the change."""
        return {
            "company_id": self.company_id,
            "ticket_id": self.ticket_id,
            "version": self.version,
            "occurred_at": self.at,
            "from_status": self.before.status,
            "to_status": self.after.status,
            "cancellation_reason_code": self.after.cancellation_reason_code,
            "comment_id": comment_id,
            "request_id": request_id,
        }

    def events(self, outbox: Outbox, data: bytes, request_id: str) -> Sequence[dict[str, Any]]:
        """The event's row. data: the ticket as GET returns it after the change."""
        event = outbox.public(
            "ticket.status_changed",
            company_id=self.company_id,
            entity_id=self.ticket_id,
            occurred_at=self.at,
            data=data,
            change=change("status", self.before.status, self.after.status),
            request_id=request_id,
        )
        return [event]


def decide(
    company_id: int, ticket_id: int, ticket: TicketFacts, wanted: status.Wanted, clock: datetime.datetime
) -> StatusChange | None:
    """The change that a request makes; None if nothing changes. Raises Refusal 422."""
    changed = status.change_status(
        ticket.state,
        ticket.cancellation_notes,
        ticket.updated_at,
        wanted,
        clock,
        photo_required=ticket.photo_required,
        has_photo=ticket.has_photo,
    )
    if changed.at is None:
        return None
    version = ticket.version + 1
    return StatusChange(company_id, ticket_id, version, changed.at, ticket.state, changed.state, wanted.comment)


def staleness_after(ticket: TicketFacts, made: StatusChange) -> dict[str, Any]:
    """The columns of `staleness.Staleness` after a change by staff or a caller."""
    return staleness.staleness_from(ticket.source, made.after.status, made.at, ticket.stale_after_hours)._asdict()


# The positions of the ticket's own columns in a row of its shape.
_AT = TICKET.positions
_WIDTH = len(TICKET.columns)
_VERSION = _WIDTH - 1


@dataclass(frozen=True, slots=True)
class StatusRequest:
    """A valid request over the API. comment_id: of the comment that the request adds, if it adds one."""

    outbox: Outbox
    renderer: TicketRenderer
    clock: Clock
    caller: Identity
    request_id: str
    wanted: status.Wanted
    comment_id: int | None

    def decide(self, row: Record | None) -> Decision:
        """row: of `queries.write.CHANGE_STATUS`. Raises Refusal 404 and 422."""
        if self.caller.administrator_id is None:
            raise created_by_missing()
        if row is None:
            raise not_found("ticket")
        shown: list[Any] = list(row[:_WIDTH])
        ticket = TicketFacts(
            version=shown[_VERSION],
            updated_at=shown[_AT["updated_at"]],
            source=shown[_AT["source"]],
            state=status.TicketState(*(shown[_AT[name]] for name in STATE)),
            cancellation_notes=row["cancellation_notes"],
            photo_required=row["photo_required"],
            has_photo=row["has_photo"],
            stale_after_hours=row["stale_after_hours"],
        )
        ticket_id = shown[_AT["entity_id"]]
        made = decide(self.caller.company_id, ticket_id, ticket, self.wanted, self.clock())
        values = {"company_id": self.caller.company_id, "id": ticket_id}
        if made is None:
            # The new version is the ticket's own, so the update changes no row.
            kept = ("updated_at", *STATE, *staleness.COLUMNS, DOCUMENT, DOCUMENT_SHAPE)
            values |= dict.fromkeys(f"new_{name}" for name in kept)
            values["new_version"] = ticket.version
            return Decision(200, encode(self.renderer.record(shown)), {}, values)
        for name, value in made.state().items():
            shown[_AT[name]] = value
        shown[_AT["updated_at"]], shown[_VERSION] = made.at, made.version
        changed = made.state() | staleness_after(ticket, made) | {"version": made.version, "updated_at": made.at}
        changed |= self.renderer.columns(shown)
        values |= {f"new_{name}": value for name, value in changed.items()}
        json = self.renderer.served(changed[DOCUMENT])
        return Decision(200, json, self._rows(made, json), values)

    def _rows(self, made: StatusChange, json: bytes) -> dict[Any, Sequence[dict[str, Any]]]:
        """The entry of the history, the comment and the event."""
        by = {"administrator_id": self.caller.administrator_id, "api_key_id": self.caller.api_key_id}
        rows: dict[Any, Sequence[dict[str, Any]]] = {
            t.ticket_status_change: [made.entry(self.comment_id, self.request_id) | by],
            schema.outbox: made.events(self.outbox, json, self.request_id),
        }
        if made.comment is not None:
            comment = {
                "company_id": made.company_id,
                "ticket_id": made.ticket_id,
                "id": self.comment_id,
                "kind": made.comment_kind,
                "body": made.comment,
                "created_at": made.at,
            }
            rows[t.ticket_comment] = [comment | by]
        return rows
