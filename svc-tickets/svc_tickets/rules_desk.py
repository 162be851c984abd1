"""What the back office may do with a ticket. Pure."""

from __future__ import annotations

import datetime
import urllib.parse
from collections.abc import Mapping
from typing import Any, Literal, get_args

from chassis.refusals import invalid_request
from svc_tickets import rules, rules_quiet

Author = Literal["staff", "vendor", "resident"]
AUTHORS: tuple[str, ...] = get_args(Author)
# The source of a ticket, by who opens it.
SOURCES = {"staff": "staff", "resident": "resident_portal"}
# What is added to a ticket by itself; other kinds come with a change of its status.
COMMENT, PHOTO = "comment", "photo"
STAFF: Author = "staff"  # whose words come with a change of status

UNKNOWN_CATEGORY = "Other"
UNTITLED = "Failed at an inspection"


def check_photo_url(photo_url: str) -> None:
    """Raises Refusal where it can't be the address of a photo. Pages show it as a link: no other scheme gets in."""
    try:
        parts = urllib.parse.urlsplit(photo_url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        good = False
    if not good or any(sign.isspace() or not sign.isprintable() for sign in photo_url):
        raise invalid_request("photo_url must be an absolute http or https address.", "photo_url")


def check_vendor(before: int | None, after: int | None, *, on_hold: bool) -> None:
    """Raises Refusal where a vendor on hold would get new work; what a vendor already has, stays."""
    if after is not None and after != before and on_hold:
        raise invalid_request(
            "The vendor is on hold and gets no new work; release the vendor or choose another.", "vendor_id", 422
        )


def quiet(ticket: Mapping[str, Any], author: str, at: datetime.datetime) -> dict[str, Any]:
    """The columns of `rules_quiet.Quiet` once somebody did something about a ticket; none where a resident did.

    ticket: with its source and status as they are from then on, and the company's stale_after_hours.
    """
    if author == "resident":
        return {}
    return rules_quiet.quiet_from(ticket["source"], ticket["status"], at, ticket["stale_after_hours"])._asdict()


def of_failed_row(title: str, category: str, priority: str) -> tuple[str, str, str]:
    """Title, category and priority of the ticket that a failed inspection row opens.

    The inspection's words are its own service's: what this release does not know must not keep the ticket away.
    """
    return (
        (title.strip() or UNTITLED)[: rules.TITLE_POINTS_MAX],
        category if category in rules.CATEGORIES else UNKNOWN_CATEGORY,
        priority if priority in rules.PRIORITIES else rules.DEFAULT_PRIORITY,
    )
