"""Filters that lists read from their address."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from google.protobuf.timestamp_pb2 import Timestamp

from console.kit.texts import _

TEXT_MAX = 200


def texts(query: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """The values by name; empty for one that the address lacks."""
    return {name: query.get(name, "").strip()[:TEXT_MAX] for name in names}


def number(text: str) -> int | None:
    """The id; None if the text is none."""
    return int(text) if text.isascii() and text.isdigit() and 0 < len(text) < 19 and int(text) else None


def is_event_id(text: str) -> bool:
    """Whether the text has the form of an event's id."""
    return len(text) == 36 and text.isascii() and text.replace("-", "").isalnum()


@dataclass(frozen=True, slots=True)
class Period:
    """The instants at which the days of a filter begin and end. errors: what could not be read."""

    since: Timestamp | None = None
    until: Timestamp | None = None
    errors: Sequence[str] = ()


def period(filters: Mapping[str, str], zone: datetime.tzinfo) -> Period:
    """The days `from` and `to`, both included, by the clock of the zone."""
    stamps: dict[str, Timestamp] = {}
    errors = []
    for name, days in (("from", 0), ("to", 1)):
        if not filters[name]:
            continue
        try:
            date = datetime.date.fromisoformat(filters[name]) + datetime.timedelta(days=days)
            stamp = Timestamp()
            stamp.FromDatetime(datetime.datetime.combine(date, datetime.time(), zone))
            stamps[name] = stamp
        except (ValueError, OverflowError):
            errors.append(_("Enter a date such as 2026-11-22."))
    return Period(stamps.get("from"), stamps.get("to"), errors)
