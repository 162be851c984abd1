"""Fetches rows that the replicas lack from their owners: once, before any transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence

from chassis.auth.clients import ServiceClient
from chassis.db.database import Database
from chassis.messaging.consumer import Consumer
from chassis.refusals import Refusal
from makeready.catalog.v1 import places_pb2
from makeready.events.v1.events_pb2 import References
from makeready.identity.v1 import staff_pb2
from svc_occupancy.replicas import queries
from svc_occupancy.replicas.consumers import put_references


class ReplicaFetcher:
    """Fetches units and vendors from svc-catalog, staff from the gateway, and a company from the producers' outboxes if
    it has not arrived."""

    def __init__(self, database: Database, catalog: ServiceClient, gateway: ServiceClient, consumer: Consumer) -> None:
        self._database = database
        self._catalog = catalog
        self._gateway = gateway
        self._consumer = consumer

    async def fetch_units(self, company_id: int, external_ids: Sequence[str]) -> None:
        """Stores those units that the replica lacks, with their properties.

        Raises Unavailable if the owner does not answer.
        """
        stored = await queries.units(self._database, company_id, external_ids)
        missing = [external_id for external_id in external_ids if external_id not in stored]
        if not missing:
            return
        await self._fetch(places_pb2.BatchGetReferencesRequest(company_id=company_id, unit_external_ids=missing))

    async def fetch_unit(self, company_id: int, unit_id: int) -> None:
        """Stores a unit with its property, if the company has it.

        Raises Unavailable if the owner does not answer.
        """
        if unit_id > 0:
            await self._fetch(places_pb2.BatchGetReferencesRequest(company_id=company_id, unit_ids=[unit_id]))

    async def fetch_property(self, company_id: int, property_id: int) -> None:
        """Stores a property, if the company has it and the replica lacks it.

        Raises Unavailable if the owner does not answer.
        """
        if property_id > 0 and not await queries.has_property(self._database, company_id, property_id):
            await self._fetch(places_pb2.BatchGetReferencesRequest(company_id=company_id, property_ids=[property_id]))

    async def _fetch(self, request: places_pb2.BatchGetReferencesRequest) -> None:
        response = places_pb2.BatchGetReferencesResponse
        answer = await self._catalog.call(request, response, company_id=request.company_id)
        if answer.references.ListFields():
            async with self._database.transaction() as connection:
                await put_references(connection, [answer.references])

    async def find_people(self, company_id: int, named: Mapping[str, Sequence[int]]) -> None:
        """Stores those members of staff (`assignee_id`) and vendors (`vendor_id`) that the replicas lack.

        Raises Refusal 404, with the field, for one that the company does not have, and Unavailable if an owner does not
        answer.
        """
        lacking = await queries.lacking_people(self._database, company_id, named)
        if not any(lacking.values()):
            return
        await self._fetch_people(
            staff_pb2.BatchGetStaffRequest(company_id=company_id, ids=_possible(lacking["assignee_id"])),
            places_pb2.BatchGetReferencesRequest(company_id=company_id, vendor_ids=_possible(lacking["vendor_id"])),
        )
        lacking = await queries.lacking_people(self._database, company_id, named)
        for field, noun in (("assignee_id", "member of staff"), ("vendor_id", "vendor")):
            if lacking[field]:
                raise Refusal(404, "not_found", f"The company has no {noun} with that id; check the id.", field)

    async def find_named_people(
        self, company_id: int, staff: Sequence[str], vendors: Sequence[str]
    ) -> queries.NamedPeople:
        """The members of staff and the vendors with these external ids. Stores those that the replicas lack.

        Raises Unavailable if an owner does not answer.
        """
        people = await queries.named_people(self._database, company_id, staff, vendors)
        missing_staff = [external_id for external_id in staff if external_id not in people.staff]
        missing_vendors = [external_id for external_id in vendors if external_id not in people.vendors]
        if not missing_staff and not missing_vendors:
            return people
        await self._fetch_people(
            staff_pb2.BatchGetStaffRequest(company_id=company_id, external_ids=missing_staff),
            places_pb2.BatchGetReferencesRequest(company_id=company_id, vendor_external_ids=missing_vendors),
        )
        return await queries.named_people(self._database, company_id, staff, vendors)

    async def _fetch_people(
        self, of_gateway: staff_pb2.BatchGetStaffRequest, of_catalog: places_pb2.BatchGetReferencesRequest
    ) -> None:
        """Calls the owners that a request names records of."""
        calls: list[Awaitable[References]] = []
        if len(of_gateway.ListFields()) > 1:  # company_id is one
            calls.append(self._staff(of_gateway))
        if len(of_catalog.ListFields()) > 1:
            calls.append(self._vendors(of_catalog))
        references = await asyncio.gather(*calls)
        if references:
            async with self._database.transaction() as connection:
                await put_references(connection, references)

    async def _staff(self, request: staff_pb2.BatchGetStaffRequest) -> References:
        answer = await self._gateway.call(request, staff_pb2.BatchGetStaffResponse, company_id=request.company_id)
        return References(staff=answer.staff)

    async def _vendors(self, request: places_pb2.BatchGetReferencesRequest) -> References:
        response = places_pb2.BatchGetReferencesResponse
        return (await self._catalog.call(request, response, company_id=request.company_id)).references

    async def fetch_company(self, company_id: int) -> None:
        """Consumes what the producers' outboxes still hold, if the company's timezone has not arrived.

        Raises Unavailable if a producer does not answer.
        """
        if await queries.timezone(self._database, company_id) is None:
            await self._consumer.catch_up()


def _possible(ids: Sequence[int]) -> list[int]:
    """The ids that a record can have."""
    return [record_id for record_id in ids if record_id > 0]
