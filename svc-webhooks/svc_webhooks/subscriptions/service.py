"""The RPCs of subscriptions, for integrations. Each checks the identity and the rules, runs a statement, renders a
record."""

from __future__ import annotations

import datetime
from typing import Any

import msgspec

from chassis.auth import identity
from chassis.db.database import Connection, Database
from chassis.db.ids import Ids
from chassis.lists.paging import page
from chassis.records import bodies
from chassis.refusals import Unavailable, not_found
from chassis.schedule.clocks import CompanyClocks
from chassis.writes import idempotency
from makeready.common.v1.documents_pb2 import Document, WriteReply
from makeready.webhooks.v1 import webhooks_pb2 as pb
from svc_webhooks.http_client.client import HttpClient
from svc_webhooks.http_client.destinations import DestinationRefused
from svc_webhooks.http_client.resolver import ResolverFault
from svc_webhooks.rules import filters
from svc_webhooks.rules import subscriptions as rules
from svc_webhooks.subscriptions import records
from svc_webhooks.subscriptions.erasure import Eraser
from svc_webhooks.subscriptions.queries import subscriptions as queries
from svc_webhooks.subscriptions.queries.erasure import subscription_deleted
from svc_webhooks.tables.subscriptions import subscription, subscription_id
from svc_webhooks.vault.keyring import Vault, new_secret, prefix_of
from svc_webhooks.vault.rules import vault_unavailable

NOUN = "webhook subscription"

_encode = msgspec.json.Encoder().encode


class SubscriptionsService:
    """Creates, lists and deletes webhook subscriptions (spec 4.11), and sets their filters."""

    def __init__(
        self,
        database: Database,
        vault: Vault | None,
        http: HttpClient,
        eraser: Eraser,
        clocks: CompanyClocks,
        *,
        subscriptions_max: int,
        local_destinations: bool,
    ) -> None:
        """With `local_destinations`, subscriptions of sandboxes may name local receivers: see `parse`."""
        self.local_destinations = local_destinations
        self.database = database
        self.subscriptions_max = subscriptions_max
        self.eraser = eraser
        self.vault = vault
        self.http = http
        self.clocks = clocks
        self.ids = Ids(database, subscription_id)
        self.renderer = records.SUBSCRIPTION.renderer()

    async def ListSubscriptions(
        self, request: pb.ListSubscriptionsRequest, call: identity.Call
    ) -> pb.ListSubscriptionsResponse:
        company_id = identity.company_id(call)
        rows = await queries.SUBSCRIPTIONS_PAGE.rows(self.database, company_id, request.after_id, request.limit, {})
        return pb.ListSubscriptionsResponse(page=page(rows, request.limit, self.renderer.record))

    async def CreateSubscription(
        self, request: pb.CreateSubscriptionRequest, call: identity.Call
    ) -> pb.CreateSubscriptionResponse:
        caller = identity.caller(call)
        if self.vault is None:
            raise vault_unavailable()
        fields, _ = bodies.decode(records.SubscriptionCreate, request.body)
        events = rules.event_set(fields.events)
        same = bodies.canonical({"destination_url": fields.destination_url, "events": events})
        claim = idempotency.claim_of(request, caller, "POST /webhooks", same)
        # Before the destination is checked: a replay must not depend on what the name resolves to now.
        reply = await queries.CREATE_SUBSCRIPTION.stored(self.database, claim)
        if reply is None:
            await self.check_destination(call, fields.destination_url, caller.company_id)
            reply = await self._create(self.vault, call, fields.destination_url, events, claim)
        return pb.CreateSubscriptionResponse(reply=reply)

    async def check_destination(self, call: identity.Call, destination_url: str, company_id: int) -> None:
        """Raises Refusal 422 for a destination that must not be called, Unavailable if the resolver does not answer."""
        may_be_local = self.local_destinations and await self.clocks.is_sandbox(call, company_id)
        try:
            await self.http.check(destination_url, party=company_id, may_be_local=may_be_local)
        except DestinationRefused as refused:
            raise rules.invalid_destination_url(refused.reason) from None
        except ResolverFault:
            raise Unavailable("the resolver did not answer") from None

    async def _create(
        self,
        vault: Vault,
        call: identity.Call,
        destination_url: str,
        events: list[rules.EventKey],
        claim: idempotency.Claim,
    ) -> WriteReply:
        caller = identity.caller(call)
        company_id = caller.company_id
        secret = new_secret()
        now = await self.clocks.now(call)
        values = await self.new_values(vault, caller, destination_url, events, secret, rules.API, now)
        sub_id = values[subscription.c.id]
        row = {column.name: value for column, value in values.items()}
        record = self.renderer.of_values(values)
        body = _encode(record)

        async def check(connection: Connection) -> None:
            rules.check_count(await queries.subscriptions_counted(connection, company_id), self.subscriptions_max)

        changed = [(company_id, rules.KIND, sub_id)]
        lock = queries.count_lock(company_id)
        reply = await queries.CREATE_SUBSCRIPTION.write_checked(
            self.database, claim, 201, body, {subscription: row}, changed, lock=lock, check=check
        )
        if reply.body != body:
            return reply
        # The body has this call's own id, so this call created the subscription, even if the connection failed on the
        # way.
        with_secret = records.NewSubscription(**msgspec.structs.asdict(record), secret=secret)
        return WriteReply(status=201, body=_encode(with_secret))

    async def new_values(
        self,
        vault: Vault,
        creator: identity.Identity,
        destination_url: str,
        events: list[rules.EventKey],
        secret: str,
        source: str,
        now: datetime.datetime,
    ) -> dict[Any, Any]:
        """The values of a new subscription by column, with its id."""
        c = subscription.c
        sub_id = await self.ids.next()
        sealed = vault.seal(sub_id, secret)
        return {
            c.id: sub_id,
            c.company_id: creator.company_id,
            c.destination_url: destination_url,
            records.EVENTS: events,
            c.health: rules.HEALTHY,
            c.secret_prefix: prefix_of(secret),
            c.secret_key_id: sealed.key_id,
            c.secret_sealed: sealed.sealed,
            c.secret_since: now,
            c.created_at: now,
            c.created_by: creator.actor,
            c.source: source,
        }

    async def DeleteSubscription(
        self, request: pb.DeleteSubscriptionRequest, call: identity.Call
    ) -> pb.DeleteSubscriptionResponse:
        company_id = identity.caller(call).company_id
        if not await subscription_deleted(self.database, company_id, request.sub_id):
            raise not_found(NOUN)
        self.database.committed([(company_id, rules.KIND, request.sub_id)])
        await self.eraser.begin(request.sub_id)
        return pb.DeleteSubscriptionResponse()

    # Filters

    async def GetFilter(self, request: pb.GetFilterRequest, call: identity.Call) -> pb.GetFilterResponse:
        subject = await queries.filter_of(self.database, identity.caller(call).company_id, request.sub_id)
        if subject is None:
            raise not_found(NOUN)
        json = _encode(records.WebhookFilter(entity_id=request.sub_id, **subject._asdict()))
        return pb.GetFilterResponse(document=Document(json=json, entity_id=request.sub_id))

    async def SetFilter(self, request: pb.SetFilterRequest, call: identity.Call) -> pb.SetFilterResponse:
        """Events that are stored after the reply pass the new filter."""
        sub_id, caller = request.sub_id, identity.caller(call)
        fields, same = bodies.decode(records.WebhookFilterSet, request.body)
        claim = idempotency.claim_of(request, caller, f"PUT /webhooks/{sub_id}/filter", same)

        async def changed(connection: Connection) -> bytes:
            if not await queries.filter_locked(connection, caller.company_id, sub_id):
                raise not_found(NOUN)
            new = queries.Filter(
                filters.property_set(fields.property_ids),
                filters.label_set(fields.categories, filters.CATEGORIES, "categories"),
                filters.label_set(fields.priorities, filters.PRIORITIES, "priorities"),
            )
            await queries.change_filter(connection, caller.company_id, sub_id, new)
            connection.changed.add((caller.company_id, rules.KIND, sub_id))
            return _encode(records.WebhookFilter(entity_id=sub_id, **new._asdict()))

        return pb.SetFilterResponse(reply=await queries.SET_FILTER.once(self.database, claim, changed))
