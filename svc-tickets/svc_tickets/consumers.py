"""The events that svc-tickets listens to: rows of other contexts that its tickets name, and failed inspection rows."""

from __future__ import annotations

from collections.abc import Sequence

from chassis.db.database import Connection
from makeready.events.v1 import events_pb2 as pb
from svc_tickets.replicas.consumer import put_references
from svc_tickets.tickets.from_inspection import FailedInspectionRows

SUBJECTS = {"gateway": ["references"], "svc-catalog": ["references", "causes"]}


class Applier:
    """Applies events: references, then what happened elsewhere and has an effect here."""

    def __init__(self, failed_rows: FailedInspectionRows) -> None:
        self._failed_rows = failed_rows

    async def apply(self, connection: Connection, events: Sequence[pb.Event]) -> None:
        failed = [event for event in events if event.HasField("inspection_row_failed")]
        references = [event.references for event in events if event.HasField("references")]
        await put_references(connection, [*references, *(one.inspection_row_failed.places for one in failed)])
        # In the order of the properties, in which everybody takes ticket numbers: nobody waits for another in a ring.
        for event in sorted(failed, key=lambda one: one.inspection_row_failed.property_id):
            await self._failed_rows.open(connection, event)
