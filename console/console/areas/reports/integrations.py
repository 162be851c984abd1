"""The pages of what integrations do by day: requests with API keys, and attempts of webhook deliveries.

Requests are read from the hours that the gateway counts, attempts from the attempts of the period: nothing is counted
twice, and nothing is kept for these pages. Days are those of the company's timezone.
"""

from __future__ import annotations

import datetime
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web
from google.protobuf.timestamp_pb2 import Timestamp
from markupsafe import Markup

from console.areas.reports.pages import HERE
from console.kit import attempt_words, charts, csv_files
from console.kit.calls import Panel, together
from console.kit.context import PageContext
from console.kit.links import with_query
from console.kit.texts import _, ngettext
from makeready.identity.v1 import identity_pb2, key_usage_pb2
from makeready.webhooks.v1 import webhooks_pb2

API, WEBHOOKS = "/reports/api", "/reports/webhooks"
KEYS, USAGE = "identity.KeysService/ListKeys", "identity.KeyUsageService/ListKeyUsage"
ENDPOINTS = "webhooks.AdministrationService/ListSubscriptionDetails"
STATS, COUNT = "webhooks.DeliveriesService/GetDeliveryStats", "webhooks.DeliveriesService/CountDeliveries"
OF_API, OF_WEBHOOKS = (KEYS, USAGE), (ENDPOINTS, STATS, COUNT)
OUTCOMES = ("succeeded", "refused", "rate_limited", "failed")
API_DAYS, WEBHOOK_DAYS = (30, 7, 90), (7, 30)
"""The periods; the first one is shown if none is chosen."""
KEYS_READ, KEYS_SHOWN, KEY_HOURS = 200, 25, 20_000
"""KEY_HOURS: of how many hours and keys together the gateway answers."""
ENDPOINTS_SHOWN = 20
"""Each reads its own attempts."""
WEEK = 7


@dataclass(frozen=True, slots=True)
class Days:
    """A report by day, as `days.html` shows it. groups: name, address, and cells, each with what stands below it.
    more: what the sums do not have."""

    title: str
    lead: str
    headlines: Sequence[tuple[str, str]]
    drawing: Markup
    legend: tuple[str, str]
    day_columns: Sequence[str]
    days: Sequence[tuple[str, Sequence[int]]]
    group: str
    group_columns: Sequence[str]
    groups: Sequence[tuple[str, str, Sequence[tuple[str, str]]]]
    more: str
    meanings: Sequence[tuple[str, str]]


def _period(context: PageContext, choices: Sequence[int]) -> int:
    """The chosen number of days."""
    days = context.query.get("days", "")
    return int(days) if days in map(str, choices) else choices[0]


def _links(path: str, choices: Sequence[int], chosen: int) -> list[tuple[str, str, bool]]:
    return [
        (ngettext("%(num)s day", "%(num)s days", days) % {"num": days}, with_query(path, {"days": days}),
         days == chosen)
        for days in sorted(choices)
    ]  # fmt: skip


def _dates(now: datetime.datetime, days: int) -> list[datetime.date]:
    """The last days, with today, ascending."""
    return [now.date() - datetime.timedelta(days=back) for back in range(days - 1, -1, -1)]


def _midnight(date: datetime.date, zone: datetime.tzinfo) -> datetime.datetime:
    return datetime.datetime.combine(date, datetime.time(), zone)


def day_of(stamp: Timestamp, zone: datetime.tzinfo) -> datetime.date:
    """The day of the company on which an hour begins."""
    return stamp.ToDatetime(datetime.UTC).astimezone(zone).date()


def _label(date: datetime.date) -> str:
    return f"{date:%a} {date.day} {date:%b}"


def _drawing(
    dates: Sequence[datetime.date], good: Sequence[int], bad: Sequence[int], legend: tuple[str, str]
) -> Markup:
    step = WEEK if len(dates) <= 31 else 2 * WEEK
    marks = [(index, _label(dates[index])) for index in range(0, len(dates), step if len(dates) > WEEK else 1)]
    words = _("By day: %(good)s %(succeeded)s, %(bad)s %(failed)s. The table below has each day.") % {
        "good": f"{sum(good):,}", "succeeded": legend[0].lower(), "bad": f"{sum(bad):,}", "failed": legend[1].lower(),
    }  # fmt: skip
    return charts.columns(good, bad, [_label(date) for date in dates], words, marks, (legend[0], legend[1]))


def _show(context: PageContext, path: str, choices: Sequence[int], days: int, report: Days) -> web.Response:
    return context.render(
        "reports/days.html", here=HERE, path=path, report=report, days=days, periods=_links(path, choices, days)
    )


# Requests with API keys


Requests = Counter[str]
"""Numbers of requests by outcome."""


def by_day_and_key(
    hours: Iterable[key_usage_pb2.KeyUsage], zone: datetime.tzinfo
) -> dict[tuple[datetime.date, int], Requests]:
    """Sums of the hours of each day, by day and key."""
    sums: defaultdict[tuple[datetime.date, int], Requests] = defaultdict(Counter)
    for hour in hours:
        sums[day_of(hour.hour, zone), hour.key_id].update({name: getattr(hour, name) for name in OUTCOMES})
    return dict(sums)


async def api(context: PageContext) -> web.StreamResponse:
    """Requests and refusals by day and by key, in the hours that the gateway has counted."""
    company, zone, days = context.session.person.company_id, context.wall.zone, _period(context, API_DAYS)
    now = context.site.now().astimezone(zone)  # requests are counted by the real clock
    dates = _dates(now, days)
    # The day on which the clock goes back has 25 hours.
    keys_max = min(KEYS_SHOWN, KEY_HOURS // (24 * days + 1))
    page = await context.rpcs.call(KEYS, identity_pb2.ListKeysRequest(company_id=company, limit=KEYS_READ))
    first = _midnight(dates[0], zone)
    used = [
        key for key in page.keys if key.HasField("last_used_at") and key.last_used_at.ToDatetime(datetime.UTC) >= first
    ]
    used.sort(key=lambda key: key.last_used_at.ToNanoseconds(), reverse=True)
    used = used[:keys_max]
    of_all, of_keys = await together(
        context.rpcs.call(USAGE, _usage(company, first, [])),
        context.rpcs.call(USAGE, _usage(company, first, [key.id for key in used])) if used else _no_usage(),
    )
    all_days = by_day_and_key(of_all.hours, zone)
    by_key = by_day_and_key(of_keys.hours, zone)
    names = {key.id: key.name or f"{key.prefix}…" for key in used}
    if "csv" in context.query:
        rows = [[date, "", "", *(sums[name] for name in OUTCOMES)] for (date, _key), sums in sorted(all_days.items())]
        rows += [[date, key, names[key], *(sums[name] for name in OUTCOMES)]
                 for (date, key), sums in sorted(by_key.items()) if key in names]  # fmt: skip
        return csv_files.answer(f"report-api-{dates[0]}-to-{dates[-1]}", ("day", "key_id", "key", *OUTCOMES), rows)
    per_day = [sum((sums for (at, _key), sums in all_days.items() if at == date), Requests()) for date in dates]
    return _show(context, API, API_DAYS, days, _api(dates, per_day, by_key, names))


def _usage(company_id: int, first: datetime.datetime, key_ids: Sequence[int]) -> key_usage_pb2.ListKeyUsageRequest:
    request = key_usage_pb2.ListKeyUsageRequest(company_id=company_id, key_ids=key_ids)
    request.counted_from.FromDatetime(first)
    return request


async def _no_usage() -> key_usage_pb2.ListKeyUsageResponse:
    return key_usage_pb2.ListKeyUsageResponse()


def _api(
    dates: Sequence[datetime.date],
    per_day: Sequence[Requests],
    by_key: dict[tuple[datetime.date, int], Requests],
    names: dict[int, str],
) -> Days:
    total = sum(per_day, Requests())
    of_key = {
        key: sum((sums for (_date, key_id), sums in by_key.items() if key_id == key), Requests()) for key in names
    }
    ranked = sorted(of_key, key=lambda key: (-of_key[key].total(), key))
    groups = [(names[key], f"/keys/{key}", _cells(of_key[key])) for key in ranked]
    other_requests = total - sum(of_key.values(), Requests())
    if other_requests.total():
        groups.append((_("Other keys"), "/keys", _cells(other_requests)))
    legend = (_("Succeeded"), _("Not succeeded"))
    good = [sums["succeeded"] for sums in per_day]
    columns = (_("Requests"), _("Refused"), _("Rate limited"), _("Failed"))
    numbers = [_numbers(sums) for sums in per_day]
    return Days(
        _("API requests by day"), _("What your integrations ask of the API, and what is refused."),
        [(words, cell) for words, (cell, _below) in zip(columns, _cells(total), strict=True)],
        _drawing(dates, good, [sums.total() - sums["succeeded"] for sums in per_day], legend), legend,
        columns, [(_label(date), row) for date, row in zip(dates, numbers, strict=True)],
        _("Key"), columns, groups, "",
        [
            (_("Requests"), _("All requests with a key of the company, whatever their answer.")),
            (_("Refused"), _("Answered with 400 to 499, except 429: the request or the key was wrong.")),
            (_("Rate limited"), _("Answered with 429: too many requests at once.")),
            (_("Failed"), _("Answered with 500 or above: the fault is ours.")),
            (_("Days"), _("Requests are counted by the hour, for 90 days. The last half minute may be missing.")),
        ],
    )  # fmt: skip


def _numbers(sums: Requests) -> list[int]:
    return [sums.total(), *(sums[name] for name in OUTCOMES[1:])]


def _cells(sums: Requests) -> list[tuple[str, str]]:
    return [(f"{number:,}", "") for number in _numbers(sums)]


# Attempts of webhook deliveries


async def webhooks(context: PageContext) -> web.StreamResponse:
    """Deliveries and their attempts by day and by endpoint."""
    zone, now, days = context.wall.zone, context.wall.now, _period(context, WEBHOOK_DAYS)
    dates = _dates(now, days)
    page = await context.rpcs.call(ENDPOINTS, webhooks_pb2.ListSubscriptionDetailsRequest(limit=ENDPOINTS_SHOWN))
    first, endpoints = _midnight(dates[0], zone), list(page.subscriptions)
    answers = await together(
        *(context.rpcs.panel(STATS, _asked(webhooks_pb2.GetDeliveryStatsRequest(
            sub_id=endpoint.sub_id, step=webhooks_pb2.STATS_STEP_HOUR), first, now)) for endpoint in endpoints),
        *(context.rpcs.panel(COUNT, _asked(webhooks_pb2.CountDeliveriesRequest(sub_id=endpoint.sub_id), first, now))
          for endpoint in endpoints),
    )  # fmt: skip
    stats, counts = answers[: len(endpoints)], answers[len(endpoints) :]
    of_days = [by_day(panel.value.steps if panel.ok else (), zone) for panel in stats]
    if "csv" in context.query:
        rows = [
            [date, endpoint.sub_id, endpoint.destination_url, *sums]
            for endpoint, sums_of in zip(endpoints, of_days, strict=True) for date, sums in sorted(sums_of.items())
        ]  # fmt: skip
        header = ("day", "sub_id", "destination_url", "succeeded", "failed")
        return csv_files.answer(f"report-webhooks-{dates[0]}-to-{dates[-1]}", header, rows)
    per_day = [
        [sum(sums[date][place] for sums in of_days if date in sums) for place in (0, 1)] for date in dates
    ]  # fmt: skip
    groups = [_endpoint(*row) for row in zip(endpoints, stats, counts, strict=True)]
    deliveries = sum(panel.value.deliveries for panel in counts if panel.ok)
    report = _webhooks(dates, per_day, deliveries, groups, _left_out(page, stats, counts))
    return _show(context, WEBHOOKS, WEBHOOK_DAYS, days, report)


def _left_out(
    page: webhooks_pb2.ListSubscriptionDetailsResponse, stats: Sequence[Panel[Any]], counts: Sequence[Panel[Any]]
) -> str:
    """What the sums do not have."""
    sentences = []
    if page.HasField("next_after_id"):
        sentences.append(
            _("These are the first %(number)s endpoints. Each of the others has its attempts on its own page.")
            % {"number": ENDPOINTS_SHOWN}
        )
    if any(not panel.ok for panel in (*stats, *counts)):
        sentences.append(
            _("The sums are incomplete: some figures are unavailable. Choose fewer days, or try again later.")
        )
    return " ".join(sentences)


def _asked(request: Any, first: datetime.datetime, now: datetime.datetime) -> Any:
    request.since.FromDatetime(first)
    request.until.FromDatetime(now)
    return request


def by_day(steps: Iterable[webhooks_pb2.DeliveryStats], zone: datetime.tzinfo) -> dict[datetime.date, tuple[int, int]]:
    """Attempts that succeeded and failed in the hours of each day."""
    sums: dict[datetime.date, tuple[int, int]] = {}
    for step in steps:
        date = day_of(step.begins_at, zone)
        good, bad = sums.get(date, (0, 0))
        sums[date] = good + step.succeeded, bad + step.failed
    return sums


def _endpoint(
    endpoint: webhooks_pb2.SubscriptionDetails, stats: Panel[Any], count: Panel[Any]
) -> tuple[str, str, list[tuple[str, str]]]:
    unknown = (_("unavailable"), "")
    deliveries = (f"{count.value.deliveries:,}", "") if count.value is not None else unknown
    cells = [unknown] * 3
    if stats.value is not None:
        total = stats.value.total
        cells = [(f"{total.succeeded:,}", ""), (f"{total.failed:,}", ""), ("-", "")]
        if total.HasField("median_milliseconds"):
            within = _("19 of 20 within %(length)s") % {"length": attempt_words.seconds(total.p95_milliseconds)}
            cells[2] = (attempt_words.seconds(total.median_milliseconds), within)
    parked = (f"{endpoint.undelivered.parked:,}", "")
    name = urlsplit(endpoint.destination_url).hostname or endpoint.destination_url
    return name, f"/webhooks/{endpoint.sub_id}", [deliveries, *cells, parked]


def _webhooks(
    dates: Sequence[datetime.date],
    per_day: Sequence[Sequence[int]],
    deliveries: int,
    groups: Sequence[tuple[str, str, Sequence[tuple[str, str]]]],
    more: str,
) -> Days:
    good, bad = [row[0] for row in per_day], [row[1] for row in per_day]
    legend = (_("Succeeded"), _("Failed"))
    return Days(
        _("Webhook deliveries by day"), _("How many deliveries reach your endpoints, and how soon these answer."),
        [(_("Deliveries"), f"{deliveries:,}"), (_("Attempts succeeded"), f"{sum(good):,}"),
         (_("Attempts failed"), f"{sum(bad):,}")],
        _drawing(dates, good, bad, legend), legend,
        (_("Attempts succeeded"), _("Attempts failed")),
        [(_label(date), row) for date, row in zip(dates, per_day, strict=True)],
        _("Endpoint"),
        (_("Deliveries"), _("Succeeded"), _("Failed"), _("Time to first byte, median"), _("Needs retry now")),
        groups, more,
        [
            (_("Deliveries"), _("Of events of the period, whatever became of them. An event has one for each endpoint "
                                "that subscribed to it.")),
            (_("Attempts"), _("A delivery that fails is attempted again, so it can have more than one. Tests do not "
                              "count.")),
            (_("Time to first byte"), _("From an attempt's start to the first byte of the answer, of all attempts of "
                                        "the period that had one. 19 of 20 took no longer than the other value.")),
            (_("Days"), _("Attempts are stored for 30 days.")),
        ],
    )  # fmt: skip
