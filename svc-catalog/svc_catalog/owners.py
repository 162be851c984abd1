"""Asking the owner: members of staff that the replica lacks are fetched once, before any transaction, and kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from chassis.auth.clients import ServiceClient
from chassis.db.database import Database
from makeready.events.v1.events_pb2 import References
from makeready.identity.v1 import staff_pb2
from makeready.identity.v1.staff_pb2_grpc import StaffServiceStub
from svc_catalog import consumers, queries_inspections

if TYPE_CHECKING:
    from makeready.identity.v1.staff_pb2_grpc import StaffServiceAsyncStub  # a name of the stub file alone


class Staff:
    """The gateway, asked for members of staff."""

    def __init__(self, database: Database, gateway: ServiceClient) -> None:
        self._database = database
        self._gateway = gateway
        self._stub: StaffServiceAsyncStub = StaffServiceStub(gateway.channel)

    async def fetch_missing(self, company_id: int, external_ids: Sequence[str]) -> None:
        """Takes into the replica whatever of these it lacks. Raises Unavailable where the gateway does not answer."""
        known = await queries_inspections.STAFF_NAMED.by_external_id(self._database, company_id, external_ids)
        missing = [external_id for external_id in external_ids if external_id not in known]
        if not missing:
            return
        await self._fetch(staff_pb2.BatchGetStaffRequest(company_id=company_id, external_ids=missing))

    async def fetch_one(self, company_id: int, staff_id: int) -> None:
        """The same of one by their id."""
        if staff_id > 0 and not await queries_inspections.is_staff(self._database, company_id, staff_id):
            await self._fetch(staff_pb2.BatchGetStaffRequest(company_id=company_id, ids=[staff_id]))

    async def _fetch(self, request: staff_pb2.BatchGetStaffRequest) -> None:
        answer = await self._gateway.call(self._stub.BatchGetStaff, request, company_id=request.company_id)
        if answer.staff:
            async with self._database.transaction() as connection:
                await consumers.put_references(connection, [References(staff=answer.staff)])
