"""The RPCs of deliveries: sweeps, lists, one delivery whole, counts and statistics."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Sequence
from urllib.parse import urlsplit

from chassis.auth import identity
from chassis.auth.identity import may_administer
from chassis.db.database import Database
from chassis.refusals import invalid_request
from chassis.schedule.instants import Clock
from makeready.webhooks.v1 import webhooks_pb2 as pb
from svc_webhooks.administration import records, rules, scan, subjects
from svc_webhooks.administration.inputs import (
    Stretch,
    event_id_of,
    instant_of,
    key_of,
    keys_of,
    limit_of,
    state_of,
)
from svc_webhooks.administration.queries import changes as queries_changes
from svc_webhooks.administration.queries import deliveries as queries
from svc_webhooks.administration.queries import events as queries_events
from svc_webhooks.administration.queries import subscriptions as queries_subscriptions
from svc_webhooks.administration.queries.deliveries import ShownDelivery
from svc_webhooks.administration.queries.subscriptions import StepCounts
from svc_webhooks.administration.service.dependencies import Dependencies
from svc_webhooks.days import NEWEST, OLDEST, expires_at, made_at
from svc_webhooks.dispatch.signature import SIGNATURE, request_headers, signature_headers, traceparent_of
from svc_webhooks.http_client.destinations import DestinationRefused
from svc_webhooks.http_client.response import EXCERPT_BYTES_MAX
from svc_webhooks.rules.deliveries import PARKED
from svc_webhooks.rules.subscriptions import no_such_subscription

DELIVERIES_DEFAULT, DELIVERIES_MAX = 50, 200
YEAR_MAX = 9000
LAST_EXCERPT_BYTES_MAX = 512  # for lists of last attempts alone, which can have a hundred thousand entries
# For one response: bytes that are not UTF-8 become three times as long, and a message may have 32 MiB.
EXCERPTS_BYTES_MAX = 8 * 1024 * 1024
STEPS = {pb.STATS_STEP_HOUR: datetime.timedelta(hours=1), pb.STATS_STEP_DAY: datetime.timedelta(days=1)}
STEP_NAMES = {pb.STATS_STEP_HOUR: "hour", pb.STATS_STEP_DAY: "day"}
STATS_DAYS_MAX = 31
ANSWERS_MAX = 20
SUBSCRIPTIONS_AT_ONCE = 1000


class DeliveriesService:
    """Sweeps, lists and counts deliveries."""

    def __init__(self, dependencies: Dependencies) -> None:
        self._dependencies = dependencies

    async def SweepDeliveries(
        self, request: pb.SweepDeliveriesRequest, _call: identity.Call
    ) -> pb.SweepDeliveriesResponse:
        now = instant_of(request.now, "now") if request.HasField("now") else self._dependencies.clocks.real()
        if now.year > YEAR_MAX:
            raise invalid_request("now is too far ahead for a ladder to follow it.", "now")
        stored, counts = await self._dependencies.scheduler.sweep(now)
        response = pb.SweepDeliveriesResponse(
            stored=stored,
            attempted=counts.attempted,
            succeeded=counts.succeeded,
            failed=counts.failed,
            parked=counts.parked,
            waiting_for_host=counts.waiting_for_host,
        )
        response.now.FromDatetime(now)
        return response

    async def ListDeliveries(self, request: pb.ListDeliveriesRequest, call: identity.Call) -> pb.ListDeliveriesResponse:
        state = state_of(request.state)
        keys = keys_of(request.event, request.entity_type)
        entity_id = request.entity_id if request.HasField("entity_id") else None
        if (entity_id is None) != (not request.entity_type):
            raise invalid_request("entity_type and entity_id go together.", "entity_id")
        company_id = await queries.company_of(self._dependencies.database, request.sub_id)
        if company_id is None or not may_administer(call, company_id):
            raise no_such_subscription()
        stretch = await self._dependencies.stretch(call, company_id, request)
        limit = limit_of(request, DELIVERIES_DEFAULT, DELIVERIES_MAX)
        is_filtered = bool(request.event) or entity_id is not None
        if is_filtered and (state != PARKED or entity_id is not None):
            rows, following = await self._by_events(request.sub_id, company_id, keys, entity_id, state, stretch, limit)
        else:
            rows, following = await self._newest(request.sub_id, keys if is_filtered else None, state, stretch, limit)
        response = pb.ListDeliveriesResponse(
            deliveries=await shown(
                self._dependencies.database, rows, self._dependencies.rungs, without_excerpts=request.without_excerpts
            )
        )
        names = await abouts(self._dependencies.database, [row.event_id for row in rows])
        for delivery in response.deliveries:
            delivery.about = names.get(delivery.event_id, "")
        if following is not None:
            response.next_before_event_id = str(following)
        return response

    async def _newest(
        self, sub_id: int, keys: Sequence[str] | None, state: str | None, stretch: Stretch, limit: int
    ) -> tuple[list[ShownDelivery], uuid.UUID | None]:
        """By the subscription's deliveries: all, or the parked ones with some keys, of which there are few."""

        async def read(before: uuid.UUID, rows: int) -> Sequence[ShownDelivery]:
            return await queries.deliveries_newest(
                self._dependencies.database, sub_id, state, before, stretch.since, rows
            )

        async def passing(rows: Sequence[ShownDelivery]) -> Sequence[ShownDelivery]:
            return [row for row in rows if keys is None or row.event in keys]

        return await scan.page(read, passing if keys is not None else None, stretch.before, limit)

    async def _by_events(
        self,
        sub_id: int,
        company_id: int,
        keys: Sequence[str],
        entity_id: int | None,
        state: str | None,
        stretch: Stretch,
        limit: int,
    ) -> tuple[list[ShownDelivery], uuid.UUID | None]:
        """By the company's events with a key, or about a record."""
        page: list[ShownDelivery] = []
        before: uuid.UUID | None = stretch.before
        for _ in range(scan.LOOKS_MAX):
            assert before is not None
            rows = await queries_events.events_newest(
                self._dependencies.database,
                company_id,
                keys,
                entity_id=entity_id,
                request_id="",
                before=before,
                since=stretch.since,
                rows=scan.ROWS_AT_ONCE,
            )
            ids = [row.event_id for row in rows if row.event in keys]
            deliveries = await queries.deliveries_of_events(self._dependencies.database, ids)
            of_subscription = [
                delivery
                for delivery in deliveries
                if delivery.subscription_id == sub_id and state in (None, delivery.state)
            ]
            page += sorted(of_subscription, key=lambda delivery: delivery.event_id, reverse=True)
            before = rows[-1].event_id if len(rows) == scan.ROWS_AT_ONCE else None
            if len(page) > limit:
                return page[:limit], page[limit - 1].event_id
            if before is None:
                break
        return page, before

    async def GetDelivery(self, request: pb.GetDeliveryRequest, call: identity.Call) -> pb.GetDeliveryResponse:
        dependencies = self._dependencies
        owned = await queries_changes.company_of(dependencies.database, request.sub_id)
        event_id = event_id_of(request.event_id)
        if owned is None or not may_administer(call, owned.company_id) or event_id is None:
            raise rules.no_such_delivery()
        row = await queries.delivery_by_ids(dependencies.database, event_id, request.sub_id)
        event = await queries.event_by_id(dependencies.database, event_id)
        stored_secret = await queries_changes.secret_in_use(dependencies.database, request.sub_id)
        if row is None or event is None or stored_secret is None:
            raise rules.no_such_delivery()
        (delivery,) = await shown(dependencies.database, [row], dependencies.rungs)
        delivery.about = subjects.about(event.event, event.body)
        secret = dependencies.opened(request.sub_id, stored_secret)
        try:
            common = dependencies.http.headers(row.destination_url, event.body)
        except DestinationRefused:  # allowed when it was stored, and refused by a later release
            common = {}
        for attempt in delivery.attempts:
            started_at = attempt.started_at.ToDatetime(datetime.UTC)
            # An older attempt was signed with a secret that is gone.
            is_signable = secret and started_at >= stored_secret.secret_since
            at = attempt.signed_at.seconds
            signatures = signature_headers(secret, request.event_id, at, event.body) if is_signable else {}
            replay_id = attempt.replay_id if attempt.HasField("replay_id") else None
            traceparent = traceparent_of(event.traceparent, event_id, request.sub_id, attempt.number)
            headers = common | request_headers(signatures, attempt.number, event.request_id, traceparent, replay_id)
            attempt.request_headers.extend(pb.Header(name=name, value=value) for name, value in headers.items())
        now = int(dependencies.clocks.real().timestamp())
        fresh = signature_headers(secret, request.event_id, now, event.body) if secret else {}
        return pb.GetDeliveryResponse(
            delivery=delivery,
            body=event.body,
            request_id=event.request_id,
            fresh_signature=fresh.get(SIGNATURE, ""),
            fresh_headers=[pb.Header(name=name, value=value) for name, value in fresh.items()],
        )

    async def ListDeliveriesOf(
        self, request: pb.ListDeliveriesOfRequest, call: identity.Call
    ) -> pb.ListDeliveriesOfResponse:
        company_id = identity.company_id(call)
        if not request.entity_type:
            raise invalid_request("entity_type is required.", "entity_type")
        keys = keys_of("", request.entity_type)
        last = event_id_of(request.before_event_id) if request.before_event_id else None
        if request.before_event_id and last is None:
            raise invalid_request("before_event_id must be the id of an event.", "before_event_id")
        # The event of the last delivery may have others, with lower subscriptions.
        before = NEWEST if last is None else uuid.UUID(int=last.int + 1)
        limit = limit_of(request, DELIVERIES_DEFAULT, DELIVERIES_MAX)
        deliveries: list[ShownDelivery] = []
        while True:  # a record has few events
            rows = await queries_events.events_newest(
                self._dependencies.database,
                company_id,
                keys,
                entity_id=request.entity_id,
                request_id="",
                before=before,
                since=OLDEST,
                rows=scan.ROWS_AT_ONCE,
            )
            ids = [row.event_id for row in rows if row.event in keys]
            of_events = await queries.deliveries_of_events(self._dependencies.database, ids)
            deliveries += [
                delivery for delivery in of_events
                if last is None or (delivery.event_id, delivery.subscription_id) < (last, request.before_sub_id)
            ]  # fmt: skip
            if len(deliveries) > limit or len(rows) < scan.ROWS_AT_ONCE:
                break
            before = rows[-1].event_id
        deliveries.sort(key=lambda delivery: (delivery.event_id, delivery.subscription_id), reverse=True)
        page = deliveries[:limit]
        response = pb.ListDeliveriesOfResponse(
            deliveries=await shown(self._dependencies.database, page, self._dependencies.rungs, last_alone=True)
        )
        if len(deliveries) > limit:
            response.next_before_event_id = str(page[-1].event_id)
            response.next_before_sub_id = page[-1].subscription_id
        if call.identity.kind == identity.STAFF:
            for document in response.deliveries:
                hide_from_staff(document)
        return response

    async def GetDeliveryStats(
        self, request: pb.GetDeliveryStatsRequest, call: identity.Call
    ) -> pb.GetDeliveryStatsResponse:
        company_id = await self._dependencies.owner(call, request.sub_id)
        step = request.step or pb.STATS_STEP_HOUR
        if step not in STEPS:
            raise invalid_request(f"step must be one of: {', '.join(STEP_NAMES.values())}.", "step", status=422)
        clock = await self._dependencies.clock(call, company_id)
        since, until = _period(request, STEPS[step], clock)
        steps, answers = await queries_subscriptions.stats(
            self._dependencies.database, request.sub_id, STEP_NAMES[step], since, until, ANSWERS_MAX
        )
        by_step = {counts.began_at: counts for counts in steps}
        response = pb.GetDeliveryStatsResponse(
            total=records.stats(by_step.pop(None, _nothing(None)), since),
            answers=[
                pb.AnswerCount(status=answer.status, error=answer.error, attempts=answer.attempts) for answer in answers
            ],
        )
        began_at = since
        while began_at < until:
            response.steps.append(records.stats(by_step.get(began_at, _nothing(began_at)), began_at))
            began_at += STEPS[step]
        return response

    async def CountDeliveries(
        self, request: pb.CountDeliveriesRequest, call: identity.Call
    ) -> pb.CountDeliveriesResponse:
        company_id = await self._dependencies.owner(call, request.sub_id)
        since, before = await self._dependencies.stretch(call, company_id, request, last="")
        counted = await queries_subscriptions.deliveries_counted(
            self._dependencies.database, request.sub_id, state_of(request.state), key_of(request.event), since, before
        )
        response = pb.CountDeliveriesResponse(deliveries=counted.deliveries)
        if counted.first_event_id is not None and counted.last_event_id is not None:
            first, last = uuid.UUID(counted.first_event_id), uuid.UUID(counted.last_event_id)
            first_at, last_at, expire_at = made_at(first), made_at(last), expires_at(first)
            if await self._dependencies.clocks.is_sandbox(call, company_id):
                first_at, last_at = [await self._stored_at(event_id) for event_id in (first, last)]
                expire_at = expires_at(first, first_at)
            response.first_made_at.FromDatetime(first_at)
            response.last_made_at.FromDatetime(last_at)
            response.first_expires_at.FromDatetime(expire_at)
        return response

    async def _stored_at(self, event_id: uuid.UUID) -> datetime.datetime:
        """That of a sandbox's event, by its clock. One that was deleted at this moment has the instant of its id."""
        event = await queries.event_by_id(self._dependencies.database, event_id)
        return made_at(event_id) if event is None else event.stored_at

    async def GetRetryProgress(
        self, request: pb.GetRetryProgressRequest, call: identity.Call
    ) -> pb.GetRetryProgressResponse:
        company_id = await self._dependencies.owner(call, request.sub_id)
        if not request.HasField("since"):
            raise invalid_request("since is required.", "since")
        since = instant_of(request.since, "since")
        next_sweep_at = await self._dependencies.next_sweep_at(call, company_id)
        attempts, waiting = await queries_subscriptions.retries(
            self._dependencies.database, request.sub_id, since, next_sweep_at
        )
        response = pb.GetRetryProgressResponse(succeeded=attempts.succeeded, failed=attempts.failed, waiting=waiting)
        response.next_sweep_at.FromDatetime(next_sweep_at)
        return response

    async def CountUndelivered(
        self, _request: pb.CountUndeliveredRequest, call: identity.Call
    ) -> pb.CountUndeliveredResponse:
        company_id = identity.company_id(call)
        response, after_id = pb.CountUndeliveredResponse(), 0
        while True:
            rows = await queries_subscriptions.details_page(
                self._dependencies.database, company_id, after_id, SUBSCRIPTIONS_AT_ONCE
            )
            response.subscriptions.extend(records.undelivered(row) for row in rows if row.waiting or row.parked)
            if len(rows) < SUBSCRIPTIONS_AT_ONCE:
                return response
            after_id = rows[-1].id


_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def _period(
    request: pb.GetDeliveryStatsRequest, step: datetime.timedelta, clock: Clock
) -> tuple[datetime.datetime, datetime.datetime]:
    """Whole steps. Raises Refusal 400 or 422."""
    until = instant_of(request.until, "until") if request.HasField("until") else clock()
    steps = 24 if step < datetime.timedelta(days=1) else 30
    since = instant_of(request.since, "since") if request.HasField("since") else until - (steps - 1) * step
    first, last = (_EPOCH + (instant - _EPOCH) // step * step for instant in (since, until))
    if last != until or last == first:
        last += step
    if not datetime.timedelta() < last - first <= datetime.timedelta(days=STATS_DAYS_MAX + 1) or until < since:
        raise invalid_request(f"since must be before until, by {STATS_DAYS_MAX} days at most.", "since", status=422)
    return first, last


def _nothing(began_at: datetime.datetime | None) -> StepCounts:
    return StepCounts(began_at, 0, 0, None, None)


def hide_from_staff(delivery: pb.Delivery) -> None:
    """Leaves the destination's host alone: its path can be a secret, and an answer can say anything."""
    url = urlsplit(delivery.destination_url)
    delivery.destination_url = f"{url.scheme}://{url.hostname or ''}"
    for attempt in delivery.attempts:
        attempt.response_excerpt = attempt.address = ""


async def abouts(database: Database, event_ids: Sequence[uuid.UUID]) -> dict[str, str]:
    """The names of the records that events are about, by the event's id."""
    rows = await queries.bodies_of(database, event_ids, subjects.BODY_BYTES_MAX)
    return {str(row.event_id): subjects.about(row.event, row.body) for row in rows}


async def shown(
    database: Database,
    rows: Sequence[ShownDelivery],
    rungs: int,
    *,
    last_alone: bool = False,
    without_excerpts: bool = False,
) -> list[pb.Delivery]:
    """Deliveries with their attempts, or with only the last one. `rungs` is the ladder's length with the first
    attempt."""
    attempts = len(rows) if last_alone else sum(row.attempts for row in rows)
    longest = LAST_EXCERPT_BYTES_MAX if last_alone else EXCERPT_BYTES_MAX
    excerpt_bytes = 0 if without_excerpts else min(longest, EXCERPTS_BYTES_MAX // max(attempts, 1))
    documents = {(row.event_id, row.subscription_id): records.delivery(row, rungs) for row in rows}
    for row in await queries.attempts_of(database, rows, excerpt_bytes=excerpt_bytes, last_alone=last_alone):
        documents[row.event_id, row.subscription_id].attempts.append(records.attempt(row))
    return list(documents.values())
