"""Fetches rows that a replica lacks from their owners, once, before any transaction, and stores them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from typing import Literal

from chassis.auth.clients import ServiceClient
from chassis.db.database import Database
from makeready.catalog.v1 import places_pb2
from makeready.events.v1.events_pb2 import References
from makeready.identity.v1 import staff_pb2
from svc_tickets.replicas.consumer import put_references

RecordKind = Literal["property", "unit", "asset", "vendor", "staff"]


class ReplicaFetcher:
    """Fetches properties, units, assets and vendors from svc-catalog, and staff from the gateway."""

    def __init__(self, database: Database, catalog: ServiceClient, gateway: ServiceClient) -> None:
        self._database = database
        self._catalog = catalog
        self._gateway = gateway

    async def fetch(self, company_id: int, ids: Mapping[RecordKind, int | None]) -> None:
        """Stores those of the records that exist; skips ids that no record can have. Raises Unavailable if an owner
        does not answer."""
        possible = {kind: [entity_id] for kind, entity_id in ids.items() if entity_id is not None and entity_id > 0}
        of_catalog = places_pb2.BatchGetReferencesRequest(
            company_id=company_id,
            property_ids=possible.get("property"),
            unit_ids=possible.get("unit"),
            asset_ids=possible.get("asset"),
            vendor_ids=possible.get("vendor"),
        )
        of_gateway = staff_pb2.BatchGetStaffRequest(company_id=company_id, ids=possible.get("staff"))
        await self._fetch(of_catalog, of_gateway)

    async def fetch_named(self, company_id: int, external_ids: Mapping[RecordKind, Sequence[str]]) -> None:
        """As `fetch`, by external ids."""
        of_catalog = places_pb2.BatchGetReferencesRequest(
            company_id=company_id,
            property_external_ids=external_ids.get("property"),
            unit_external_ids=external_ids.get("unit"),
            asset_external_ids=external_ids.get("asset"),
            vendor_external_ids=external_ids.get("vendor"),
        )
        of_gateway = staff_pb2.BatchGetStaffRequest(company_id=company_id, external_ids=external_ids.get("staff"))
        await self._fetch(of_catalog, of_gateway)

    async def _fetch(
        self, of_catalog: places_pb2.BatchGetReferencesRequest, of_gateway: staff_pb2.BatchGetStaffRequest
    ) -> None:
        """Calls the owners that a request names records of."""
        calls: list[Awaitable[References]] = []
        if len(of_catalog.ListFields()) > 1:  # company_id is one
            calls.append(self._call_catalog(of_catalog))
        if len(of_gateway.ListFields()) > 1:
            calls.append(self._call_gateway(of_gateway))
        references = await asyncio.gather(*calls)
        if references:
            async with self._database.transaction() as connection:
                await put_references(connection, references)

    async def _call_catalog(self, request: places_pb2.BatchGetReferencesRequest) -> References:
        response = places_pb2.BatchGetReferencesResponse
        answer = await self._catalog.call(request, response, company_id=request.company_id)
        return answer.references

    async def _call_gateway(self, request: staff_pb2.BatchGetStaffRequest) -> References:
        answer = await self._gateway.call(request, staff_pb2.BatchGetStaffResponse, company_id=request.company_id)
        return References(staff=answer.staff)
