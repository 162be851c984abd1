"""The outbox: an event is a row, written in the transaction of its cause, and is never lost after that."""

from __future__ import annotations

import asyncio
import datetime
import os
import time
import uuid
import weakref
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import UUID

from chassis.db.database import Change, Connection
from chassis.db.rows import InsertMany
from chassis.db.statements import CLOCK, TIME, NewValues
from chassis.runtime import traces
from makeready.common.v1.options_pb2 import label
from makeready.events.v1.events_pb2 import Event, EventKey, PublicEvent, References

# The name of a row's key with the records that the event is about, which is no column. See chassis.messaging.hints.
CHANGED = "changed"
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
        "outbox",
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
    )
    return table


class Outbox:
    """Makes events of one producer and wakes its relay."""

    def __init__(self, producer: str, table: sa.Table) -> None:
        self.producer = producer
        self.table = table
        self.woken = asyncio.Event()
        self._insert_many = InsertMany(table, _COLUMNS)
        # The instant of the last public event of each object, by connection: one is made for each transaction.
        self._last: weakref.WeakKeyDictionary[Connection, dict[Any, datetime.datetime]] = weakref.WeakKeyDictionary()

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
    ) -> NewValues:
        """The row of a public event, which subscriptions can name. data: the record as its GET serves it now.
        change: {field, from, to} as JSON; else empty. Beside the columns it has the object and the instant, for `add`.

        Raises ValueError for a key that is not in EventKey.
        """
        content = PublicEvent(event=event_key(event), data=data, change=change, entity_id=entity_id)
        message = Event(company_id=company_id, request_id=request_id, public=content)
        stem = event.rpartition(".")[0]
        row = self._row(message, occurred_at, [(company_id, kind_of(event), entity_id)])
        return row | {"object": (stem, company_id, entity_id), "occurred_at": occurred_at}

    def references(
        self, references: References, *, company_id: int, occurred_at: datetime.datetime, request_id: str = ""
    ) -> NewValues:
        """The row of an event with rows for other contexts' replicas."""
        message = Event(company_id=company_id, request_id=request_id, references=references)
        changed = [
            (company_id, _REFERRED[field.name], row.id) for field, rows in references.ListFields() for row in rows
        ]
        return self._row(message, occurred_at, changed)

    def cause(self, message: Event) -> NewValues:
        """The row of an event here that has an effect in another context. message: all but its id."""
        return self._row(message, message.occurred_at.ToDatetime(datetime.UTC), [])

    def _row(self, message: Event, occurred_at: datetime.datetime, changed: list[Change]) -> NewValues:
        event_id = uuid7()
        message.event_id = str(event_id)
        message.traceparent = traces.current()
        message.occurred_at.FromDatetime(occurred_at)
        subject = f"events.{self.producer}.{content_of(message)}"
        return {"event_id": event_id, "subject": subject, "message": message.SerializeToString(), CHANGED: changed}

    async def add(self, connection: Connection, row: NewValues) -> None:
        """Records an event in the caller's transaction. Call `wake` once it has committed.

        Raises ValueError unless it is later than the transaction's last public event of the same object: receivers
        order an object's events by occurred_at (spec 6.3), so two events must never share it.
        """
        await self.add_many(connection, [row])

    async def add_many(self, connection: Connection, rows: Sequence[NewValues]) -> None:
        """As `add`, for several events in one statement."""
        self._check_instants(connection, rows)
        await self._insert_many.run(connection, rows)
        for row in rows:
            connection.changed.update(row.get(CHANGED, ()))

    def _check_instants(self, connection: Connection, rows: Sequence[NewValues]) -> None:
        last = self._last.setdefault(connection, {})
        for row in rows:
            if "object" not in row:
                continue
            record, at = row["object"], row["occurred_at"]
            if record in last and at <= last[record]:
                raise ValueError(f"{row['subject']}: an earlier event of the same object is not before {at}")
            last[record] = at

    def wake(self) -> None:
        """Wakes the relay after a commit. The relay also polls, in case a process dies before this call."""
        self.woken.set()
