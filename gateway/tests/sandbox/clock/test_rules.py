"""How far a sandbox's clock may be moved."""

from __future__ import annotations

import datetime

import pytest

from chassis.refusals import Refusal
from gateway.sandbox.clock import rules

DAY = datetime.timedelta(days=1)
HOUR = datetime.timedelta(hours=1)


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("P1W", 7 * DAY),
        ("P2W3D", 17 * DAY),
        ("P1DT2H", DAY + 2 * HOUR),
        ("PT25H", 25 * HOUR),
        ("PT90M", 1.5 * HOUR),
        ("PT0.25S", datetime.timedelta(microseconds=250_000)),
        ("P0D", 0 * DAY),
        ("P999999W", 999_999 * 7 * DAY),
    ],
)
def test_durations_of_weeks_and_less_are_read(text: str, length: datetime.timedelta) -> None:
    assert rules.duration(text) == length


@pytest.mark.parametrize(
    "text",
    ["", "P", "PT", "P1DT", "1D", "P1", "-P1D", "+P1D", "P-1D", "P1.5D", "p1d", "PT1H1D", "P1D ", "P٣D", "PT1H1H",
     "25h", "P1234567D", "PT1.5H", "PT1,5S", "P1D\n"],
)  # fmt: skip
def test_other_texts_are_no_durations(text: str) -> None:
    with pytest.raises(Refusal, match="ISO 8601 duration") as refusal:
        rules.duration(text)
    assert (refusal.value.status, refusal.value.field) == (400, "advance_by")


@pytest.mark.parametrize("text", ["P1M", "P1Y", "P1Y2M3D", "P1MT1M", "P1YT1H"])
def test_months_and_years_are_refused_by_name(text: str) -> None:
    with pytest.raises(Refusal, match="years or months") as refusal:
        rules.duration(text)
    assert refusal.value.status == 400


def test_an_advance_goes_forward_400_days_at_most_and_ten_years_in_all() -> None:
    most = 3650 * DAY
    for by, offset in ((0 * DAY, 0 * DAY), (400 * DAY, 0 * DAY), (400 * DAY, most - 400 * DAY)):
        rules.check_advance(by, offset, most)
    tick = datetime.timedelta(microseconds=1)
    for by, offset, words in (
        (-tick, DAY, "only goes forward"),
        (400 * DAY + tick, DAY, "at most 400 days"),
        (400 * DAY, most - 400 * DAY + tick, "3650 days ahead"),
    ):
        with pytest.raises(Refusal, match=words) as refusal:
            rules.check_advance(by, offset, most)
        assert refusal.value.status == 422


@pytest.mark.parametrize(("ways", "is_accepted"), [(0, False), (1, True), (2, False)])
def test_a_request_has_one_of_both_ways(ways: int, *, is_accepted: bool) -> None:
    if is_accepted:
        rules.check_ways(ways)
        return
    with pytest.raises(Refusal) as refusal:
        rules.check_ways(ways)
    assert refusal.value.status == 400
