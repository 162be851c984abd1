"""An administrator forgets a person: what goes, what stays, which ticket texts go with it, and the action."""

from __future__ import annotations

import datetime
import unicodedata
from collections.abc import Sequence

from aiohttp import web

from chassis.refusals import Refusal
from console.areas.board import residencies
from console.areas.board.cards import Days, date_of
from console.kit.context import PageContext
from console.kit.panels import include
from console.kit.sending import needs_confirmation
from console.kit.texts import _
from makeready.occupancy.v1 import parties_pb2 as pb

HERE = "Turn board"
PATH = "/units/{unit_id}/parties/{party_id}/forget"
PARTY = "occupancy.PartiesService/GetParty"
FORGET = "occupancy.PartiesService/ForgetParty"
# What the tickets say of a person may be from before the move-in, and from after the move-out.
DAYS_BEFORE, DAYS_AFTER = 30, 90
TEXTS_MAX = 500
NAMELESS, REMOVE = "forget", "remove"


async def show(context: PageContext) -> web.StreamResponse:
    return await _page(context, await _party(context))


async def forget(context: PageContext) -> web.StreamResponse:
    """Wants the name typed. For a person who is forgotten already it removes the further texts that are marked."""
    party = await _party(context)
    texts = context.form.getall("ticket_texts", [])[: TEXTS_MAX + 1]
    if not _is_same(context.form.get("name", ""), typed(party)):
        return await _page(
            context, party, 422, _("Type “%(name)s” exactly as shown.") % {"name": typed(party)}, at="name"
        )
    again = party.HasField("forgotten_at")
    if again and not texts and "with_notice" not in context.form:
        return await _page(context, party, 422, _("Select what to remove."))
    request = pb.ForgetPartyRequest(
        idempotency_key=context.form_token,
        party_id=party.party_id,
        ticket_texts=texts,
        with_notice="with_notice" in context.form,
    )
    try:
        await context.rpcs.call(FORGET, request)
    except Refusal as refusal:
        if needs_confirmation(refusal) or refusal.status == 404:
            raise
        return await _page(context, party, refusal.status, refusal.message)
    texts_go = " " + _("The selected ticket text is removed within seconds.") if texts else ""
    message = _("Selected text removed.") if again else _("The person is forgotten.")
    return context.redirect(f"/units/{party.unit_id}/transitions", message + texts_go)


async def _party(context: PageContext) -> pb.GetPartyResponse:
    """The party in the path. Raises HTTPNotFound if it belongs to another unit."""
    request = pb.GetPartyRequest(party_id=context.number("party_id"))
    party: pb.GetPartyResponse = await context.rpcs.call(PARTY, request)
    if party.unit_id != context.number("unit_id"):
        raise web.HTTPNotFound
    return party


async def _page(
    context: PageContext, party: pb.GetPartyResponse, status: int = 200, error: str = "", at: str = ""
) -> web.Response:
    """at: the field that the error is about; empty: the form."""
    marked: Sequence[str] = context.form.getall("ticket_texts", [])[:TEXTS_MAX]
    since, until = _period(party)
    texts = await include(
        context, "/tickets/texts", unit_id=party.unit_id, since=since, until=until, marked=" ".join(marked)
    )
    return context.render(
        "board/forget.html", status, here=HERE, party=party, texts=texts, error=error, at=at, typed=typed(party),
        name=residencies.party_name(party), with_notice="with_notice" in context.form,
        party_name=residencies.party_name, path=f"/units/{party.unit_id}/parties/{party.party_id}/forget",
        again=party.HasField("forgotten_at"), days=Days(context.wall.now.date()),
    )  # fmt: skip


def typed(party: pb.GetPartyResponse) -> str:
    """What a person types to confirm."""
    if party.HasField("forgotten_at"):
        return REMOVE
    return " ".join(" ".join((party.first_name, party.last_name)).split()) or NAMELESS


def _is_same(name: str, other: str) -> bool:
    """Whether both are the same but for blanks, case and how accents are stored."""
    first, second = (unicodedata.normalize("NFKC", " ".join(text.split())).casefold() for text in (name, other))
    return first == second


def _period(party: pb.GetPartyResponse) -> tuple[str, str]:
    """The days of the tickets that may be about the person, as YYYY-MM-DD; empty: without an end."""
    came, moved_out = date_of(party.move_in_date), date_of(party.move_out_date)
    since = (came - datetime.timedelta(days=DAYS_BEFORE)).isoformat() if came and came.year > 1 else ""
    until = (moved_out + datetime.timedelta(days=DAYS_AFTER)).isoformat() if moved_out and moved_out.year < 9999 else ""
    return since, until
