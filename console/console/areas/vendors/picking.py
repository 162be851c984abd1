"""The picker of vendors: a panel in forms of all areas (`kit.pickers`)."""

from __future__ import annotations

from collections.abc import Sequence

from aiohttp import web

from console.areas.vendors.pages import GET, SEARCH
from console.kit import pickers
from console.kit.context import PageContext
from console.kit.pickers import CHOSEN_NOW, Choice, Picker
from console.kit.texts import _
from makeready.catalog.v1 import vendor_details_pb2 as pb

PATH = "/vendors/pick"
RPCS = (SEARCH, GET)
HELD = _("On hold")


async def pick(context: PageContext) -> web.StreamResponse:
    """Those that the company works with; those on hold stand last, with the reason."""
    picker = pickers.read_picker(context, PATH)

    async def rows(words: str, limit: int) -> tuple[Sequence[pb.VendorDetails], bool]:
        page = await context.rpcs.call(SEARCH, pb.SearchVendorsRequest(is_active=True, limit=limit, words=words))
        return page.vendors, page.HasField("next")

    vendors, is_searched = await pickers.listed(rows, picker)
    is_grouped = any(vendor.on_hold for vendor in vendors)
    ordered = sorted(vendors, key=lambda vendor: (vendor.on_hold, vendor.name.casefold()))
    choices = [Choice(vendor.vendor_id, _words(vendor), _group(vendor) if is_grouped else "") for vendor in ordered]
    if picker.chosen and all(choice.value != picker.chosen for choice in choices):
        choices = [*await _chosen(context, picker), *choices]
    return pickers.answer(context, picker, choices, is_searched=is_searched, none=_("No vendors yet"))


async def _chosen(context: PageContext, picker: Picker) -> list[Choice]:
    response = await pickers.record_or_none(context.rpcs.call(GET, pb.GetVendorDetailsRequest(vendor_id=picker.chosen)))
    if response is None:
        return []
    vendor: pb.VendorDetails = response.vendor
    return [Choice(vendor.vendor_id, _words(vendor) + ("" if vendor.is_active else " " + _("(inactive)")), CHOSEN_NOW)]


def _group(vendor: pb.VendorDetails) -> str:
    return HELD if vendor.on_hold else _("Available")


def _words(vendor: pb.VendorDetails) -> str:
    if not vendor.on_hold:
        return vendor.name
    reason = _("insurance lapsed") if vendor.hold_reason == "insurance_lapsed" else vendor.hold_reason
    return f"{vendor.name}: on hold" + (f", {reason[:60]}" if reason else "")
