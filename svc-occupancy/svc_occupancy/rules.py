"""What a transition and a unit may be, and how a unit's status follows from its active turn (spec 2.5, 2.10). Pure.

A transition is one residency of one unit, from its move-in to its completion; the API calls it a turn.
"""

from __future__ import annotations

import datetime
import zoneinfo
from dataclasses import dataclass
from typing import Literal, get_args

from chassis.refusals import invalid_request

# The column, as an OccupancyRecord shows it (spec 2.6), and its title case, as a Turn shows it (spec 2.10).
TransitionStatus = Literal["active", "completed", "cancelled"]
TurnStatus = Literal["Active", "Completed", "Cancelled"]
UnitStatus = Literal["Occupied", "Notice", "Vacant Not Ready", "Vacant Ready", "Down"]
Source = Literal["api", "staff", "import"]

TRANSITION_STATUSES: tuple[TransitionStatus, ...] = get_args(TransitionStatus)
TURN_STATUSES: tuple[TurnStatus, ...] = get_args(TurnStatus)
UNIT_STATUSES: tuple[UnitStatus, ...] = get_args(UnitStatus)
SOURCES: tuple[Source, ...] = get_args(Source)

# What only somebody who has seen the unit can tell apart.
VACANT: frozenset[UnitStatus] = frozenset({"Vacant Not Ready", "Vacant Ready", "Down"})

EXTERNAL_ID_POINTS_MAX = 200
PROVIDER_POINTS_MAX = 40

_SHOWN: dict[TransitionStatus, TurnStatus] = dict(zip(TRANSITION_STATUSES, TURN_STATUSES, strict=True))
_KEPT: dict[TurnStatus, TransitionStatus] = dict(zip(TURN_STATUSES, TRANSITION_STATUSES, strict=True))


@dataclass(frozen=True, slots=True)
class ActiveTurn:
    """What a unit takes from its active turn. key tells one turn from another."""

    key: int | str
    move_out_date: datetime.date | None
    projected_ready_on: datetime.date | None


def shown(status: TransitionStatus) -> TurnStatus:
    """A turn's status as it is served."""
    return _SHOWN[status]


def kept(status: TurnStatus) -> TransitionStatus:
    """A served status as the column has it."""
    return _KEPT[status]


def today(moment: datetime.datetime, timezone: str) -> datetime.date:
    """The date at this moment in a company's timezone, an IANA name."""
    return moment.astimezone(zoneinfo.ZoneInfo(timezone)).date()


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


def provider(text: str | None, field: str) -> str | None:
    """A feeding system's slug as it is kept: stripped, in lower case (spec 4.5). Raises Refusal with the field."""
    slug = (text or "").strip().lower()
    if len(slug) > PROVIDER_POINTS_MAX:
        raise invalid_request(f"{field} must be at most {PROVIDER_POINTS_MAX} characters.", field)
    return slug or None


def check_turn(
    move_out_date: datetime.date | None,
    projected_ready_on: datetime.date | None,
    occupancy_source: str | None,
    occupancy_fed_at: datetime.datetime | None,
) -> None:
    """Raises Refusal with the field where a turn's parts do not go together."""
    if projected_ready_on is not None and move_out_date is None:
        raise invalid_request("projected_ready_on needs a move_out_date.", "projected_ready_on")
    if occupancy_fed_at is not None and occupancy_source is None:
        raise invalid_request("occupancy_fed_at tells of a feed; name it in occupancy_source.", "occupancy_fed_at")
