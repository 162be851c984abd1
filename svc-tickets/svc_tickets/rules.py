"""What a ticket may be: its enums and states (spec 2.3, 3.1). Pure."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Literal, get_args

from chassis.refusals import invalid_request

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
