"""Every state of a unit with every notice and move-in; the order of parties; refusals that need the body only."""

from __future__ import annotations

import datetime
import itertools
import json
from dataclasses import dataclass
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chassis.records import bodies
from chassis.refusals import Refusal
from svc_occupancy.residencies import rules as residency_rules
from svc_occupancy.residencies.inputs import MoveInCreate, NoticeCreate, PartyCreate
from svc_occupancy.turns import rules as turn_rules

TODAY = datetime.date(2026, 3, 1)
DAY = datetime.timedelta(days=1)

# The tables of docs/decisions/turns.md, repeated here. Key: the last active turn of the unit, and the predecessor that
# a move-in names. None: the unit takes the move-in.
OCCUPIED, NO_SUCH, NOT_DEPARTING = "already occupies", "No outgoing transition", "has no move_out_date"
PLANNED = "is planned already"
NAMED = (
    "nothing",
    "the last active turn",
    "another turn of the unit",
    "a turn of another unit",
    "an id that nobody has",
)
MOVE_INS: dict[str, tuple[str | None, ...]] = {
    "none": (None, None, NO_SUCH, NO_SUCH, NO_SUCH),  # the second case does not exist
    "staying": (OCCUPIED, NOT_DEPARTING, NO_SUCH, NO_SUCH, NO_SUCH),
    "leaving": (OCCUPIED, None, NO_SUCH, NO_SUCH, NO_SUCH),
    "lapsed": (None, None, NO_SUCH, NO_SUCH, NO_SUCH),
    "planned": (PLANNED, NOT_DEPARTING, NO_SUCH, NO_SUCH, NO_SUCH),
    "planned_leaving": (PLANNED, None, NO_SUCH, NO_SUCH, NO_SUCH),
}
LAST_ID = 7
IDS = dict(zip(NAMED, (None, LAST_ID, 6, 9, 0), strict=True))


@pytest.mark.parametrize(
    ("last", "named"), [case for case in itertools.product(MOVE_INS, NAMED) if case != ("none", NAMED[1])]
)
def test_every_unit_met_by_every_move_in(last: Any, named: str) -> None:
    expected = MOVE_INS[last][NAMED.index(named)]
    predecessor = residency_rules.named(IDS[named], None if last == "none" else LAST_ID)
    if expected is None:
        residency_rules.check_move_in(last, predecessor)
        return
    with pytest.raises(Refusal, match=expected) as refused:
        residency_rules.check_move_in(last, predecessor)
    assert (refused.value.status, refused.value.code) == (422, "invalid_request")


# By the resident, and by the notice's date: the same, earlier, past, coming, after the next one's move-in.
NOBODY = "no_active_resident"
NOTICES: dict[str, tuple[str, ...]] = {
    "nobody": (NOBODY,) * 5,
    "next": ("next_departs",) * 5,
    "there": ("repeats", "departs", "departs", "departs", "departs"),
    "left": (NOBODY, NOBODY, "corrects", "departs", "next_departs"),
}


@pytest.mark.parametrize(("resident", "date"), list(itertools.product(NOTICES, residency_rules.NOTICE_DATES)))
def test_every_unit_met_by_every_notice(resident: Any, date: Any) -> None:
    expected = NOTICES[resident][residency_rules.NOTICE_DATES.index(date)]
    if expected != NOBODY:
        assert residency_rules.record_notice(resident, date) == expected
        return
    with pytest.raises(Refusal, match="no active resident") as refused:
        residency_rules.record_notice(resident, date)
    assert (refused.value.status, refused.value.code) == (422, "invalid_request")


def test_the_tables_know_every_case_and_every_refusal_is_one_sentence() -> None:
    cases = set(itertools.product(residency_rules.LASTS, get_args(residency_rules.Named))) - {("none", "last")}
    assert set(residency_rules.MOVE_INS) == cases and set(MOVE_INS) == set(residency_rules.LASTS)
    notices = set(itertools.product(residency_rules.RESIDENTS, residency_rules.NOTICE_DATES))
    assert set(residency_rules.NOTICES) == notices and set(NOTICES) == set(residency_rules.RESIDENTS)
    assert set(residency_rules.NOTICES.values()) == set(get_args(residency_rules.NoticeOutcome))
    assert set(residency_rules.MOVE_INS.values()) == set(get_args(residency_rules.MoveInOutcome))
    outcomes = {*residency_rules.NOTICES.values(), *residency_rules.MOVE_INS.values()}
    assert residency_rules.REFUSALS.keys() < outcomes
    for sentence in residency_rules.REFUSALS.values():
        assert sentence.endswith(".") and sentence.count(". ") == 0


@dataclass(frozen=True)
class Turn:
    """A turn as the rules see it."""

    move_out_date: datetime.date | None = None
    vacated_on: datetime.date | None = None


@pytest.mark.parametrize(
    ("current", "planned", "status", "expected"),
    [
        (None, None, None, "none"),
        (None, None, "Vacant Ready", "none"),
        (Turn(), None, "Occupied", "staying"),
        (Turn(), None, "Down", "staying"),
        (Turn(TODAY + DAY), None, "Notice", "leaving"),
        (Turn(TODAY), None, "Notice", "leaving"),
        (Turn(datetime.date.max), None, "Notice", "leaving"),
        (Turn(TODAY - DAY), None, "Notice", "lapsed"),
        (Turn(datetime.date.min), None, "Occupied", "lapsed"),
        # the resident has left early, as staff say
        (Turn(TODAY + DAY, TODAY + DAY), None, "Vacant Ready", "lapsed"),
        (Turn(TODAY + DAY, TODAY + DAY), None, "Down", "lapsed"),
        # whatever the current turn is, the planned one is the last
        (Turn(TODAY - DAY, TODAY - DAY), Turn(), "Vacant Ready", "planned"),
        (None, Turn(), None, "planned"),
        (Turn(TODAY + DAY), Turn(TODAY - DAY), "Notice", "planned_leaving"),
    ],
)
def test_the_last_active_turn_of_a_unit(current: Any, planned: Any, status: Any, expected: str) -> None:
    assert residency_rules.last_turn(current, planned, status, TODAY) == expected


@pytest.mark.parametrize(
    ("current", "is_next", "status", "expected"),
    [
        (None, False, "Vacant Ready", "nobody"),
        (None, True, "Vacant Ready", "next"),
        (Turn(), False, "Occupied", "there"),
        (Turn(TODAY - DAY), True, "Notice", "there"),  # the morning after has not come
        (Turn(TODAY - DAY, TODAY - DAY), False, "Vacant Not Ready", "left"),
        (Turn(TODAY - DAY, TODAY - DAY), True, "Down", "left"),
        (Turn(TODAY - DAY, TODAY - DAY), False, "Occupied", "there"),  # the resident stayed on, as staff say
        (Turn(TODAY + DAY), False, "Down", "there"),
    ],
)
def test_whose_notice_it_is(current: Any, is_next: bool, status: Any, expected: str) -> None:
    assert residency_rules.resident(current, status, is_next=is_next) == expected


@pytest.mark.parametrize(
    ("date", "stored", "next_move_in", "expected"),
    [
        (TODAY, TODAY, None, "same"),
        (TODAY - DAY, TODAY, TODAY - DAY, "earlier"),
        (TODAY - DAY, TODAY - 2 * DAY, None, "past"),
        (TODAY - DAY, None, TODAY, "past"),
        (TODAY, TODAY - DAY, None, "coming"),
        (TODAY, None, TODAY + DAY, "coming"),
        (TODAY, TODAY - DAY, TODAY, "after_next"),
        (TODAY + DAY, TODAY - DAY, TODAY, "after_next"),
    ],
)
def test_what_a_notices_date_says(date: Any, stored: Any, next_move_in: Any, expected: str) -> None:
    assert residency_rules.notice_date(date, stored, next_move_in, TODAY) == expected


def test_a_notice_that_departs_makes_the_sweep_vacate_the_unit() -> None:
    assert residency_rules.vacated_on("departs", TODAY, TODAY - DAY) is None
    assert residency_rules.vacated_on("corrects", TODAY, TODAY - DAY) == TODAY
    for outcome in ("repeats", "next_departs"):
        assert residency_rules.vacated_on(outcome, TODAY, TODAY - DAY) == TODAY - DAY


@pytest.mark.parametrize("last", residency_rules.LASTS)
def test_a_move_in_begins_at_once_on_its_day_and_behind_no_planned_turn(last: Any) -> None:
    for date in (TODAY - DAY, TODAY, TODAY + DAY):
        at_once = residency_rules.begins_at_once(date, last, TODAY)
        assert at_once == (date <= TODAY and not last.startswith("planned"))


@pytest.mark.parametrize("status", turn_rules.TRANSITION_STATUSES)
@pytest.mark.parametrize(("has_begun", "began_by_itself"), [(False, False), (True, False), (True, True)])
def test_whose_move_in_staff_may_move(status: Any, has_begun: bool, began_by_itself: bool) -> None:
    how = {"has_begun": has_begun, "began_by_itself": began_by_itself}
    if status == "active" and (began_by_itself or not has_begun):
        residency_rules.check_change_of_move_in(status, **how)
        return
    with pytest.raises(Refusal) as refused:
        residency_rules.check_change_of_move_in(status, **how)
    assert refused.value.status == 422


@dataclass(frozen=True)
class Party:
    number: int
    role: Any
    first_name: str | None
    last_name: str | None
    email: str | None = None


NAMES = st.sampled_from([None, "", " ", "\t\n", "Ana", " Bo "])
PARTIES = st.lists(
    st.builds(Party, st.integers(), st.sampled_from([None, *residency_rules.PARTY_ROLES]), NAMES, NAMES), max_size=20
)


@given(PARTIES)
def test_named_leaseholders_come_first_and_others_stay_in_order(parties: list[Party]) -> None:
    def is_first(party: Party) -> bool:
        return party.role == "leaseholder" and bool(
            (party.first_name or "").strip() and (party.last_name or "").strip()
        )

    stored = residency_rules.stored_order(parties)
    first = [party for party in parties if is_first(party)]
    assert stored == first + [party for party in parties if not is_first(party)]
    assert residency_rules.stored_order(stored) == stored
    if first:
        residency_rules.check_parties(parties)
    else:
        with pytest.raises(Refusal) as refused:
            residency_rules.check_parties(parties)
        assert (refused.value.status, refused.value.field) == (422, "parties")


MOVE_IN: dict[str, Any] = {
    "move_in_date": "2026-03-01",
    "lease_start_date": "2026-03-01",
    "provider": "feed",
    "parties": [{"first_name": "Ana", "last_name": "Ortiz", "role": "leaseholder"}],
}
CAPS = {
    "first_name": residency_rules.PARTY_NAME_POINTS_MAX,
    "last_name": residency_rules.PARTY_NAME_POINTS_MAX,
    "email": residency_rules.PARTY_EMAIL_POINTS_MAX,
    "phone": residency_rules.PARTY_PHONE_POINTS_MAX,
    "external_id": turn_rules.FEED_EXTERNAL_ID_POINTS_MAX,
}
# By the contract, not by the code.
assert CAPS == {"first_name": 80, "last_name": 80, "email": 150, "phone": 20, "external_id": 120}


@given(
    st.sampled_from(list(CAPS)),
    st.integers(0, 19),
    st.integers(1, 400),
    st.sampled_from("aß漢🚿\u0301 "),
)
def test_a_party_over_a_cap_is_named_by_index_field_and_cap(field: str, index: int, over: int, letter: str) -> None:
    parties = [dict(MOVE_IN["parties"][0]) for _ in range(20)]
    cap = CAPS[field]
    parties[index][field] = letter * cap if field != "email" else None
    bodies.check(MoveInCreate, MOVE_IN | {"parties": parties})
    parties[index][field] = letter * (cap + over)
    with pytest.raises(Refusal) as refused:
        bodies.check(MoveInCreate, MOVE_IN | {"parties": parties})
    assert (refused.value.status, refused.value.code) == (400, "invalid_request")
    assert refused.value.message == f"parties[{index}].{field} must be at most {cap} characters."


@pytest.mark.parametrize("count", [0, 21, 1000])
def test_parties_are_1_to_20(count: int) -> None:
    with pytest.raises(Refusal) as refused:
        bodies.check(MoveInCreate, MOVE_IN | {"parties": MOVE_IN["parties"] * count})
    assert (refused.value.status, refused.value.message) == (400, "parties must have from 1 to 20 entries.")


@pytest.mark.parametrize("kind", [MoveInCreate, NoticeCreate])
def test_the_external_id_of_a_write_has_its_cap(kind: Any) -> None:
    good = MOVE_IN if kind is MoveInCreate else {"move_out_date": "2026-03-31", "provider": "feed"}
    assert bodies.check(kind, good | {"external_id": "x" * 120}).external_id == "x" * 120
    with pytest.raises(Refusal) as refused:
        bodies.check(kind, good | {"external_id": "x" * 121})
    assert (refused.value.status, refused.value.message) == (400, "external_id must be at most 120 characters.")


@pytest.mark.parametrize("field", ["ntv_reason_code", "departure_destination_code", "notes"])
def test_what_a_notice_says_has_the_cap_of_all_texts(field: str) -> None:
    good = {"move_out_date": "2026-03-31", "provider": "feed"}
    assert getattr(bodies.check(NoticeCreate, good | {field: "x" * 20_000}), field) == "x" * 20_000
    with pytest.raises(Refusal) as refused:
        bodies.check(NoticeCreate, good | {field: "x" * 20_001})
    assert (refused.value.status, refused.value.field) == (400, field)


@pytest.mark.parametrize(
    "email",
    [
        "ana@example.com",
        "ana.ortiz+lease@mail.example.co.uk",
        "o'brien@example.com",
        "#!$%&'*+-/=?^_`{|}~@a.bc",
        "x" * 64 + "@example.com",
        "ana@xn--bcher-kva.example",
        "用户@例子.中国",
        "ana@123.example",
    ],
)
def test_an_email_address_is_taken(email: str) -> None:
    residency_rules.check_parties([Party(0, "leaseholder", "Ana", "Ortiz", email)])


@pytest.mark.parametrize(
    "email",
    [
        *"plain @ @x.com ana@ ana@x ana@.com ana@x. ana@x..com ana@-x.com ana@x-.com a@b@c.com ana@x.com,".split(),
        "ana@[1.2.3.4]",
        "ana@ex_ample.com",
        "",
        " ",
        "a na@example.com",
        "ana@exa mple.com",
        "ana@example.com\n",
        "\x00ana@example.com",
        "x" * 65 + "@x.com",
    ],
)
def test_what_is_no_email_address_is_refused_by_index(email: str) -> None:
    good = Party(0, "leaseholder", "Ana", "Ortiz")
    with pytest.raises(Refusal) as refused:
        residency_rules.check_parties([good, Party(1, None, None, None, email)])
    assert (refused.value.status, refused.value.message) == (400, "parties[1].email must be an e-mail address.")


@given(st.emails())
def test_an_address_of_the_standard_is_taken(email: str) -> None:
    residency_rules.check_parties([Party(0, "leaseholder", "Ana", "Ortiz", email)])


@given(st.text(max_size=150) | st.text("a-.@", max_size=150))
def test_a_refused_address_is_never_repeated(text: str) -> None:
    try:
        residency_rules.check_parties([Party(0, "leaseholder", "Ana", "Ortiz", text)])
    except Refusal as refused:
        assert (refused.status, refused.message) == (400, "parties[0].email must be an e-mail address.")


@given(st.dates(), st.dates() | st.none())
def test_a_lease_ends_on_its_first_day_or_later(start: datetime.date, end: datetime.date | None) -> None:
    assert residency_rules.lease_type(end) == ("month_to_month" if end is None else "fixed_term")
    if end is None or end >= start:
        residency_rules.check_lease(start, end)
        return
    with pytest.raises(Refusal) as refused:
        residency_rules.check_lease(start, end)
    assert (refused.value.status, refused.value.field) == (422, "lease_end_date")


@pytest.mark.parametrize(
    ("change", "status", "field"),
    [
        ({"parties": [{"role": "tenant"}]}, 422, "parties[0].role"),
        ({"parties": [{"role": 1}]}, 400, "parties[0].role"),
        ({"parties": [{"age": 1}]}, 400, "parties[0]"),
        ({"parties": {}}, 400, "parties"),
        ({"parties": ["Ana"]}, 400, "parties[0]"),
        ({"parties": None}, 400, "parties"),
        ({"predecessor_transition_id": "7"}, 400, "predecessor_transition_id"),
        ({"predecessor_transition_id": 7.5}, 400, "predecessor_transition_id"),
        ({"predecessor_transition_id": True}, 400, "predecessor_transition_id"),
        ({"lease_end_date": "2026-02-30"}, 400, "lease_end_date"),
        ({"lease_start_date": None}, 400, "lease_start_date"),
        ({"move_in_date": "2026-03-01T00:00:00Z"}, 400, "move_in_date"),
        ({"provider": " \t"}, 400, "provider"),
        ({"provider": 5}, 400, "provider"),
        ({"move_out_date": "2026-03-01"}, 400, ""),
    ],
)
def test_a_move_in_is_refused_by_field(change: dict[str, Any], status: int, field: str) -> None:
    with pytest.raises(Refusal) as refused:
        bodies.decode(MoveInCreate, json.dumps(MOVE_IN | change).encode())
    assert (refused.value.status, refused.value.field, refused.value.code) == (status, field, "invalid_request")


@pytest.mark.parametrize("number", [0, -1, 2**63, 10**400])
def test_an_id_that_no_transition_can_have_is_an_unknown_id(number: int) -> None:
    new = bodies.check(MoveInCreate, MOVE_IN | {"predecessor_transition_id": number})
    assert residency_rules.named(new.predecessor_transition_id, LAST_ID) == "other"


def test_null_is_absent() -> None:
    new = bodies.check(MoveInCreate, MOVE_IN | {"lease_end_date": None, "predecessor_transition_id": None})
    assert (new.lease_end_date, new.predecessor_transition_id) == (None, None)
    assert bodies.check(PartyCreate, {"role": None, "email": None}) == PartyCreate()
