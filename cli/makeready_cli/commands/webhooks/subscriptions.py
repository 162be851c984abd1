"""`makeready webhooks …`: subscriptions."""

from __future__ import annotations

import argparse
import json

from google.protobuf.descriptor import MethodDescriptor

from makeready.webhooks.v1 import webhooks_pb2 as pb
from makeready_cli.calls import Operator, ensure_company
from makeready_cli.output import Answer, Record, table
from makeready_cli.parsers import Commands
from makeready_cli.rpc.command import RpcCommand, add_commands

PAGE = 200
_LIST: MethodDescriptor = pb.DESCRIPTOR.services_by_name["SubscriptionsService"].methods_by_name["ListSubscriptions"]
_DELIVERIES = pb.DESCRIPTOR.services_by_name["DeliveriesService"].methods_by_name
_RPCS = pb.DESCRIPTOR.services_by_name["AdministrationService"].methods_by_name


def add_listing(commands: Commands) -> None:
    """Adds `list`."""
    listing = RpcCommand(
        "list",
        _LIST,
        "list a company's subscriptions, without their secrets",
        hidden=("after_id", "limit"),
        run=list_subscriptions,
    )
    add_commands(commands, listing)


def add(commands: Commands) -> None:
    """Adds the commands about one subscription."""
    add_commands(commands, *_reads(), *_acts())


def _reads() -> tuple[RpcCommand, ...]:
    return (
        RpcCommand(
            "show",
            _RPCS["GetSubscription"],
            "show a subscription, who made and paused it, and what waits",
            company=False,
        ),
        RpcCommand(
            "overview",
            _RPCS["ListSubscriptionDetails"],
            "list a company's subscriptions with what waits and what is parked",
        ),
        RpcCommand(
            "undelivered",
            _DELIVERIES["CountUndelivered"],
            "count a company's waiting and parked deliveries by subscription",
        ),
        RpcCommand(
            "stats", _DELIVERIES["GetDeliveryStats"], "count a subscription's attempts by hour or day", company=False
        ),
    )


def _acts() -> tuple[RpcCommand, ...]:
    return (
        RpcCommand(
            "create",
            _RPCS["AddSubscription"],
            "create a subscription and print its secret once",
            settings={"events": {"flag": "--event", "metavar": "KEY"}},
            answer=_created,
        ),
        RpcCommand(
            "change",
            _RPCS["UpdateSubscription"],
            "change a subscription's destination or events",
            settings={"events": {"flag": "--event", "metavar": "KEY"}},
            company=False,
        ),
        RpcCommand(
            "delete",
            _RPCS["RemoveSubscription"],
            "delete a subscription and its deliveries",
            description="Deletes a subscription with all its deliveries, delivered or not, and says how many go.",
            answer=_deleted,
        ),
        RpcCommand(
            "pause",
            _RPCS["PauseSubscription"],
            "hold a subscription's deliveries back",
            description="Holds a subscription's deliveries back. Events go on being stored for it; retries stand "
            "still; an attempt under way ends. What waits longer than 30 days goes undelivered: `webhooks expiring` "
            "lists it.",
            company=False,
            answer=_paused,
        ),
        RpcCommand(
            "resume",
            _RPCS["ResumeSubscription"],
            "make a subscription healthy again",
            description="Makes a subscription healthy again, whatever it was. What became due meanwhile goes with the "
            "next sweep; what is parked stays parked.",
            company=False,
            answer=_resumed,
        ),
        RpcCommand(
            "rotate-secret",
            _RPCS["RotateSecret"],
            "give a subscription a new signing secret",
            description="Makes a new signing secret and prints it once. The old one stops working at once, without an "
            "overlap: have the receiver take the new one, or hold deliveries back with `webhooks pause` meanwhile.",
            company=False,
            answer=_rotated,
        ),
    )


async def list_subscriptions(operator: Operator, arguments: argparse.Namespace) -> Answer:
    await ensure_company(operator, arguments.company_id)
    request = pb.ListSubscriptionsRequest(limit=PAGE)
    subscriptions: list[Record] = []
    while True:
        answer = await operator.call(
            "svc-webhooks", request, pb.ListSubscriptionsResponse, company_id=arguments.company_id
        )
        subscriptions += json.loads(answer.page.data)
        if not answer.page.HasField("next_after_id"):
            break
        request.after_id = answer.page.next_after_id
    rows = [
        (
            subscription["entity_id"],
            subscription["health"],
            subscription["secret_prefix"],
            subscription["created_at"][:10],
            subscription["destination_url"],
            " ".join(subscription["events"]),
        )
        for subscription in subscriptions
    ]
    headers = ("ID", "HEALTH", "SECRET", "CREATED", "DESTINATION", "EVENTS")
    return Answer({"subscriptions": subscriptions}, table(headers, rows, "No subscriptions."))


def _created(answer: pb.AddSubscriptionResponse, _arguments: argparse.Namespace) -> Answer:
    subscription = answer.subscription
    value = {
        "sub_id": subscription.sub_id,
        "secret": answer.secret or None,
        "secret_prefix": subscription.secret_prefix,
    }
    text = f"Subscription {subscription.sub_id} is created.\n\n{answer.secret}\n\n"
    text += "This is its signing secret, shown only now."
    return Answer(value, text)


def _deleted(answer: pb.RemoveSubscriptionResponse, arguments: argparse.Namespace) -> Answer:
    value = {"sub_id": arguments.sub_id, "deliveries": answer.deliveries, "undelivered": answer.undelivered}
    text = (
        f"Subscription {arguments.sub_id} is deleted, with {answer.deliveries} deliveries;"
        f" {answer.undelivered} of them had not arrived."
    )
    return Answer(value, text)


def _paused(answer: pb.PauseSubscriptionResponse, _arguments: argparse.Namespace) -> Answer:
    subscription = json.loads(answer.subscription.json)
    text = f"Subscription {subscription['entity_id']} is paused since {subscription['paused_at']}: its deliveries wait."
    return Answer(_health(subscription), text)


def _resumed(answer: pb.ResumeSubscriptionResponse, _arguments: argparse.Namespace) -> Answer:
    subscription = json.loads(answer.subscription.json)
    text = (
        f"Subscription {subscription['entity_id']} is {subscription['health']}: what is due goes with the next sweep."
    )
    return Answer(_health(subscription), text)


def _health(subscription: Record) -> Record:
    return {"sub_id": subscription["entity_id"], "health": subscription["health"]}


def _rotated(answer: pb.RotateSecretResponse, _arguments: argparse.Namespace) -> Answer:
    subscription = json.loads(answer.subscription.json)
    value = {
        "sub_id": subscription["entity_id"],
        "secret": answer.secret,
        "secret_prefix": subscription["secret_prefix"],
    }
    text = (
        f"{answer.secret}\n\n"
        f"This is the signing secret of subscription {subscription['entity_id']} from now on, shown only now.\n"
        "The one before signs nothing any more."
    )
    return Answer(value, text)
