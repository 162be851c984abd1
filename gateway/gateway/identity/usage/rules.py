"""How long the usage of keys is stored, and what may be asked about it. Pure."""

from __future__ import annotations

import datetime

from chassis.refusals import invalid_request

HOUR = datetime.timedelta(hours=1)
DAY = datetime.timedelta(days=1)
USAGE_RETENTION = datetime.timedelta(days=90)

USAGE_KEYS_MAX = 200
USAGE_HOURS_MAX = 20_000


def hours_of(
    counted_from: datetime.datetime | None, counted_to: datetime.datetime | None, now: datetime.datetime, keys: int
) -> tuple[datetime.datetime, datetime.datetime]:
    """The start of the first hour and the end of the last one. Raises Refusal 400.

    keys: how many are asked about; 0 for the sum of all.
    """
    end = now if counted_to is None else counted_to
    last = end.replace(minute=0, second=0, microsecond=0)
    last += HOUR if last < end else datetime.timedelta(0)
    first = last - DAY if counted_from is None else counted_from.replace(minute=0, second=0, microsecond=0)
    if first >= last:
        raise invalid_request("counted_from must be before counted_to.", "counted_from")
    if (last - first) // HOUR * max(keys, 1) > USAGE_HOURS_MAX:
        raise invalid_request(
            f"Hours and keys together must be at most {USAGE_HOURS_MAX}; ask for a shorter time or for fewer keys.",
            "counted_from",
        )
    return first, last
