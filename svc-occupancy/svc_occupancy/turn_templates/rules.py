"""What a template of make-ready tasks may have, and which tasks it adds to a turn. Pure."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence

from chassis.refusals import invalid_request

NAME_POINTS_MAX = 200
TASKS_MAX, TEMPLATES_MAX = 50, 200
# A task may be done before the resident leaves: an inspection before the move-out.
DAYS_MIN, DAYS_MAX = -365, 365


def check_number(templates: int) -> None:
    """Raises Refusal 422 if the company has the most templates that it may have."""
    if templates >= TEMPLATES_MAX:
        raise invalid_request(f"A company has at most {TEMPLATES_MAX} templates; remove one first.", status=422)


def check_version(seen: int | None, now: int) -> None:
    """Raises Refusal 422 if the template has changed since the person saw it. None: any version will do."""
    if seen is not None and seen != now:
        message = "Another person has changed the template meanwhile; compare it with yours and save again."
        raise invalid_request(message, "version", 422)


def check_tasks(task_types: Sequence[str]) -> None:
    """Raises Refusal 422 if two tasks have the same name: the second one would never be added."""
    seen = set()
    for task_type in task_types:
        if _name(task_type) in seen:
            raise invalid_request(f"The template has “{task_type}” twice; give each task its own name.", "tasks", 422)
        seen.add(_name(task_type))


def scheduled_on(move_out_date: datetime.date | None, days: int | None, today: datetime.date) -> datetime.date | None:
    """The date of a task that is so many days after the move-out date. One that is past becomes today: the task is new,
    and late by no fault of anybody. None without a move-out date, or without days."""
    if move_out_date is None or days is None:
        return None
    return max(move_out_date + datetime.timedelta(days=days), today)


class Present:
    """The tasks that a turn has already. A cancelled one may be added again."""

    def __init__(self, tasks: Iterable[tuple[str, str]]) -> None:
        """tasks: the name and the stored status of each."""
        self._names = {_name(task_type) for task_type, status in tasks if status != "cancelled"}

    def has(self, task_type: str) -> bool:
        """Whether there is a task of this name; upper and lower case are alike."""
        return _name(task_type) in self._names


def _name(task_type: str) -> str:
    return " ".join(task_type.split()).casefold()
