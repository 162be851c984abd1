"""The values of a ticket's fields (spec 2.3, 4.2), and the rules of back-office changes. Pure."""

from __future__ import annotations

import urllib.parse
from typing import Literal, get_args

from chassis.refusals import Refusal, invalid_request

Status = Literal["Open", "In Progress", "On Hold", "Completed", "Cancelled"]
Priority = Literal["Low", "Medium", "High", "Emergency"]
Category = Literal[
    "HVAC",
    "Plumbing",
    "Electrical",
    "Mechanical",
    "Life Safety",
    "Elevator",
    "Appliance",
    "Doors/Windows",
    "Flooring",
    "Painting",
    "Roofing",
    "Leak",
    "Pest Control",
    "Structural",
    "Grounds",
    "Parking Garage",
    "Pool",
    "Security",
    "Common Area",
    "General",
    "Other",
]
CancellationReason = Literal[
    "duplicate_ticket",
    "no_access_repeated",
    "resident_cancelled",
    "resolved_independently",
    "scheduled_for_later",
    "see_notes",
    "wrong_property",
]
Source = Literal["api", "staff", "resident_portal", "inspection", "import"]

STATUSES: tuple[str, ...] = get_args(Status)
PRIORITIES: tuple[str, ...] = get_args(Priority)
CATEGORIES: tuple[str, ...] = get_args(Category)
CANCELLATION_REASONS: tuple[str, ...] = get_args(CancellationReason)
SOURCES: tuple[str, ...] = get_args(Source)

FIRST_STATUS: Status = "Open"
DEFAULT_PRIORITY: Priority = "Medium"
EMERGENCY: Priority = "Emergency"
TITLE_POINTS_MAX = 150
# The kind of a comment that belongs to a status change, by the new status.
COMMENT_KINDS: dict[str, str] = {"Completed": "closing_note", "Cancelled": "cancellation_notes"}
# The kinds of comments that are added on their own.
COMMENT, PHOTO = "comment", "photo"

Author = Literal["staff", "vendor", "resident"]
AUTHORS: tuple[str, ...] = get_args(Author)
STAFF: Author = "staff"  # the author of comments on status changes
RESIDENT: Author = "resident"
OPENERS: tuple[Author, ...] = (STAFF, RESIDENT)  # who asks for a ticket that staff open

UNKNOWN_CATEGORY: Category = "Other"
UNTITLED = "Failed at an inspection"


def no_such_ticket() -> Refusal:
    """The refusal in the back office."""
    return Refusal(404, "not_found", "The company has no ticket with that id; check the id.")


def no_such_photo() -> Refusal:
    message = "The ticket has no photo with that address; it may have been removed already."
    return Refusal(404, "not_found", message, "photo_url")


def check_photo_url(photo_url: str) -> None:
    """Raises Refusal unless this can be a photo's URL. Pages render it as a link: only http and https are allowed."""
    try:
        parts = urllib.parse.urlsplit(photo_url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        good = False
    if not good or any(sign.isspace() or not sign.isprintable() for sign in photo_url):
        raise invalid_request("photo_url must be an absolute http or https address.", "photo_url")


def check_version(seen: int | None, now: int) -> None:
    """Raises Refusal if the ticket has changed since the person saw it. None: any version will do."""
    if seen is not None and seen != now:
        raise invalid_request(
            "Another person has changed the ticket meanwhile; compare it with yours and save again.", "version", 422
        )


def check_status_seen(seen: str | None, now: str) -> None:
    """Raises Refusal if the ticket has another status than the person saw. None: any status will do."""
    if seen is not None and seen != now:
        raise invalid_request(
            f"Another person has set the ticket to {now} meanwhile; look at it again.", "from_status", 422
        )


def check_value_seen(field: str, seen: str | None, now: str) -> None:
    """Raises Refusal if the ticket's priority or category has changed since the person saw it. seen: None if any will
    do."""
    if seen is not None and seen != now:
        message = f"Another person has set the {field} to {now} meanwhile; look at it again."
        raise invalid_request(message, f"from_{field}", 422)


def check_assignment_seen(field: str, seen: int | None, now: int | None, name: str | None) -> None:
    """Raises Refusal if the ticket's assignee or vendor has changed since the person saw it. field: assignee_id or
    vendor_id; seen: 0 for nobody, None if anybody will do; name: of who has it now."""
    if seen is not None and seen != (now or 0):
        who = "nobody" if field == "assignee_id" else "no vendor"
        message = f"The assignment was changed meanwhile: {name or who} has the ticket now; look at it again."
        raise invalid_request(message, f"from_{field}", 422)


def check_vendor(before: int | None, after: int | None, *, on_hold: bool) -> None:
    """Raises Refusal if a vendor on hold would get new work; tickets that the vendor already has stay."""
    if after is not None and after != before and on_hold:
        raise invalid_request(
            "The vendor is on hold and gets no new work; release the vendor or choose another.", "vendor_id", 422
        )


def of_failed_row(title: str, category: str, priority: str) -> tuple[str, str, str]:
    """Title, category and priority of the ticket that a failed inspection row opens.

    These values belong to svc-catalog: one that this release does not know must not prevent the ticket.
    """
    return (
        (title.strip() or UNTITLED)[:TITLE_POINTS_MAX],
        category if category in CATEGORIES else UNKNOWN_CATEGORY,
        priority if priority in PRIORITIES else DEFAULT_PRIORITY,
    )
