"""Rules for turns (spec 2.10). Pure.

A transition is one residency of one unit, from its move-in to its completion; the API calls it a turn. The active turns
of a unit stand in a row. At most one is current: it has begun. Its resident lives there, is leaving, or has left, and
the unit is being made ready. The turns behind it are planned, each the successor of the one before: they have not
begun, and change nothing about the unit.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from typing import Literal, Protocol, TypeVar, get_args

from chassis.refusals import Refusal, invalid_request
from svc_occupancy.units.rules import LIVED_IN, VACANCIES, UnitStatus

# The stored status, as an OccupancyRecord has it (spec 2.6), and its title case, as a Turn has it (spec 2.10).
TransitionStatus = Literal["active", "completed", "cancelled"]
TurnStatus = Literal["Active", "Completed", "Cancelled"]
Source = Literal["api", "staff", "import"]

TRANSITION_STATUSES: tuple[TransitionStatus, ...] = get_args(TransitionStatus)
TURN_STATUSES: tuple[TurnStatus, ...] = get_args(TurnStatus)
SOURCES: tuple[Source, ...] = get_args(Source)

EXTERNAL_ID_POINTS_MAX = 200
FEED_EXTERNAL_ID_POINTS_MAX = 120  # for feeds; files may use longer ones
PROVIDER_POINTS_MAX = 40
TEXT_POINTS_MAX = 20_000
_DAY = datetime.timedelta(days=1)

_SHOWN: dict[TransitionStatus, TurnStatus] = dict(zip(TRANSITION_STATUSES, TURN_STATUSES, strict=True))
_KEPT: dict[TurnStatus, TransitionStatus] = dict(zip(TURN_STATUSES, TRANSITION_STATUSES, strict=True))


def public_status(status: TransitionStatus) -> TurnStatus:
    """A turn's status as published, in title case."""
    return _SHOWN[status]


def stored_status(status: TurnStatus) -> TransitionStatus:
    """A turn's status as stored."""
    return _KEPT[status]


def provider(text: str | None, field: str) -> str | None:
    """A feed's slug as stored: stripped, in lower case (spec 4.5). Raises Refusal with the field."""
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
    """Raises Refusal with the field if a turn's parts contradict each other."""
    if projected_ready_on is not None and move_out_date is None:
        raise invalid_request("projected_ready_on needs a move_out_date.", "projected_ready_on")
    if occupancy_fed_at is not None and occupancy_source is None:
        raise invalid_request("occupancy_fed_at describes a feed; name it in occupancy_source.", "occupancy_fed_at")


def is_later(date: datetime.date | None, today: datetime.date) -> bool:
    """Whether a turn with this move_in_date is planned, where nothing else is known."""
    return date is not None and date > today


def check_begun(
    has_begun: bool | None, before: datetime.date | None, after: datetime.date | None, today: datetime.date
) -> None:
    """Raises Refusal if a file would un-begin a turn. before, after: its move_in_date."""
    if has_begun and after != before and is_later(after, today):
        message = "The turn has begun: its move_in_date can be moved to today or to an earlier day only."
        raise invalid_request(message, "move_in_date")


def not_of_company(noun: str) -> Refusal:
    """The refusal 404. It does not reveal whether another company has a record with the id."""
    return Refusal(404, "not_found", f"The company has no {noun} with this id.")


def is_over(date: datetime.date | None, morning: datetime.date) -> bool:
    """Whether the morning after the date has come. morning: the latest day that has had its morning."""
    return date is not None and date < morning


class Current(Protocol):
    """The turn that has begun, of a unit's active turns."""

    @property
    def move_out_date(self) -> datetime.date | None: ...
    @property
    def vacated_on(self) -> datetime.date | None: ...


class Planned(Protocol):
    """A turn that has not begun, of a unit's active turns."""

    @property
    def move_in_date(self) -> datetime.date | None: ...


class InRow(Protocol):
    """A planned turn with its place in the unit's row."""

    @property
    def turn_id(self) -> int: ...
    @property
    def move_in_date(self) -> datetime.date: ...
    @property
    def predecessor_id(self) -> int | None: ...


AnyInRow = TypeVar("AnyInRow", bound=InRow)


def in_order(planned: Iterable[AnyInRow]) -> list[AnyInRow]:
    """A unit's planned turns in the order in which they begin: each behind its predecessor."""
    waiting = sorted(planned, key=lambda turn: (turn.move_in_date, turn.turn_id))
    row: list[AnyInRow] = []
    while waiting:
        ids = {turn.turn_id for turn in waiting}
        turn = next(turn for turn in waiting if turn.predecessor_id not in ids)
        waiting.remove(turn)
        row.append(turn)
    return row


def has_left(vacated_on: datetime.date | None, status: UnitStatus | None) -> bool:
    """Whether the current turn's resident has left. status: the unit's. A person may have said after the departure that
    somebody lives there all the same."""
    return vacated_on is not None and status not in LIVED_IN


def vacated_on(
    stored: datetime.date | None, move_out_date: datetime.date | None, status: UnitStatus, *, is_swept: bool
) -> datetime.date | None:
    """The departure of the current turn that is dealt with, after staff have set the unit's status. stored: before it.

    A vacancy says that the resident has left. Occupied and Notice say that somebody lives there: the sweep vacates the
    unit on the date's morning after, unless it has done so. Down says nothing about the resident. is_swept: whether
    that morning is over.
    """
    if status in VACANCIES:
        return move_out_date
    return None if status in LIVED_IN and not is_swept else stored


def begins_on(current: Current | None, planned: Planned) -> datetime.date | None:
    """The day on which the first planned turn begins; None while the current resident has no date to leave on."""
    assert planned.move_in_date is not None
    if current is None or current.vacated_on is not None:
        return planned.move_in_date
    return None if current.move_out_date is None else max(planned.move_in_date, current.move_out_date)


def is_clash(current: Current | None, planned: Planned | None) -> bool:
    """Whether the resident stays beyond the move-in date of the turn that follows."""
    return planned is not None and begins_on(current, planned) != planned.move_in_date


# What time alone does to a unit: its resident's departure is over, or its first planned turn begins.
Step = Literal["vacate", "begin"]


def next_step(
    current: Current | None, planned: Planned | None, today: datetime.date, morning: datetime.date
) -> Step | None:
    """What is due first in a unit; None if nothing is. Taken one after another, the steps are those that sweeps every
    quarter of an hour would have taken, however late this one is.

    A planned turn begins at the start of its day, and a departure takes effect at 06:00 of the day after it. So a turn
    that begins on the day of the departure, or the next, leaves nothing to vacate. today: in the company's timezone;
    morning: the latest day there that has had its morning.
    """
    departed = None
    if current is not None and current.move_out_date != current.vacated_on and is_over(current.move_out_date, morning):
        departed = current.move_out_date
    begins = None if planned is None else begins_on(current, planned)
    if begins is not None and begins <= today and (departed is None or begins <= departed + _DAY):
        return "begin"
    return None if departed is None else "vacate"


def check_cancellation(status: TransitionStatus) -> None:
    """Raises Refusal 422 if a turn cannot be cancelled any more. Cancelling it again changes nothing."""
    if status == "completed":
        raise invalid_request("The turn is completed; only an active one can be cancelled.", status=422)


def check_notice_cancellation(next_move_in: datetime.date | None) -> None:
    """Raises Refusal 422 if the resident cannot stay, because another one's move-in is planned."""
    if next_move_in is not None:
        raise invalid_request(f"A move-in is planned for {next_move_in.isoformat()}; cancel that first.", status=422)


def check_date_seen(
    seen: str | None, date: datetime.date | None, date_name: str, field: str, after: datetime.date | None
) -> None:
    """Raises Refusal 422 if a date has changed since the person saw it, unless it is the one that the person sets.

    seen: the date that the person saw as YYYY-MM-DD, "" for none; None: not said. date: the stored one; after: the one
    to set. date_name: the date in words, for example "ready date"; field: of the date to set.
    """
    is_same = seen is None or seen == (date.isoformat() if date else "")
    if not is_same and date != after:
        now = f"The {date_name} is {date.isoformat()} by now" if date else f"There is no {date_name} any more"
        raise invalid_request(f"{now}; look at it again before you change it.", field, 422)
