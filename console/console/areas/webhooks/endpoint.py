"""The page of one webhook subscription: what is wrong with it, its attempts, its deliveries, who did what to it."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Sequence

from aiohttp import web
from google.protobuf.timestamp_pb2 import Timestamp
from markupsafe import Markup

from console.areas.webhooks import deliveries, words
from console.areas.webhooks.pages import HERE
from console.kit import charts
from console.kit.calls import Panel, together
from console.kit.context import PageContext
from console.kit.links import with_query
from console.kit.names import RPC as NAMES
from console.kit.names import Names, names_of
from console.kit.texts import _
from console.kit.times import Wall, clock, day
from makeready.common.v1 import audit_pb2
from makeready.webhooks.v1 import webhooks_pb2 as pb

GET = "webhooks.AdministrationService/GetSubscription"
STATS = "webhooks.DeliveriesService/GetDeliveryStats"
COUNT = "webhooks.DeliveriesService/CountDeliveries"
AUDIT = "common.AuditService/ListAudit"
SHOWS = (GET, STATS, COUNT, AUDIT, NAMES, *deliveries.TABLE)
SERVICE = "svc-webhooks"
SUBJECT = "webhook_subscription"
RECENT_CHANGES = 8
PERIODS = {"24h": 24, "3d": 72, "30d": 720}
"""The periods of the chart in hours, by how the address spells them."""
MARK_COLUMNS = 5
"""The least distance of two marks on the chart's axis."""


@dataclasses.dataclass(frozen=True, slots=True)
class Chart:
    """Attempts in a row of steps. unit: "hour" or "day"."""

    drawing: Markup
    unit: str
    succeeded: int
    failed: int


async def show_endpoint(context: PageContext) -> web.StreamResponse:
    return await page(context)


async def page(context: PageContext, status: int = 200, **more: object) -> web.Response:
    """more: what an action adds, as `tested` or `error`."""
    sub_id = context.number("sub_id")
    path = f"/webhooks/{sub_id}"
    period = context.query.get("period", "24h")
    period = period if period in PERIODS else "24h"
    state = deliveries.state_in(context.query.get("state", ""))
    parked = pb.CountDeliveriesRequest(sub_id=sub_id, state=pb.DELIVERY_STATE_PARKED)
    audit = audit_pb2.ListAuditRequest(subject=SUBJECT, subject_id=sub_id, limit=RECENT_CHANGES)
    response, today, longer, kept, changes, table = await together(
        context.rpcs.call(GET, pb.GetSubscriptionRequest(sub_id=sub_id)),
        context.rpcs.panel(STATS, pb.GetDeliveryStatsRequest(sub_id=sub_id, step=pb.STATS_STEP_HOUR)),
        _longer(context, sub_id, period),
        context.rpcs.panel(COUNT, parked),
        context.rpcs.panel(AUDIT, audit, service=SERVICE),
        deliveries.first_page(context, sub_id, state),
    )
    subscription = response.subscription
    stats = today if longer is None else longer
    entries = changes.entries if changes.ok else []
    names = await names_of(
        context.rpcs, [subscription.created_by, subscription.paused_by, *(entry.actor for entry in entries)]
    )
    return context.render(
        "webhooks/endpoint.html", status, here=HERE, subscription=subscription, path=path, names=names, words=words,
        next_sweep_at=response.next_sweep_at, day=today, chart=_chart(stats, period, context.wall), stats=stats,
        periods=[(label, with_query(path, {"period": key, "state": state}) + "#attempts", key == period)
                 for key, label in (("24h", "24 hours"), ("3d", "3 days"), ("30d", "30 days"))],
        trouble=_trouble(context, subscription, today, stats, kept, names), changes=changes,
        parked_of=_parked_of(kept, context.wall),
        entries=[(entry, words.change_of(entry)) for entry in entries], is_whole_history=len(entries) < RECENT_CHANGES,
        table=dataclasses.replace(table, undelivered=subscription.undelivered), **more,
    )  # fmt: skip


async def _longer(context: PageContext, sub_id: int, period: str) -> Panel[pb.GetDeliveryStatsResponse] | None:
    """The statistics of a period that is longer than a day."""
    if period == "24h":
        return None
    request = pb.GetDeliveryStatsRequest(sub_id=sub_id, step=pb.STATS_STEP_HOUR)
    since = context.wall.now - datetime.timedelta(hours=PERIODS[period] - 1)
    if period == "30d":  # whole days of the company's clock
        first = context.wall.now.date() - datetime.timedelta(days=29)
        since = datetime.datetime.combine(first, datetime.time(), context.wall.zone)
    request.since.FromDatetime(since)
    request.until.FromDatetime(context.wall.now)
    return await context.rpcs.panel(STATS, request)


def _trouble(
    context: PageContext,
    subscription: pb.SubscriptionDetails,
    today: Panel[pb.GetDeliveryStatsResponse],
    stats: Panel[pb.GetDeliveryStatsResponse],
    kept: Panel[pb.CountDeliveriesResponse],
    names: Names,
) -> words.Trouble | None:
    failure = words.most_frequent(today.value) or words.most_frequent(stats.value)
    is_known = kept.value is not None and kept.value.HasField("first_expires_at")
    until = _day(kept.value.first_expires_at, context.wall) if is_known and kept.value is not None else ""
    paused_by = names[subscription.paused_by].name if subscription.paused_by else ""
    return words.trouble(subscription, failure, until, paused_by, context.wall)


def _day(stamp: Timestamp, wall: Wall) -> str:
    at = wall.local(stamp)
    return day(at, wall.now) if at else ""


def _parked_of(kept: Panel[pb.CountDeliveriesResponse], wall: Wall) -> str:
    """The days of the events whose deliveries are parked; empty if none is."""
    if kept.value is None or not kept.value.deliveries:
        return ""
    first, last = (wall.local(at) or wall.now for at in (kept.value.first_made_at, kept.value.last_made_at))
    if first.date() == last.date():
        return _("of %(day)s") % {"day": f"{first:%a} {first.day} {first:%b}"}
    return f"of {first.day} {first:%b} to {last.day} {last:%b}"


# The chart


def _chart(stats: Panel[pb.GetDeliveryStatsResponse], period: str, wall: Wall) -> Chart | None:
    if stats.value is None:
        return None
    steps = [(wall.local(step.begins_at) or wall.now, step.succeeded, step.failed) for step in stats.value.steps]
    unit = "hour" if period != "30d" else "day"
    if unit == "day":
        steps = _by_day(steps)
    good, bad = [step[1] for step in steps], [step[2] for step in steps]
    labels = [_label(at, unit) for at, _, _ in steps]
    drawing = charts.columns(good, bad, labels, _description(steps, unit), _marks(steps, unit))
    return Chart(drawing, unit, sum(good), sum(bad))


def _by_day(steps: Sequence[tuple[datetime.datetime, int, int]]) -> list[tuple[datetime.datetime, int, int]]:
    days: dict[datetime.date, tuple[datetime.datetime, int, int]] = {}
    for at, succeeded, failed in steps:
        first, before, before_failed = days.get(at.date(), (at, 0, 0))
        days[at.date()] = first, before + succeeded, before_failed + failed
    return list(days.values())


def _label(at: datetime.datetime, unit: str) -> str:
    date = f"{at:%a} {at.day} {at:%b}"
    return date if unit == "day" else f"{date}, {clock(at)}"


def _marks(steps: Sequence[tuple[datetime.datetime, int, int]], unit: str) -> list[tuple[int, str]]:
    """The first column, and each at which a day, or with days a week, begins."""
    marks: list[tuple[int, str]] = []
    for index, (at, *_counts) in enumerate(steps):
        begins = at.weekday() == 0 if unit == "day" else index > 0 and steps[index - 1][0].date() != at.date()
        if index == 0:
            marks.append((0, f"{at:%a} {at.day} {at:%b}" if unit == "day" else f"{at:%a} {at.day}, {clock(at)}"))
        elif begins and index < len(steps) - 1:
            if len(marks) == 1 and index * 24 < MARK_COLUMNS * len(steps):
                marks.pop()  # they would stand one upon the other
            marks.append((index, f"{at:%a} {at.day} {at:%b}" if unit == "day" else f"{at:%a} {at.day}"))
    return marks


def _description(steps: Sequence[tuple[datetime.datetime, int, int]], unit: str) -> str:
    """The chart in a sentence, for those who do not see it."""
    good, bad = sum(step[1] for step in steps), sum(step[2] for step in steps)
    sentence = f"Attempts by {unit}: {good:,} succeeded, {bad:,} failed."
    for outcome, index in (("success", 1), ("failure", 2)):
        last = next((step[0] for step in reversed(steps) if step[index]), None)
        if last is not None:
            sentence += f" The last {outcome} was in the {unit} of {_label(last, unit)}."
    return sentence
