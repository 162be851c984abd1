"""The events that svc-occupancy consumes: the companies, properties, units, staff and vendors that its turns
and tasks refer to."""

from __future__ import annotations

from collections.abc import Sequence

from chassis.db.database import Connection
from chassis.replicas.tables import Replica, Replicas
from makeready.events.v1 import events_pb2 as pb
from svc_occupancy import schema

SUBJECTS = {"gateway": ["references"], "svc-catalog": ["references"]}
# The owner of each replicated kind of row. Kinds that others refer to come first.
OWNERS = {
    "companies": "gateway",
    "staff": "gateway",
    "properties": "svc-catalog",
    "units": "svc-catalog",
    "vendors": "svc-catalog",
}

REPLICAS = Replicas(
    {
        "companies": Replica(schema.company),
        "properties": Replica(schema.property_),
        "units": Replica(schema.unit, {"property_id": schema.property_}),
        "vendors": Replica(schema.vendor),
        "staff": Replica(schema.staff),
    },
    OWNERS,
)
put_references = REPLICAS.put


async def apply(connection: Connection, events: Sequence[pb.Event]) -> None:
    await put_references(connection, [event.references for event in events if event.HasField("references")])
