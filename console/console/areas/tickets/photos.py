"""A ticket's photos: on its page, and on a page of their own, where they are added and removed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aiohttp import web

from chassis.refusals import Refusal
from console.kit import photos
from console.kit.context import PageContext
from console.kit.names import RPC as NAMES
from console.kit.names import names_of
from console.kit.texts import _, ngettext
from makeready.tickets.v1 import ticket_commands_pb2 as commands_pb
from makeready.tickets.v1 import ticket_views_pb2 as pb

HERE = "Tickets"
GET = "tickets.TicketViewsService/GetTicketDetails"
ADD = "tickets.TicketCommandsService/AddTicketPhoto"
REMOVE = "tickets.TicketCommandsService/RemoveTicketPhoto"
SHOWS = (GET, NAMES)
URL_CHARACTERS_MAX = 2000
AUTHORS = {
    "staff": (_("Staff"), commands_pb.AUTHOR_STAFF),
    "vendor": (_("Vendor"), commands_pb.AUTHOR_VENDOR),
    "resident": (_("Resident"), commands_pb.AUTHOR_RESIDENT),
}
_WHOSE = {"staff": _("Photo by staff"), "vendor": _("Photo by the vendor"), "resident": _("Photo by the resident")}


@dataclass(frozen=True, slots=True)
class ShownPhoto:
    """A photo as a page shows it. small: the path of its small picture, if the console stores it; host: where it is
    else; empty for an address that is none. words: whose it is."""

    photo: pb.TicketPhoto
    path: str
    small: str
    host: str
    words: str


def shown_photos(context: PageContext, details: pb.GetTicketDetailsResponse) -> list[ShownPhoto]:
    """The ticket's photos, the first one first."""
    return [_shown_photo(context, photo) for photo in details.photos]


def _shown_photo(context: PageContext, photo: pb.TicketPhoto) -> ShownPhoto:
    words = _WHOSE.get(photo.author, _("Photo"))
    place = photos.shown(context.site.url, photo.photo_url)
    return ShownPhoto(photo, place.path, place.small, place.host, words)


def _photos(number: int) -> str:
    return ngettext("%(num)s photo", "%(num)s photos", number) % {"num": number}


async def show(context: PageContext) -> web.StreamResponse:
    return await _page(context)


async def _page(
    context: PageContext, status: int = 200, refused: Sequence[photos.Taken] = (), added: int = 0, fault: str = ""
) -> web.Response:
    ticket_id = context.number("ticket_id")
    details = await context.rpcs.call(GET, pb.GetTicketDetailsRequest(ticket_id=ticket_id))
    names = await names_of(context.rpcs, [photo.actor for photo in details.photos])
    return context.render(
        "tickets/photos.html", status, here=HERE, details=details, ticket=details.ticket,
        shown_photos=shown_photos(context, details), names=names, refused=refused, added=_photos(added),
        has_added=added > 0, fault=fault, authors=AUTHORS, accept=photos.ACCEPT, by=context.form.get("by", "staff"),
    )  # fmt: skip


async def add(context: PageContext) -> web.StreamResponse:
    """Each photo is added as soon as it is stored. Sent again after a break, the form goes on where it was."""
    ticket_id = context.number("ticket_id")
    await context.rpcs.call(GET, pb.GetTicketDetailsRequest(ticket_id=ticket_id))  # before a byte is read
    _words, author = AUTHORS.get(context.form.get("by", ""), AUTHORS["staff"])
    added, refused = 0, []
    async for taken in photos.take(context):
        if taken.refused:
            refused.append(taken)
            continue
        request = commands_pb.AddTicketPhotoRequest(
            idempotency_key=f"{context.form_token}.{taken.index}",
            ticket_id=ticket_id,
            photo_url=taken.address,
            by=author,
        )
        try:
            await context.rpcs.call(ADD, request)
        except Refusal:
            if taken.is_new:
                await photos.delete(context, taken.address)
            raise
        added += 1
    if refused:
        return await _page(context, 422, refused, added)
    if not added:
        return await _page(context, 422, fault=_("Choose at least one photo."))
    return context.redirect(f"/tickets/{ticket_id}", _("%(photos)s added.") % {"photos": _photos(added)})


async def remove(context: PageContext) -> web.StreamResponse:
    """First the file, so that none stays which no page shows; then the ticket's photo."""
    ticket_id, address = context.number("ticket_id"), context.form.get("photo_url", "")[:URL_CHARACTERS_MAX]
    details = await context.rpcs.call(GET, pb.GetTicketDetailsRequest(ticket_id=ticket_id))
    if any(photo.photo_url == address for photo in details.photos):
        await photos.delete(context, address)
    request = commands_pb.RemoveTicketPhotoRequest(
        idempotency_key=context.form_token, ticket_id=ticket_id, photo_url=address
    )
    path = f"/tickets/{ticket_id}/photos"
    try:
        await context.rpcs.call(REMOVE, request)
    except Refusal as refusal:
        if refusal.field != "photo_url":
            raise
        return context.redirect(path, _("The photo was already removed."))
    return context.redirect(path, _("Photo removed."))
