"""The pages of units."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from aiohttp import web

from console.areas.places.places import (
    COUNT,
    SEARCH_PROPERTIES,
    UNIT_STATUSES,
    by_status,
    counts_request,
    fetched,
    instant_of,
    levels_of,
    properties_request,
)
from console.kit import csv_files, lists
from console.kit.calls import together
from console.kit.context import PageContext
from console.kit.panels import include
from makeready.catalog.v1 import meter_search_pb2 as meters_pb
from makeready.catalog.v1 import place_search_pb2 as pb
from makeready.catalog.v1 import places_pb2

HERE = "Units"
PATH = "/units"
LIST = "catalog.PlaceSearchService/SearchUnits"
GET = "catalog.UnitsService/GetUnit"
ASSETS = "catalog.PlaceSearchService/SearchAssets"
METERS = "catalog.MeterSearchService/SearchMeters"
SUMMARIZE = "catalog.PlaceSearchService/SummarizeProperty"
PARTS = "catalog.PlaceSearchService/ListPlacesOf"
SHOWS = (GET, ASSETS, METERS, LIST, SUMMARIZE, PARTS)
LISTS = (LIST, SEARCH_PROPERTIES, COUNT)
OF_UNIT, OF_PANEL = 50, 12
NEAR_IDS, NEAR_UNITS = 60, 120
"""Of a property, a unit's page shows so many units at most: those whose ids follow from so much before its own."""


async def list_units(context: PageContext) -> web.StreamResponse:
    property_id, after = lists.number(context.query, "property_id"), lists.number(context.query, "after")
    status = lists.chosen(context.query, "status", (*UNIT_STATUSES, "vacant", "unknown"))
    filters = {"status": status, "property_id": property_id, "q": lists.words(context.query)}
    statuses = {"": [], "vacant": ["Vacant Not Ready", "Vacant Ready"], "unknown": [""]}.get(status, [status])

    async def page(after_id: int, limit: int = lists.CSV_ROWS) -> tuple[Sequence[pb.UnitRow], int]:
        request = pb.SearchUnitsRequest(
            words=lists.words(context.query),
            property_id=property_id,
            unit_status=statuses,
            after_id=after_id,
            limit=limit,
        )
        response = await context.rpcs.call(LIST, request)
        return response.units, response.next_after_id

    if "csv" in context.query:
        return _csv(await lists.every(page))
    (rows, following), properties, counts = await together(
        page(after or 0, lists.PAGE_ROWS),
        context.rpcs.panel(SEARCH_PROPERTIES, properties_request()),
        context.rpcs.panel(COUNT, counts_request(context)),
    )
    return context.render(
        "places/units.html", here=HERE, rows=rows, next=following, after=after, filters=filters, chosen_status=status,
        properties=properties, counts=by_status(counts.units, UNIT_STATUSES) if counts.ok else [],
        today=context.wall.now.date().isoformat(), date=datetime.date.fromisoformat,
    )  # fmt: skip


def _csv(rows: Sequence[pb.UnitRow]) -> web.Response:
    header = (
        *("id", "name", "unit_number", "status", "property_id", "property", "building", "floor", "floorplan"),
        *("bedrooms", "bathrooms", "square_feet", "projected_ready_on", "external_id"),
    )
    table = [
        [
            *(row.unit_id, row.name, row.unit_number, row.unit_status, row.property.id, row.property.name),
            *(row.building.name, row.floor.name, row.floorplan.name),
            *(getattr(row, name) if row.HasField(name) else None for name in ("bedrooms", "bathrooms", "square_feet")),
            *(row.projected_ready_on, row.external_id),
        ]
        for row in rows
    ]
    return csv_files.answer("units", header, table)


# Panels from which a person plans something new: their forms begin with the property.
PLANS = ("/inspections/panel", "/pm-tasks/panel")


async def panel(context: PageContext) -> web.StreamResponse:
    """The units of a property."""
    property_id = lists.number(context.query, "property_id")
    if property_id is None:
        raise web.HTTPNotFound
    page = await context.rpcs.call(LIST, pb.SearchUnitsRequest(property_id=property_id, limit=OF_PANEL))
    return context.render("places/units_panel.html", page=page, property_id=property_id)


async def show_unit(context: PageContext) -> web.StreamResponse:
    """The property's unit status view at a unit, which a unit's `url` opens (spec 2.5), and all about this unit. A unit
    of another property has no page here."""
    property_id, unit_id = context.number("property_id"), context.number("unit_id")
    panels = ("/board/panel", "/tickets/panel", "/inspections/panel", "/pm-tasks/panel")
    unit = await fetched(context, GET, places_pb2.GetUnitRequest(unit_id=unit_id))
    if unit["property"]["id"] != property_id:
        raise web.HTTPNotFound
    request = pb.SearchUnitsRequest(property_id=property_id, after_id=max(0, unit_id - NEAR_IDS), limit=NEAR_UNITS)
    summary, near, parts, assets, meters, *others = await together(
        context.rpcs.panel(SUMMARIZE, pb.SummarizePropertyRequest(property_id=property_id)),
        context.rpcs.panel(LIST, request),
        context.rpcs.panel(PARTS, pb.ListPlacesOfRequest(property_id=property_id)),
        context.rpcs.panel(ASSETS, pb.SearchAssetsRequest(unit_id=unit_id, limit=OF_UNIT)),
        context.rpcs.panel(METERS, meters_pb.SearchMetersRequest(unit_id=unit_id, limit=OF_UNIT)),
        *(
            include(context, path, unit_id=unit_id, property_id=property_id if path in PLANS else None)
            for path in panels
        ),
        include(context, "/audit/panel", kind="unit", id=unit_id),
    )
    board, tickets, inspections, upkeep, audit = others
    ready = unit["projected_ready_on"]
    levels = levels_of(near.units, parts.value) if near.ok and parts.ok else []
    own_level = next((level for level in levels if any(row.unit_id == unit_id for row in level.units)), None)
    return context.render(
        "places/unit.html", here=HERE, unit=unit, assets=assets, meters=meters, board=board, tickets=tickets,
        inspections=inspections, upkeep=upkeep, audit=audit, created=instant_of(unit["created_at"]),
        counts=by_status(summary.units, UNIT_STATUSES) if summary.ok else [], near=near if parts.ok else parts,
        levels=levels, own_level=own_level, ready=datetime.date.fromisoformat(ready) if ready else None,
        today=context.wall.now.date(),
    )  # fmt: skip
