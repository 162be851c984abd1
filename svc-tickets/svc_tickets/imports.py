"""One batch of an import of tickets: checked, resolved, compared with what is there, and saved together.

A column that the file has and that is blank in a row clears the field; a column that the file lacks leaves it.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from asyncpg import Record

from chassis import bodies
from chassis.database import Connection, Database
from chassis.ids import Ids
from chassis.outbox import Outbox
from chassis.refusals import Refusal, invalid_request
from makeready.common.v1 import documents_pb2 as common
from svc_tickets import queries, queries_import, records, rules
from svc_tickets import tables as t
from svc_tickets.owners import Owners

CREATED, CHANGED = common.IMPORT_OUTCOME_CREATED, common.IMPORT_OUTCOME_CHANGED
UNCHANGED, REJECTED = common.IMPORT_OUTCOME_UNCHANGED, common.IMPORT_OUTCOME_REJECTED

_NAMED = {"property": "property_id", "unit": "unit_id", "asset": "asset_id"}
_DEFAULTS: dict[str, Any] = {
    "priority": rules.DEFAULT_PRIORITY,
    "status": "Open",
    "permission_to_enter": False,
    "source": "import",
}


class _Line:
    """A row of the file on its way into the table."""

    def __init__(self, sent: common.ImportRow) -> None:
        self.result = common.ImportResult(line=sent.line, outcome=UNCHANGED)
        self.row: records.TicketRow | None = None
        self.given: frozenset[str] = frozenset()
        self.values: dict[str, Any] = {}

    def reject(self, refusal: Refusal) -> None:
        self.row = None
        self.result.outcome, self.result.field, self.result.reason = REJECTED, refusal.field, refusal.message


class Batch:
    """The rows of one request. `resolve`, then `save`, then `results`."""

    def __init__(
        self, company_id: int, rows: Iterable[common.ImportRow], moment: datetime.datetime, request_id: str
    ) -> None:
        self._company_id = company_id
        self._moment = moment
        self._request_id = request_id
        self._lines = [_Line(row) for row in rows]
        seen: set[str] = set()
        for line, sent in zip(self._lines, rows, strict=True):
            try:
                found = msgspec.json.decode(sent.json)
                line.row = row = bodies.check_row(records.TicketRow, found)
                line.given = frozenset(found)
                if row.external_id in seen:
                    raise invalid_request("external_id stands in the file twice.", "external_id")
                seen.add(row.external_id)
            except Refusal as refusal:
                line.reject(refusal)

    def results(self) -> list[common.ImportResult]:
        return [line.result for line in self._lines]

    def _good(self) -> Iterable[tuple[_Line, records.TicketRow]]:
        return ((line, line.row) for line in self._lines if line.row is not None)

    async def resolve(self, database: Database, owners: Owners) -> None:
        """Turns the external ids of other records into ids; asks their owner once for what a replica lacks."""
        named = {
            kind: sorted({name for _, row in self._good() if (name := getattr(row, kind)) is not None})
            for kind in _NAMED
        }
        found = await self._look_up(database, named)
        lacking = {kind: [name for name in named[kind] if name not in found[kind]] for kind in _NAMED}
        if any(lacking.values()):
            await owners.fetch(
                self._company_id,
                property_external_ids=lacking["property"],
                unit_external_ids=lacking["unit"],
                asset_external_ids=lacking["asset"],
            )
            found = await self._look_up(database, named)
        for line, row in self._good():
            try:
                line.values = _resolved(row, line.given, found)
            except Refusal as refusal:
                line.reject(refusal)

    async def _look_up(self, database: Database, named: Mapping[str, Sequence[str]]) -> dict[str, dict[str, Record]]:
        async with database.connection() as connection:
            return {
                "property": await queries_import.properties(connection, self._company_id, named["property"]),
                "unit": await queries_import.units(connection, self._company_id, named["unit"]),
                "asset": await queries_import.assets(connection, self._company_id, named["asset"]),
            }

    async def save(
        self,
        database: Database,
        ids: Ids,
        outbox: Outbox,
        links: records.TicketLinks,
        dry_run: bool,
        events: bool,
    ) -> None:
        """Inserts and updates what differs, in one transaction. events: whether the public events fire."""
        async with database.transaction() as connection:
            external_ids = [row.external_id for _, row in self._good()]
            existing = await queries_import.tickets_for_update(connection, self._company_id, external_ids)
            fresh, changed = self._compare(existing)
            if dry_run:
                return
            await self._number(connection, fresh, changed, existing)
            for row, ticket_id in zip(fresh, await ids.take(len(fresh)), strict=True):
                row["id"] = ticket_id
            await queries_import.INSERT_TICKETS.run(connection, fresh)
            await queries_import.UPDATE_TICKETS.run(connection, changed)
            if events:
                opened = {row["id"]: (b"", self._moment) for row in fresh}
                moved = {
                    row["id"]: (records.change("status", row["before"]["status"], row["status"]), row["updated_at"])
                    for row in changed
                    if row["before"]["status"] != row["status"]
                }
                await self._announce(connection, outbox, links, opened | moved)

    def _compare(self, existing: Mapping[str, Record]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        fresh, changed = [], []
        for line, row in self._good():
            before = existing.get(row.external_id)
            try:
                if before is None:
                    fresh.append(self._new(row, line.values))
                    line.result.outcome = CREATED
                elif after := self._changed(before, line.values):
                    changed.append(after)
                    line.result.outcome = CHANGED
            except Refusal as refusal:
                line.reject(refusal)
        return fresh, changed

    def _new(self, row: records.TicketRow, values: Mapping[str, Any]) -> dict[str, Any]:
        created_at = values.get("created_at") or self._moment
        updated_at = max(created_at, row.updated_at or row.completed_at or row.cancelled_at or created_at)
        ticket = dict.fromkeys(t.ticket.c.keys()) | _DEFAULTS | {k: v for k, v in values.items() if v is not None}
        ticket |= {
            "company_id": self._company_id,
            "version": 1,
            "external_id": row.external_id,
            "created_at": created_at,
            "updated_at": updated_at,
        }
        return ticket | _standing(ticket)

    def _changed(self, before: Record, values: Mapping[str, Any]) -> dict[str, Any] | None:
        """The whole row as it will be; None where the file says nothing new."""
        after: dict[str, Any] = {**before, **values}
        for name, default in _DEFAULTS.items():
            if after[name] is None:
                after[name] = default if name != "source" else before["source"]
        after["created_at"] = after["created_at"] or before["created_at"]
        if after["status"] != before["status"]:
            # What belonged to the status that the ticket leaves goes with it, unless the file says otherwise.
            after |= {name: values.get(name) for name in ("completed_at", "cancelled_at", "cancellation_reason_code")}
        instant = max(self._moment, before["updated_at"] + datetime.timedelta(microseconds=1), after["created_at"])
        kept = {"updated_at": before["updated_at"]} if after["status"] == before["status"] else {"updated_at": instant}
        after |= _standing({**after, **kept})
        if all(after[name] == before[name] for name in queries_import.CHANGEABLE):
            return None
        return after | {"updated_at": instant, "version": before["version"] + 1, "before": before}

    async def _number(
        self,
        connection: Connection,
        fresh: Sequence[dict[str, Any]],
        changed: Sequence[dict[str, Any]],
        existing: Mapping[str, Record],
    ) -> None:
        """Numbers new tickets, and anew those that move to another property, where theirs may be taken."""
        known = {row["id"]: row["property_id"] for row in existing.values()}
        unnumbered = [*fresh, *(row for row in changed if known[row["id"]] != row["property_id"])]
        counts = Counter(row["property_id"] for row in unnumbered)
        following = await queries_import.take_numbers(connection, dict(sorted(counts.items()))) if counts else {}
        for row in unnumbered:
            row["ticket_number"] = following[row["property_id"]]
            following[row["property_id"]] += 1

    async def _announce(
        self,
        connection: Connection,
        outbox: Outbox,
        links: records.TicketLinks,
        happened: Mapping[int, tuple[bytes, datetime.datetime]],
    ) -> None:
        """happened: the change (empty where the ticket is new) and the instant, by ticket id."""
        rows = await queries.tickets(connection, self._company_id, list(happened)) if happened else []
        announced = []
        for row in rows:
            ticket = links.ticket(row)
            change, occurred_at = happened[ticket.entity_id]
            announced.append(
                outbox.public(
                    "ticket.status_changed" if change else "ticket.created",
                    company_id=self._company_id,
                    entity_id=ticket.entity_id,
                    occurred_at=occurred_at,
                    data=records.encode(ticket),
                    change=change,
                    request_id=self._request_id,
                )
            )
        await queries_import.INSERT_EVENTS.run(connection, announced)


def _resolved(
    row: records.TicketRow, given: frozenset[str], found: Mapping[str, Mapping[str, Record]]
) -> dict[str, Any]:
    """The table's columns that the row gives. Raises Refusal for a reference that nobody has."""
    values: dict[str, Any] = {}
    for name in given - {"external_id", "updated_at"}:
        value = getattr(row, name)
        if name in _NAMED and value is not None:
            if value not in found[name]:
                raise invalid_request(f"No {name} with that external_id is known.", name)
            value = found[name][value]["id"]
        values[_NAMED.get(name, name)] = value
    for kind in ("unit", "asset"):
        named = getattr(row, kind)
        if named is not None and found[kind][named]["property_id"] != values["property_id"]:
            raise invalid_request(f"The {kind} lies in another property.", kind)
    if row.unit is not None and row.unit_number is None:
        values["unit_number"] = found["unit"][row.unit]["unit_number"]
    return values


def _standing(ticket: Mapping[str, Any]) -> dict[str, Any]:
    standing = rules.standing_on_import(
        ticket["status"],
        ticket["completed_at"],
        ticket["cancelled_at"],
        ticket["cancellation_reason_code"],
        ticket["updated_at"],
    )
    return {
        "completed_at": standing.completed_at,
        "cancelled_at": standing.cancelled_at,
        "cancellation_reason_code": standing.cancellation_reason_code,
    }
