"""The RPCs that list, fetch and import vendors."""

from __future__ import annotations

import functools

from chassis.auth import identity
from chassis.db.database import Database
from chassis.imports.importer import Importer
from chassis.lists.paging import page
from chassis.refusals import not_found
from makeready.catalog.v1 import vendors_pb2 as pb
from svc_catalog.vendors import imports, inputs, queries
from svc_catalog.vendors.records import VENDOR


class VendorsService:
    """Lists, fetches and imports vendors, including inactive ones (spec 4.7)."""

    def __init__(self, database: Database, importer: Importer, links_url: str) -> None:
        self.database = database
        self.importer = importer
        self.vendor = VENDOR.renderer(links_url)

    async def ListVendors(self, request: pb.ListVendorsRequest, call: identity.Call) -> pb.ListVendorsResponse:
        company_id = identity.caller(call).company_id
        rows = await queries.VENDORS_PAGE.rows(self.database, company_id, request.after_id, request.limit, {})
        return pb.ListVendorsResponse(page=page(rows, request.limit, self.vendor.record))

    async def GetVendor(self, request: pb.GetVendorRequest, call: identity.Call) -> pb.GetVendorResponse:
        company_id = identity.caller(call).company_id
        row = await self.database.row(queries.ONE_VENDOR, company_id=company_id, entity_id=request.vendor_id)
        if row is None:
            raise not_found("vendor")
        return pb.GetVendorResponse(document=self.vendor.document(row))

    async def ListVendorChanges(
        self, request: pb.ListVendorChangesRequest, call: identity.Call
    ) -> pb.ListVendorChangesResponse:
        company_id = identity.caller(call).company_id
        feed = await queries.VENDOR_CHANGES.feed(self.database, company_id, request, self.vendor.record_of_wider_row)
        return pb.ListVendorChangesResponse(feed=feed)

    async def ImportVendors(self, request: pb.ImportVendorsRequest, call: identity.Call) -> pb.ImportVendorsResponse:
        save = functools.partial(imports.save, events=request.events)
        results = await self.importer.run(save, inputs.VendorRow, request, call)
        return pb.ImportVendorsResponse(results=results)
