"""The events that svc-tickets listens to: rows of other contexts that its tickets name."""

from __future__ import annotations

from collections.abc import Sequence

from chassis.db.database import Connection
from chassis.replicas.tables import Replica
from makeready.events.v1 import events_pb2 as pb
from svc_tickets import tables as t
from svc_tickets.failed_rows import FailedRows

SUBJECTS = {"gateway": ["references"], "svc-catalog": ["references", "causes"]}
# Who owns each kind of row that is kept here, those first that others lie in.
OWNERS = {
    "companies": "gateway",
    "staff": "gateway",
    "properties": "svc-catalog",
    "units": "svc-catalog",
    "assets": "svc-catalog",
    "vendors": "svc-catalog",
}

_company = Replica(t.company)
_property = Replica(t.property_)
_unit = Replica(t.unit, {"property_id": t.property_})
_asset = Replica(t.asset, {"property_id": t.property_})
_vendor = Replica(t.vendor)
_staff = Replica(t.staff)


async def put_references(connection: Connection, references: Sequence[pb.References], overwrite: bool = False) -> None:
    """Takes rows into the replicas, properties before what lies in them. overwrite: see `Replica`."""
    await _company.put(connection, (row for one in references for row in one.companies), overwrite)
    await _property.put(connection, (row for one in references for row in one.properties), overwrite)
    await _unit.put(connection, (row for one in references for row in one.units), overwrite)
    await _asset.put(connection, (row for one in references for row in one.assets), overwrite)
    await _vendor.put(connection, (row for one in references for row in one.vendors), overwrite)
    await _staff.put(connection, (row for one in references for row in one.staff), overwrite)


class Applier:
    """Applies events: references, then what happened elsewhere and has an effect here."""

    def __init__(self, failed_rows: FailedRows) -> None:
        self._failed_rows = failed_rows

    async def apply(self, connection: Connection, events: Sequence[pb.Event]) -> None:
        failed = [event for event in events if event.HasField("inspection_row_failed")]
        references = [event.references for event in events if event.HasField("references")]
        await put_references(connection, [*references, *(one.inspection_row_failed.places for one in failed)])
        # In the order of the properties, in which everybody takes ticket numbers: nobody waits for another in a ring.
        for event in sorted(failed, key=lambda one: one.inspection_row_failed.property_id):
            await self._failed_rows.open(connection, event)
