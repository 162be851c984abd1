"""The RPCs by which people add and change meters, and record and correct readings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from asyncpg import Record, UniqueViolationError

from chassis.auth.identity import Call
from chassis.records.shapes import encode
from chassis.refusals import invalid_request
from chassis.writes.commands import Command, CommandRunner
from chassis.writes.editing import EditableTable, RecordEditor, audited, external_id_taken, no_such
from makeready.catalog.v1 import meter_commands_pb2 as pb
from makeready.common.v1.documents_pb2 import Document
from svc_catalog.meters import inputs, queries, rules
from svc_catalog.meters.records import METER, READING, Reading
from svc_catalog.meters.tables import meter
from svc_catalog.places.lookups import find_property, find_unit


class MeterCommandsService:
    """Adds and changes meters, and records and corrects readings."""

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


def _document(record: Reading) -> Document:
    """A reading has no versions: no other context stores readings, and no event has one."""
    return Document(json=encode(record), entity_id=record.entity_id, version=1)
