"""What a unit may be, and how its status follows from its active turn (spec 2.5). Pure."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, replace
from typing import Literal, get_args

UnitStatus = Literal["Occupied", "Notice", "Vacant Not Ready", "Vacant Ready", "Down"]

UNIT_STATUSES: tuple[UnitStatus, ...] = get_args(UnitStatus)

# What only somebody who has seen the unit can tell apart.
VACANT: frozenset[UnitStatus] = frozenset({"Vacant Not Ready", "Vacant Ready", "Down"})


@dataclass(frozen=True, slots=True)
class ActiveTurn:
    """What a unit takes from its active turn. key tells one turn from another."""

    key: int | str
    move_out_date: datetime.date | None
    projected_ready_on: datetime.date | None


@dataclass(frozen=True, slots=True)
class UnitState:
    """What a unit is, as it is stored and as svc-catalog hears of it."""

    company_id: int
    unit_id: int
    version: int
    """0 where the unit never had a turn: nothing is stored of it."""
    unit_status: UnitStatus | None
    """None with version 0 alone."""
    projected_ready_on: datetime.date | None
    """Of the unit's active turn."""

    def became(self, status: UnitStatus, ready_on: datetime.date | None) -> UnitState | None:
        """The unit's next state; None where it stays as it is."""
        if (status, ready_on) == (self.unit_status, self.projected_ready_on):
            return None
        return replace(self, version=self.version + 1, unit_status=status, projected_ready_on=ready_on)


def unit_status(turn: ActiveTurn | None, day: datetime.date, before: UnitStatus | None) -> UnitStatus:
    """The status of a unit that has turns, by its active one; None: all of them are over.

    before: what the unit was; of a vacant unit that stays, for only the board knows whether it is ready.
    """
    if turn is not None:
        if turn.move_out_date is None:
            return "Occupied"
        if turn.move_out_date >= day:
            return "Notice"
    return before if before in VACANT else "Vacant Not Ready"


def unit_ready_on(turn: ActiveTurn | None) -> datetime.date | None:
    """A unit's projected_ready_on (spec 2.5): its active turn's, null without one."""
    return None if turn is None else turn.projected_ready_on


def unit_status_on_import(
    was: ActiveTurn | None,
    now: ActiveTurn | None,
    day: datetime.date,
    before: UnitStatus | None,
    told: UnitStatus | None,
) -> UnitStatus:
    """The status of a unit after a file changed its turns. was, now: its active turn before and after.

    before: the unit's status, None where it never had a turn. told: what the file says of the unit; that somebody
    lives there is believed only where a turn is active. Where it says nothing, the status stays until the active turn
    or its departure is another: the same file on another day changes nothing.
    """
    if told is not None and (now is not None or told in VACANT):
        return told
    same = (was and was.key) == (now and now.key)
    if before is not None and same and (was and was.move_out_date) == (now and now.move_out_date):
        return before
    # What a unit was says nothing of the next resident's time in it.
    return unit_status(now, day, before if same or now is None else None)


# The status after a resident has left, and those that the morning after finds where nobody has said more.
VACATED: UnitStatus = "Vacant Not Ready"
LIVED_IN: frozenset[UnitStatus] = frozenset({"Occupied", "Notice"})


def vacated(status: UnitStatus | None) -> UnitStatus | None:
    """What a unit is the morning after its resident's move_out_date, where no successor came; what somebody who has
    seen it has said of it stays."""
    return VACATED if status in LIVED_IN else status
