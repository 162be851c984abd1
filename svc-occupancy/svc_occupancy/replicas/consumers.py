"""The events that svc-occupancy consumes: the companies, properties and units that its turns refer to."""

from __future__ import annotations

from collections.abc import Sequence

from chassis.db.database import Connection
from chassis.replicas.tables import Replica
from makeready.events.v1 import events_pb2 as pb
from svc_occupancy import schema

SUBJECTS = {"gateway": ["references"], "svc-catalog": ["references"]}
# The owner of each replicated kind of row. Kinds that others refer to come first.
OWNERS = {"companies": "gateway", "properties": "svc-catalog", "units": "svc-catalog"}

_company = Replica(schema.company)
_property = Replica(schema.property_)
_unit = Replica(schema.unit, {"property_id": schema.property_})


async def put_references(connection: Connection, references: Sequence[pb.References], overwrite: bool = False) -> None:
    """Stores rows in the replicas, properties before their units. overwrite: see `Replica`."""
    await _company.put(connection, (row for one in references for row in one.companies), overwrite)
    await _property.put(connection, (row for one in references for row in one.properties), overwrite)
    await _unit.put(connection, (row for one in references for row in one.units), overwrite)


async def apply(connection: Connection, events: Sequence[pb.Event]) -> None:
    await put_references(connection, [event.references for event in events if event.HasField("references")])
