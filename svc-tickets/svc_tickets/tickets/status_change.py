"""Changes a ticket's status for all callers: the new column values, and the rows of history, comment and event."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from asyncpg import Record
from sqlalchemy import Table

from chassis.auth.identity import INTEGRATION, Call
from chassis.db.database import Database
from chassis.db.ids import Ids
from chassis.messaging.outbox import Outbox, OutboxEvent
from chassis.records.shapes import DOCUMENT, DOCUMENT_SHAPE
from chassis.refusals import created_by_missing, not_found
from chassis.schedule.clocks import CompanyClocks
from chassis.schedule.instants import Clock
from chassis.writes.audit import entry
from chassis.writes.idempotency import Claim, Decision
from makeready.common.v1.documents_pb2 import Document, WriteReply
from svc_tickets import schema
from svc_tickets.tickets import tables as t
from svc_tickets.tickets.queries.write import CHANGE_STATUS
from svc_tickets.tickets.records import TICKET, TicketRenderer, change
from svc_tickets.tickets.rules import fields, staleness, status

STATE = tuple(status.TicketState.__dataclass_fields__)


def state_of(row: Mapping[str, Any] | Record) -> status.TicketState:
    """The state of a row of the table."""
    return status.TicketState(*(row[name] for name in STATE))


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

    def state(self) -> dict[str, object]:
        """The ticket's columns that make up its state."""
        return {name: getattr(self.after, name) for name in STATE}

    @property
    def comment_kind(self) -> str:
        return fields.COMMENT_KINDS[self.after.status]

    def entry(self, comment_id: int | None, request_id: str) -> dict[str, object]:
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

    def event(self, outbox: Outbox, data: bytes, request_id: str) -> OutboxEvent:
        """Its event. `data` is the ticket as GET returns it after the change."""
        return outbox.public(
            "ticket.status_changed",
            company_id=self.company_id,
            entity_id=self.ticket_id,
            occurred_at=self.at,
            data=data,
            change=change("status", self.before.status, self.after.status),
            request_id=request_id,
        )


# The positions of the ticket's own columns in a row of its shape.
_AT = TICKET.positions
_WIDTH = len(TICKET.columns)
_VERSION = _WIDTH - 1
# The columns of the audit log.
_AUDITED = ("status", "cancellation_reason_code")


@dataclass(frozen=True, slots=True)
class StatusRequest:
    """A valid request. seen: the status that the person saw, if that counts; reply: what the ledger keeps of the
    ticket; comment_id: of the comment that the request adds, if it adds one."""

    outbox: Outbox
    renderer: TicketRenderer
    clock: Clock
    call: Call
    target: status.TargetStatus
    seen: str | None
    reply: Callable[[Document], bytes]
    comment_id: int | None

    @property
    def is_of_integration(self) -> bool:
        return self.call.identity.kind == INTEGRATION

    def decide(self, row: Record | None) -> Decision:
        """row: of `queries.write.CHANGE_STATUS`. Raises Refusal 404 and 422."""
        if self.is_of_integration and self.call.identity.administrator_id is None:
            raise created_by_missing()
        if row is None:
            raise not_found("ticket") if self.is_of_integration else fields.no_such_ticket()
        ticket: list[Any] = list(row[:_WIDTH])
        before = status.TicketState(*(ticket[_AT[name]] for name in STATE))
        fields.check_status_seen(self.seen, before.status)
        changed = status.change_status(
            before,
            row["cancellation_notes"],
            ticket[_AT["updated_at"]],
            self.target,
            self.clock(),
            photo_required=row["photo_required"],
            has_photo=row["has_photo"],
        )
        company_id, ticket_id, version = self.call.identity.company_id, ticket[_AT["entity_id"]], ticket[_VERSION]
        values = {"company_id": company_id, "id": ticket_id}
        if changed.at is None:
            # The new version is the ticket's own, so the update changes no row.
            kept = ("updated_at", *STATE, *staleness.COLUMNS, DOCUMENT, DOCUMENT_SHAPE)
            values |= dict.fromkeys(f"new_{name}" for name in kept)
            values["new_version"] = version
            return Decision(200, self.reply(self.renderer.document(ticket)), {}, values)
        decided = StatusChange(
            company_id, ticket_id, version + 1, changed.at, before, changed.state, self.target.comment
        )
        ticket[_AT["updated_at"]], ticket[_VERSION] = decided.at, decided.version
        for name, value in decided.state().items():
            ticket[_AT[name]] = value
        of_resident, hours = row["of_resident"], row["stale_after_hours"]
        quiet = staleness.staleness_from(of_resident, decided.after.status, decided.at, hours)
        columns = decided.state() | quiet._asdict()
        rendered = self.renderer.columns(ticket)
        columns |= {"version": decided.version, "updated_at": decided.at} | rendered
        values |= {f"new_{name}": value for name, value in columns.items()}
        json = self.renderer.served(rendered[DOCUMENT])
        document = Document(json=json, entity_id=ticket_id, version=decided.version)
        event = decided.event(self.outbox, json, self.call.request_id)
        return Decision(200, self.reply(document), self._rows(decided), values, [event])

    def _rows(self, decided: StatusChange) -> dict[Table, Sequence[dict[str, Any]]]:
        """The entry of the history, the comment and, of a person's change, the entry of the audit log."""
        who, of_person = self.call.identity, not self.is_of_integration
        by = {
            "administrator_id": who.administrator_id,
            "api_key_id": None if of_person else who.api_key_id,
            "actor": who.actor if of_person else None,
        }
        rows: dict[Table, Sequence[dict[str, Any]]] = {
            t.ticket_status_change: [decided.entry(self.comment_id, self.call.request_id) | by],
        }
        if decided.comment is not None:
            comment = {
                "company_id": decided.company_id,
                "ticket_id": decided.ticket_id,
                "id": self.comment_id,
                "kind": decided.comment_kind,
                "body": decided.comment,
                "created_at": decided.at,
                "author": fields.STAFF if of_person else None,
            }
            rows[t.ticket_comment] = [comment | by]
        if of_person:
            before, after = (
                {name: getattr(side, name) for name in _AUDITED} for side in (decided.before, decided.after)
            )
            if decided.comment is not None:
                after["comment_id"] = self.comment_id
            rows[schema.audit] = [
                entry(
                    self.call, decided.company_id, "ticket.status_changed", "ticket", decided.ticket_id, before, after
                )
            ]
        return rows


class StatusChanges:
    """Changes the status of tickets, for people and integrations."""

    def __init__(self, database: Database, outbox: Outbox, renderer: TicketRenderer, clocks: CompanyClocks) -> None:
        self._database, self._outbox, self._renderer, self._clocks = database, outbox, renderer, clocks
        self._comment_ids = Ids(database, t.comment_id)

    async def change(
        self,
        call: Call,
        claim: Claim,
        ticket_id: int,
        target: status.TargetStatus,
        reply: Callable[[Document], bytes],
        seen: str | None = None,
    ) -> WriteReply:
        """Changes the status, once for the claim. reply: what the ledger keeps of the ticket. seen: the status that
        the person saw; None: any will do. Raises Refusal 404, 409 and 422."""
        comment_id = await self._comment_ids.next() if target.comment is not None else None
        clock = await self._clocks.of(call)
        request = StatusRequest(self._outbox, self._renderer, clock, call, target, seen, reply, comment_id)
        written = await CHANGE_STATUS.change(self._database, claim, ticket_id, request.decide)
        if not written.replayed:
            self._outbox.wake()
        return written
