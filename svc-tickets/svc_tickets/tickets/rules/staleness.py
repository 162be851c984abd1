"""When a ticket is stale (spec 6.1, `ticket.stale`). Pure.

A ticket is quiet since the last work by staff or a vendor, or since it was opened. A resident's actions do not end the
quiet.
"""

from __future__ import annotations

import datetime
from typing import NamedTuple

from chassis.refusals import invalid_request

RESIDENT_SOURCE = "resident_portal"
CLOSED = ("Completed", "Cancelled")


def is_of_resident(source: str, resident_asked: bool) -> bool:
    """Whether a resident filed the ticket: in the portal, or by asking staff, who opened it."""
    return resident_asked or source == RESIDENT_SOURCE


def may_go_stale(of_resident: bool, status: str) -> bool:
    """True only for an open ticket that a resident filed."""
    return of_resident and status not in CLOSED


def check_may_go_stale(of_resident: bool, status: str) -> None:
    """Raises Refusal 422 for a ticket that never goes stale as it is."""
    if not may_go_stale(of_resident, status):
        message = "The ticket can't go stale: it is closed, or no resident filed it; name a resident's open ticket."
        raise invalid_request(message, "ticket_id", 422)


class Staleness(NamedTuple):
    """Two columns of a ticket. Both are null unless a resident filed it; a closed ticket has no stale_due_at."""

    quiet_since: datetime.datetime | None
    stale_due_at: datetime.datetime | None


COLUMNS = Staleness._fields
NEVER_STALE = Staleness(None, None)


def staleness_from(of_resident: bool, status: str, at: datetime.datetime, stale_after_hours: int) -> Staleness:
    """For a ticket that is opened, or that staff or a vendor worked on, at this instant. status: after that."""
    if not of_resident:
        return NEVER_STALE
    return Staleness(at, stale_due_at(of_resident, status, at, stale_after_hours))


def staleness_after(
    author: str, of_resident: bool, status: str, at: datetime.datetime, stale_after_hours: int
) -> Staleness | None:
    """After a change by the author; None for a resident, whose changes have no effect."""
    return None if author == "resident" else staleness_from(of_resident, status, at, stale_after_hours)


def stale_due_at(
    of_resident: bool, status: str, quiet_since: datetime.datetime, stale_after_hours: int
) -> datetime.datetime | None:
    """When the ticket will have been quiet past the threshold; None if it can't go stale."""
    return quiet_since + datetime.timedelta(hours=stale_after_hours) if may_go_stale(of_resident, status) else None


def next_stale_due_at(
    quiet_since: datetime.datetime, stale_after_hours: int, now: datetime.datetime
) -> datetime.datetime:
    """The first multiple of the threshold after `quiet_since` that lies after `now`. All multiples that have passed by
    then are announced once."""
    threshold = datetime.timedelta(hours=stale_after_hours)
    passed = max((now - quiet_since) // threshold, 0)
    return quiet_since + (passed + 1) * threshold


def threshold_passed(quiet_since: datetime.datetime, stale_after_hours: int, now: datetime.datetime) -> Staleness:
    """For an open ticket of a resident that is to be stale at `now`, as if it had been quiet for a threshold, unless it
    has been so for longer."""
    return Staleness(min(quiet_since, now - datetime.timedelta(hours=stale_after_hours)), now)


class Imported(NamedTuple):
    """A resident's ticket after an import. worked_on: whether the file reports work by staff or a vendor. quiet_since:
    when that work was done, else since when the ticket is quiet. due_before: stale_due_at before the import."""

    status: str
    worked_on: bool
    quiet_since: datetime.datetime
    due_before: datetime.datetime | None


def staleness_on_import(
    ticket: Imported, stale_after_hours: int, moment: datetime.datetime, *, events: bool
) -> Staleness:
    """moment: of the import. Without events, a ticket that is already stale counts as announced."""
    if ticket.status in CLOSED:
        return Staleness(ticket.quiet_since, None)
    if ticket.due_before is not None and not ticket.worked_on:
        return Staleness(ticket.quiet_since, ticket.due_before)
    announced_until = ticket.quiet_since if events else moment
    return Staleness(ticket.quiet_since, next_stale_due_at(ticket.quiet_since, stale_after_hours, announced_until))
