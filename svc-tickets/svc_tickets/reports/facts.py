"""What a ticket adds to the figures of reports. Pure."""

from __future__ import annotations

import datetime
import zoneinfo
from collections.abc import Sequence
from dataclasses import dataclass

from chassis.reports.facts import ALL, Fact, RecordFacts
from svc_tickets.reports import measures as m
from svc_tickets.tickets.rules.staleness import CLOSED

DEFINITIONS = 1
"""To be raised with each change of what `facts_of` returns: all figures are then made anew."""

# Nobody waits for an answer to these, unless a resident asked.
UNANSWERED_SOURCES = ("staff", "inspection")


@dataclass(frozen=True, slots=True)
class TicketHistory:
    """A ticket with what happened to it. changed_at, from_statuses, to_statuses: the changes of its status, in their
    order. responded_at: the first comment or photo of staff or a vendor. assigned_at: when its present vendor got it,
    if that is known; vendor_responded_at: the vendor's first comment or photo since."""

    id: int
    state: str
    property_id: int
    category: str
    priority: str
    source: str
    resident_asked: bool
    status: str
    assignee_id: int | None
    vendor_id: int | None
    created_at: datetime.datetime
    completed_at: datetime.datetime | None
    cancelled_at: datetime.datetime | None
    changed_at: Sequence[datetime.datetime]
    from_statuses: Sequence[str]
    to_statuses: Sequence[str]
    responded_at: datetime.datetime | None
    assigned_at: datetime.datetime | None
    vendor_responded_at: datetime.datetime | None


def facts_of(ticket: TicketHistory, zone: zoneinfo.ZoneInfo) -> list[RecordFacts]:
    """The facts of a ticket, on the days of the company's timezone."""
    groups = {
        "category": ticket.category,
        "priority": ticket.priority,
        "assignee": _group(ticket.assignee_id),
        "vendor": _group(ticket.vendor_id),
        "source": ticket.source,
    }
    facts = _Facts(ticket, zone)
    facts.add_all()
    return [RecordFacts(ticket.property_id, groups, facts.facts)]


def _group(entity_id: int | None) -> str:
    return ALL if entity_id is None else str(entity_id)


class _Facts:
    """Collects the facts of one ticket."""

    def __init__(self, ticket: TicketHistory, zone: zoneinfo.ZoneInfo) -> None:
        self._ticket, self._zone = ticket, zone
        self._changes = list(zip(ticket.changed_at, ticket.from_statuses, ticket.to_statuses, strict=True))
        self._is_of_vendor = ticket.vendor_id is not None
        self.facts: list[Fact] = []

    def _add(
        self, measure: str, at: datetime.datetime, amount: int = 1, since: datetime.datetime | None = None
    ) -> None:
        value = None if since is None else int((at - since).total_seconds() // 60)
        self.facts.append(Fact(measure, at.astimezone(self._zone).date(), amount, value))

    def add_all(self) -> None:
        ticket = self._ticket
        self._add(m.OPENED, ticket.created_at)
        self._add_backlog()
        responded_at = self._earliest(ticket.responded_at, ticket.created_at)
        is_awaited = ticket.resident_asked or ticket.source not in UNANSWERED_SOURCES
        if responded_at is not None and is_awaited:
            self._add(m.FIRST_RESPONSE, responded_at, since=ticket.created_at)
        if ticket.completed_at is not None:
            self._add(m.COMPLETED, ticket.completed_at, since=ticket.created_at)
        closed_at = self._closed_at()
        if ticket.status == "Cancelled" and closed_at is not None:
            self._add(m.CANCELLED, closed_at)
        self._add_on_hold(closed_at)
        if self._is_of_vendor:
            self._add_vendor()

    def _closed_at(self) -> datetime.datetime | None:
        """When the ticket was closed for the last time; None if it is open, or if that is not known."""
        ticket = self._ticket
        if ticket.status not in CLOSED:
            return None
        if ticket.completed_at or ticket.cancelled_at:
            return ticket.completed_at or ticket.cancelled_at
        closings = [at for at, before, _ in self._changes if before not in CLOSED]
        return closings[-1] if closings else None

    def _add_backlog(self) -> None:
        """It grows with the opening and each reopening, and shrinks with each closing."""
        ticket = self._ticket
        first = self._changes[0][1] if self._changes else ticket.status
        self._add_level(ticket.created_at, 1)
        if first in CLOSED:
            # A file opened the ticket as a closed one. Of one that was reopened later, the first closing is not known.
            self._add_level((not self._changes and self._closed_at()) or ticket.created_at, -1)
        closings = [at for at, before, after in self._changes if before not in CLOSED and after in CLOSED]
        if closings and ticket.status in CLOSED:
            closings[-1] = self._closed_at() or closings[-1]
        for at in closings:
            self._add_level(at, -1)
        for at, before, after in self._changes:
            if before in CLOSED and after not in CLOSED:
                self._add_level(at, 1)
                self._add(m.REOPENED, at)
                if self._is_of_vendor:
                    self._add(m.VENDOR_REOPENED, at)

    def _add_level(self, at: datetime.datetime, amount: int) -> None:
        self._add(m.BACKLOG, at, amount)
        if self._is_of_vendor:
            self._add(m.VENDOR_BACKLOG, at, amount)

    def _earliest(self, commented_at: datetime.datetime | None, since: datetime.datetime) -> datetime.datetime | None:
        """The first comment, or the first change of status since an instant; None if there was neither."""
        changes = [at for at, _, _ in self._changes if at >= since]
        answers = [at for at in (commented_at, *changes[:1]) if at is not None]
        return min(answers, default=None)

    def _add_on_hold(self, closed_at: datetime.datetime | None) -> None:
        if closed_at is None:
            return
        total, since = datetime.timedelta(), None
        for at, before, after in self._changes:
            if before == "On Hold" and since is not None:
                total, since = total + (at - since), None
            if after == "On Hold":
                since = at
        if total:
            self._add(m.ON_HOLD, closed_at, since=closed_at - total)
            if self._is_of_vendor:
                self._add(m.VENDOR_ON_HOLD, closed_at, since=closed_at - total)

    def _add_vendor(self) -> None:
        ticket = self._ticket
        # A sandbox's clock is ahead of the audit log's, and a file's tickets may be older than it says.
        assigned_at = max(ticket.assigned_at or ticket.created_at, ticket.created_at)
        if ticket.completed_at is not None:
            assigned_at = min(assigned_at, ticket.completed_at)
        self._add(m.ASSIGNED, assigned_at)
        responded_at = self._earliest(ticket.vendor_responded_at, assigned_at)
        if responded_at is not None:
            self._add(m.VENDOR_RESPONSE, responded_at, since=assigned_at)
        if ticket.completed_at is not None:
            self._add(m.VENDOR_COMPLETION, ticket.completed_at, since=assigned_at)
