"""An import of properties (spec 2.4)."""

from __future__ import annotations

from chassis.db.database import Connection
from chassis.imports.importer import Batch
from makeready.events.v1.events_pb2 import References
from svc_catalog.places import import_queries as q
from svc_catalog.places import inputs as records


async def save(connection: Connection, batch: Batch[records.PropertyRow]) -> References:
    """Saves a batch's rows; returns what other contexts must hear of."""
    await batch.lock_existing(connection, q.PROPERTIES)
    told = References()
    for row in await batch.save(connection, q.PROPERTIES, {}):
        told.properties.add(
            id=row["id"],
            version=row["version"],
            company_id=batch.company_id,
            name=row["name"],
            external_id=row["external_id"],
        )
    return told
