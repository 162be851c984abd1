"""Daily partitions of event, delivery and attempt, by the time in the event's id (UUIDv7).

They are made ahead of time, and on demand before an event is stored. A day is dropped as a whole thirty days after its
end, so the cost does not grow with its rows. An event whose day is over is not stored, even if the partitions still
exist: it would vanish with them unnoticed. The events of a sandbox are deleted by its own clock, which is never behind.
"""

from __future__ import annotations

import asyncio
import datetime
import uuid

import structlog
from prometheus_client import Counter, Gauge

from chassis.db.database import Database, DatabaseUnavailable
from chassis.db.partitions import HURRIED_SECONDS, PATIENT_SECONDS, ChangeBlocked
from chassis.runtime.failpoints import failpoint
from chassis.schedule.clocks import Companies
from chassis.schedule.instants import Clock
from svc_webhooks.by_index import BY_INDEX
from svc_webhooks.days import DAY, KEPT_DAYS, begins, day_of, first_day_kept, first_id
from svc_webhooks.events.queries import feed as queries_feed
from svc_webhooks.events.queries import partitions as queries
from svc_webhooks.events.queries.partitions import DAYS
from svc_webhooks.rules.events import drop_held_up

AHEAD_DAYS = 3
EVENTS_AT_ONCE = 1000
ENTRIES_AT_ONCE = 5000  # a few milliseconds, in which the company's next event waits
LOOK_SECONDS = 3600
# An id further ahead comes from a broken clock; its partitions would hinder every statement.
FUTURE_DAYS_MAX = 60

log = structlog.stdlib.get_logger(__name__)
DAYS_DROPPED = Counter("makeready_webhooks_days_dropped_total", "Days of events dropped with all that hung on them")
EXPIRING = Gauge("makeready_webhooks_expiring_deliveries", "Undelivered, and gone within a day", ["state"])


class Partitions:
    """Caches which days have partitions, makes missing days, and drops days that are over."""

    def __init__(self, database: Database, clock: Clock) -> None:
        """Days have the real clock."""
        self._database = database
        self._clock = clock
        self._held: set[datetime.date] = set()

    # Making

    async def run(self) -> None:
        """Makes some days ahead of the clock, until cancelled."""
        while True:
            await self.ahead()
            await asyncio.sleep(LOOK_SECONDS)

    async def ahead(self) -> None:
        today = self._clock().date()
        await self._make([today + number * DAY for number in range(AHEAD_DAYS + 1)], PATIENT_SECONDS)

    async def ensure_day(self, event_id: uuid.UUID) -> bool:
        """Makes sure that the partitions of an event's day exist; False if the day is over.

        Raises ValueError for an id too far in the future, and DatabaseUnavailable.
        """
        day, now = day_of(event_id), self._clock()
        if not first_day_kept(now) <= day <= now.date() + FUTURE_DAYS_MAX * DAY:
            # Refuses an event only if two clocks agree: this machine's clock may be the wrong one.
            now = await queries.clock(self._database)
        if day < first_day_kept(now):
            return False
        if day not in self._held:
            if day > now.date() + FUTURE_DAYS_MAX * DAY:
                raise ValueError(f"event {event_id} was made on {day}: a producer's clock is wrong")
            await self._make([day], HURRIED_SECONDS)
        return True

    def forget(self) -> None:
        """Clears the cache of days, because another process has dropped one."""
        self._held.clear()

    async def _make(self, days: list[datetime.date], turn_seconds: float) -> None:
        self._held = await DAYS.make_days(self._database, days, turn_seconds)

    # Dropping

    async def every_hour(self, slot: datetime.datetime) -> None:
        """Drops days that are over by the database's clock too, so that a machine whose clock jumps a year ahead
        deletes nothing."""
        try:
            now = min(slot, await queries.clock(self._database))
            await self.drop(now)
            soon = first_id(first_day_kept(now + DAY))
            for state, count in (await queries.undelivered_before(self._database, soon)).items():
                EXPIRING.labels(state).set(count)
                if count:
                    log.warning("deliveries_expire_within_a_day", state=state, deliveries=count)
        except DatabaseUnavailable as error:
            # The next hour tries again. An operator's request reports the reason instead.
            log.warning("days_not_dropped", reason=str(error))

    async def drop_as_asked(self, now: datetime.datetime) -> int:
        """For an operator's request: reports what holds up the drop. Raises Refusal."""
        try:
            return await self.drop(now)
        except ChangeBlocked:
            raise drop_held_up() from None

    async def drop(self, now: datetime.datetime) -> int:
        """Drops the days that are over as of `now` and finishes earlier drops; returns the number of days.

        Several processes may call it at once. Raises ChangeBlocked if a long statement is in the way; the next call
        finishes a drop that was begun.
        """
        first_day, days = first_day_kept(now), 0
        await self._shorten_feeds(first_day)  # first, so that no number is left whose event is gone
        self.forget()
        while (over := await DAYS.drop_next(self._database, first_day)) is not None:
            self.forget()
            days += len(over.days)
            DAYS_DROPPED.inc(len(over.days))
            log.info("day_dropped", day=over.since.isoformat(), days=len(over.days), kept_days=KEPT_DAYS)
        return days

    async def _shorten_feeds(self, first_day: datetime.date) -> None:
        """Deletes from the companies' feeds what was stored before `first_day`."""
        before = begins(first_day)
        for company_id in await queries_feed.companies_with_expired(self._database, before):
            gone = ENTRIES_AT_ONCE
            while gone == ENTRIES_AT_ONCE:
                async with self._database.transaction(BY_INDEX) as connection:
                    gone = len(await queries_feed.expired_deleted(connection, company_id, before, ENTRIES_AT_ONCE))
                failpoint("feed-shortened")

    async def expire(self, sandbox: Companies) -> None:
        """Deletes a sandbox's events that are over by its own clock, with all that hangs on them. Several processes
        may call it at once; any later call goes on after a kill. Raises DatabaseUnavailable."""
        assert sandbox.sandbox_id is not None
        before = begins(first_day_kept(sandbox.clock()))
        event_ids: list[uuid.UUID] | None = None
        while event_ids is None or event_ids:
            async with self._database.transaction(BY_INDEX) as connection:
                at = (connection, sandbox.sandbox_id, before, EVENTS_AT_ONCE)
                event_ids = await queries_feed.expired_deleted(*at) or await queries_feed.old_tests(*at)
                if event_ids:
                    await queries_feed.events_deleted(connection, event_ids)
            failpoint("sandbox-shortened")
