"""Opens tickets for all who ask: integrations, people, failed inspection rows and imports."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from chassis.auth.identity import INTEGRATION, Call
from chassis.db.database import Connection, Database
from chassis.db.ids import Ids
from chassis.messaging.outbox import Outbox, OutboxEvent
from chassis.records.shapes import Source
from chassis.refusals import Refusal, created_by_missing, not_found
from chassis.schedule.clocks import CompanyClocks
from chassis.writes.audit import entry
from chassis.writes.idempotency import Claim
from makeready.common.v1.documents_pb2 import Document, WriteReply
from svc_tickets import schema
from svc_tickets.policy.queries import stale_after_hours
from svc_tickets.replicas import places
from svc_tickets.replicas.fetch import ReplicaFetcher
from svc_tickets.tickets import records
from svc_tickets.tickets import tables as t
from svc_tickets.tickets.queries import opening, read
from svc_tickets.tickets.queries.imports import TICKETS
from svc_tickets.tickets.queries.numbering import NumberedPlace, place_and_number, place_and_number_on
from svc_tickets.tickets.rules import fields, staleness

# A ticket with no values set.
_BLANK: dict[str, Any] = dict.fromkeys(t.ticket.c.keys()) | {
    "version": 1,
    "status": fields.FIRST_STATUS,
    "priority": fields.DEFAULT_PRIORITY,
    "permission_to_enter": False,
    "resident_asked": False,
}
_AUDITED = (
    "source",
    "resident_asked",
    "title",
    "description",
    "category",
    "subcategory",
    "priority",
    "property_id",
    "unit_id",
    "asset_id",
    "room",
    "room_instance",
    "permission_to_enter",
    "preferred_access_time",
    "photo_url",
)
_AUDITED_OF_INSPECTION = ("source", "title", "property_id")
# The columns that render a new ticket. Collecting them for each ticket would cost 15 µs more.
_OF_TICKET: tuple[tuple[Source, str], ...] = tuple((column, column.name) for column in t.ticket.c)
_OF_PLACE: tuple[tuple[Source, str], ...] = tuple(
    (table.c[name], f"{table.name}_{name}")
    for table in (schema.property_, schema.unit)
    for name in ("id", "name", "external_id")
)
_PLACE = ("property_id", "unit_id", "unit_number", "asset_id")
Rows = dict[sa.Table, list[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class NewTicket:
    """A ticket to be opened.

    row: all its columns by name; `id` and `ticket_number` are set when it is opened. author: whose photo it has, if it
    has one; None for a ticket of an integration or a file, whose opening the audit log does not record.
    inspection_row: inspection_id and row_id of the failed row that opens it.
    """

    row: dict[str, Any]
    author: fields.Author | None = None
    inspection_row: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        company_id: int,
        source: fields.Source,
        opened_at: datetime.datetime,
        values: Mapping[str, Any],
        stale_after_hours: int = 0,
        author: fields.Author | None = None,
        inspection_row: Mapping[str, int] | None = None,
    ) -> NewTicket:
        """values: column values; one that is absent or None takes its default. stale_after_hours: the company's
        threshold, needed for a resident's ticket. author: a resident who asked staff for it makes it a resident's."""
        row = {**_BLANK, "updated_at": opened_at}
        row |= {name: value for name, value in values.items() if value is not None}
        resident_asked = author == fields.RESIDENT
        row |= {"company_id": company_id, "source": source, "resident_asked": resident_asked, "created_at": opened_at}
        of_resident = staleness.is_of_resident(source, resident_asked)
        quiet = staleness.staleness_from(of_resident, row["status"], opened_at, stale_after_hours)
        row["quiet_since"], row["stale_due_at"] = quiet
        return cls(row, author, inspection_row or {})

    def event(self, outbox: Outbox, data: bytes, occurred_at: datetime.datetime, request_id: str) -> OutboxEvent:
        """Its event. `data` is the ticket as GET returns it."""
        return outbox.public(
            "ticket.created",
            company_id=self.row["company_id"],
            entity_id=self.row["id"],
            occurred_at=occurred_at,
            data=data,
            request_id=request_id,
        )

    def records(self, call: Call, photo_id: int | None) -> Rows:
        """The rows that say who opened the ticket: its photo, its entry in the audit log, the mark of its inspection
        row. photo_id: of the photo, if there is one."""
        row = self.row
        rows: Rows = {}
        if self.author is not None:
            values = {name: row[name] for name in _AUDITED if row[name] is not None}
            if self.inspection_row:
                values = {name: row[name] for name in _AUDITED_OF_INSPECTION} | dict(self.inspection_row)
            rows[schema.audit] = [entry(call, row["company_id"], "ticket.opened", "ticket", row["id"], {}, values)]
        if photo_id is not None:
            photo = {
                "company_id": row["company_id"],
                "ticket_id": row["id"],
                "id": photo_id,
                "kind": fields.PHOTO,
                "body": row["photo_url"],
                "created_at": row["created_at"],
                "administrator_id": call.identity.administrator_id,
                "api_key_id": None,
                "author": self.author,
                "actor": call.identity.actor,
            }
            rows[t.ticket_comment] = [photo]
        if self.inspection_row:
            mark = {"company_id": row["company_id"], "ticket_id": row["id"]} | dict(self.inspection_row)
            rows[t.ticket_of_inspection_row] = [mark]
        return rows

    @property
    def has_photo_of_author(self) -> bool:
        """Whether its photo belongs in the list of its comments."""
        return self.author is not None and self.row["photo_url"] is not None


class TicketOpener:
    """Opens tickets: with an idempotency key of its own, or in the caller's transaction."""

    def __init__(
        self,
        database: Database,
        replicas: ReplicaFetcher,
        outbox: Outbox,
        renderer: records.TicketRenderer,
        clocks: CompanyClocks,
    ) -> None:
        self._database, self._replicas = database, replicas
        self._outbox, self._renderer, self._clocks = outbox, renderer, clocks
        self._comment_ids = Ids(database, t.comment_id)

    async def open(
        self,
        call: Call,
        claim: Claim,
        source: fields.Source,
        values: Mapping[str, Any],
        reply: Callable[[Document], bytes],
        author: fields.Author | None = None,
    ) -> WriteReply:
        """Opens a ticket for an integration or a person, once for the claim.

        values: of a valid request, by column; without a property_id the unit says the property. reply: what the ledger
        keeps of the ticket. author: the person for whom it is, and whose photo it has; None for an integration. Raises
        Refusal 404, 409 and 422.
        """
        company_id = claim.company_id
        try:
            if call.identity.kind == INTEGRATION and call.identity.administrator_id is None:
                raise created_by_missing()
            place = await self._place(company_id, values)
        except Refusal:
            stored = await opening.CREATE_TICKET.stored(self._database, claim)
            if stored is None:
                raise
            return stored
        hours = await stale_after_hours(self._database, company_id) if author == fields.RESIDENT else 0
        values = {**values, **{name: getattr(place, name) for name in _PLACE}}
        ticket = NewTicket.of(company_id, source, await self._clocks.now(call), values, hours, author)
        photo_id = await self._comment_ids.next() if ticket.has_photo_of_author else None
        row = ticket.row
        row |= {"id": place.ticket_id, "ticket_number": place.ticket_number}
        # Rendered from the inserted values, so no statement reads them again.
        values_by_column = {column: row[name] for column, name in _OF_TICKET}
        values_by_column |= {column: getattr(place, name) for column, name in _OF_PLACE}
        row |= self._renderer.columns(records.TICKET.row(values_by_column))
        json = self._renderer.served(row["document"])
        event = ticket.event(self._outbox, json, row["created_at"], call.request_id)
        rows = {t.ticket: row, schema.outbox: event.row}
        rows |= {table: its_rows[0] for table, its_rows in ticket.records(call, photo_id).items()}
        document = Document(json=json, entity_id=place.ticket_id, version=row["version"])
        insert = opening.CREATES[tuple(rows)]
        seen = {"names_seen": place.names_seen}
        written = await insert.write(self._database, claim, 201, reply(document), rows, event.changed, seen)
        if not written.replayed:
            self._outbox.wake()
        return written

    async def _place(self, company_id: int, values: Mapping[str, Any]) -> NumberedPlace:
        """The place, with the ticket's number there; queries the owner once for what a replica lacks. Raises Refusal
        404."""
        unit_id, asset_id = values["unit_id"], values["asset_id"]
        if "property_id" in values:
            here = (values["property_id"], unit_id, asset_id)
            await places.find(self._database, self._replicas, company_id, *here)
            return await place_and_number_on(self._database, company_id, *here)
        place = await place_and_number(self._database, company_id, unit_id, asset_id or 0)
        if place is None or (asset_id is not None and place.asset_id is None):
            await self._replicas.fetch(company_id, {"unit": unit_id, "asset": asset_id})
            place = await place_and_number(self._database, company_id, unit_id, asset_id or 0)
        if place is None:
            raise not_found("unit")
        if asset_id is not None and place.asset_id is None:
            raise Refusal(
                404, "not_found", "No asset with that id is visible to this key on the unit's property; check both ids."
            )
        return place

    async def open_in(
        self,
        connection: Connection,
        call: Call,
        tickets: Sequence[NewTicket],
        occurred_at: datetime.datetime,
        *,
        events: bool = True,
    ) -> None:
        """Opens numbered tickets of one company in the caller's transaction, and sets each one's id. occurred_at: of
        their events. events: whether they fire."""
        if not tickets:
            return
        company_id = tickets[0].row["company_id"]
        await TICKETS.insert(connection, [ticket.row for ticket in tickets])
        rows: Rows = {}
        for ticket in tickets:
            photo_id = await opening.comment_id(connection) if ticket.has_photo_of_author else None
            for table, its_rows in ticket.records(call, photo_id).items():
                rows.setdefault(table, []).extend(its_rows)
        for table, insert in opening.RECORDS.items():
            await insert.run(connection, rows.get(table, ()))
        # Each ticket by its id: the search ignores the hint "several tickets".
        connection.changed.update((company_id, "ticket", ticket.row["id"]) for ticket in tickets)
        if events:
            stored = await read.tickets(connection, company_id, [ticket.row["id"] for ticket in tickets])
            data = {row[0]: self._renderer.json(row) for row in stored}
            opened = [
                ticket.event(self._outbox, data[ticket.row["id"]], occurred_at, call.request_id) for ticket in tickets
            ]
            await self._outbox.add_many(connection, opened)
