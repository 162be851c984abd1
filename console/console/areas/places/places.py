"""What the pages of properties, units and assets share: kinds, statuses, the search of everything."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, field

from aiohttp import web
from google.protobuf.message import Message

from console.kit.calls import together
from console.kit.context import PageContext
from console.kit.lists import record, words
from console.kit.records import Record, record_of
from makeready.catalog.v1 import place_search_pb2 as pb

SEARCH = "catalog.PlaceSearchService/SearchPlaces"
SEARCH_PROPERTIES = "catalog.PlaceSearchService/SearchProperties"
SEARCH_UNITS = "catalog.PlaceSearchService/SearchUnits"
HOME = (SEARCH_PROPERTIES, SEARCH_UNITS)
COUNT = "catalog.PlaceSearchService/CountPlaces"
UNIT_STATUSES = ("Occupied", "Notice", "Vacant Not Ready", "Vacant Ready", "Down")
VACANT = ("Vacant Not Ready", "Vacant Ready", "Down")
ASSET_STATUSES = ("Active", "Needs Service", "Out of Service", "Retired")
PROPERTIES_MAX = 200
WARRANTY_SOON_DAYS = 90


async def fetched(context: PageContext, rpc: str, request: Message) -> Record:
    """The record of this page; another company's is as none."""
    return record_of((await record(context.rpcs.call(rpc, request))).document)


def instant_of(text: str) -> datetime.datetime:
    """An instant as records print it."""
    return datetime.datetime.fromisoformat(text)


def counts_request(context: PageContext) -> pb.CountPlacesRequest:
    today = context.wall.now.date()
    by = today + datetime.timedelta(days=WARRANTY_SOON_DAYS)
    return pb.CountPlacesRequest(warranty_from=today.isoformat(), warranty_by=by.isoformat())


def properties_request() -> pb.SearchPropertiesRequest:
    """The properties that a filter offers."""
    return pb.SearchPropertiesRequest(limit=PROPERTIES_MAX)


def by_status(counts: Sequence[pb.Count], statuses: Sequence[str]) -> list[pb.Count]:
    """The counts in the order of statuses; unknown ones last."""
    order = {status: index for index, status in enumerate(statuses)}
    return sorted(counts, key=lambda count: order.get(count.status, len(order)))


@dataclass
class Level:
    """A row of the floor plan: the units of one floor of one building."""

    building: str
    floor: str
    units: list[pb.UnitRow] = field(default_factory=list)


def levels_of(units: Sequence[pb.UnitRow], parts: pb.ListPlacesOfResponse) -> list[Level]:
    """The units by building and floor; the highest floor first, as one sees a house. Units without a floor are last."""
    buildings = {building.building_id: index for index, building in enumerate(parts.buildings)}
    floors = {floor.floor_id: index for index, floor in enumerate(parts.floors)}
    levels: dict[tuple[int, int], Level] = {}
    for unit in units:
        key = (
            buildings.get(unit.building.id, len(buildings)),
            -floors[unit.floor.id] if unit.floor.id in floors else 1,
        )
        levels.setdefault(key, Level(unit.building.name, unit.floor.name)).units.append(unit)
    return [levels[key] for key in sorted(levels)]


async def home(context: PageContext) -> web.StreamResponse:
    """The first steps: a property and a unit."""
    properties, units = await together(
        context.rpcs.call(SEARCH_PROPERTIES, pb.SearchPropertiesRequest(limit=1)),
        context.rpcs.call(SEARCH_UNITS, pb.SearchUnitsRequest(limit=1)),
    )
    return context.render("places/home.html", properties=properties.properties, units=units.units)


async def search_hits(context: PageContext) -> web.StreamResponse:
    """What a search finds of properties, units, assets and meters. A number or an id that only one has opens it."""
    text = words(context.query)
    hits = await context.rpcs.call(SEARCH, pb.SearchPlacesRequest(words=text)) if text else pb.SearchPlacesResponse()
    several = (*hits.properties, *hits.units, *hits.assets, *hits.meters)
    if len(hits.exact) == 1 and len(several) == 1:
        return context.redirect(_path(hits))
    return context.render("places/found.html", hits=hits, words=text)


def _path(hits: pb.SearchPlacesResponse) -> str:
    for unit in hits.units:
        return f"/properties/{unit.property.id}/units/{unit.unit_id}"
    kind, _, number = hits.exact[0].partition(" ")
    return f"/{'properties' if kind == 'property' else kind + 's'}/{number}"
