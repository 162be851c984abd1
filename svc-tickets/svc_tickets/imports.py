"""One batch of an import of tickets: what its rows name, what they make of the tickets that are there, what fires."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from asyncpg import Record

from chassis.db.database import Connection, Database
from chassis.imports.importer import CHANGED, CREATED, Batch, ImportRow
from chassis.messaging.outbox import Outbox
from chassis.refusals import invalid_request
from makeready.events.v1.events_pb2 import References
from svc_tickets import queries, queries_quiet, records, rules, rules_quiet
from svc_tickets import queries_import as q
from svc_tickets.owners import Owners

TicketLine = ImportRow[records.TicketRow]

# What a row names by external_id, and the column that takes the id.
_NAMED = {
    "property": "property_id",
    "unit": "unit_id",
    "asset": "asset_id",
    "assignee": "assignee_id",
    "assigned_vendor": "vendor_id",
}
_DEFAULTS: dict[str, Any] = {
    "priority": rules.DEFAULT_PRIORITY,
    "status": "Open",
    "permission_to_enter": False,
    "source": "import",
}
# What staff or a vendor do, where a file brings it.
_STIRS = ("status", "assignee_id", "vendor_id")
_CLOSING = ("completed_at", "cancelled_at", "cancellation_reason_code")


class TicketImport:
    """One request: `prepare` before the transaction, `save` in it. events: whether the public events fire."""

    def __init__(
        self,
        database: Database,
        owners: Owners,
        outbox: Outbox,
        links: records.TicketLinks,
        *,
        events: bool,
        request_id: str,
    ) -> None:
        self._database = database
        self._owners = owners
        self._outbox = outbox
        self._links = links
        self._events = events
        self._request_id = request_id
        self._known: dict[str, dict[str, Record]] = {}

    async def prepare(self, batch: Batch[records.TicketRow]) -> None:
        """Finds what the rows name; asks its owners once for what a replica lacks."""
        named = {field: batch.named(field) for field in _NAMED}
        self._known = await self._look_up(batch.company_id, named)
        lacking = {field: [name for name in named[field] if name not in self._known[field]] for field in _NAMED}
        if any(lacking.values()):
            await self._owners.fetch(
                batch.company_id,
                property_external_ids=lacking["property"],
                unit_external_ids=lacking["unit"],
                asset_external_ids=lacking["asset"],
                staff_external_ids=lacking["assignee"],
                vendor_external_ids=lacking["assigned_vendor"],
            )
            self._known = await self._look_up(batch.company_id, named)

    async def _look_up(self, company_id: int, named: Mapping[str, Sequence[str]]) -> dict[str, dict[str, Record]]:
        async with self._database.connection() as connection:
            return {
                field: await known.by_external_id(connection, company_id, named[field])
                for field, known in q.NAMED.items()
            }

    async def save(self, connection: Connection, batch: Batch[records.TicketRow]) -> References:
        """Inserts and updates what differs. No other context keeps anything of a ticket."""
        for field, column in _NAMED.items():
            batch.resolve(field, self._known[field], column)
        batch.each(self._check_places)
        await batch.lock_existing(connection, q.TICKETS)
        fresh: list[dict[str, Any]] = []
        changed: list[tuple[TicketLine, dict[str, Any]]] = []

        def compare(line: TicketLine) -> None:
            _check_move(line)
            if line.before is None:
                fresh.append(_new(line, batch))
                line.result.outcome = CREATED
            elif after := _changed(line, line.before, batch):
                changed.append((line, after))
                line.result.outcome = CHANGED

        batch.each(compare)
        await self._listen(connection, batch, fresh, changed)
        await _number(connection, fresh, changed)
        await q.TICKETS.insert(connection, fresh)
        await q.TICKETS.update(connection, [row for _, row in changed])
        await q.INSERT_CHANGES.run(connection, [entry for one in changed for entry in self._history(*one)])
        if self._events:
            happened = {row["id"]: (b"", batch.moment) for row in fresh}
            for line, row in changed:
                if line.stored("status") != row["status"]:
                    change = records.change("status", line.stored("status"), row["status"])
                    happened[row["id"]] = (change, row["updated_at"])
            await self._announce(connection, batch.company_id, happened)
        return References()

    async def _listen(
        self,
        connection: Connection,
        batch: Batch[records.TicketRow],
        fresh: Sequence[dict[str, Any]],
        changed: Sequence[tuple[TicketLine, dict[str, Any]]],
    ) -> None:
        """Since when the residents' tickets have been quiet, and when that is too long."""
        rows = [(None, row) for row in fresh] + [(line.before, row) for line, row in changed]
        of_residents = any(row["source"] == rules_quiet.QUIET_SOURCE for _, row in rows)
        hours = await queries_quiet.stale_after_hours(connection, batch.company_id) if of_residents else 0
        for before, row in rows:
            quiet = rules_quiet.NEVER_QUIET
            if row["source"] == rules_quiet.QUIET_SOURCE:
                ticket = _imported(before, row)
                quiet = rules_quiet.quiet_on_import(ticket, hours, batch.moment, events=self._events)
            row.update(quiet._asdict())

    def _check_places(self, line: TicketLine) -> None:
        for kind in ("unit", "asset"):
            named = getattr(line.row, kind)
            if named is not None and self._known[kind][named]["property_id"] != line.values["property_id"]:
                raise invalid_request(f"The {kind} lies in another property.", kind)
        if line.row.unit is not None and line.row.unit_number is None:
            line.values["unit_number"] = self._known["unit"][line.row.unit]["unit_number"]

    def _history(self, line: TicketLine, row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The entry of the ticket's history, where the file gives it another status or another reason."""
        told = ("status", "cancellation_reason_code")
        if any(line.stored(name) != row[name] for name in told):
            yield {
                "company_id": row["company_id"],
                "ticket_id": row["id"],
                "version": row["version"],
                "occurred_at": row["updated_at"],
                "from_status": line.stored("status"),
                "to_status": row["status"],
                "cancellation_reason_code": row["cancellation_reason_code"],
                "request_id": self._request_id,
            }

    async def _announce(
        self, connection: Connection, company_id: int, happened: Mapping[int, tuple[bytes, datetime.datetime]]
    ) -> None:
        """happened: the change (empty where the ticket is new) and the instant, by ticket id."""
        announced = []
        for row in await queries.tickets(connection, company_id, list(happened)) if happened else []:
            ticket = self._links.ticket(row)
            change, occurred_at = happened[ticket.entity_id]
            announced.append(
                self._outbox.public(
                    "ticket.status_changed" if change else "ticket.created",
                    company_id=company_id,
                    entity_id=ticket.entity_id,
                    occurred_at=occurred_at,
                    data=records.encode(ticket),
                    change=change,
                    request_id=self._request_id,
                )
            )
        await q.INSERT_EVENTS.run(connection, announced)


def _check_move(line: TicketLine) -> None:
    """Raises Refusal where the ticket would leave its unit or asset behind in another property."""
    if not line.moves("property_id"):
        return
    for kind in ("unit", "asset"):
        if kind not in line.given and line.stored(f"{kind}_id") is not None:
            raise invalid_request(f"The ticket moves to another property; give its {kind} there.", kind)


def _given(line: TicketLine) -> dict[str, Any]:
    """The columns that the row gives."""
    return {name: line.values[name] for name in q.CHANGEABLE if name in line.values}


def _new(line: TicketLine, batch: Batch[records.TicketRow]) -> dict[str, Any]:
    row, values = line.row, _given(line)
    created_at = values.get("created_at") or batch.moment
    # Without a word in the file it is the import's moment: a sync by updated_since must hear of what is backfilled.
    updated_at = max(created_at, row.updated_at or batch.moment)
    ticket = dict.fromkeys(q.CHANGEABLE) | _DEFAULTS | {k: v for k, v in values.items() if v is not None}
    ticket |= {
        "company_id": batch.company_id,
        "external_id": row.external_id,
        "created_at": created_at,
        "updated_at": updated_at,
        # The file's last word about it.
        "quiet_since": max(created_at, row.updated_at or created_at),
        "stale_due_at": None,
    }
    return ticket | _standing(ticket)


def _changed(line: TicketLine, before: Record, batch: Batch[records.TicketRow]) -> dict[str, Any] | None:
    """The whole row as it will be; None where the file says nothing new."""
    values = _given(line)
    after: dict[str, Any] = {"company_id": batch.company_id, **before, **values}
    for name, default in _DEFAULTS.items():
        if after[name] is None:
            after[name] = default if name != "source" else before["source"]
    after["created_at"] = after["created_at"] or before["created_at"]
    if after["status"] != before["status"]:
        # What belonged to the status that the ticket leaves goes with it, unless the file says otherwise.
        after |= {name: values.get(name) for name in _CLOSING}
    instant = max(batch.moment, before["updated_at"] + datetime.timedelta(microseconds=1), after["created_at"])
    kept = {"updated_at": before["updated_at"]} if after["status"] == before["status"] else {"updated_at": instant}
    after |= _standing({**after, **kept})
    if all(after[name] == before[name] for name in q.CHANGEABLE):
        return None
    return after | {"updated_at": instant, "version": before["version"] + 1}


def _imported(before: Record | None, row: Mapping[str, Any]) -> rules_quiet.Imported:
    if before is None:
        return rules_quiet.Imported(row["status"], False, row["quiet_since"], None)
    stirred = any(before[name] != row[name] for name in _STIRS)
    heard_at = row["updated_at"] if stirred else before["quiet_since"] or before["updated_at"]
    return rules_quiet.Imported(row["status"], stirred, heard_at, before["stale_due_at"])


def _standing(ticket: Mapping[str, Any]) -> dict[str, Any]:
    standing = rules.standing_on_import(
        ticket["status"],
        ticket["completed_at"],
        ticket["cancelled_at"],
        ticket["cancellation_reason_code"],
        ticket["updated_at"],
    )
    return {name: getattr(standing, name) for name in _CLOSING}


async def _number(
    connection: Connection, fresh: Sequence[dict[str, Any]], changed: Sequence[tuple[TicketLine, dict[str, Any]]]
) -> None:
    """Numbers new tickets, and anew those that move to another property, where theirs may be taken."""
    moved = [row for line, row in changed if line.stored("property_id") != row["property_id"]]
    unnumbered = [*fresh, *moved]
    counts = Counter(row["property_id"] for row in unnumbered)
    following = await q.take_numbers(connection, dict(sorted(counts.items()))) if counts else {}
    for row in unnumbered:
        row["ticket_number"] = following[row["property_id"]]
        following[row["property_id"]] += 1
