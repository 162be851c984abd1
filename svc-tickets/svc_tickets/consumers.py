"""The events that svc-tickets consumes: references to records of other contexts, failed inspection rows, and people who
were forgotten."""

from __future__ import annotations

from collections.abc import Sequence

from chassis.db.database import Connection
from chassis.runtime import traces
from makeready.events.v1 import events_pb2 as pb
from svc_tickets.replicas.consumer import put_references
from svc_tickets.tickets.forgotten import ForgottenPeople
from svc_tickets.tickets.from_inspection import FailedInspectionRows

SUBJECTS = {"gateway": ["references"], "svc-catalog": ["references", "causes"], "svc-occupancy": ["causes"]}


class Applier:
    """Applies references first, then failed inspection rows, then the removal of texts."""

    def __init__(self, failed_rows: FailedInspectionRows, forgotten: ForgottenPeople) -> None:
        self._failed_rows, self._forgotten = failed_rows, forgotten

    async def apply(self, connection: Connection, events: Sequence[pb.Event]) -> None:
        failed = [event for event in events if event.HasField("inspection_row_failed")]
        references = [event.references for event in events if event.HasField("references")]
        await put_references(connection, [*references, *(event.inspection_row_failed.places for event in failed)])
        # All writers take ticket numbers in the order of property ids, so they cannot deadlock.
        for event in sorted(failed, key=lambda event: event.inspection_row_failed.property_id):
            with traces.within(event.traceparent):
                await self._failed_rows.open(connection, event)
        for event in events:
            if event.HasField("person_forgotten"):
                with traces.within(event.traceparent):
                    await self._forgotten.remove(connection, event)
