"""Rules of lists for people: limits, and what stands out among a meter's readings. Pure."""

from __future__ import annotations

import datetime
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from chassis.refusals import Refusal, invalid_request

LIMIT = 50
BEFORE = 15
"""How many readings before a page its notes need: more than a year of monthly ones."""
_USUAL_OF, _USUAL_LEAST = 12, 3
_GAP_SECONDS = 3600
_JUMP = 2.0
_SHORTEST = datetime.timedelta(days=5)
_YEAR, _NEAR = datetime.timedelta(days=365), datetime.timedelta(days=20)
_DAY_SECONDS = 86400


@dataclass(frozen=True, slots=True)
class Period:
    """A reading as its notes see it."""

    start: datetime.datetime
    end: datetime.datetime
    consumption: float
    unit_of_measure: str | None

    @property
    def rate(self) -> float | None:
        """Consumption per day; None for a period without length."""
        seconds = (self.end - self.start).total_seconds()
        return self.consumption * _DAY_SECONDS / seconds if seconds else None


@dataclass(frozen=True, slots=True)
class Note:
    """gap_seconds: the time without a reading before a period, negative for an overlap, else 0. times_usual: its rate
    as a multiple of the usual one, if it is a jump."""

    gap_seconds: int = 0
    times_usual: float | None = None


def notes(periods: Sequence[Period]) -> list[Note]:
    """The note on each period; newest first. Those at the end have fewer periods to compare with."""
    return [
        Note(_gap(period, periods[at + 1 :]), _jump(period, periods[at + 1 :])) for at, period in enumerate(periods)
    ]


def _gap(period: Period, before: Sequence[Period]) -> int:
    if not before:
        return 0
    seconds = round((period.start - before[0].end).total_seconds())
    return seconds if abs(seconds) > _GAP_SECONDS else 0


def _jump(period: Period, before: Sequence[Period]) -> float | None:
    """Periods under five days have no jump: days and nights differ. The year before is the better comparison, because
    heating and watering follow the seasons."""
    if period.rate is None or period.end - period.start < _SHORTEST:
        return None
    same = [other for other in before[:BEFORE] if other.unit_of_measure == period.unit_of_measure]
    last_year = [
        other.rate for other in same if other.rate is not None and abs(period.start - other.start - _YEAR) <= _NEAR
    ]
    rates = [other.rate for other in same[:_USUAL_OF] if other.rate is not None]
    if not last_year and len(rates) < _USUAL_LEAST:
        return None
    usual = statistics.median(last_year or rates)
    if usual <= 0:
        return None
    times = period.rate / usual
    return times if times >= _JUMP or times <= 1 / _JUMP else None


def limit_of(requested: int, most: int) -> int:
    """How many records a page has. Raises Refusal 400."""
    if not 0 <= requested <= most:
        raise invalid_request(f"limit must be from 1 to {most}.", "limit")
    return requested or LIMIT


def allowed(values: Sequence[str], choices: Sequence[str], field: str) -> list[str]:
    """The values without duplicates. Raises Refusal 422 for one that is no choice."""
    if not set(values) <= set(choices):
        raise invalid_request(f"{field} may be {', '.join(choice for choice in choices if choice)}.", field, status=422)
    return sorted(set(values))


def day_of(text: str, field: str) -> datetime.date:
    """A date. Raises Refusal 400."""
    try:
        if len(text) != len("YYYY-MM-DD"):
            raise ValueError
        return datetime.date.fromisoformat(text)
    except ValueError:
        raise invalid_request(f"{field} must be a date as YYYY-MM-DD.", field) from None


def months_before(until: datetime.datetime, months: int) -> list[datetime.datetime]:
    """The beginnings of months in the zone of `until`, oldest first; its own month is the last one."""
    last = until.year * 12 + until.month - 1
    return [
        datetime.datetime(number // 12, number % 12 + 1, 1, tzinfo=until.tzinfo)
        for number in range(last - months + 1, last + 1)
    ]


def no_record(noun: str) -> Refusal:
    """The same sentence for a missing record and for another company's."""
    return Refusal(404, "not_found", f"The company has no {noun} with that id; check the id.")
