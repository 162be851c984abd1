"""Imports of meters and of readings (spec 2.11)."""

from __future__ import annotations

from collections.abc import Mapping

from asyncpg import Record

from chassis.db.database import Connection
from chassis.imports.importer import Batch, ImportRow
from chassis.refusals import invalid_request
from makeready.events.v1.events_pb2 import References
from svc_catalog.meters import inputs, rules
from svc_catalog.meters import queries as q
from svc_catalog.places.lookups import PROPERTIES_NAMED, UNITS_NAMED


async def save_meters(connection: Connection, batch: Batch[inputs.MeterRow]) -> References:
    """Saves a batch's rows. No other context stores meters."""
    properties = await PROPERTIES_NAMED.by_external_id(connection, batch.company_id, batch.named("property"))
    batch.resolve("property", properties)
    units = await UNITS_NAMED.by_external_id(connection, batch.company_id, batch.named("unit"))
    batch.resolve("unit", units)
    await batch.lock_existing(connection, q.METERS)
    batch.each(lambda line: _place(line, units))
    await batch.save(connection, q.METERS, {"is_active": True})
    return References()


def _place(line: ImportRow[inputs.MeterRow], units: Mapping[str, Record]) -> None:
    """Checks the meter's unit and sets its scope accordingly. Raises Refusal with the field."""
    row, values = line.row, line.values
    has_unit = line.after("unit_id") is not None
    if has_unit and row.unit is not None and units[row.unit]["property_id"] != values["property_id"]:
        raise invalid_request("The unit lies in another property.", "unit")
    if has_unit and row.unit is None and line.stored("property_id") != values["property_id"]:
        raise invalid_request("The meter moves to another property; give its unit there.", "unit")
    stored_scope = None if "scope" in line.given else line.stored("scope")
    values["scope"] = rules.meter_scope(row.scope, stored_scope, has_unit)


async def save_readings(connection: Connection, batch: Batch[inputs.ReadingRow]) -> References:
    """Saves a batch's rows. No other context stores readings."""
    meters = await q.METERS_NAMED.by_external_id(connection, batch.company_id, batch.named("meter"))
    batch.resolve("meter", meters)
    await batch.lock_existing(connection, q.READINGS)
    batch.each(lambda line: _check_reading(line, meters))
    await batch.save(connection, q.READINGS, {"is_estimated": False})
    return References()


def _check_reading(line: ImportRow[inputs.ReadingRow], meters: Mapping[str, Record]) -> None:
    """Raises Refusal with the field."""
    row, values = line.row, line.values
    rules.check_period(row.period_start, row.period_end)
    if line.before is not None and line.before["meter_id"] != values["meter_id"]:
        # A move would remove it from the first meter's list, and add it to the other's behind cursors already issued.
        raise invalid_request("A reading stays with the meter that it was first imported for.", "meter")
    if row.unit_of_measure is None and (line.before is None or "unit_of_measure" in line.given):
        values["unit_of_measure"] = meters[row.meter]["unit_of_measure"]
