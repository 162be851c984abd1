"""A unit's states, and how its status follows from its active turn (spec 2.5). Pure."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, get_args

UnitStatus = Literal["Occupied", "Notice", "Vacant Not Ready", "Vacant Ready", "Down"]

UNIT_STATUSES: tuple[UnitStatus, ...] = get_args(UnitStatus)

# What changes a unit's status: a notice or move-in, staff on the board, a cancelled notice, the morning after a
# departure, a file, a cancelled turn, a move-in that had begun by itself and is put off.
StatusCause = Literal[
    "notice", "move_in", "board", "notice_cancelled", "vacated", "import", "turn_cancelled", "move_in_changed"
]
STATUS_CAUSES: tuple[StatusCause, ...] = get_args(StatusCause)

# The statuses of units on their way to ready, in the order of a turn.
UNDER_WAY: tuple[UnitStatus, ...] = ("Notice", "Vacant Not Ready", "Vacant Ready", "Down")

# Only a person who has seen the unit can distinguish these.
VACANT: frozenset[UnitStatus] = frozenset({"Vacant Not Ready", "Vacant Ready", "Down"})
# A unit that is down may be lived in.
VACANCIES: frozenset[UnitStatus] = VACANT - {"Down"}


@dataclass(frozen=True, slots=True)
class ActiveTurn:
    """The fields of its active turn that a unit's state depends on. key: identifies the turn."""

    key: int | str
    move_out_date: datetime.date | None
    projected_ready_on: datetime.date | None


@dataclass(frozen=True, slots=True)
class UnitState:
    """A unit's state, as stored and as published to svc-catalog."""

    company_id: int
    unit_id: int
    version: int
    """0 if the unit has no stored row: it never had a turn, and staff never set its status."""
    unit_status: UnitStatus | None
    """None only with version 0."""
    projected_ready_on: datetime.date | None
    """The active turn's date."""

    def became(self, status: UnitStatus, ready_on: datetime.date | None) -> UnitState | None:
        """The unit's next state; None if it does not change."""
        if (status, ready_on) == (self.unit_status, self.projected_ready_on):
            return None
        return replace(self, version=self.version + 1, unit_status=status, projected_ready_on=ready_on)


class StatusChange(NamedTuple):
    """A change of a unit's status, as stored."""

    company_id: int
    unit_id: int
    version: int
    """The version of the unit's state that has the new status."""
    changed_at: datetime.datetime
    from_status: UnitStatus | None
    """None for the unit's first status."""
    to_status: UnitStatus
    cause: StatusCause
    actor: str
    """As the audit log spells it."""
    turn_id: int | None
    """The active turn after the change."""


def status_change(
    before: UnitState,
    after: UnitState,
    *,
    at: datetime.datetime,
    cause: StatusCause,
    actor: str,
    turn_id: int | None,
) -> list[StatusChange]:
    """The change between two states of a unit; empty if its status stays."""
    if after.unit_status is None or after.unit_status == before.unit_status:
        return []
    key = after.company_id, after.unit_id, after.version
    return [StatusChange(*key, at, before.unit_status, after.unit_status, cause, actor, turn_id)]


def unit_status(turn: ActiveTurn | None, day: datetime.date, before: UnitStatus | None) -> UnitStatus:
    """The status of a unit that has turns. turn: the active one; None if all are over.

    before: the unit's status so far. A vacant status stays, because only staff know whether the unit is ready.
    """
    if turn is not None:
        if turn.move_out_date is None:
            return "Occupied"
        if turn.move_out_date >= day:
            return "Notice"
    return before if before in VACANT else "Vacant Not Ready"


def unit_ready_on(turn: ActiveTurn | None) -> datetime.date | None:
    """A unit's projected_ready_on (spec 2.5): its active turn's; null without an active turn."""
    return None if turn is None else turn.projected_ready_on


def unit_status_on_import(
    was: ActiveTurn | None,
    now: ActiveTurn | None,
    day: datetime.date,
    before: UnitStatus | None,
    in_file: UnitStatus | None,
) -> UnitStatus:
    """The status of a unit after a file changed its turns. was, now: its active turn before and after.

    before: the unit's status, None if it has none yet. in_file: the file's status for the unit; Occupied and Notice
    count only with an active turn. Without in_file, the status changes only if the active turn or its move_out_date
    changes, so the same file on another day changes nothing.
    """
    if in_file is not None and (now is not None or in_file in VACANT):
        return in_file
    same = (was and was.key) == (now and now.key)
    if before is not None and same and (was and was.move_out_date) == (now and now.move_out_date):
        return before
    # A new resident's status does not depend on the status before.
    return unit_status(now, day, before if same or now is None else None)


# The status after a resident has left, and the statuses that the morning after replaces with it: without a successor, a
# vacant status stays, because a person who has seen the unit set it.
VACATED: UnitStatus = "Vacant Not Ready"
LIVED_IN: frozenset[UnitStatus] = frozenset({"Occupied", "Notice"})


def status_of_resident(move_out_date: datetime.date | None) -> UnitStatus:
    """A unit's status when its resident's turn begins."""
    return "Occupied" if move_out_date is None else "Notice"


def status_put_off(
    now: UnitStatus | None, stood: UnitStatus | None, turn: ActiveTurn | None, day: datetime.date
) -> UnitStatus:
    """A unit's status after its current turn, which had begun by itself, is planned again.

    now: the status so far; a vacancy stays, because a person who has seen the unit set it. stood: the status before the
    turn began. turn: the one that is current again; None if there is none.
    """
    if now in VACANT:
        return now
    if stood in VACANT or (stood is not None and turn is not None):
        return stood
    return unit_status(turn, day, None)
