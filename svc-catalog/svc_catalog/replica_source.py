"""The rows that other contexts replicate: single ones on request, and all of them."""

from __future__ import annotations

from chassis.auth import identity
from chassis.db.database import Database
from makeready.catalog.v1 import places_pb2 as pb
from makeready.events.v1.events_pb2 import References
from svc_catalog.places.references import ASSET_REFERENCES, PROPERTY_REFERENCES, UNIT_REFERENCES
from svc_catalog.vendors.queries import VENDOR_REFERENCES

_KINDS = (PROPERTY_REFERENCES, UNIT_REFERENCES, ASSET_REFERENCES, VENDOR_REFERENCES)
# By field of References.
ROWS = {kind.field: kind.all for kind in _KINDS}


class ReferencesService:
    """Serves rows to contexts whose replica lacks them."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def BatchGetReferences(
        self, request: pb.BatchGetReferencesRequest, call: identity.Call
    ) -> pb.BatchGetReferencesResponse:
        company_id = identity.company_id(call)
        if request.company_id != company_id:
            raise identity.IdentityError("the token names another company than the request")
        async with self.database.connection() as connection:
            assets = await ASSET_REFERENCES.given(connection, company_id, request.asset_ids, request.asset_external_ids)
            units = await UNIT_REFERENCES.given(connection, company_id, request.unit_ids, request.unit_external_ids)
            property_ids = {*request.property_ids, *(row["property_id"] for row in (*assets, *units))}
            properties = await PROPERTY_REFERENCES.given(
                connection, company_id, sorted(property_ids), request.property_external_ids
            )
            vendors = await VENDOR_REFERENCES.given(
                connection, company_id, request.vendor_ids, request.vendor_external_ids
            )
        references = References()
        for kind, rows in zip(_KINDS, (properties, units, assets, vendors), strict=True):
            kind.add(references, rows)
        return pb.BatchGetReferencesResponse(references=references)
