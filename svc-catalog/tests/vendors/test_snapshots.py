"""The first hourly snapshot that sees a day: the instant at which a vendor's insurance falls due by time alone."""

from __future__ import annotations

import datetime

from hypothesis import given
from hypothesis import strategies as st

from chassis.schedule.instants import BEGINNING
from svc_catalog.vendors.rules import AT_ONCE
from svc_catalog.vendors.sweeps import SNAPSHOTS

ZONES = st.sampled_from(["UTC", "America/Chicago", "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Apia"])
TICK = datetime.timedelta(microseconds=1)


@given(st.dates(datetime.date(2000, 1, 1), datetime.date(2060, 1, 1)), ZONES)
def test_a_day_is_seen_from_its_first_full_hour(date: datetime.date, timezone: str) -> None:
    at = SNAPSHOTS.due_from(date, timezone)
    assert SNAPSHOTS.day_of(at - TICK, timezone) < date <= SNAPSHOTS.day_of(at, timezone)


@given(ZONES)
def test_what_is_to_be_seen_at_once_is_due_already(timezone: str) -> None:
    assert SNAPSHOTS.due_from(AT_ONCE, timezone) < BEGINNING + datetime.timedelta(days=2)
    assert SNAPSHOTS.due_from(datetime.date.max, timezone).year >= 9998
