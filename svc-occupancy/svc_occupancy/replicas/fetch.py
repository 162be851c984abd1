"""Asking the owner: what a replica lacks is fetched once, before any transaction, and kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from chassis.auth.clients import ServiceClient
from chassis.db.database import Database
from chassis.messaging.consumer import Consumer
from makeready.catalog.v1 import places_pb2
from makeready.catalog.v1.places_pb2_grpc import ReferencesServiceStub
from svc_occupancy.replicas import queries
from svc_occupancy.replicas.consumers import put_references

if TYPE_CHECKING:
    from makeready.catalog.v1.places_pb2_grpc import ReferencesServiceAsyncStub  # a name of the stub file alone


class ReplicaFetcher:
    """svc-catalog, asked for units; and the producers' outboxes, for a company that has not arrived."""

    def __init__(self, database: Database, catalog: ServiceClient, consumer: Consumer) -> None:
        self._database = database
        self._catalog = catalog
        self._stub: ReferencesServiceAsyncStub = ReferencesServiceStub(catalog.channel)
        self._consumer = consumer

    async def fetch_units(self, company_id: int, external_ids: Sequence[str]) -> None:
        """Takes into the replicas those of the units that are not there, with their properties.

        Raises Unavailable where the owner does not answer.
        """
        known = await queries.units(self._database, company_id, external_ids)
        missing = [one for one in external_ids if one not in known]
        if not missing:
            return
        await self._fetch(places_pb2.BatchGetReferencesRequest(company_id=company_id, unit_external_ids=missing))

    async def fetch_unit(self, company_id: int, unit_id: int) -> None:
        """Takes a unit into the replica, with its property, where the company has it.

        Raises Unavailable where the owner does not answer.
        """
        if unit_id > 0:
            await self._fetch(places_pb2.BatchGetReferencesRequest(company_id=company_id, unit_ids=[unit_id]))

    async def _fetch(self, request: places_pb2.BatchGetReferencesRequest) -> None:
        response = await self._catalog.call(self._stub.BatchGetReferences, request, company_id=request.company_id)
        if response.references.ListFields():
            async with self._database.transaction() as connection:
                await put_references(connection, [response.references])

    async def fetch_company(self, company_id: int) -> None:
        """Takes in what the gateway has told of its companies, where this one's timezone is not here yet.

        Raises Unavailable where a producer does not answer.
        """
        if await queries.timezone(self._database, company_id) is None:
            await self._consumer.catch_up()
