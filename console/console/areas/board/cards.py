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


SOON_DAYS = 7
"""So many days before a planned move-in, a unit that is not ready, or is down, burns."""


def moves(unit: turn_board_pb2.BoardUnit) -> Sequence[str]:
    """The statuses that a person may set, the present one among them."""
    statuses = [NOT_READY, READY, DOWN]
    if unit.turn_id:
        statuses = ["Occupied", *([NOTICE] if unit.move_out_date else []), *statuses]
    return statuses if unit.unit_status in (*statuses, "") else [unit.unit_status, *statuses]


def date_of(text: str) -> datetime.date | None:
    """A date of a message; None for an absent one."""
    return datetime.date.fromisoformat(text) if text else None


def written(date: datetime.date) -> str:
    """ "1 March 2027" """
    return f"{date.day} {date:%B} {date.year}"


class Days:
    """Dates in words, seen from one day."""

    def __init__(self, today: datetime.date) -> None:
        self.today = today

    def words(self, date: datetime.date) -> str:
        """ "26 Nov", and with its year if that is another: "26 Nov 2025" """
        return f"{date.day} {date:%b}" + ("" if date.year == self.today.year else f" {date.year}")

    def long(self, text: str | datetime.date) -> Markup:
        """The date with its month's name and its year, in a `time` element: "1 March 2027"."""
        date = datetime.date.fromisoformat(text) if isinstance(text, str) else text
        return Markup('<time datetime="{}">{}</time>').format(date.isoformat(), written(date))

    def html(self, text: str | datetime.date | None, *, weekday: bool = False) -> Markup:
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
    """When it will be ready: "ready 18 Dec", "26 Nov, late", "no date yet"; empty for a unit that is ready or lived
    in."""
    next: str
    """Who comes: "moves in 2 Dec", or "not leased"; empty while a resident stays."""
    clash: str
    """Why the next resident cannot move in on their day: the one before is still there; empty if nobody is."""
    soon: str
    """That the next resident moves in within days, and the unit is not ready or is down; empty if that is not so."""
    late: str
    """Why it misses its ready date; empty if nothing says that it will."""
    tasks: Sequence[Task]
    more_tasks: int
    """Open tasks that `tasks` does not have."""

    @property
    def warnings(self) -> Sequence[str]:
        """What burns, in sentences."""
        return [warning for warning in (self.clash, self.soon, self.late) if warning]

    @property
    def card_warnings(self) -> Sequence[str]:
        """As `warnings`, without what a card's own tasks show."""
        return [warning for warning in self.warnings if warning != self.late or not self.unit.tasks_late]

    @property
    def move_in(self) -> datetime.date | None:
        return date_of(self.unit.next_move_in)

    @property
    def next_task(self) -> Task | None:
        return next((task for task in self.tasks if task.look != "done"), None)


def card_of(unit: turn_board_pb2.BoardUnit, days: Days, zone: datetime.tzinfo) -> Card:
    """zone: the company's, by which instants become days."""
    tasks = [card_task(task, days.today) for task in unit.tasks]
    tasks_left = sum(task.look != "done" for task in tasks)
    late = lateness(unit, days)
    ready_on = date_of(unit.projected_ready_on)
    if unit.unit_status not in (NOTICE, NOT_READY, DOWN):
        ready = ""
    elif ready_on is None:
        ready = "no date yet"
    else:
        ready = f"{days.words(ready_on)}, late" if late else f"ready {days.words(ready_on)}"
    more = max(0, unit.tasks_open - tasks_left) if tasks else 0
    return Card(
        unit, since(unit, days, zone), ready, coming(unit, days), clash(unit, days), urgency(unit, days), late, tasks,
        more,
    )  # fmt: skip


def coming(unit: turn_board_pb2.BoardUnit, days: Days) -> str:
    """Who moves in next: "moves in 2 Dec", or "not leased" for a unit that its resident leaves or has left."""
    date = date_of(unit.next_move_in)
    if date is not None:
        return f"{'was to move in' if date < days.today else 'moves in'} {days.words(date)}"
    is_free = not unit.turn_id or unit.has_left or bool(unit.move_out_date)
    return "not leased" if unit.unit_status in (NOTICE, NOT_READY, READY) or (unit.unit_status and is_free) else ""


def clash(unit: turn_board_pb2.BoardUnit, days: Days) -> str:
    """Why the next resident cannot move in on their day; empty if nobody is in the way."""
    if not unit.is_clash:
        return ""
    comes, leaves = date_of(unit.next_move_in), date_of(unit.move_out_date)
    if comes is None or not unit.turn_id or unit.has_left or (leaves is not None and leaves <= comes):
        return "Clash: a later move-in is planned before the resident ahead of it leaves."
    return f"Clash: {overlap(days.words(comes), days.words(leaves) if leaves else '')}"


def overlap(comes: str, leaves: str) -> str:
    """Both dates in words; leaves: empty if there is none."""
    if not leaves:
        return f"the next resident moves in on {comes}, and the resident ahead has no move-out date."
    return f"the resident stays until {leaves}, and the next one moves in on {comes}."


def urgency(unit: turn_board_pb2.BoardUnit, days: Days) -> str:
    """That the next resident moves in within SOON_DAYS, and the unit is not ready or is down."""
    comes = date_of(unit.next_move_in)
    if unit.unit_status not in (NOT_READY, DOWN) or comes is None or (comes - days.today).days > SOON_DAYS:
        return ""
    ready_on = date_of(unit.projected_ready_on)
    if ready_on is not None and ready_on >= days.today and ready_on > comes:
        return ""  # `lateness` says so
    state = "is down" if unit.unit_status == DOWN else "is not ready"
    if comes < days.today:
        return f"The next resident was to come {days.distance(unit.next_move_in)}, and the unit {state}."
    return f"The next resident comes {days.distance(unit.next_move_in)}, and the unit {state}."


def since(unit: turn_board_pb2.BoardUnit, days: Days, zone: datetime.tzinfo) -> str:
    """Since when the unit has its status, or until when, as far as that is known."""
    status, move_out, gone = unit.unit_status, date_of(unit.move_out_date), date_of(unit.empty_since)
    if status == NOTICE:
        word = "on notice" if move_out is None else "left" if move_out < days.today else "leaves"
        return f"{word} {days.words(move_out)}" if move_out else word
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
    if ready_on is not None and move_in is not None and move_in < ready_on and not unit.is_clash:
        return f"The next resident moves in on {days.words(move_in)}, before it is ready."
    if unit.tasks_late:
        return f"{count(unit.tasks_late, 'task')} {'is' if unit.tasks_late == 1 else 'are'} late."
    return ""
