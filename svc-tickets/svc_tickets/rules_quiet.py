"""When a ticket has been quiet for too long (spec 6.1, `ticket.stale`). Pure.

Quiet since: the last thing that staff or a vendor did about it, its opening at the earliest. What a resident does
breaks no silence.
"""

from __future__ import annotations

import datetime

QUIET_SOURCE = "resident_portal"
CLOSED = ("Completed", "Cancelled")


def may_go_stale(source: str, status: str) -> bool:
    """Only what a resident filed and nobody has closed."""
    return source == QUIET_SOURCE and status not in CLOSED


def stale_due_at(
    source: str, status: str, quiet_since: datetime.datetime, stale_after_hours: int
) -> datetime.datetime | None:
    """When it will have been quiet past the threshold; None for a ticket that can't go stale."""
    return quiet_since + datetime.timedelta(hours=stale_after_hours) if may_go_stale(source, status) else None


def next_stale_due_at(
    quiet_since: datetime.datetime, stale_after_hours: int, now: datetime.datetime
) -> datetime.datetime:
    """The first multiple of the threshold after `quiet_since` that lies after `now`: however many have passed by then,
    they are told of once."""
    threshold = datetime.timedelta(hours=stale_after_hours)
    passed = max((now - quiet_since) // threshold, 0)
    return quiet_since + (passed + 1) * threshold
