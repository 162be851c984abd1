"""The records of the month's model, and its implied events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

Facts = Mapping[str, Any]
CLOSED = ("Completed", "Cancelled")


@dataclass(frozen=True)
class Implied:
    """One event that must arrive. kind, entity_id: the record in its data; None and 0 for events with inline data.

    facts: the part of the data that the model foresees. step: the step of the script that causes the event.
    """

    event: str
    kind: str | None
    entity_id: int
    change: Facts | None
    facts: Facts
    step: int


@dataclass
class Dated:
    """Work with a due date: an inspection, a make-ready task, a maintenance task."""

    event: str
    day: date | None
    facts: dict[str, Any]
    kind: str | None = None
    entity_id: int = 0
    is_open: bool = True
    is_announced: bool = False
    turn_id: int = 0


@dataclass
class Ticket:
    """One ticket. quiet_since: the recorded time of the last action by staff or a vendor."""

    source: str
    status: str
    quiet_since: datetime
    of_resident: bool
    stale_at: datetime | None = None


@dataclass
class Unit:
    """One unit. turn_id: its current turn, else the newest that has begun; next_id: its planned turn. 0 for none."""

    name: str
    status: str | None = None
    turn_id: int = 0
    next_id: int = 0


@dataclass
class Turn:
    unit_id: int
    move_in: date | None = None
    move_out: date | None = None
    projected: date | None = None
    is_active: bool = True


@dataclass
class Vendor:
    on_hold: bool = False
    is_tracked: bool = False
    expires: date | None = None
    lapsed: set[date] = field(default_factory=set)
    held_for_lapse: bool = False
    state: str = ""
    """The compliance state in the last sweep."""
