"""An import of meters (spec 2.11)."""

from __future__ import annotations

from collections.abc import Mapping

from asyncpg import Record

from chassis.db.database import Connection
from chassis.imports.importer import Batch, ImportRow
from chassis.refusals import invalid_request
from makeready.events.v1.events_pb2 import References
from svc_catalog import queries_import as q
from svc_catalog import queries_meters, rules_meters
from svc_catalog import records_meters as records


async def save(connection: Connection, batch: Batch[records.MeterRow]) -> References:
    """Saves a batch's rows; no other context hears of meters."""
    properties = await q.PROPERTIES_NAMED.by_external_id(connection, batch.company_id, batch.named("property"))
    batch.resolve("property", properties)
    units = await q.UNITS_NAMED.by_external_id(connection, batch.company_id, batch.named("unit"))
    batch.resolve("unit", units)
    await batch.lock_existing(connection, queries_meters.METERS)
    batch.each(lambda line: _place(line, units))
    await batch.save(connection, queries_meters.METERS, {"is_active": True})
    return References()


def _place(line: ImportRow[records.MeterRow], units: Mapping[str, Record]) -> None:
    """Settles the meter's scope by its unit. Raises Refusal with the field."""
    row, values = line.row, line.values
    has_unit = line.after("unit_id") is not None
    if has_unit and row.unit is not None and units[row.unit]["property_id"] != values["property_id"]:
        raise invalid_request("The unit lies in another property.", "unit")
    if has_unit and row.unit is None and line.stored("property_id") != values["property_id"]:
        raise invalid_request("The meter moves to another property; give its unit there.", "unit")
    kept = None if "scope" in line.given else line.stored("scope")
    values["scope"] = rules_meters.meter_scope(row.scope, kept, has_unit)
