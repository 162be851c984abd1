"""A model of a company's month: computes exactly the events that must follow from the commands (spec 6.1).

It is written from the contract alone and shares nothing with the services. The script reports every command to the
model and compares the events that arrive with those that it implies.
"""

from __future__ import annotations

from collections import Counter
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from .month_calendar import DAY, last_full_hour, morning_after
from .month_parts import CLOSED, Dated, Facts, Implied, Ticket, Turn, Unit, Vendor

VACATED, BEGUN = "unit.vacated", "turn.begun"


class Model:
    """One company, and the events that its commands have implied so far."""

    def __init__(self, zone: ZoneInfo, stale_after_hours: int = 72) -> None:
        self.zone = zone
        self.is_active = True
        self.step = 0
        self.implied: list[Implied] = []
        self.touched: set[tuple[str, int]] = set()
        """Records changed since their last event; touched_in: the same within each step."""
        self.touched_in: set[tuple[str, int, int]] = set()
        self.units: dict[int, Unit] = {}
        self.turns: dict[int, Turn] = {}
        self.tickets: dict[int, Ticket] = {}
        self.vendors: dict[int, Vendor] = {}
        self.dated: dict[tuple[str, int], Dated] = {}
        self._threshold = timedelta(hours=stale_after_hours)

    def _imply(
        self,
        event: str,
        kind: str | None,
        entity_id: int,
        facts: Facts,
        change: tuple[str, Any, Any] | None = None,
    ) -> None:
        moved = None if change is None else dict(zip(("field", "from", "to"), change, strict=True))
        self.implied.append(Implied(event, kind, entity_id, moved, dict(facts), self.step))
        if kind is not None:
            self.touched.discard((kind, entity_id))
            self.touched_in.discard((kind, entity_id, self.step))

    def touch(self, kind: str, entity_id: int) -> None:
        """A record changed without an event."""
        self.touched.add((kind, entity_id))
        self.touched_in.add((kind, entity_id, self.step))

    # Tickets

    def opened(
        self,
        ticket_id: int,
        source: str,
        at: datetime,
        fires: bool = True,
        status: str = "Open",
        resident_asked: bool = False,
    ) -> None:
        """fires: false for imported tickets, which fire no event."""
        of_resident = resident_asked or source == "resident_portal"
        ticket = self.tickets[ticket_id] = Ticket(source, status, at, of_resident)
        self._quiet(ticket)
        if fires:
            self._imply("ticket.created", "ticket", ticket_id, {"status": "Open", "source": source})

    def silent_until(self, ticket_id: int, at: datetime) -> None:
        """An imported ticket that is stale already counts as announced; the next multiple of the threshold fires."""
        ticket = self.tickets[ticket_id]
        if ticket.stale_at is not None:
            self._again(ticket, at)

    def moved(self, ticket_id: int, status: str, at: datetime) -> None:
        """Staff or the API has set a status. The month cancels no ticket twice; completing one again is an event."""
        ticket = self.tickets[ticket_id]
        before, ticket.status = ticket.status, status
        ticket.quiet_since = at
        self._quiet(ticket)
        if before != status or status == "Completed":
            self._imply("ticket.status_changed", "ticket", ticket_id, {"status": status}, ("status", before, status))

    def attended(self, ticket_id: int, at: datetime) -> None:
        """Staff or a vendor did something on the ticket other than a status change."""
        ticket = self.tickets[ticket_id]
        ticket.quiet_since = at
        self._quiet(ticket)
        self.touch("ticket", ticket_id)

    def stale_after(self, hours: int) -> None:
        """A new policy, counted from each ticket's quiet_since."""
        self._threshold = timedelta(hours=hours)
        for ticket in self.tickets.values():
            self._quiet(ticket)

    def _quiet(self, ticket: Ticket) -> None:
        can_be_stale = ticket.of_resident and ticket.status not in CLOSED
        ticket.stale_at = ticket.quiet_since + self._threshold if can_be_stale else None

    def _again(self, ticket: Ticket, now: datetime) -> None:
        ticket.stale_at = ticket.quiet_since + ((now - ticket.quiet_since) // self._threshold + 1) * self._threshold

    # Work with a due date

    def due(
        self, event: str, number: int, day: date | None, facts: Facts, kind: str | None = None, **more: Any
    ) -> None:
        """number: the id. kind: that of the record in the event."""
        self.dated[event, number] = Dated(event, day, dict(facts), kind, number if kind else 0, **more)

    def rescheduled(self, event: str, number: int, day: date | None, **facts: Any) -> None:
        """facts: the changed data of a later event."""
        dated = self.dated[event, number]
        dated.day = day
        dated.facts |= facts
        if dated.kind:
            self.touch(dated.kind, number)

    def done(self, event: str, number: int) -> None:
        """The work was completed or cancelled."""
        dated = self.dated[event, number]
        dated.is_open = False
        if dated.kind:
            self.touch(dated.kind, number)

    # Residencies

    def unit(self, unit_id: int, name: str) -> None:
        self.units[unit_id] = Unit(name)

    def lived_in(self, unit_id: int, turn_id: int) -> None:
        """An imported residency without a move-out date."""
        self.turns[turn_id] = Turn(unit_id)
        self.units[unit_id].turn_id, self.units[unit_id].status = turn_id, "Occupied"

    def noticed(self, unit_id: int, move_out: date) -> None:
        turn_id = self.units[unit_id].turn_id
        self.turns[turn_id].move_out = move_out
        self.touch("turn", turn_id)
        self.stands(unit_id, "Notice")

    def moves_in(self, unit_id: int, turn_id: int, day: date) -> None:
        """A move-in of a later day: it is planned, and nothing else changes."""
        self.turns[turn_id] = Turn(unit_id, move_in=day)
        self.units[unit_id].next_id = turn_id
        self.touch("turn", turn_id)

    def comes(self, unit_id: int, day: date) -> None:
        """The planned move-in has another date."""
        turn_id = self.units[unit_id].next_id
        self.turns[turn_id].move_in = day
        self.touch("turn", turn_id)

    def _began(self, unit_id: int) -> None:
        """Starts the planned turn and ends the one before; tasks of the ended turn stay open."""
        unit = self.units[unit_id]
        before = self.turns.get(unit.turn_id)
        if before is not None and before.is_active:
            before.is_active = False
            self.touch("turn", unit.turn_id)
        unit.turn_id, unit.next_id = unit.next_id, 0
        self.stands(unit_id, "Occupied")

    def stands(self, unit_id: int, status: str) -> None:
        """The unit has a new status, set by any actor. A unit without a turn fires no event."""
        unit = self.units[unit_id]
        before, unit.status = unit.status, status
        if before != status and unit.turn_id:
            turn = self.turns[unit.turn_id]
            facts = {
                "status": "Active" if turn.is_active else "Completed",
                "move_out_date": day_text(turn.move_out),
                "projected_ready_on": day_text(turn.projected),
            }
            self._imply("turn.status_changed", "turn", unit.turn_id, facts, ("unit_status", before, status))

    def planned(self, turn_id: int, projected: date | None) -> None:
        turn = self.turns[turn_id]
        before, turn.projected = turn.projected, projected
        if before != projected:
            change = ("projected_ready_on", day_text(before), day_text(projected))
            facts = {"projected_ready_on": day_text(projected), "move_out_date": day_text(turn.move_out)}
            self._imply("turn.schedule_changed", "turn", turn_id, facts, change)

    def stays(self, unit_id: int) -> None:
        """The notice is cancelled, and with it the schedule and the tasks."""
        turn_id = self.units[unit_id].turn_id
        self.turns[turn_id].move_out = None
        self.touch("turn", turn_id)
        for dated in self.dated.values():
            if dated.turn_id == turn_id:
                dated.is_open = False
        self.planned(turn_id, None)
        self.stands(unit_id, "Occupied")

    # Vendors

    def vendor(self, vendor_id: int) -> None:
        self.vendors[vendor_id] = Vendor()

    def held(self, vendor_id: int, **facts: str) -> None:
        vendor = self.vendors[vendor_id]
        if not vendor.on_hold:
            vendor.on_hold, vendor.held_for_lapse = True, False
            self._imply("vendor.hold", "vendor", vendor_id, facts, ("on_hold", False, True))

    def released(self, vendor_id: int) -> None:
        vendor = self.vendors[vendor_id]
        vendor.on_hold = vendor.held_for_lapse = False
        self.touch("vendor", vendor_id)

    def insured(self, vendor_id: int, expires: date | None) -> None:
        """Records insurance until the end of a day. By the real clock it is valid, so it ends a hold for a lapse."""
        vendor = self.vendors[vendor_id]
        vendor.is_tracked, vendor.expires = True, expires
        if expires is not None:
            vendor.lapsed.clear()
        if vendor.held_for_lapse and expires is not None:
            vendor.on_hold = vendor.held_for_lapse = False
        self.touch("vendor", vendor_id)

    # Notices

    def published(self, subject: str, property_name: str, unit: str, when: str) -> None:
        facts = {"subject": subject, "property": property_name, "unit": unit, "when": when}
        self._imply("property.notice.published", None, 0, facts)

    # The clock

    def sweep(self, now: datetime) -> Counter[str]:
        """Sweeps as of `now`; returns how often each event was fired."""
        before = len(self.implied)
        taken: Counter[str] = Counter()
        if self.is_active:
            self._overdue(now)
            taken = self._turn_over(now)
            self._stale(now)
            self._lapse(last_full_hour(now))
        done = Counter(event.event for event in self.implied[before:])
        return done + taken

    def _overdue(self, now: datetime) -> None:
        for dated in self.dated.values():
            if dated.is_open and not dated.is_announced and dated.day and morning_after(dated.day, self.zone) <= now:
                dated.is_announced = True
                self._imply(dated.event, dated.kind, dated.entity_id, dated.facts)

    def _turn_over(self, now: datetime) -> Counter[str]:
        """Vacates units on the morning after a departure, and begins planned turns on their day or on that of the
        departure before, in the order in which the one and the other were due. A turn that begins on the day of the
        departure, or on the next one, leaves nothing to vacate."""
        taken: Counter[str] = Counter()
        today = now.astimezone(self.zone).date()
        for unit_id, unit in self.units.items():
            turn, following = self.turns.get(unit.turn_id), self.turns.get(unit.next_id)
            leaves = turn.move_out if turn is not None and turn.is_active else None
            begins = following.move_in if following is not None else None
            if begins is not None and leaves is not None:
                begins = max(begins, leaves)
            is_over = leaves is not None and morning_after(leaves, self.zone) <= now
            is_followed = begins is not None and leaves is not None and begins <= min(today, leaves + DAY)
            if is_over and not is_followed and unit.status in ("Occupied", "Notice"):
                self.stands(unit_id, "Vacant Not Ready")
                taken[VACATED] += 1
            if begins is not None and begins <= today:
                self._began(unit_id)
                taken[BEGUN] += 1
        return taken

    def _stale(self, now: datetime) -> None:
        for ticket_id, ticket in self.tickets.items():
            if ticket.stale_at is not None and ticket.stale_at <= now:
                self._again(ticket, now)
                self._imply("ticket.stale", "ticket", ticket_id, {"status": ticket.status, "source": ticket.source})

    def _lapse(self, now: datetime) -> None:
        today = now.astimezone(self.zone).date()
        for vendor_id, vendor in self.vendors.items():
            if not vendor.is_tracked:
                continue
            before, vendor.state = vendor.state, self.compliance(vendor_id, now)
            if before != vendor.state:
                self.touch("vendor", vendor_id)
            expires = vendor.expires
            # A lapse waits until a person's hold has ended.
            is_free = not vendor.on_hold or vendor.held_for_lapse
            if expires is not None and today > expires and expires not in vendor.lapsed and is_free:
                vendor.lapsed.add(expires)
                self.held(vendor_id, last_compliance_state="noncompliant")
                vendor.held_for_lapse = True

    def compliance(self, vendor_id: int, now: datetime) -> str:
        """The compliance state as of `now` of a vendor whose insurance is on record."""
        expires, today = self.vendors[vendor_id].expires, now.astimezone(self.zone).date()
        if expires is None:
            return "missing"
        if today > expires:
            return "noncompliant"
        return "expiring" if expires - today <= timedelta(days=30) else "compliant"


def day_text(day: date | None) -> str | None:
    return None if day is None else day.isoformat()
