"""When a ticket is stale (spec 6.1, `ticket.stale`). Pure.

A ticket is quiet since the last thing that staff or a vendor did about it, since its opening at the earliest. What a
resident does does not end the quiet.
"""

from __future__ import annotations

import datetime
from typing import NamedTuple

RESIDENT_SOURCE = "resident_portal"
CLOSED = ("Completed", "Cancelled")


def may_go_stale(source: str, status: str) -> bool:
    """Only an open ticket that a resident filed."""
    return source == RESIDENT_SOURCE and status not in CLOSED


class Staleness(NamedTuple):
    """Two columns of a ticket, both null where no resident filed it; a closed one has the first alone."""

    quiet_since: datetime.datetime | None
    stale_due_at: datetime.datetime | None


COLUMNS = Staleness._fields
NEVER_STALE = Staleness(None, None)


def staleness_from(source: str, status: str, at: datetime.datetime, stale_after_hours: int) -> Staleness:
    """Of a ticket that is opened at this instant, or that staff or a vendor then did something about. source, status:
    as they are from then on."""
    if source != RESIDENT_SOURCE:
        return NEVER_STALE
    return Staleness(at, stale_due_at(source, status, at, stale_after_hours))


def staleness_after(
    author: str, source: str, status: str, at: datetime.datetime, stale_after_hours: int
) -> Staleness | None:
    """Of a ticket that somebody did something about; None where a resident did, which changes nothing."""
    return None if author == "resident" else staleness_from(source, status, at, stale_after_hours)


def stale_due_at(
    source: str, status: str, quiet_since: datetime.datetime, stale_after_hours: int
) -> datetime.datetime | None:
    """When it will have been quiet past the threshold; None for a ticket that can't go stale."""
    return quiet_since + datetime.timedelta(hours=stale_after_hours) if may_go_stale(source, status) else None


def next_stale_due_at(
    quiet_since: datetime.datetime, stale_after_hours: int, now: datetime.datetime
) -> datetime.datetime:
    """The first multiple of the threshold after `quiet_since` that lies after `now`: however many have passed by then,
    they are announced once."""
    threshold = datetime.timedelta(hours=stale_after_hours)
    passed = max((now - quiet_since) // threshold, 0)
    return quiet_since + (passed + 1) * threshold


class Imported(NamedTuple):
    """A resident's ticket as a file leaves it. worked_on: whether the file says what staff or a vendor did.
    quiet_since: when they did so, else since when the ticket is quiet. due_before: as it was due before the file."""

    status: str
    worked_on: bool
    quiet_since: datetime.datetime
    due_before: datetime.datetime | None


def staleness_on_import(
    ticket: Imported, stale_after_hours: int, moment: datetime.datetime, *, events: bool
) -> Staleness:
    """moment: of the import. Without events, a ticket that is stale already counts as announced."""
    if ticket.status in CLOSED:
        return Staleness(ticket.quiet_since, None)
    if ticket.due_before is not None and not ticket.worked_on:
        return Staleness(ticket.quiet_since, ticket.due_before)
    announced_until = ticket.quiet_since if events else moment
    return Staleness(ticket.quiet_since, next_stale_due_at(ticket.quiet_since, stale_after_hours, announced_until))
