"""The RPCs about staff: imports by the operator, references for services."""

from __future__ import annotations

from chassis.auth import identity
from chassis.db.database import Connection, Database
from chassis.imports.importer import Batch, Importer, ImportRow
from chassis.refusals import invalid_request
from gateway.identity import queries, queries_staff, rules
from gateway.identity.records_import import StaffRow
from gateway.identity.service import no_company
from makeready.events.v1.events_pb2 import References, StaffReference
from makeready.identity.v1 import staff_pb2 as pb


class StaffService:
    """Members of staff. What other contexts keep of them goes out as references."""

    def __init__(self, database: Database, importer: Importer) -> None:
        self.database = database
        self.importer = importer

    async def ImportStaff(self, request: pb.ImportStaffRequest, call: identity.Call) -> pb.ImportStaffResponse:
        async with self.database.connection() as connection:
            if await queries.company(connection, identity.company_id(call)) is None:
                raise no_company()
        return pb.ImportStaffResponse(results=await self.importer.run(_save, StaffRow, request, call))

    async def BatchGetStaff(self, request: pb.BatchGetStaffRequest, call: identity.Call) -> pb.BatchGetStaffResponse:
        company_id = identity.company_id(call)
        if request.company_id != company_id:
            raise identity.IdentityError("the token names another company than the request")
        rows = await queries_staff.staff_references(self.database, company_id, request.ids, request.external_ids)
        return pb.BatchGetStaffResponse(staff=[StaffReference(**dict(row)) for row in rows])


async def _save(connection: Connection, batch: Batch[StaffRow]) -> References:
    """Saves a batch's rows; returns what other contexts must hear of."""
    batch.each(_tidy)
    await batch.lock_existing(connection, queries_staff.STAFF)
    told = References()
    for row in await batch.save(connection, queries_staff.STAFF, {}):
        told.staff.add(
            id=row["id"],
            version=row["version"],
            company_id=batch.company_id,
            name=row["name"],
            external_id=row["external_id"],
        )
    return told


def _tidy(line: ImportRow[StaffRow]) -> None:
    """An email as it is stored everywhere here. Raises Refusal."""
    if (email := line.values.get("email")) is not None:
        try:
            line.values["email"] = rules.email(email)
        except ValueError as error:
            raise invalid_request(str(error), "email") from None
