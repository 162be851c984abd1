"""When a ticket has been quiet for too long (spec 6.1, `ticket.stale`). Pure.

Quiet since: the last thing that staff or a vendor did about it, its opening at the earliest. What a resident does
breaks no silence.
"""

from __future__ import annotations

import datetime
from typing import NamedTuple

QUIET_SOURCE = "resident_portal"
CLOSED = ("Completed", "Cancelled")


def may_go_stale(source: str, status: str) -> bool:
    """Only what a resident filed and nobody has closed."""
    return source == QUIET_SOURCE and status not in CLOSED


class Quiet(NamedTuple):
    """Two columns of a ticket, both null where no resident filed it; a closed one has the first alone."""

    quiet_since: datetime.datetime | None
    stale_due_at: datetime.datetime | None


NEVER_QUIET = Quiet(None, None)


def quiet_from(source: str, status: str, at: datetime.datetime, stale_after_hours: int) -> Quiet:
    """What a ticket has that is opened at this instant, or that staff or a vendor did something about. source, status:
    as they are from then on."""
    if source != QUIET_SOURCE:
        return NEVER_QUIET
    return Quiet(at, stale_due_at(source, status, at, stale_after_hours))


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


class Imported(NamedTuple):
    """A resident's ticket as a file leaves it. stirred: whether the file says what staff or a vendor did; heard_at:
    when it did where it says so, else when the ticket fell quiet; due_before: as it was due before the file."""

    status: str
    stirred: bool
    heard_at: datetime.datetime
    due_before: datetime.datetime | None


def quiet_on_import(ticket: Imported, stale_after_hours: int, moment: datetime.datetime, *, events: bool) -> Quiet:
    """moment: of the import. Without events, what has been quiet for too long already counts as told."""
    if ticket.status in CLOSED:
        return Quiet(ticket.heard_at, None)
    if ticket.due_before is not None and not ticket.stirred:
        return Quiet(ticket.heard_at, ticket.due_before)
    told_until = ticket.heard_at if events else moment
    return Quiet(ticket.heard_at, next_stale_due_at(ticket.heard_at, stale_after_hours, told_until))
