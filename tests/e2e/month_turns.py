"""Residencies of the month: notices and move-ins, unit statuses on the board, and the tasks between residents."""

from __future__ import annotations

from datetime import date
from typing import Any

from .month_calendar import DAY
from .month_company import Record, text
from .month_walk import Month

STALE = "turn.task.stale"
FAMILY = [{"first_name": "Ana", "last_name": "Ortiz", "role": "leaseholder"}]


class Turns:
    """The residencies of one company."""

    def __init__(self, month: Month, name: str) -> None:
        self.month, self.us = month, month.players[name]
        self.model = self.us.model

    # Over the API

    def notice(self, unit: str, leaves: date) -> None:
        number = self.us.id("unit", unit)
        body = {"move_out_date": text(leaves), "provider": "yardi"}
        record = self.us.write("POST", f"/units/{number}/notice", body)
        assert (record["entity_id"], record["move_out_date"]) == (self.model.units[number].turn_id, text(leaves))
        self.model.noticed(number, leaves)

    def move_in(self, unit: str, day: date, succeeds: bool = False) -> None:
        number = self.us.id("unit", unit)
        body: dict[str, Any] = {"move_in_date": text(day), "lease_start_date": text(day), "provider": "yardi"}
        body["parties"] = FAMILY
        if succeeds:
            body["predecessor_transition_id"] = self.model.units[number].turn_id
        record = self.us.write("POST", f"/units/{number}/move-in", body)
        assert record["status"] == "active" and record["unit_id"] == number
        self.model.moves_in(number, record["entity_id"], day)

    def comes(self, unit: str, day: date) -> None:
        """Moves the date of the unit's planned move-in."""
        number = self.us.id("unit", unit)
        turn = self.us.do("turn", "change-move-in", self.model.units[number].next_id, move_in_date=text(day))
        assert turn["move_in_date"] == text(day)
        self.model.comes(number, day)

    # On the turn board

    def stands(self, unit: str, status: str, **more: Any) -> None:
        number = self.us.id("unit", unit)
        printed = self.us.do("turn", "unit-status", number, unit_status=status, **more)
        assert (printed["unit_id"], printed["unit_status"]) == (number, status)
        self.model.stands(number, status)

    def turn_of(self, unit: str) -> int:
        return self.model.units[self.us.id("unit", unit)].turn_id

    def ready(self, unit: str, day: date | None) -> None:
        turn_id = self.turn_of(unit)
        fields = {"clear": "projected_ready_on"} if day is None else {"projected_ready_on": text(day)}
        turn = self.us.do("turn", "schedule", turn_id, **fields)
        assert turn["projected_ready_on"] == (day and text(day))
        self.model.planned(turn_id, day)

    def stays(self, unit: str) -> None:
        number = self.us.id("unit", unit)
        turn = self.us.do("turn", "cancel-notice", number)
        assert (turn["entity_id"], turn["move_out_date"], turn["projected_ready_on"]) == (
            self.turn_of(unit),
            None,
            None,
        )
        self.model.stays(number)

    # Tasks

    def task(self, name: str, unit: str, day: date | None) -> None:
        turn_id = self.turn_of(unit)
        fields = {} if day is None else {"scheduled_date": text(day)}
        task: Record = self.us.do("turn", "add-task", turn_id, task_type=name, **fields)
        assert (task["task_type"], task["status"], task["scheduled_date"]) == (name, "Open", day and text(day))
        facts = {"task_type": name, **self.place(unit)}
        self.model.due(STALE, self.us.name("task", name, task), day, facts, turn_id=turn_id)

    def place(self, unit: str) -> dict[str, str]:
        """The property and unit names in an event."""
        record = self.us.get(f"/units/{self.us.id('unit', unit)}")
        return {"property": record["property"]["name"], "unit": record["name"]}

    def move_task(self, name: str, day: date) -> None:
        number = self.us.id("task", name)
        assert self.us.do("turn", "update-task", number, scheduled_date=text(day))["scheduled_date"] == text(day)
        self.model.rescheduled(STALE, number, day)

    def end_task(self, name: str, verb: str) -> None:
        number = self.us.id("task", name)
        ended = {"complete-task": "Completed", "cancel-task": "Cancelled"}[verb]
        assert self.us.do("turn", verb, number)["status"] == ended
        self.model.done(STALE, number)

    # The month

    def plan(self) -> None:
        day, on = self.month.calendar.day, self.month.on
        on(0, self._announced)
        on(0, *(lambda unit=unit: self.move_in(unit, day(0)) for unit in ("F50", "F51", "H30")))
        on(1, self._planned)
        on(1, lambda: self.task("Clean", "F10", day(3)), lambda: self.task("Paint", "F10", day(7)))
        on(1, lambda: self.task("Keys", "F10", None), lambda: self.task("Floors", "F10", day(8)))
        on(1, lambda: self.task("Locks", "F10", day(9)), lambda: self.task("Walls", "F13", day(10)))
        on(1, lambda: self.task("Lamps", "H1", day(15)))
        on(5, lambda: self.move_in("F14", day(9), succeeds=True), lambda: self.comes("F14", day(6)))
        on(6, lambda: self.notice("F12", day(11)))
        on(7, lambda: self.stays("F13"), lambda: self.end_task("Paint", "complete-task"))
        on(8, lambda: self.stands("F10", "Down"), lambda: self.move_task("Floors", day(10)))
        on(9, self._made_ready)
        on(10, lambda: self.ready("F10", None), lambda: self.end_task("Clean", "complete-task"))
        on(12, lambda: self.move_in("F10", day(12), succeeds=True))
        on(13, lambda: self.task("Blinds", "F12", day(12)))  # already overdue when it is added
        on(14, lambda: self.stands("F55", "Vacant Ready"))  # never occupied: no turn, so no event
        on(6, lambda: self.move_task("Clean", day(8)))  # after its event, which is not repeated
        on(19, lambda: self.notice("F15", day(24)))  # vacated by a sweep on day 13; vacated again on day 25
        on(20, lambda: self.stays("F11"))  # vacated by a sweep on day 4; the notice is cancelled
        on(22, self._ended)

    def _announced(self) -> None:
        """Gives the notices; the numbers are the days of the month on which residents leave."""
        leaving = {"F10": 5, "F11": 3, "F12": 8, "F13": 9, "F14": 6, "F15": 12, "H1": 15, "H2": 20}
        for unit, leaves in leaving.items():
            self.notice(unit, self.month.calendar.day(leaves))

    def _planned(self) -> None:
        day = self.month.calendar.day
        self.ready("F10", day(12))
        self.ready("F10", day(14))
        self.ready("F10", day(14))
        self.ready("F13", day(15))
        self.us.refused("turn", "schedule", self.turn_of("F20"), projected_ready_on=text(day(3)))

    def _made_ready(self) -> None:
        who = f"staff:{self.us.id('staff', 'S2')}"
        self.stands("F10", "Vacant Ready", who=who)
        self.stands("F10", "Vacant Ready")
        self.end_task("Locks", "cancel-task")

    def _ended(self) -> None:
        """An ended turn takes no schedule and no tasks."""
        ended = next(n for n, turn in self.model.turns.items() if not turn.is_active)
        self.us.refused("turn", "schedule", ended, projected_ready_on=text(self.month.calendar.day(0) + DAY))
        self.us.refused("turn", "add-task", ended, task_type="Too late")
