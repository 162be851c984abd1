"""Brings a consumer the references of a write before the write is answered, so that reads follow it at once.

The outbox and NATS bring the same events a moment later, and the consumer applies each once. So this may fail: then
the reads follow as they follow everything else. A consumer that does not answer in time is left alone for a while, so
that it does not slow down every write.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import structlog
from prometheus_client import Counter

from chassis.auth.clients import ServiceClient
from chassis.messaging.outbox import Outbox, OutboxEvent
from makeready.events.v1 import events_pb2 as pb

DEADLINE_SECONDS = 0.25
PAUSE_SECONDS = 5.0

log = structlog.stdlib.get_logger(__name__)
HANDED_OVER = Counter(
    "makeready_handovers_total",
    "Writes whose references went to a consumer before the answer: taken, failed, or left to NATS after a failure",
    ["outcome"],
)


class Handover:
    """From one producer to one consumer."""

    def __init__(self, outbox: Outbox, consumer: ServiceClient) -> None:
        self._outbox = outbox
        self._consumer = consumer
        self._subject = f"events.{outbox.producer}.references"
        self._paused_until = float("-inf")

    async def bring(self, events: Sequence[OutboxEvent]) -> None:
        """Brings events that are committed. Takes DEADLINE_SECONDS at most; never raises."""
        messages = [event.message for event in events if event.subject == self._subject]
        if not messages:
            return
        self._outbox.wake()  # the other consumers need not wait for this one
        if time.monotonic() < self._paused_until:
            HANDED_OVER.labels("left").inc()
            return
        try:
            request = pb.TakeEventsRequest(messages=messages)
            await self._consumer.call(request, pb.TakeEventsResponse, deadline_seconds=DEADLINE_SECONDS)
        except Exception as error:  # the write is committed, and its caller has to know
            self._paused_until = time.monotonic() + PAUSE_SECONDS
            HANDED_OVER.labels("failed").inc()
            log.warning("handover_failed", consumer=self._consumer.name, reason=str(error))
        else:
            HANDED_OVER.labels("taken").inc()
