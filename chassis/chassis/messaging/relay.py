"""The relay from the outbox to NATS, and the RPCs by which consumers fetch events that NATS lost.

Rows are claimed by their state, never by "id greater than the last": sequences and clocks do not commit in
order. NATS is a transport and not the record: it acknowledges a message before it is synced to disk.
"""

from __future__ import annotations

import asyncio
import datetime
import time
import uuid
from collections.abc import Mapping, Sequence
from operator import itemgetter

import sqlalchemy as sa
import structlog
from asyncpg import Record
from prometheus_client import Counter, Gauge
from sqlalchemy.dialects.postgresql import ARRAY, insert

from chassis.auth.identity import Call, IdentityError
from chassis.db.database import NEW_PLANS, Database
from chassis.db.statements import TIME, UUIDS, Statement, param
from chassis.messaging.outbox import Outbox, includes
from chassis.messaging.transport import FAULTS, Transport
from chassis.refusals import Unavailable
from chassis.runtime.failpoints import failpoint
from makeready.events.v1 import events_pb2 as pb

BATCH = 200
POLL_SECONDS = 1.0
CLAIM_SECONDS = 15
SETTLE_SECONDS = 2.0
CLAIMED_SECONDS = 0.01
COUNT_SECONDS = 10.0  # counting takes longer the more events wait
# NATS writes each message to its file before it acknowledges it. So waiting events share a message, up to this size.
PACK_BYTES = 128 * 1024
LINGER_SECONDS = 0.05  # events written meanwhile share a batch: 8 % less CPU a create at 500 a second
Consumers = Mapping[str, Sequence[str]]
KEPT = datetime.timedelta(days=3)

log = structlog.stdlib.get_logger(__name__)
PUBLISHED = Counter("makeready_outbox_published_total", "Events handed to NATS")
UNPUBLISHED = Gauge(
    "makeready_outbox_unpublished",
    "Events that wait: all of them while NATS is away, otherwise those of the last batch that it did not take",
)


def packed(rows: Sequence[Record]) -> list[list[Record]]:
    """The rows in packs. A pack is one message: rows of one subject, in order, until it reaches PACK_BYTES."""
    packs: list[list[Record]] = []
    for row in sorted(rows, key=itemgetter("subject", "event_id")):
        last = packs[-1] if packs and packs[-1][0]["subject"] == row["subject"] else []
        if not last or sum(len(packed_row["message"]) for packed_row in last) >= PACK_BYTES:
            packs.append(last := [])
        last.append(row)
    return packs


class Relay:
    """Publishes one producer's outbox. Any number of relays may run at once; each row is claimed by one."""

    def __init__(
        self,
        database: Database,
        outbox: Outbox,
        transport: Transport,
        consumers: Consumers,
        claim_seconds: int = CLAIM_SECONDS,
    ) -> None:
        """The contents that each of the `consumers` consumes are by name, as `content_of` spells them; "public" means
        all public events. A claim lasts `claim_seconds`; then another relay may claim the row if it is not
        published."""
        self._database = database
        self._claim_seconds = claim_seconds
        self._outbox = outbox
        self._transport = transport
        self._consumers = consumers
        t = outbox.table
        confirmation = t.metadata.tables["outbox_confirmation"]
        batch, mine = param("batch", sa.Integer), t.c.event_id == sa.func.any(param("ids", UUIDS))
        waiting = sa.select(t.c.event_id).where(t.c.published_at.is_(None), t.c.claimed_until < sa.func.now())
        length = param("claim_seconds", sa.Integer) * sa.literal_column("interval '1 second'")
        free = waiting.order_by(t.c.event_id).limit(batch).with_for_update(skip_locked=True).cte("free")
        claimed = sa.update(t).where(t.c.event_id == free.c.event_id)
        claimed = claimed.values(claimed_until=sa.func.now() + length)
        self._claim = Statement(claimed.returning(t.c.event_id, t.c.subject, t.c.message))
        self._published = Statement(sa.update(t).where(mine).values(published_at=sa.func.now()))
        self._release = Statement(sa.update(t).where(mine).values(claimed_until=sa.text("'-infinity'")))
        self._unpublished = Statement(sa.select(sa.func.count()).where(t.c.published_at.is_(None)))
        first = sa.select(t.c.message).where(t.c.published_at.is_(None)).order_by(t.c.event_id)
        self._first_unpublished = Statement(first.limit(sa.literal_column(str(BATCH))))
        self._events = Statement(sa.select(t.c.subject, t.c.message).where(mine))
        recorded = sa.select(t.c.event_id).where(
            t.c.recorded_at >= param("since", TIME),
            t.c.event_id > param("after", sa.UUID),
            t.c.subject.op("^@")(sa.func.any(param("subjects", ARRAY(sa.Text)))),
        )
        self._ids = Statement(recorded.order_by(t.c.event_id).limit(batch))
        self._clock = Statement(sa.select(sa.func.clock_timestamp()))
        confirm = insert(confirmation).values({c: param(c.name, c.type) for c in confirmation.c})
        later = sa.func.greatest(confirmation.c.recorded_until, confirm.excluded.recorded_until)
        self._confirm = Statement(
            confirm.on_conflict_do_update(index_elements=["consumer"], set_={"recorded_until": later})
        )
        self._confirmed = Statement(sa.select(confirmation))
        done = sa.select(t.c.event_id).where(t.c.published_at.is_not(None), t.c.recorded_at < param("before", TIME))
        self._purge = Statement(sa.delete(t).where(t.c.event_id.in_(done.limit(1000))))

    async def run(self) -> None:
        """Publishes until cancelled. It waits while NATS or PostgreSQL is away."""
        reason = ""
        count_at = 0.0
        while True:
            self._outbox.woken.clear()
            try:
                if not self._transport.is_connected and time.monotonic() >= count_at:
                    UNPUBLISHED.set(await self._database.value(self._unpublished))
                    count_at = time.monotonic() + COUNT_SECONDS
                while self._transport.is_connected and await self.publish_some() == BATCH:
                    pass
                reason = ""
            except (Unavailable, *FAULTS) as error:
                if reason != (reason := str(error) or type(error).__name__):  # one line, however long it lasts
                    if self._transport.is_full:
                        log.error("nats_disk_full", reason=reason)
                    else:
                        log.warning("outbox_waits", reason=reason)
                await asyncio.sleep(POLL_SECONDS)
            try:
                await asyncio.wait_for(self._outbox.woken.wait(), POLL_SECONDS)
            except TimeoutError:
                continue
            await asyncio.sleep(LINGER_SECONDS)

    async def publish_some(self) -> int:
        """Publishes one batch and returns how many rows it claimed."""
        rows = await self._database.rows(self._claim, batch=BATCH, claim_seconds=self._claim_seconds)
        if not rows:
            UNPUBLISHED.set(0)
            return 0
        failpoint("relay-claimed")
        packs = packed(rows)
        outcomes = await asyncio.gather(*map(self._publish, packs), return_exceptions=True)
        failpoint("relay-published")
        arrived = (pack for pack, out in zip(packs, outcomes, strict=True) if not isinstance(out, BaseException))
        done = [row["event_id"] for pack in arrived for row in pack]
        failed = [out for out in outcomes if isinstance(out, BaseException)]
        self._transport.observe(failed)
        UNPUBLISHED.set(len(rows) - len(done))  # not before: a busy relay always has a batch under way
        if done:
            await self._database.execute(self._published, ids=done)
            PUBLISHED.inc(len(done))
        if failed:
            unpublished = [row["event_id"] for row in rows if row["event_id"] not in done]
            await self._database.execute(self._release, ids=unpublished)
            raise failed[0]
        return len(rows)

    async def publish_of(self, company_id: int) -> bool:
        """Publishes what waits, until no event of the company does. False if one still waits after SETTLE_SECONDS, or
        while NATS is away."""
        give_up_at = time.monotonic() + SETTLE_SECONDS
        while True:
            waiting = await self._database.rows(self._first_unpublished)
            is_cut = len(waiting) == BATCH
            if not is_cut and all(pb.Event.FromString(row["message"]).company_id != company_id for row in waiting):
                return True
            if time.monotonic() >= give_up_at or not self._transport.is_connected:
                return False
            try:
                if not await self.publish_some():  # another relay has claimed them
                    await asyncio.sleep(CLAIMED_SECONDS)
            except FAULTS:
                return False

    async def _publish(self, pack: Sequence[Record]) -> None:
        subject, message, first_id = itemgetter("subject", "message", "event_id")(pack[0])
        # In protobuf, the concatenation of two serialized messages is the serialized message of all their fields.
        message += pb.Event(more=[row["message"] for row in pack[1:]]).SerializeToString()
        # NATS drops a message whose id it has seen lately, so the id stands for exactly these events.
        message_id = uuid.uuid5(first_id, str([row["event_id"] for row in pack]))
        await self._transport.jetstream.publish(subject, message, headers={"Nats-Msg-Id": str(message_id)})

    async def purge(self, now: datetime.datetime) -> int:
        """Deletes published events three days old at `now` that every consumer confirmed; returns how many."""
        await self._database.check_clock()
        confirmed = {row["consumer"]: row["recorded_until"] for row in await self._database.rows(self._confirmed)}
        if not self._consumers.keys() <= confirmed.keys():
            return 0
        before = min([now - KEPT, *(confirmed[name] for name in self._consumers)])
        gone = 0
        while deleted := int((await self._database.execute(self._purge, before=before)).split()[-1]):
            gone += deleted
        return gone

    async def GetOutbox(self, _request: pb.GetOutboxRequest, _call: Call) -> pb.GetOutboxResponse:
        unpublished = await self._database.value(self._unpublished)
        UNPUBLISHED.set(unpublished)
        return pb.GetOutboxResponse(unpublished=unpublished)

    def _allowed(self, call: Call) -> list[str]:
        """The subjects that the caller consumes. Raises IdentityError if it consumes none."""
        contents = self._consumers.get(call.identity.issuer)
        if not contents:
            raise IdentityError(f"{call.identity.issuer} consumes no events of {self._outbox.producer}")
        return [f"events.{self._outbox.producer}.{content}" for content in contents]

    async def ListEventIds(self, request: pb.ListEventIdsRequest, call: Call) -> pb.ListEventIdsResponse:
        allowed = self._allowed(call)
        if not all(includes(allowed, subject) for subject in request.subjects):
            # An answer without those events would count as "there are none".
            raise IdentityError(f"{call.identity.issuer} consumes of {self._outbox.producer} only {', '.join(allowed)}")
        as_of = await self._database.value(self._clock)
        async with self._database.transaction(writes=False) as connection:
            # The best plan depends on the values: a recent instant is read by time, an old one by id.
            await connection.raw.execute(f"SET LOCAL plan_cache_mode = {NEW_PLANS}")
            rows = await connection.rows(
                self._ids,
                since=request.recorded_since.ToDatetime(datetime.UTC),
                after=uuid.UUID(request.after_event_id) if request.after_event_id else uuid.UUID(int=0),
                subjects=list(request.subjects),
                batch=min(request.limit or 1000, 5000),
            )
        response = pb.ListEventIdsResponse(event_ids=[str(row["event_id"]) for row in rows])
        response.as_of.FromDatetime(as_of)
        return response

    async def BatchGetEvents(self, request: pb.BatchGetEventsRequest, call: Call) -> pb.BatchGetEventsResponse:
        allowed = self._allowed(call)
        rows = await self._database.rows(self._events, ids=[uuid.UUID(event_id) for event_id in request.event_ids])
        events = [pb.Event.FromString(row["message"]) for row in rows if includes(allowed, row["subject"])]
        return pb.BatchGetEventsResponse(events=events)

    async def ConfirmEvents(self, request: pb.ConfirmEventsRequest, call: Call) -> pb.ConfirmEventsResponse:
        self._allowed(call)
        await self._database.execute(
            self._confirm, consumer=call.identity.issuer, recorded_until=request.recorded_until.ToDatetime(datetime.UTC)
        )
        return pb.ConfirmEventsResponse()
