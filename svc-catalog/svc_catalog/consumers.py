"""The events that svc-catalog consumes: companies and staff (gateway), status and ready dates (svc-occupancy)."""

from __future__ import annotations

from collections.abc import Sequence

from chassis.db.database import Connection
from chassis.replicas.tables import Replica, Replicas
from makeready.events.v1 import events_pb2 as pb
from svc_catalog import schema
from svc_catalog.places.occupancy_replica import UnitOccupancies

SUBJECTS = {"gateway": ["references"], "svc-occupancy": ["references"]}
# The owner of each replicated kind of row. Kinds that others refer to come first.
OWNERS = {"companies": "gateway", "staff": "gateway", "unit_occupancies": "svc-occupancy"}

REPLICAS = Replicas(
    {"companies": Replica(schema.company), "staff": Replica(schema.staff), "unit_occupancies": UnitOccupancies()},
    OWNERS,
)
put_references = REPLICAS.put


async def apply(connection: Connection, events: Sequence[pb.Event]) -> None:
    await put_references(connection, [event.references for event in events if event.HasField("references")])
