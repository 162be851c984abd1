"""What a vendor may be (spec 2.8), what its insurance says of it, and when it is on hold. Pure.

The hourly snapshot looks at vendors whose insurance is tracked. A lapse places a hold once for each expiry date: a
vendor that somebody released all the same is left in peace until it lapses anew. Valid insurance on record in between
makes it a new lapse, of whatever date: it may have been a mistake.
"""

from __future__ import annotations

import datetime
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
    """What stands for a snapshot: it is never computed, and where none was taken it is unknown."""
    return stored or "unknown"


def nickname(name: str, legal_name: str) -> str | None:
    """The nickname that a name is; a name that repeats the legal one is none."""
    return None if name == legal_name else name


EXPIRING_DAYS = 30
LAPSED = "insurance_lapsed"
REASON_POINTS_MAX = 500
# The day on which whatever has just changed is to be looked at: before all others.
AT_ONCE = datetime.date.min


@dataclass(frozen=True, slots=True)
class VendorCompliance:
    """What is known of a vendor's insurance, and whether it is on hold."""

    on_hold: bool = False
    hold_reason: str | None = None
    insurance_tracked: bool = False
    # The last day on which it is insured.
    insurance_expires_on: datetime.date | None = None
    # The expiry date whose passing has placed a hold.
    lapse_held_for: datetime.date | None = None
    # The next day on which the state can change by itself; None where only a person can change it.
    compliance_due_on: datetime.date | None = None
    last_compliance_state: str | None = None


def compliance(expires_on: datetime.date | None, today: datetime.date) -> ComplianceState:
    """What a day finds of an insurance that is tracked."""
    if expires_on is None:
        return "missing"
    if today > expires_on:
        return "noncompliant"
    return "expiring" if (expires_on - today).days <= EXPIRING_DAYS else "compliant"


def next_finding(expires_on: datetime.date | None, today: datetime.date) -> datetime.date | None:
    """The first later day on which `compliance` finds something else; None where there is none."""
    state = compliance(expires_on, today)
    if expires_on is None or state == "noncompliant":
        return None
    if state == "compliant":
        return expires_on - datetime.timedelta(days=EXPIRING_DAYS)
    return None if expires_on == datetime.date.max else expires_on + datetime.timedelta(days=1)


def hold(vendor: VendorCompliance, reason: str) -> VendorCompliance:
    """Places it on hold. One that is on hold gets the reason: insurance then ends no hold that a person has placed."""
    return replace(vendor, on_hold=True, hold_reason=reason)


def release(vendor: VendorCompliance) -> VendorCompliance:
    """Ends its hold, whatever the reason."""
    lapsed_meanwhile = vendor.last_compliance_state == "noncompliant" and not _is_held_for_lapse(vendor)
    due_on = AT_ONCE if vendor.insurance_tracked and lapsed_meanwhile else vendor.compliance_due_on
    return replace(vendor, on_hold=False, hold_reason=None, compliance_due_on=due_on)


def record_insurance(
    vendor: VendorCompliance, expires_on: datetime.date | None, today: datetime.date
) -> VendorCompliance:
    """Tracks its insurance from now on. Insurance that is valid ends a hold that a lapse has placed."""
    if vendor.insurance_tracked and vendor.insurance_expires_on == expires_on:
        return vendor
    if expires_on is not None and expires_on >= today:
        vendor = replace(vendor, lapse_held_for=None)
        if vendor.hold_reason == LAPSED:
            vendor = replace(vendor, on_hold=False, hold_reason=None)
    return replace(vendor, insurance_tracked=True, insurance_expires_on=expires_on, compliance_due_on=AT_ONCE)


def hold_if_lapsed(vendor: VendorCompliance, today: datetime.date) -> VendorCompliance:
    """Places the hold that a lapse of its insurance asks for, where there is one."""
    lapses = vendor.insurance_tracked and compliance(vendor.insurance_expires_on, today) == "noncompliant"
    if not lapses or _is_held_for_lapse(vendor):
        return vendor
    if not vendor.on_hold:
        return replace(hold(vendor, LAPSED), lapse_held_for=vendor.insurance_expires_on)
    if vendor.hold_reason == LAPSED:  # an earlier lapse has placed it; a person's hold stands for none
        return replace(vendor, lapse_held_for=vendor.insurance_expires_on)
    return vendor


def take_snapshot(vendor: VendorCompliance, today: datetime.date) -> VendorCompliance:
    """The vendor after the snapshot of a day; one whose insurance is not tracked stays as it is."""
    if not vendor.insurance_tracked:
        return vendor
    expires_on = vendor.insurance_expires_on
    seen = replace(
        vendor,
        last_compliance_state=compliance(expires_on, today),
        compliance_due_on=next_finding(expires_on, today),
    )
    return hold_if_lapsed(seen, today)


def record_state(vendor: VendorCompliance, given: str | None) -> VendorCompliance:
    """Takes the state that a file gives; of a vendor whose insurance is tracked, the next snapshot replaces it."""
    if given == vendor.last_compliance_state:
        return vendor
    due_on = AT_ONCE if vendor.insurance_tracked else None
    return replace(vendor, last_compliance_state=given, compliance_due_on=due_on)


def _is_held_for_lapse(vendor: VendorCompliance) -> bool:
    return vendor.lapse_held_for is not None and vendor.lapse_held_for == vendor.insurance_expires_on
