"""Answers of svc-webhooks about the subscriptions of company 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chassis.auth.identity import Identity
from chassis.refusals import Refusal
from makeready.common.v1 import audit_pb2 as audit_pb
from makeready.webhooks.v1 import webhooks_pb2 as pb

from .samples_deliveries import EVENT, HOSTILE, URL, failed
from .stubs import NOW, ago

SECRET = "whsec_5dQx8Zr1uJmE5xPp7bLs2hGfA9dDiXo3"


def subscriptions() -> Sequence[pb.SubscriptionDetails]:
    return [
        pb.SubscriptionDetails(
            sub_id=7, company_id=1, destination_url=URL,
            events=["ticket.created", "ticket.status_changed", "turn.schedule_changed", "turn.status_changed"],
            health="dead_lettered", failures_in_a_row=41, failing_since=ago(days=2), created_at=ago(days=260),
            source="api", created_by="caller:1", secret_prefix="whsec_5dQ", secret_since=ago(days=260),
            undelivered=pb.Undelivered(sub_id=7, waiting=23, parked=14, next_due_at=ago(minutes=-21)),
            company_active=True),
        pb.SubscriptionDetails(
            sub_id=8, company_id=1, destination_url=f"https://hooks.example/?{HOSTILE}", events=["ticket.created"],
            health="paused", created_at=ago(days=3), source="administrator", created_by="administrator:1",
            paused_at=ago(hours=1), paused_by="administrator:1", pause_reason=HOSTILE, secret_prefix="whsec_abc",
            secret_since=ago(days=3), undelivered=pb.Undelivered(sub_id=8, waiting=3, held_by="paused"),
            company_active=True),
        pb.SubscriptionDetails(
            sub_id=9, company_id=1, destination_url="https://ledger.example:8443/hooks",
            events=["ticket.created", "vendor.hold"], health="healthy", created_at=ago(days=30),
            source="administrator", created_by="administrator:2", secret_prefix="whsec_Hf2", secret_since=ago(days=4),
            undelivered=pb.Undelivered(sub_id=9), company_active=True),
        pb.SubscriptionDetails(
            sub_id=10, company_id=1, destination_url="https://night.example/in", events=["pm.stale"],
            health="retrying", failures_in_a_row=3, failing_since=ago(hours=3), created_at=ago(days=9), source="api",
            secret_prefix="whsec_9aa", secret_since=ago(days=9), company_active=True,
            undelivered=pb.Undelivered(sub_id=10, waiting=1, next_due_at=ago(minutes=2))),
    ]  # fmt: skip


def _one(sub_id: int, who: Identity) -> pb.SubscriptionDetails:
    """As svc-webhooks does: the subscription of another company does not exist for an administrator."""
    for subscription in subscriptions():
        if subscription.sub_id == sub_id and who.company_id == 1:
            return subscription
    raise Refusal(404, "not_found", "There is no webhook subscription with that id; check the id.")


def _list(request: Any, who: Identity) -> Any:
    fitting = (
        [subscription for subscription in subscriptions() if subscription.sub_id > request.after_id]
        if who.company_id == 1
        else []
    )
    return pb.ListSubscriptionDetailsResponse(subscriptions=fitting)


def _get(request: Any, who: Identity) -> Any:
    return pb.GetSubscriptionResponse(subscription=_one(request.sub_id, who), next_sweep_at=ago(hours=-1))


def _count(request: Any, who: Identity) -> Any:
    subscription = _one(request.sub_id, who)
    number = subscription.undelivered.parked if request.state == pb.DELIVERY_STATE_PARKED else 812
    if not number:
        return pb.CountDeliveriesResponse()
    return pb.CountDeliveriesResponse(
        deliveries=number, first_made_at=ago(days=2), last_made_at=ago(days=1, hours=20), first_expires_at=ago(days=-28)
    )


def _progress(request: Any, who: Identity) -> Any:
    _one(request.sub_id, who)
    return pb.GetRetryProgressResponse(succeeded=10, failed=1, waiting=3, next_sweep_at=ago(hours=-1))


def _stats(request: Any, who: Identity) -> Any:
    """Hours of a day and of three days as in the life of an endpoint that fails for two days; without gaps."""
    subscription = _one(request.sub_id, who)
    hours = 24
    if request.HasField("since"):
        hours = round((request.until.seconds - request.since.seconds) / 3600) + 1
    steps = []
    for hours_ago in range(hours - 1, -1, -1):
        busy = (hours_ago * 7) % 5 if (NOW.hour - 5 - hours_ago) % 24 in range(7, 22) else 0
        fails = subscription.failures_in_a_row > 0 and hours_ago < 43
        step = pb.DeliveryStats(
            begins_at=ago(hours=hours_ago), succeeded=0 if fails else busy, failed=busy if fails else 0
        )
        if fails and hours_ago == 20:
            step.succeeded = 4
        steps.append(step)
    total = pb.DeliveryStats(
        succeeded=sum(step.succeeded for step in steps), failed=sum(step.failed for step in steps),
        median_milliseconds=184, p95_milliseconds=1900,
    )  # fmt: skip
    answers = [pb.AnswerCount(status=503, error="status", attempts=max(total.failed - 2, 0)),
               pb.AnswerCount(error="timeout", attempts=2),
               pb.AnswerCount(status=204, attempts=total.succeeded)] if subscription.failures_in_a_row else [
               pb.AnswerCount(status=204, attempts=total.succeeded)]  # fmt: skip
    return pb.GetDeliveryStatsResponse(steps=steps, total=total, answers=answers)


def _audit(request: Any, who: Identity) -> Any:
    values: Sequence[tuple[float, str, str, bytes]] = [
        (1, "administrator:2", "deliveries.retried", b'{"deliveries": 3, "state": "waiting"}'),
        (2, "administrator:1", "subscription.tested", b'{"event_id": "%s"}' % EVENT.encode()),
        (9, "operator", "subscription.paused", b'{"pause_reason": "A move to another host", "health": "paused"}'),
    ]
    if request.subject != "webhook_subscription" or who.company_id != 1:
        return audit_pb.ListAuditResponse()
    return audit_pb.ListAuditResponse(entries=[
        audit_pb.AuditEntry(id=90 - place, recorded_at=ago(days=days), actor=actor, action=action, after=after,
                            subject="webhook_subscription", subject_id=request.subject_id, before=b"{}")
        for place, (days, actor, action, after) in enumerate(values)
    ])  # fmt: skip


def _add(request: Any, who: Identity) -> Any:
    subscription = pb.SubscriptionDetails(
        sub_id=9, destination_url=request.destination_url, events=request.events, health="healthy",
        secret_prefix=SECRET[:10],
    )  # fmt: skip
    return pb.AddSubscriptionResponse(subscription=subscription, secret=SECRET)


def _rotate(request: Any, who: Identity) -> Any:
    _one(request.sub_id, who)
    return pb.RotateSecretResponse(secret=SECRET)


def _test(request: Any, who: Identity) -> Any:
    _one(request.sub_id, who)
    attempt = failed(1, 0, cause=5, state=pb.DELIVERY_STATE_FAILED, response_excerpt=HOSTILE)
    return pb.SendTestResponse(delivery=pb.Delivery(event_id=EVENT, sub_id=request.sub_id, attempts=[attempt]))


def _check(request: Any, who: Identity) -> Any:
    _one(request.sub_id, who)
    return pb.CheckSignatureResponse(
        verdict=pb.SIGNATURE_VERDICT_STALE, age_seconds=4000, age_seconds_max=300, event_id=EVENT
    )


def _retry(request: Any, who: Identity) -> Any:
    _one(request.sub_id, who)
    return pb.RetryParkedResponse(deliveries=14, retried_at=ago())


def webhook_answers() -> dict[str, Any]:
    administration, deliveries = "webhooks.AdministrationService", "webhooks.DeliveriesService"
    return {
        f"{administration}/ListSubscriptionDetails": _list,
        f"{administration}/GetSubscription": _get,
        f"{administration}/AddSubscription": _add,
        f"{administration}/RotateSecret": _rotate,
        f"{administration}/SendTest": _test,
        f"{administration}/CheckSignature": _check,
        f"{administration}/RetryParked": _retry,
        f"{deliveries}/CountDeliveries": _count,
        f"{deliveries}/GetDeliveryStats": _stats,
        f"{deliveries}/GetRetryProgress": _progress,
        "svc-webhooks common.AuditService/ListAudit": _audit,
    }
