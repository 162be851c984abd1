"""Retention: a claim and its reply are deleted after 30 days, and their key is new again (spec 4.13).

A row is deleted under its claim's lock, which a write with its key would take too: neither waits for the other. A
replay holds the row itself until its commit has reached the standby. A sweep that meets one waits, for `lock_timeout`
at most, and then begins anew. Rows are deleted in small batches, each a transaction of one statement, however many are
due.
"""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Awaitable, Callable, Sequence

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY

from chassis.auth.identity import Call
from chassis.db.database import Database
from chassis.db.statements import TIME, Statement, param
from chassis.runtime import traces
from chassis.schedule import instants
from chassis.schedule.future_instants import RecordSweep, guard
from chassis.writes.idempotency import Claim
from makeready.common.v1 import retention_pb2 as pb

KEPT = datetime.timedelta(days=30)
PERIOD_SECONDS = 3600
BATCH = 200  # locks held at once; PostgreSQL's table of them has room for some thousands

# Drops whole days that are due at an instant; returns how many.
RetentionHook = Callable[[datetime.datetime], Awaitable[int]]

_EPOCH = datetime.datetime.fromtimestamp(0, datetime.UTC)


class Retention:
    """Deletes old claims of one ledger. Any number of processes may run it at once: each row is deleted once."""

    def __init__(
        self,
        database: Database,
        claims: sa.Table,
        hooks: Sequence[RetentionHook] = (),
        record: RecordSweep | None = None,
    ) -> None:
        """Each of `hooks` drops other data whose retention is over. `record` stores who starts a sweep as of a future
        instant."""
        self._database, self._hooks, self._record = database, hooks, record
        c = claims.c
        due = (c.recorded_at >= param("after", TIME), c.recorded_at <= param("before", TIME))
        first = sa.select(*claims.primary_key, c.recorded_at).where(*due).order_by(c.recorded_at)
        self._due = Statement(first.limit(param("batch", sa.Integer)))
        kinds = {column.name: column.type for column in claims.primary_key} | {"lock": sa.BigInteger()}
        self._names = tuple(kinds)
        arrays = [param(name, ARRAY(kind)) for name, kind in kinds.items()]
        named = sa.func.unnest(*arrays).table_valued(*kinds).render_derived(name="named")
        locked = sa.select(*named.c).where(sa.func.pg_try_advisory_xact_lock(named.c.lock)).cte("locked")
        same = (column == locked.c[column.name] for column in claims.primary_key)
        # The time is checked again: the key may have been deleted and reused since it was found due.
        self._forget = Statement(sa.delete(claims).where(*same, c.recorded_at <= param("before", TIME)))

    async def sweep(self, now: datetime.datetime) -> int:
        """Deletes claims that are 30 days old at `now`, except those that a write holds locked; returns how many.

        Raises DatabaseUnavailable, also while this process's clock is wrong.
        """
        await self._database.check_clock()
        before, after, gone = max(now, _EPOCH + KEPT) - KEPT, _EPOCH, 0
        while rows := await self._database.rows(self._due, after=after, before=before, batch=BATCH):
            keys = [(row["company_id"], row["api_key_id"], row["idempotency_key"]) for row in rows]
            named = [(*key, Claim(*key, b"").lock) for key in keys]
            values = dict(zip(self._names, map(list, zip(*named, strict=True)), strict=True))
            done = await self._database.execute(self._forget, before=before, **values)
            deleted, last = int(done.split()[-1]), rows[-1]["recorded_at"]
            gone += deleted
            if len(rows) < BATCH or (last == after and not deleted):
                break
            after = last
        return gone

    async def SweepRetention(self, request: pb.SweepRetentionRequest, call: Call) -> pb.SweepRetentionResponse:
        now = request.now.ToDatetime(datetime.UTC) if request.HasField("now") else instants.now()
        await guard("retention", now, request, call, self._record)
        response = pb.SweepRetentionResponse(idempotency_keys=await self.sweep(now))
        response.days = sum([await hook(now) for hook in self._hooks])
        response.now.FromDatetime(now)
        return response


async def every_slot(
    work: Callable[[datetime.datetime], Awaitable[object]],
    clock: Callable[[], datetime.datetime] = instants.now,
    period_seconds: int = PERIOD_SECONDS,
) -> None:
    """Calls `work` with every slot until cancelled, or until the work fails. It begins with the last past slot, so that
    work which fell due while no process ran is not missed.

    By default slots are full hours: see `instants.slot_of`.
    """
    while True:
        traces.begin()
        slot = instants.slot_of(clock(), period_seconds)
        await work(slot)
        # Sleeps in short steps, because clocks are set and machines suspend.
        while instants.slot_of(now := clock(), period_seconds) == slot:  # noqa: ASYNC110 - a clock sets no event
            await asyncio.sleep(min(period_seconds - (now - slot).total_seconds(), 60))
