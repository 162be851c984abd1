"""The RPCs of vendors: identity, rule, statement, record."""

from __future__ import annotations

import functools

from chassis.auth import identity
from chassis.db.database import Database
from chassis.imports.importer import Importer
from chassis.lists.paging import page
from chassis.refusals import not_found
from makeready.catalog.v1 import vendors_pb2 as pb
from svc_catalog.documents import document
from svc_catalog.vendors import imports, inputs, queries, records


class VendorsService:
    """Lists, fetches and imports vendors, inactive ones like the others (spec 4.7)."""

    def __init__(self, database: Database, importer: Importer, links: records.VendorLinks) -> None:
        self.database = database
        self.importer = importer
        self.links = links

    async def ListVendors(self, request: pb.ListVendorsRequest, call: identity.Call) -> pb.ListVendorsResponse:
        company_id = identity.caller(call).company_id
        rows = await queries.VENDORS_PAGE.rows(self.database, company_id, request.after_id, request.limit, {})
        return pb.ListVendorsResponse(page=page(rows, request.limit, self.links.vendor))

    async def GetVendor(self, request: pb.GetVendorRequest, call: identity.Call) -> pb.GetVendorResponse:
        row = await queries.vendor_of(self.database, identity.caller(call).company_id, request.vendor_id)
        if row is None:
            raise not_found("vendor")
        return pb.GetVendorResponse(document=document(self.links.vendor(row), row))

    async def ImportVendors(self, request: pb.ImportVendorsRequest, call: identity.Call) -> pb.ImportVendorsResponse:
        save = functools.partial(imports.save, events=request.events)
        results = await self.importer.run(save, inputs.VendorRow, request, call)
        return pb.ImportVendorsResponse(results=results)
