"""The RPCs by which people add and change meters, record and correct readings, and integrations send readings."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping
from typing import Any

import msgspec
from asyncpg import Record, UniqueViolationError

from chassis.auth.identity import Call, caller
from chassis.records import bodies
from chassis.records.shapes import encode
from chassis.refusals import invalid_request
from chassis.writes import idempotency
from chassis.writes.commands import Command, CommandRunner
from chassis.writes.editing import EditableTable, RecordEditor, audited, external_id_taken, no_such
from makeready.catalog.v1 import meter_commands_pb2 as pb
from makeready.common.v1.documents_pb2 import Document
from svc_catalog.meters import inputs, queries, rules
from svc_catalog.meters.records import METER, READING, Reading, ReadingResult, ReadingResults
from svc_catalog.meters.tables import meter
from svc_catalog.places.lookups import find_property, find_unit


class MeterCommandsService:
    """Adds and changes meters, records and corrects readings, and stores those of integrations."""

    def __init__(self, commands: CommandRunner, links_url: str) -> None:
        self.commands = commands
        self.meters = RecordEditor(
            "meter",
            EditableTable(meter, *queries.METERS.changeable),
            queries.ONE_METER,
            METER.renderer(links_url),
        )
        self.reading = READING.renderer()

    async def AddMeter(self, request: pb.AddMeterRequest, call: Call) -> pb.AddMeterResponse:
        values = inputs.METER_FIELDS.of(request)

        async def work(command: Command) -> pb.AddMeterResponse:
            await find_property(command, values["property_id"])
            columns = await self._scoped(command, {"is_active": True} | values, None)
            return pb.AddMeterResponse(document=await self.meters.add(command, columns))

        return await self.commands.run(call, request, pb.AddMeterResponse, work)

    async def UpdateMeter(self, request: pb.UpdateMeterRequest, call: Call) -> pb.UpdateMeterResponse:
        values = inputs.METER_FIELDS.of(request)

        async def work(command: Command) -> pb.UpdateMeterResponse:
            locked = await self.meters.lock(command, request.meter_id)
            if "property_id" in values:
                await find_property(command, values["property_id"])
            columns = await self._scoped(command, values, locked.row)
            return pb.UpdateMeterResponse(document=await self.meters.change(command, locked, columns))

        return await self.commands.run(call, request, pb.UpdateMeterResponse, work)

    async def _scoped(self, command: Command, values: Mapping[str, Any], before: Record | None) -> dict[str, Any]:
        """The values of a meter's columns. Its unit decides its scope, as in an import."""
        columns = dict(values)
        if columns.get("is_active", True) is None:
            columns["is_active"] = True
        stored: Mapping[str, Any] = {} if before is None else dict(before)
        property_id = columns.get("property_id", stored.get("property_id"))
        if columns.get("unit_id") is not None:
            unit = await find_unit(command, columns["unit_id"])
            if unit["property_id"] != property_id:
                raise invalid_request("The unit lies in another property.", "unit_id")
        has_unit = (columns["unit_id"] if "unit_id" in columns else stored.get("unit_id")) is not None
        if has_unit and "unit_id" not in columns and property_id != stored["property_id"]:
            raise invalid_request("The meter moves to another property; give its unit there.", "unit_id")
        stored_scope = None if "scope" in columns else stored.get("scope")
        columns["scope"] = rules.meter_scope(columns.get("scope"), stored_scope, has_unit)
        return columns

    async def RecordReading(self, request: pb.RecordReadingRequest, call: Call) -> pb.RecordReadingResponse:
        values = inputs.READING_FIELDS.of(request)
        rules.check_period(values["period_start"], values["period_end"])

        async def work(command: Command) -> pb.RecordReadingResponse:
            meter_row = await self.meters.find(command, values["meter_id"])
            columns = {"unit_of_measure": meter_row["unit_of_measure"], "is_estimated": False} | values
            try:
                row = await queries.add_reading(command.connection, command.company_id, columns, command.now)
            except UniqueViolationError as fault:
                raise external_id_taken(fault, "reading") from None
            record = self.reading.record(row)
            await command.audit("reading.recorded", "reading", record.entity_id, {}, audited(record))
            return pb.RecordReadingResponse(document=_document(record))

        return await self.commands.run(call, request, pb.RecordReadingResponse, work)

    async def AddMeterReadings(self, request: pb.AddMeterReadingsRequest, call: Call) -> pb.AddMeterReadingsResponse:
        sent, canonical = bodies.decode(inputs.ReadingsCreate, request.body)
        rows = [_given(row) for row in sent.readings]
        periods = [(row["period_start"], row["period_end"]) for row in rows]
        rules.check_periods(periods)
        meter_id = request.meter_id
        claim = idempotency.claim_of(request, caller(call), f"POST /meters/{meter_id}/readings", canonical)

        async def work(command: Command) -> bytes:
            # The lock lets one writer at a time look for periods and add what is missing.
            locked = await self.meters.lock(command, meter_id)
            connection, company_id = command.connection, command.company_id
            stored = await queries.readings_of_periods(connection, company_id, meter_id, periods)
            fresh = [
                _new(locked.row, company_id, command.now) | row
                for period, row in zip(periods, rows, strict=True)
                if period not in stored
            ]
            ids = await queries.add_readings(connection, fresh)
            changed = {
                period: {**stored[period], "company_id": company_id, **row}
                for period, row in zip(periods, rows, strict=True)
                if period in stored and any(stored[period][name] != value for name, value in row.items())
            }
            await queries.change_readings(connection, list(changed.values()))
            counts = {"created": len(fresh), "changed": len(changed)}
            if any(counts.values()):
                await command.audit("meter.readings_added", "meter", meter_id, {}, counts)
                connection.changed.add((company_id, "reading", 0))
            return encode(ReadingResults([_result(period, ids, stored, changed) for period in periods]))

        return pb.AddMeterReadingsResponse(reply=await self.commands.write(call, claim, 200, work))

    async def CorrectReading(self, request: pb.CorrectReadingRequest, call: Call) -> pb.CorrectReadingResponse:
        values = inputs.READING_FIELDS.of(request)
        if values.get("is_estimated", True) is None:
            values["is_estimated"] = False

        async def work(command: Command) -> pb.CorrectReadingResponse:
            await self.meters.find(command, request.meter_id)
            connection, company_id = command.connection, command.company_id
            before = await queries.locked_reading(connection, company_id, request.meter_id, request.reading_id)
            if before is None:
                raise no_such("reading of this meter")
            corrected = {**before, **values}
            rules.check_period(corrected["period_start"], corrected["period_end"])
            was = self.reading.record(before)
            if corrected == dict(before):
                return pb.CorrectReadingResponse(document=_document(was))
            try:
                row = await queries.save_reading(connection, company_id, corrected)
            except UniqueViolationError as fault:
                raise external_id_taken(fault, "reading") from None
            record = self.reading.record(row)
            await command.audit("reading.corrected", "reading", record.entity_id, audited(was), audited(record))
            return pb.CorrectReadingResponse(document=_document(record))

        return await self.commands.run(call, request, pb.CorrectReadingResponse, work)


def _given(row: inputs.ReadingCreate) -> dict[str, Any]:
    """The values that a reading of a body has, by column."""
    return {name: value for name, value in msgspec.structs.asdict(row).items() if value is not None}


def _new(meter_row: Record, company_id: int, at: datetime.datetime) -> dict[str, Any]:
    """The values of a new reading that its body may leave out."""
    return {
        "company_id": company_id,
        "meter_id": meter_row["id"],
        "unit_of_measure": meter_row["unit_of_measure"],
        "cost": None,
        "is_estimated": False,
        "created_at": at,
        "external_id": None,
        "source": "api",
    }


def _result(
    period: queries.Period,
    new_ids: Mapping[queries.Period, int],
    stored: Mapping[queries.Period, Record],
    changed: Collection[queries.Period],
) -> ReadingResult:
    if period in new_ids:
        return ReadingResult(new_ids[period], "created")
    return ReadingResult(stored[period]["id"], "changed" if period in changed else "unchanged")


def _document(record: Reading) -> Document:
    """A reading has no versions: no other context stores readings, and no event has one."""
    return Document(json=encode(record), entity_id=record.entity_id, version=1)
