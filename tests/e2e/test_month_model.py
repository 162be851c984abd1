"""Tests of the month's model with values computed by hand: mornings of clock changes, stale tickets, lapses."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from .month_calendar import DAY, KATHMANDU, LORD_HOWE, NEW_YORK, Calendar, morning_after
from .month_model import BEGUN, VACATED, Model


@pytest.mark.parametrize(
    ("zone", "day", "six"),
    [
        (NEW_YORK, date(2027, 3, 12), "2027-03-13T11:00Z"),
        (NEW_YORK, date(2027, 3, 13), "2027-03-14T10:00Z"),
        (NEW_YORK, date(2027, 11, 6), "2027-11-07T11:00Z"),
        (LORD_HOWE, date(2027, 4, 2), "2027-04-02T19:00Z"),
        (LORD_HOWE, date(2027, 4, 3), "2027-04-03T19:30Z"),
        (KATHMANDU, date(2027, 4, 3), "2027-04-04T00:15Z"),
    ],
)
def test_six_in_the_morning_is_on_the_wall(zone: object, day: date, six: str) -> None:
    assert morning_after(day, zone) == datetime.fromisoformat(six)  # type: ignore[arg-type]


@pytest.mark.parametrize("year", range(2026, 2040))
def test_a_month_with_both_changes_is_found_from_any_day(year: int) -> None:
    for today in (date(year, 1, 1), date(year, 2, 25), date(year, 3, 20), date(year, 11, 21)):
        calendar = Calendar.next(today)
        assert today + 14 * DAY <= calendar.first < calendar.forward < calendar.back < calendar.last
        assert len(calendar) in (29, 36)
        instants = [now for number in range(len(calendar)) for now in calendar.instants(number)]
        assert instants == sorted(set(instants))


def test_an_open_task_is_announced_once_on_the_morning_after() -> None:
    model = Model(NEW_YORK)
    model.due("pm.stale", 1, date(2027, 3, 13), {"task_name": "Gutters"})
    six = datetime(2027, 3, 14, 10, tzinfo=UTC)
    assert not model.sweep(six - timedelta(minutes=1))
    assert model.sweep(six) == {"pm.stale": 1}
    model.rescheduled("pm.stale", 1, date(2027, 3, 20))
    assert not model.sweep(six + 30 * DAY)


def test_a_stale_ticket_is_announced_once_however_late_the_sweep() -> None:
    model, since = Model(NEW_YORK, stale_after_hours=48), datetime(2026, 11, 21, 12, tzinfo=UTC)
    model.opened(1, "resident_portal", since)
    model.opened(2, "staff", since)
    fired = [bool(model.sweep(since + timedelta(hours=hours))) for hours in (47, 48, 49, 95, 96, 240, 241, 287, 288)]
    assert fired == [False, True, False, False, True, True, False, False, True]
    model.moved(1, "Cancelled", since)
    assert not model.sweep(since + 30 * DAY)


def test_a_lapse_holds_once_and_waits_for_the_end_of_a_persons_hold() -> None:
    model, noon = Model(KATHMANDU), datetime(2027, 3, 20, 12, tzinfo=UTC)
    for number in (1, 2):
        model.vendor(number)
        model.insured(number, date(2027, 3, 19))
    model.held(2)
    assert model.sweep(noon) == {"vendor.hold": 1}
    model.released(1)
    assert not model.sweep(noon + DAY)
    model.released(2)
    assert model.sweep(noon + 2 * DAY) == {"vendor.hold": 1}
    model.insured(1, date(2027, 3, 25))
    assert model.sweep(noon + 6 * DAY) == {"vendor.hold": 1}


def test_a_unit_is_vacated_unless_a_resident_follows() -> None:
    model = Model(LORD_HOWE)
    for unit_id in (1, 2):
        model.unit(unit_id, f"Cabin {unit_id}")
        model.lived_in(unit_id, 10 + unit_id)
        model.noticed(unit_id, date(2027, 4, 3))
    model.moves_in(2, 20, date(2027, 4, 3))
    # The next resident's turn begins with the day itself, and leaves nothing to vacate.
    assert not model.sweep(datetime(2027, 4, 2, 12, 59, tzinfo=UTC))
    assert model.sweep(datetime(2027, 4, 2, 13, tzinfo=UTC)) == {"turn.status_changed": 1, BEGUN: 1}
    assert not model.sweep(datetime(2027, 4, 3, 19, 29, tzinfo=UTC))
    assert model.sweep(datetime(2027, 4, 3, 19, 30, tzinfo=UTC)) == {"turn.status_changed": 1, VACATED: 1}
    assert [event.change and event.change["to"] for event in model.implied] == ["Notice"] * 2 + [
        "Occupied",
        "Vacant Not Ready",
    ]


def test_a_planned_turn_waits_for_the_departure_before_it_and_days_without_sweeps_are_caught_up() -> None:
    model, noon = Model(KATHMANDU), datetime(2027, 4, 10, 12, tzinfo=UTC)
    for unit_id, leaves, comes in ((1, 3, 9), (2, 8, 6), (3, 12, 6)):
        model.unit(unit_id, f"Room {unit_id}")
        model.lived_in(unit_id, 10 + unit_id)
        model.noticed(unit_id, date(2027, 4, leaves))
        model.moves_in(unit_id, 20 + unit_id, date(2027, 4, comes))
    assert model.sweep(noon) == {"turn.status_changed": 3, VACATED: 1, BEGUN: 2}
    assert [unit.status for unit in model.units.values()] == ["Occupied", "Occupied", "Notice"]
    assert model.sweep(noon + 2 * DAY) == {"turn.status_changed": 1, BEGUN: 1}
