"""Hints: which records have just changed, for those who watch. Best effort, without content; no event depends on one.

A hint is a core NATS message on `hints.<service>.<company>.<kind>.<id>`. A watcher reads the record where it is served.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterable

import structlog
from prometheus_client import Counter

from chassis.db.database import Change
from chassis.messaging.transport import FAULTS, Transport

LINGER_SECONDS = 0.02  # a record that changes several times meanwhile makes one hint
WAITING_MAX = 10_000  # further records make no hint until the waiting ones are sent
# More records of one kind and company than this share one hint, with id 0: an import changes thousands, and each is a
# message to every listener.
EACH_MAX = 8

log = structlog.stdlib.get_logger(__name__)
SENT = Counter("makeready_hints_sent_total", "Hints handed to NATS")


class Hints:
    """Sends one service's hints. While NATS is away it sends and stores none."""

    def __init__(self, service: str, transport: Transport) -> None:
        self._service = service
        self._transport = transport
        self._waiting: set[Change] = set()
        self._woken = asyncio.Event()

    def add(self, changed: Iterable[Change]) -> None:
        """Hints at records whose change has committed. It neither waits nor raises."""
        if not self._transport.is_connected or len(self._waiting) > WAITING_MAX:
            return
        self._waiting.update(changed)
        self._woken.set()

    async def run(self) -> None:
        """Sends until cancelled."""
        while True:
            await self._woken.wait()
            await asyncio.sleep(LINGER_SECONDS)
            self._woken.clear()
            waiting, self._waiting = self._waiting, set()
            try:
                for company_id, kind, entity_id in gathered(waiting):
                    await self._transport.send(f"hints.{self._service}.{company_id}.{kind}.{entity_id}")
                    SENT.inc()
            except FAULTS as error:
                log.info("hints_dropped", reason=str(error) or type(error).__name__)


def gathered(waiting: Iterable[Change]) -> list[Change]:
    """The hints for these records, sorted: one each, or one with id 0 for more than EACH_MAX of a company and kind."""
    hints = []
    for _, group in itertools.groupby(sorted(waiting), key=lambda change: change[:2]):
        each = list(group)
        hints += each if len(each) <= EACH_MAX else [(*each[0][:2], 0)]
    return hints
