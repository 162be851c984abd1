"""The outbox: an event is a row, written in the transaction of its cause, and is never lost after that."""

from __future__ import annotations

import asyncio
import datetime
import os
import time
import uuid
import weakref
from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import UUID

from chassis.db.belonging import to_no_company
from chassis.db.database import Change, Connection
from chassis.db.rows import InsertMany
from chassis.db.statements import CLOCK, TIME, Values
from chassis.runtime import traces
from makeready.common.v1.options_pb2 import label
from makeready.events.v1.events_pb2 import Event, EventKey, PublicEvent, References

OUTBOX = "outbox"
_COLUMNS = ("event_id", "subject", "message")
EVENT_KEYS: frozenset[str] = frozenset(value.GetOptions().Extensions[label] for value in EventKey.DESCRIPTOR.values[1:])


def event_key(event: str) -> str:
    """Returns a public event's key unchanged. Raises ValueError if EventKey (events.proto) has no such label."""
    if event not in EVENT_KEYS:
        raise ValueError(f"{event!r} is the label of no EventKey: events.proto names them all")
    return event


# The kinds of records whose events have other names: those of their entries in the audit log.
_KINDS = {"pm": "pm_task", "property.notice": "notice", "turn.task": "turn_task"}
# By field of References. The row of a unit's occupancy is about the unit.
_REFERRED = {
    field.name: field.message_type.name.removesuffix("Reference").removesuffix("Occupancy").lower()
    for field in References.DESCRIPTOR.fields
    if field.message_type is not None
}


def kind_of(event: str) -> str:
    """The kind of record that a public event is about, as the audit log and hints name it."""
    stem = event.rpartition(".")[0]
    return _KINDS.get(stem, stem)


def content_of(event: Event) -> str:
    """The end of the subject that an event belongs to: "public.ticket.created", "references" or "causes"."""
    if event.HasField("public"):
        return f"public.{event.public.event}"
    return "references" if event.HasField("references") else "causes"


def includes(prefixes: Sequence[str], subject: str) -> bool:
    """Whether the subject is one of the prefixes, or below one."""
    return any(subject == prefix or subject.startswith(f"{prefix}.") for prefix in prefixes)


def uuid7() -> uuid.UUID:
    """A UUID whose first 48 bits are the milliseconds since the epoch, so that ids sort by time (RFC 9562)."""
    number = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(os.urandom(10), "big")
    number = number & ~(0xF << 76) | 0x7 << 76
    return uuid.UUID(int=number & ~(0x3 << 62) | 0x2 << 62)


def outbox_table(metadata: sa.MetaData) -> sa.Table:
    """Events of this context, by id. A published row is deleted after three days, once every consumer confirmed it."""
    table = sa.Table(
        OUTBOX,
        metadata,
        sa.Column("event_id", UUID(as_uuid=True), primary_key=True),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("message", sa.LargeBinary, nullable=False),
        sa.Column("recorded_at", TIME, nullable=False, server_default=CLOCK),
        sa.Column("claimed_until", TIME, nullable=False, server_default=sa.text("'-infinity'")),
        sa.Column("published_at", TIME, server_default=sa.text("NULL")),
    )
    sa.Index("outbox_unpublished", table.c.event_id, postgresql_where=sa.text("published_at IS NULL"))
    sa.Index("outbox_recorded", table.c.recorded_at)
    sa.Table(
        "outbox_confirmation",
        metadata,
        sa.Column("consumer", sa.Text, primary_key=True),
        sa.Column("recorded_until", TIME, nullable=False),
        info=to_no_company("the names of consumers"),
    )
    return table


@dataclass(frozen=True, slots=True)
class OutboxEvent:
    """An event that is about to be recorded."""

    event_id: uuid.UUID
    subject: str
    message: bytes
    changed: Sequence[Change]
    """The records that it is about: see `chassis.messaging.hints`."""
    occurred_at: datetime.datetime
    record: tuple[str, int, int] | None = None
    """The record whose events receivers order: the beginning of its events' keys, the company, the id. None for an
    event that is not public."""

    @property
    def row(self) -> Values:
        """The columns of the outbox."""
        return {"event_id": self.event_id, "subject": self.subject, "message": self.message}


class Outbox:
    """Makes events of one producer and wakes its relay."""

    def __init__(self, producer: str, table: sa.Table) -> None:
        self.producer = producer
        self.table = table
        self.woken = asyncio.Event()
        self._insert_many = InsertMany(table, _COLUMNS)
        # The instant of each record's last public event, by connection: one is made for each transaction.
        self._last: weakref.WeakKeyDictionary[Connection, dict[tuple[str, int, int], datetime.datetime]]
        self._last = weakref.WeakKeyDictionary()

    def public(
        self,
        event: str,
        *,
        company_id: int,
        entity_id: int,
        occurred_at: datetime.datetime,
        data: bytes,
        change: bytes = b"",
        request_id: str = "",
    ) -> OutboxEvent:
        """A public event, which subscriptions can name. Its `data` is the record as its GET serves it now; `change` is
        {field, from, to} as JSON, or empty.

        Raises ValueError for a key that is not in EventKey.
        """
        content = PublicEvent(event=event_key(event), data=data, change=change, entity_id=entity_id)
        message = Event(company_id=company_id, request_id=request_id, public=content)
        record = (event.rpartition(".")[0], company_id, entity_id)
        return self._event(message, occurred_at, [(company_id, kind_of(event), entity_id)], record)

    def references(
        self, references: References, *, company_id: int, occurred_at: datetime.datetime, request_id: str = ""
    ) -> OutboxEvent:
        """An event with rows for other contexts' replicas."""
        message = Event(company_id=company_id, request_id=request_id, references=references)
        changed = [
            (company_id, _REFERRED[field.name], row.id) for field, rows in references.ListFields() for row in rows
        ]
        return self._event(message, occurred_at, changed)

    def cause(self, message: Event) -> OutboxEvent:
        """An event here that has an effect in another context. `message` is all but its id."""
        return self._event(message, message.occurred_at.ToDatetime(datetime.UTC), [])

    def _event(
        self,
        message: Event,
        occurred_at: datetime.datetime,
        changed: Sequence[Change],
        record: tuple[str, int, int] | None = None,
    ) -> OutboxEvent:
        event_id = uuid7()
        message.event_id = str(event_id)
        message.traceparent = traces.current()
        message.occurred_at.FromDatetime(occurred_at)
        subject = f"events.{self.producer}.{content_of(message)}"
        return OutboxEvent(event_id, subject, message.SerializeToString(), changed, occurred_at, record)

    async def add(self, connection: Connection, event: OutboxEvent) -> None:
        """Records an event in the caller's transaction. Call `wake` once it has committed.

        Raises ValueError unless it is later than the transaction's last public event of the same record: receivers
        order a record's events by occurred_at (spec 6.3), so two events must never share it.
        """
        await self.add_many(connection, [event])

    async def add_many(self, connection: Connection, events: Sequence[OutboxEvent]) -> None:
        """As `add`, for several events in one statement."""
        self._check_instants(connection, events)
        await self._insert_many.run(connection, [event.row for event in events])
        for event in events:
            connection.changed.update(event.changed)

    def _check_instants(self, connection: Connection, events: Sequence[OutboxEvent]) -> None:
        last = self._last.setdefault(connection, {})
        for event in events:
            if event.record is None:
                continue
            at = event.occurred_at
            if event.record in last and at <= last[event.record]:
                raise ValueError(f"{event.subject}: an earlier event of the same object is not before {at}")
            last[event.record] = at

    def wake(self) -> None:
        """Wakes the relay after a commit. The relay also polls, in case a process dies before this call."""
        self.woken.set()
