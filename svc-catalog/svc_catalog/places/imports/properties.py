"""The import of properties (spec 2.4)."""

from __future__ import annotations

from chassis.db.database import Connection
from chassis.imports.importer import Batch
from makeready.events.v1.events_pb2 import References
from svc_catalog.places import import_queries as q
from svc_catalog.places import inputs
from svc_catalog.places.references import PROPERTY_REFERENCES


async def save(connection: Connection, batch: Batch[inputs.PropertyRow]) -> References:
    """Saves a batch's rows; returns the changed rows for the contexts that replicate them."""
    await batch.lock_existing(connection, q.PROPERTIES)
    return PROPERTY_REFERENCES.made_of(await batch.save(connection, q.PROPERTIES, {}))
