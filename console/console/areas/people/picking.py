"""The picker of members of staff: a panel in forms of all areas (`kit.pickers`)."""

from __future__ import annotations

from collections.abc import Sequence

from aiohttp import web

from console.areas.people.pages import GET, LIST
from console.kit import pickers
from console.kit.browser_session import STAFF
from console.kit.context import PageContext
from console.kit.pickers import CHOSEN_NOW, Choice, Picker
from console.kit.texts import _
from makeready.identity.v1 import staff_commands_pb2 as pb

PATH = "/people/pick"
RPCS = (LIST, GET)


async def pick(context: PageContext) -> web.StreamResponse:
    """Those who are active; oneself first."""
    picker = pickers.read_picker(context, PATH)

    async def rows(words: str, limit: int) -> tuple[Sequence[pb.Staff], bool]:
        page = await context.rpcs.call(LIST, pb.ListStaffRequest(active=True, limit=limit, words=words))
        return page.staff, page.HasField("next_after_id")

    people, is_searched = await pickers.listed(rows, picker)
    own_id = context.session.person.person_id if context.session.kind == STAFF else 0
    ordered = sorted(people, key=lambda staff: (staff.staff_id != own_id, staff.name.casefold()))
    choices = [Choice(staff.staff_id, _words(staff, is_own=staff.staff_id == own_id)) for staff in ordered]
    if picker.chosen and all(choice.value != picker.chosen for choice in choices):
        choices = [*await _chosen(context, picker), *choices]
    return pickers.answer(context, picker, choices, is_searched=is_searched, none=_("No staff yet"))


async def _chosen(context: PageContext, picker: Picker) -> list[Choice]:
    response = await pickers.record_or_none(context.rpcs.call(GET, pb.GetStaffRequest(staff_id=picker.chosen)))
    if response is None:
        return []
    staff: pb.Staff = response.staff
    return [Choice(staff.staff_id, staff.name + ("" if staff.active else " (ended)"), CHOSEN_NOW)]


def _words(staff: pb.Staff, *, is_own: bool) -> str:
    return ", ".join(filter(None, (f"{staff.name} (you)" if is_own else staff.name, staff.title)))
