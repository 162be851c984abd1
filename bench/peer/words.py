"""The words that a ticket's fields may have (spec 4.2)."""

from __future__ import annotations

from typing import Literal

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
