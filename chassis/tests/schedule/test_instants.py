"""Instants as the API prints them, slots of sweeps, the instant of a change."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chassis.schedule.instants import after, printed, slot_of

NOON = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)
TICK = datetime.timedelta(microseconds=1)


@given(st.datetimes(datetime.datetime(1970, 1, 1), datetime.datetime(9999, 1, 1), timezones=st.just(datetime.UTC)))
def test_instants_are_printed_alike_and_sort_as_text(moment: datetime.datetime) -> None:
    text = printed(moment)
    assert len(text) == 27 and text.endswith("Z")
    assert datetime.datetime.fromisoformat(text) == moment
    assert printed(moment + datetime.timedelta(microseconds=1)) > text


def test_an_instant_without_a_fraction_is_printed_with_one() -> None:
    assert printed(datetime.datetime(2026, 1, 31, 5, 6, 7, tzinfo=datetime.UTC)) == "2026-01-31T05:06:07.000000Z"


def test_nothing_is_printed_as_null() -> None:
    assert printed(None) is None


def test_a_change_is_after_the_records_last_one_whatever_the_clock_says() -> None:
    assert after(NOON, NOON - TICK) == NOON
    assert after(NOON, NOON) == NOON + TICK
    assert after(NOON, NOON + 5 * TICK) == NOON + 6 * TICK


@pytest.mark.parametrize(
    ("time", "slot"), [("12:00:00", "12:00"), ("12:14:59", "12:00"), ("12:15:00", "12:15"), ("23:59:59", "23:45")]
)
def test_a_slot_is_the_last_multiple_of_the_period(time: str, slot: str) -> None:
    instant = datetime.datetime.fromisoformat(f"2026-03-01T{time}+00:00")
    assert slot_of(instant, 900) == datetime.datetime.fromisoformat(f"2026-03-01T{slot}:00+00:00")
