"""Writes references of other contexts to the replicas."""

from __future__ import annotations

from collections.abc import Sequence

from chassis.db.database import Connection
from chassis.replicas.tables import Replica
from makeready.events.v1 import events_pb2 as pb
from svc_tickets import schema

# The owner of each kind of replica row; parents precede their children.
OWNERS = {
    "companies": "gateway",
    "staff": "gateway",
    "properties": "svc-catalog",
    "units": "svc-catalog",
    "assets": "svc-catalog",
    "vendors": "svc-catalog",
}

_company = Replica(schema.company)
_property = Replica(schema.property_)
_unit = Replica(schema.unit, {"property_id": schema.property_})
_asset = Replica(schema.asset, {"property_id": schema.property_})
_vendor = Replica(schema.vendor)
_staff = Replica(schema.staff)


async def put_references(connection: Connection, references: Sequence[pb.References], overwrite: bool = False) -> None:
    """Writes rows to the replicas, properties before their units and assets. overwrite: see `Replica`."""
    await _company.put(connection, (row for one in references for row in one.companies), overwrite)
    await _property.put(connection, (row for one in references for row in one.properties), overwrite)
    await _unit.put(connection, (row for one in references for row in one.units), overwrite)
    await _asset.put(connection, (row for one in references for row in one.assets), overwrite)
    await _vendor.put(connection, (row for one in references for row in one.vendors), overwrite)
    await _staff.put(connection, (row for one in references for row in one.staff), overwrite)
