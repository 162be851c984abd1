"""The company's morning in various timezones: which dates are overdue at an instant."""

from __future__ import annotations

import datetime
import zoneinfo
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chassis.schedule.instants import BEGINNING, END, day_begins, local_date, morning_after, overdue_before

ZONES = st.sampled_from(
    [
        "UTC",
        "America/Chicago",
        "America/St_Johns",
        "Europe/London",
        "Asia/Kathmandu",
        "Australia/Lord_Howe",
        "Pacific/Apia",
        "Pacific/Chatham",
        "Africa/Casablanca",
    ]
)
MOMENTS = st.datetimes(datetime.datetime(2000, 1, 1), datetime.datetime(2060, 1, 1), timezones=st.just(datetime.UTC))


@given(MOMENTS, ZONES)
def test_the_day_is_the_latest_whose_six_o_clock_has_passed(now: datetime.datetime, timezone: str) -> None:
    day = overdue_before(now, timezone)
    zone = zoneinfo.ZoneInfo(timezone)
    mornings = [
        datetime.datetime.combine(date, datetime.time(6), zone).timestamp()
        for date in (day, day + datetime.timedelta(days=1))
    ]
    assert mornings[0] <= now.timestamp() < mornings[1]


TICK = datetime.timedelta(microseconds=1)


@given(MOMENTS.map(datetime.datetime.date), ZONES)
def test_a_date_is_over_from_the_first_instant_of_its_morning_after(date: datetime.date, timezone: str) -> None:
    at = morning_after(date, timezone)
    assert overdue_before(at - TICK, timezone) <= date < overdue_before(at, timezone)


@given(MOMENTS.map(datetime.datetime.date), ZONES)
def test_a_day_has_begun_from_its_first_instant(date: datetime.date, timezone: str) -> None:
    at = day_begins(date, timezone)
    assert local_date(at - TICK, timezone) < date <= local_date(at, timezone)


@pytest.mark.parametrize("begins", [morning_after, day_begins])
def test_the_calendar_ends_where_no_later_instant_can_be_reckoned(begins: Any) -> None:
    for timezone in ("UTC", "Pacific/Apia", "Pacific/Honolulu"):
        assert BEGINNING <= begins(datetime.date.min, timezone) < begins(datetime.date(2, 1, 1), timezone)
        assert begins(datetime.date(9998, 1, 1), timezone) < begins(datetime.date.max, timezone) <= END


@given(MOMENTS, st.timedeltas(datetime.timedelta(), datetime.timedelta(days=3)), ZONES)
def test_what_is_overdue_stays_overdue(now: datetime.datetime, later: datetime.timedelta, timezone: str) -> None:
    assert overdue_before(now, timezone) <= overdue_before(now + later, timezone)


@pytest.mark.parametrize(
    ("timezone", "day", "morning"),
    [
        # The night in which the clocks go forward is an hour shorter; the night in which they go back, an hour longer.
        ("America/Chicago", "2026-03-07", "2026-03-07T12:00:00Z"),
        ("America/Chicago", "2026-03-08", "2026-03-08T11:00:00Z"),
        ("America/Chicago", "2026-11-01", "2026-11-01T12:00:00Z"),
        ("Europe/Berlin", "2026-03-29", "2026-03-29T04:00:00Z"),
        ("Europe/Berlin", "2026-10-25", "2026-10-25T05:00:00Z"),
        ("Australia/Lord_Howe", "2026-04-05", "2026-04-04T19:30:00Z"),
        # Apia skipped the 30th.
        ("Pacific/Apia", "2011-12-29", "2011-12-29T16:00:00Z"),
        ("Pacific/Apia", "2011-12-31", "2011-12-30T16:00:00Z"),
        ("Asia/Kathmandu", "2026-05-05", "2026-05-05T00:15:00Z"),
    ],
)
def test_the_morning_comes_at_six_on_the_wall(timezone: str, day: str, morning: str) -> None:
    at = datetime.datetime.fromisoformat(morning)
    expected = datetime.date.fromisoformat(day)
    assert overdue_before(at, timezone) == expected
    assert overdue_before(at - datetime.timedelta(microseconds=1), timezone) < expected


def test_a_timezone_that_is_not_known_counts_as_utc() -> None:
    at = datetime.datetime(2026, 5, 5, 6, tzinfo=datetime.UTC)
    for name in ("Mars/Olympus", "", "../etc/passwd", "America"):
        assert overdue_before(at, name) == datetime.date(2026, 5, 5)
