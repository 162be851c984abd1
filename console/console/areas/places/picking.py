"""The pickers of properties, units and assets: panels in forms of all areas (`kit.pickers`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aiohttp import web

from console.areas.places.places import SEARCH_PROPERTIES
from console.kit import pickers
from console.kit.context import PageContext
from console.kit.pickers import CHOSEN_NOW, FOUND_MAX, Choice, Picker
from console.kit.records import record_of
from console.kit.texts import _
from makeready.catalog.v1 import place_search_pb2 as pb
from makeready.catalog.v1 import places_pb2

PATH = "/places/pick"
UNITS = "catalog.PlaceSearchService/SearchUnits"
ASSETS = "catalog.PlaceSearchService/SearchAssets"
PROPERTY = "catalog.PropertiesService/GetProperty"
UNIT = "catalog.UnitsService/GetUnit"
ASSET = "catalog.AssetsService/GetAsset"
RPCS = (SEARCH_PROPERTIES, UNITS, ASSETS, PROPERTY, UNIT, ASSET)
NONE = {"property": _("No properties yet"), "unit": _("No units"), "asset": _("No assets there")}
RETIRED = "Retired"


async def pick(context: PageContext) -> web.StreamResponse:
    picker = pickers.read_picker(context, PATH)
    find = {"property": _properties, "unit": _units, "asset": _assets}[picker.kind.noun]
    choices, is_searched = ([], False) if picker.missing_above else await find(context, picker)
    if picker.chosen and all(choice.value != picker.chosen for choice in choices):
        choices = [*await _chosen(context, picker), *choices]
    return pickers.answer(context, picker, choices, is_searched=is_searched, none=NONE[picker.kind.noun])


async def _properties(context: PageContext, picker: Picker) -> tuple[list[Choice], bool]:
    async def rows(words: str, limit: int) -> tuple[Sequence[Any], bool]:
        request = pb.SearchPropertiesRequest(words=words, limit=limit)
        page = await context.rpcs.call(SEARCH_PROPERTIES, request)
        return page.properties, page.HasField("next_after_id")

    several, is_searched = await pickers.listed(rows, picker)
    return [Choice(row.property_id, ", ".join(filter(None, (row.name, row.city)))) for row in several], is_searched


async def _units(context: PageContext, picker: Picker) -> tuple[list[Choice], bool]:
    property_id = picker.within["property_id"] or None

    async def rows(words: str, limit: int) -> tuple[Sequence[Any], bool]:
        page = await context.rpcs.call(UNITS, pb.SearchUnitsRequest(words=words, property_id=property_id, limit=limit))
        return page.units, page.HasField("next_after_id")

    several, is_searched = await pickers.listed(rows, picker)
    return [Choice(row.unit_id, row.name if property_id else _at(row)) for row in several], is_searched


async def _assets(context: PageContext, picker: Picker) -> tuple[list[Choice], bool]:
    """Those of the unit first, then the others of the property; retired ones are no choice."""
    property_id, unit_id = (picker.within[name] or None for name in picker.kind.above)

    async def rows(words: str, limit: int) -> tuple[Sequence[Any], bool]:
        # Of a unit alone where the form has no property: its assets are all that is near.
        request = pb.SearchAssetsRequest(
            words=words, property_id=property_id, unit_id=None if property_id else unit_id, limit=limit
        )
        page = await context.rpcs.call(ASSETS, request)
        return page.assets, page.HasField("next_after_id")

    several, is_searched = await pickers.listed(rows, picker)
    if unit_id and property_id and is_searched and not picker.words:
        several = (await context.rpcs.call(ASSETS, pb.SearchAssetsRequest(unit_id=unit_id, limit=FOUND_MAX))).assets
    working = [row for row in several if row.status != RETIRED]
    if not unit_id:
        return [Choice(row.asset_id, _at(row)) for row in working], is_searched
    inside = [Choice(row.asset_id, row.name, _("In the unit")) for row in working if row.unit.id == unit_id]
    elsewhere = [Choice(row.asset_id, _at(row), _("Elsewhere")) for row in working if row.unit.id != unit_id]
    return [*inside, *elsewhere], is_searched


def _at(row: Any) -> str:
    """The name with where it is."""
    unit = row.unit.name if isinstance(row, pb.AssetRow) else ""
    return ", ".join(filter(None, (row.name, unit, row.property.name)))


async def _chosen(context: PageContext, picker: Picker) -> list[Choice]:
    """The chosen record although the list does not have it; not one that is of another property, or of nobody."""
    number, noun = picker.chosen, picker.kind.noun
    rpc, request = {
        "property": (PROPERTY, places_pb2.GetPropertyRequest(property_id=number)),
        "unit": (UNIT, places_pb2.GetUnitRequest(unit_id=number)),
        "asset": (ASSET, places_pb2.GetAssetRequest(asset_id=number)),
    }[noun]
    response = await pickers.record_or_none(context.rpcs.call(rpc, request))
    if response is None:
        return []
    record = record_of(response.document)
    property_id = picker.within.get("property_id", 0)
    if "property_id" in picker.inputs and property_id != record["property"]["id"]:
        return []
    return [Choice(record["entity_id"], record["name"], CHOSEN_NOW)]
