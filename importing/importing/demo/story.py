"""The demo's story: the content of its records on a given day.

The hand-written records lie in `rows`; units, turns, meters and readings follow rules in code. Recent events must
look recent whenever the demo starts, so dates are counted from the day of the first start. The same day in
the same time zone always gives the same story.
"""

import datetime
import functools
import hashlib
import json
import re
import zlib
from collections.abc import Iterable
from pathlib import Path
from zoneinfo import ZoneInfo

from importing.demo import past, residency, units, utilities
from importing.demo.units import Row

TIMEZONE = "America/New_York"
_ROWS = Path(__file__).with_name("rows")
_INSTANTS = frozenset(
    {
        "created_at",
        "updated_at",
        "completed_at",
        "cancelled_at",
        "onboarded_at",
        "retired_at",
        "occupancy_fed_at",
        "published_at",
    }
)
_DATES = frozenset(
    {
        "installed_on",
        "warranty_expires_on",
        "scheduled_date",
        "completed_date",
        "move_in_date",
        "move_out_date",
        "projected_ready_on",
        "due_date",
    }
)
_SATURDAY = 5
_YEARS = frozenset({"year_built", "year"})
# `-12 09:14` is twelve days before the story's day; `@01-15 08:40` is the last 15 January, for seasonal events.
_COUNTED = re.compile(r"(?P<days>[+-]\d+)(?: (?P<time>\d\d:\d\d))?")
_SEASON = re.compile(r"@(?P<date>\d\d-\d\d)(?P<days>[+-]\d+)?(?: (?P<time>\d\d:\d\d))?")


def today() -> datetime.date:
    """The day of a story that begins now."""
    return datetime.datetime.now(ZoneInfo(TIMEZONE)).date()


def day_of(stored: str | None) -> datetime.date:
    """The day of a story that has begun, else today."""
    return datetime.date.fromisoformat(stored) if stored else today()


def rows(day: datetime.date, timezone: str = TIMEZONE) -> dict[str, list[Row]]:
    """The rows of every kind, in the order of their import: each refers only to those before it. timezone: in which
    days begin and times of day are."""
    at = functools.partial(instant, timezone=timezone)
    dated = functools.partial(_dated, day=day, at=at)
    homes = units.rows()
    turns = _written("turns")
    return {
        "staff": dated("staff", _written("staff")),
        "vendors": dated("vendors", _written("vendors")),
        "properties": _by_age(dated("properties", _written("properties"))),
        "units": dated("units", homes),
        "assets": dated("assets", _written("assets")),
        "turns": _by_age(dated("turns", [*turns, *residency.rows(homes, turns)])),
        "inspections": _by_age(dated("inspections", _written("inspections"))),
        "meters": dated("meters", [meter.row() for meter in utilities.meters()]),
        "readings": list(utilities.readings(day, at)),
        "tickets": _by_age([_touched(row) for row in dated("tickets", [*past.tickets(homes), *_written("tickets")])]),
        "pm-tasks": _by_age(dated("pm-tasks", _written("pm-tasks"))),
        "turn-tasks": _by_age(dated("turn-tasks", _written("turn-tasks"))),
        "notices": _by_age(dated("notices", _written("notices"))),
    }


def _touched(ticket: Row) -> Row:
    """The instant of the story's last change; without it all tickets would have changed on the day of the import."""
    moved = max(str(ticket[name]) for name in ("created_at", "completed_at", "cancelled_at") if ticket.get(name))
    return {"updated_at": moved, **ticket}


def _by_age(records: list[Row]) -> list[Row]:
    """Sorted by age: ids follow the order of a file, so they are as if each record had been made when it says."""
    return sorted(records, key=lambda row: str(row["created_at"]))


def fingerprint(tables: dict[str, list[Row]]) -> str:
    """A digest that identifies this version of the story."""
    return hashlib.sha256(json.dumps(tables).encode()).hexdigest()


def _written(kind: str) -> list[Row]:
    with (_ROWS / f"{kind}.jsonl").open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _dated(kind: str, written: Iterable[Row], *, day: datetime.date, at: utilities.Instant) -> list[Row]:
    return [{name: _value(kind, row, name, day, at) for name in row} for row in written]


def _value(kind: str, row: Row, name: str, day: datetime.date, at: utilities.Instant) -> object:
    value = row[name]
    if not isinstance(value, str) or name not in _INSTANTS | _DATES | _YEARS:
        return value
    if name in _YEARS:
        return day.year + int(value)
    match = _COUNTED.fullmatch(value) or _SEASON.fullmatch(value)
    if match is None:
        return value
    date = (_last(match["date"], day) if "date" in match.groupdict() else day) + datetime.timedelta(
        int(match["days"] or 0)
    )
    if name in _DATES:
        return (_working_day(date) if kind == "inspections" else date).isoformat()
    # Real tickets are not opened on the full minute.
    second = zlib.crc32(f"{kind} {row['external_id']} {name}".encode()) % 60
    return at(date, f"{match['time'] or '09:00'}:{second:02}")


def _working_day(date: datetime.date) -> datetime.date:
    """The Monday after a weekend, else the day itself."""
    return date + datetime.timedelta(days=7 - date.weekday() if date.weekday() >= _SATURDAY else 0)


def instant(date: datetime.date, time: str, timezone: str = TIMEZONE) -> str:
    """The instant of a time of day at the company, in UTC."""
    local = datetime.datetime.combine(date, datetime.time.fromisoformat(time), ZoneInfo(timezone))
    return local.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _last(month_and_day: str, day: datetime.date) -> datetime.date:
    """The last such date that lies at least three weeks before the story's day."""
    date = datetime.date.fromisoformat(f"{day.year}-{month_and_day}")
    return date if date <= day - datetime.timedelta(weeks=3) else date.replace(year=day.year - 1)
