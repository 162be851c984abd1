"""The first page: what needs attention, made of the panels `/AREA/home` of all areas."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

import structlog
from aiohttp import web
from markupsafe import Markup

from chassis.refusals import Unavailable
from console.kit.browser_session import ADMINISTRATOR, STAFF
from console.kit.calls import together
from console.kit.context import PageContext
from console.kit.panels import Included, include
from console.kit.texts import _, ngettext
from console.kit.work import work_of

HERE = "Home"
OWN_ROWS = 8
DISMISS_PATH = "/first-steps/dismiss"
SECONDS = 0.5
"""To read whether the first steps are over."""
COUNTS = ("/tickets/home", "/webhooks/home", "/inspections/home", "/board/home", "/vendors/home", "/upkeep/home")
INTEGRATIONS = "/keys/home"
# The panels that have first steps, in their order. Those of COMPANY_STEPS have nothing else.
COMPANY_STEPS = ("/places/home", "/people/home")
STEPS = (*COMPANY_STEPS, "/vendors/home", INTEGRATIONS, "/webhooks/home")
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
STEP_TOPICS = ("property", "staff")
URGENT = ("red", "amber")
TONES = (*URGENT, "", "none")
# As `ui.need` writes a count.
NEED = re.compile(r'<a class="(red|amber|none|)"\s+href=.*?</a>', re.DOTALL)
# As `ui.step` writes a step.
STEP = re.compile(r'<li class="first-step( done)?">.*?</li>', re.DOTALL)

log = structlog.stdlib.get_logger(__name__)


async def home(context: PageContext) -> web.StreamResponse:
    """For staff, their own work comes first."""
    person_id = context.session.person.person_id if context.session.kind == STAFF else None
    has_steps = await _has_steps(context)
    paths = (*COUNTS, INTEGRATIONS, *(COMPANY_STEPS if has_steps else ()))
    own_work, recent, *included = await together(
        work_of(context, person_id) if person_id else _nothing(),
        include(context, RECENT),
        *(include(context, path) for path in paths),
    )
    panels = dict(zip(paths, included, strict=True))
    steps = await _steps(context, [panels[path] for path in STEPS]) if has_steps else []
    needs = [need for panel in included for need in NEED.finditer(panel.html)]
    needs.sort(key=lambda need: TONES.index(need[1]))
    urgent = sum(need[1] in URGENT for need in needs)
    cards = {path: cards_of(panel) for path, panel in panels.items()}
    integrations = [card for path in ("/webhooks/home", INTEGRATIONS) if (card := cards.pop(path))]
    return context.render(
        "home/home.html", here=HERE, own_work=own_work, own_rows=OWN_ROWS, recent=recent,
        topics=(*TOPICS, *STEP_TOPICS) if steps else TOPICS, steps=[Markup(step[0]) for step in steps],  # noqa: S704
        steps_done=sum(bool(step[1]) for step in steps), dismiss_path=DISMISS_PATH,
        title=greeting(context.wall.now.hour) + (f" {sentence(urgent)}" if urgent or not steps else ""),
        needs=[Markup(need[0]) for need in needs],  # noqa: S704 - the areas' templates made them
        board=cards.pop("/board/home"), tickets=cards.pop("/tickets/home"),
        integrations=integrations, others=[panel for panel in cards.values() if panel],
    )  # fmt: skip


async def _nothing() -> None:
    return None


async def _has_steps(context: PageContext) -> bool:
    """Whether the company's first steps are this person's to see. They are left out while that cannot be read."""
    if context.session.kind != ADMINISTRATOR:
        return False
    try:
        async with asyncio.timeout(SECONDS):
            return not await context.site.first_steps.are_over(context.session.person.company_id)
    except (Unavailable, TimeoutError) as error:
        log.warning("first_steps_missing", reason=str(error) or type(error).__name__)
        return False


async def _steps(context: PageContext, panels: Sequence[Included]) -> list[re.Match[str]]:
    """The steps of these panels; none, for good, once all are done. One of a panel that is missing may not be."""
    steps = [step for panel in panels for step in STEP.finditer(panel.html)]
    if not all(step[1] for step in steps) or not all(panel.ok for panel in panels):
        return steps
    try:
        await context.site.first_steps.end(context.session.person.company_id)
    except Unavailable as error:
        log.warning("first_steps_kept", reason=str(error))
    return []


async def dismiss(context: PageContext) -> web.StreamResponse:
    """Shows the company's first steps no more."""
    await context.site.first_steps.end(context.session.person.company_id)
    return context.redirect("/", _("First steps dismissed."))


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
