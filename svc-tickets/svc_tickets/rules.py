"""What a ticket may be, and how its status changes (spec 2.3, 3.1, 4.2). Pure."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Literal, get_args

from chassis.refusals import invalid_request
from svc_tickets.rules_words import words

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

DEFAULT_PRIORITY: Priority = "Medium"
TITLE_POINTS_MAX = 150
STALE_AFTER_HOURS = 72
NOTE_WORDS_MIN = 5
# What a comment that came with a change of status is, by the status.
COMMENT_KINDS: dict[str, str] = {"Completed": "closing_note", "Cancelled": "cancellation_notes"}


@dataclass(frozen=True, slots=True)
class Standing:
    """A ticket's status and the fields that belong to it."""

    status: str
    completed_at: datetime.datetime | None
    cancelled_at: datetime.datetime | None
    cancellation_reason_code: str | None


def standing_on_import(
    status: str,
    completed_at: datetime.datetime | None,
    cancelled_at: datetime.datetime | None,
    cancellation_reason_code: str | None,
    updated_at: datetime.datetime,
) -> Standing:
    """The standing that a row of a file describes; a closed ticket without its instant closed when last updated.

    Raises Refusal, with the field, where a field belongs to another status.
    """
    if completed_at is not None and status != "Completed":
        raise invalid_request("completed_at belongs to status Completed alone.", "completed_at")
    if cancelled_at is not None and status != "Cancelled":
        raise invalid_request("cancelled_at belongs to status Cancelled alone.", "cancelled_at")
    if cancellation_reason_code is not None and status != "Cancelled":
        raise invalid_request("cancellation_reason_code belongs to status Cancelled alone.", "cancellation_reason_code")
    return Standing(
        status,
        (completed_at or updated_at) if status == "Completed" else None,
        (cancelled_at or updated_at) if status == "Cancelled" else None,
        cancellation_reason_code,
    )


@dataclass(frozen=True, slots=True)
class Wanted:
    """A change of status whose fields fit each other. comment: the note, or the notes of a cancellation."""

    status: str
    cancellation_reason_code: str | None
    comment: str | None


def wanted_change(
    status: str, note: str | None, cancellation_reason_code: str | None, cancellation_notes: str | None
) -> Wanted:
    """What a request asks for, from what stands in it alone (the field table of spec 4.2). Raises Refusal with the
    first field at fault, in their order; None stands for a field that was not sent.
    """
    completes, cancels = status == "Completed", status == "Cancelled"
    if note is not None and not completes:
        raise invalid_request("note is accepted with status Completed alone; leave it out.", "note", 422)
    if completes:
        _check_words("note", note, "status Completed")
    if not cancels:
        for field, value in (
            ("cancellation_reason_code", cancellation_reason_code),
            ("cancellation_notes", cancellation_notes),
        ):
            if value is not None:
                raise invalid_request(f"{field} is accepted with status Cancelled alone; leave it out.", field, 422)
        return Wanted(status, None, note)
    if cancellation_reason_code is None:
        raise invalid_request(
            f"cancellation_reason_code is required with status Cancelled: one of {', '.join(CANCELLATION_REASONS)}.",
            "cancellation_reason_code",
            422,
        )
    if cancellation_reason_code == "see_notes":
        _check_words("cancellation_notes", cancellation_notes, "cancellation_reason_code see_notes")
    elif cancellation_notes is not None:
        raise invalid_request(
            "cancellation_notes is accepted with cancellation_reason_code see_notes alone; leave it out.",
            "cancellation_notes",
        )
    return Wanted(status, cancellation_reason_code, cancellation_notes)


def _check_words(field: str, text: str | None, needed_with: str) -> None:
    if text is None:
        raise invalid_request(f"{field} is required with {needed_with}: {NOTE_WORDS_MIN} or more words.", field, 422)
    if words(text) < NOTE_WORDS_MIN:
        raise invalid_request(f"{field} must have {NOTE_WORDS_MIN} or more words.", field, 422)


@dataclass(frozen=True, slots=True)
class Changed:
    """What becomes of a ticket. at: the one instant of the change; None where nothing is new."""

    standing: Standing
    at: datetime.datetime | None
    moved: bool


def change_status(
    before: Standing,
    updated_at: datetime.datetime,
    wanted: Wanted,
    clock: datetime.datetime,
    *,
    photo_required: bool,
    has_photo: bool,
) -> Changed:
    """Every status follows every other, itself too. What belongs to the status that the ticket leaves goes with it:
    its past is in its history. The instant lies after the last change, whatever the clock says.

    Raises Refusal where the company wants a photo of what is completed.
    """
    if wanted.status == "Completed" and photo_required and not has_photo:
        raise invalid_request(
            "The company requires a photo to complete a ticket and this one has none; add one (photo_url) first.",
            "photo_url",
            422,
        )
    moved = wanted.status != before.status
    if not moved and wanted.comment is None and wanted.cancellation_reason_code == before.cancellation_reason_code:
        return Changed(before, None, False)
    at = max(clock, updated_at + datetime.timedelta(microseconds=1))
    standing = Standing(
        wanted.status,
        (before.completed_at or at) if wanted.status == "Completed" else None,
        (before.cancelled_at or at) if wanted.status == "Cancelled" else None,
        wanted.cancellation_reason_code,
    )
    return Changed(standing, at, moved)
