"""The refusal of a move-in over its caps (spec 4.5, 8), whatever its other faults: the first field at fault, the cap,
and a party's index."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from chassis.records import bodies
from chassis.refusals import Refusal
from svc_occupancy.residencies.inputs import MoveInCreate
from svc_occupancy.turns import rules as turn_rules

PARTY_CAPS = {"first_name": 80, "last_name": 80, "email": 150, "phone": 20, "external_id": 120}
LETTERS = st.sampled_from(["x", "é", "e\u0301", "😀", "א\u202e", "👩\u200d🔧"])


@st.composite
def texts(draw: st.DrawFn, cap: int) -> str:
    """A text below its cap, at it, or over it, counted in code points."""
    length = draw(st.sampled_from([1, cap - 1, cap, cap + 1, cap * 3]))
    return (draw(LETTERS) * length)[:length]


@st.composite
def parties(draw: st.DrawFn) -> dict[str, str | None]:
    fields = draw(st.lists(st.sampled_from(list(PARTY_CAPS)), unique=True))
    return {field: draw(st.none() | texts(PARTY_CAPS[field])) for field in fields}


@st.composite
def move_ins(draw: st.DrawFn) -> dict[str, Any]:
    body: dict[str, Any] = {
        "parties": draw(st.lists(parties(), min_size=1, max_size=20)),
        "provider": draw(texts(40)),
        "external_id": draw(st.none() | texts(120)),
        "move_in_date": "2026-03-01",
        "lease_start_date": "2026-03-01",
    }
    return {name: body[name] for name in draw(st.permutations(list(body)))}


def over(value: str | None, cap: int) -> bool:
    return value is not None and len(value) > cap


def faults(body: dict[str, Any]) -> list[str]:
    """The possible refusals, first fault first. The provider's length counts after stripping."""
    messages = ["external_id must be at most 120 characters."] if over(body["external_id"], 120) else []
    for index, party in enumerate(body["parties"]):
        for field, cap in PARTY_CAPS.items():
            if over(party.get(field), cap):
                messages.append(f"parties[{index}].{field} must be at most {cap} characters.")
    return [*messages, "provider must be at most 40 characters."] if over(body["provider"], 40) else messages


@given(move_ins())
def test_the_first_text_over_its_cap_is_named_with_its_cap(body: dict[str, Any]) -> None:
    messages = []
    try:
        checked = bodies.check(MoveInCreate, body)
        turn_rules.provider(checked.provider, "provider")
    except Refusal as refused:
        assert (refused.status, refused.code) == (400, "invalid_request")
        messages = [refused.message]
    assert messages == faults(body)[:1]
