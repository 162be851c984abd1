"""Erases a deleted subscription's history in batches: the first one at once, the rest by any living process (spec
4.11).

Deleting a history of a million deliveries takes longer than a request may take, and would hold its locks as long.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid

import structlog
from prometheus_client import Counter

from chassis.db.database import Database, DatabaseUnavailable
from chassis.runtime.failpoints import failpoint
from svc_webhooks.by_index import BY_INDEX
from svc_webhooks.days import OLDEST
from svc_webhooks.subscriptions.queries import erasure as queries

DELIVERIES_OF_A_BATCH = 1000
LOOK_SECONDS = 60.0  # to find erasures of a process that died

log = structlog.stdlib.get_logger(__name__)
ERASED = Counter("makeready_webhooks_deliveries_erased_total", "Deliveries deleted with their subscription")


class Eraser:
    """Deletes the histories of deleted subscriptions. Several processes may do so at once."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._asked = asyncio.Event()

    async def begin(self, sub_id: int) -> None:
        """Deletes one batch, which is all of a short history; `run` continues a longer one."""
        failpoint("erasure-begun")
        # The subscription is deleted even if this batch fails.
        with contextlib.suppress(DatabaseUnavailable):
            await self._batch(sub_id, OLDEST)
        self._asked.set()

    async def run(self) -> None:
        """Processes noted erasures, until cancelled."""
        while True:
            self._asked.clear()
            await self.finish()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._asked.wait(), LOOK_SECONDS)

    async def finish(self) -> None:
        """Processes noted erasures that no other process works on. Raises DatabaseUnavailable."""
        sub_id, after = None, OLDEST
        while True:
            began = time.monotonic()
            taken, after = await self._batch(sub_id, after)
            if taken is None and sub_id is None:
                return
            sub_id = taken
            # Sleeps as long as the batch took, to leave the database to others.
            await asyncio.sleep(time.monotonic() - began)

    async def _batch(self, sub_id: int | None, after: uuid.UUID) -> tuple[int | None, uuid.UUID]:
        """One transaction. Returns the subscription while more of its history may exist, and the event to continue
        after."""
        async with self._database.transaction(BY_INDEX) as connection:
            taken = await queries.erasure_taken(connection, sub_id)
            if taken is None:
                return None, OLDEST
            gone = await queries.deliveries_deleted(connection, taken, after, DELIVERIES_OF_A_BATCH)
            is_last = len(gone) < DELIVERIES_OF_A_BATCH
            if is_last:
                await queries.forget_erasure(connection, taken)
        ERASED.inc(len(gone))
        failpoint("erasure-batch")
        if is_last:
            log.info("history_erased", subscription_id=taken)
            return None, OLDEST
        return taken, gone[-1]
