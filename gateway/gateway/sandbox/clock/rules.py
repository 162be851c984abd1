"""The rules of an advance: how far a sandbox's clock may be moved."""

from __future__ import annotations

import datetime
import re

from chassis.refusals import Refusal, invalid_request

ADVANCE_DAYS_MAX = 400
STUCK = datetime.timedelta(seconds=10)
"""After this time a service that does not answer is named."""
SERVICES = ("svc-occupancy", "svc-catalog", "svc-tickets", "svc-webhooks")
"""The services that keep the companies' clocks. Each may cause something in those behind it, and in none before."""

_DURATION = re.compile(
    r"P(?:(?P<weeks>\d{1,6})W)?(?:(?P<days>\d{1,6})D)?"
    r"(?:T(?=\d)(?:(?P<hours>\d{1,9})H)?(?:(?P<minutes>\d{1,9})M)?(?:(?P<seconds>\d{1,9}(?:\.\d{1,6})?)S)?)?",
    re.ASCII,
)


def clock_advancing() -> Refusal:
    return Refusal(
        409, "clock_advancing", "The clock is advancing; wait until GET /sandbox/clock says ready, then try again."
    )


def check_ways(ways: int) -> None:
    """How many of advance_to and advance_by a request has. Raises Refusal 400."""
    if ways != 1:
        raise invalid_request("Give advance_to or advance_by, and not both.")


def duration(text: str) -> datetime.timedelta:
    """An ISO 8601 duration of weeks, days, hours, minutes and seconds. Raises Refusal 400."""
    date, _, _ = text.partition("T")
    if text.startswith("P") and ("Y" in date or "M" in date):
        raise invalid_request(
            "advance_by may not have years or months, whose lengths differ; give weeks or days.", "advance_by"
        )
    match = _DURATION.fullmatch(text)
    parts = {name: float(number) for name, number in match.groupdict().items() if number} if match else {}
    if not parts:
        raise invalid_request("advance_by must be an ISO 8601 duration such as P1DT2H or PT90M.", "advance_by")
    return datetime.timedelta(**parts)


def check_advance(by: datetime.timedelta, offset: datetime.timedelta, offset_max: datetime.timedelta) -> None:
    """Whether a sandbox's clock, which is ahead of the real one by the offset, may be advanced so far. Raises Refusal
    422."""
    if by < datetime.timedelta():
        raise invalid_request("advance_to lies behind the sandbox's clock, which only goes forward.", "advance_to", 422)
    if by > datetime.timedelta(days=ADVANCE_DAYS_MAX):
        raise invalid_request(f"An advance is at most {ADVANCE_DAYS_MAX} days; take several.", status=422)
    if offset + by > offset_max:
        raise invalid_request(
            f"A sandbox's clock is at most {offset_max.days} days ahead of the real one; use a new sandbox.", status=422
        )


def waits_for(service: str, seconds: float) -> str:
    """The sentence about a service that has not answered for so long."""
    name = service.removeprefix("svc-")
    return f"The service of {name} has not answered for {seconds:.0f} seconds; the advance goes on once it does."


def not_known(service: str) -> str:
    """The sentence about what falls due next while a service does not answer."""
    return f"The service of {service.removeprefix('svc-')} does not answer, so what falls due next is not known."
