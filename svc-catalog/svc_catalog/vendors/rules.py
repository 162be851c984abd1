"""Rules for vendors (spec 2.8): their compliance by their insurance, and when they are on hold. Pure.

The hourly snapshot evaluates vendors whose insurance is tracked. A lapse places a hold once for each expiry date: if a
person releases the vendor, the same lapse does not hold it again. If valid insurance is recorded in between, the next
lapse counts as new, even with the same date, because the valid insurance may have been a mistake.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal, get_args

ComplianceState = Literal["compliant", "expiring", "noncompliant", "missing", "unknown"]
PropertyVisibility = Literal["all_properties", "selected_properties"]

COMPLIANCE_STATES: tuple[str, ...] = get_args(ComplianceState)
PROPERTY_VISIBILITIES: tuple[str, ...] = get_args(PropertyVisibility)

DEFAULT_PROPERTY_VISIBILITY: PropertyVisibility = "all_properties"

RATING_MAX = 100
WEBSITE_POINTS_MAX = 500


def published_compliance(stored: str | None) -> str:
    """The published state: the stored snapshot, never computed; `unknown` if no snapshot was taken."""
    return stored or "unknown"


def search_states(states: Collection[str], on_hold: bool | None, is_active: bool | None) -> list[str]:
    """The texts of tables.SEARCH_STATE of the vendors that a search wants. states: none means all; None means both."""
    return [
        f"{str(hold).lower()}{str(active).lower()}{state}"
        for hold in ((False, True) if on_hold is None else (on_hold,))
        for active in ((False, True) if is_active is None else (is_active,))
        for state in COMPLIANCE_STATES
        if not states or state in states
    ]


def nickname(name: str, legal_name: str) -> str | None:
    """The nickname to store for a name; None if the name equals the legal name."""
    return None if name == legal_name else name


EXPIRING_DAYS = 30
LAPSED = "insurance_lapsed"
REASON_POINTS_MAX = 500
# Sorts before all dates: the next snapshot evaluates the vendor, whatever the day.
AT_ONCE = datetime.date.min


@dataclass(frozen=True, slots=True)
class VendorCompliance:
    """A vendor's insurance and hold."""

    on_hold: bool = False
    hold_reason: str | None = None
    insurance_tracked: bool = False
    # The last insured day.
    insurance_expires_on: datetime.date | None = None
    # The expiry date whose lapse has placed a hold.
    lapse_held_for: datetime.date | None = None
    # The next day on which the state can change by itself; None if only a command or an import can change it.
    compliance_due_on: datetime.date | None = None
    last_compliance_state: str | None = None


def compliance(expires_on: datetime.date | None, today: datetime.date) -> ComplianceState:
    """The state of tracked insurance on a day."""
    if expires_on is None:
        return "missing"
    if today > expires_on:
        return "noncompliant"
    return "expiring" if (expires_on - today).days <= EXPIRING_DAYS else "compliant"


def next_finding(expires_on: datetime.date | None, today: datetime.date) -> datetime.date | None:
    """The first later day on which `compliance` returns another state; None if there is none."""
    state = compliance(expires_on, today)
    if expires_on is None or state == "noncompliant":
        return None
    if state == "compliant":
        return expires_on - datetime.timedelta(days=EXPIRING_DAYS)
    return None if expires_on == datetime.date.max else expires_on + datetime.timedelta(days=1)


def hold(vendor: VendorCompliance, reason: str) -> VendorCompliance:
    """Places a hold. If one exists, it replaces the reason, so that valid insurance no longer ends the hold."""
    return replace(vendor, on_hold=True, hold_reason=reason)


def release(vendor: VendorCompliance) -> VendorCompliance:
    """Ends the hold, whatever its reason."""
    lapsed_meanwhile = vendor.last_compliance_state == "noncompliant" and not _is_held_for_lapse(vendor)
    due_on = AT_ONCE if vendor.insurance_tracked and lapsed_meanwhile else vendor.compliance_due_on
    return replace(vendor, on_hold=False, hold_reason=None, compliance_due_on=due_on)


def record_insurance(
    vendor: VendorCompliance, expires_on: datetime.date | None, today: datetime.date
) -> VendorCompliance:
    """Tracks the insurance from now on. Valid insurance ends a hold that a lapse placed."""
    if vendor.insurance_tracked and vendor.insurance_expires_on == expires_on:
        return vendor
    if expires_on is not None and expires_on >= today:
        vendor = replace(vendor, lapse_held_for=None)
        if vendor.hold_reason == LAPSED:
            vendor = replace(vendor, on_hold=False, hold_reason=None)
    return replace(vendor, insurance_tracked=True, insurance_expires_on=expires_on, compliance_due_on=AT_ONCE)


def hold_if_lapsed(vendor: VendorCompliance, today: datetime.date) -> VendorCompliance:
    """Places a hold if the insurance has lapsed and this expiry date has not placed one yet."""
    lapses = vendor.insurance_tracked and compliance(vendor.insurance_expires_on, today) == "noncompliant"
    if not lapses or _is_held_for_lapse(vendor):
        return vendor
    if not vendor.on_hold:
        return replace(hold(vendor, LAPSED), lapse_held_for=vendor.insurance_expires_on)
    if vendor.hold_reason == LAPSED:  # an earlier lapse placed the hold; a person's hold does not count for a lapse
        return replace(vendor, lapse_held_for=vendor.insurance_expires_on)
    return vendor


def take_snapshot(vendor: VendorCompliance, today: datetime.date) -> VendorCompliance:
    """The vendor after a day's snapshot. Without tracked insurance it does not change."""
    if not vendor.insurance_tracked:
        return vendor
    expires_on = vendor.insurance_expires_on
    seen = replace(
        vendor,
        last_compliance_state=compliance(expires_on, today),
        compliance_due_on=next_finding(expires_on, today),
    )
    return hold_if_lapsed(seen, today)


def record_state(vendor: VendorCompliance, state: str | None) -> VendorCompliance:
    """Stores the state from a file. If the insurance is tracked, the next snapshot replaces it."""
    if state == vendor.last_compliance_state:
        return vendor
    due_on = AT_ONCE if vendor.insurance_tracked else None
    return replace(vendor, last_compliance_state=state, compliance_due_on=due_on)


def _is_held_for_lapse(vendor: VendorCompliance) -> bool:
    return vendor.lapse_held_for is not None and vendor.lapse_held_for == vendor.insurance_expires_on
