"""Units and tasks in words, by the company's day. Pure."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from console.kit.texts import _, ngettext
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
            return (_("yesterday"), _("today"), _("tomorrow"))[days + 1]
        if days > 0:
            return ngettext("in %(num)s day", "in %(num)s days", days) % {"num": f"{days:,}"}
        return ngettext("%(num)s day ago", "%(num)s days ago", -days) % {"num": f"{-days:,}"}


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
    """Since when it has its status, or until when: "Vacant 7 days", "Moving out 9 Dec"."""
    ready: str
    """When it will be ready: "Ready 18 Dec", "Ready 26 Nov, overdue"; empty for a unit that is ready or lived in."""
    next: str
    """Who comes: "Moving in 2 Dec", or "Not leased"; empty while a resident stays."""
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
    more = max(0, unit.tasks_open - tasks_left) if tasks else 0
    return Card(
        unit, since(unit, days, zone), ready_by(unit, late, days), coming(unit, days), clash(unit, days),
        urgency(unit, days), late, tasks, more,
    )  # fmt: skip


def coming(unit: turn_board_pb2.BoardUnit, days: Days) -> str:
    """Who moves in next: "Moving in 2 Dec", or "Not leased" for a unit that its resident leaves or has left."""
    date = date_of(unit.next_move_in)
    if date is not None:
        words = _("Move-in was due %(day)s") if date < days.today else _("Moving in %(day)s")
        return words % {"day": days.words(date)}
    is_free = not unit.turn_id or unit.has_left or bool(unit.move_out_date)
    return _("Not leased") if unit.unit_status in (NOTICE, NOT_READY, READY) or (unit.unit_status and is_free) else ""


def clash(unit: turn_board_pb2.BoardUnit, days: Days) -> str:
    """Why the next resident cannot move in on their day; empty if nobody is in the way."""
    if not unit.is_clash:
        return ""
    comes, leaves = date_of(unit.next_move_in), date_of(unit.move_out_date)
    if comes is None or not unit.turn_id or unit.has_left or (leaves is not None and leaves <= comes):
        return _("A later move-in is scheduled before the previous resident moves out.")
    return overlap(days.words(comes), days.words(leaves) if leaves else "")


def overlap(comes: str, leaves: str) -> str:
    """Both dates in words; leaves: empty if there is none."""
    if not leaves:
        words = _("The next resident moves in %(comes)s, and the current resident has no move-out date.")
        return words % {"comes": comes}
    words = _("The current resident moves out %(leaves)s, and the next resident moves in %(comes)s.")
    return words % {"leaves": leaves, "comes": comes}


def urgency(unit: turn_board_pb2.BoardUnit, days: Days) -> str:
    """That the next resident moves in within SOON_DAYS, and the unit is not ready or is down."""
    comes = date_of(unit.next_move_in)
    if unit.unit_status not in (NOT_READY, DOWN) or comes is None or (comes - days.today).days > SOON_DAYS:
        return ""
    ready_on = date_of(unit.projected_ready_on)
    if ready_on is not None and ready_on >= days.today and ready_on > comes:
        return ""  # `lateness` says so
    is_down = unit.unit_status == DOWN
    if comes < days.today:
        down, not_ready = (
            _("Move-in was due %(when)s; unit is down."),
            _("Move-in was due %(when)s; unit is not ready."),
        )
    else:
        down, not_ready = _("Move-in is %(when)s; unit is down."), _("Move-in is %(when)s; unit is not ready.")
    return (down if is_down else not_ready) % {"when": days.distance(unit.next_move_in)}


# Since when a unit has its status: for some days, and since today.
_SINCE = {
    NOT_READY: (_("Vacant %(length)s"), _("Vacant since today")),
    READY: (_("Ready %(length)s"), _("Ready since today")),
    DOWN: (_("Down %(length)s"), _("Down since today")),
}
_OTHERWISE = (_("for %(length)s"), _("since today"))
_WITHOUT_A_DAY = {NOT_READY: _("Vacant"), READY: _("Ready"), DOWN: _("Down")}


def since(unit: turn_board_pb2.BoardUnit, days: Days, zone: datetime.tzinfo) -> str:
    """Since when the unit has its status, or until when, as far as that is known."""
    status, move_out, gone = unit.unit_status, date_of(unit.move_out_date), date_of(unit.empty_since)
    if status == NOTICE:
        if move_out is None:
            return _("On notice")
        words = _("Moved out %(day)s") if move_out < days.today else _("Moving out %(day)s")
        return words % {"day": days.words(move_out)}
    vacant = _for(NOT_READY, gone, days) if gone else ""
    if status == NOT_READY and vacant:
        return vacant
    at = unit.unit_status_since.ToDatetime(datetime.UTC).astimezone(zone).date()
    is_known = unit.HasField("unit_status_since")
    if is_known and not unit.since_or_earlier:
        return _for(status, at, days)
    # A file says what state a unit is in, not since when: the departure says more.
    if vacant:
        return _("Down · %(vacant)s") % {"vacant": vacant} if status == DOWN else vacant
    is_longer = is_known and at < days.today
    return _("%(since)s or longer") % {"since": _for(status, at, days)} if is_longer else _WITHOUT_A_DAY.get(status, "")


def _for(status: str, start: datetime.date, days: Days) -> str:
    passed = (days.today - start).days
    with_length, since_today = _SINCE.get(status, _OTHERWISE)
    length = ngettext("%(num)s day", "%(num)s days", passed) % {"num": f"{passed:,}"}
    return with_length % {"length": length} if passed > 0 else since_today


def lateness(unit: turn_board_pb2.BoardUnit, days: Days) -> str:
    """Why a unit that is not ready misses its date; empty if nothing says that it will."""
    if unit.unit_status not in (NOTICE, NOT_READY, DOWN):
        return ""
    ready_on, move_in = date_of(unit.projected_ready_on), date_of(unit.next_move_in)
    if ready_on is not None and ready_on < days.today:
        passed = (days.today - ready_on).days
        return ngettext("Make-ready is %(num)s day overdue.", "Make-ready is %(num)s days overdue.", passed) % {
            "num": f"{passed:,}"
        }
    if ready_on is not None and move_in is not None and move_in < ready_on and not unit.is_clash:
        return _("Next move-in is %(day)s, before the ready date.") % {"day": days.words(move_in)}
    if unit.tasks_late:
        return ngettext("%(num)s task overdue.", "%(num)s tasks overdue.", unit.tasks_late) % {"num": unit.tasks_late}
    return ""


def ready_by(unit: turn_board_pb2.BoardUnit, late: str, days: Days) -> str:
    """Until when a unit is made ready: "Ready 2 Dec", "Ready 2 Dec, at risk", "Ready 20 Nov, overdue"."""
    ready_on = date_of(unit.projected_ready_on)
    if unit.unit_status not in (NOTICE, NOT_READY, DOWN):
        return ""
    if ready_on is None:
        return _("No ready date")
    words = _("Ready %(day)s")
    if late:
        words = _("Ready %(day)s, overdue") if ready_on < days.today else _("Ready %(day)s, at risk")
    return words % {"day": days.words(ready_on)}
