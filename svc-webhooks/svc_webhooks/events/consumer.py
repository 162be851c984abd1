"""The events that svc-webhooks consumes: public events to deliver, and references to companies."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Sequence

import structlog
from asyncpg import CheckViolationError
from prometheus_client import Counter

from chassis.db.database import Connection, DatabaseUnavailable
from chassis.messaging.outbox import kind_of
from chassis.replicas.tables import Replica, Replicas
from chassis.runtime import traces
from chassis.schedule.instants import printed
from makeready.events.v1 import events_pb2 as pb
from svc_webhooks.days import made_at
from svc_webhooks.events.envelope import envelope
from svc_webhooks.events.partitions import Partitions
from svc_webhooks.events.queries.events import StoredEvent, store_events
from svc_webhooks.rules.deliveries import first_due
from svc_webhooks.rules.events import request_id_of
from svc_webhooks.schema import company

SUBJECTS = {
    "gateway": ["references"],
    "svc-catalog": ["public.vendor.hold", "public.inspection.stale", "public.property.notice.published"],
    "svc-tickets": ["public.ticket.created", "public.ticket.status_changed", "public.ticket.stale", "public.pm.stale"],
    "svc-occupancy": ["public.turn.status_changed", "public.turn.schedule_changed", "public.turn.task.stale"],
}

log = structlog.stdlib.get_logger(__name__)
STORED = Counter("makeready_webhooks_events_stored_total", "Public events stored", ["event"])
TOO_OLD = Counter("makeready_webhooks_events_too_old_total", "Events of days that are over, dropped")

REPLICAS = Replicas({"companies": Replica(company)}, {"companies": "gateway"})
put_references = REPLICAS.put


class EventApplier:
    """Applies events."""

    def __init__(self, partitions: Partitions) -> None:
        self._partitions = partitions

    async def apply(self, connection: Connection, events: Sequence[pb.Event]) -> None:
        """Matches each event once, to the subscriptions that exist at this moment."""
        await put_references(connection, [event.references for event in events])
        stored = []
        for event in events:
            if not event.HasField("public"):
                continue
            if await self._partitions.ensure_day(uuid.UUID(event.event_id)):
                stored.append(_stored(event))
            else:
                TOO_OLD.inc()
                log.warning("event_too_old", event_id=event.event_id, event_key=event.public.event)
        if stored:
            try:
                await store_events(connection, stored)
            except CheckViolationError as error:
                if error.constraint_name:
                    raise
                # No partition: another process dropped a day that this one has cached. The retry makes the day again.
                self._partitions.forget()
                raise DatabaseUnavailable("a day was dropped at this moment") from error
            for stored_event in stored:
                STORED.labels(stored_event.event).inc()
            # For the list of events, and for the pages of the records that they are about.
            connection.changed.update((stored_event.company_id, "event", 0) for stored_event in stored)
            connection.changed.update(
                (stored_event.company_id, kind_of(stored_event.event), stored_event.entity_id)
                for stored_event in stored
            )


def _stored(event: pb.Event) -> StoredEvent:
    occurred_at = event.occurred_at.ToDatetime(datetime.UTC)
    event_id = uuid.UUID(event.event_id)
    public = event.public
    body = envelope(
        event_id=event.event_id,
        event=public.event,
        occurred_at=printed(occurred_at),
        company_id=event.company_id,
        data=public.data,
        change=public.change,
    )
    return StoredEvent(
        event_id=event_id,
        company_id=event.company_id,
        event=public.event,
        entity_id=public.entity_id,
        occurred_at=occurred_at,
        request_id=request_id_of(event.request_id),
        traceparent=traces.accepted(event.traceparent) or None,
        body=body,
        # A change of a record that an import dated into the future occurs after that date; its event is due at once.
        due_at=first_due(min(occurred_at, made_at(event_id))),
    )
