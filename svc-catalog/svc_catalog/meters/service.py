"""The RPCs that list, fetch and import meters and readings."""

from __future__ import annotations

from chassis.auth import identity
from chassis.changes.reads import RecordReads
from chassis.db.database import Database
from chassis.imports.importer import Importer
from chassis.lists.paging import ROWS_MAX, page
from chassis.refusals import not_found
from makeready.catalog.v1 import meters_pb2 as pb
from svc_catalog.meters import imports, inputs, queries
from svc_catalog.meters.records import METER, READING


class MetersService:
    """Lists, fetches and imports meters; lists and imports their readings (spec 4.10)."""

    def __init__(self, database: Database, importer: Importer, links_url: str) -> None:
        self.database = database
        self.importer = importer
        renderer = METER.renderer(links_url)
        self.meters = RecordReads("meter", database, renderer, queries.METERS_PAGE, queries.METER_CHANGES)
        self.reading = READING.renderer()

    async def ListMeters(self, request: pb.ListMetersRequest, call: identity.Call) -> pb.ListMetersResponse:
        company_id = identity.company_id(call)
        return pb.ListMetersResponse(page=await self.meters.page(company_id, request))

    async def GetMeter(self, request: pb.GetMeterRequest, call: identity.Call) -> pb.GetMeterResponse:
        company_id = identity.company_id(call)
        return pb.GetMeterResponse(document=await self.meters.fetch(company_id, request.meter_id))

    async def ListReadings(self, request: pb.ListReadingsRequest, call: identity.Call) -> pb.ListReadingsResponse:
        company_id = identity.company_id(call)
        rows = await queries.readings(self.database, company_id, request.meter_id, request.after_id, request.limit)
        if rows is None:
            raise not_found("meter")
        return pb.ListReadingsResponse(page=page(rows, request.limit, self.reading.record))

    async def ListReadingsOfAllMeters(
        self, request: pb.ListReadingsOfAllMetersRequest, call: identity.Call
    ) -> pb.ListReadingsOfAllMetersResponse:
        company_id, limit = identity.company_id(call), min(request.limit, ROWS_MAX)
        rows = await queries.readings_of_all_meters(
            self.database, company_id, request.after_meter_id, request.after_id, limit
        )
        last = rows[:limit][-1]["meter_id"] if rows else 0
        return pb.ListReadingsOfAllMetersResponse(page=page(rows, limit, self.reading.record), next_after_meter_id=last)

    async def ListMeterChanges(
        self, request: pb.ListMeterChangesRequest, call: identity.Call
    ) -> pb.ListMeterChangesResponse:
        company_id = identity.caller(call).company_id
        return pb.ListMeterChangesResponse(feed=await self.meters.feed(company_id, request))

    async def ListReadingChanges(
        self, request: pb.ListReadingChangesRequest, call: identity.Call
    ) -> pb.ListReadingChangesResponse:
        company_id = identity.caller(call).company_id
        feed = await queries.READING_CHANGES.feed(self.database, company_id, request, self.reading)
        return pb.ListReadingChangesResponse(feed=feed)

    async def ImportMeters(self, request: pb.ImportMetersRequest, call: identity.Call) -> pb.ImportMetersResponse:
        results = await self.importer.run(imports.save_meters, inputs.MeterRow, request, call)
        return pb.ImportMetersResponse(results=results)

    async def ImportReadings(self, request: pb.ImportReadingsRequest, call: identity.Call) -> pb.ImportReadingsResponse:
        results = await self.importer.run(imports.save_readings, inputs.ReadingRow, request, call)
        return pb.ImportReadingsResponse(results=results)
