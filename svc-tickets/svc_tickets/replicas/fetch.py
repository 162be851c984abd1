"""Fetches rows that a replica lacks from their owners, once, before any transaction, and stores them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence

from chassis.auth.clients import ServiceClient
from chassis.db.database import Database
from makeready.catalog.v1 import places_pb2
from makeready.events.v1.events_pb2 import References
from makeready.identity.v1 import staff_pb2
from svc_tickets.replicas.consumer import put_references


class ReplicaFetcher:
    """Fetches properties, units, assets and vendors from svc-catalog, and staff from the gateway."""

    def __init__(self, database: Database, catalog: ServiceClient, gateway: ServiceClient) -> None:
        self._database = database
        self._catalog = catalog
        self._gateway = gateway

    async def fetch(
        self,
        company_id: int,
        *,
        property_ids: Sequence[int] = (),
        unit_ids: Sequence[int] = (),
        asset_ids: Sequence[int] = (),
        vendor_ids: Sequence[int] = (),
        staff_ids: Sequence[int] = (),
        property_external_ids: Sequence[str] = (),
        unit_external_ids: Sequence[str] = (),
        asset_external_ids: Sequence[str] = (),
        vendor_external_ids: Sequence[str] = (),
        staff_external_ids: Sequence[str] = (),
    ) -> None:
        """Stores those of the named records that exist. Raises Unavailable if an owner does not answer."""
        of_catalog = places_pb2.BatchGetReferencesRequest(
            property_ids=_possible(property_ids),
            unit_ids=_possible(unit_ids),
            asset_ids=_possible(asset_ids),
            vendor_ids=_possible(vendor_ids),
            property_external_ids=property_external_ids,
            unit_external_ids=unit_external_ids,
            asset_external_ids=asset_external_ids,
            vendor_external_ids=vendor_external_ids,
        )
        asked: list[Awaitable[References]] = []
        if of_catalog.ListFields():
            of_catalog.company_id = company_id
            asked.append(self._ask_catalog(of_catalog))
        of_gateway = staff_pb2.BatchGetStaffRequest(ids=_possible(staff_ids), external_ids=staff_external_ids)
        if of_gateway.ListFields():
            of_gateway.company_id = company_id
            asked.append(self._ask_gateway(of_gateway))
        found = await asyncio.gather(*asked)
        if found:
            async with self._database.transaction() as connection:
                await put_references(connection, found)

    async def _ask_catalog(self, request: places_pb2.BatchGetReferencesRequest) -> References:
        response = places_pb2.BatchGetReferencesResponse
        answer = await self._catalog.call(request, response, company_id=request.company_id)
        return answer.references

    async def _ask_gateway(self, request: staff_pb2.BatchGetStaffRequest) -> References:
        answer = await self._gateway.call(request, staff_pb2.BatchGetStaffResponse, company_id=request.company_id)
        return References(staff=answer.staff)


def _possible(ids: Sequence[int]) -> list[int]:
    """Leaves out ids that no record can have."""
    return [one for one in ids if one > 0]
