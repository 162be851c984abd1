"""The import of assets (spec 2.7), and of their locations other than units."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from asyncpg import Record

from chassis.db.database import Connection
from chassis.imports.importer import Batch, ImportRow
from chassis.refusals import invalid_request
from makeready.events.v1.events_pb2 import References
from svc_catalog.places import import_queries as q
from svc_catalog.places import inputs, rules
from svc_catalog.places.lookups import PROPERTIES_NAMED, UNITS_NAMED
from svc_catalog.places.references import ASSET_REFERENCES


async def save(connection: Connection, batch: Batch[inputs.AssetRow]) -> References:
    """Saves a batch's rows; returns the changed rows for the contexts that replicate them."""
    named = await PROPERTIES_NAMED.by_external_id(connection, batch.company_id, batch.named("property"))
    batch.resolve("property", named)
    await batch.lock_existing(connection, q.ASSETS)
    units_named = await UNITS_NAMED.by_external_id(connection, batch.company_id, batch.named("location"))
    batch.each(lambda line: _locate(line, units_named))
    keys = {line.row.external_id: key for line in batch.good.values() if (key := _other_location(line))}
    ids = await q.LOCATIONS.ids(connection, batch.company_id, keys.values())
    for external_id, key in keys.items():
        batch.good[external_id].values["location_id"] = ids[key]
    return ASSET_REFERENCES.made_of(await batch.save(connection, q.ASSETS, {"status": rules.DEFAULT_ASSET_STATUS}))


def _locate(line: ImportRow[inputs.AssetRow], units_named: Mapping[str, Record]) -> None:
    """Sets unit_id from the row's unit, or clears it if the asset leaves the unit. Raises Refusal with the field."""
    row, values = line.row, line.values
    if row.location is None:
        if row.location_type is not None:
            raise invalid_request("location_type describes a location; name it in location.", "location_type")
        if "location" in line.given:
            values |= {"unit_id": None, "location_id": None}
        elif line.moves("property_id") and (line.stored("unit_id") or line.stored("location_id")):
            raise invalid_request("The asset moves to another property; give its location there.", "location")
        return
    values |= {"unit_id": None, "location_id": None}
    if row.location_type not in (None, "unit"):
        return
    unit = units_named.get(row.location)
    if unit is None:
        raise invalid_request("No unit with that external_id is known; another place needs location_type.", "location")
    if unit["property_id"] != values["property_id"]:
        raise invalid_request("The location lies in another property.", "location")
    values["unit_id"] = unit["id"]


def _other_location(line: ImportRow[inputs.AssetRow]) -> tuple[Any, ...] | None:
    """The key of the location that the row names; None if it names a unit or nothing."""
    row = line.row
    if row.location is None or row.location_type in (None, "unit"):
        return None
    return (line.values["property_id"], row.location, row.location_type)
