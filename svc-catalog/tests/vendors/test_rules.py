"""A vendor's compliance and hold by its insurance: day by day, against a model."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_catalog.vendors import rules
from svc_catalog.vendors.rules import LAPSED, VendorCompliance

DAY = datetime.date(2026, 3, 1)
ONE = datetime.timedelta(days=1)
DAYS = st.dates(datetime.date(2026, 1, 1), datetime.date(2026, 12, 31))
ANY_DAYS = st.one_of(DAYS, st.dates(), st.sampled_from([datetime.date.min, datetime.date.max]))


@pytest.mark.parametrize(
    ("expires_in_days", "state"),
    [(-1, "noncompliant"), (0, "expiring"), (1, "expiring"), (30, "expiring"), (31, "compliant"), (400, "compliant")],
)
def test_what_a_day_finds(expires_in_days: int, state: str) -> None:
    assert rules.compliance(DAY + datetime.timedelta(days=expires_in_days), DAY) == state


def test_no_date_on_record_is_missing_for_ever() -> None:
    assert rules.compliance(None, DAY) == "missing"
    assert rules.next_finding(None, DAY) is None


@given(ANY_DAYS, ANY_DAYS)
def test_every_finding_is_one_of_the_contract_and_holds_until_the_next_is_due(
    expires_on: datetime.date, today: datetime.date
) -> None:
    state, due_on = rules.compliance(expires_on, today), rules.next_finding(expires_on, today)
    assert state in rules.COMPLIANCE_STATES
    if due_on is None:
        assert rules.compliance(expires_on, datetime.date.max) == state
    else:
        assert due_on > today
        assert rules.compliance(expires_on, due_on - ONE) == state
        assert rules.compliance(expires_on, due_on) != state


def test_a_lapse_places_a_hold_on_the_day_after_the_last_one_insured() -> None:
    insured = rules.record_insurance(VendorCompliance(), DAY, DAY)
    assert not rules.take_snapshot(insured, DAY).on_hold
    held = rules.take_snapshot(insured, DAY + ONE)
    assert (held.on_hold, held.hold_reason, held.lapse_held_for) == (True, LAPSED, DAY)


def test_a_released_vendor_is_not_held_again_before_the_next_lapse() -> None:
    held = rules.take_snapshot(rules.record_insurance(VendorCompliance(), DAY, DAY), DAY + ONE)
    released = rules.release(held)
    assert not rules.take_snapshot(released, DAY + 9 * ONE).on_hold
    renewed = rules.record_insurance(released, DAY + 20 * ONE, DAY + 9 * ONE)
    assert not rules.take_snapshot(renewed, DAY + 20 * ONE).on_hold
    assert rules.take_snapshot(renewed, DAY + 21 * ONE).on_hold


def test_valid_insurance_ends_a_hold_of_the_clock_and_none_of_a_persons() -> None:
    held = rules.take_snapshot(rules.record_insurance(VendorCompliance(), DAY, DAY), DAY + ONE)
    assert not rules.record_insurance(held, DAY + ONE, DAY + ONE).on_hold
    assert rules.record_insurance(held, DAY - ONE, DAY + ONE).on_hold
    assert rules.record_insurance(held, None, DAY + ONE).on_hold
    by_hand = rules.hold(held, "no answer for weeks")
    assert rules.record_insurance(by_hand, DAY + ONE, DAY + ONE).hold_reason == "no answer for weeks"


def test_insurance_that_was_valid_by_mistake_holds_again_once_it_is_put_right() -> None:
    held = rules.take_snapshot(rules.record_insurance(VendorCompliance(), DAY, DAY), DAY + ONE)
    mistaken = rules.take_snapshot(rules.record_insurance(held, DAY + 90 * ONE, DAY + ONE), DAY + ONE)
    assert (mistaken.on_hold, mistaken.last_compliance_state) == (False, "compliant")
    again = rules.take_snapshot(rules.record_insurance(mistaken, DAY, DAY + ONE), DAY + ONE)
    assert (again.on_hold, again.hold_reason, again.lapse_held_for) == (True, LAPSED, DAY)


def test_a_lapse_during_a_persons_hold_places_its_own_once_that_one_ends() -> None:
    held = rules.hold(rules.record_insurance(VendorCompliance(), DAY, DAY), "quarrel")
    seen = rules.take_snapshot(held, DAY + ONE)
    assert (seen.hold_reason, seen.last_compliance_state, seen.compliance_due_on) == ("quarrel", "noncompliant", None)
    released = rules.release(seen)
    assert released.compliance_due_on == rules.AT_ONCE
    assert rules.take_snapshot(released, DAY + ONE).hold_reason == LAPSED


def test_who_is_not_tracked_keeps_what_an_import_said() -> None:
    imported = VendorCompliance(last_compliance_state="expiring")
    assert rules.take_snapshot(imported, DAY) == imported


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("insure"), st.one_of(st.none(), DAYS)),
        st.tuples(st.sampled_from(["hold", "release", "look"]), st.none()),
        st.tuples(st.just("days"), st.integers(1, 60)),
    ),
    max_size=30,
)


@given(STEPS)
def test_a_lapse_holds_once_for_each_expiry_date_and_no_vendor_is_checked_for_nothing(
    steps: list[tuple[str, object]],
) -> None:
    standing, today = VendorCompliance(), DAY
    held_for: list[datetime.date | None] = []
    for step, value in steps:
        before = standing
        if step == "insure":
            assert value is None or isinstance(value, datetime.date)
            standing = rules.record_insurance(standing, value, today)
            if value is not None and value >= today and standing != before:
                held_for.clear()
        elif step == "hold":
            standing = rules.hold(standing, "a person's reason")
        elif step == "release":
            standing = rules.release(standing)
        elif step == "days":
            assert isinstance(value, int)
            today += value * ONE
        else:
            standing = rules.take_snapshot(standing, today)
            if standing.on_hold and not before.on_hold:
                held_for.append(standing.insurance_expires_on)
            # A second snapshot changes nothing, nor would one of a vendor that is not due.
            assert rules.take_snapshot(standing, today) == standing
            if before.compliance_due_on is None or before.compliance_due_on > today:
                assert standing == before
            if standing.insurance_tracked:
                state = rules.compliance(standing.insurance_expires_on, today)
                assert standing.last_compliance_state == state
                released = standing.lapse_held_for == standing.insurance_expires_on
                assert standing.on_hold or state != "noncompliant" or released
        assert standing.on_hold == (standing.hold_reason is not None)
    assert len(held_for) == len(set(held_for)) and None not in held_for
