"""Residents as people find them: in the search, and by who calls about a ticket."""

from __future__ import annotations

from dataclasses import dataclass

from aiohttp import web

from console.areas.board import residencies
from console.areas.board.pages import render, unit_path
from console.kit.context import PageContext
from console.kit.texts import _
from makeready.occupancy.v1 import resident_search_pb2 as pb

SEARCH = "occupancy.ResidentSearchService/SearchResidents"
TEXT_MAX = 200
CALLERS = 6
# The colour and the words of a resident's status. A former resident of a cancelled turn never moved in.
STATUSES = {
    "current": ("green", _("Current resident")),
    "future": ("blue", _("Future resident")),
    "former": ("", _("Former resident")),
}
CANCELLED = ("", _("Move-in cancelled"))


@dataclass(frozen=True, slots=True)
class FoundResident:
    """A resident as a row. path: of the unit."""

    resident: pb.FoundResident
    name: str
    path: str

    @property
    def status(self) -> tuple[str, str]:
        """Colour and words."""
        is_cancelled = self.resident.turn_status == "Cancelled"
        return CANCELLED if is_cancelled else STATUSES.get(self.resident.status, STATUSES["former"])


async def search_hits(context: PageContext) -> web.StreamResponse:
    """What a search finds of residents. Contacts are shown on the page of the search alone: what is fetched while one
    types leaves no trail of looks in the audit log."""
    text = context.query.get("q", "")[:TEXT_MAX]
    hits = pb.SearchResidentsResponse()
    if text.strip():
        request = pb.SearchResidentsRequest(words=text, with_contacts="contacts" in context.query)
        hits = await context.rpcs.call(SEARCH, request)
    return render(context, "residents_found", residents=_rows(context, hits), hits=hits)


async def callers(context: PageContext) -> web.StreamResponse:
    """Those who may be calling, each a button of the form around that chooses the unit."""
    text = context.query.get("caller", "")[:TEXT_MAX]
    hits = pb.SearchResidentsResponse()
    if text.strip():
        hits = await context.rpcs.call(SEARCH, pb.SearchResidentsRequest(words=text, limit=CALLERS))
    return render(context, "callers", residents=_rows(context, hits), hits=hits, text=text.strip())


def _rows(context: PageContext, hits: pb.SearchResidentsResponse) -> list[FoundResident]:
    return [
        FoundResident(
            resident, residencies.party_name(resident), unit_path(context, resident.property_id, resident.unit_id)
        )
        for resident in hits.residents
    ]
