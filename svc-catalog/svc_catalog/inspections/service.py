"""The RPCs that list, fetch and import inspections."""

from __future__ import annotations

import functools

from chassis.auth import identity
from chassis.changes.reads import RecordReads
from chassis.db.database import Database
from chassis.imports.importer import Batch, Importer
from makeready.catalog.v1 import inspections_pb2 as pb
from svc_catalog.inspections import imports, queries
from svc_catalog.inspections.inputs import InspectionRow
from svc_catalog.inspections.records import INSPECTION
from svc_catalog.inspections.staff import Staff


class InspectionsService:
    """Lists and fetches operations' inspections (spec 4.8); imports all inspections."""

    def __init__(self, database: Database, importer: Importer, staff: Staff, links_url: str) -> None:
        self.database = database
        self.importer = importer
        self.staff = staff
        renderer = INSPECTION.renderer(links_url)
        self.inspections = RecordReads(
            "inspection", database, renderer, queries.INSPECTIONS_PAGE, queries.INSPECTION_CHANGES
        )

    async def ListInspections(
        self, request: pb.ListInspectionsRequest, call: identity.Call
    ) -> pb.ListInspectionsResponse:
        company_id = identity.caller(call).company_id
        return pb.ListInspectionsResponse(page=await self.inspections.page(company_id, request))

    async def GetInspection(self, request: pb.GetInspectionRequest, call: identity.Call) -> pb.GetInspectionResponse:
        company_id = identity.caller(call).company_id
        return pb.GetInspectionResponse(document=await self.inspections.fetch(company_id, request.inspection_id))

    async def ListInspectionChanges(
        self, request: pb.ListInspectionChangesRequest, call: identity.Call
    ) -> pb.ListInspectionChangesResponse:
        company_id = identity.caller(call).company_id
        return pb.ListInspectionChangesResponse(feed=await self.inspections.feed(company_id, request))

    async def ImportInspections(
        self, request: pb.ImportInspectionsRequest, call: identity.Call
    ) -> pb.ImportInspectionsResponse:
        async def ask(batch: Batch[InspectionRow]) -> None:
            await self.staff.fetch_missing(batch.company_id, batch.named("assignee"))

        save = functools.partial(imports.save, events=request.events)
        results = await self.importer.run(save, InspectionRow, request, call, ask)
        return pb.ImportInspectionsResponse(results=results)
