"""Units and tasks in words, by the company's day. Pure."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from console.kit.times import count
from makeready.occupancy.v1 import turn_board_pb2, turn_tasks_pb2

NOTICE, NOT_READY, READY, DOWN = UNDER_WAY = ("Notice", "Vacant Not Ready", "Vacant Ready", "Down")
# The tone and the icon of each status; it stands beside them in words.
TAGS = {
    NOTICE: ("violet", "arrow"),
    NOT_READY: ("amber", "half"),
    READY: ("green", "check"),
    DOWN: ("red", "warn"),
    "Occupied": ("", "people"),
}
TURN_TAGS = {"Active": ("blue", "dot"), "Completed": ("green", "check"), "Cancelled": ("", "x")}
TASK_TAGS = {"Open": ("blue", "o"), "Completed": ("green", "check"), "Cancelled": ("", "x")}


def moves(unit: turn_board_pb2.BoardUnit) -> Sequence[str]:
    """The statuses that a person may set, the present one among them."""
    found = [NOT_READY, READY, DOWN]
    if unit.turn_id:
        found = ["Occupied", *([NOTICE] if unit.move_out_date else []), *found]
    return found if unit.unit_status in (*found, "") else [unit.unit_status, *found]


def date_of(text: str) -> datetime.date | None:
    """A date of a message; None for an absent one."""
    return datetime.date.fromisoformat(text) if text else None


class Days:
    """Dates in words, seen from one day."""

    def __init__(self, today: datetime.date) -> None:
        self.today = today

    def words(self, date: datetime.date) -> str:
        """ "26 Nov", and with its year if that is another: "26 Nov 2025" """
        return f"{date.day} {date:%b}" + ("" if date.year == self.today.year else f" {date.year}")

    def shown(self, text: str | datetime.date | None, *, weekday: bool = False) -> Markup:
        """The date in a `time` element; an en dash without one."""
        date = date_of(text) if isinstance(text, str) else text
        if date is None:
            return Markup("&ndash;")
        words = (f"{date:%a} " if weekday else "") + self.words(date)
        return Markup('<time datetime="{}" title="{}">{}</time>').format(
            date.isoformat(), f"{date:%A}, {date.day} {date:%B %Y}", words
        )

    def distance(self, text: str) -> str:
        """ "in 4 days", "tomorrow", "2 days ago" """
        date = date_of(text)
        if date is None:
            return ""
        days = (date - self.today).days
        if -1 <= days <= 1:
            return ("yesterday", "today", "tomorrow")[days + 1]
        return f"in {count(days, 'day')}" if days > 0 else f"{count(-days, 'day')} ago"


@dataclass(frozen=True, slots=True)
class Task:
    """A task on a card. look: `done`, `late` or nothing."""

    task_id: int
    name: str
    date: datetime.date | None
    look: str

    @property
    def icon(self) -> str:
        return {"done": "check", "late": "warn"}.get(self.look, "o")


def is_late(task: turn_tasks_pb2.TurnTask, today: datetime.date) -> bool:
    """Whether the task is open after the day that it is scheduled for."""
    date = date_of(task.scheduled_date)
    return task.status == "Open" and date is not None and date < today


def card_task(task: turn_tasks_pb2.TurnTask, today: datetime.date) -> Task:
    look = "done" if task.status == "Completed" else "late" if is_late(task, today) else ""
    return Task(task.task_id, task.task_type, date_of(task.scheduled_date), look)


@dataclass(frozen=True, slots=True)
class Card:
    """A unit on the board."""

    unit: turn_board_pb2.BoardUnit
    when: str
    """Since when it has its status, or until when: "empty 7 days", "leaves 9 Dec"."""
    ready: str
    """When it will be ready, or who comes: "ready 18 Dec", "26 Nov, late", "moves in 2 Dec", "nobody yet"."""
    also: str
    """The next move-in, where `ready` does not say it."""
    late: str
    """Why it misses its date; empty if nothing says that it will."""
    tasks: Sequence[Task]
    more_tasks: int
    """Open tasks that `tasks` does not have."""

    @property
    def move_in(self) -> datetime.date | None:
        return date_of(self.unit.next_move_in)

    @property
    def next_task(self) -> Task | None:
        return next((task for task in self.tasks if task.look != "done"), None)


def card_of(unit: turn_board_pb2.BoardUnit, days: Days, zone: datetime.tzinfo) -> Card:
    """zone: the company's, by which instants become days."""
    tasks = [card_task(task, days.today) for task in unit.tasks]
    left = sum(task.look != "done" for task in tasks)
    late = lateness(unit, days)
    ready_on, move_in = date_of(unit.projected_ready_on), date_of(unit.next_move_in)
    comes = f"moves in {days.words(move_in)}" if move_in else ""
    if unit.unit_status == READY:
        ready, comes = comes or "nobody yet", ""
    elif ready_on is None:
        ready = "no date yet"
    else:
        ready = f"{days.words(ready_on)}, late" if late else f"ready {days.words(ready_on)}"
    when = since(unit, days, zone)
    return Card(unit, when, ready, comes, late, tasks, max(0, unit.tasks_open - left) if tasks else 0)


def since(unit: turn_board_pb2.BoardUnit, days: Days, zone: datetime.tzinfo) -> str:
    """Since when the unit has its status, or until when, as far as that is known."""
    status, left, gone = unit.unit_status, date_of(unit.move_out_date), date_of(unit.empty_since)
    if status == NOTICE:
        word = "on notice" if left is None else "left" if left < days.today else "leaves"
        return f"{word} {days.words(left)}" if left else word
    empty = f"empty {_length(gone, days)}" if gone else ""
    if status == NOT_READY and empty:
        return empty
    word = {NOT_READY: "empty", READY: "ready", DOWN: "down"}.get(status, "for")
    at = unit.unit_status_since.ToDatetime(datetime.UTC).astimezone(zone).date()
    is_known = unit.HasField("unit_status_since")
    if is_known and not unit.since_or_earlier:
        return f"{word} {_length(at, days)}"
    # A file says what state a unit is in, not since when: the departure says more.
    if empty:
        return f"down, {empty}" if status == DOWN else empty
    if is_known and at < days.today:
        return f"{word} {_length(at, days)} or longer"
    return word if status in UNDER_WAY else ""


def _length(start: datetime.date, days: Days) -> str:
    passed = (days.today - start).days
    return count(passed, "day") if passed > 0 else "since today"


def lateness(unit: turn_board_pb2.BoardUnit, days: Days) -> str:
    """Why a unit that is not ready misses its date; empty if nothing says that it will."""
    if unit.unit_status not in (NOTICE, NOT_READY, DOWN):
        return ""
    ready_on, move_in = date_of(unit.projected_ready_on), date_of(unit.next_move_in)
    if ready_on is not None and ready_on < days.today:
        return f"It was to be ready {count((days.today - ready_on).days, 'day')} ago."
    if ready_on is not None and move_in is not None and move_in < ready_on:
        return f"The next resident moves in on {days.words(move_in)}, before it is ready."
    if unit.tasks_late:
        return f"{count(unit.tasks_late, 'task')} {'is' if unit.tasks_late == 1 else 'are'} late."
    return ""
