"""The RPCs that list, fetch and import vendors."""

from __future__ import annotations

import functools

from chassis.auth import identity
from chassis.changes.reads import RecordReads
from chassis.db.database import Database
from chassis.imports.importer import Importer
from makeready.catalog.v1 import vendors_pb2 as pb
from svc_catalog.vendors import imports, inputs, queries
from svc_catalog.vendors.records import VENDOR


class VendorsService:
    """Lists, fetches and imports vendors, including inactive ones (spec 4.7)."""

    def __init__(self, database: Database, importer: Importer, links_url: str) -> None:
        self.database = database
        self.importer = importer
        renderer = VENDOR.renderer(links_url)
        self.vendors = RecordReads("vendor", database, renderer, queries.VENDORS_PAGE, queries.VENDOR_CHANGES)

    async def ListVendors(self, request: pb.ListVendorsRequest, call: identity.Call) -> pb.ListVendorsResponse:
        company_id = identity.caller(call).company_id
        return pb.ListVendorsResponse(page=await self.vendors.page(company_id, request))

    async def GetVendor(self, request: pb.GetVendorRequest, call: identity.Call) -> pb.GetVendorResponse:
        company_id = identity.caller(call).company_id
        return pb.GetVendorResponse(document=await self.vendors.fetch(company_id, request.vendor_id))

    async def ListVendorChanges(
        self, request: pb.ListVendorChangesRequest, call: identity.Call
    ) -> pb.ListVendorChangesResponse:
        company_id = identity.caller(call).company_id
        return pb.ListVendorChangesResponse(feed=await self.vendors.feed(company_id, request))

    async def ImportVendors(self, request: pb.ImportVendorsRequest, call: identity.Call) -> pb.ImportVendorsResponse:
        save = functools.partial(imports.save, events=request.events)
        results = await self.importer.run(save, inputs.VendorRow, request, call)
        return pb.ImportVendorsResponse(results=results)
