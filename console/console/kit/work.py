"""The work of one person in one list: each area's panel `/AREA/work?staff_id=` renders its rows with `ui.work`.

The rows of all areas are merged by their day; emergencies come first within a day. So no area knows another one.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from console.kit.calls import together
from console.kit.context import PageContext
from console.kit.panels import Included, include
from console.kit.texts import _

TOPICS = ("ticket", "inspection", "turn_task", "pm_task")
"""The kinds of records that a list of work is made of."""
EMERGENCY, HIGH, USUAL, LOW = range(4)
"""How urgent a row is."""
WEEK_DAYS = 6
# As `ui.work` writes a row.
_ROW = re.compile(r'<li class="work-row"\s+data-day="([0-9-]*)"\s+data-rank="(\d)".*?</li>', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Group:
    """Rows of one stretch of time. tone: the class of its heading."""

    name: str
    tone: str
    rows: Sequence[Markup]


@dataclass(frozen=True, slots=True)
class Work:
    """The groups that have rows, and what stands below: parts that are missing, and links to more rows."""

    groups: Sequence[Group]
    below: Sequence[Markup]

    @property
    def size(self) -> int:
        return sum(len(group.rows) for group in self.groups)

    def first(self, rows: int) -> Sequence[Group]:
        """The groups with their first rows, so many in all."""
        groups = []
        for group in self.groups:
            if rows > 0:
                groups.append(Group(group.name, group.tone, group.rows[:rows]))
            rows -= len(group.rows)
        return groups


async def work_of(context: PageContext, staff_id: int) -> Work:
    """The open work of a member of staff."""
    paths = [page.path for page in context.site.pages if page.work]
    panels = await together(*(include(context, path, staff_id=staff_id) for path in paths))
    return merged(panels, context.wall.now.date())


def merged(panels: Iterable[Included], today: datetime.date) -> Work:
    rows: list[tuple[str, int, Markup]] = []
    below = []
    for panel in panels:
        rows += [(match[1], int(match[2]), Markup(match[0])) for match in _ROW.finditer(panel.html)]  # noqa: S704
        if other := _ROW.sub("", panel.html).strip():
            below.append(Markup(other))  # noqa: S704 - an area's template made it
    named: dict[str, list[tuple[str, int, Markup]]] = {}
    for row in rows:
        named.setdefault(_stretch(row[0], today), []).append(row)
    names = {
        "overdue": (_("Overdue"), "in-red"),
        "today": (_("Today"), ""),
        "tomorrow": (_("Tomorrow"), ""),
        "week": (_("This week"), ""),
        "later": (_("Later"), ""),
        "none": (_("No date"), ""),
    }
    groups = [
        Group(*words, [html for _day, _rank, html in sorted(named[name], key=lambda row: _order(name, row))])
        for name, words in names.items()
        if name in named
    ]
    return Work(groups, below)


def _stretch(text: str, today: datetime.date) -> str:
    if not text:
        return "none"
    days = (datetime.date.fromisoformat(text) - today).days
    if days < 0:
        return "overdue"
    return ("today", "tomorrow")[days] if days < 2 else "week" if days <= WEEK_DAYS else "later"


def _order(name: str, row: tuple[str, int, Markup]) -> tuple[bool, str, int]:
    """Emergencies first within a day; all that is overdue is of one day."""
    day, rank, _html = row
    is_first = rank == EMERGENCY and name in ("overdue", "today", "none")
    return not is_first, day, rank
