"""The effects of a notice and of a move-in on a unit's residency (spec 4.5). Pure."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, TypeVar, get_args

from chassis.refusals import Refusal, invalid_request
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

# By the unit's active transition: none exists; without move_out_date; move_out_date today or later; move_out_date past.
Residency = Literal["none", "staying", "leaving", "lapsed"]
RESIDENCIES: tuple[Residency, ...] = get_args(Residency)
# What predecessor_transition_id refers to: nothing; the active transition; anything else, whether it exists or not.
Named = Literal["nothing", "active", "other"]
# The effect, or the reason of a refusal.
Outcome = Literal[
    "departs", "opens", "succeeds", "no_active_resident", "already_occupied", "not_departing", "no_such_outgoing"
]

NOTICES: Mapping[Residency, Outcome] = {
    "none": "no_active_resident",
    "staying": "departs",
    "leaving": "departs",  # the newer date counts
    "lapsed": "departs",  # the resident stayed on, or the date was wrong
}
MOVE_INS: Mapping[tuple[Residency, Named], Outcome] = {
    ("none", "nothing"): "opens",
    ("none", "other"): "no_such_outgoing",
    ("staying", "nothing"): "already_occupied",
    ("staying", "active"): "not_departing",
    ("staying", "other"): "no_such_outgoing",
    ("leaving", "nothing"): "already_occupied",
    ("leaving", "active"): "succeeds",
    ("leaving", "other"): "no_such_outgoing",
    ("lapsed", "nothing"): "succeeds",
    ("lapsed", "active"): "succeeds",
    ("lapsed", "other"): "no_such_outgoing",
}
REFUSALS: Mapping[Outcome, str] = {
    "no_active_resident": "The unit has no active resident; record the move-in before a notice.",
    "already_occupied": "An active resident already occupies the unit; record a notice, and name the transition that "
    "ends in predecessor_transition_id.",
    "not_departing": "The transition in predecessor_transition_id has no move_out_date; record a notice first.",
    "no_such_outgoing": "No outgoing transition with the id in predecessor_transition_id is visible on this unit; give "
    "the id of the unit's active transition, or leave it out where the unit has none.",
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


def residency(is_active: bool, move_out_date: datetime.date | None, day: datetime.date) -> Residency:
    """The unit's residency by its active transition, if it has one. day: today in the company's timezone."""
    if not is_active:
        return "none"
    if move_out_date is None:
        return "staying"
    return "leaving" if move_out_date >= day else "lapsed"


def named(predecessor_id: int | None, active_id: int | None) -> Named:
    """What a move-in's predecessor_transition_id refers to. predecessor_id: None if the request has none."""
    if predecessor_id is None:
        return "nothing"
    return "active" if predecessor_id == active_id else "other"


def refused(outcome: Outcome) -> Refusal:
    """The refusal for an outcome of REFUSALS."""
    return invalid_request(REFUSALS[outcome], status=422)


def record_notice(found: Residency) -> None:
    """Raises Refusal if the unit has no active resident."""
    outcome = NOTICES[found]
    if outcome in REFUSALS:
        raise refused(outcome)


def record_move_in(found: Residency, predecessor: Named) -> bool:
    """Whether the move-in completes the active transition. Raises Refusal if the unit cannot take the move-in."""
    outcome = MOVE_INS[found, predecessor]
    if outcome in REFUSALS:
        raise refused(outcome)
    return outcome == "succeeds"


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
    found = [one for one in record.get("parties", ()) if one["id"] == party_id]
    changed = False
    for party in found:
        for name in ("first_name", "last_name", "external_id"):
            changed = changed or party[name] is not None
            party[name] = None
    return changed
