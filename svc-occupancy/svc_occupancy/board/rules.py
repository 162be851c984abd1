"""Which unit status and which schedule staff may set, and what the board's lists show. Pure."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from chassis.refusals import invalid_request
from svc_occupancy.turn_tasks.rules import OpenTask, place
from svc_occupancy.turns.rules import TransitionStatus
from svc_occupancy.units.rules import UNDER_WAY, VACANT, UnitStatus


def check_unit_status(status: UnitStatus, *, is_lived_in: bool, move_out_date: datetime.date | None) -> None:
    """Raises Refusal 422 if the unit's active turn does not allow the status. is_lived_in: whether it has one."""
    if status in VACANT:
        return
    if not is_lived_in:
        message = f"{status} needs an active turn: the unit has no resident on record; record the move-in instead."
        raise invalid_request(message, "unit_status", 422)
    if status == "Notice" and move_out_date is None:
        message = "Notice needs a move_out_date on the unit's active turn; record the notice instead."
        raise invalid_request(message, "unit_status", 422)


def check_status_seen(seen: str | None, now: UnitStatus | None, after: UnitStatus) -> None:
    """Raises Refusal 422 if the status has changed since the person saw it, unless it is the one that the person sets.

    seen: the status that the person saw, "" for none; None: not said. after: the one to set.
    """
    if seen is not None and seen != (now or "") and now != after:
        stands = f"is {now}" if now else "has no status"
        raise invalid_request(f"The unit {stands} by now; look at it again before you move it.", "unit_status", 422)


def check_schedule(
    status: TransitionStatus, move_out_date: datetime.date | None, projected_ready_on: datetime.date | None
) -> None:
    """Raises Refusal 422 if a turn cannot have this projected ready date."""
    if status != "active":
        raise invalid_request(f"The turn is {status}; an active one alone has work left to schedule.", status=422)
    if projected_ready_on is not None and move_out_date is None:
        raise invalid_request("projected_ready_on needs a move_out_date.", "projected_ready_on", 422)


def asked_statuses(named: Iterable[str], *, under_way: bool) -> list[UnitStatus]:
    """The statuses whose units a list shows by their ready date; none: all units. Raises Refusal 422."""
    statuses = set(named)
    if not statuses.issubset(UNDER_WAY):
        message = f"unit_statuses may name {', '.join(UNDER_WAY[:-1])} and {UNDER_WAY[-1]} only."
        raise invalid_request(message, "unit_statuses", 422)
    return [status for status in UNDER_WAY if under_way or status in statuses]


class ShownTask(OpenTask, Protocol):
    """The fields of a task that its place on a card depends on."""

    @property
    def status(self) -> str: ...
    @property
    def completed_at(self) -> datetime.datetime | None: ...


Shown = TypeVar("Shown", bound=ShownTask)


def shown_tasks(tasks: Sequence[Shown], most: int) -> list[Shown]:
    """At most so many tasks: the completed ones by when they were, then the open ones in their order. The first open
    ones are chosen before the others, then the newly completed ones."""
    to_do = sorted((task for task in tasks if task.status == "open"), key=place)[:most]
    done = sorted((task for task in tasks if task.status != "open"), key=lambda task: (task.completed_at, task.id))
    return done[len(done) - min(len(done), most - len(to_do)) :] + to_do
