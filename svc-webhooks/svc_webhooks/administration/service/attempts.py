"""The RPCs that attempt deliveries: retry, attempt now, resend, test (spec 6.3); and the check of a signature."""

from __future__ import annotations

import asyncio
import datetime
import functools
import uuid
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from asyncpg import CheckViolationError

from chassis.auth import identity
from chassis.auth.identity import may_administer
from chassis.db.database import DatabaseUnavailable
from chassis.messaging.outbox import uuid7
from chassis.refusals import invalid_request
from chassis.runtime import traces
from chassis.schedule.instants import printed
from chassis.writes.commands import Command
from makeready.webhooks.v1 import webhooks_pb2 as pb
from svc_webhooks.administration import rules, signatures
from svc_webhooks.administration.inputs import Stretch, event_id_of, key_of
from svc_webhooks.administration.queries import changes as queries
from svc_webhooks.administration.queries import deliveries as queries_deliveries
from svc_webhooks.administration.queries.changes import LockedDelivery, Parked
from svc_webhooks.administration.queries.deliveries import ShownDelivery
from svc_webhooks.administration.queries.events import test_stored
from svc_webhooks.administration.service.deliveries import shown
from svc_webhooks.administration.service.dependencies import SUBJECT, Dependencies
from svc_webhooks.days import NEWEST, OLDEST
from svc_webhooks.dispatch.attempts import CLAIM_SECONDS
from svc_webhooks.events.envelope import envelope
from svc_webhooks.events.queries.events import StoredEvent
from svc_webhooks.rules.deliveries import BY_RETRY, FAILED, MANUAL, PARKED, RESEND, SUCCEEDED, TEST, WAITING, first_due
from svc_webhooks.rules.events import TEST_EVENT, request_id_of
from svc_webhooks.rules.subscriptions import PAUSED, no_such_subscription
from svc_webhooks.vault.rules import vault_unavailable

MADE_DUE_AT_ONCE = 1000
SELECTED_MAX = 1000
POLL_SECONDS = 0.1
SIGNATURE_CHARACTERS_MAX = 200

# Responses with `delivery`. The stored one holds the ids and, as its last attempt, the number of attempts before.
Reply = TypeVar("Reply", pb.RetryDeliveryResponse, pb.AttemptNowResponse, pb.ResendResponse, pb.SendTestResponse)
Send = Callable[[uuid.UUID, int, int], Awaitable[bool]]


class AttemptRpcs:
    """Each request adds an entry to the audit log, before the attempt."""

    def __init__(self, dependencies: Dependencies) -> None:
        self._dependencies = dependencies

    async def RetryDelivery(self, request: pb.RetryDeliveryRequest, call: identity.Call) -> pb.RetryDeliveryResponse:
        async def work(command: Command, before: LockedDelivery, event_id: uuid.UUID) -> None:
            rules.check_retry(before.state, before.health, before.active)
            now = first_due(command.now)
            await queries.make_due(command.connection, event_id, request.sub_id, now, call.identity.actor)
            after = {"state": WAITING, "event_id": request.event_id}
            await command.audit("delivery.retried", SUBJECT, request.sub_id, {"state": before.state}, after)

        stored = await self._requested(call, request, pb.RetryDeliveryResponse, work)
        send = functools.partial(self._attempt_now, BY_RETRY, call.identity.actor)
        row = await self._attempted(stored.delivery, send, even_paused=False)
        return pb.RetryDeliveryResponse(delivery=await self._shown(row))

    async def AttemptNow(self, request: pb.AttemptNowRequest, call: identity.Call) -> pb.AttemptNowResponse:
        async def work(command: Command, before: LockedDelivery, _event_id: uuid.UUID) -> None:
            rules.check_attempt_now(before.state, before.health, before.active)
            await command.audit("delivery.attempted", SUBJECT, request.sub_id, {}, {"event_id": request.event_id})

        stored = await self._requested(call, request, pb.AttemptNowResponse, work)
        send = functools.partial(self._attempt_now, MANUAL, call.identity.actor)
        row = await self._attempted(stored.delivery, send, even_paused=False)
        return pb.AttemptNowResponse(delivery=await self._made(row, stored.delivery))

    async def Resend(self, request: pb.ResendRequest, call: identity.Call) -> pb.ResendResponse:
        async def work(command: Command, before: LockedDelivery, _event_id: uuid.UUID) -> None:
            rules.check_resend(before.event, before.state, before.health, before.active)
            await command.audit("delivery.resent", SUBJECT, request.sub_id, {}, {"event_id": request.event_id})

        stored = await self._requested(call, request, pb.ResendResponse, work)
        send = functools.partial(self._send_again, SUCCEEDED, RESEND, call.identity.actor)
        row = await self._attempted(stored.delivery, send, even_paused=False)
        return pb.ResendResponse(delivery=await self._made(row, stored.delivery))

    async def SendTest(self, request: pb.SendTestRequest, call: identity.Call) -> pb.SendTestResponse:
        dependencies, sub_id = self._dependencies, request.sub_id
        company_id = await dependencies.owner(call, sub_id)
        event_id = uuid7()
        await dependencies.partitions.ensure_day(event_id)

        async def work(command: Command) -> pb.SendTestResponse:
            owned = await queries.company_locked(command.connection, sub_id)
            if owned is None:
                raise no_such_subscription()
            rules.check_test(owned.active)
            event = test_event(event_id, company_id, sub_id, command.now, call.request_id)
            await test_stored(command.connection, event, sub_id)
            await command.audit("subscription.tested", SUBJECT, sub_id, {}, {"event_id": str(event_id)})
            return pb.SendTestResponse(delivery=ids_before(str(event_id), sub_id, 0))

        try:
            stored = await dependencies.commands.run(call, request, pb.SendTestResponse, work, company_id)
        except CheckViolationError as error:
            if error.constraint_name:
                raise
            dependencies.partitions.forget()  # another process dropped a day that this one has cached
            raise DatabaseUnavailable("a day was dropped at this moment") from error
        row = await self.tested(stored.delivery, call.identity.actor)
        return pb.SendTestResponse(delivery=await self._shown(row))

    async def tested(self, before: pb.Delivery, actor: str) -> ShownDelivery:
        """Sends a stored test once, and returns it after that. before: its ids and, as its last attempt, the number of
        attempts before. Raises Refusal if the receiver is busy."""
        send = functools.partial(self._send_again, FAILED, TEST, actor)
        row = await self._attempted(before, send, even_paused=True)
        self._check_made(row, before)
        return row

    async def _requested(
        self,
        call: identity.Call,
        request: Any,
        reply: type[Reply],
        work: Callable[[Command, LockedDelivery, uuid.UUID], Awaitable[None]],
    ) -> Reply:
        """Does the work on the locked delivery once for the request's key."""
        event_id = event_id_of(request.event_id)
        if event_id is None:
            raise rules.no_such_delivery()
        owned = await queries.company_of(self._dependencies.database, request.sub_id)
        if owned is None or not may_administer(call, owned.company_id):
            raise rules.no_such_delivery()

        async def whole(command: Command) -> Reply:
            before = await queries.delivery_for_update(command.connection, event_id, request.sub_id)
            if before is None:
                raise rules.no_such_delivery()
            await work(command, before, event_id)
            return reply(delivery=ids_before(request.event_id, request.sub_id, before.attempts))

        return await self._dependencies.commands.run(call, request, reply, whole, owned.company_id)

    async def _attempt_now(self, cause: str, actor: str, event_id: uuid.UUID, sub_id: int, _attempts: int) -> bool:
        return await self._dependencies.scheduler.attempt_now(event_id, sub_id, cause, actor)

    async def _send_again(
        self, state: str, cause: str, actor: str, event_id: uuid.UUID, sub_id: int, attempts: int
    ) -> bool:
        return await self._dependencies.scheduler.send_again(event_id, sub_id, state, attempts, cause, actor)

    async def _attempted(self, before: pb.Delivery, send: Send, *, even_paused: bool) -> ShownDelivery:
        """Attempts the delivery, and returns it once it has more attempts than before. Returns it without one if it is
        held back meanwhile, or after CLAIM_SECONDS.

        It polls, because a claim by a sweep or by another request is not yet an attempt. A repeated request whose
        process was killed before the attempt makes it here.
        """
        event_id, sub_id, attempts = uuid.UUID(before.event_id), before.sub_id, before.attempts[-1].number
        give_up = asyncio.get_running_loop().time() + CLAIM_SECONDS
        while True:
            row = await queries_deliveries.delivery_by_ids(self._dependencies.database, event_id, sub_id)
            if row is not None and row.attempts <= attempts:
                await send(event_id, sub_id, attempts)
                row = await queries_deliveries.delivery_by_ids(self._dependencies.database, event_id, sub_id)
            if row is None:  # the subscription was deleted
                raise rules.no_such_delivery()
            held = row.active is False or (row.health == PAUSED and not even_paused)
            if row.attempts > attempts or held or asyncio.get_running_loop().time() > give_up:
                return row
            await asyncio.sleep(POLL_SECONDS)

    async def _made(self, row: ShownDelivery, before: pb.Delivery) -> pb.Delivery:
        """Raises Refusal if the attempt was not made: unlike a retry, it does not follow."""
        self._check_made(row, before)
        return await self._shown(row)

    def _check_made(self, row: ShownDelivery, before: pb.Delivery) -> None:
        if row.attempts <= before.attempts[-1].number:
            if row.event != TEST_EVENT:
                rules.check_retries(row.health, row.active)
            raise rules.receiver_busy()

    async def _shown(self, row: ShownDelivery) -> pb.Delivery:
        (delivery,) = await shown(self._dependencies.database, [row], self._dependencies.rungs)
        return delivery

    async def RetryParked(self, request: pb.RetryParkedRequest, call: identity.Call) -> pb.RetryParkedResponse:
        dependencies, sub_id, actor = self._dependencies, request.sub_id, call.identity.actor
        company_id = await dependencies.owner(call, sub_id)
        which = _parked(request, await dependencies.stretch(call, company_id, request, last=""))
        answer = await dependencies.commands.done(call, request, pb.RetryParkedResponse, company_id)
        if answer is not None:
            return answer
        subscription = await queries.company_of(dependencies.database, sub_id)
        if subscription is None:
            raise no_such_subscription()
        rules.check_retries(subscription.health, subscription.active)
        now = first_due((await dependencies.clock(call, company_id))())
        count = 0
        # Goes forward through the events: a delivery that a sweep parks again meanwhile has had its attempt. The key is
        # claimed at the end, so that a repeat after a kill does the rest.
        while True:
            async with dependencies.database.transaction() as connection:
                event_ids = await queries.parked_made_due(connection, sub_id, which, now, actor, MADE_DUE_AT_ONCE)
                if not event_ids:
                    break
                after = {"state": WAITING, "deliveries": len(event_ids)}
                await dependencies.commands.audit.add(
                    connection, call, company_id, "deliveries.retried", SUBJECT, sub_id, {"state": PARKED}, after
                )
            count += len(event_ids)
            which = which._replace(after_event_id=max(event_ids))

        async def work(_command: Command) -> pb.RetryParkedResponse:
            response = pb.RetryParkedResponse(deliveries=count)
            response.retried_at.FromDatetime(now)
            return response

        return await dependencies.commands.run(call, request, pb.RetryParkedResponse, work, company_id)

    async def CheckSignature(self, request: pb.CheckSignatureRequest, call: identity.Call) -> pb.CheckSignatureResponse:
        dependencies, sub_id = self._dependencies, request.sub_id
        company_id = await dependencies.owner(call, sub_id)
        if len(request.body) > signatures.CHECKED_BYTES_MAX:
            raise invalid_request(f"body must be at most {signatures.CHECKED_BYTES_MAX} bytes.", "body", status=422)
        if len(request.signature) > SIGNATURE_CHARACTERS_MAX:
            message = f"signature must be at most {SIGNATURE_CHARACTERS_MAX} characters."
            raise invalid_request(message, "signature", status=422)
        stored_secret = await queries.secret_in_use(dependencies.database, sub_id)
        if stored_secret is None:
            raise no_such_subscription()
        secret = dependencies.opened(sub_id, stored_secret)
        if not secret:
            raise vault_unavailable("nothing was checked")
        event_id = event_id_of(signatures.event_id_in(request.body))
        event = None
        if event_id and await queries_deliveries.delivery_by_ids(dependencies.database, event_id, sub_id):
            event = await queries_deliveries.event_by_id(dependencies.database, event_id)
        if event is not None and event.company_id != company_id:
            event = None
        now = dependencies.clocks.real().timestamp()
        verdict = signatures.verdict_of(request.signature, request.body, event and event.body, secret, now)
        response = pb.CheckSignatureResponse(
            verdict=pb.SignatureVerdict.ValueType(signatures.VERDICTS.index(verdict) + 1),
            age_seconds_max=signatures.SIGNATURE_SECONDS_MAX,
            event_id=str(event.event_id) if event else "",
        )
        if (at := signatures.signed_at(request.signature)) is not None:
            response.age_seconds = int(now) - at
            if at <= _LAST_SECOND:
                response.signed_at.FromSeconds(at)
        return response


_LAST_SECOND = int(datetime.datetime(9999, 12, 31, tzinfo=datetime.UTC).timestamp())


def ids_before(event_id: str, sub_id: int, attempts: int) -> pb.Delivery:
    return pb.Delivery(event_id=event_id, sub_id=sub_id, attempts=[pb.Attempt(number=attempts)])


def test_event(
    event_id: uuid.UUID, company_id: int, sub_id: int, now: datetime.datetime, request_id: str
) -> StoredEvent:
    body = envelope(
        event_id=str(event_id),
        event=TEST_EVENT,
        occurred_at=printed(now),
        company_id=company_id,
        data=b"{}",
        change=b"",
    )
    return StoredEvent(
        event_id=event_id,
        company_id=company_id,
        event=TEST_EVENT,
        entity_id=sub_id,
        occurred_at=now,
        request_id=request_id_of(request_id),
        traceparent=traces.current() or None,
        body=body,
        due_at=now,
    )


def _parked(request: pb.RetryParkedRequest, stretch: Stretch) -> Parked:
    """Raises Refusal for filters that contradict one another or mean nothing. The stretch is the request's."""
    key = key_of(request.event)
    since, until = stretch
    if not request.event_ids:
        # `since` itself belongs to the stretch, and ids are whole numbers.
        after = uuid.UUID(int=since.int - 1) if since != OLDEST else OLDEST
        return Parked(after, until, key, None)
    if key or request.HasField("since") or request.HasField("until"):
        raise invalid_request("event_ids goes without since, until and event.", "event_ids", status=422)
    if len(request.event_ids) > SELECTED_MAX:
        raise invalid_request(f"event_ids may name at most {SELECTED_MAX:,} events.", "event_ids", status=422)
    ids = [event_id_of(text) for text in request.event_ids]
    named = [event_id for event_id in ids if event_id is not None]
    if len(named) < len(ids):
        raise invalid_request("event_ids must be ids of events.", "event_ids", status=422)
    after, until = min(named), max(named)
    return Parked(
        uuid.UUID(int=after.int - 1) if after != OLDEST else OLDEST,
        uuid.UUID(int=until.int + 1) if until != NEWEST else NEWEST,
        None,
        named,
    )
