"""Asking the owner: what a replica lacks is fetched once, before any transaction, and kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from chassis.clients import Peer
from chassis.database import Database
from makeready.catalog.v1 import catalog_pb2
from makeready.catalog.v1.catalog_pb2_grpc import ReferencesServiceStub
from svc_tickets.consumers import put_references

if TYPE_CHECKING:
    from makeready.catalog.v1.catalog_pb2_grpc import ReferencesServiceAsyncStub  # a name of the stub file alone

ASKED_MAX = 500


class Owners:
    """svc-catalog, asked for properties, units and assets."""

    def __init__(self, database: Database, catalog: Peer) -> None:
        self._database = database
        self._catalog = catalog
        self._stub: ReferencesServiceAsyncStub = ReferencesServiceStub(catalog.channel)

    async def fetch(
        self,
        company_id: int,
        *,
        unit_ids: Sequence[int] = (),
        asset_ids: Sequence[int] = (),
        property_external_ids: Sequence[str] = (),
        unit_external_ids: Sequence[str] = (),
        asset_external_ids: Sequence[str] = (),
    ) -> None:
        """Takes into the replicas whatever of these exists. Raises Unavailable where the owner does not answer."""
        request = catalog_pb2.BatchGetReferencesRequest(
            company_id=company_id,
            unit_ids=[one for one in unit_ids if one > 0],
            asset_ids=[one for one in asset_ids if one > 0],
            property_external_ids=property_external_ids,
            unit_external_ids=unit_external_ids,
            asset_external_ids=asset_external_ids,
        )
        asked = sum(len(value) for field, value in request.ListFields() if field.name != "company_id")
        assert asked <= 3 * ASKED_MAX
        if not asked:
            return
        response = await self._catalog.call(self._stub.BatchGetReferences, request, company_id=company_id)
        async with self._database.transaction() as connection:
            await put_references(connection, [response.references])
