"""`makeready webhooks …`."""

from __future__ import annotations

import argparse
import json
from typing import Any

from gateway.cli import arguments as types
from gateway.cli.answers import Answer, instant, labels, table
from gateway.cli.companies import ensure_company
from gateway.cli.system import Operator
from makeready.webhooks.v1 import webhooks_pb2 as pb
from makeready.webhooks.v1.webhooks_pb2_grpc import DeliveriesServiceStub, SubscriptionsServiceStub

STATES = labels(pb.DeliveryState.DESCRIPTOR)
PAGE = 200
DELIVERIES_MAX = 200


def add(commands: types.Commands) -> None:
    verbs = types.group(commands, "webhooks", "look at webhook subscriptions and their deliveries")

    listing = types.command(verbs, "list", "list a company's subscriptions, without their secrets")
    listing.add_argument("company_id", metavar="COMPANY_ID", type=types.record_id)
    listing.set_defaults(run=list_subscriptions)

    showing = types.command(verbs, "deliveries", "list a subscription's deliveries, newest first")
    showing.add_argument("sub_id", metavar="SUB_ID", type=types.record_id)
    showing.set_defaults(run=list_deliveries)


async def list_subscriptions(operator: Operator, arguments: argparse.Namespace) -> Answer:
    await ensure_company(operator, arguments.company_id)
    subscriptions = SubscriptionsServiceStub(operator.channel("svc-webhooks"))
    request = pb.ListSubscriptionsRequest(limit=PAGE)
    found: list[dict[str, Any]] = []
    while True:
        answer = await operator.call(
            "svc-webhooks", subscriptions.ListSubscriptions, request, company_id=arguments.company_id
        )
        found += json.loads(answer.page.data)
        if not answer.page.HasField("next_after_id"):
            break
        request.after_id = answer.page.next_after_id
    rows = [
        (one["entity_id"], one["health"], one["destination_url"], " ".join(one["events"]), one["created_at"])
        for one in found
    ]
    headers = ("ID", "HEALTH", "DESTINATION", "EVENTS", "CREATED")
    return Answer({"subscriptions": found}, table(headers, rows, "No subscriptions."))


async def list_deliveries(operator: Operator, arguments: argparse.Namespace) -> Answer:
    deliveries = DeliveriesServiceStub(operator.channel("svc-webhooks"))
    request = pb.ListDeliveriesRequest(sub_id=arguments.sub_id, limit=DELIVERIES_MAX)
    answer = await operator.call("svc-webhooks", deliveries.ListDeliveries, request)
    found = [_shown(delivery) for delivery in answer.deliveries]
    rows = [
        (
            one["event_id"],
            one["event"],
            one["state"],
            one["occurred_at"],
            one["due_at"],
            len(one["attempts"]),
            _outcome(one["attempts"]),
        )
        for one in found
    ]
    headers = ("EVENT", "KEY", "STATE", "OCCURRED", "DUE", "ATTEMPTS", "LAST")
    return Answer({"deliveries": found}, table(headers, rows, "No deliveries."))


def _shown(delivery: pb.Delivery) -> dict[str, Any]:
    return {
        "event_id": delivery.event_id,
        "sub_id": delivery.sub_id,
        "event": delivery.event,
        "state": STATES.get(delivery.state, "unknown"),
        "occurred_at": instant(delivery.occurred_at),
        "due_at": instant(delivery.due_at) if delivery.HasField("due_at") else None,
        "attempts": [
            {
                "number": attempt.number,
                "started_at": instant(attempt.started_at),
                "duration_milliseconds": attempt.duration_milliseconds,
                "status": attempt.status if attempt.HasField("status") else None,
                "error": attempt.error or None,
                "response_excerpt": attempt.response_excerpt,
            }
            for attempt in delivery.attempts
        ],
    }


def _outcome(attempts: list[dict[str, Any]]) -> str | None:
    if not attempts:
        return None
    last = attempts[-1]
    return " ".join(str(part) for part in (last["status"], last["error"]) if part is not None)
