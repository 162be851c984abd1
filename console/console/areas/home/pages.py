"""The first page: what needs attention, made of the panels `/AREA/home` of all areas."""

from __future__ import annotations

import re

from aiohttp import web
from markupsafe import Markup

from console.kit.browser_session import STAFF
from console.kit.calls import together
from console.kit.context import PageContext
from console.kit.panels import Included, include
from console.kit.texts import _, ngettext
from console.kit.work import work_of

HERE = "Home"
OWN_ROWS = 8
COUNTS = ("/tickets/home", "/webhooks/home", "/inspections/home", "/board/home", "/vendors/home", "/upkeep/home")
INTEGRATIONS = "/keys/home"
RECENT = "/audit/recent"
# What a change on this page is about: kinds of records.
TOPICS = (
    "ticket",
    "turn",
    "turn_task",
    "unit",
    "inspection",
    "vendor",
    "pm_task",
    "webhook_subscription",
    "key",
    "event",
)
URGENT = ("red", "amber")
TONES = (*URGENT, "", "none")
# As `ui.need` writes a count.
NEED = re.compile(r'<a class="(red|amber|none|)"\s+href=.*?</a>', re.DOTALL)


async def home(context: PageContext) -> web.StreamResponse:
    """For staff, their own work comes first."""
    person_id = context.session.person.person_id if context.session.kind == STAFF else None
    own_work, recent, keys, *panels = await together(
        work_of(context, person_id) if person_id else _nothing(),
        include(context, RECENT),
        include(context, INTEGRATIONS),
        *(include(context, path) for path in COUNTS),
    )
    needs = [need for panel in panels for need in NEED.finditer(panel.html)]
    needs.sort(key=lambda need: TONES.index(need[1]))
    cards = {path: cards_of(panel) for path, panel in zip(COUNTS, panels, strict=True)}
    return context.render(
        "home/home.html", here=HERE, own_work=own_work, own_rows=OWN_ROWS, recent=recent, topics=TOPICS,
        title=f"{greeting(context.wall.now.hour)} {sentence(sum(need[1] in URGENT for need in needs))}",
        needs=[Markup(need[0]) for need in needs],  # noqa: S704 - the areas' templates made them
        board=cards.pop("/board/home"), tickets=cards.pop("/tickets/home"),
        integrations=[panel for panel in (cards.pop("/webhooks/home"), keys) if panel],
        others=[panel for panel in cards.values() if panel],
    )  # fmt: skip


async def _nothing() -> None:
    return None


def cards_of(panel: Included) -> Markup:
    """What stands in a panel after its counts."""
    place = panel.html.find("<section")
    return Markup(panel.html[place:]) if place >= 0 else Markup()  # noqa: S704 - an area's template made it


def greeting(hour: int) -> str:
    return _("Good morning.") if hour < 12 else _("Good afternoon.") if hour < 18 else _("Good evening.")


def sentence(items: int) -> str:
    """ "6 items need attention." """
    if items == 0:
        return _("Nothing needs attention.")
    return ngettext("%(num)s item needs attention.", "%(num)s items need attention.", items) % {"num": items}
