"""A consumer applies each event once, in the transaction that records it in the inbox, and then acknowledges it.

NATS delivers most events. `catch_up` fetches from the producers' outboxes those that NATS did not deliver (lost,
deleted, delayed, or still on their way). `TakeEvents` gets some from the producer itself, right after its commit (see
`handover`). All ways end in the same transaction, so an event may take several.

An event's producer is the one that its subject names, because a NATS user may publish below its own subjects only; the
service whose outbox it came from; or the service that called. No field of the event says so.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import uuid
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import NamedTuple

import sqlalchemy as sa
import structlog
from google.protobuf.message import DecodeError
from nats.aio.msg import Msg
from nats.js.client import JetStreamContext
from prometheus_client import Counter
from sqlalchemy.dialects.postgresql import UUID, insert

from chassis.auth.clients import ServiceClient
from chassis.auth.identity import Call
from chassis.db.belonging import to_no_company
from chassis.db.database import ClockSkew, Connection, Database
from chassis.db.rows import array_rows
from chassis.db.statements import CLOCK, TIME, UUIDS, Statement, param
from chassis.messaging.outbox import content_of, includes
from chassis.messaging.transport import FAULTS, STREAM, Transport
from chassis.refusals import Refusal, Unavailable
from chassis.runtime.failpoints import failpoint
from makeready.events.v1 import events_pb2 as pb

BATCH = 200
MESSAGES = 20  # per fetch; each may carry a pack of events
ACK_SECONDS = 30
IDLE_FETCHES_MAX = 12  # a pull subscription may not resume after a restart of the server
MARGIN = datetime.timedelta(seconds=60)  # longer than any transaction may stay open
RECONCILE_SECONDS = 30

log = structlog.stdlib.get_logger(__name__)
APPLIED = Counter("makeready_consumer_applied_total", "Events applied", ["by"])
POISON = Counter("makeready_consumer_poison_total", "Events that failed alone and were put back")

MISPLACED = Counter("makeready_consumer_misplaced_total", "Events dropped: not what their subject says", ["producer"])


class Produced(NamedTuple):
    """An event, and the service that it is from."""

    producer: str
    event: pb.Event


Apply = Callable[[Connection, Sequence[pb.Event]], Awaitable[None]]
# Removes from events what their producers may not say or what their owners do not confirm. Returns the ids of events
# that must wait, because an owner is away.
Examine = Callable[[Sequence[Produced]], Awaitable[set[str]]]


async def examine_nothing(_events: Sequence[Produced]) -> set[str]:
    """For a context without replicas."""
    return set()


def inbox_table(metadata: sa.MetaData) -> sa.Table:
    """Ids of the events that this context has applied, and until when each producer's outbox was compared."""
    sa.Table(
        "reconciled",
        metadata,
        sa.Column("producer", sa.Text, primary_key=True),
        sa.Column("recorded_until", TIME, nullable=False),
        info=to_no_company("the names of producers"),
    )
    return sa.Table(
        "inbox",
        metadata,
        sa.Column("event_id", UUID(as_uuid=True), primary_key=True),
        sa.Column("applied_at", TIME, nullable=False, server_default=CLOCK, index=True),
        info=to_no_company("ids of events, without what they say"),
    )


class Consumer:
    """One context's durable consumer, whose `apply` changes the database in the inbox's transaction."""

    def __init__(
        self,
        name: str,
        database: Database,
        inbox: sa.Table,
        transport: Transport,
        apply: Apply,
        subjects: Mapping[str, Sequence[str]],
        clients: Mapping[str, ServiceClient],
        examine: Examine = examine_nothing,
    ) -> None:
        """The contents to consume are `subjects`, by producer, as `content_of` spells them: {"svc-orders":
        ["references"]}; "public" means all public events. Before each transaction `examine` runs."""
        self._name = name
        self._database = database
        self._transport = transport
        self._apply = apply
        self._subjects = subjects
        self._examine = examine
        self._producers = {producer: clients[producer] for producer in subjects}
        self._catching_up = asyncio.Lock()
        for producer_name in subjects:
            MISPLACED.labels(producer_name)  # from the start, so that the first one counts as an increase
        reconciled = inbox.metadata.tables["reconciled"]
        ids = param("ids", UUIDS)
        offered = array_rows("offered", {"event_id": UUID(as_uuid=True), "company_id": sa.BigInteger})
        record = insert(inbox).from_select(
            ["event_id"], sa.select(offered.c.event_id).order_by(offered.c.event_id), include_defaults=False
        )
        fresh = record.on_conflict_do_nothing().returning(inbox.c.event_id).cte("fresh")
        to_apply = sa.select(fresh.c.event_id).join(offered, offered.c.event_id == fresh.c.event_id)
        if (company := inbox.metadata.tables.get("company")) is not None:
            # Nothing of a company that has ended comes back.
            to_apply = to_apply.where(~sa.exists().where(company.c.id == offered.c.company_id, company.c.ended))
        # In the order of their ids, which ascend with time. A join has none of its own.
        self._record = Statement(to_apply.order_by(fresh.c.event_id))
        self._known = Statement(sa.select(inbox.c.event_id).where(inbox.c.event_id == sa.func.any(ids)))
        producer = param("producer", sa.Text)
        self._since = Statement(sa.select(reconciled.c.recorded_until).where(reconciled.c.producer == producer))
        until = param("recorded_until", TIME)
        advance = insert(reconciled).values(producer=producer, recorded_until=until)
        self._advance = Statement(
            advance.on_conflict_do_update(index_elements=["producer"], set_={"recorded_until": until})
        )

    # From NATS

    async def run(self) -> None:
        """Applies events from NATS until cancelled."""
        reason = ""
        while True:
            await self._transport.connected()
            try:
                await self._drain(await self._transport.pull(self._name))
                reason = ""
            except ClockSkew:  # logged once, where the clocks are compared
                await asyncio.sleep(1)
            except (Unavailable, *FAULTS) as error:
                # It asks every second, and reports each reason once: the operator may not have made the consumer yet.
                if reason != (reason := str(error) or type(error).__name__):
                    log.warning("consumer_waits", reason=reason)
                await asyncio.sleep(1)

    async def _drain(self, subscription: JetStreamContext.PullSubscription) -> None:
        idle = 0
        while idle < IDLE_FETCHES_MAX:
            try:
                # fetch() waits until its batch is full, so wait for one message, then briefly for more.
                messages = await subscription.fetch(1, timeout=5)
            except TimeoutError:
                idle += 1
                continue
            idle = 0
            with contextlib.suppress(TimeoutError):
                messages += await subscription.fetch(MESSAGES - 1, timeout=0.02)
            await self._take(messages)
        await subscription.unsubscribe()

    async def _take(self, messages: list[Msg]) -> None:
        packs = [self._of_message(message) for message in messages]
        refused = await self.store_what_applies([produced for pack in packs for produced in pack], by="nats")
        failpoint("consumer-before-ack")
        for message, pack in zip(messages, packs, strict=True):
            ids = {produced.event.event_id for produced in pack}
            await (message.nak(delay=ACK_SECONDS) if refused & ids else message.ack())

    def _of_message(self, message: Msg) -> list[Produced]:
        _, producer, content = message.subject.split(".", 2)
        return self._consumed(producer, read(message), [content])

    def _consumed(
        self, producer: str, events: Sequence[pb.Event], contents: Sequence[str] | None = None
    ) -> list[Produced]:
        """The events that this context consumes from the producer. It counts and drops others, and those whose content
        is none of `contents`: the subject does not vouch for it."""
        subjects = self._subjects.get(producer, ())
        consumed = []
        for event in events:
            content = content_of(event)
            if includes(subjects, content) and (contents is None or content in contents):
                consumed.append(Produced(producer, event))
        if lost := len(events) - len(consumed):
            MISPLACED.labels(producer).inc(lost)
            log.error("events_misplaced", producer=producer, events=lost)
        return consumed

    async def store_what_applies(self, events: Sequence[Produced], by: str) -> set[str]:
        """Applies the events together; if that fails, one by one, so a bad one blocks no other. Returns the ids of the
        bad ones, and of those that must wait for an owner."""
        waiting = await self._examine(events)
        ready = [produced.event for produced in events if produced.event.event_id not in waiting]
        return waiting | await self._store_each(ready, by)

    async def _store_each(self, events: Sequence[pb.Event], by: str) -> set[str]:
        try:
            await self.store(events, by)
        except Unavailable:
            raise
        except Exception:
            log.exception("events_refused", events=[event.event_id for event in events])
            POISON.inc()
            if len(events) == 1:
                return {events[0].event_id}
            return set().union(*[await self._store_each([event], by) for event in events])
        return set()

    async def store(self, events: Sequence[pb.Event], by: str) -> int:
        """Applies the events that the inbox lacks, all in one transaction; returns how many. Those of companies that
        have ended are noted in the inbox alone."""
        if not events:
            return 0
        offered = {uuid.UUID(event.event_id): event for event in events}
        async with self._database.transaction() as connection:
            companies = [event.company_id for event in offered.values()]
            rows = await connection.rows(self._record, event_id=list(offered), company_id=companies)
            fresh = [offered[row["event_id"]] for row in rows]
            if fresh:
                await self._apply(connection, fresh)
            failpoint("consumer-before-commit")
        APPLIED.labels(by).inc(len(fresh))
        return len(fresh)

    # From the producers' outboxes

    async def reconcile(self) -> None:
        """Compares the inbox with every producer's outbox every 30 s, until cancelled."""
        while True:
            await asyncio.sleep(RECONCILE_SECONDS)
            for producer in self._producers:
                try:
                    await self._catch_up_with(producer)
                except (Unavailable, Refusal) as error:
                    log.info("producer_away", producer=producer, reason=str(error))

    async def catch_up(self, producers: Collection[str] = ()) -> int:
        """Applies all events that these producers, by default all, recorded before the call; returns how many it
        fetched.

        Raises Unavailable if a producer or this service's database is away.
        """
        chosen = [producer for producer in self._producers if not producers or producer in producers]
        return sum([await self._catch_up_with(producer) for producer in chosen])

    async def _catch_up_with(self, producer: str) -> int:
        async with self._catching_up:
            outbox = self._producers[producer]
            since = await self._database.value(self._since, producer=producer)
            subjects = [f"events.{producer}.{content}" for content in self._subjects[producer]]
            request = pb.ListEventIdsRequest(subjects=subjects, limit=2000)
            if since is not None:
                request.recorded_since.FromDatetime(since - MARGIN)
            fetched, as_of = 0, None
            while True:
                page = await outbox.call(request, pb.ListEventIdsResponse)
                as_of = as_of or page.as_of.ToDatetime(datetime.UTC)
                fetched += await self._fetch_missing(producer, list(page.event_ids))
                if len(page.event_ids) < request.limit:
                    break
                request.after_event_id = page.event_ids[-1]
            await self._database.execute(self._advance, producer=producer, recorded_until=as_of)
            confirm = pb.ConfirmEventsRequest()
            confirm.recorded_until.FromDatetime(as_of - MARGIN)
            await outbox.call(confirm, pb.ConfirmEventsResponse)
            return fetched

    async def _fetch_missing(self, producer: str, event_ids: list[str]) -> int:
        stored = await self._database.rows(self._known, ids=[uuid.UUID(event_id) for event_id in event_ids])
        missing = sorted(set(event_ids) - {str(row["event_id"]) for row in stored})
        fetched = 0
        for start in range(0, len(missing), BATCH):
            request = pb.BatchGetEventsRequest(event_ids=missing[start : start + BATCH])
            events = await self._producers[producer].call(request, pb.BatchGetEventsResponse)
            produced_events = self._consumed(producer, events.events)
            if await self._examine(produced_events):  # or this comparison would count as done without them
                raise Unavailable(f"an owner of rows in the events of {producer} is away")
            fetched += len(produced_events) - len(
                await self._store_each([produced.event for produced in produced_events], by="outbox")
            )
        return fetched

    async def CatchUp(self, _request: pb.CatchUpRequest, _call: Call) -> pb.CatchUpResponse:
        return pb.CatchUpResponse(fetched=await self.catch_up())

    async def TakeEvents(self, request: pb.TakeEventsRequest, call: Call) -> pb.TakeEventsResponse:
        events = [pb.Event.FromString(message) for message in request.messages]
        await self.store_what_applies(self._consumed(call.identity.issuer, events), by="handover")
        return pb.TakeEventsResponse()

    async def GetLag(self, _request: pb.GetLagRequest, _call: Call) -> pb.GetLagResponse:
        response = pb.GetLagResponse()
        if self._transport.is_connected:
            with contextlib.suppress(*FAULTS):
                info = await self._transport.jetstream.consumer_info(STREAM, self._name)
                response.pending = (info.num_pending or 0) + (info.num_ack_pending or 0)
        return response


def read(message: Msg) -> list[pb.Event]:
    """The events that a message carries; none if it cannot be read, so that it is acknowledged and dropped."""
    try:
        first = pb.Event.FromString(message.data)
        events = [first, *map(pb.Event.FromString, first.more)]
        for event in events:
            uuid.UUID(event.event_id)
    except (DecodeError, ValueError):
        log.error("message_unreadable", subject=message.subject)
        return []
    return events
