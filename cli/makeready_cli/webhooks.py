"""`makeready webhooks …`: subscriptions here, deliveries and events in modules of their own."""

from __future__ import annotations

import argparse
import json
from typing import Any

from makeready.webhooks.v1 import webhooks_pb2 as pb
from makeready.webhooks.v1.webhooks_pb2_grpc import AdministrationServiceStub, SubscriptionsServiceStub
from makeready_cli import arguments as types
from makeready_cli import deliveries, event
from makeready_cli.acting_arguments import add_actor
from makeready_cli.answers import Answer, table
from makeready_cli.companies import ensure_company
from makeready_cli.system import Operator

PAGE = 200
_RPCS = pb.DESCRIPTOR.services_by_name["AdministrationService"].methods_by_name
_LIST = pb.DESCRIPTOR.services_by_name["SubscriptionsService"].methods_by_name["ListSubscriptions"]


def add(commands: types.Commands) -> None:
    verbs = types.group(commands, "webhooks", "look after webhook subscriptions and their deliveries")

    listing = types.command(verbs, "list", "list a company's subscriptions, without their secrets")
    listing.add_argument("company_id", metavar="COMPANY_ID", type=types.record_id)
    add_actor(listing, _LIST)
    listing.set_defaults(run=list_subscriptions)

    deliveries.add(verbs)
    event.add(verbs)

    pausing = types.command(
        verbs,
        "pause",
        "hold a subscription's deliveries back",
        description="Holds a subscription's deliveries back. Events go on being stored for it; retries stand still; "
        "an attempt under way ends. What waits longer than 30 days goes undelivered: `webhooks expiring` lists it.",
    )
    pausing.add_argument("sub_id", metavar="SUB_ID", type=types.record_id)
    add_actor(pausing, _RPCS["PauseSubscription"])
    pausing.set_defaults(run=pause)

    resuming = types.command(
        verbs,
        "resume",
        "make a subscription healthy again",
        description="Makes a subscription healthy again, whatever it was. What became due meanwhile goes with the next "
        "sweep; what is parked stays parked.",
    )
    resuming.add_argument("sub_id", metavar="SUB_ID", type=types.record_id)
    add_actor(resuming, _RPCS["ResumeSubscription"])
    resuming.set_defaults(run=resume)

    rotating = types.command(
        verbs,
        "rotate-secret",
        "give a subscription a new signing secret",
        description="Makes a new signing secret and tells it once. The old one stops working at once, without an "
        "overlap: have the receiver take the new one, or hold deliveries back with `webhooks pause` meanwhile.",
    )
    rotating.add_argument("sub_id", metavar="SUB_ID", type=types.record_id)
    add_actor(rotating, _RPCS["RotateSecret"])
    rotating.set_defaults(run=rotate_secret)


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
        (
            one["entity_id"],
            one["health"],
            one["secret_prefix"],
            one["created_at"][:10],
            one["destination_url"],
            " ".join(one["events"]),
        )
        for one in found
    ]
    headers = ("ID", "HEALTH", "SECRET", "CREATED", "DESTINATION", "EVENTS")
    return Answer({"subscriptions": found}, table(headers, rows, "No subscriptions."))


async def pause(operator: Operator, arguments: argparse.Namespace) -> Answer:
    operator.trace()
    administration = AdministrationServiceStub(operator.channel("svc-webhooks"))
    request = pb.PauseSubscriptionRequest(sub_id=arguments.sub_id)
    answer = await operator.call("svc-webhooks", administration.PauseSubscription, request)
    found = json.loads(answer.subscription.json)
    text = f"Subscription {found['entity_id']} is paused since {found['paused_at']}: its deliveries wait."
    return Answer(_standing(found), text)


async def resume(operator: Operator, arguments: argparse.Namespace) -> Answer:
    operator.trace()
    administration = AdministrationServiceStub(operator.channel("svc-webhooks"))
    request = pb.ResumeSubscriptionRequest(sub_id=arguments.sub_id)
    answer = await operator.call("svc-webhooks", administration.ResumeSubscription, request)
    found = json.loads(answer.subscription.json)
    text = f"Subscription {found['entity_id']} is {found['health']}: what is due goes with the next sweep."
    return Answer(_standing(found), text)


def _standing(found: dict[str, Any]) -> dict[str, Any]:
    return {"sub_id": found["entity_id"], "health": found["health"]}


async def rotate_secret(operator: Operator, arguments: argparse.Namespace) -> Answer:
    operator.trace()
    administration = AdministrationServiceStub(operator.channel("svc-webhooks"))
    request = pb.RotateSecretRequest(sub_id=arguments.sub_id)
    answer = await operator.call("svc-webhooks", administration.RotateSecret, request)
    found = json.loads(answer.subscription.json)
    value = {"sub_id": found["entity_id"], "secret": answer.secret, "secret_prefix": found["secret_prefix"]}
    text = (
        f"{answer.secret}\n\n"
        f"This is the signing secret of subscription {found['entity_id']} from now on, told this once.\n"
        "The one before signs nothing any more."
    )
    return Answer(value, text)
