"""Calls the administration RPCs, as the operator by default."""

import datetime
import json
import secrets
import time
from typing import Any

from chassis.auth.identity import ADMINISTRATOR, Identity
from chassis.auth.rpcs import rpc_of
from makeready.common.v1.audit_pb2 import ListAuditRequest
from makeready.webhooks.v1 import webhooks_pb2 as pb

from .harness import Client, operator

HOUR = datetime.timedelta(hours=1)
RUNGS = (0, 1, 2, 4, 8, 24)


def key() -> str:
    """An idempotency key that no other request has."""
    return secrets.token_hex(8)


class Administrator:
    """Calls for one company; a refusal is raised as Refusal."""

    def __init__(self, client: Client, who: Identity | None = None) -> None:
        self.client = client
        self.who = who or operator(client.company_id)

    def of(self, company_id: int) -> "Administrator":
        """The same calls as an administrator of a company."""
        confirmed = int(time.time())
        who = Identity(ADMINISTRATOR, "gateway", company_id, administrator_id=7, stepped_up_at=confirmed)
        return Administrator(self.client, who)

    async def _call(self, name: str, request: Any) -> Any:
        assert rpc_of(type(request)).name == name
        return await self.client.call(request, self.who)

    async def audit(self, sub_id: int) -> list[tuple[str, str, dict[str, Any], dict[str, Any]]]:
        """The audit entries of a subscription, oldest first: actor, action, before, after."""
        request = ListAuditRequest(subject="webhook_subscription", subject_id=sub_id, limit=200)
        answer = await self.client.call(request, self.who)
        return [
            (entry.actor, entry.action, json.loads(entry.before), json.loads(entry.after))
            for entry in reversed(answer.entries)
        ]

    async def pause(self, sub_id: int) -> dict[str, Any]:
        answer = await self._call(
            "PauseSubscription", pb.PauseSubscriptionRequest(sub_id=sub_id, idempotency_key=key())
        )
        subscription: dict[str, Any] = json.loads(answer.subscription.json)
        return subscription

    async def resume(self, sub_id: int) -> dict[str, Any]:
        answer = await self._call(
            "ResumeSubscription", pb.ResumeSubscriptionRequest(sub_id=sub_id, idempotency_key=key())
        )
        subscription: dict[str, Any] = json.loads(answer.subscription.json)
        return subscription

    async def rotate(self, sub_id: int) -> tuple[dict[str, Any], str]:
        """The subscription and its new secret."""
        answer = await self._call("RotateSecret", pb.RotateSecretRequest(sub_id=sub_id, idempotency_key=key()))
        return json.loads(answer.subscription.json), answer.secret

    async def retry(self, event_id: str, sub_id: int) -> pb.Delivery:
        answer = await self._call(
            "RetryDelivery", pb.RetryDeliveryRequest(event_id=event_id, sub_id=sub_id, idempotency_key=key())
        )
        delivery: pb.Delivery = answer.delivery
        return delivery

    async def retry_parked(self, sub_id: int) -> int:
        request = pb.RetryParkedRequest(sub_id=sub_id, idempotency_key=key())
        count: int = (await self._call("RetryParked", request)).deliveries
        return count

    async def undelivered(self, expires_before: datetime.datetime | None = None, **fields: Any) -> Any:
        request = pb.ListUndeliveredRequest(**fields)
        if expires_before is not None:
            request.expires_before.FromDatetime(expires_before)
        return await self._call("ListUndelivered", request)

    async def event(self, event_id: str) -> Any:
        return await self._call("GetEvent", pb.GetEventRequest(event_id=event_id))

    async def deliveries(self, sub_id: int, **fields: Any) -> list[pb.Delivery]:
        request = pb.ListDeliveriesRequest(sub_id=sub_id, **fields)
        answer = await self.client.call(request, self.who)
        return list(answer.deliveries)

    async def subscribe(self, path: str = "/hook", host: str = "receiver.test") -> int:
        body = {"destination_url": f"https://{host}{path}", "events": ["ticket.created"]}
        created: int = (await self.client.create(body))[1]["entity_id"]
        return created

    async def health(self, sub_id: int) -> str:
        (subscription,) = [each for each in await self.client.subscriptions() if each["entity_id"] == sub_id]
        text: str = subscription["health"]
        return text

    async def walk_the_ladder(self, start: datetime.datetime) -> datetime.datetime:
        """Sweeps at every rung; returns the instant of the last one."""
        for hours in RUNGS:
            await self.client.sweep(start + hours * HOUR)
        return start + RUNGS[-1] * HOUR
