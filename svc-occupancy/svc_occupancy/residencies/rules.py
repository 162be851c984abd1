"""The effects of a notice and of a move-in on a unit's row of active turns (spec 4.5). Pure.

`turns.rules` says what that row is. No order of dates is enforced: the contract names no such refusal.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, TypeVar, get_args

from chassis.refusals import Refusal, invalid_request
from svc_occupancy.turns.rules import Current, TransitionStatus, has_left
from svc_occupancy.units.rules import UnitStatus

PARTIES_MAX = 20
PARTY_NAME_POINTS_MAX = 80
PARTY_EMAIL_POINTS_MAX = 150
PARTY_PHONE_POINTS_MAX = 20
TICKET_TEXTS_MAX = 500

PartyRole = Literal["leaseholder", "guarantor"]
LeaseType = Literal["fixed_term", "month_to_month"]
PARTY_ROLES: tuple[PartyRole, ...] = get_args(PartyRole)

NOTICE_STATUS: UnitStatus = "Notice"
MOVE_IN_STATUS: UnitStatus = "Occupied"

# A notice is the current resident's. "nobody": the unit has no active turn; "next": planned ones alone; "there": the
# current turn's resident lives there; "left": that resident has left.
Resident = Literal["nobody", "next", "there", "left"]
RESIDENTS: tuple[Resident, ...] = get_args(Resident)
# A notice's date: the current turn's own; an earlier one; or a later one (or its first) that is before today; that is
# today or after, and before any planned move-in; that is on or after a planned move-in.
NoticeDate = Literal["same", "earlier", "past", "coming", "after_next"]
NOTICE_DATES: tuple[NoticeDate, ...] = get_args(NoticeDate)
# The last active turn of a unit, the only one that a move-in may name as its predecessor: none exists; the current one,
# without move_out_date, with one that is today or later, or whose resident has left or whose date is past; a planned
# one, without and with move_out_date.
Last = Literal["none", "staying", "leaving", "lapsed", "planned", "planned_leaving"]
LASTS: tuple[Last, ...] = get_args(Last)
# What predecessor_transition_id refers to: nothing; the last active turn; anything else, whether it exists or not.
Named = Literal["nothing", "last", "other"]
# The effect, or the reason of a refusal.
NoticeOutcome = Literal["departs", "repeats", "corrects", "next_departs", "no_active_resident"]
MoveInOutcome = Literal["accepted", "already_occupied", "already_planned", "not_departing", "no_such_outgoing"]

NOTICES: Mapping[tuple[Resident, NoticeDate], NoticeOutcome] = {
    **{("nobody", date): "no_active_resident" for date in NOTICE_DATES},
    # A lease may bring both dates.
    **{("next", date): "next_departs" for date in NOTICE_DATES},
    # A feed sends its notices again and again: only another date says anything.
    ("there", "same"): "repeats",
    # The newer date counts, also one that is past: no person has confirmed that departure yet.
    ("there", "earlier"): "departs",
    ("there", "past"): "departs",
    ("there", "coming"): "departs",
    ("there", "after_next"): "departs",
    # What staff have set since the departure stays.
    ("left", "same"): "no_active_resident",
    ("left", "earlier"): "no_active_resident",
    ("left", "past"): "corrects",
    ("left", "coming"): "departs",  # the resident stayed on
    ("left", "after_next"): "next_departs",
}
MOVE_INS: Mapping[tuple[Last, Named], MoveInOutcome] = {
    ("none", "nothing"): "accepted",
    ("none", "other"): "no_such_outgoing",
    ("staying", "nothing"): "already_occupied",
    ("staying", "last"): "not_departing",
    ("staying", "other"): "no_such_outgoing",
    ("leaving", "nothing"): "already_occupied",
    ("leaving", "last"): "accepted",
    ("leaving", "other"): "no_such_outgoing",
    ("lapsed", "nothing"): "accepted",
    ("lapsed", "last"): "accepted",
    ("lapsed", "other"): "no_such_outgoing",
    ("planned", "nothing"): "already_planned",
    ("planned", "last"): "not_departing",
    ("planned", "other"): "no_such_outgoing",
    ("planned_leaving", "nothing"): "already_planned",
    ("planned_leaving", "last"): "accepted",
    ("planned_leaving", "other"): "no_such_outgoing",
}
REFUSALS: Mapping[NoticeOutcome | MoveInOutcome, str] = {
    "no_active_resident": "The unit has no active resident; record the move-in before a notice.",
    "already_occupied": "An active resident already occupies the unit; record a notice, and name the transition that "
    "ends in predecessor_transition_id.",
    "already_planned": "Another move-in into the unit is planned already; its date is changed and it is cancelled in "
    "the administrator interface alone.",
    "not_departing": "The transition in predecessor_transition_id has no move_out_date; record a notice first.",
    "no_such_outgoing": "No outgoing transition with the id in predecessor_transition_id is visible on this unit; give "
    "the id of the unit's last active transition, or leave it out where the unit has none.",
}


class Party(Protocol):
    """A party to the lease."""

    @property
    def first_name(self) -> str | None: ...
    @property
    def last_name(self) -> str | None: ...
    @property
    def email(self) -> str | None: ...
    @property
    def role(self) -> PartyRole | None: ...


AnyParty = TypeVar("AnyParty", bound=Party)


def resident(current: Current | None, status: UnitStatus | None, *, is_next: bool) -> Resident:
    """Whose notice a unit can take. current: its current turn; status: the unit's; is_next: whether one is planned."""
    if current is None:
        return "next" if is_next else "nobody"
    return "left" if has_left(current.vacated_on, status) else "there"


def notice_date(
    date: datetime.date,
    stored: datetime.date | None,
    next_move_in: datetime.date | None,
    today: datetime.date,
) -> NoticeDate:
    """What a notice's date says. stored: the current turn's move_out_date; next_move_in: the first planned turn's
    move_in_date; today: in the company's timezone."""
    if stored is not None and date <= stored:
        return "same" if date == stored else "earlier"
    if next_move_in is not None and date >= next_move_in:
        return "after_next"
    return "past" if date < today else "coming"


class LastPlanned(Protocol):
    """The last of a unit's planned turns."""

    @property
    def move_out_date(self) -> datetime.date | None: ...


def last_turn(
    current: Current | None, last: LastPlanned | None, status: UnitStatus | None, today: datetime.date
) -> Last:
    """The last active turn of a unit. current: its current turn; last: the last of its planned ones."""
    if last is not None:
        return "planned" if last.move_out_date is None else "planned_leaving"
    if current is None:
        return "none"
    if current.move_out_date is None:
        return "staying"
    is_lapsed = current.move_out_date < today or has_left(current.vacated_on, status)
    return "lapsed" if is_lapsed else "leaving"


def named(predecessor_id: int | None, last_id: int | None) -> Named:
    """What a move-in's predecessor_transition_id refers to. predecessor_id: None if the request has none."""
    if predecessor_id is None:
        return "nothing"
    return "last" if predecessor_id == last_id else "other"


def refused(outcome: NoticeOutcome | MoveInOutcome) -> Refusal:
    """The refusal for an outcome of REFUSALS."""
    return invalid_request(REFUSALS[outcome], status=422)


def record_notice(resident: Resident, date: NoticeDate) -> NoticeOutcome:
    """The effect of a notice. Raises Refusal if the unit has no resident who could leave on the date."""
    outcome = NOTICES[resident, date]
    if outcome in REFUSALS:
        raise refused(outcome)
    return outcome


def vacated_on(outcome: NoticeOutcome, date: datetime.date, stored: datetime.date | None) -> datetime.date | None:
    """The departure of a turn that is dealt with, after a notice of that outcome. stored: before it."""
    if outcome == "departs":
        return None  # the resident is there, whatever the date: the sweep must vacate the unit, or vacate it again
    return date if outcome == "corrects" else stored


def check_move_in(last: Last, predecessor: Named) -> None:
    """Raises Refusal if the unit cannot take the move-in."""
    outcome = MOVE_INS[last, predecessor]
    if outcome in REFUSALS:
        raise refused(outcome)


def begins_at_once(move_in_date: datetime.date, last: Last, today: datetime.date) -> bool:
    """Whether a move-in that the unit takes begins with its record; else it is planned."""
    return move_in_date <= today and last not in ("planned", "planned_leaving")


def check_change_of_move_in(status: TransitionStatus, *, has_begun: bool, began_by_itself: bool) -> None:
    """Raises Refusal 422 if the move-in of a turn cannot be moved to another date any more."""
    if status != "active":
        raise invalid_request(f"The turn is {status}; only the move-in of an active one can be moved.", status=422)
    if has_begun and not began_by_itself:
        message = "The resident has moved in; only a move-in that is planned, or that began by itself, can be moved."
        raise invalid_request(message, status=422)


def lease_type(end_date: datetime.date | None) -> LeaseType:
    """fixed_term if the lease has an end, else month_to_month."""
    return "month_to_month" if end_date is None else "fixed_term"


def check_lease(start_date: datetime.date, end_date: datetime.date | None) -> None:
    """Raises Refusal 422 if the lease ends before it starts."""
    if end_date is not None and end_date < start_date:
        raise invalid_request("lease_end_date must be on or after lease_start_date.", "lease_end_date", 422)


# One @. Before it: no blanks, no control characters. After it: two or more labels of letters, digits and inner hyphens.
# The pattern cannot show whether mail arrives.
_LABEL = r"[^\W_](?:(?:[^\W_]|-)*[^\W_])?"
_EMAIL = re.compile(rf"[^@\s\x00-\x1f\x7f]{{1,64}}@{_LABEL}(?:\.{_LABEL})+")


def check_parties(parties: Sequence[Party]) -> None:
    """Raises Refusal: 400 for an invalid e-mail address, 422 without a leaseholder who has first and last name."""
    for index, party in enumerate(parties):
        if party.email is not None and not _EMAIL.fullmatch(party.email):
            name = f"parties[{index}].email"
            raise invalid_request(f"{name} must be an e-mail address.", name)
    if not any(is_named_leaseholder(party) for party in parties):
        raise invalid_request("parties must have a leaseholder with first_name and last_name.", "parties", 422)


def is_named_leaseholder(party: Party) -> bool:
    """Whether the party is a leaseholder with a first and a last name."""
    names = (party.first_name, party.last_name)
    return party.role == "leaseholder" and all(name is not None and name.strip() for name in names)


def has_contacts(party: Any) -> bool:
    """Whether the party's row has an e-mail address or a phone number."""
    return bool(party["email"] or party["phone"])


def stored_order(parties: Sequence[AnyParty]) -> list[AnyParty]:
    """Named leaseholders first, then the others; each group in the order of the request."""
    return sorted(parties, key=lambda party: not is_named_leaseholder(party))


_TICKET_TEXT = re.compile(r"[0-9a-z_.]{1,60}")


def check_ticket_texts(names: Sequence[str]) -> None:
    """Raises Refusal 400 unless these may be names of ticket texts, which svc-tickets makes and reads."""
    if len(names) > TICKET_TEXTS_MAX:
        raise invalid_request(f"ticket_texts must have at most {TICKET_TEXTS_MAX} names.", "ticket_texts")
    if not all(_TICKET_TEXT.fullmatch(name) for name in names):
        raise invalid_request("ticket_texts must be names that ListTicketTexts returns.", "ticket_texts")


def without_party(record: Any, turn_id: int, party_id: int) -> bool:
    """Removes what tells who the party is from the answer to the turn's move-in. Returns whether there was anything.

    record: the answer as read from JSON, or anything else.
    """
    if not isinstance(record, dict) or (record.get("entity_type"), record.get("entity_id")) != ("occupancy", turn_id):
        return False
    parties = [party for party in record.get("parties", ()) if party["id"] == party_id]
    changed = False
    for party in parties:
        for name in ("first_name", "last_name", "external_id"):
            changed = changed or party[name] is not None
            party[name] = None
    return changed
