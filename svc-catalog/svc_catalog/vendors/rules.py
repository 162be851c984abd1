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
class Standing:
    """What is known of a vendor's insurance, and whether it is on hold."""

    on_hold: bool = False
    hold_reason: str | None = None
    insurance_tracked: bool = False
    # The last day on which it is insured.
    insurance_expires_on: datetime.date | None = None
    # The expiry date whose passing has placed a hold.
    lapse_held_for: datetime.date | None = None
    # From which day on the snapshot may find something new; None where only a person changes what it finds.
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


def hold(standing: Standing, reason: str) -> Standing:
    """Places it on hold. One that is on hold gets the reason: insurance then ends no hold that a person has placed."""
    return replace(standing, on_hold=True, hold_reason=reason)


def release(standing: Standing) -> Standing:
    """Ends its hold, whatever the reason."""
    lapsed_meanwhile = standing.last_compliance_state == "noncompliant" and not _is_held_for_lapse(standing)
    due_on = AT_ONCE if standing.insurance_tracked and lapsed_meanwhile else standing.compliance_due_on
    return replace(standing, on_hold=False, hold_reason=None, compliance_due_on=due_on)


def record_insurance(standing: Standing, expires_on: datetime.date | None, today: datetime.date) -> Standing:
    """Tracks its insurance from now on. Insurance that is valid ends a hold that a lapse has placed."""
    if standing.insurance_tracked and standing.insurance_expires_on == expires_on:
        return standing
    if expires_on is not None and expires_on >= today:
        standing = replace(standing, lapse_held_for=None)
        if standing.hold_reason == LAPSED:
            standing = replace(standing, on_hold=False, hold_reason=None)
    return replace(standing, insurance_tracked=True, insurance_expires_on=expires_on, compliance_due_on=AT_ONCE)


def hold_if_lapsed(standing: Standing, today: datetime.date) -> Standing:
    """Places the hold that a lapse of its insurance asks for, where there is one."""
    lapses = standing.insurance_tracked and compliance(standing.insurance_expires_on, today) == "noncompliant"
    if not lapses or _is_held_for_lapse(standing):
        return standing
    if not standing.on_hold:
        return replace(hold(standing, LAPSED), lapse_held_for=standing.insurance_expires_on)
    if standing.hold_reason == LAPSED:  # an earlier lapse has placed it; a person's hold stands for none
        return replace(standing, lapse_held_for=standing.insurance_expires_on)
    return standing


def look(standing: Standing, today: datetime.date) -> Standing:
    """What the snapshot of a day makes of it; one whose insurance is not tracked stays as it is."""
    if not standing.insurance_tracked:
        return standing
    expires_on = standing.insurance_expires_on
    seen = replace(
        standing,
        last_compliance_state=compliance(expires_on, today),
        compliance_due_on=next_finding(expires_on, today),
    )
    return hold_if_lapsed(seen, today)


def state(standing: Standing, given: str | None) -> Standing:
    """What a file says of its compliance; of a vendor whose insurance is tracked the next snapshot knows better."""
    if given == standing.last_compliance_state:
        return standing
    due_on = AT_ONCE if standing.insurance_tracked else None
    return replace(standing, last_compliance_state=given, compliance_due_on=due_on)


def _is_held_for_lapse(standing: Standing) -> bool:
    return standing.lapse_held_for is not None and standing.lapse_held_for == standing.insurance_expires_on
