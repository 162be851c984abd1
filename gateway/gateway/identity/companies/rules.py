"""The rules for a company's settings. Raises ValueError with a sentence."""

from __future__ import annotations

import functools
import zoneinfo

from chassis.refusals import Refusal

DEFAULT_TIMEZONE = "UTC"


def no_company() -> Refusal:
    return Refusal(404, "not_found", "No company has that id; list the companies to see their ids.")


@functools.cache
def _timezones() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones())


def timezone(value: str) -> str:
    """An IANA name; empty means UTC."""
    value = value or DEFAULT_TIMEZONE
    if value not in _timezones():
        raise ValueError("The timezone must be an IANA name such as America/Toronto.")
    return value
