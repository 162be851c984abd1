"""The work order: a ticket on one sheet of paper, or several tickets, a sheet each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import segno
from aiohttp import web
from markupsafe import Markup

from chassis.refusals import Refusal
from console.areas.tickets import bulk, filters
from console.areas.tickets.actions import HERE, path_of
from console.areas.tickets.pages import GET, TIMELINE
from console.areas.tickets.photos import shown_photos
from console.areas.tickets.words import number_of
from console.kit.bulk import AT_ONCE, RECORDS_MAX
from console.kit.calls import together
from console.kit.context import PageContext
from console.kit.filters import number
from console.kit.names import RPC as NAMES
from console.kit.names import names_of
from console.kit.panels import Included, include
from makeready.tickets.v1 import ticket_views_pb2 as pb

SHOWS = (GET, TIMELINE, NAMES)
# What the sheet has room for; the rest is on the ticket's page, to which the QR code leads.
TEXT_MAX, LINES_MAX, PHOTOS_MAX, HISTORY = 900, 12, 4, 3
TOLD = (pb.TIMELINE_KIND_COMMENT, pb.TIMELINE_KIND_STATUS, pb.TIMELINE_KIND_OPENED)


@dataclass(frozen=True, slots=True)
class Order:
    """One sheet. place and residents: parts of other areas; code: the QR code of the address."""

    details: pb.GetTicketDetailsResponse
    number: str
    text: str
    entries: Sequence[pb.TimelineEntry]
    names: Mapping[str, Any]
    place: Included
    residents: Included
    photos: Sequence[str]
    address: str
    code: Markup


async def show(context: PageContext) -> web.StreamResponse:
    """svc-occupancy writes to the audit log that the person has seen the residents' contacts."""
    return _page(context, [await _order(context, context.number("ticket_id"))])


async def show_several(context: PageContext) -> web.StreamResponse:
    """The work orders of the tickets that are selected in the list, each on its own sheet."""
    selected = (number(text) for text in context.request.query.getall(bulk.TICK, []))
    ids = [ticket_id for ticket_id in dict.fromkeys(selected) if ticket_id][:RECORDS_MAX]
    orders: list[Order] = []
    for start in range(0, len(ids), AT_ONCE):
        part = await together(*(_order_of(context, ticket_id) for ticket_id in ids[start : start + AT_ONCE]))
        orders += [order for order in part if order is not None]
    return _page(context, orders)


def _page(context: PageContext, orders: Sequence[Order]) -> web.StreamResponse:
    return context.render(
        "tickets/work_order.html", here=HERE, orders=orders, photos_max=PHOTOS_MAX, reported_by=filters.reported_by
    )


async def _order_of(context: PageContext, ticket_id: int) -> Order | None:
    """None if the company has no such ticket."""
    try:
        return await _order(context, ticket_id)
    except Refusal as refusal:
        if refusal.status != 404:
            raise
        return None


async def _order(context: PageContext, ticket_id: int) -> Order:
    newest = pb.ListTicketTimelineRequest(ticket_id=ticket_id, kinds=TOLD, limit=HISTORY)
    details, timeline = await together(
        context.rpcs.call(GET, pb.GetTicketDetailsRequest(ticket_id=ticket_id)), context.rpcs.panel(TIMELINE, newest)
    )
    ticket = details.ticket
    entries: Sequence[pb.TimelineEntry] = timeline.entries[:HISTORY] if timeline.ok else ()
    names, place, residents = await together(
        names_of(context.rpcs, [entry.actor for entry in entries]),
        include(
            context, "/places/of-order", property_id=ticket.property_id, unit_id=ticket.unit_id,
            asset_id=ticket.asset_id,
        ),
        include(context, "/residents/contacts", unit_id=ticket.unit_id) if ticket.unit_id else _nobody(),
    )  # fmt: skip
    address = f"{context.site.url}{path_of(ticket_id)}"
    code = segno.make(address, error="m", micro=False).svg_inline(svgclass=None, lineclass=None, omitsize=True)
    return Order(
        details, number_of(ticket), shortened(details.description), entries, names, place, residents,
        [photo.small for photo in shown_photos(context, details) if photo.small], address,
        Markup(code),  # noqa: S704 - drawn from the address, which is in no text of it
    )  # fmt: skip


async def _nobody() -> Included:
    return Included()


def shortened(text: str) -> str:
    """As much of a description as the sheet has room for, with an ellipsis if that is not all."""
    lines = text.strip().splitlines()
    short = "\n".join(lines[:LINES_MAX])[:TEXT_MAX]
    return short if short == text.strip() else f"{short.rstrip()} …"
