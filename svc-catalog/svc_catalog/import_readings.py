"""An import of readings (spec 2.11)."""

from __future__ import annotations

from collections.abc import Mapping

from asyncpg import Record

from chassis.db.database import Connection
from chassis.imports.importer import Batch, ImportRow
from chassis.refusals import invalid_request
from makeready.events.v1.events_pb2 import References
from svc_catalog import queries_meters as q
from svc_catalog import records_meters as records


async def save(connection: Connection, batch: Batch[records.ReadingRow]) -> References:
    """Saves a batch's rows; no other context hears of readings."""
    meters = await q.METERS_NAMED.by_external_id(connection, batch.company_id, batch.named("meter"))
    batch.resolve("meter", meters)
    await batch.lock_existing(connection, q.READINGS)
    batch.each(lambda line: _check(line, meters))
    await batch.save(connection, q.READINGS, {"is_estimated": False})
    return References()


def _check(line: ImportRow[records.ReadingRow], meters: Mapping[str, Record]) -> None:
    """Raises Refusal with the field."""
    row, values = line.row, line.values
    if row.period_end < row.period_start:
        raise invalid_request("period_end must not be before period_start.", "period_end")
    if line.before is not None and line.before["meter_id"] != values["meter_id"]:
        # The list of its first meter would lose it behind the cursors that were issued.
        raise invalid_request("A reading stays with the meter that it was first imported for.", "meter")
    if row.unit_of_measure is None and (line.before is None or "unit_of_measure" in line.given):
        values["unit_of_measure"] = meters[row.meter]["unit_of_measure"]
