"""The RPCs of vendors: identity, rule, statement, record."""

from __future__ import annotations

import functools

from chassis.auth import identity
from chassis.db.database import Database
from chassis.imports.importer import Importer
from chassis.lists.paging import page
from chassis.refusals import not_found
from makeready.catalog.v1 import vendors_pb2 as pb
from svc_catalog import import_vendors, queries_vendors, records_import_vendors, records_vendors
from svc_catalog.service import document


class VendorsService:
    """Lists, fetches and imports vendors, inactive ones like the others (spec 4.7)."""

    def __init__(self, database: Database, importer: Importer, links: records_vendors.VendorLinks) -> None:
        self.database = database
        self.importer = importer
        self.links = links

    async def ListVendors(self, request: pb.ListVendorsRequest, call: identity.Call) -> pb.ListVendorsResponse:
        company_id = identity.caller(call).company_id
        rows = await queries_vendors.VENDORS_PAGE.rows(self.database, company_id, request.after_id, request.limit, {})
        return pb.ListVendorsResponse(page=page(rows, request.limit, self.links.vendor))

    async def GetVendor(self, request: pb.GetVendorRequest, call: identity.Call) -> pb.GetVendorResponse:
        row = await queries_vendors.vendor_of(self.database, identity.caller(call).company_id, request.vendor_id)
        if row is None:
            raise not_found("vendor")
        return pb.GetVendorResponse(document=document(self.links.vendor(row), row))

    async def ImportVendors(self, request: pb.ImportVendorsRequest, call: identity.Call) -> pb.ImportVendorsResponse:
        save = functools.partial(import_vendors.save, events=request.events)
        results = await self.importer.run(save, records_import_vendors.VendorRow, request, call)
        return pb.ImportVendorsResponse(results=results)
