"""Long random walks of staff, feeds and sweeps over a few units; a model of the rules predicts each step's events."""

from __future__ import annotations

import datetime
import random
from dataclasses import dataclass, field
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from chassis.db.database import Database
from chassis.refusals import Refusal
from svc_occupancy.units import rules as unit_rules

from ..harness import Company, fired

STEPS = 250
# Around the days of clock changes: forward on 2980-03-12 in Toronto, back on 2980-04-02 on Lord Howe Island.
BEGAN = datetime.datetime(2980, 3, 8, tzinfo=datetime.UTC)
DAYS = 28

Fired = tuple[str, int, Any, Any]


@dataclass
class Task:
    date: str | None
    is_open: bool = True
    is_announced: bool = False


@dataclass
class Unit:
    """The model of a unit by the rules."""

    id: int
    status: str | None = None
    active: int | None = None
    newest: int | None = None
    out: str | None = None
    ready: str | None = None
    vacated: str | None = None
    """The move_out_date that is dealt with, by the sweep or by a vacancy that staff set."""
    is_swept: bool = False
    """Whether the sweep has made the unit vacant since its notice changed the status."""
    tasks: dict[int, Task] = field(default_factory=dict)
    turn_of: dict[int, int] = field(default_factory=dict)

    def becomes(self, status: str) -> list[Fired]:
        before, self.status = self.status, status
        speaker = self.active or self.newest
        changed = before != status and speaker is not None
        return [("turn.status_changed", speaker or 0, before, status)] if changed else []

    def notice(self, day: str) -> list[Fired] | None:
        """None: it is refused."""
        if self.vacated is not None and self.status not in unit_rules.LIVED_IN and day <= (self.out or ""):
            return None
        if day == self.out:
            return []
        self.out, self.vacated = day, None
        self.is_swept = self.is_swept and self.status == "Notice"
        return self.becomes("Notice")

    def set_status(self, status: str) -> list[Fired]:
        if status != self.status and status in unit_rules.VACANCIES:
            self.vacated = self.out
        elif status != self.status and status in unit_rules.LIVED_IN and not self.is_swept:
            self.vacated = None
        return self.becomes(status)

    def cancel(self) -> list[Fired]:
        if self.out is None:
            return []
        ready, turn = self.ready, self.active or 0
        self.out = self.ready = self.vacated = None
        for task_id, task in self.tasks.items():
            task.is_open = task.is_open and self.turn_of[task_id] != turn
        return self.becomes("Occupied") + ([("turn.schedule_changed", turn, ready, None)] if ready else [])

    def moved_in(self, turn_id: int) -> list[Fired]:
        self.active = self.newest = turn_id
        self.is_swept = False
        self.out = self.ready = self.vacated = None
        return self.becomes("Occupied")

    def schedule(self, ready: str | None) -> list[Fired]:
        before, self.ready = self.ready, ready
        moved = before != ready
        return [("turn.schedule_changed", self.active or 0, before, ready)] if moved else []

    def sweep(self, now: datetime.datetime, zone: ZoneInfo) -> list[Fired]:
        events: list[Fired] = []
        if self.out != self.vacated and _has_come(self.out, now, zone):
            self.vacated = self.out
            if self.status in unit_rules.LIVED_IN:
                self.is_swept = True
                events += self.becomes("Vacant Not Ready")
        for task_id, task in self.tasks.items():
            if task.is_open and not task.is_announced and _has_come(task.date, now, zone):
                task.is_announced = True
                events.append(("turn.task.stale", task_id, None, None))
        return events


def _has_come(date: str | None, now: datetime.datetime, zone: ZoneInfo) -> bool:
    """Whether it is 06:00 or later on the day after the date."""
    if date is None:
        return False
    day = datetime.date.fromisoformat(date) + datetime.timedelta(days=1)
    return now >= datetime.datetime(day.year, day.month, day.day, 6, tzinfo=zone).astimezone(datetime.UTC)


class Walk:
    """One company's walk. Each step returns the expected events."""

    def __init__(self, company: Company, units: list[Unit], zone: ZoneInfo, seed: int) -> None:
        self.company, self.units, self.zone = company, units, zone
        self.chance = random.Random(seed)
        self.now = BEGAN

    def day(self) -> str:
        return str((BEGAN + datetime.timedelta(days=self.chance.randrange(DAYS))).date())

    async def step(self) -> list[Fired]:
        unit = self.chance.choice(self.units)
        steps = [self.clock, self.clock, self.status, self.feed, self.schedule, self.cancel, self.task, self.task]
        return await self.chance.choice(steps)(unit)

    async def clock(self, _unit: Unit) -> list[Fired]:
        # Mostly forward to a quarter of an hour, sometimes back or over several days.
        self.now += datetime.timedelta(minutes=15 * self.chance.choice([-96, 1, 4, 13, 24, 50, 96, 300]))
        await self.company.sweep(self.now.strftime("%Y-%m-%dT%H:%M:%SZ"))
        return [event for unit in self.units for event in unit.sweep(self.now, self.zone)]

    async def status(self, unit: Unit) -> list[Fired]:
        status = self.chance.choice(unit_rules.UNIT_STATUSES)
        lacks = unit.active is None or (status == "Notice" and unit.out is None)
        refused = status not in unit_rules.VACANT and lacks
        if await self._refused("SetUnitStatus", unit_id=unit.id, unit_status=status) != refused:
            raise AssertionError(unit, status)
        return [] if refused else unit.set_status(status)

    async def feed(self, unit: Unit) -> list[Fired]:
        if unit.active is None:
            return unit.moved_in((await self.company.move_in(unit.id))["entity_id"])
        if unit.out is not None and self.chance.random() < 0.5:
            moved_in = await self.company.move_in(unit.id, predecessor_transition_id=unit.active)
            return unit.moved_in(moved_in["entity_id"])
        day = self.day()
        expected = unit.notice(day)
        try:
            await self.company.notice(unit.id, day)
        except Refusal as refusal:
            assert expected is None and refusal.status == 422, refusal.message
        else:
            assert expected is not None, (unit, day)
        return expected or []

    async def schedule(self, unit: Unit) -> list[Fired]:
        if unit.newest is None:
            return []
        ready = self.chance.choice([self.day(), None])
        fields: dict[str, Any] = {"projected_ready_on": ready} if ready else {"clear": ["projected_ready_on"]}
        refused = ready is not None and unit.out is None
        assert await self._refused("ScheduleTurn", turn_id=unit.newest, **fields) == refused
        return [] if refused else unit.schedule(ready)

    async def cancel(self, unit: Unit) -> list[Fired]:
        refused = unit.active is None
        assert await self._refused("CancelNotice", unit_id=unit.id) == refused
        return [] if refused else unit.cancel()

    async def task(self, unit: Unit) -> list[Fired]:
        if unit.active is not None and self.chance.random() < 0.4:
            day = self.day()
            added = await self.company.command("AddTask", turn_id=unit.active, task_type="Paint", scheduled_date=day)
            unit.tasks[added.task_id], unit.turn_of[added.task_id] = Task(day), unit.active
        elif unit.tasks:
            task_id, task = self.chance.choice(list(unit.tasks.items()))
            rpc = self.chance.choice(["UpdateTask", "CompleteTask", "CancelTask"])
            fields = {"scheduled_date": self.day()} if rpc == "UpdateTask" else {}
            if not await self._refused(rpc, task_id=task_id, **fields):
                task.date = fields.get("scheduled_date", task.date)
                task.is_open = task.is_open and rpc == "UpdateTask"
        return []

    async def _refused(self, rpc: str, **fields: Any) -> bool:
        try:
            await self.company.command(rpc, **fields)
        except Refusal as refusal:
            assert refusal.status == 422, refusal.message
            return True
        return False


@pytest.mark.parametrize(
    ("timezone", "seed"),
    [("America/Toronto", 1), ("Australia/Lord_Howe", 2), ("Pacific/Kiritimati", 3), ("Pacific/Pago_Pago", 4)],
)
async def test_a_walk_fires_what_the_rules_say_and_no_more(
    company: Company, served: Database, timezone: str, seed: int
) -> None:
    await company.know(served, timezone=timezone)
    await company.make_units("U1", "U2", "U3")
    units = [Unit(unit_id) for unit_id in (await company.unit_ids()).values()]
    walk = Walk(company, units, ZoneInfo(timezone), seed)
    expected: list[Fired] = []
    for _ in range(STEPS):
        expected += await walk.step()
    assert sorted(map(str, await fired(served, company))) == sorted(map(str, expected))
    assert {"turn.status_changed", "turn.schedule_changed", "turn.task.stale"} <= {event[0] for event in expected}
    board = {unit.unit_id: unit for unit in await company.command("ListBoard")}
    for unit in units:
        card = board[unit.id]
        assert (card.unit_status or None, card.projected_ready_on or None) == (unit.status, unit.ready)
        assert card.tasks_open == sum(task.is_open for task in unit.tasks.values())
