"""The RPCs of an administrator: pause, resume, rotate, retry, and the record of an event (spec 2.12, 3.2, 6.3)."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from typing import Any

import msgspec

from chassis.auth import identity
from chassis.auth.identity import may_administer
from chassis.db.database import Connection, Database
from chassis.refusals import invalid_request
from chassis.schedule.instants import Clock
from chassis.writes.audit import Audit
from makeready.common.v1.documents_pb2 import Document
from makeready.webhooks.v1 import webhooks_pb2 as pb
from svc_webhooks.administration import rules
from svc_webhooks.administration.inputs import event_id_of, instant_of, state_of
from svc_webhooks.administration.queries import changes as queries
from svc_webhooks.administration.queries import deliveries as queries_deliveries
from svc_webhooks.administration.queries.deliveries import ShownDelivery
from svc_webhooks.administration.service.deliveries import shown
from svc_webhooks.dispatch.attempts import LEASE_SECONDS
from svc_webhooks.dispatch.rules import PARKED, SUCCEEDED, WAITING, first_due
from svc_webhooks.dispatch.scheduler import Scheduler
from svc_webhooks.events.days import NEWEST, OLDEST, first_day_kept, first_id
from svc_webhooks.subscriptions.records import AdministeredSubscription
from svc_webhooks.subscriptions.rules import PAUSED, SubscriptionHealth, no_such_subscription, paused, resumed
from svc_webhooks.vault.keyring import Vault, new_secret, prefix_of
from svc_webhooks.vault.rules import vault_unavailable

UNDELIVERED_DEFAULT, UNDELIVERED_MAX = 50, 1000
MADE_DUE_AT_ONCE = 1000
POLL_SECONDS = 0.1
SUBJECT = "webhook_subscription"

_encode = msgspec.json.Encoder().encode


class AdministrationService:
    """Each change adds an entry to the audit log: the actor, the request's id, and the values before and after."""

    def __init__(
        self, database: Database, audit: Audit, vault: Vault | None, scheduler: Scheduler, clock: Clock
    ) -> None:
        self.database = database
        self.audit = audit
        self.vault = vault
        self.scheduler = scheduler
        self.clock = clock

    async def PauseSubscription(
        self, request: pb.PauseSubscriptionRequest, call: identity.Call
    ) -> pb.PauseSubscriptionResponse:
        row = await self._change_health(call, request.sub_id, "subscription.paused", paused())
        return pb.PauseSubscriptionResponse(subscription=_document(row))

    async def ResumeSubscription(
        self, request: pb.ResumeSubscriptionRequest, call: identity.Call
    ) -> pb.ResumeSubscriptionResponse:
        row = await self._change_health(call, request.sub_id, "subscription.resumed", resumed())
        return pb.ResumeSubscriptionResponse(subscription=_document(row))

    async def _change_health(
        self, call: identity.Call, sub_id: int, what: str, after: SubscriptionHealth
    ) -> AdministeredSubscription:
        async with self.database.transaction() as connection:
            before = await queries.health_for_update(connection, sub_id)
            if before is None or not may_administer(call, before.company_id):
                raise no_such_subscription()
            paused_at = (before.paused_at or self.clock()) if after.health == PAUSED else None
            row = await queries.health_saved(connection, sub_id, after, paused_at)
            sides = [{name: getattr(side, name) for name in ("health", "failures_in_a_row")} for side in (before, row)]
            if sides[0] != sides[1]:
                await self._record(connection, call, what, before.company_id, sub_id, *sides)
        return row

    async def _record(
        self,
        connection: Connection,
        call: identity.Call,
        what: str,
        company_id: int,
        sub_id: int,
        before: Mapping[str, Any],
        after: Mapping[str, Any],
    ) -> None:
        await self.audit.add(connection, call, company_id, what, SUBJECT, sub_id, before, after)

    async def RotateSecret(self, request: pb.RotateSecretRequest, call: identity.Call) -> pb.RotateSecretResponse:
        if self.vault is None:
            raise vault_unavailable("nothing was changed")
        known = await queries.secret_known(self.database, request.sub_id)
        if known is None or not may_administer(call, known.company_id):
            raise no_such_subscription()
        secret = new_secret()
        sealed = self.vault.seal(request.sub_id, secret)
        async with self.database.transaction() as connection:
            row = await queries.secret_replaced(
                connection,
                request.sub_id,
                known.secret_prefix,
                prefix=prefix_of(secret),
                key_id=sealed.key_id,
                sealed=sealed.sealed,
            )
            if row is None:
                raise rules.secret_just_rotated()
            before = {"secret_prefix": known.secret_prefix, "secret_key_id": known.secret_key_id}
            after = {"secret_prefix": row.secret_prefix, "secret_key_id": sealed.key_id}
            company_id = known.company_id
            await self._record(
                connection, call, "subscription.secret_rotated", company_id, row.entity_id, before, after
            )
        return pb.RotateSecretResponse(subscription=_document(row), secret=secret)

    async def RetryDelivery(self, request: pb.RetryDeliveryRequest, call: identity.Call) -> pb.RetryDeliveryResponse:
        event_id = event_id_of(request.event_id)
        if event_id is None:
            raise rules.no_such_delivery()
        async with self.database.transaction() as connection:
            before = await queries.delivery_for_update(connection, event_id, request.sub_id)
            if before is None or not may_administer(call, before.company_id):
                raise rules.no_such_delivery()
            rules.check_retry(before.state, before.health, before.active)
            await queries.make_due(connection, event_id, request.sub_id, first_due(self.clock()))
            after = {"state": WAITING, "event_id": request.event_id}
            await self._record(
                connection,
                call,
                "delivery.retried",
                before.company_id,
                request.sub_id,
                {"state": before.state},
                after,
            )
        (delivery,) = await shown(self.database, [await self._attempted(event_id, request.sub_id, before.attempts)])
        return pb.RetryDeliveryResponse(delivery=delivery)

    async def _attempted(self, event_id: uuid.UUID, sub_id: int, attempts: int) -> ShownDelivery:
        """Attempts the delivery, and returns it once it has more than `attempts` attempts. Returns it still waiting if
        it is held back meanwhile, or after LEASE_SECONDS.

        It polls, because a claim by a sweep or by another retry is not yet an attempt.
        """
        give_up = asyncio.get_running_loop().time() + LEASE_SECONDS
        while True:
            await self.scheduler.attempt_now(event_id, sub_id)
            row = await queries_deliveries.delivery_by_ids(self.database, event_id, sub_id)
            if row is None:  # the subscription was deleted
                raise rules.no_such_delivery()
            held = rules.held_by(row.state, row.health, row.active)
            if row.attempts > attempts or held or asyncio.get_running_loop().time() > give_up:
                return row
            await asyncio.sleep(POLL_SECONDS)

    async def RetryParked(self, request: pb.RetryParkedRequest, call: identity.Call) -> pb.RetryParkedResponse:
        found = await queries.company_of(self.database, request.sub_id)
        if found is None or not may_administer(call, found.company_id):
            raise no_such_subscription()
        rules.check_retries(found.health, found.active)
        now = first_due(self.clock())
        count = 0
        # Goes forward through the events: a delivery that a sweep parks again meanwhile has had its attempt.
        last = OLDEST
        before = {"state": PARKED}
        while True:
            async with self.database.transaction() as connection:
                some = await queries.parked_made_due(connection, request.sub_id, now, last, MADE_DUE_AT_ONCE)
                if not some:
                    break
                after = {"state": WAITING, "deliveries": len(some)}
                company_id = found.company_id
                await self._record(connection, call, "deliveries.retried", company_id, request.sub_id, before, after)
            count += len(some)
            last = max(some)
        return pb.RetryParkedResponse(deliveries=count)

    async def ListUndelivered(
        self, request: pb.ListUndeliveredRequest, call: identity.Call
    ) -> pb.ListUndeliveredResponse:
        company_id = identity.company_id(call)
        state = state_of(request.state)
        if state == SUCCEEDED:
            raise invalid_request("state must be waiting or parked.", "state", status=422)
        after = event_id_of(request.after_event_id) if request.after_event_id else OLDEST
        if after is None:
            raise invalid_request("after_event_id must be the id of an event.", "after_event_id")
        limit = min(request.limit, UNDELIVERED_MAX) if request.limit > 0 else UNDELIVERED_DEFAULT
        rows = await queries_deliveries.deliveries_undelivered(
            self.database,
            company_id,
            state=state,
            until=_first_id_kept(request),
            after_event_id=after,
            after_sub_id=request.after_sub_id,
            rows=limit + 1,
        )
        deliveries = await shown(self.database, rows[:limit], last_alone=True)
        return pb.ListUndeliveredResponse(deliveries=deliveries, more=len(rows) > limit)

    async def GetEvent(self, request: pb.GetEventRequest, call: identity.Call) -> pb.GetEventResponse:
        event_id = event_id_of(request.event_id)
        event = await queries_deliveries.event_by_id(self.database, event_id) if event_id else None
        if event_id is None or event is None or not may_administer(call, event.company_id):
            raise rules.no_such_event()
        response = pb.GetEventResponse(
            event_id=request.event_id,
            event=event.event,
            company_id=event.company_id,
            entity_id=event.entity_id,
            request_id=event.request_id,
            body=event.body,
            deliveries=await shown(
                self.database, await queries_deliveries.deliveries_of_event(self.database, event_id)
            ),
        )
        response.occurred_at.FromDatetime(event.occurred_at)
        response.stored_at.FromDatetime(event.stored_at)
        return response


def _document(row: AdministeredSubscription) -> Document:
    return Document(json=_encode(row), entity_id=row.entity_id)


def _first_id_kept(request: pb.ListUndeliveredRequest) -> uuid.UUID:
    """The first event id that exists at `expires_before`; the highest id if the request sets no such instant."""
    if not request.HasField("expires_before"):
        return NEWEST
    return first_id(first_day_kept(instant_of(request.expires_before, "expires_before")))
