"""The events that svc-catalog consumes: companies and staff (gateway), status and ready dates (svc-occupancy)."""

from __future__ import annotations

from collections.abc import Sequence

from chassis.db.database import Connection
from chassis.replicas.tables import Replica
from makeready.events.v1 import events_pb2 as pb
from svc_catalog import schema
from svc_catalog.places import occupancy_replica

SUBJECTS = {"gateway": ["references"], "svc-occupancy": ["references"]}
# The owner of each replicated kind of row. Kinds that others refer to come first.
OWNERS = {"companies": "gateway", "staff": "gateway", "unit_occupancies": "svc-occupancy"}

_company = Replica(schema.company)
_staff = Replica(schema.staff)


async def put_references(connection: Connection, references: Sequence[pb.References], overwrite: bool = False) -> None:
    """Stores rows in the replicas. overwrite: see `Replica`."""
    await _company.put(connection, (row for one in references for row in one.companies), overwrite)
    await _staff.put(connection, (row for one in references for row in one.staff), overwrite)
    await occupancy_replica.take(connection, (row for one in references for row in one.unit_occupancies), overwrite)


async def apply(connection: Connection, events: Sequence[pb.Event]) -> None:
    await put_references(connection, [event.references for event in events if event.HasField("references")])
