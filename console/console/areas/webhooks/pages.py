"""The list of webhook subscriptions. Their pages are in `endpoint`, the actions on them in `actions`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from aiohttp import web

from console.areas.webhooks import words
from console.kit import csv_files, filters
from console.kit.context import PageContext
from console.kit.links import with_query
from console.kit.names import RPC as NAMES
from console.kit.names import names_of
from makeready.webhooks.v1 import webhooks_pb2 as pb

HERE = "Webhooks"
PATH = "/webhooks"
LIST = "webhooks.AdministrationService/ListSubscriptionDetails"
SHOWS = (LIST, NAMES)
SHOWN, ALL_AT_ONCE, HOME_ROWS = 50, 200, 8
VIEWS = ("", "retry", "failing")
CSV_HEADER = (
    "sub_id", "destination_url", "health", "failures_in_a_row", "failing_since", "events", "waiting", "next_due_at",
    "parked", "paused_at", "pause_reason", "source", "created_by", "created_at", "secret_prefix", "secret_since",
)  # fmt: skip


async def every_subscription(context: PageContext) -> Sequence[pb.SubscriptionDetails]:
    """Those of the company, which has a thousand at most."""
    subscriptions: list[pb.SubscriptionDetails] = []
    request = pb.ListSubscriptionDetailsRequest(limit=ALL_AT_ONCE)
    while True:
        page = await context.rpcs.call(LIST, request)
        subscriptions += page.subscriptions
        if not page.HasField("next_after_id"):
            return subscriptions
        request.after_id = page.next_after_id


def in_view(subscriptions: Iterable[pb.SubscriptionDetails], view: str) -> list[pb.SubscriptionDetails]:
    """view: of VIEWS. Retried are those with parked deliveries, failing are those whose last attempt failed."""
    if view == "retry":
        return [subscription for subscription in subscriptions if subscription.undelivered.parked]
    if view == "failing":
        return [subscription for subscription in subscriptions if subscription.HasField("failing_since")]
    return list(subscriptions)


def parked_of(subscriptions: Iterable[pb.SubscriptionDetails]) -> int:
    return sum(subscription.undelivered.parked for subscription in subscriptions)


async def list_subscriptions(context: PageContext) -> web.StreamResponse:
    view = context.query.get("view", "")
    view = view if view in VIEWS else ""
    later, more = filters.number(context.query.get("after", "")), ""
    if view or "csv" in context.query:
        listed = in_view(await every_subscription(context), view)
    else:
        request = pb.ListSubscriptionDetailsRequest(limit=SHOWN, after_id=later or None)
        page = await context.rpcs.call(LIST, request)
        listed = list(page.subscriptions)
        more = with_query(PATH, {"after": page.next_after_id}) if page.HasField("next_after_id") else ""
    if "csv" in context.query:
        return _csv(listed)
    names = await names_of(context.rpcs, [subscription.paused_by for subscription in listed])
    return context.render(
        "webhooks/list.html", here=HERE, subscriptions=listed, more=more, names=names, words=words, view=view,
        later=bool(later) and not view, parked=parked_of(listed), csv_path=with_query(PATH, {"view": view, "csv": 1}),
    )  # fmt: skip


async def home(context: PageContext) -> web.StreamResponse:
    """The first page's counts and card: deliveries that are parked, and endpoints that fail."""
    every = await every_subscription(context)
    trouble = [
        subscription for subscription in every if subscription.health != "healthy" or subscription.undelivered.parked
    ]
    trouble.sort(
        key=lambda subscription: (
            -subscription.undelivered.parked,
            subscription.health == "paused",
            subscription.sub_id,
        )
    )
    return context.render(
        "webhooks/home.html", every=every, trouble=trouble[:HOME_ROWS], words=words, parked=parked_of(every),
        failing=in_view(trouble, "failing"),
    )  # fmt: skip


def _csv(subscriptions: Sequence[pb.SubscriptionDetails]) -> web.Response:
    rows = []
    for subscription in subscriptions:
        wait = subscription.undelivered
        row = [
            subscription.sub_id,
            subscription.destination_url,
            subscription.health,
            subscription.failures_in_a_row,
            _iso(subscription, "failing_since"),
        ]
        row += [
            " ".join(subscription.events),
            wait.waiting,
            _iso(wait, "next_due_at"),
            wait.parked,
            _iso(subscription, "paused_at"),
        ]
        row += [
            subscription.pause_reason,
            subscription.source,
            subscription.created_by,
            _iso(subscription, "created_at"),
            subscription.secret_prefix,
        ]
        rows.append([*row, _iso(subscription, "secret_since")])
    return csv_files.answer("webhooks", CSV_HEADER, rows)


def _iso(message: pb.SubscriptionDetails | pb.Undelivered, name: str) -> str:
    stamp = getattr(message, name)
    return stamp.ToJsonString() if stamp.seconds else ""


async def panel(context: PageContext) -> web.StreamResponse:
    """The endpoints that get an event: those that an action is about to tell."""
    event = context.query.get("event", "")
    if event not in dict(words.EVENTS):
        raise web.HTTPNotFound
    page = await context.rpcs.call(LIST, pb.ListSubscriptionDetailsRequest(limit=ALL_AT_ONCE))
    endpoints = [subscription for subscription in page.subscriptions if event in subscription.events]
    return context.render("webhooks/panel.html", event=event, endpoints=endpoints, words=words)
