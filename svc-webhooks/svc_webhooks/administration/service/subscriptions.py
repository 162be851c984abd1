"""The RPCs about a subscription: details, create, change, delete, pause, resume, rotate (spec 2.12, 3.2, 6.3)."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from chassis.auth import identity
from chassis.records import bodies
from chassis.refusals import invalid_request
from chassis.writes.commands import Command
from makeready.common.v1.documents_pb2 import Document
from makeready.webhooks.v1 import webhooks_pb2 as pb
from svc_webhooks.administration import records, rules
from svc_webhooks.administration.inputs import limit_of
from svc_webhooks.administration.queries import changes as queries
from svc_webhooks.administration.queries import subscriptions as queries_subscriptions
from svc_webhooks.administration.queries.changes import Pause
from svc_webhooks.administration.queries.subscriptions import ChangeableSubscription
from svc_webhooks.administration.service.dependencies import SUBJECT, Dependencies
from svc_webhooks.rules.subscriptions import (
    ADMINISTRATOR,
    PAUSED,
    EventKey,
    SubscriptionHealth,
    check_count,
    event_set,
    no_such_subscription,
    paused,
    resumed,
)
from svc_webhooks.subscriptions.queries.subscriptions import count_lock, subscriptions_counted
from svc_webhooks.subscriptions.records import AdministeredSubscription, SubscriptionCreate
from svc_webhooks.tables.subscriptions import subscription
from svc_webhooks.vault.keyring import new_secret, prefix_of
from svc_webhooks.vault.rules import vault_unavailable

PAGE_DEFAULT, PAGE_MAX = 50, 200
# A browser shows the reply to the last click of a double click, so the repeat has to return the secret too.
SECRET_AGAIN = datetime.timedelta(seconds=60)

_encode = msgspec.json.Encoder().encode
HealthReply = TypeVar("HealthReply", pb.PauseSubscriptionResponse, pb.ResumeSubscriptionResponse)


class SubscriptionRpcs:
    """Each change adds an entry to the audit log: the actor, the request's id, and the values before and after."""

    def __init__(self, dependencies: Dependencies) -> None:
        self._dependencies = dependencies

    # Reading

    async def ListSubscriptionDetails(
        self, request: pb.ListSubscriptionDetailsRequest, call: identity.Call
    ) -> pb.ListSubscriptionDetailsResponse:
        limit = limit_of(request, PAGE_DEFAULT, PAGE_MAX)
        rows = await queries_subscriptions.details_page(
            self._dependencies.database, identity.company_id(call), request.after_id, limit + 1
        )
        response = pb.ListSubscriptionDetailsResponse(subscriptions=map(records.subscription, rows[:limit]))
        if len(rows) > limit:
            response.next_after_id = rows[limit - 1].id
        return response

    async def GetSubscription(
        self, request: pb.GetSubscriptionRequest, call: identity.Call
    ) -> pb.GetSubscriptionResponse:
        company_id = await self._dependencies.owner(call, request.sub_id)
        response = pb.GetSubscriptionResponse(subscription=await self._details(request.sub_id))
        response.next_sweep_at.FromDatetime(await self._dependencies.next_sweep_at(call, company_id))
        return response

    async def _details(self, sub_id: int) -> pb.SubscriptionDetails:
        """Raises Refusal 404 if it was deleted."""
        row = await queries_subscriptions.details(self._dependencies.database, sub_id)
        if row is None:
            raise no_such_subscription()
        return records.subscription(row)

    # Creating, changing, deleting

    async def AddSubscription(
        self, request: pb.AddSubscriptionRequest, call: identity.Call
    ) -> pb.AddSubscriptionResponse:
        dependencies, company_id = self._dependencies, identity.company_id(call)
        if dependencies.vault is None:
            raise vault_unavailable()
        fields, events = _checked_fields(request.destination_url, request.events)
        secret = new_secret()
        # Before the destination is checked: a repeat must not depend on what the name resolves to now.
        answer = await dependencies.commands.done(call, request, pb.AddSubscriptionResponse)
        if answer is None:
            await dependencies.subscriptions.check_destination(call, fields.destination_url, company_id)
            now = (await dependencies.clock(call, company_id))()
            values = await dependencies.subscriptions.new_values(
                dependencies.vault, call.identity, fields.destination_url, events, secret, ADMINISTRATOR, now
            )
            answer = await dependencies.commands.run(
                call, request, pb.AddSubscriptionResponse, lambda command: self._add(command, values)
            )
        subscription = answer.subscription
        return pb.AddSubscriptionResponse(
            subscription=await self._details(subscription.sub_id),
            secret=await self._secret_of(call, subscription.sub_id, subscription.secret_prefix, secret),
        )

    async def _add(self, command: Command, values: dict[Any, Any]) -> pb.AddSubscriptionResponse:
        connection, company_id, c = command.connection, command.company_id, subscription.c
        await connection.raw.execute(f"SELECT pg_advisory_xact_lock({count_lock(company_id)})")
        check_count(
            await subscriptions_counted(connection, company_id), self._dependencies.subscriptions.subscriptions_max
        )
        await queries_subscriptions.subscription_inserted(connection, values)
        row = {column.name: value for column, value in values.items()}
        after = {name: row[name] for name in ("destination_url", "events", "secret_prefix")}
        await command.audit("subscription.created", SUBJECT, values[c.id], {}, after)
        details = pb.SubscriptionDetails(sub_id=values[c.id], secret_prefix=values[c.secret_prefix])
        return pb.AddSubscriptionResponse(subscription=details)

    async def UpdateSubscription(
        self, request: pb.UpdateSubscriptionRequest, call: identity.Call
    ) -> pb.UpdateSubscriptionResponse:
        dependencies, sub_id = self._dependencies, request.sub_id
        company_id = await dependencies.owner(call, sub_id)
        has_destination = request.HasField("destination_url")
        if not has_destination and not request.events:
            raise invalid_request("Name a destination_url or events to change.", status=422)
        if has_destination:
            bodies.check(SubscriptionCreate, {"destination_url": request.destination_url})
        events = event_set(request.events) if request.events else None

        async def work(command: Command) -> pb.UpdateSubscriptionResponse:
            before = await queries_subscriptions.changeable_for_update(command.connection, sub_id)
            if before is None:
                raise no_such_subscription()
            after = ChangeableSubscription(
                request.destination_url if has_destination else before.destination_url,
                before.events if events is None else events,
            )
            await queries_subscriptions.subscription_changed(command.connection, sub_id, after)
            if after != before:
                await command.audit("subscription.changed", SUBJECT, sub_id, before._asdict(), after._asdict())
            return pb.UpdateSubscriptionResponse()

        if await dependencies.commands.done(call, request, pb.UpdateSubscriptionResponse, company_id) is None:
            if has_destination:
                await dependencies.subscriptions.check_destination(call, request.destination_url, company_id)
            await dependencies.commands.run(call, request, pb.UpdateSubscriptionResponse, work, company_id)
        return pb.UpdateSubscriptionResponse(subscription=await self._details(sub_id))

    async def RemoveSubscription(
        self, request: pb.RemoveSubscriptionRequest, call: identity.Call
    ) -> pb.RemoveSubscriptionResponse:
        dependencies, sub_id = self._dependencies, request.sub_id
        counts = await queries_subscriptions.history(dependencies.database, sub_id)

        async def work(command: Command) -> pb.RemoveSubscriptionResponse:
            before = await queries_subscriptions.changeable_for_update(command.connection, sub_id)
            removed = await queries_subscriptions.subscription_removed(command.connection, command.company_id, sub_id)
            if before is None or not removed:
                raise no_such_subscription()
            await command.audit("subscription.deleted", SUBJECT, sub_id, before._asdict(), {})
            return pb.RemoveSubscriptionResponse(**counts._asdict())

        answer = await dependencies.commands.run(call, request, pb.RemoveSubscriptionResponse, work)
        await dependencies.subscriptions.eraser.begin(sub_id)
        return answer

    # Pausing and resuming

    async def PauseSubscription(
        self, request: pb.PauseSubscriptionRequest, call: identity.Call
    ) -> pb.PauseSubscriptionResponse:
        reason = rules.check_reason(request.reason)
        return await self._change_health(
            call, request, pb.PauseSubscriptionResponse, "subscription.paused", paused(), reason
        )

    async def ResumeSubscription(
        self, request: pb.ResumeSubscriptionRequest, call: identity.Call
    ) -> pb.ResumeSubscriptionResponse:
        return await self._change_health(
            call, request, pb.ResumeSubscriptionResponse, "subscription.resumed", resumed(), ""
        )

    async def _change_health(
        self,
        call: identity.Call,
        request: Any,
        reply: type[HealthReply],
        action: str,
        after: SubscriptionHealth,
        reason: str,
    ) -> HealthReply:
        sub_id = request.sub_id

        async def work(command: Command) -> HealthReply:
            before = await queries.health_for_update(command.connection, sub_id)
            if before is None:
                raise no_such_subscription()
            pause = Pause()
            if before.health == after.health == PAUSED:  # since then and by that person, with the newer reason
                pause = Pause(before.paused_at, before.paused_by, reason or before.pause_reason)
            elif after.health == PAUSED:
                pause = Pause(command.now, call.identity.actor, reason)
            row = await queries.health_saved(command.connection, sub_id, after, pause)
            sides = [
                {
                    "health": health.health,
                    "failures_in_a_row": health.failures_in_a_row,
                    "pause_reason": about.pause_reason,
                }
                for health, about in ((before, before), (after, pause))
            ]
            if sides[0] != sides[1]:
                await command.audit(action, SUBJECT, sub_id, *sides)
            return reply(subscription=_document(row))

        company_id = await self._dependencies.owner(call, sub_id)
        return await self._dependencies.commands.run(call, request, reply, work, company_id)

    # The signing secret

    async def RotateSecret(self, request: pb.RotateSecretRequest, call: identity.Call) -> pb.RotateSecretResponse:
        dependencies, sub_id = self._dependencies, request.sub_id
        if dependencies.vault is None:
            raise vault_unavailable("nothing was changed")
        company_id = await dependencies.owner(call, sub_id)
        secret = new_secret()
        sealed = dependencies.vault.seal(sub_id, secret)

        async def work(command: Command) -> pb.RotateSecretResponse:
            stored_secret = await queries.secret_in_use(command.connection, sub_id)
            if stored_secret is None:
                raise no_such_subscription()
            row = await queries.secret_replaced(
                command.connection,
                sub_id,
                stored_secret.secret_prefix,
                prefix=prefix_of(secret),
                key_id=sealed.key_id,
                sealed=sealed.sealed,
                since=command.now,
            )
            if row is None:
                raise rules.secret_just_rotated()
            before = {"secret_prefix": stored_secret.secret_prefix, "secret_key_id": stored_secret.secret_key_id}
            after = {"secret_prefix": row.secret_prefix, "secret_key_id": sealed.key_id}
            await command.audit("subscription.secret_rotated", SUBJECT, sub_id, before, after)
            return pb.RotateSecretResponse(subscription=_document(row))

        answer = await dependencies.commands.run(call, request, pb.RotateSecretResponse, work, company_id)
        prefix = json.loads(answer.subscription.json)["secret_prefix"]
        answer.secret = await self._secret_of(call, sub_id, prefix, secret)
        return answer

    async def _secret_of(self, call: identity.Call, sub_id: int, prefix: str, secret: str) -> str:
        """The secret with this prefix: that of this request, or for a repeat that follows at once the stored one; else
        empty. The stored reply never holds a secret."""
        if prefix_of(secret) == prefix:
            return secret
        stored_secret = await queries.secret_in_use(self._dependencies.database, sub_id)
        if stored_secret is None or stored_secret.secret_prefix != prefix:
            return ""
        clock = await self._dependencies.clock(call, stored_secret.company_id)
        if clock() - stored_secret.secret_since > SECRET_AGAIN:
            return ""
        return self._dependencies.opened(sub_id, stored_secret)


def _checked_fields(destination_url: str, events: Iterable[str]) -> tuple[SubscriptionCreate, list[EventKey]]:
    """The checked fields of a subscription, with the same refusals as those of the API."""
    fields = bodies.check(SubscriptionCreate, {"destination_url": destination_url, "events": list(events)})
    return fields, event_set(fields.events)


def _document(row: AdministeredSubscription) -> Document:
    return Document(json=_encode(row), entity_id=row.entity_id)
