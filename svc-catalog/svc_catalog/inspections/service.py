"""The RPCs that list, fetch and import inspections."""

from __future__ import annotations

import functools

from chassis.auth import identity
from chassis.db.database import Database
from chassis.imports.importer import Batch, Importer
from chassis.lists.paging import page
from chassis.refusals import not_found
from makeready.catalog.v1 import inspections_pb2 as pb
from svc_catalog.inspections import imports, queries, rules
from svc_catalog.inspections.inputs import InspectionRow
from svc_catalog.inspections.records import INSPECTION
from svc_catalog.inspections.staff import Staff

_STATUS_LABELS = dict(enumerate(rules.INSPECTION_STATUSES, start=1))


class InspectionsService:
    """Lists and fetches operations' inspections (spec 4.8); imports all inspections."""

    def __init__(self, database: Database, importer: Importer, staff: Staff, links_url: str) -> None:
        self.database = database
        self.importer = importer
        self.staff = staff
        self.inspection = INSPECTION.renderer(links_url)

    async def ListInspections(
        self, request: pb.ListInspectionsRequest, call: identity.Call
    ) -> pb.ListInspectionsResponse:
        company_id = identity.caller(call).company_id
        filters = queries.INSPECTIONS_PAGE.filters_of(request)
        rows = await queries.INSPECTIONS_PAGE.rows(self.database, company_id, request.after_id, request.limit, filters)
        return pb.ListInspectionsResponse(page=page(rows, request.limit, self.inspection.record))

    async def GetInspection(self, request: pb.GetInspectionRequest, call: identity.Call) -> pb.GetInspectionResponse:
        company_id = identity.caller(call).company_id
        row = await self.database.row(queries.ONE_INSPECTION, company_id=company_id, entity_id=request.inspection_id)
        if row is None:
            raise not_found("inspection")
        return pb.GetInspectionResponse(document=self.inspection.document(row))

    async def ListInspectionChanges(
        self, request: pb.ListInspectionChangesRequest, call: identity.Call
    ) -> pb.ListInspectionChangesResponse:
        company_id = identity.caller(call).company_id
        feed = await queries.INSPECTION_CHANGES.feed(
            self.database, company_id, request, self.inspection.record_of_wider_row
        )
        return pb.ListInspectionChangesResponse(feed=feed)

    async def ImportInspections(
        self, request: pb.ImportInspectionsRequest, call: identity.Call
    ) -> pb.ImportInspectionsResponse:
        async def ask(batch: Batch[InspectionRow]) -> None:
            await self.staff.fetch_missing(batch.company_id, batch.named("assignee"))

        save = functools.partial(imports.save, events=request.events)
        results = await self.importer.run(save, InspectionRow, request, call, ask)
        return pb.ImportInspectionsResponse(results=results)
