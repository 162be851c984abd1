"""One change of a ticket's status: what it makes of the ticket, and the rows that tell of it."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from asyncpg import Record

from chassis.auth.identity import Identity
from chassis.messaging.outbox import Outbox
from chassis.refusals import created_by_missing, not_found
from chassis.writes.idempotency import Decision
from svc_tickets import records, rules, rules_quiet
from svc_tickets import tables as t
from svc_tickets.queries import TICKET_COLUMNS
from svc_tickets.queries_changes import CHANGED

# Where a ticket's own columns stand in a row of TICKET_COLUMNS.
_AT = {column.name: at for at, column in enumerate(TICKET_COLUMNS) if column.table is t.ticket}


@dataclass(frozen=True, slots=True)
class StatusChange:
    """A request whose fields fit each other. comment_id: of the comment that it brings, where it brings one."""

    outbox: Outbox
    links: records.TicketLinks
    clock: Callable[[], datetime.datetime]
    caller: Identity
    request_id: str
    wanted: rules.Wanted
    comment_id: int | None

    def decide(self, row: Record | None) -> Decision:
        """row: of `queries_changes.CHANGE_STATUS`, held until the commit. Raises Refusal 404 and 422."""
        if self.caller.administrator_id is None:
            raise created_by_missing()
        if row is None:
            raise not_found("ticket")
        shown: list[Any] = list(row[: len(TICKET_COLUMNS)])
        before = rules.Standing(*(shown[_AT[name]] for name in rules.Standing.__dataclass_fields__))
        changed = rules.change_status(
            before,
            shown[_AT["updated_at"]],
            self.wanted,
            self.clock(),
            photo_required=row["photo_required"],
            has_photo=row["has_photo"],
        )
        after = changed.standing
        shown[_AT["status"]] = after.status
        shown[_AT["completed_at"]] = after.completed_at
        shown[_AT["cancelled_at"]] = after.cancelled_at
        shown[_AT["cancellation_reason_code"]] = after.cancellation_reason_code
        if changed.at is not None:
            shown[_AT["updated_at"]] = changed.at
            shown[_AT["version"]] += 1
        # Where nothing is new, neither is this: the version then keeps the row from being written.
        quiet = rules_quiet.quiet_from(
            shown[_AT["source"]], after.status, shown[_AT["updated_at"]], row["stale_after_hours"]
        )
        values = {f"new_{name}": shown[_AT[name]] for name in ("version", *CHANGED)}
        values |= {"new_quiet_since": quiet.quiet_since, "new_stale_due_at": quiet.stale_due_at}
        values |= {"company_id": self.caller.company_id, "ticket_id": shown[_AT["id"]]}
        json = records.encode(self.links.ticket(tuple(shown)))
        rows = {} if changed.at is None else self._rows(shown, before.status, changed.at, json)
        return Decision(200, json, rows, values)

    def _rows(
        self, shown: list[Any], before: str, at: datetime.datetime, json: bytes
    ) -> dict[Any, list[dict[str, Any]]]:
        """The comment, the entry of the history and the event."""
        ticket_id, status = shown[_AT["id"]], shown[_AT["status"]]
        of_ticket = {
            "company_id": self.caller.company_id,
            "ticket_id": ticket_id,
            "administrator_id": self.caller.administrator_id,
            "api_key_id": self.caller.api_key_id,
        }
        entry = of_ticket | {
            "version": shown[_AT["version"]],
            "occurred_at": at,
            "from_status": before,
            "to_status": status,
            "cancellation_reason_code": shown[_AT["cancellation_reason_code"]],
            "comment_id": self.comment_id,
            "request_id": self.request_id,
        }
        rows: dict[Any, list[dict[str, Any]]] = {t.ticket_status_change: [entry]}
        if self.wanted.comment is not None:
            comment = of_ticket | {
                "id": self.comment_id,
                "kind": rules.COMMENT_KINDS[status],
                "body": self.wanted.comment,
                "created_at": at,
            }
            rows[t.ticket_comment] = [comment]
        if before != status:
            event = self.outbox.public(
                "ticket.status_changed",
                company_id=self.caller.company_id,
                entity_id=ticket_id,
                occurred_at=at,
                data=json,
                change=records.change("status", before, status),
                request_id=self.request_id,
            )
            rows[t.outbox] = [event]
        return rows
