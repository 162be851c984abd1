"""What an undo of an import does to members of staff, besides their own rows."""

from __future__ import annotations

from collections.abc import Sequence

from chassis.db.database import Connection
from chassis.imports.undo import Step, Undoable
from gateway.identity.staff import queries
from makeready.events.v1.events_pb2 import StaffReference


class _Staff(Undoable):
    reference = "staff"

    async def publish(self, connection: Connection, step: Step, ids: Sequence[int]) -> None:
        rows = await queries.staff_references(connection, step.company_id, ids, [])
        step.references.staff.extend(StaffReference(**dict(row)) for row in rows)


UNDOABLES = (_Staff("staff", "staff", queries.STAFF),)
