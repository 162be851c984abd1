"""A residency from its move-in to the next one, over gRPC (spec 2.6, 4.5)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chassis.auth.identity import INTEGRATION, Identity
from chassis.refusals import Refusal

from ..harness import ANA, move_in, notice

KEYS = [
    "schema_version", "entity_type", "entity_id", "unit_id", "status", "move_in_date", "move_out_date",
    "occupancy_source", "occupancy_fed_at", "external_id", "lease", "parties", "url",
]  # fmt: skip


@pytest.fixture
async def unit_id(company: Any) -> int:
    """A unit without turns."""
    await company.make_units("U1")
    unit_id: int = (await company.unit_ids())["U1"]
    return unit_id


async def test_a_residency_from_its_move_in_to_the_next(company: Any, unit_id: int) -> None:
    first = await company.move_in(unit_id, provider="  EntraTa ", external_id="R1", lease_end_date="2026-12-31")
    assert list(first) == KEYS
    (turn,) = await company.turns()
    assert first == {
        "schema_version": 1,
        "entity_type": "occupancy",
        "entity_id": turn["entity_id"],
        "unit_id": unit_id,
        "status": "active",
        "move_in_date": "2026-01-01",
        "move_out_date": None,
        "occupancy_source": "entrata",
        "occupancy_fed_at": turn["updated_at"],
        "external_id": "R1",
        "lease": {
            "id": first["lease"]["id"],
            "lease_type": "fixed_term",
            "start_date": "2026-01-01",
            "end_date": "2026-12-31",
        },
        "parties": [{"id": first["parties"][0]["id"], **ANA, "external_id": None}],
        "url": f"https://app.test/units/{unit_id}/transitions",
    }
    assert (turn["status"], turn["source"], turn["external_id"]) == ("Active", "api", "R1")
    assert turn["created_at"] == turn["updated_at"] == turn["occupancy_fed_at"]
    departed = await company.notice(unit_id, "2999-01-31", external_id="N1", provider="Other")
    assert list(departed) == KEYS
    (later,) = await company.turns()
    changes = {"occupancy_source": "other", "occupancy_fed_at": later["updated_at"], "external_id": "N1"}
    assert departed == first | changes | {"move_out_date": "2999-01-31", "lease": None, "parties": []}
    assert later == turn | {
        "move_out_date": "2999-01-31",
        "occupancy_source": "other",
        "occupancy_fed_at": later["updated_at"],
        "updated_at": later["updated_at"],
    }
    assert later["updated_at"] > turn["updated_at"]
    again = await company.notice(unit_id, "2999-02-28")
    assert (again["entity_id"], again["move_out_date"], again["external_id"]) == (turn["entity_id"], "2999-02-28", None)
    second = await company.move_in(unit_id, predecessor_transition_id=turn["entity_id"])
    assert second["lease"]["lease_type"] == "month_to_month" and second["lease"]["end_date"] is None
    ended, opened = await company.turns()
    assert (ended["status"], ended["move_out_date"]) == ("Completed", "2999-02-28")
    assert (opened["status"], opened["entity_id"]) == ("Active", second["entity_id"])
    assert ended["updated_at"] > again["occupancy_fed_at"]


async def test_a_retry_has_no_second_effect(company: Any, unit_id: int) -> None:
    first = await company.write("RecordMoveIn", unit_id, move_in(), key="once")
    again = await company.write("RecordMoveIn", unit_id, move_in(), key="once")
    assert (again.status, again.body, again.replayed) == (201, first.body, True)
    with pytest.raises(Refusal) as refused:
        await company.write("RecordMoveIn", unit_id, move_in() | {"provider": "x"}, key="once")
    assert refused.value.code == "idempotency_mismatch"
    with pytest.raises(Refusal) as refused:
        await company.write("RecordNotice", unit_id, notice(), key="once")
    assert refused.value.code == "idempotency_mismatch"
    assert len(await company.turns()) == 1


@pytest.mark.parametrize(("rpc", "body"), [("RecordNotice", notice()), ("RecordMoveIn", move_in())])
async def test_a_key_without_an_administrator_records_nothing(company: Any, unit_id: int, rpc: str, body: Any) -> None:
    nobody = Identity(INTEGRATION, "gateway", company.id, 9, "write", None)
    for target in (unit_id, 1):
        with pytest.raises(Refusal) as refused:
            await company.write(rpc, target, body, who=nobody)
        assert (refused.value.status, refused.value.code) == (422, "created_by_missing")
    assert await company.turns() == []


@pytest.mark.parametrize(("rpc", "body"), [("RecordNotice", notice()), ("RecordMoveIn", move_in())])
async def test_an_unknown_unit_and_one_of_another_company_answer_alike(
    company: Any, new_company: Any, rpc: str, body: Any
) -> None:
    other = await new_company()
    await other.make_units("U1")
    theirs = (await other.unit_ids())["U1"]
    answers = []
    for target in (theirs, 1, 2**63 - 1, 0, -1):
        with pytest.raises(Refusal) as refused:
            await company.write(rpc, target, body, key="free")
        answers.append((refused.value.status, refused.value.code, refused.value.message))
    assert set(answers) == {
        (404, "not_found", "No unit with that id is visible to this key; check the id and the key.")
    }
    assert (
        json.loads((await other.write(rpc, theirs, body)).body)["unit_id"] == theirs if rpc == "RecordMoveIn" else True
    )


PADDING = " \t\r\n\u00a0\u2003"


@pytest.mark.parametrize(("rpc", "body"), [("RecordNotice", notice()), ("RecordMoveIn", move_in())])
async def test_a_provider_counts_as_it_is_kept(company: Any, unit_id: int, rpc: str, body: Any) -> None:
    for sent in ("x" * 41, "X" * 5000, "x" * 30_000, PADDING + "x" * 41, "x" * 40 + " x", "İ" * 21):
        with pytest.raises(Refusal) as refused:
            await company.write(rpc, unit_id, body | {"provider": sent}, key="free")
        assert (refused.value.status, refused.value.message) == (400, "provider must be at most 40 characters.")
    for sent in ("", PADDING):
        with pytest.raises(Refusal) as refused:
            await company.write(rpc, unit_id, body | {"provider": sent}, key="free")
        assert (refused.value.status, refused.value.message) == (400, "provider must not be blank.")
    if rpc == "RecordNotice":
        await company.move_in(unit_id)
    reply = await company.write(rpc, unit_id, body | {"provider": PADDING + "Ä-1 " * 10 + PADDING}, key="free")
    assert json.loads(reply.body)["occupancy_source"] == ("ä-1 " * 10).strip()


async def test_the_first_and_the_last_day_of_the_calendar_come_back_as_they_were_sent(
    company: Any, unit_id: int
) -> None:
    body = {"move_in_date": "0001-01-01", "lease_start_date": "0001-01-01", "lease_end_date": "9999-12-31"}
    record = await company.move_in(unit_id, **body)
    assert (record["move_in_date"], record["lease"]["end_date"]) == ("0001-01-01", "9999-12-31")
    await company.notice(unit_id, "9999-12-31")
    (turn,) = await company.turns()
    assert (turn["move_in_date"], turn["move_out_date"]) == ("0001-01-01", "9999-12-31")
    with pytest.raises(Refusal, match="already occupies"):
        await company.move_in(unit_id)
    await company.notice(unit_id, "0001-01-01")
    await company.move_in(unit_id)


async def test_the_most_that_a_move_in_may_say_is_kept(company: Any, unit_id: int) -> None:
    longest = {
        "first_name": "漢" * 80,
        "last_name": "🚿" * 80,
        "email": "a@" + ("b" * 60 + ".") * 2 + "c" * 26,
        "phone": "9" * 20,
        "role": "leaseholder",
        "external_id": "é" * 120,
    }
    assert len(longest["email"]) == 150
    record = await company.move_in(unit_id, parties=[longest] * 20, external_id="x" * 120)
    assert [party["last_name"] for party in record["parties"]] == ["🚿" * 80] * 20
    assert sorted({party["id"] for party in record["parties"]}) == [party["id"] for party in record["parties"]]
    texts = dict.fromkeys(("ntv_reason_code", "departure_destination_code", "notes"), "語" * 20000)
    await company.notice(unit_id, **texts)


async def test_what_is_refused_holds_no_key(company: Any, unit_id: int) -> None:
    """Refused because of the body alone, or because of the unit."""
    for body, status in (
        (move_in() | {"parties": []}, 400),
        (move_in() | {"lease_end_date": "2020-01-01"}, 422),
        (move_in() | {"predecessor_transition_id": 5}, 422),
        (move_in() | {"external_id": "x" * 121}, 400),
    ):
        with pytest.raises(Refusal) as refused:
            await company.write("RecordMoveIn", unit_id, body, key="one")
        assert refused.value.status == status
    with pytest.raises(Refusal):
        await company.write("RecordNotice", unit_id, notice(), key="one")
    assert await company.turns() == []
    assert (await company.write("RecordMoveIn", unit_id, move_in(), key="one")).replayed is False


async def test_a_replay_looks_at_nothing_that_has_changed_since(company: Any, unit_id: int) -> None:
    came = await company.write("RecordMoveIn", unit_id, move_in(), key="came")
    first = json.loads(came.body)["entity_id"]
    departed = await company.write("RecordNotice", unit_id, notice(), key="left")
    body = move_in() | {"predecessor_transition_id": first}
    followed = await company.write("RecordMoveIn", unit_id, body, key="followed")
    turns = await company.turns()
    for rpc, sent, key, reply in (
        ("RecordMoveIn", move_in(), "came", came),
        ("RecordNotice", notice(), "left", departed),
        ("RecordMoveIn", body, "followed", followed),
    ):
        again = await company.write(rpc, unit_id, sent, key=key)
        assert (again.status, again.body, again.replayed) == (201, reply.body, True)
    assert await company.turns() == turns
