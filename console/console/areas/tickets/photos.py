"""A ticket's photos: on its page, and on a page of their own, where they are added and removed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aiohttp import web

from chassis.refusals import Refusal
from console.kit import links, photos
from console.kit.names import RPC as NAMES
from console.kit.names import names_of
from console.kit.times import count
from console.kit.visit import Visit
from makeready.tickets.v1 import ticket_commands_pb2 as commands_pb
from makeready.tickets.v1 import ticket_views_pb2 as pb

HERE = "Tickets"
GET = "tickets.TicketViewsService/GetTicketDetails"
ADD = "tickets.TicketCommandsService/AddTicketPhoto"
REMOVE = "tickets.TicketCommandsService/RemoveTicketPhoto"
SHOWS = (GET, NAMES)
URL_CHARACTERS_MAX = 2000
AUTHORS = {
    "staff": ("Staff", commands_pb.AUTHOR_STAFF),
    "vendor": ("A vendor", commands_pb.AUTHOR_VENDOR),
    "resident": ("A resident", commands_pb.AUTHOR_RESIDENT),
}
_WHOSE = {"staff": "staff", "vendor": "a vendor", "resident": "the resident"}


@dataclass(frozen=True, slots=True)
class ShownPhoto:
    """A photo as a page shows it. small: the path of its small picture, if the console stores it; host: where it is
    else; empty for an address that is none. words: whose it is."""

    photo: pb.TicketPhoto
    path: str
    small: str
    host: str
    words: str


def shown_photos(visit: Visit, details: pb.GetTicketDetailsResponse) -> list[ShownPhoto]:
    """The ticket's photos, the first one first."""
    return [_shown_photo(visit, photo) for photo in details.photos]


def _shown_photo(visit: Visit, photo: pb.TicketPhoto) -> ShownPhoto:
    words = f"Photo by {_WHOSE[photo.author]}" if photo.author in _WHOSE else "Photo"
    if photo_id := photos.photo_at(visit.site.url, photo.photo_url):
        return ShownPhoto(photo, f"{photos.PREFIX}{photo_id}.jpg", photos.small(photo_id), "", words)
    if links.of_another_site(photo.photo_url):
        return ShownPhoto(photo, photo.photo_url, "", links.host_of(photo.photo_url), words)
    return ShownPhoto(photo, "", "", "", words)


async def show(visit: Visit) -> web.StreamResponse:
    return await _page(visit)


async def _page(
    visit: Visit, status: int = 200, refused: Sequence[photos.Taken] = (), added: int = 0, fault: str = ""
) -> web.Response:
    ticket_id = visit.number("ticket_id")
    details = await visit.call(GET, pb.GetTicketDetailsRequest(ticket_id=ticket_id))
    names = await names_of(visit, [photo.actor for photo in details.photos])
    return visit.render(
        "tickets/photos.html", status, here=HERE, details=details, ticket=details.ticket,
        shown_photos=shown_photos(visit, details), names=names, refused=refused, added=count(added, "photo"),
        has_added=added > 0, fault=fault, authors=AUTHORS, accept=photos.ACCEPT, by=visit.form.get("by", "staff"),
    )  # fmt: skip


async def add(visit: Visit) -> web.StreamResponse:
    """Each photo is added as soon as it is stored. Sent again after a break, the form goes on where it was."""
    ticket_id = visit.number("ticket_id")
    await visit.call(GET, pb.GetTicketDetailsRequest(ticket_id=ticket_id))  # before a byte is read
    _, author = AUTHORS.get(visit.form.get("by", ""), AUTHORS["staff"])
    added, refused = 0, []
    async for taken in photos.take(visit):
        if taken.refused:
            refused.append(taken)
            continue
        request = commands_pb.AddTicketPhotoRequest(
            idempotency_key=f"{visit.act}.{taken.place}", ticket_id=ticket_id, photo_url=taken.address, by=author
        )
        try:
            await visit.call(ADD, request)
        except Refusal:
            if taken.is_new:
                await photos.delete(visit, taken.address)
            raise
        added += 1
    if refused:
        return await _page(visit, 422, refused, added)
    if not added:
        return await _page(visit, 422, fault="Choose one photo or more.")
    return visit.redirect(f"/tickets/{ticket_id}", f"{count(added, 'photo')} added.")


async def remove(visit: Visit) -> web.StreamResponse:
    """First the file, so that none stays which no page shows; then the ticket's photo."""
    ticket_id, address = visit.number("ticket_id"), visit.form.get("photo_url", "")[:URL_CHARACTERS_MAX]
    details = await visit.call(GET, pb.GetTicketDetailsRequest(ticket_id=ticket_id))
    if any(photo.photo_url == address for photo in details.photos):
        await photos.delete(visit, address)
    request = commands_pb.RemoveTicketPhotoRequest(idempotency_key=visit.act, ticket_id=ticket_id, photo_url=address)
    path = f"/tickets/{ticket_id}/photos"
    try:
        await visit.call(REMOVE, request)
    except Refusal as refusal:
        if refusal.field != "photo_url":
            raise
        return visit.redirect(path, "The photo had been removed already.")
    return visit.redirect(path, "The photo is removed.")
