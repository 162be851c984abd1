"""What the turns of a unit add to the figures of reports. Pure."""

from __future__ import annotations

import datetime
import zoneinfo
from collections.abc import Sequence
from dataclasses import dataclass, field

from chassis.reports.facts import Fact, RecordFacts
from svc_occupancy.reports import measures as m

DEFINITIONS = 1
"""To be raised with each change of what `facts_of` returns: all figures are then made anew."""


@dataclass(frozen=True, slots=True)
class TurnOfUnit:
    """A turn that is not cancelled and has begun. has_left: whether its resident is gone."""

    id: int
    move_in_date: datetime.date | None
    move_out_date: datetime.date | None
    has_left: bool


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the unit's status. turn_id: the current turn after it."""

    changed_at: datetime.datetime
    to_status: str
    turn_id: int | None


@dataclass(frozen=True, slots=True)
class Done:
    """A completed task."""

    turn_id: int
    task_type: str
    completed_at: datetime.datetime


@dataclass(frozen=True, slots=True)
class UnitHistory:
    """A unit: its turns ascending by id, the changes of its status in their order, its completed tasks."""

    property_id: int
    turns: Sequence[TurnOfUnit]
    changes: Sequence[Change]
    tasks: Sequence[Done]


def facts_of(unit: UnitHistory, zone: zoneinfo.ZoneInfo) -> list[RecordFacts]:
    """The facts of a unit, on the days of the company's timezone."""
    facts: list[Fact] = []
    by_type: dict[str, list[Fact]] = {}
    for place, turn in enumerate(unit.turns):
        if turn.move_out_date is None or not turn.has_left:
            continue
        following = unit.turns[place + 1] if place + 1 < len(unit.turns) else None
        vacancy = _Vacancy(turn.move_out_date, following.move_in_date if following else None)
        for change in unit.changes:
            if change.turn_id == turn.id:
                vacancy.take(change.changed_at.astimezone(zone).date(), change.to_status)
        facts += vacancy.facts()
        for task in unit.tasks:
            if task.turn_id == turn.id:
                day = task.completed_at.astimezone(zone).date()
                fact = Fact(m.TASK_COMPLETED, day, value=(day - turn.move_out_date).days)
                by_type.setdefault(task.task_type, []).append(fact)
    records = [RecordFacts(unit.property_id, {}, facts)] if facts else []
    return records + [RecordFacts(unit.property_id, {"task_type": name}, done) for name, done in by_type.items()]


@dataclass(slots=True)
class _Vacancy:
    """The time between a move-out and the next move-in, which may not have come yet."""

    move_out: datetime.date
    move_in: datetime.date | None
    noticed: datetime.date | None = None
    ready: datetime.date | None = None
    days: dict[str, int] = field(default_factory=dict)
    """How long the unit had each status, until it became ready or was let."""
    _status: tuple[str, datetime.date] | None = None

    def take(self, day: datetime.date, status: str) -> None:
        """The next change of the unit's status."""
        self._leave(day)
        if status == "Notice" and self.noticed is None:
            self.noticed = day
        self.ready = day if status == "Vacant Ready" else None
        self._status = (status, day)

    def _leave(self, day: datetime.date) -> None:
        if self._status is not None:
            status, since = self._status
            self.days[status] = self.days.get(status, 0) + max((day - since).days, 0)

    def facts(self) -> list[Fact]:
        facts = [Fact(m.MOVED_OUT, self.move_out), Fact(m.VACANT, self.move_out)]
        if self.ready is not None:
            facts.append(Fact(m.READY, self.ready, value=(self.ready - self.move_out).days))
            if self.noticed is not None:
                facts.append(Fact(m.NOTICE_TO_READY, self.ready, value=(self.ready - self.noticed).days))
        if self.move_in is not None:
            facts.append(Fact(m.VACANT, max(self.move_in, self.move_out), -1))
            facts.append(Fact(m.MOVED_IN, self.move_in, value=(self.move_in - self.move_out).days))
            if self.ready is not None:
                facts.append(Fact(m.READY_TO_MOVE_IN, self.move_in, value=(self.move_in - self.ready).days))
            elif self._status is not None:
                self._leave(self.move_in)
        ended = self.ready or self.move_in
        if ended is not None:
            for measure, status in ((m.NOT_READY, "Vacant Not Ready"), (m.DOWN, "Down")):
                if status in self.days:
                    facts.append(Fact(measure, ended, value=self.days[status]))
        return facts
