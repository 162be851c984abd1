"""Rules for turns (spec 2.10). Pure.

A transition is one residency of one unit, from its move-in to its completion; the API calls it a turn.
"""

from __future__ import annotations

import datetime
from typing import Literal, get_args

from chassis.refusals import Refusal, invalid_request

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


def not_of_company(noun: str) -> Refusal:
    """The refusal 404. It does not reveal whether another company has a record with the id."""
    return Refusal(404, "not_found", f"The company has no {noun} with this id.")


def is_over(date: datetime.date | None, morning: datetime.date) -> bool:
    """Whether the morning after the date has come. morning: the latest day that has had its morning."""
    return date is not None and date < morning


def check_cancellation(status: TransitionStatus) -> None:
    """Raises Refusal 422 if a turn cannot be cancelled any more. Cancelling it again changes nothing."""
    if status == "completed":
        raise invalid_request("The turn is completed; only an active one can be cancelled.", status=422)


def check_date_seen(
    seen: str | None, date: datetime.date | None, what: str, field: str, after: datetime.date | None
) -> None:
    """Raises Refusal 422 if a date has changed since the person saw it, unless it is the one that the person sets.

    seen: the date that the person saw as YYYY-MM-DD, "" for none; None: not said. date: the stored one; after: the one
    to set. what: the date in words, for example "ready date"; field: of the date to set.
    """
    is_same = seen is None or seen == (date.isoformat() if date else "")
    if not is_same and date != after:
        now = f"The {what} is {date.isoformat()} by now" if date else f"There is no {what} any more"
        raise invalid_request(f"{now}; look at it again before you change it.", field, 422)
