"""The picker of vendors: a panel in forms of all areas (`kit.pickers`)."""

from __future__ import annotations

from collections.abc import Sequence

from aiohttp import web

from console.areas.vendors.pages import GET, SEARCH
from console.kit import pickers
from console.kit.pickers import CHOSEN_NOW, Asked, Choice
from console.kit.visit import Visit
from makeready.catalog.v1 import vendor_details_pb2 as pb

PATH = "/vendors/pick"
RPCS = (SEARCH, GET)
HELD = "On hold"


async def pick(visit: Visit) -> web.StreamResponse:
    """Those that the company works with; those on hold stand last, with the reason."""
    picker = pickers.asked(visit, PATH)

    async def rows(words: str, limit: int) -> tuple[Sequence[pb.VendorDetails], bool]:
        found = await visit.call(SEARCH, pb.SearchVendorsRequest(is_active=True, limit=limit, words=words))
        return found.vendors, found.HasField("next")

    vendors, is_searched = await pickers.listed(rows, picker)
    is_grouped = any(one.on_hold for one in vendors)
    ordered = sorted(vendors, key=lambda one: (one.on_hold, one.name.casefold()))
    choices = [Choice(one.vendor_id, _words(one), _group(one) if is_grouped else "") for one in ordered]
    if picker.chosen and all(one.value != picker.chosen for one in choices):
        choices = [*await _chosen(visit, picker), *choices]
    return pickers.answer(visit, picker, choices, is_searched=is_searched, none="No vendor yet")


async def _chosen(visit: Visit, picker: Asked) -> list[Choice]:
    found = await pickers.known(visit.call(GET, pb.GetVendorDetailsRequest(vendor_id=picker.chosen)))
    if found is None:
        return []
    one: pb.VendorDetails = found.vendor
    return [Choice(one.vendor_id, _words(one) + ("" if one.is_active else " (no longer)"), CHOSEN_NOW)]


def _group(one: pb.VendorDetails) -> str:
    return HELD if one.on_hold else "Can be assigned"


def _words(one: pb.VendorDetails) -> str:
    if not one.on_hold:
        return one.name
    reason = "insurance lapsed" if one.hold_reason == "insurance_lapsed" else one.hold_reason
    return f"{one.name}: on hold" + (f", {reason[:60]}" if reason else "")
