"""The public shapes of a sandbox's clock."""

from __future__ import annotations

import datetime
from typing import Annotated, Literal

import msgspec

encode = msgspec.json.Encoder().encode

Instant = Annotated[str, msgspec.Meta(extra_json_schema={"format": "date-time"})]
"""An instant as the API prints it."""


class SandboxClockAdvance(msgspec.Struct, kw_only=True):
    """How far to advance a sandbox's clock: one of both."""

    advance_to: datetime.datetime | None = None
    """The instant to advance to, by the sandbox's clock. It must carry a UTC offset."""
    advance_by: Annotated[str, msgspec.Meta(extra_json_schema={"format": "duration"})] | None = None
    """How far, as an ISO 8601 duration of weeks, days, hours, minutes and seconds, for example P1DT2H."""


class NextDue(msgspec.Struct, kw_only=True, frozen=True):
    """What falls due next in a sandbox, by time alone."""

    at: Instant
    """When, by the sandbox's clock."""
    event: str
    """The event's key, or the name of a change that fires none by itself, for example ticket.stale."""


class SandboxClock(msgspec.Struct, kw_only=True, frozen=True):
    """A sandbox's clock, and what its last advance has done."""

    now: Instant
    """The instant that the sandbox's clock says, which records and events have."""
    status: Literal["ready", "advancing"]
    """`advancing` until everything that falls due up to `target` is done."""
    start: Instant | None
    """Where the last advance began, by the sandbox's clock; null before the first."""
    target: Instant | None
    """Where it leads; null before the first advance."""
    done: dict[str, int]
    """How often the last advance has fired each event, and made each other change, by their names; without those that
    it has not."""
    waiting: str | None
    """Why an advance stands still, or why `next_due` is not known: a sentence for people."""
    next_due: NextDue | None
    """What falls due next; null while the clock advances, and if time alone makes nothing due."""
