"""Upkeep of the month: recurring maintenance, notices to residents, properties, and meter readings."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from .month_company import Record, text
from .month_walk import Month

STALE = "pm.stale"


class Upkeep:
    """The preventive maintenance and the notices of one company."""

    def __init__(self, month: Month, name: str) -> None:
        self.month, self.us = month, month.players[name]
        self.model = self.us.model

    # Maintenance

    def pm(self, name: str, day: date, unit: str | None = None, **more: Any) -> None:
        """unit: its name in the script. more: `area` and the options for repetition."""
        fields = dict(more) if unit is None else {"unit_id": self.us.id("unit", unit), **more}
        property_id = self.us.id("property", self.us.home)
        task = self.us.do("pm", "add", property_id=property_id, task_name=name, due_date=text(day), **fields)
        label = self.model.units[fields["unit_id"]].name if unit else fields.get("area", "Whole property")
        self._due(name, task, day, label)

    def _due(self, name: str, task: Record, day: date, label: str) -> None:
        assert (task["task_name"], task["due_date"], task["status"]) == (name, text(day), "Open"), task
        home = self.us.get(f"/properties/{self.us.id('property', self.us.home)}")["name"]
        facts = {"task_name": name, "due_date": text(day), "property": home, "unit": label}
        self.model.due(STALE, self.us.name("pm_task", name, task), day, facts)

    def move_pm(self, name: str, day: date) -> None:
        number = self.us.id("pm_task", name)
        assert self.us.do("pm", "update", number, due_date=text(day))["due_date"] == text(day)
        self.model.rescheduled(STALE, number, day, due_date=text(day))

    def done_pm(self, name: str, then: date | None = None) -> None:
        """then: the due date of the successor of a recurring task."""
        number = self.us.id("pm_task", name)
        label = self.model.dated[STALE, number].facts["unit"]
        self.us.do("pm", "complete", number)
        self.model.done(STALE, number)
        if then is not None:
            (successor,) = (task for task in self.us.ask("pm", "list", open=True)["tasks"] if task["task_name"] == name)
            assert successor["pm_task_id"] != number
            self._due(name, successor, then, label)

    def leave_pm(self, name: str) -> None:
        number = self.us.id("pm_task", name)
        assert self.us.do("pm", "cancel", number)["status"] == "Cancelled"
        self.model.done(STALE, number)

    # Notices

    def notice(self, name: str, label: str, is_published: bool = True, **audience: Any) -> None:
        """label: the audience as the event names it."""
        home = self.us.id("property", self.us.home)
        words = {"subject": f"{name}?", "body": f"About {name}.", "when": "Tuesday, 9 to 12"}
        notice = self.us.do("notice", "compose", property_id=home, **words, **audience)
        number = self.us.name("notice", name, notice)
        self.us.do("notice", "update", number, subject=name)
        if is_published:
            self.us.do("notice", "publish", number)
            self.us.do("notice", "publish", number)  # fires no second event
            property_name = self.us.get(f"/properties/{home}")["name"]
            self.model.published(name, property_name, label, words["when"])

    def discarded(self) -> None:
        """Composes a notice and deletes it. Neither fires an event."""
        words = {"subject": "Never", "body": "A mistake.", "when": "Tuesday"}
        notice = self.us.do("notice", "compose", property_id=self.us.id("property", self.us.home), **words)
        self.us.do("notice", "discard", notice["notice_id"])

    def brought(self) -> None:
        """Publishes an imported draft notice, and imports an overdue task with --events, so that it is announced."""
        self.us.do("notice", "publish", self.us.id("notice", "N2"))
        self.model.published("Snow", "Mohawk Row", "All units", "Tonight")
        due = self.month.calendar.day(5)  # a week ago in the month; by the real clock nothing fires it
        row = {"external_id": "M4", "property": "P2", "task_name": "Drains", "due_date": text(due), "area": "Yard"}
        self.us.fill("pm-tasks", [row], "--events")
        facts = {"task_name": "Drains", "property": "Mohawk Row", "unit": "Yard", "due_date": text(due)}
        (task,) = (task for task in self.us.ask("pm", "list", open=True)["tasks"] if task["external_id"] == "M4")
        self.model.due(STALE, self.us.name("pm_task", "M4", task), due, facts)

    # Properties

    def places(self) -> None:
        """Adds and updates a property with a unit, an asset, a meter and a reading. None of it fires an event."""
        us, day = self.us, self.month.calendar.day
        house = us.do("property", "add", name="Annex", address="3 Quay Street", who=us.company.email)
        us.do("property", "update", house["entity_id"], city="Kingston")
        unit = us.do("unit", "add", property_id=house["entity_id"], name="Loft")
        unit = us.do("unit", "update", unit["entity_id"], unit_number="3L")
        self.model.unit(us.name("unit", "loft", unit), "Loft")
        description = {"category": "HVAC", "make": "Acme", "model": "Z"}
        asset = us.do(
            "asset", "add", property_id=house["entity_id"], name="Furnace", unit_id=unit["entity_id"], **description
        )
        asset = us.do("asset", "update", asset["entity_id"], status="Needs Service")
        meter = us.do("meter", "add", property_id=house["entity_id"], name="Main", utility_type="water")
        meter = us.do("meter", "update", meter["entity_id"], meter_number="W-1")
        period = {"period_start": text(day(0)), "period_end": text(day(9)), "consumption": 12.5}
        reading = us.do("reading", "record", meter["entity_id"], **period)
        reading = us.do("reading", "correct", meter["entity_id"], reading["entity_id"], consumption=21.5)
        for path, record in ((f"/units/{unit['entity_id']}", unit), (f"/assets/{asset['entity_id']}", asset)):
            assert us.get(path) == record
        assert us.get(f"/meters/{meter['entity_id']}") == meter
        assert us.get(f"/meters/{meter['entity_id']}/readings")["data"] == [reading]
        someone = us.do("staff", "add", name="Nia Cole", email="nia@hudson.example")
        us.do("staff", "update", someone["staff_id"], title="Superintendent")

    def rename(self, unit: str, name: str) -> None:
        """Renames a unit; later events have its new name."""
        number = self.us.id("unit", unit)
        before, self.model.units[number].name = self.model.units[number].name, name
        assert self.us.do("unit", "update", number, name=name)["name"] == name
        self.us.system.makeready("wait")
        for dated in self.model.dated.values():
            if dated.facts.get("unit") == before and not dated.is_announced:
                dated.facts["unit"] = name

    # The month

    def plan(self) -> None:
        day, on = self.month.calendar.day, self.month.on
        on(0, lambda: self.pm("Filters", day(2), "F3"), lambda: self.pm("Boilers", day(3), area="Boiler room"))
        on(0, lambda: self.pm("Gutters", day(5), "F6", repeat_days=7), lambda: self.pm("Pumps", day(3), area="Cellar"))
        on(0, lambda: self.pm("Hoses", day(6), area="Yard"), lambda: self.pm("Lift", day(4), "F5", repeat_months=1))
        on(0, lambda: self.pm("Ducts", day(13), repeat_days=4))
        on(2, lambda: self.done_pm("Filters"))
        on(3, lambda: self.move_pm("Pumps", day(15)))
        on(4, lambda: self.done_pm("Lift", then=month_later(day(4))))
        on(6, lambda: self.move_pm("Boilers", day(9)))  # after its event, which is not repeated
        on(8, lambda: self.rename("F6", "Garden flat"))
        on(5, lambda: self.done_pm("Gutters", then=day(12)), lambda: self.leave_pm("Hoses"))
        on(14, lambda: self.done_pm("Gutters", then=day(19)))
        on(17, lambda: self.done_pm("Gutters", then=day(26)))
        on(12, self.brought)
        on(22, lambda: self.done_pm("Ducts", then=day(17)))  # the successor is overdue when it is created

        units = [self.us.id("unit", unit) for unit in ("F1", "F2", "F3")]
        on(5, lambda: self.notice("Water off", "All units"))
        on(5, lambda: self.notice("Your balcony", "Flat 1", unit_id=units[:1]))
        on(11, lambda: self.notice("Your windows", "3 units", unit_id=units))
        on(11, lambda: self.notice("The pool", "Pool deck", area="Pool deck"))
        on(20, lambda: self.notice("Never said", "All units", is_published=False))
        on(20, self.discarded)
        on(10, self.places)


def month_later(day: date) -> date:
    """The same day of the next month. The script uses no day after the 28th."""
    assert day.day <= 28
    return (day.replace(day=1) + timedelta(days=32)).replace(day=day.day)
