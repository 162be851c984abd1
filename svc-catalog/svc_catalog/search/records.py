"""How rows of the lists for people become messages."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from asyncpg import Record

from makeready.catalog.v1 import meter_search_pb2 as meters
from makeready.catalog.v1 import place_search_pb2 as pb
from svc_catalog.search.queries import COUNT_MAX, READING_COLUMNS
from svc_catalog.search.rules import Note

_NOTHING = Note()


def property_row(row: Record) -> pb.PropertyRow:
    return pb.PropertyRow(property_id=row["id"], **_some(row, "name", "address", "city", "state", "external_id"))


def unit_row(row: Record) -> pb.UnitRow:
    return pb.UnitRow(
        unit_id=row["id"],
        **_some(row, "name", "unit_number", "unit_status", "projected_ready_on", "external_id"),
        **_some(row, "bedrooms", "bathrooms", "square_feet"),
        **_places(row, "property", "building", "floor", "floorplan"),
    )


def asset_row(row: Record) -> pb.AssetRow:
    return pb.AssetRow(
        asset_id=row["id"],
        **_some(row, "name", "category", "sub_category", "asset_tag", "make", "model", "serial_number", "status"),
        **_some(row, "year", "installed_on", "warranty_expires_on", "expected_life_years", "external_id"),
        **_places(row, "property", "unit", "location"),
    )


def meter_row(row: Record) -> meters.MeterRow:
    message = meters.MeterRow(
        meter_id=row["id"],
        **_some(row, "name", "utility_type", "scope", "meter_number", "unit_of_measure", "is_active", "external_id"),
        **_places(row, "property", "unit"),
    )
    if row["reading_id"] is not None:
        message.last_reading.CopyFrom(reading_row({name: row[f"reading_{name}"] for name in READING_COLUMNS}))
    return message


def add_to_search(response: pb.SearchPlacesResponse, kind: str, row: Record) -> None:
    """Adds a record to a search's response. kind: one of `search.tables.KINDS`."""
    if kind == "property":
        response.properties.append(property_row(row))
    elif kind == "unit":
        response.units.append(unit_row(row))
    elif kind == "asset":
        response.assets.append(asset_row(row))
    else:
        response.meters.append(found_meter(row))


def found_meter(row: Record) -> pb.FoundMeter:
    texts = _some(row, "name", "utility_type", "meter_number")
    return pb.FoundMeter(meter_id=row["id"], **texts, **_places(row, "property"))


def reading_row(row: Mapping[str, Any] | Record, note: Note = _NOTHING) -> meters.ReadingRow:
    message = meters.ReadingRow(
        reading_id=row["id"],
        consumption=row["consumption"],
        cost=row["cost"],
        is_estimated=row["is_estimated"],
        unit_of_measure=row["unit_of_measure"] or "",
        external_id=row["external_id"] or "",
        source=row["source"],
        gap_seconds=note.gap_seconds,
        times_usual=note.times_usual,
    )
    for name in ("period_start", "period_end", "created_at"):
        at: datetime.datetime = row[name]
        getattr(message, name).FromDatetime(at)
    return message


def count(status: str, number: int) -> pb.Count:
    """A count that ends at COUNT_MAX."""
    return pb.Count(status=status, count=min(number, COUNT_MAX), is_more=number > COUNT_MAX)


def _some(row: Record, *names: str) -> dict[str, Any]:
    return {name: row[name] for name in names}


def _places(row: Record, *names: str) -> dict[str, Any]:
    parts = ((name, row[f"{name}_id"], row[f"{name}_name"]) for name in names)
    return {name: pb.Place(id=place_id, name=called) for name, place_id, called in parts if place_id is not None}
