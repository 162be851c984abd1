"""The RPCs about staff: imports by the operator, references for services, the list of the public API."""

from __future__ import annotations

from chassis.auth import identity
from chassis.db.database import Database
from chassis.imports.importer import Importer
from chassis.lists.paging import page
from gateway.identity.companies import queries as companies
from gateway.identity.rules import no_company
from gateway.identity.staff import imports, queries
from gateway.identity.staff.inputs import StaffRow
from gateway.identity.staff.records import MEMBER
from makeready.events.v1.events_pb2 import StaffReference
from makeready.identity.v1 import staff_pb2 as pb


class StaffService:
    """Members of staff. Publishes a reference of each, which other contexts keep as a replica."""

    def __init__(self, database: Database, importer: Importer) -> None:
        self.database = database
        self.importer = importer
        self.renderer = MEMBER.renderer()

    async def ImportStaff(self, request: pb.ImportStaffRequest, call: identity.Call) -> pb.ImportStaffResponse:
        async with self.database.connection() as connection:
            if await companies.company(connection, identity.company_id(call)) is None:
                raise no_company()
        return pb.ImportStaffResponse(results=await self.importer.run(imports.save, StaffRow, request, call))

    async def ListMembers(self, request: pb.ListMembersRequest, call: identity.Call) -> pb.ListMembersResponse:
        company_id = identity.company_id(call)
        rows = await queries.MEMBERS_PAGE.rows(self.database, company_id, request.after_id, request.limit, {})
        return pb.ListMembersResponse(page=page(rows, request.limit, self.renderer.record))

    async def BatchGetStaff(self, request: pb.BatchGetStaffRequest, call: identity.Call) -> pb.BatchGetStaffResponse:
        company_id = identity.company_id(call)
        if request.company_id != company_id:
            raise identity.IdentityError("the token names another company than the request")
        rows = await queries.staff_given(self.database, company_id, request.ids, request.external_ids)
        return pb.BatchGetStaffResponse(staff=[StaffReference(**dict(row)) for row in rows])
