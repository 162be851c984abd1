"""The work order: a ticket on one sheet of paper."""

from __future__ import annotations

from collections.abc import Sequence

import segno
from aiohttp import web
from markupsafe import Markup

from console.areas.tickets import filters
from console.areas.tickets.actions import HERE, path_of
from console.areas.tickets.pages import GET, TIMELINE
from console.areas.tickets.photos import shown_photos
from console.areas.tickets.words import number_of
from console.kit.calls import together
from console.kit.context import PageContext
from console.kit.names import RPC as NAMES
from console.kit.names import names_of
from console.kit.panels import Included, include
from makeready.tickets.v1 import ticket_views_pb2 as pb

SHOWS = (GET, TIMELINE, NAMES)
# What the sheet has room for; the rest is on the ticket's page, to which the QR code leads.
TEXT_MAX, LINES_MAX, PHOTOS_MAX, HISTORY = 900, 12, 4, 3
TOLD = (pb.TIMELINE_KIND_COMMENT, pb.TIMELINE_KIND_STATUS, pb.TIMELINE_KIND_OPENED)


async def show(context: PageContext) -> web.StreamResponse:
    """svc-occupancy writes to the audit log that the person has seen the residents' contacts."""
    ticket_id = context.number("ticket_id")
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
    return context.render(
        "tickets/work_order.html", here=HERE, details=details, ticket=ticket, number=number_of(ticket), names=names,
        text=shortened(details.description), entries=entries, place=place,
        residents=residents, photos=[photo.small for photo in shown_photos(context, details) if photo.small],
        photos_max=PHOTOS_MAX, address=address, sources=filters.SOURCES,
        code=Markup(code),  # noqa: S704 - drawn from the address, which is in no text of it
    )  # fmt: skip


async def _nobody() -> Included:
    return Included()


def shortened(text: str) -> str:
    """As much of a description as the sheet has room for, with an ellipsis if that is not all."""
    lines = text.strip().splitlines()
    short = "\n".join(lines[:LINES_MAX])[:TEXT_MAX]
    return short if short == text.strip() else f"{short.rstrip()} …"
