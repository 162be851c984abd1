"""The events that svc-tickets listens to: rows of other contexts that its tickets name."""

from __future__ import annotations

from collections.abc import Sequence

from chassis.database import Connection
from chassis.replicas import Replica
from makeready.events.v1 import events_pb2 as pb
from svc_tickets import tables as t

SUBJECTS = {"gateway": ["references"], "svc-catalog": ["references", "causes"]}

_company = Replica(t.company)
_property = Replica(t.property_)
_unit = Replica(t.unit, {"property_id": t.property_})
_asset = Replica(t.asset, {"property_id": t.property_})
_vendor = Replica(t.vendor)
_staff = Replica(t.staff)


async def put_references(connection: Connection, references: Sequence[pb.References]) -> None:
    """Takes rows into the replicas, properties before what lies in them."""
    await _company.put(connection, (row for one in references for row in one.companies))
    await _property.put(connection, (row for one in references for row in one.properties))
    await _unit.put(connection, (row for one in references for row in one.units))
    await _asset.put(connection, (row for one in references for row in one.assets))
    await _vendor.put(connection, (row for one in references for row in one.vendors))
    await _staff.put(connection, (row for one in references for row in one.staff))


async def apply(connection: Connection, events: Sequence[pb.Event]) -> None:
    await put_references(connection, [event.references for event in events if event.HasField("references")])
