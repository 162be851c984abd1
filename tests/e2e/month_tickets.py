"""Tickets of the month: opened by every source, commented on, moved, closed, reopened, and stale."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

from .month_company import Record, instant
from .month_houses import STALE_AFTER_HOURS
from .month_walk import Month

HOURS = timedelta(hours=1)
THRESHOLD = STALE_AFTER_HOURS * HOURS
TICK = timedelta(milliseconds=1)
WEEK_HOURS = 168
WORDS = "The new valve holds well now."


class Desk:
    """The tickets of one company, and the commands on them."""

    def __init__(self, month: Month, name: str) -> None:
        self.month, self.us = month, month.players[name]
        self.model = self.us.model

    # Commands

    def open(self, name: str, by: str, unit: str, **more: Any) -> Record:
        us = self.us
        place = {"property_id": us.id("property", us.home), "unit_id": us.id("unit", unit)}
        ticket: Record = us.do("ticket", "open", title=name, category="Plumbing", by=by, **place, **more)
        assert ticket["source"] == "staff" and ticket["status"] == "Open" and ticket["unit"]["id"] == place["unit_id"]
        opened_at = instant(ticket["created_at"])
        self.model.opened(us.name("ticket", name, ticket), "staff", opened_at, resident_asked=by == "resident")
        return ticket

    def post(self, name: str, unit: str) -> Record:
        body = {"unit_id": self.us.id("unit", unit), "title": name, "category": "Leak", "priority": "High"}
        ticket = self.us.write("POST", "/tickets", body)
        self.model.opened(self.us.name("ticket", name, ticket), "api", instant(ticket["created_at"]))
        return ticket

    def patch(self, name: str, status: str, **more: Any) -> None:
        number = self.us.id("ticket", name)
        ticket = self.us.write("PATCH", f"/tickets/{number}", {"status": status, **more})
        self.model.moved(number, status, instant(ticket["updated_at"]))

    def set(self, name: str, status: str, **more: Any) -> None:
        number = self.us.id("ticket", name)
        ticket = self.us.do("ticket", "status", number, status=status, **more)
        assert ticket["status"] == status
        self.model.moved(number, status, instant(ticket["updated_at"]))

    def assign(self, name: str, **more: Any) -> None:
        number = self.us.id("ticket", name)
        ticket = self.us.do("ticket", "assign", number, **more)
        self.model.attended(number, instant(ticket["updated_at"]))

    def correct(self, name: str, **more: Any) -> None:
        number = self.us.id("ticket", name)
        ticket = self.us.do("ticket", "update", number, **more)
        assert {name: ticket[name] for name in more} == more
        self.model.attended(number, instant(ticket["updated_at"]))

    def comment(self, name: str, by: str, **more: Any) -> None:
        number = self.us.id("ticket", name)
        self.us.do("ticket", "comment", number, body=f"Said by {by}", by=by, **more)
        if by != "resident":
            self.model.attended(number, self._said(number))
        else:
            self.model.touch("ticket", number)

    def photograph(self, name: str, by: str) -> None:
        number = self.us.id("ticket", name)
        address = f"https://photos.example/{by}.jpg"
        ticket = self.us.do("ticket", "photograph", number, photo_url=address, by=by)
        assert ticket["photo_url"] == address
        if by != "resident":
            self.model.attended(number, self._said(number))
        else:
            self.model.touch("ticket", number)

    def remove_photo(self, name: str, by: str) -> None:
        number = self.us.id("ticket", name)
        ticket = self.us.do("ticket", "remove-photo", number, photo_url=f"https://photos.example/{by}.jpg")
        assert ticket["photo_url"] is None
        self.model.touch("ticket", number)

    def _said(self, number: int) -> datetime:
        """The recorded time of the newest comment or photo."""
        newest = self.us.ask("ticket", "comments", number)["comments"][-1]
        return instant(newest["created_at"])

    def policy(self, hours: int) -> None:
        words = ("--ticket-stale-after-hours", str(hours))
        self.us.system.makeready("company", "update", str(self.us.company.company_id), *words)
        self.model.stale_after(hours)

    def require_photo(self, is_required: bool) -> None:
        word = "--photo-required" if is_required else "--no-photo-required"
        self.us.system.makeready("company", "update", str(self.us.company.company_id), word)

    # The month

    def silence(self) -> None:
        """Sweeps to the millisecond around the times when residents' tickets become stale."""
        step = self.month.step
        names = ("quiet", "woken", "talked about", "visited", "closed")
        step(
            *(lambda name=name, n=n: self.open(name, "resident", f"F{n}") for n, name in enumerate(names)),
            lambda: self.open("by staff", "staff", "F9"),
        )
        since = [self.model.tickets[self.us.id("ticket", name)].quiet_since for name in names]
        first, last = min(since), max(since)
        time.sleep(0.01)
        woken = datetime.now(UTC)
        step(
            lambda: self.comment("woken", "staff", who=f"staff:{self.us.id('staff', 'S1')}"),
            lambda: self.comment("talked about", "resident"),
            lambda: self.photograph("visited", "vendor"),
            lambda: self.patch("closed", "Completed", note=WORDS),
        )
        over = datetime.now(UTC)
        between = last + (woken - last) / 2

        sweep = self.month.sweep
        sweep(first + THRESHOLD - TICK)  # no ticket is stale yet
        sweep(between + THRESHOLD)  # the unattended tickets
        sweep(over + THRESHOLD)  # the attended tickets
        sweep(over + THRESHOLD)
        sweep(first + 2 * THRESHOLD - TICK)
        sweep(between + 2 * THRESHOLD, at_once=3)
        sweep(over + 5 * THRESHOLD)  # one event a ticket, after days without a sweep
        step(lambda: self.policy(STALE_AFTER_HOURS // 2))
        sweep(over + 5 * THRESHOLD + HOURS)  # one event a ticket, due in the past by the new policy
        sweep(over + 5 * THRESHOLD + 2 * HOURS)
        step(lambda: self.policy(WEEK_HOURS), lambda: self.patch("closed", "Open"))  # quiet from now on

    def plan(self) -> None:
        on = self.month.on
        on(0, lambda: self.post("a leak", "F10"), lambda: self.patch("a leak", "In Progress"))
        on(1, self._by_staff)
        on(2, lambda: self.patch("a leak", "Completed", note=WORDS), lambda: self.patch("a leak", "Open"))
        on(3, lambda: self.patch("a leak", "Cancelled", cancellation_reason_code="duplicate_ticket"))
        on(4, lambda: self.set("a leak", "On Hold"))
        on(9, lambda: self.comment("quiet", "vendor"))  # recorded at the real time, long before the month's
        on(11, self._with_photo)
        on(12, lambda: self.policy(WEEK_HOURS // 2))
        on(13, lambda: self.set("woken", "Completed", note=WORDS, who=self.us.company.email))
        on(14, lambda: self.photograph("quiet", "resident"), lambda: self.remove_photo("quiet", "resident"))
        on(18, lambda: self.set("visited", "Cancelled", cancellation_reason_code="resolved_independently"))
        on(20, lambda: self.set("visited", "In Progress"))
        on(21, lambda: self.policy(WEEK_HOURS))

    def _by_staff(self) -> None:
        us = self.us
        self.assign("by staff", assignee_id=us.id("staff", "S2"), vendor_id=us.id("vendor", "V1"))
        self.set("by staff", "In Progress", who=f"staff:{us.id('staff', 'S2')}")
        self.set("by staff", "In Progress")
        self.assign("by staff", clear="assignee_id")
        self.correct("by staff", title="Moved by staff", priority="High", room="Kitchen")

    def _with_photo(self) -> None:
        number = self.us.id("ticket", "by staff")
        self.require_photo(True)
        self.us.refused("ticket", "status", number, status="Completed", note=WORDS)
        self.photograph("by staff", "staff")
        self.set("by staff", "Completed", note=WORDS)
        self.require_photo(False)
