"""When a resident's ticket is stale, and when it is announced again (spec 6.1)."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chassis.refusals import Refusal
from svc_tickets.tickets.rules import fields, staleness

MOMENTS = st.datetimes(datetime.datetime(2020, 1, 1), datetime.datetime(2060, 1, 1), timezones=st.just(datetime.UTC))
THRESHOLDS = st.integers(1, 8760)
HOUR = datetime.timedelta(hours=1)


def test_only_open_tickets_of_residents_go_stale() -> None:
    can = {(of_resident, status) for of_resident in (True, False) for status in fields.STATUSES}
    can = {pair for pair in can if staleness.may_go_stale(*pair)}
    assert can == {(True, status) for status in ("Open", "In Progress", "On Hold")}


def test_a_resident_files_a_ticket_in_the_portal_or_by_asking_staff() -> None:
    assert [source for source in fields.SOURCES if staleness.is_of_resident(source, False)] == ["resident_portal"]
    assert staleness.is_of_resident("staff", True)


@given(MOMENTS, THRESHOLDS)
def test_it_is_due_when_the_threshold_has_passed(quiet_since: datetime.datetime, hours: int) -> None:
    assert staleness.stale_due_at(True, "Open", quiet_since, hours) == quiet_since + hours * HOUR
    assert staleness.stale_due_at(True, "Completed", quiet_since, hours) is None
    assert staleness.stale_due_at(False, "Open", quiet_since, hours) is None


@given(MOMENTS, THRESHOLDS, st.timedeltas(datetime.timedelta(), datetime.timedelta(days=2000)))
def test_it_is_due_again_at_the_next_multiple_of_the_threshold(
    quiet_since: datetime.datetime, hours: int, silence: datetime.timedelta
) -> None:
    now = quiet_since + silence
    due = staleness.next_stale_due_at(quiet_since, hours, now)
    assert now < due <= now + hours * HOUR
    assert (due - quiet_since) % (hours * HOUR) == datetime.timedelta()


@given(MOMENTS, THRESHOLDS, st.timedeltas(datetime.timedelta(days=-400), datetime.timedelta()))
def test_it_is_never_due_before_it_was_quiet_for_a_threshold(
    quiet_since: datetime.datetime, hours: int, ahead: datetime.timedelta
) -> None:
    due = staleness.next_stale_due_at(quiet_since, hours, quiet_since + ahead)
    assert due == quiet_since + hours * HOUR


@given(MOMENTS, THRESHOLDS, st.lists(st.timedeltas(datetime.timedelta(0), datetime.timedelta(days=30)), max_size=20))
def test_a_sweep_announces_once_all_that_passed_since_the_last(
    quiet_since: datetime.datetime, hours: int, steps: list[datetime.timedelta]
) -> None:
    """At any rhythm, sweeps announce as often as they find that a new multiple has passed."""
    due = staleness.stale_due_at(True, "Open", quiet_since, hours)
    now, seen, fired, expected = quiet_since, 0, 0, 0
    for step in steps:
        now += step
        multiples = (now - quiet_since) // (hours * HOUR)
        if multiples > seen:
            seen, expected = multiples, expected + 1
        assert due is not None
        if due <= now:
            fired += 1
            due = staleness.next_stale_due_at(quiet_since, hours, now)
    assert fired == expected


@given(MOMENTS, THRESHOLDS, st.timedeltas(datetime.timedelta(), datetime.timedelta(days=400)))
def test_a_threshold_that_is_let_pass_makes_the_ticket_due_at_once_and_again_a_threshold_later(
    opened_at: datetime.datetime, hours: int, quiet: datetime.timedelta
) -> None:
    now = opened_at + quiet
    quiet_since, due = staleness.threshold_passed(opened_at, hours, now)
    assert quiet_since is not None and quiet_since <= opened_at and due == now
    # As the sweep finds it: see StaleTickets.
    assert (staleness.stale_due_at(True, "Open", quiet_since, hours) or now) <= now
    assert now < staleness.next_stale_due_at(quiet_since, hours, now) <= now + hours * HOUR


@pytest.mark.parametrize("of_resident", [True, False])
@pytest.mark.parametrize("status", fields.STATUSES)
def test_only_a_residents_open_ticket_lets_its_threshold_pass(of_resident: bool, status: str) -> None:
    if of_resident and status not in ("Completed", "Cancelled"):
        staleness.check_may_go_stale(of_resident, status)
    else:
        with pytest.raises(Refusal) as refused:
            staleness.check_may_go_stale(of_resident, status)
        assert (refused.value.status, refused.value.code) == (422, "invalid_request")
