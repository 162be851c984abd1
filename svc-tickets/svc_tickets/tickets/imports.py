"""One batch of an import of tickets: looks up names, compares rows with stored tickets, publishes events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from asyncpg import Record

from chassis.auth.identity import Call
from chassis.db.database import Connection, Database
from chassis.imports.importer import CHANGED, CREATED, Batch, ImportRow
from chassis.messaging.outbox import Outbox
from chassis.refusals import invalid_request
from chassis.schedule.instants import after as instant_after
from makeready.events.v1.events_pb2 import References
from svc_tickets.policy.queries import stale_after_hours
from svc_tickets.replicas import named
from svc_tickets.replicas.fetch import ReplicaFetcher
from svc_tickets.tickets import inputs, records
from svc_tickets.tickets.opening import NewTicket, TicketOpener
from svc_tickets.tickets.queries import imports as q
from svc_tickets.tickets.queries import read
from svc_tickets.tickets.queries.numbering import take_numbers
from svc_tickets.tickets.rules import fields, staleness, status
from svc_tickets.tickets.status_change import STATE, StatusChange, state_of

TicketLine = ImportRow[inputs.TicketRow]

# The fields of a row that name another record by external_id, with the columns that store its id.
_NAMED = {
    "property": "property_id",
    "unit": "unit_id",
    "asset": "asset_id",
    "assignee": "assignee_id",
    "assigned_vendor": "vendor_id",
}
# The value of a required column that the file clears; the source stays.
_DEFAULTS: dict[str, Any] = {
    "priority": fields.DEFAULT_PRIORITY,
    "status": fields.FIRST_STATUS,
    "permission_to_enter": False,
}
# The columns that report work by staff or a vendor.
_WORK = ("status", "assignee_id", "vendor_id")
_CLOSING = tuple(name for name in STATE if name != "status")


@dataclass(frozen=True, slots=True)
class _Changed:
    """A ticket that the file changes: its row before and after."""

    line: TicketLine
    before: Record
    after: dict[str, Any]

    def status_change(self) -> StatusChange | None:
        """None if the file changes neither the status nor the cancellation reason."""
        before, after = state_of(self.before), state_of(self.after)
        columns = ("status", "cancellation_reason_code")
        if all(getattr(before, name) == getattr(after, name) for name in columns):
            return None
        row = self.after
        return StatusChange(row["company_id"], row["id"], row["version"], row["updated_at"], before, after)


class TicketImport:
    """One request: `prepare` before the transaction, `save` in it. events: whether the public events fire."""

    def __init__(
        self,
        database: Database,
        replicas: ReplicaFetcher,
        opener: TicketOpener,
        outbox: Outbox,
        renderer: records.TicketRenderer,
        call: Call,
        *,
        events: bool,
    ) -> None:
        self._database = database
        self._replicas = replicas
        self._opener = opener
        self._outbox = outbox
        self._renderer = renderer
        self._call = call
        self._events = events
        self._named: named.Named = {}

    async def prepare(self, batch: Batch[inputs.TicketRow]) -> None:
        """Looks up the records that the rows name."""
        self._named = await named.find(self._database, self._replicas, batch, tuple(_NAMED))

    async def save(self, connection: Connection, batch: Batch[inputs.TicketRow]) -> References:
        """Inserts and updates the rows that differ. No other context has a replica of tickets, so there are no
        references."""
        for field, column in _NAMED.items():
            batch.resolve(field, self._named[field], column)
        batch.each(self._check_places)
        await batch.lock_existing(connection, q.TICKETS)
        opened: list[NewTicket] = []
        changed: list[_Changed] = []

        def compare(line: TicketLine) -> None:
            _check_move(line)
            if line.before is None:
                opened.append(_new(line, batch))
                line.result.outcome = CREATED
            elif after := _changed(line, line.before, batch):
                changed.append(_Changed(line, line.before, after))
                line.result.outcome = CHANGED

        batch.each(compare)
        await self._save_staleness(connection, batch, opened, changed)
        await _number(connection, opened, changed)
        await self._opener.open_in(connection, self._call, opened, batch.moment, events=self._events)
        await q.TICKETS.update(connection, [ticket.after for ticket in changed])
        batch.has_saved(q.TICKETS, [new.row for new in opened], [ticket.after for ticket in changed])
        moved = [change for ticket in changed if (change := ticket.status_change()) is not None]
        await q.INSERT_CHANGES.run(connection, [change.entry(None, self._call.request_id) for change in moved])
        # Each ticket by its id: the search ignores the hint "several tickets".
        connection.changed.update((batch.company_id, "ticket", ticket.after["id"]) for ticket in changed)
        if self._events and moved:
            await self._publish(connection, batch, moved)
        return References()

    async def _save_staleness(
        self,
        connection: Connection,
        batch: Batch[inputs.TicketRow],
        opened: Sequence[NewTicket],
        changed: Sequence[_Changed],
    ) -> None:
        """Sets quiet_since and stale_due_at, which only residents' tickets have."""
        rows: list[tuple[Record | None, dict[str, Any]]] = [(None, new.row) for new in opened]
        rows += [(change.before, change.after) for change in changed]
        of_residents = any(row["source"] == staleness.RESIDENT_SOURCE for _, row in rows)
        hours = await stale_after_hours(connection, batch.company_id) if of_residents else 0
        for before, row in rows:
            columns = staleness.NEVER_STALE
            if row["source"] == staleness.RESIDENT_SOURCE:
                ticket = _imported(before, row)
                columns = staleness.staleness_on_import(ticket, hours, batch.moment, events=self._events)
            row.update(columns._asdict())

    def _check_places(self, line: TicketLine) -> None:
        for kind in ("unit", "asset"):
            name = getattr(line.row, kind)
            if name is not None and self._named[kind][name]["property_id"] != line.values["property_id"]:
                raise invalid_request(f"The {kind} lies in another property.", kind)
        if line.row.unit is not None and line.row.unit_number is None:
            line.values["unit_number"] = self._named["unit"][line.row.unit]["unit_number"]

    async def _publish(
        self, connection: Connection, batch: Batch[inputs.TicketRow], moved: Sequence[StatusChange]
    ) -> None:
        """Publishes the events of tickets whose status changed."""
        rows = await read.tickets(connection, batch.company_id, [change.ticket_id for change in moved])
        data = {row[0]: self._renderer.json(row) for row in rows}
        events = [change.event(self._outbox, data[change.ticket_id], self._call.request_id) for change in moved]
        await self._outbox.add_many(connection, events)


def _check_move(line: TicketLine) -> None:
    """Raises Refusal if the ticket moves to another property and would retain its old unit or asset."""
    if not line.moves("property_id"):
        return
    for kind in ("unit", "asset"):
        if kind not in line.given and line.stored(f"{kind}_id") is not None:
            raise invalid_request(f"The ticket moves to another property; give its {kind} there.", kind)


def _given(line: TicketLine) -> dict[str, Any]:
    """The changeable columns that the row sets."""
    return {name: line.values[name] for name in q.CHANGEABLE if name in line.values}


def _new(line: TicketLine, batch: Batch[inputs.TicketRow]) -> NewTicket:
    row, values = line.row, _given(line)
    created_at = values.get("created_at") or batch.moment
    # Without updated_at in the file, the import's moment counts: a sync by updated_since must see backfilled tickets.
    values["updated_at"] = max(created_at, row.updated_at or batch.moment)
    values["external_id"] = row.external_id
    new = NewTicket.of(batch.company_id, row.source or "import", created_at, values)
    # The last change that the file reports.
    new.row["quiet_since"] = max(created_at, row.updated_at or created_at)
    new.row.update(_closing(new.row))
    return new


def _changed(line: TicketLine, before: Record, batch: Batch[inputs.TicketRow]) -> dict[str, Any] | None:
    """The whole row after the change; None if the file changes nothing."""
    values = _given(line)
    after: dict[str, Any] = {"company_id": batch.company_id, **before, **values}
    for name, default in _DEFAULTS.items():
        if after[name] is None:
            after[name] = default
    after["source"] = after["source"] or before["source"]
    after["created_at"] = after["created_at"] or before["created_at"]
    if after["status"] != before["status"]:
        # The fields of the old status are cleared, unless the file sets them.
        after |= {name: values.get(name) for name in _CLOSING}
    after |= _closing(after)
    if all(after[name] == before[name] for name in q.CHANGEABLE):
        return None
    instant = max(instant_after(batch.moment, before["updated_at"]), after["created_at"])
    return after | {"updated_at": instant, "version": before["version"] + 1}


def _imported(before: Record | None, row: Mapping[str, Any]) -> staleness.Imported:
    if before is None:
        return staleness.Imported(row["status"], False, row["quiet_since"], None)
    worked_on = any(before[name] != row[name] for name in _WORK)
    quiet_since = row["updated_at"] if worked_on else before["quiet_since"] or before["updated_at"]
    return staleness.Imported(row["status"], worked_on, quiet_since, before["stale_due_at"])


def _closing(ticket: Mapping[str, Any]) -> dict[str, Any]:
    state = status.state_on_import(
        ticket["status"],
        ticket["completed_at"],
        ticket["cancelled_at"],
        ticket["cancellation_reason_code"],
    )
    return {name: getattr(state, name) for name in _CLOSING}


async def _number(connection: Connection, opened: Sequence[NewTicket], changed: Sequence[_Changed]) -> None:
    """Numbers new tickets, and renumbers those that move to another property, where their number may be taken."""
    moved = [change.after for change in changed if change.before["property_id"] != change.after["property_id"]]
    unnumbered = [*(new.row for new in opened), *moved]
    counts = Counter(row["property_id"] for row in unnumbered)
    following = await take_numbers(connection, dict(sorted(counts.items()))) if counts else {}
    for row in unnumbered:
        row["ticket_number"] = following[row["property_id"]]
        following[row["property_id"]] += 1
