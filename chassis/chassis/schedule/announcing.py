"""Events that time alone causes: a sweep finds an overdue row, publishes its event and marks the row."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from asyncpg import Record

from chassis.db.database import Connection
from chassis.db.rows import UpdateMany
from chassis.db.statements import Values
from chassis.messaging.outbox import Outbox, event_key
from chassis.schedule.clocks import LIVE, Companies
from chassis.schedule.overdue import Overdue
from chassis.schedule.sweeps import Due


@dataclass(frozen=True, slots=True)
class Announcement:
    """The event of one overdue row.

    The `mark` is the row's key, and the columns after whose change it is no longer due. Without `data` no event is
    published.
    """

    company_id: int
    entity_id: int
    occurred_at: datetime.datetime
    data: bytes | None
    mark: Values


# Makes a row's announcement. Arguments: the row; the sweep's instant, which decides what is due; the instant of the
# company's clock, at which it is announced.
Announce = Callable[[Record, datetime.datetime, datetime.datetime], Announcement]


class Announcer:
    """Publishes one event for each overdue row."""

    def __init__(self, event: str, overdue: Overdue, outbox: Outbox, mark: UpdateMany, announce: Announce) -> None:
        """The event's key is for example `ticket.stale`. Each row's `Announcement.mark` is saved by `mark`.

        Raises ValueError for a key that is not in EventKey.
        """
        self._event, self._overdue, self._outbox = event_key(event), overdue, outbox
        self._mark, self._announce = mark, announce

    async def next_due(self, company_id: int) -> Due | None:
        """See `chassis.schedule.sweeps.Sweep`."""
        return Due.of(await self._overdue.next_due(company_id), self._event)

    async def sweep(self, now: datetime.datetime, companies: Companies = LIVE) -> Mapping[str, int]:
        """Publishes the events of the rows due at `now`; returns how many."""
        published = 0

        async def work(connection: Connection, rows: Sequence[Record]) -> None:
            nonlocal published
            clock = companies.clock()  # read under the rows' locks
            announced = [self._announce(row, now, clock) for row in rows]
            events = [
                self._outbox.public(
                    self._event,
                    company_id=announcement.company_id,
                    entity_id=announcement.entity_id,
                    occurred_at=announcement.occurred_at,
                    data=announcement.data,
                )
                for announcement in announced
                if announcement.data is not None
            ]
            await self._outbox.add_many(connection, events)
            await self._mark.run(connection, [announcement.mark for announcement in announced])
            published += len(events)

        await self._overdue.each(now, work, companies)
        if published:
            self._outbox.wake()
        return {self._event: published}
