"""Tests that request their sweeps are not met by one of a slot."""

import datetime

from hypothesis import given
from hypothesis import strategies as st

from chassis.schedule.instants import slot_of
from testkit.slots import quiet_period

YEARS = (datetime.datetime(2024, 1, 1), datetime.datetime(2100, 1, 1))
TWO_HOURS = datetime.timedelta(hours=2)


@given(now=st.datetimes(*YEARS, timezones=st.just(datetime.UTC)))
def test_no_slot_is_within_two_hours_of_a_run(now: datetime.datetime) -> None:
    period = quiet_period(now.timestamp())
    assert 0 < period <= 86400
    assert slot_of(now - TWO_HOURS, period) == slot_of(now + TWO_HOURS, period)
