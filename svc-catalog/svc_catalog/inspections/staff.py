"""Members of staff, the assignees of inspections. If the replica lacks one, the service requests it once from the
gateway, before any transaction, and stores it."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import BigInteger, literal_column, select

from chassis.auth.clients import ServiceClient
from chassis.db.database import Connection, Database
from chassis.db.statements import Statement, param
from chassis.imports.importer import ExternalIds
from chassis.replicas.tables import Replica
from makeready.identity.v1 import staff_pb2
from svc_catalog.schema import staff

STAFF_NAMED = ExternalIds(staff, replica=True)
_REPLICA = Replica(staff)
_STAFF = Statement(
    select(staff.c.id).where(
        staff.c.company_id == param("company_id", BigInteger),
        staff.c.id == param("staff_id", BigInteger),
        staff.c.version > literal_column("0"),
    )
)


async def is_staff(connection: Connection | Database, company_id: int, staff_id: int) -> bool:
    """Whether the replica has a member of the company's staff with this id."""
    return await connection.value(_STAFF, company_id=company_id, staff_id=staff_id) is not None


class Staff:
    """Fetches members of staff from the gateway."""

    def __init__(self, database: Database, gateway: ServiceClient) -> None:
        self._database = database
        self._gateway = gateway

    async def fetch_missing(self, company_id: int, external_ids: Sequence[str]) -> None:
        """Stores those that the replica lacks. Raises Unavailable if the gateway does not answer."""
        stored = await STAFF_NAMED.by_external_id(self._database, company_id, external_ids)
        missing = [external_id for external_id in external_ids if external_id not in stored]
        if not missing:
            return
        await self._fetch(staff_pb2.BatchGetStaffRequest(company_id=company_id, external_ids=missing))

    async def fetch_one(self, company_id: int, staff_id: int) -> None:
        """Like `fetch_missing`, for one member by id."""
        if staff_id > 0 and not await is_staff(self._database, company_id, staff_id):
            await self._fetch(staff_pb2.BatchGetStaffRequest(company_id=company_id, ids=[staff_id]))

    async def _fetch(self, request: staff_pb2.BatchGetStaffRequest) -> None:
        answer = await self._gateway.call(request, staff_pb2.BatchGetStaffResponse, company_id=request.company_id)
        if answer.staff:
            async with self._database.transaction() as connection:
                await _REPLICA.put(connection, answer.staff)
