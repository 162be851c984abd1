"""The list of webhook subscriptions. Their pages are in `endpoint`, the actions on them in `actions`."""

from __future__ import annotations

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
SHOWN, CSV_ROWS = 50, 200
CSV_HEADER = (
    "sub_id", "destination_url", "health", "failures_in_a_row", "failing_since", "events", "waiting", "next_due_at",
    "parked", "paused_at", "pause_reason", "source", "created_by", "created_at", "secret_prefix", "secret_since",
)  # fmt: skip


async def list_subscriptions(context: PageContext) -> web.StreamResponse:
    wants_csv = "csv" in context.query
    request = pb.ListSubscriptionDetailsRequest(limit=CSV_ROWS if wants_csv else SHOWN)
    if after := filters.number(context.query.get("after", "")):
        request.after_id = after
    page = await context.rpcs.call(LIST, request)
    if wants_csv:
        return _csv(page.subscriptions)
    names = await names_of(context.rpcs, [subscription.paused_by for subscription in page.subscriptions])
    more = with_query(PATH, {"after": page.next_after_id}) if page.HasField("next_after_id") else ""
    return context.render(
        "webhooks/list.html", here=HERE, subscriptions=page.subscriptions, more=more, names=names, words=words,
        later=request.HasField("after_id"), csv_path=with_query(PATH, {"after": request.after_id, "csv": 1}),
    )  # fmt: skip


def _csv(subscriptions: list[pb.SubscriptionDetails]) -> web.Response:
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
    page = await context.rpcs.call(LIST, pb.ListSubscriptionDetailsRequest(limit=CSV_ROWS))
    endpoints = [subscription for subscription in page.subscriptions if event in subscription.events]
    return context.render("webhooks/panel.html", event=event, endpoints=endpoints, words=words)
