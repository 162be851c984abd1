"""Rules for meters and readings (spec 2.11). Pure."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Literal, get_args

from chassis.refusals import invalid_request

UtilityType = Literal["electric", "gas", "water", "sewer", "trash", "other"]
Scope = Literal["master", "common_area", "unit"]

UTILITY_TYPES: tuple[str, ...] = get_args(UtilityType)
SCOPES: tuple[str, ...] = get_args(Scope)

# How a reading was created: as other records, or over the API.
READING_SOURCES = ("staff", "import", "api")
# Of one request over the API.
READINGS_MAX = 500
UNIT_OF_MEASURE_POINTS_MAX = 50
# Up to this amount, a double returns the fifteen digits that were sent.
AMOUNT_MAX = 10**15


def check_period(start: datetime.datetime, end: datetime.datetime) -> None:
    """Raises Refusal 400 for a period that ends before it starts."""
    if end < start:
        raise invalid_request("period_end must not be before period_start.", "period_end")


def check_periods(periods: Sequence[tuple[datetime.datetime, datetime.datetime]]) -> None:
    """Raises Refusal 400 for a period of `readings` that ends before it starts, or that stands there twice."""
    first: dict[tuple[datetime.datetime, datetime.datetime], int] = {}
    for number, (start, end) in enumerate(periods):
        at = f"readings[{number}]"
        if end < start:
            raise invalid_request(f"{at}.period_end must not be before period_start.", f"{at}.period_end")
        if (same := first.setdefault((start, end), number)) != number:
            raise invalid_request(f"{at} has the period of readings[{same}]; send each period once.", at)


def meter_scope(new: str | None, stored: str | None, has_unit: bool) -> str:
    """What a meter measures for. Raises Refusal 400 if the scope and the presence of a unit contradict each other."""
    if has_unit:
        if new not in (None, "unit"):
            raise invalid_request("A meter of a unit has the scope unit.", "scope")
        return "unit"
    if new == "unit":
        raise invalid_request("A meter with the scope unit needs a unit.", "unit")
    return new or (stored if stored != "unit" else None) or "master"
