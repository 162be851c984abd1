"""The import of make-ready tasks."""

from __future__ import annotations

import datetime

from chassis.db.database import Connection
from chassis.imports.importer import Batch, ImportRow
from chassis.refusals import invalid_request
from chassis.schedule import instants
from makeready.events.v1.events_pb2 import References
from svc_occupancy.replicas import queries as replica_queries
from svc_occupancy.replicas.fetch import ReplicaFetcher
from svc_occupancy.turn_tasks import queries, rules
from svc_occupancy.turn_tasks.inputs import TurnTaskRow
from svc_occupancy.turns import rules as turn_rules

_DONE: dict[rules.TaskStatus, str] = {"completed": "completed_at", "cancelled": "cancelled_at"}


class TaskImport:
    """One request. events: whether the sweep may still announce tasks that are overdue already."""

    def __init__(self, fetcher: ReplicaFetcher, *, events: bool) -> None:
        self._fetcher = fetcher
        self._events = events
        self._people = replica_queries.NamedPeople({}, {})

    async def prepare(self, batch: Batch[TurnTaskRow]) -> None:
        """Looks up the records that the rows name, before the transaction."""
        await self._fetcher.fetch_company(batch.company_id)
        names = (batch.named("assignee"), batch.named("assigned_vendor"))
        self._people = await self._fetcher.find_named_people(batch.company_id, *names)

    async def save(self, connection: Connection, batch: Batch[TurnTaskRow]) -> References:
        """Saves a batch's rows. No other context stores tasks."""
        turns = await queries.turns(connection, batch.company_id, batch.named("turn"))
        batch.resolve("turn", turns, "transition_id")
        batch.resolve("assignee", self._people.staff, "assignee_id")
        batch.resolve("assigned_vendor", self._people.vendors, "vendor_id")
        await batch.lock_existing(connection, queries.TASKS)
        places = {turn["id"]: (turn["unit_id"], turn["property_id"]) for turn in turns.values()}
        timezone = await replica_queries.timezone(connection, batch.company_id) or "UTC"
        morning = instants.overdue_before(batch.moment, timezone)

        def examine(line: ImportRow[TurnTaskRow]) -> None:
            if line.moves("transition_id"):
                raise invalid_request("A task stays with the turn that it was first imported for.", "turn")
            line.values["unit_id"], line.values["property_id"] = places[line.values["transition_id"]]
            _set_status(line, batch.moment)
            if not self._events and _is_news(line) and _is_overdue(line, morning):
                line.values["stale_at"] = batch.moment

        batch.each(examine)
        await batch.save(connection, queries.TASKS, {})
        connection.changed.update((batch.company_id, "unit", unit_id) for unit_id, _ in places.values())
        return References()


def _set_status(line: ImportRow[TurnTaskRow], moment: datetime.datetime) -> None:
    """Sets the columns of the status and of its instant. Raises Refusal with the field."""
    given_status = line.row.status
    status = (line.stored("status") or "open") if given_status is None else rules.stored_task_status(given_status)
    line.values["status"] = status
    for ending, column in _DONE.items():
        ended_at = line.values.pop(column, None)
        if ended_at is not None and status != ending:
            only = rules.public_task_status(ending)
            raise invalid_request(f"{column} belongs to status {only} alone.", column)
        line.values[column] = (ended_at or line.stored(column) or moment) if status == ending else None


def _is_news(line: ImportRow[TurnTaskRow]) -> bool:
    before = line.before
    return before is None or any(
        line.values.get(name, before[name]) != before[name] for name in queries.TASKS.changeable
    )


def _is_overdue(line: ImportRow[TurnTaskRow], morning: datetime.date) -> bool:
    """Whether the next sweep would announce it."""
    is_open = line.values["status"] == "open" and line.stored("stale_at") is None
    return is_open and turn_rules.is_over(line.after("scheduled_date"), morning)
