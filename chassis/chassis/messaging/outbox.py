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

from chassis.db.database import Connection
from chassis.db.rows import InsertMany
from chassis.db.statements import CLOCK, TIME, Statement
from makeready.common.v1.options_pb2 import label
from makeready.events.v1.events_pb2 import Event, EventKey, PublicEvent, References

SUBJECTS = "events.>"
_COLUMNS = ("event_id", "subject", "message")
EVENT_KEYS: frozenset[str] = frozenset(one.GetOptions().Extensions[label] for one in EventKey.DESCRIPTOR.values[1:])


def event_key(event: str) -> str:
    """Returns a public event's key unchanged. Raises ValueError if EventKey (events.proto) has no such label."""
    if event not in EVENT_KEYS:
        raise ValueError(f"{event!r} is the label of no EventKey: events.proto names them all")
    return event


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
        self._insert = Statement(sa.insert(table).values({n: sa.bindparam(n, type_=table.c[n].type) for n in _COLUMNS}))
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
    ) -> dict[str, Any]:
        """The row of a public event, which subscriptions can name. data: the record as its GET serves it now.
        change: {field, from, to} as JSON; else empty. Beside the columns it has the object and the instant, for `add`.

        Raises ValueError for a key that is not in EventKey.
        """
        content = PublicEvent(event=event_key(event), data=data, change=change, entity_id=entity_id)
        message = Event(company_id=company_id, request_id=request_id, public=content)
        row = self._row(f"events.{self.producer}.public.{event}", message, occurred_at)
        return row | {"object": (event.rpartition(".")[0], company_id, entity_id), "occurred_at": occurred_at}

    def references(
        self, references: References, *, company_id: int, occurred_at: datetime.datetime, request_id: str = ""
    ) -> dict[str, Any]:
        """The row of an event with rows for other contexts' replicas."""
        message = Event(company_id=company_id, request_id=request_id, references=references)
        return self._row(f"events.{self.producer}.references", message, occurred_at)

    def cause(self, message: Event) -> dict[str, Any]:
        """The row of an event here that has an effect in another context. message: all but its id."""
        return self._row(f"events.{self.producer}.causes", message, message.occurred_at.ToDatetime(datetime.UTC))

    def _row(self, subject: str, message: Event, occurred_at: datetime.datetime) -> dict[str, Any]:
        event_id = uuid7()
        message.event_id = str(event_id)
        message.occurred_at.FromDatetime(occurred_at)
        return {"event_id": event_id, "subject": subject, "message": message.SerializeToString()}

    async def add(self, connection: Connection, row: dict[str, Any]) -> None:
        """Records an event in the caller's transaction. Call `wake` once it has committed.

        Raises ValueError unless it is later than the transaction's last public event of the same object: receivers
        order an object's events by occurred_at (spec 6.3), so two events must never share it.
        """
        self._check_instants(connection, [row])
        await connection.execute(self._insert, **{name: row[name] for name in _COLUMNS})

    async def add_many(self, connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
        """As `add`, for several events in one statement."""
        self._check_instants(connection, rows)
        await self._insert_many.run(connection, rows)

    def _check_instants(self, connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
        last = self._last.setdefault(connection, {})
        for row in rows:
            if "object" not in row:
                continue
            one, at = row["object"], row["occurred_at"]
            if one in last and at <= last[one]:
                raise ValueError(f"{row['subject']}: an earlier event of the same object is not before {at}")
            last[one] = at

    def wake(self) -> None:
        """Wakes the relay after a commit. The relay also polls, in case a process dies before this call."""
        self.woken.set()
