"""Answers of svc-webhooks about deliveries and events of company 1."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from chassis.auth.identity import STAFF, Identity
from chassis.refusals import Refusal
from makeready.webhooks.v1 import webhooks_pb2 as pb

from .stubs import ago

HOSTILE = "\"><script>alert(1)</script>'{{7*7}}<img src=x onerror=alert(2)>"
EVENT = "019caf2d-2f66-7986-ac42-0f923d0db2f6"
UNHEARD = "019caf2d-1111-7986-ac42-0f923d0db2f6"
REQUEST = "680f102508e0c8cfe6b8b489"
URL = "https://hooks.leasing.example/makeready/v1"
RUNG_HOURS = (0, 1, 2, 4, 8, 24)
TITLE = "卫生间天花板漏水，墙面起泡"
BODY = json.dumps(
    {
        "schema_version": 1, "event_id": EVENT, "event": "ticket.status_changed",
        "occurred_at": "2026-11-20T20:15:12.040311Z", "company_id": 1,
        "data": {"schema_version": 1, "entity_type": "ticket", "entity_id": 102, "ticket_number": 8, "title": TITLE,
                 "description": HOSTILE, "status": "In Progress", "unit": None, "permission_to_enter": True},
        "change": {"field": "status", "from": "Open", "to": "In Progress"},
    },
    ensure_ascii=False, separators=(",", ":"),
).encode()  # fmt: skip


def failed(number: int, hours_ago: float, **values: Any) -> pb.Attempt:
    return pb.Attempt(**{
        "number": number, "started_at": ago(hours=hours_ago), "duration_milliseconds": 195, "status": 503,
        "error": "status", "response_excerpt": '{ "error": "db_unavailable" }', "connect_milliseconds": 22,
        "tls_milliseconds": 41, "first_byte_milliseconds": 182, "address": "203.0.113.24", "cause": 1,
        "state": pb.DELIVERY_STATE_WAITING, **values})  # fmt: skip


def parked(event_id: str = EVENT) -> pb.Delivery:
    attempts = [failed(place + 1, 44 - hours) for place, hours in enumerate(RUNG_HOURS)]
    attempts[2].ClearField("status")
    attempts[2].error, attempts[2].response_excerpt = "timeout", ""
    attempts[-1].state = pb.DELIVERY_STATE_PARKED
    attempts.append(
        failed(7, 6, cause=2, actor="administrator:2", state=pb.DELIVERY_STATE_PARKED, response_excerpt=HOSTILE)
    )
    return _delivery(event_id, pb.DELIVERY_STATE_PARKED, attempts, 7)


def _delivery(event_id: str, state: Any, attempts: Sequence[pb.Attempt], rungs_used: int, **values: Any) -> pb.Delivery:
    return pb.Delivery(**{
        "event_id": event_id, "sub_id": 7, "event": "ticket.status_changed", "state": state,
        "occurred_at": ago(hours=45), "attempts": attempts, "expires_at": ago(days=-28), "destination_url": URL,
        "entity_type": "ticket", "entity_id": 102, "rungs_used": rungs_used, "rungs": 6, "about": f"#8 {TITLE}",
        **values})  # fmt: skip


def deliveries() -> Sequence[pb.Delivery]:
    """One of each state, newest first."""
    waiting = _delivery(
        "019caf2e-0000-7986-ac42-0f923d0db2f6", pb.DELIVERY_STATE_WAITING, [failed(1, 2), failed(2, 1)], 2,
        due_at=ago(minutes=-21), about=HOSTILE, event="turn.schedule_changed", entity_type="turn", entity_id=3,
        occurred_at=ago(hours=2.2))  # fmt: skip
    held = _delivery(
        "019caf2d-9999-7986-ac42-0f923d0db2f6", pb.DELIVERY_STATE_WAITING, [], 0, held_by="paused",
        due_at=ago(minutes=-1), event="turn.status_changed", about="Logement 2B, 1er étage", occurred_at=ago(hours=3),
    )  # fmt: skip
    arrived = failed(1, 20, status=200, error="", state=pb.DELIVERY_STATE_SUCCEEDED, response_excerpt="thanks")
    arrived.ClearField("connect_milliseconds")
    succeeded = _delivery(
        "019caf2d-5555-7986-ac42-0f923d0db2f6", pb.DELIVERY_STATE_SUCCEEDED, [arrived], 1, event="ticket.created",
        occurred_at=ago(hours=20.5), about="#28 No hot water since this morning",
    )  # fmt: skip
    return [waiting, held, succeeded, parked()]


def of_one(request: Any, who: Identity) -> None:
    if who.company_id != 1 or request.sub_id not in (7, 8):
        raise Refusal(404, "not_found", "No subscription with that id is visible to you; check the id.")


def _list(request: Any, who: Identity) -> Any:
    of_one(request, who)
    fitting = (
        [delivery for delivery in deliveries() if request.state in (0, delivery.state)] if request.sub_id == 7 else []
    )
    return pb.ListDeliveriesResponse(deliveries=fitting)


def _find(request: Any, who: Identity) -> pb.Delivery:
    of_one(request, who)
    for delivery in deliveries():
        if delivery.event_id == request.event_id:
            delivery.sub_id = request.sub_id
            return delivery
    raise Refusal(404, "not_found", "No delivery of that event to that subscription is kept; check both ids.")


def _get(request: Any, who: Identity) -> Any:
    delivery = _find(request, who)
    for attempt in delivery.attempts:
        for name, value in (("Host", "hooks.leasing.example"), ("Content-Type", "application/json"),
                            ("Service-Signature", "t=1795294800,v1=" + "d41c" * 16),
                            ("Service-Attempt", str(attempt.number)), ("X-Request-Id", REQUEST)):  # fmt: skip
            attempt.request_headers.add(name=name, value=value)
    signature = "t=1795294900,v1=" + "9e07" * 16
    fresh = {"Service-Signature": signature, "webhook-id": delivery.event_id, "webhook-timestamp": "1795294900",
             "webhook-signature": "v1,fresh="}  # fmt: skip
    return pb.GetDeliveryResponse(delivery=delivery, body=BODY, request_id=REQUEST, fresh_signature=signature,
                                  fresh_headers=[pb.Header(name=name, value=value) for name, value in fresh.items()],
                                  )  # fmt: skip


def _attempted(response: Any) -> Any:
    def answer(request: Any, who: Identity) -> Any:
        delivery = _find(request, who)
        delivery.attempts.append(failed(len(delivery.attempts) + 1, 0))
        return response(delivery=delivery)

    return answer


def events() -> Sequence[pb.Event]:
    all_events = []
    for delivery in deliveries():
        all_events.append(pb.Event(
            event_id=delivery.event_id, event=delivery.event, entity_type=delivery.entity_type,
            entity_id=delivery.entity_id, occurred_at=delivery.occurred_at, stored_at=delivery.occurred_at,
            request_id=REQUEST, about=delivery.about,
            outcome=pb.EventOutcome.ValueType(delivery.state + 1),
            waiting=int(delivery.state == 1), succeeded=int(delivery.state == 2), parked=int(delivery.state == 3),
            expires_at=delivery.expires_at))  # fmt: skip
    all_events.append(pb.Event(event_id=UNHEARD, event="pm.stale", entity_type="pm_task",
                          entity_id=4, occurred_at=ago(days=3), stored_at=ago(days=3), expires_at=ago(days=-27),
                          outcome=pb.EVENT_OUTCOME_NO_DELIVERIES, about=HOSTILE))  # fmt: skip
    return all_events


def _events(request: Any, who: Identity) -> Any:
    fitting = [
        event for event in events()
        if request.request_id in ("", event.request_id) and request.outcome in (0, event.outcome)
        and request.entity_id in (0, event.entity_id) and request.event in ("", event.event)
    ]  # fmt: skip
    return pb.ListEventsResponse(events=fitting if who.company_id == 1 else [])


def _event(request: Any, who: Identity) -> Any:
    for delivery in deliveries() if who.company_id == 1 else []:
        if delivery.event_id == request.event_id:
            return pb.GetEventResponse(
                event_id=delivery.event_id, event=delivery.event, company_id=1, entity_id=delivery.entity_id,
                entity_type=delivery.entity_type, occurred_at=delivery.occurred_at, stored_at=delivery.occurred_at,
                request_id=REQUEST, body=BODY, deliveries=[delivery], expires_at=delivery.expires_at,
                about=delivery.about)  # fmt: skip
    if request.event_id == UNHEARD and who.company_id == 1:
        return pb.GetEventResponse(event_id=UNHEARD, event="pm.stale", company_id=1, entity_id=4, body=BODY,
                                   entity_type="pm_task", occurred_at=ago(days=3), stored_at=ago(days=3),
                                   expires_at=ago(days=-27), about=HOSTILE)  # fmt: skip
    raise Refusal(404, "not_found", "No event with that id is kept; check the id.")


def _of_record(request: Any, who: Identity) -> Any:
    fitting = (
        [delivery for delivery in deliveries() if delivery.entity_id == request.entity_id]
        if who.company_id == 1
        else []
    )
    for delivery in fitting:
        del delivery.attempts[:-1]
        if who.kind == STAFF:
            delivery.destination_url = "https://hooks.leasing.example"
    return pb.ListDeliveriesOfResponse(deliveries=fitting)


def delivery_answers() -> dict[str, Any]:
    return {
        "webhooks.DeliveriesService/ListDeliveries": _list,
        "webhooks.DeliveriesService/GetDelivery": _get,
        "webhooks.DeliveriesService/ListDeliveriesOf": _of_record,
        "webhooks.AdministrationService/RetryDelivery": _attempted(pb.RetryDeliveryResponse),
        "webhooks.AdministrationService/AttemptNow": _attempted(pb.AttemptNowResponse),
        "webhooks.AdministrationService/Resend": _attempted(pb.ResendResponse),
        "webhooks.AdministrationService/ListEvents": _events,
        "webhooks.AdministrationService/GetEvent": _event,
    }
