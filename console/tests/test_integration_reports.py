"""What integrations do by day: sums of hours by the company's days, and what is missing is said."""

from __future__ import annotations

import csv
import datetime
import io
from typing import Any
from zoneinfo import ZoneInfo

from chassis.refusals import Refusal
from console.areas.reports import integrations
from makeready.identity.v1 import key_usage_pb2
from makeready.webhooks.v1 import webhooks_pb2

from .browsing import Browser
from .stubs import Stubs, ago

CHICAGO = ZoneInfo("America/Chicago")
USAGE = integrations.USAGE


def at(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text)


def test_an_hour_counts_on_the_companys_day_also_when_clocks_change() -> None:
    hours = []
    for instant, key_id, succeeded, refused in (
        ("2026-11-01T04:00Z", 1, 1, 0),  # 11 pm of the day before
        ("2026-11-01T05:00Z", 1, 2, 1),  # midnight; the day has 25 hours
        ("2026-11-02T05:00Z", 1, 4, 0),  # 11 pm
        ("2026-11-02T06:00Z", 2, 8, 0),
    ):
        hour = key_usage_pb2.KeyUsage(key_id=key_id, succeeded=succeeded, refused=refused)
        hour.hour.FromDatetime(at(instant))
        hours.append(hour)
    sums = integrations.by_day_and_key(hours, CHICAGO)
    assert {key: (counts["succeeded"], counts["refused"]) for key, counts in sums.items()} == {
        (datetime.date(2026, 10, 31), 1): (1, 0),
        (datetime.date(2026, 11, 1), 1): (6, 1),
        (datetime.date(2026, 11, 2), 2): (8, 0),
    }
    steps = []
    for hour in hours:
        step = webhooks_pb2.DeliveryStats(succeeded=hour.succeeded, failed=hour.refused)
        step.begins_at.CopyFrom(hour.hour)
        steps.append(step)
    assert list(integrations.by_day(steps, CHICAGO).values()) == [(1, 0), (6, 1), (8, 0)]


async def test_requests_of_keys_that_are_not_listed_are_in_the_last_row(administrator: Browser, stubs: Stubs) -> None:
    def usage(request: Any, _who: Any) -> Any:
        """In all 40 requests at this moment, 25 of them with the first key that is asked about."""
        hour = key_usage_pb2.KeyUsage(key_id=0, succeeded=30, refused=6, rate_limited=3, failed=1)
        if request.key_ids:
            hour = key_usage_pb2.KeyUsage(key_id=request.key_ids[0], succeeded=20, refused=5)
        hour.hour.CopyFrom(ago())
        return key_usage_pb2.ListKeyUsageResponse(hours=[hour])

    stubs.answers[USAGE] = usage
    page = await administrator.get("/reports/api?days=7")
    assert "Requests 40 Refused 6 Rate limited 3 Failed 1" in page.words
    assert "demo read 25 5 0 0" in page.words and "Other keys 15 1 3 1" in page.words
    rows = list(csv.reader(io.StringIO((await administrator.get("/reports/api?days=7&csv=1")).text.lstrip("\ufeff"))))
    assert rows[0] == ["day", "key_id", "key", "succeeded", "refused", "rate_limited", "failed"]
    assert [row[1:] for row in rows[1:]] == [
        ["", "", "30", "6", "3", "1"],
        ["1", "demo read", "20", "5", "0", "0"],
    ]


async def test_sums_that_miss_an_endpoint_say_so(administrator: Browser, stubs: Stubs) -> None:
    page = await administrator.get("/reports/webhooks?days=30")
    assert "hooks.leasing.example" in page.words and "19 of 20 within 1.9 s" in page.words
    assert "The sums are incomplete" not in page.words

    def busy(*_: Any) -> Any:
        raise Refusal(503, "unavailable", "The service is busy.")

    stubs.answers[integrations.STATS] = busy
    page = await administrator.get("/reports/webhooks?days=30")
    assert page.status == 200 and "The sums are incomplete" in page.words and "unavailable" in page.words
