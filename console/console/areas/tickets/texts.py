"""What the tickets of a unit say in free text, for a person to mark what has to go."""

from __future__ import annotations

import datetime

from aiohttp import web

from console.kit import filters
from console.kit.context import PageContext
from console.kit.texts import _
from makeready.tickets.v1 import ticket_views_pb2 as pb

TEXTS = "tickets.TicketViewsService/ListTicketTexts"
TEXTS_ROWS = 200
_TEXT_FIELDS = {
    "title": _("Title"), "description": _("Description"), "preferred_access_time": _("Preferred access time"),
}  # fmt: skip


async def panel(context: PageContext) -> web.StreamResponse:
    """What a unit's tickets say in free text, as inputs `ticket_texts` of another area's form; since, until: the first
    and the last day of their opening; marked: the names of those that are marked, with blanks between."""
    unit_id = filters.number(context.query.get("unit_id", ""))
    if unit_id is None:
        raise web.HTTPNotFound
    request = pb.ListTicketTextsRequest(unit_id=unit_id, limit=TEXTS_ROWS)
    days = {name: _date(context.query.get(name, "")) for name in ("since", "until")}
    if days["since"]:
        request.opened_from.FromDatetime(_midnight(context, days["since"]))
    if days["until"]:
        request.opened_to.FromDatetime(_midnight(context, days["until"] + datetime.timedelta(days=1)))
    page = await context.rpcs.call(TEXTS, request)
    marked = set(context.query.get("marked", "").split())
    return context.render(
        "tickets/texts.html", page=page, marked=marked, fields=_TEXT_FIELDS, days=days, unit_id=unit_id
    )


def _date(text: str) -> datetime.date | None:
    """A day of a panel's query. Raises HTTPNotFound for a text that is none."""
    try:
        day = datetime.date.fromisoformat(text) if text else None
    except ValueError:
        raise web.HTTPNotFound from None
    if day and not 1970 < day.year < 9998:
        raise web.HTTPNotFound
    return day


def _midnight(context: PageContext, day: datetime.date) -> datetime.datetime:
    return datetime.datetime.combine(day, datetime.time(), context.wall.zone)
