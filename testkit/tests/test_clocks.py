"""No slot of a sweep and no end of a day meets a test."""

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chassis.schedule.instants import slot_of
from testkit.clocks import quiet_period, today

YEARS = (datetime.datetime(2024, 1, 1), datetime.datetime(2100, 1, 1))
TWO_HOURS = datetime.timedelta(hours=2)


@given(now=st.datetimes(*YEARS, timezones=st.just(datetime.UTC)))
def test_no_slot_is_within_two_hours_of_a_run(now: datetime.datetime) -> None:
    period = quiet_period(now.timestamp())
    assert 0 < period <= 86400
    assert slot_of(now - TWO_HOURS, period) == slot_of(now + TWO_HOURS, period)


@pytest.mark.parametrize(
    ("timezone", "at", "date", "slept"),
    [
        ("UTC", "2026-11-23T23:59:00Z", "2026-11-23", []),
        ("UTC", "2026-11-23T23:59:00.5Z", "2026-11-24", [59.5]),
        ("Pacific/Kiritimati", "2026-11-23T09:59:50Z", "2026-11-24", [10.0]),
        ("Pacific/Kiritimati", "2026-11-23T23:59:50Z", "2026-11-24", []),
        ("America/Santiago", "2026-09-06T03:59:50Z", "2026-09-06", [10.0]),  # the day begins at one
    ],
)
def test_a_date_has_a_minute_left(timezone: str, at: str, date: str, slept: list[float]) -> None:
    now, pauses = [datetime.datetime.fromisoformat(at)], []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        now[0] += datetime.timedelta(seconds=seconds)

    assert str(today(timezone, lambda: now[0], sleep)) == date
    assert pauses == slept
