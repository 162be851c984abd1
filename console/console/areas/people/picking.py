"""The picker of members of staff: a panel in forms of all areas (`kit.pickers`)."""

from __future__ import annotations

from collections.abc import Sequence

from aiohttp import web

from console.areas.people.pages import GET, LIST
from console.kit import pickers
from console.kit.pickers import CHOSEN_NOW, Asked, Choice
from console.kit.visit import STAFF, Visit
from makeready.identity.v1 import staff_commands_pb2 as pb

PATH = "/people/pick"
RPCS = (LIST, GET)


async def pick(visit: Visit) -> web.StreamResponse:
    """Those who are active; oneself first."""
    picker = pickers.asked(visit, PATH)

    async def rows(words: str, limit: int) -> tuple[Sequence[pb.Staff], bool]:
        found = await visit.call(LIST, pb.ListStaffRequest(active=True, limit=limit, words=words))
        return found.staff, found.HasField("next_after_id")

    people, is_searched = await pickers.listed(rows, picker)
    assert visit.who is not None
    own = visit.who.person_id if visit.kind == STAFF else 0
    ordered = sorted(people, key=lambda one: (one.staff_id != own, one.name.casefold()))
    choices = [Choice(one.staff_id, _words(one, is_own=one.staff_id == own)) for one in ordered]
    if picker.chosen and all(one.value != picker.chosen for one in choices):
        choices = [*await _chosen(visit, picker), *choices]
    return pickers.answer(visit, picker, choices, is_searched=is_searched, none="No member of staff yet")


async def _chosen(visit: Visit, picker: Asked) -> list[Choice]:
    found = await pickers.known(visit.call(GET, pb.GetStaffRequest(staff_id=picker.chosen)))
    if found is None:
        return []
    one: pb.Staff = found.staff
    return [Choice(one.staff_id, one.name + ("" if one.active else " (ended)"), CHOSEN_NOW)]


def _words(one: pb.Staff, *, is_own: bool) -> str:
    return ", ".join(filter(None, (f"{one.name} (you)" if is_own else one.name, one.title)))
