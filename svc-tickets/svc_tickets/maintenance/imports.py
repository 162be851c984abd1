"""One batch of an import of preventive-maintenance tasks."""

from __future__ import annotations

import datetime
from collections.abc import Awaitable, Callable

from chassis.db.database import Connection, Database
from chassis.imports.importer import Batch, ImportRow
from chassis.refusals import invalid_request
from chassis.schedule.instants import overdue_before
from makeready.events.v1.events_pb2 import References
from svc_tickets.maintenance import queries as q
from svc_tickets.maintenance import rules
from svc_tickets.maintenance.inputs import PmTaskRow
from svc_tickets.replicas import named
from svc_tickets.replicas.fetch import ReplicaFetcher

# The fields of a row that name another record by external_id.
_NAMED = ("property", "unit", "asset", "assignee")

TaskLine = ImportRow[PmTaskRow]
CatchUp = Callable[[], Awaitable[object]]


class PmTaskImport:
    """One request: `prepare` before the transaction, `save` in it. events: whether pm.stale fires for tasks that are
    already overdue; without events they count as announced."""

    def __init__(self, database: Database, replicas: ReplicaFetcher, catch_up: CatchUp, *, events: bool) -> None:
        """catch_up: see `PmTasksService`."""
        self._database = database
        self._replicas = replicas
        self._catch_up = catch_up
        self._events = events
        self._named: named.Named = {}

    async def prepare(self, batch: Batch[PmTaskRow]) -> None:
        """Looks up the records that the rows name."""
        self._named = await named.find(self._database, self._replicas, batch, _NAMED)
        if not self._events and await q.timezone(self._database, batch.company_id) is None:
            await self._catch_up()

    async def save(self, connection: Connection, batch: Batch[PmTaskRow]) -> References:
        """Inserts and updates the rows that differ. No other context has a replica of tasks, so there are no
        references."""
        for field, records in self._named.items():
            batch.resolve(field, records)
        await batch.lock_existing(connection, q.IMPORTED)
        # With events, no imported task counts as announced: no due date lies before date.min.
        told_before = datetime.date.min
        if not self._events:
            timezone = await q.timezone(connection, batch.company_id) or "UTC"
            told_before = overdue_before(batch.moment, timezone)
        batch.each(lambda line: self._take(line, batch.moment, told_before))
        await batch.save(connection, q.IMPORTED, {})
        return References()

    def _take(self, line: TaskLine, moment: datetime.datetime, told_before: datetime.date) -> None:
        """Converts the row's values to column values. Raises Refusal with the field."""
        values = line.values
        for kind in ("unit", "asset"):
            name = getattr(line.row, kind)
            if name is not None and self._named[kind][name]["property_id"] != values["property_id"]:
                raise invalid_request(f"The {kind} lies in another property.", kind)
            if line.moves("property_id") and kind not in line.given and line.stored(f"{kind}_id") is not None:
                raise invalid_request(f"The task moves to another property; give its {kind} there.", kind)
        rules.check_place(line.after("unit_id"), line.after("area"))
        due_date = values["due_date"]
        comes = rules.round_of(due_date, line.after("repeat_days"), line.after("repeat_months"))
        values["day_of_month"] = comes.day_of_month
        if line.stored("due_date") == due_date and line.stored("repeat_months") is not None and comes.months:
            values["day_of_month"] = line.stored("day_of_month")
        status = line.row.status or (line.stored("status") if "status" not in line.given else None) or "Open"
        closed = {name: line.row.completed_at if name == "completed_at" else line.row.cancelled_at for name in _CLOSED}
        if status == line.stored("status"):
            closed |= {name: line.stored(name) for name in _CLOSED if closed[name] is None}
        values["status"] = status
        values |= dict(zip(_CLOSED, rules.closed_on_import(status, **closed, at=moment), strict=True))
        is_new = line.stored("due_date") != due_date or line.stored("status") != status
        if is_new and status == "Open" and due_date < told_before and line.stored("stale_at") is None:
            values["stale_at"] = moment


_CLOSED = ("completed_at", "cancelled_at")
