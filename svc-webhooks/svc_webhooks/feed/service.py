"""The RPCs of integrations about events and deliveries: the feed, deliveries and attempts, tests, replays."""

from __future__ import annotations

import datetime
import uuid
from collections import defaultdict
from typing import Any

import msgspec
from asyncpg import CheckViolationError

from chassis.auth import identity
from chassis.db.database import Connection, DatabaseUnavailable
from chassis.db.ids import Ids
from chassis.lists.paging import ROWS_MAX
from chassis.messaging.outbox import uuid7
from chassis.records import bodies
from chassis.refusals import not_found
from chassis.writes import idempotency
from makeready.common.v1.documents_pb2 import Document, Page
from makeready.webhooks.v1 import webhooks_pb2 as pb
from svc_webhooks.administration.inputs import event_id_of, instant_of, state_of
from svc_webhooks.administration.queries import deliveries as queries_deliveries
from svc_webhooks.administration.queries.events import test_stored
from svc_webhooks.administration.service.attempts import AttemptRpcs, ids_before, test_event
from svc_webhooks.administration.service.dependencies import Dependencies
from svc_webhooks.days import OLDEST, first_id_at, made_at
from svc_webhooks.events.queries.feed import last_before
from svc_webhooks.feed import records, rules
from svc_webhooks.feed.events import FeedRpcs
from svc_webhooks.feed.positions import expired
from svc_webhooks.feed.queries import replays as queries
from svc_webhooks.feed.replays import Replays
from svc_webhooks.rules.deliveries import ALL
from svc_webhooks.rules.subscriptions import KIND
from svc_webhooks.tables.deliveries import replay, replay_id

NOUN = "webhook subscription"
ANSWER_BYTES_MAX = 4096
MINUTE = datetime.timedelta(minutes=1)
# Namespaces of advisory locks, one for each subscription.
_REPLAY_LOCK, _TEST_LOCK = 0x7265706C << 32, 0x74657374 << 32
# A position among deliveries: as long as every other one.
_FILL = bytes(8)

_encode = msgspec.json.Encoder().encode


class FeedService(FeedRpcs):
    """Another company's subscriptions, deliveries and replays do not exist for a caller."""

    def __init__(self, dependencies: Dependencies, replays: Replays) -> None:
        super().__init__(dependencies.database)
        self._dependencies = dependencies
        self._replays = replays
        self._attempts = AttemptRpcs(dependencies)
        self._ids = Ids(dependencies.database, replay_id)

    async def _target(self, company_id: int, sub_id: int) -> queries.Target:
        """Raises Refusal 404."""
        target = await queries.target(self._dependencies.database, company_id, sub_id)
        if target is None:
            raise not_found(NOUN)
        return target

    # Deliveries

    async def ListDeliveries(
        self, request: pb.FeedServiceListDeliveriesRequest, call: identity.Call
    ) -> pb.FeedServiceListDeliveriesResponse:
        company_id = identity.caller(call).company_id
        await self._target(company_id, request.sub_id)
        since = after = OLDEST
        if request.HasField("since"):
            since = await self._dependencies.first_id_since(call, company_id, instant_of(request.since, "since"))
        if request.position:
            if len(request.position) != len(_FILL) + 16:
                raise expired()
            after = uuid.UUID(bytes=request.position[len(_FILL) :])
        limit = min(request.limit, ROWS_MAX)
        rows, following = await queries_deliveries.deliveries_oldest(
            self._dependencies.database, request.sub_id, state_of(request.state), after, since, limit
        )
        attempts: dict[uuid.UUID, list[queries_deliveries.ShownAttempt]] = defaultdict(list)
        for attempt in await queries_deliveries.attempts_of(self._dependencies.database, rows, excerpt_bytes=0):
            attempts[attempt.event_id].append(attempt)
        data = _encode([records.delivery(row, attempts[row.event_id]) for row in rows])
        position = b"" if following is None else _FILL + following.bytes
        return pb.FeedServiceListDeliveriesResponse(page=Page(data=data, next_position=position))

    async def GetDelivery(
        self, request: pb.FeedServiceGetDeliveryRequest, call: identity.Call
    ) -> pb.FeedServiceGetDeliveryResponse:
        await self._target(identity.caller(call).company_id, request.sub_id)
        event_id = event_id_of(request.event_id)
        row = None
        if event_id is not None:
            row = await queries_deliveries.delivery_by_ids(self._dependencies.database, event_id, request.sub_id)
        if row is None:
            raise not_found("delivery of that event to that webhook subscription")
        json = await self._delivery(row)
        return pb.FeedServiceGetDeliveryResponse(document=Document(json=json, entity_id=request.sub_id))

    async def _delivery(self, row: queries_deliveries.ShownDelivery) -> bytes:
        attempts = await queries_deliveries.attempts_of(
            self._dependencies.database, [row], excerpt_bytes=ANSWER_BYTES_MAX
        )
        return _encode(records.delivery_with_answers(row, attempts))

    # Tests

    async def TestSubscription(
        self, request: pb.TestSubscriptionRequest, call: identity.Call
    ) -> pb.TestSubscriptionResponse:
        dependencies, sub_id, caller = self._dependencies, request.sub_id, identity.caller(call)
        _, same = bodies.decode(records.TestCreate, request.body)
        claim = idempotency.claim_of(request, caller, f"POST /webhooks/{sub_id}/test", same)
        event_id = uuid7()
        await dependencies.partitions.ensure_day(event_id)

        async def stored(connection: Connection) -> bytes:
            target = await queries.target_locked(connection, caller.company_id, sub_id)
            if target is None:
                raise not_found(NOUN)
            rules.check_company(target.active)
            since = first_id_at(made_at(event_id) - MINUTE)
            recent = await queries.tests_since(connection, caller.company_id, sub_id, since)
            if recent >= rules.TESTS_A_MINUTE:
                raise rules.too_many_tests()
            now = await dependencies.clocks.now(call, connection)
            event = test_event(event_id, caller.company_id, sub_id, now, call.request_id)
            await test_stored(connection, event, sub_id)
            return str(event_id).encode()

        lock = f"SELECT pg_advisory_xact_lock({_TEST_LOCK | (sub_id & 0xFFFFFFFF)})"
        try:
            reply = await queries.TEST.once(dependencies.database, claim, stored, lock)
        except CheckViolationError as fault:
            if fault.constraint_name:
                raise
            dependencies.partitions.forget()  # another process dropped a day that this one has cached
            raise DatabaseUnavailable("a day was dropped at this moment") from fault
        if not reply.body.startswith(b"{"):
            # The reply names the test, until the answer is stored in its place. A repeat whose first request was killed
            # before the attempt makes it here.
            row = await self._attempts.tested(ids_before(reply.body.decode(), sub_id, 0), caller.actor)
            # Of two requests that render the answer at once, the first one's stays.
            answer = await self._delivery(row)
            reply.body = await queries.TEST.replaced(dependencies.database, claim, reply.body, answer) or answer
        return pb.TestSubscriptionResponse(reply=reply)

    # Replays

    async def CreateReplay(self, request: pb.CreateReplayRequest, call: identity.Call) -> pb.CreateReplayResponse:
        dependencies, sub_id, caller = self._dependencies, request.sub_id, identity.caller(call)
        fields, same = bodies.decode(records.ReplayCreate, request.body)
        claim = idempotency.claim_of(request, caller, f"POST /webhooks/{sub_id}/replay", same)
        reply = await queries.CREATE_REPLAY.stored(dependencies.database, claim)
        if reply is None:
            target = await self._target(caller.company_id, sub_id)
            rules.check_sending(target.health, target.active)
            values = await self._values(caller, sub_id, target, fields, await dependencies.clocks.now(call))

            async def check(connection: Connection) -> None:
                if await queries.is_under_way(connection, sub_id):
                    raise rules.replay_under_way()

            new_replay = queries.Replay(**values)
            body = _encode(records.replay(new_replay, new_replay.matched, 0, 0))
            changed = [(caller.company_id, KIND, sub_id)]
            lock = _REPLAY_LOCK | (sub_id & 0xFFFFFFFF)
            reply = await queries.CREATE_REPLAY.write_checked(
                dependencies.database, claim, 202, body, {replay: values}, changed, lock=lock, check=check
            )
            self._replays.wake()
        return pb.CreateReplayResponse(reply=reply)

    async def _values(
        self,
        caller: identity.Identity,
        sub_id: int,
        target: queries.Target,
        fields: records.ReplayCreate,
        now: datetime.datetime,
    ) -> dict[str, Any]:
        """The row of a new replay. Raises Refusal 422."""
        database, company_id = self._dependencies.database, caller.company_id
        keys = rules.replayed_keys(fields.events, target.events)
        since, until = fields.since, min(fields.until or now, now)
        rules.check_range(since, until)
        after = await last_before(database, company_id, since)
        last = await last_before(database, company_id, until)
        matched = await queries.counted(database, company_id, keys, after, last, rules.REPLAYED_EVENTS_MAX)
        rules.check_size(matched)
        state = fields.state or ALL
        if state != ALL:
            matched = await queries.counted_in_state(database, company_id, sub_id, keys, after, last, state)
        return {
            "id": await self._ids.next(),
            "company_id": company_id,
            "subscription_id": sub_id,
            "since": since,
            "until": until,
            "events": keys,
            "state": state,
            "after_position": after,
            "until_position": last,
            "matched": matched,
            "queued": 0,
            "created_at": now,
            "created_by": caller.actor,
            "finished_at": None,
            "succeeded": 0,
            "failed": 0,
        }

    async def GetReplay(self, request: pb.GetReplayRequest, call: identity.Call) -> pb.GetReplayResponse:
        company_id = identity.caller(call).company_id
        await self._target(company_id, request.sub_id)
        replay = await queries.replay_of(self._dependencies.database, company_id, request.sub_id, request.replay_id)
        if replay is None:
            raise not_found("replay")
        waiting, succeeded, failed = 0, replay.succeeded, replay.failed
        if replay.finished_at is None:
            waiting, outcome = await queries.progress(self._dependencies.database, replay)
            succeeded, failed = outcome
            if not replay.is_queued:
                waiting = max(replay.matched - replay.queued, 0) + waiting
        json = _encode(records.replay(replay, waiting, succeeded, failed))
        return pb.GetReplayResponse(document=Document(json=json, entity_id=replay.id))
