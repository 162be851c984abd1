"""Records attempts in batches: all that ended since the last batch share a transaction, soon after they ended."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import structlog

from chassis.db.database import Connection, Database, DatabaseUnavailable
from svc_webhooks.by_index import BY_INDEX
from svc_webhooks.dispatch.queries import recording as queries
from svc_webhooks.dispatch.queries.hosts import answers_stored
from svc_webhooks.dispatch.queries.recording import Attempt
from svc_webhooks.rules.deliveries import PARKED, TEST
from svc_webhooks.rules.subscriptions import HEALTHY, KIND, SubscriptionHealth, after_failure, after_success

ATTEMPTS_AT_ONCE = 500
LINGER_SECONDS = 0.01  # a transaction costs as much as ten of its rows
TRIES_MAX = 30  # no limit of time: the fence decides whether a late record counts
FINISH_SECONDS = 5.0
TRY_SECONDS = 1.0

log = structlog.stdlib.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Waiting:
    attempt: Attempt
    company_id: int
    recorded: asyncio.Future[bool]


class Recorder:
    """One per process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: list[_Waiting] = []
        self._flushing: asyncio.Task[None] | None = None

    async def record(self, attempt: Attempt, company_id: int) -> bool:
        """False if the delivery was deleted or claimed by another sender. company_id: of its
        subscription. Raises DatabaseUnavailable."""
        recorded: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(attempt, company_id, recorded))
        if self._flushing is None:
            self._flushing = asyncio.create_task(self._flush())
        return await recorded

    async def finish(self) -> None:
        """Waits a moment for attempts that are being recorded."""
        if self._flushing is not None:
            await asyncio.wait({self._flushing}, timeout=FINISH_SECONDS)

    async def _flush(self) -> None:
        try:
            while self._waiting:
                await asyncio.sleep(LINGER_SECONDS)
                batch, self._waiting = self._waiting[:ATTEMPTS_AT_ONCE], self._waiting[ATTEMPTS_AT_ONCE:]
                await self._settle(batch)
        finally:
            self._flushing = None

    async def _settle(self, batch: Sequence[_Waiting]) -> None:
        try:
            recorded = await self._record_patiently(batch)
        except Exception as error:
            if len(batch) > 1 and not isinstance(error, DatabaseUnavailable):
                # An attempt that can't be recorded must not block the others. An attempt that is not recorded is sent
                # again.
                for waiting in batch:
                    await self._settle([waiting])
                return
            for waiting in batch:
                if not waiting.recorded.done():
                    waiting.recorded.set_exception(error)
            return
        for waiting in batch:
            if not waiting.recorded.done():
                waiting.recorded.set_result(waiting.attempt.key in recorded)

    async def _record_patiently(self, batch: Sequence[_Waiting]) -> set[tuple[object, int]]:
        """Retries through a restart of the database, because an attempt that is not recorded is sent again."""
        for tries in range(1, TRIES_MAX + 1):
            try:
                recorded = await self._record(batch)
            except DatabaseUnavailable as error:
                log.warning("attempts_not_recorded", attempts=len(batch), tries=tries, reason=str(error))
                if tries == TRIES_MAX:
                    raise
                await asyncio.sleep(TRY_SECONDS)
                continue
            if tries > 1:
                # The first try may have committed although its answer was lost; then this one finds nothing to record.
                return {waiting.attempt.key for waiting in batch}
            return recorded
        raise AssertionError("not reached")

    async def _record(self, batch: Sequence[_Waiting]) -> set[tuple[object, int]]:
        attempts = [waiting.attempt for waiting in batch]
        ids = sorted({attempt.subscription_id for attempt in attempts})
        any_failed = any(attempt.outcome.error for attempt in attempts)
        async with self._database.transaction(BY_INDEX) as connection:
            before = await queries.healths_for_update(connection, ids) if any_failed else {}
            recorded = await queries.attempts_recorded(connection, attempts)
            # Successive successes change no subscription, so they need no lock on its row.
            if not before and any(recorded.values()):
                before = await queries.healths_for_update(connection, ids)
            after = await _with_delivering_sweeps(connection, before, attempts) if any_failed else dict(before)
            for attempt in attempts:
                if attempt.subscription_id in after and attempt.key in recorded:
                    after[attempt.subscription_id] = _after(after[attempt.subscription_id], attempt)
            changed = {sub_id: health for sub_id, health in after.items() if health != before[sub_id]}
            if changed:
                failed_at = {attempt.subscription_id: attempt.ended_at for attempt in attempts}
                await queries.save_healths(connection, changed, failed_at)
            # Last: two processes may store the same receiver, and the second one waits here with all its locks.
            if answered := {key for attempt in attempts for key in attempt.answered}:
                await answers_stored(connection, answered)
            # A hint a subscription and batch.
            connection.changed.update(
                {(waiting.company_id, KIND, waiting.attempt.subscription_id) for waiting in batch}
            )
        return {*recorded}


async def _with_delivering_sweeps(
    connection: Connection, healths: Mapping[int, SubscriptionHealth], attempts: Sequence[Attempt]
) -> dict[int, SubscriptionHealth]:
    """Successes of a healthy subscription change no row. So its first failure looks whether its sweep had some."""
    sweeps = {
        (attempt.subscription_id, attempt.sweep)
        for attempt in attempts
        if attempt.outcome.error
        and attempt.sweep is not None
        and (health := healths.get(attempt.subscription_id)) is not None
        and (health.health == HEALTHY and health.delivering_sweep != attempt.sweep.now)
    }
    updated = dict(healths)
    if sweeps:
        for sub_id, sweep in await queries.delivering_sweeps(connection, sweeps):
            updated[sub_id] = replace(updated[sub_id], delivering_sweep=sweep)
    return updated


def _after(health: SubscriptionHealth, attempt: Attempt) -> SubscriptionHealth:
    if attempt.cause == TEST or attempt.outcome.is_internal_fault:
        return health
    sweep = attempt.sweep.now if attempt.sweep else None
    if not attempt.outcome.error:
        return after_success(health, sweep)
    return after_failure(health, parked=attempt.after.state == PARKED, sweep=sweep)
