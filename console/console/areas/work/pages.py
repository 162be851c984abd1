"""My work: tickets, inspections, make-ready tasks and preventive maintenance of one person, by day."""

from __future__ import annotations

from aiohttp import web

from console.kit.browser_session import STAFF
from console.kit.context import PageContext
from console.kit.filters import number
from console.kit.panels import include
from console.kit.work import TOPICS, work_of

HERE, PATH = "My work", "/my-work"


async def show(context: PageContext) -> web.StreamResponse:
    """Of the member of staff who is signed in; administrators choose one."""
    is_own = context.session.kind == STAFF
    chosen = number(context.query.get("staff_id", "")) or 0
    staff_id = context.session.person.person_id if is_own else chosen
    picker = None if is_own else await include(context, "/people/pick", name="staff_id", staff_id=chosen or None)
    work = await work_of(context, staff_id) if staff_id else None
    return context.render("work/work.html", here=HERE, work=work, picker=picker, topics=TOPICS)
