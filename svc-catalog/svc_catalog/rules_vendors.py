"""What a vendor may be (spec 2.8). Pure."""

from __future__ import annotations

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
