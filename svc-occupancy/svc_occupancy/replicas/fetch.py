"""Fetches rows that the replicas lack from their owners: once, before any transaction."""

from __future__ import annotations

from collections.abc import Sequence

from chassis.auth.clients import ServiceClient
from chassis.db.database import Database
from chassis.messaging.consumer import Consumer
from makeready.catalog.v1 import places_pb2
from svc_occupancy.replicas import queries
from svc_occupancy.replicas.consumers import put_references


class ReplicaFetcher:
    """Fetches units from svc-catalog, and a company from the producers' outboxes if it has not arrived."""

    def __init__(self, database: Database, catalog: ServiceClient, consumer: Consumer) -> None:
        self._database = database
        self._catalog = catalog
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

    async def _fetch(self, request: places_pb2.BatchGetReferencesRequest) -> None:
        response = places_pb2.BatchGetReferencesResponse
        answer = await self._catalog.call(request, response, company_id=request.company_id)
        if answer.references.ListFields():
            async with self._database.transaction() as connection:
                await put_references(connection, [answer.references])

    async def fetch_company(self, company_id: int) -> None:
        """Consumes what the producers' outboxes still hold, if the company's timezone has not arrived.

        Raises Unavailable if a producer does not answer.
        """
        if await queries.timezone(self._database, company_id) is None:
            await self._consumer.catch_up()
