"""Inspections and vendors of the month: done in time, late or moved, with failed rows; held, released, uninsured."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime
from typing import Any

from .month_calendar import last_full_hour
from .month_company import Record, instant, text
from .month_walk import Month

STALE = "inspection.stale"
SECONDS = 60.0


class Inspections:
    """The inspections of one company."""

    def __init__(self, month: Month, name: str) -> None:
        self.month, self.us = month, month.players[name]
        self.model = self.us.model

    def schedule(self, name: str, day: date, *rows: str, **more: Any) -> Record:
        property_id = self.us.id("property", more.pop("property", self.us.home))
        fields = {"property_id": property_id, "title": name, "scheduled_date": text(day), "row": list(rows), **more}
        inspection: Record = self.us.do("inspection", "schedule", **fields)
        assert (inspection["status"], inspection["scheduled_date"]) == ("Scheduled", text(day))
        number = self.us.name("inspection", name, inspection)
        self.model.due(STALE, number, day, {"status": "Scheduled", "scheduled_date": text(day)}, "inspection")
        return inspection

    def move(self, name: str, day: date) -> None:
        number = self.us.id("inspection", name)
        assert self.us.do("inspection", "update", number, scheduled_date=text(day))["scheduled_date"] == text(day)
        self.model.rescheduled(STALE, number, day, scheduled_date=text(day))

    def start(self, name: str) -> None:
        number = self.us.id("inspection", name)
        assert self.us.do("inspection", "start", number)["status"] == "In Progress"
        self.model.rescheduled(STALE, number, self.model.dated[STALE, number].day, status="In Progress")

    def complete(self, name: str, result: str | None, **more: Any) -> None:
        number = self.us.id("inspection", name)
        inspection = self.us.do("inspection", "complete", number, **more)
        assert (inspection["status"], inspection["result"]) == ("Completed", result), inspection
        self.model.done(STALE, number)

    def cancel(self, name: str) -> None:
        number = self.us.id("inspection", name)
        assert self.us.do("inspection", "cancel", number, reason="The roof is replaced first.")["cancelled_at"]
        self.us.get(f"/inspections/{number}", status=404)
        self.us.refused("inspection", "start", number)
        self.model.done(STALE, number)

    def rows(self, name: str) -> dict[str, Record]:
        rows = self.us.ask("inspection", "rows", self.us.id("inspection", name))["rows"]
        assert [row["position"] for row in rows] == list(range(1, len(rows) + 1))
        return {row["label"]: row for row in rows}

    def plan(self) -> None:
        day, on = self.month.calendar.day, self.month.on
        fire = {"is_compliance_inspection": True, "compliance_type": "Fire", "inspection_type": "Fire Alarm"}
        rows = ("Alarm", "Exits", "Sprinklers")
        on(0, lambda: self.schedule("in time", day(2), "Stairs", "Lamps"))
        on(0, lambda: self.schedule("late", day(3), unit_id=self.us.id("unit", "F1")))
        on(0, lambda: self.schedule("moved in time", day(3), assignee_id=self.us.id("staff", "S1")))
        on(0, lambda: self.schedule("moved too late", day(5)))
        on(1, lambda: self.schedule("begun", day(14), "Roof"))
        on(1, lambda: self.schedule("with faults", day(10), *rows, property="P2", **fire))
        on(1, lambda: self.schedule("called off", day(3), "Roof"))
        on(2, lambda: self.cancel("called off"))
        on(2, self._in_time)
        on(3, lambda: self.move("moved in time", day(8)))
        on(7, lambda: self.move("moved too late", day(12)))
        on(8, self._with_faults)
        on(9, lambda: self.complete("late", "passed", completed_date=text(day(9))))
        on(13, lambda: self.start("begun"))
        on(22, self._begun)

    def _in_time(self) -> None:
        number = self.us.id("inspection", "in time")
        added = self.us.do("inspection", "add-row", number, label="Cellar")
        assert added["position"] == 3
        self.us.do("inspection", "remove-row", number, self.rows("in time")["Lamps"]["row_id"])
        for row in self.rows("in time").values():
            assert self.us.do("inspection", "pass-row", number, row["row_id"])["result"] == "passed"
        self.complete("in time", "passed")

    def _with_faults(self) -> None:
        us, number = self.us, self.us.id("inspection", "with faults")
        rows = self.rows("with faults")
        us.refused("inspection", "complete", number)
        us.do("inspection", "pass-row", number, rows["Exits"]["row_id"])
        for label in ("Alarm", "Sprinklers"):
            more = {"note": "Silent.", "category": "Life Safety", "priority": "Emergency"} if label == "Alarm" else {}
            failed = us.do("inspection", "fail-row", number, rows[label]["row_id"], **more)
            assert failed["result"] == "failed", failed
        us.do("inspection", "fail-row", number, rows["Alarm"]["row_id"], note="Silent still.")  # opens no second ticket
        self.complete("with faults", "failed")
        for ticket in self._tickets(2):
            assert ticket["property"]["external_id"] == "P2" and ticket["unit"] is None
            name = f"fault {ticket['category']}"
            self.model.opened(us.name("ticket", name, ticket), "inspection", instant(ticket["created_at"]))
        assert us.id("ticket", "fault Life Safety") and us.id("ticket", "fault General")

    def _tickets(self, count: int) -> list[Record]:
        """The tickets of failed rows, once the event has reached svc-tickets."""
        deadline = time.monotonic() + SECONDS
        while True:
            opened = [ticket for ticket in self.us.all("/tickets") if ticket["source"] == "inspection"]
            if len(opened) >= count or time.monotonic() > deadline:
                assert len(opened) == count, opened
                return opened
            time.sleep(0.1)

    def _begun(self) -> None:
        number = self.us.id("inspection", "begun")
        (row,) = self.rows("begun").values()
        self.us.do("inspection", "pass-row", number, row["row_id"])
        self.complete("begun", "passed")


class Vendors:
    """The vendors of one company, with their holds and insurance."""

    def __init__(self, month: Month, name: str) -> None:
        self.month, self.us = month, month.players[name]
        self.model = self.us.model

    def add(self, name: str, **more: Any) -> None:
        vendor = self.us.do("vendor", "add", name=name, **more)
        self.model.vendor(self.us.name("vendor", name, vendor))

    def rename(self, name: str, called: str) -> None:
        number = self.us.id("vendor", name)
        assert self.us.do("vendor", "update", number, name=called)["name"] == called
        self.model.touch("vendor", number)

    def hold(self, name: str, reason: str) -> None:
        number = self.us.id("vendor", name)
        self.us.do("vendor", "hold", number, reason=reason)
        self.model.held(number)

    def release(self, name: str) -> None:
        number = self.us.id("vendor", name)
        self.us.do("vendor", "release", number)
        self.model.released(number)

    def insure(self, name: str, expires: date | None) -> None:
        number = self.us.id("vendor", name)
        self.us.do("vendor", "insurance", number, **({} if expires is None else {"expires_on": text(expires)}))
        self.model.insured(number, expires)

    def holds(self, *names: str) -> None:
        """Checks the back office's list of vendors on hold."""
        held = [hold["vendor_id"] for hold in self.us.ask("vendor", "holds")["holds"]]
        assert held == sorted(self.us.id("vendor", name) for name in names)
        assert set(held) == {number for number, vendor in self.model.vendors.items() if vendor.on_hold}

    def snapshot(self) -> None:
        """Checks the last sweep's compliance state of the vendors whose insurance is on record."""
        now = self.month.swept_at
        assert now is not None
        vendors = self.us.all("/vendors")
        if datetime.now(UTC).hour != self.month.steps[-1][0].hour:
            return  # the service's own hourly sweep came in between, on a day when all were insured
        for vendor in vendors:
            if self.model.vendors[vendor["entity_id"]].is_tracked:
                implied = self.model.compliance(vendor["entity_id"], last_full_hour(now))
                assert vendor["last_compliance_state"] == implied, (now, vendor)

    def plan(self) -> None:
        day, on = self.month.calendar.day, self.month.on
        on(0, lambda: self.add("V1"))
        on(0, lambda: self.add("V2", legal_name="Second Plumbing, Inc."), lambda: self.insure("V2", day(6)))
        on(0, lambda: self.add("V3"), lambda: self.insure("V3", None))
        on(0, lambda: self.add("V4"), lambda: self.insure("V4", day(40)))
        on(0, lambda: self.add("V5"), lambda: self.insure("V5", day(10)))
        on(1, self.snapshot)
        on(2, lambda: self.hold("V1", "A complaint"), lambda: self.hold("V1", "Another complaint"))
        on(3, self._refused)
        on(4, lambda: self.rename("V1", "V1 & Sons"))
        on(6, lambda: self.release("V1"))
        on(7, self.snapshot, lambda: self.hold("V1", "A third complaint"))
        # V2's renewal releases it until its next lapse.
        on(8, self.snapshot, lambda: self.holds("V1", "V2"), lambda: self.insure("V2", day(18)))
        # V5 is on hold already when its insurance ends: no second hold.
        on(9, lambda: self.hold("V5", "Too late too often"))
        # V2 is released by hand: the same lapse does not hold it again.
        on(20, lambda: self.holds("V1", "V2", "V5"), lambda: self.release("V2"))
        on(23, self.snapshot, lambda: self.holds("V1", "V5"))
        # V5's hold by a person ends; its insurance has lapsed meanwhile, which is a new reason.
        on(24, lambda: self.release("V5"), lambda: self.holds("V1"))
        on(25, lambda: self.holds("V1", "V5"))

    def _refused(self) -> None:
        ticket = self.us.id("ticket", "by staff")
        vendor = self.us.id("vendor", "V1")
        self.us.refused("ticket", "assign", self.us.id("ticket", "talked about"), vendor_id=vendor)
        assert self.us.get(f"/tickets/{ticket}")["assigned_vendor"]["id"] == vendor
