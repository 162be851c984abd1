"""Counts in memory for what keys are used, and stores it every half minute.

Every request passes `count`, so it neither waits nor allocates much. The database gets one statement each half minute
for all keys together. While it is away the counts wait in memory, up to a bound; a part whose answer was lost is sent
again and stored once. A process that is killed loses half a minute at most.
"""

from __future__ import annotations

import asyncio
import datetime
import time
import uuid
from collections.abc import Callable

import asyncpg
import structlog
from prometheus_client import Counter

from chassis.db.database import Database, DatabaseUnavailable
from chassis.http.requests import Request
from gateway.http.bearer import Caller
from gateway.identity.usage import queries
from gateway.identity.usage.queries import HourOfKey, LastUse, Part

PERIOD_SECONDS = 30.0
HOUR_SECONDS = 3600
# A key's last use is looked at again after this time: finding the address costs more than counting.
LAST_USE_SECONDS = 1.0
HOURS_WAITING_MAX = 20_000
"""Hours of keys that wait in memory: a few megabytes."""
# A part's rows are made without a pause: a thousand take about 2 ms.
PART_ROWS_MAX = 1000

log = structlog.stdlib.get_logger(__name__)
LOST = Counter(
    "makeready_key_usage_lost_total", "Requests that were not counted by key: memory was full, or the process stopped"
)


class _Hour:
    """One key's requests in one hour."""

    __slots__ = (
        "address",
        "caller",
        "ends_at",
        "failed",
        "look_at",
        "method",
        "rate_limited",
        "refused",
        "route",
        "succeeded",
        "used_at",
    )

    def __init__(self, caller: Caller, now: float) -> None:
        self.caller = caller
        self.ends_at = (now // HOUR_SECONDS + 1) * HOUR_SECONDS
        self.succeeded = self.refused = self.rate_limited = self.failed = 0
        self.look_at = 0.0
        """From then on the next use is noted."""
        self.used_at = 0.0
        self.address = self.method = self.route = ""


class Usage:
    """What the keys are used for, since the last part was stored."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock
        self._hours: dict[int, _Hour] = {}
        """The current hour of each key."""
        self._earlier: list[_Hour] = []
        self._writer = uuid.uuid4()
        self._number = 0
        self._part: Part | None = None
        """The part that is being stored, or of which it is not known whether it was."""

    @property
    def waiting(self) -> int:
        """How many hours of keys wait in memory."""
        return len(self._hours) + len(self._earlier)

    def count(self, caller: Caller, request: Request, route: str, status: int) -> None:
        """Counts an answered request. route: of the table of routes."""
        now = self._clock()
        hour = self._hours.get(caller.api_key_id)
        if hour is None or now >= hour.ends_at:
            hour = self._next_hour(caller, now)
            if hour is None:
                LOST.inc()
                return
        if status < 400:
            hour.succeeded += 1
        elif status >= 500:
            hour.failed += 1
        elif status == 429:
            hour.rate_limited += 1
        else:
            hour.refused += 1
        # A key that has ended is not used, but tried.
        if now >= hour.look_at and status != 401:
            hour.look_at = now + LAST_USE_SECONDS
            hour.used_at, hour.address, hour.method, hour.route = now, request.address, request.method, route

    def _next_hour(self, caller: Caller, now: float) -> _Hour | None:
        """None if no more fit into memory."""
        if self.waiting >= HOURS_WAITING_MAX:
            return None
        before = self._hours.get(caller.api_key_id)
        if before is not None:
            self._earlier.append(before)
        hour = self._hours[caller.api_key_id] = _Hour(caller, now)
        return hour

    async def run(self) -> None:
        """Stores what was counted every PERIOD_SECONDS, until cancelled. Raises DatabaseUnavailable."""
        while True:
            await asyncio.sleep(PERIOD_SECONDS)
            await self.store()

    async def store(self) -> None:
        """Stores all that was counted. Raises DatabaseUnavailable; what is not stored then stays."""
        while (part := self._part or self._next_part()) is not None:
            self._part = part
            try:
                await queries.store(self._database, part)
            except asyncpg.PostgresError:  # the same part would fail again
                log.exception("key_usage_lost", hours=len(part.hours))
                LOST.inc(part.requests)
            self._part = None

    async def stop(self) -> None:
        """Stores what is left before the process ends."""
        try:
            await self.store()
        except DatabaseUnavailable as error:
            lost = self._part.requests if self._part else 0
            lost += sum(map(_requests, (*self._hours.values(), *self._earlier)))
            LOST.inc(lost)
            log.warning("key_usage_lost", requests=lost, reason=str(error))

    def _next_part(self) -> Part | None:
        """Takes the next rows out of memory; None if there are none."""
        hours = self._earlier[:PART_ROWS_MAX]
        del self._earlier[:PART_ROWS_MAX]
        while self._hours and len(hours) < PART_ROWS_MAX:
            hours.append(self._hours.popitem()[1])
        if not hours:
            return None
        self._number += 1
        last = [
            LastUse(hour.caller.api_key_id, _instant(hour.used_at), hour.address, f"{hour.method} {hour.route}")
            for hour in hours
            if hour.used_at
        ]
        return Part(self._writer, self._number, list(map(_row, hours)), last)


def _row(hour: _Hour) -> HourOfKey:
    caller = hour.caller
    begun = _instant(hour.ends_at - HOUR_SECONDS)
    return HourOfKey(
        caller.api_key_id,
        begun,
        caller.identity.company_id,
        hour.succeeded,
        hour.refused,
        hour.rate_limited,
        hour.failed,
    )


def _requests(hour: _Hour) -> int:
    return hour.succeeded + hour.refused + hour.rate_limited + hour.failed


def _instant(seconds: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC)
