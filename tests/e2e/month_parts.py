"""What the reckoning of the month knows of each record, and an event that is implied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

Facts = Mapping[str, Any]
CLOSED = ("Completed", "Cancelled")


@dataclass(frozen=True)
class Implied:
    """One event that must arrive. kind, entity_id: the record that its data are; None and 0 for the inline ones.

    facts: what the data must say, where not all of it is foreseen. step: the part of the script that it belongs to.
    """

    event: str
    kind: str | None
    entity_id: int
    change: Facts | None
    facts: Facts
    step: int


@dataclass
class Dated:
    """Something that is to be done by a day: an inspection, a make-ready task, a maintenance task."""

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
    """One ticket. quiet_since: when staff or a vendor last did something about it, as the system recorded it."""

    source: str
    status: str
    quiet_since: datetime
    stale_at: datetime | None = None


@dataclass
class Unit:
    """turn_id: the active turn, else the newest, else 0."""

    name: str
    status: str | None = None
    turn_id: int = 0


@dataclass
class Turn:
    unit_id: int
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
    """What the last snapshot found."""
