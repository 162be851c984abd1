"""The pages of properties."""

from __future__ import annotations

from collections.abc import Sequence

from aiohttp import web

from console.areas.places.places import (
    COUNT,
    SEARCH_PROPERTIES,
    UNIT_STATUSES,
    VACANT,
    by_status,
    counts_request,
    fetched,
    instant_of,
    levels_of,
)
from console.kit import csv_files, lists
from console.kit.calls import together
from console.kit.context import PageContext
from console.kit.panels import include
from console.kit.texts import _
from makeready.catalog.v1 import meter_search_pb2 as meters_pb
from makeready.catalog.v1 import place_search_pb2 as pb
from makeready.catalog.v1 import places_pb2

HERE = "Properties"
PATH = "/properties"
GET = "catalog.PropertiesService/GetProperty"
SUMMARIZE = "catalog.PlaceSearchService/SummarizeProperty"
PARTS = "catalog.PlaceSearchService/ListPlacesOf"
UNITS = "catalog.PlaceSearchService/SearchUnits"
ASSETS = "catalog.PlaceSearchService/SearchAssets"
METERS = "catalog.MeterSearchService/SearchMeters"
SHOWS = (GET, SUMMARIZE, PARTS, UNITS, ASSETS, METERS)
UNITS_SHOWN, FEW = 500, 6


async def list_properties(context: PageContext) -> web.StreamResponse:
    filters = {"q": lists.words(context.query)}
    after = lists.number(context.query, "after")

    async def page(after_id: int, limit: int = lists.CSV_ROWS) -> tuple[Sequence[pb.PropertyRow], int]:
        request = pb.SearchPropertiesRequest(words=filters["q"], after_id=after_id, limit=limit)
        response = await context.rpcs.call(SEARCH_PROPERTIES, request)
        return response.properties, response.next_after_id

    if "csv" in context.query:
        return _csv(await lists.every(page))
    (rows, following), counts = await together(
        page(after or 0, lists.PAGE_ROWS), context.rpcs.panel(COUNT, counts_request(context))
    )
    return context.render(
        "places/properties.html", here=HERE, rows=rows, next=following, after=after, filters=filters, counts=counts,
        statuses=UNIT_STATUSES, tally=lists.tally,
    )  # fmt: skip


def _csv(rows: Sequence[pb.PropertyRow]) -> web.Response:
    header = ("id", "name", "address", "city", "state", "external_id", *(f"units_{slug}" for slug in _SLUGS.values()))
    table = []
    for row in rows:
        units = lists.tally(row.units)
        cells = (row.property_id, row.name, row.address, row.city, row.state, row.external_id)
        table.append([*cells, *(units.get(status, 0) for status in _SLUGS)])
    return csv_files.answer("properties", header, table)


_SLUGS = {status: (status or _("unknown")).lower().replace(" ", "_") for status in (*UNIT_STATUSES, "")}


async def show_property(context: PageContext) -> web.StreamResponse:
    property_id = context.number("property_id")
    panels = ("/board/panel", "/tickets/panel", "/pm-tasks/panel", "/inspections/panel", "/notices/panel")
    record = await fetched(context, GET, places_pb2.GetPropertyRequest(property_id=property_id))
    summary, parts, units, assets, meters, *others = await together(
        context.rpcs.panel(SUMMARIZE, pb.SummarizePropertyRequest(property_id=property_id)),
        context.rpcs.panel(PARTS, pb.ListPlacesOfRequest(property_id=property_id)),
        context.rpcs.panel(UNITS, pb.SearchUnitsRequest(property_id=property_id, limit=UNITS_SHOWN)),
        context.rpcs.panel(ASSETS, pb.SearchAssetsRequest(property_id=property_id, limit=FEW)),
        context.rpcs.panel(METERS, meters_pb.SearchMetersRequest(property_id=property_id, limit=FEW)),
        *(include(context, path, property_id=property_id) for path in panels),
        include(context, "/audit/panel", kind="property", id=property_id),
    )
    board, tickets, upkeep, inspections, notices, audit = others
    counts = by_status(summary.units, UNIT_STATUSES) if summary.ok else []
    total = sum(count.count for count in counts)
    vacant = sum(count.count for count in counts if count.status in VACANT)
    levels = levels_of(units.units, parts.value) if units.ok and parts.ok else []
    return context.render(
        "places/property.html", here=HERE, record=record, summary=summary, counts=counts, total=total, vacant=vacant,
        parts_of=parts, units=units, levels=levels, assets=assets, meters=meters, board=board, tickets=tickets,
        upkeep=upkeep, inspections=inspections, notices=notices, audit=audit, created=instant_of(record["created_at"]),
    )  # fmt: skip
