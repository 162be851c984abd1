"""An administrator forgets a person: nothing in the database says who the party was, and the audit log says when."""

from __future__ import annotations

import functools
import itertools
import json
import time
from typing import Any

import pytest
from sqlalchemy import text

from chassis.auth.identity import ADMINISTRATOR, Identity
from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.refusals import Refusal
from makeready.common.v1.audit_pb2 import ListAuditRequest
from makeready.occupancy.v1 import parties_pb2 as pb
from makeready.occupancy.v1 import residencies_pb2
from svc_occupancy import tables as t
from svc_occupancy.residencies import rules

from ..harness import Company, move_in, notice, published, until

MARK = "Zqforget"
BEA = {
    "first_name": f"{MARK}bea", "last_name": f"{MARK}bell", "role": "leaseholder", "email": f"{MARK}@tenants.test",
    "phone": MARK, "external_id": f"{MARK}-7",
}  # fmt: skip
IDA = {"first_name": "Ida", "last_name": "Bell", "role": "guarantor", "email": "ida@tenants.test", "phone": "1"}
WORDS = {"notes": f"{MARK} moves to her sister", "ntv_reason_code": f"{MARK}-r", "departure_destination_code": "x"}
_keys = itertools.count()
TEXTS = ["41.description", "41.comment.88"]


@pytest.fixture
def boss(company: Company) -> Identity:
    """An administrator who has just confirmed who they are."""
    return Identity(ADMINISTRATOR, "gateway", company.id, administrator_id=9, stepped_up_at=int(time.time()))


async def forget(company: Company, who: Identity, party_id: int, key: str = "", **more: Any) -> Any:
    request = pb.ForgetPartyRequest(idempotency_key=key or f"forget {next(_keys)}", party_id=party_id, **more)
    return await company.house("ForgetParty", request, who)


async def residency(company: Company, unit_id: int) -> residencies_pb2.Residency:
    request = residencies_pb2.ListResidenciesRequest(unit_id=unit_id)
    residency: residencies_pb2.Residency = (await company.house("ListResidencies", request, company.staff)).residencies[
        0
    ]
    return residency


async def rows_with_mark(database: Database) -> dict[str, int]:
    """The number of rows with the mark, by table. Bytes are hexadecimal in a row's text."""
    tables = {}
    for table in t.metadata.tables:
        condition = f"{table}::text ILIKE '%{MARK}%' OR {table}::text LIKE '%{MARK.encode().hex()}%'"
        tables[table] = await database.value(Statement(text(f"SELECT count(*) FROM {table} WHERE {condition}")))
    return {table: rows for table, rows in tables.items() if rows}


async def test_nothing_of_the_person_is_left(company: Company, served: Database, boss: Identity) -> None:
    unit_id = await company.known_unit(served)
    body = move_in() | {"parties": [BEA, IDA]}
    first = await company.write("RecordMoveIn", unit_id, body, "moved in")
    bea, ida = json.loads(first.body)["parties"]
    await company.write("RecordNotice", unit_id, notice() | WORDS)
    turn = await company.served_turn((await residency(company, unit_id)).turn_id)
    # What the search finds her by comes a moment later.
    stored = {"idempotency": 1, "party": 1, "party_search": 1, "transition": 1}
    await until(functools.partial(rows_with_mark, served), stored)

    party = await company.house("GetParty", pb.GetPartyRequest(party_id=bea["id"]), boss)
    assert (party.first_name, party.has_email, party.has_phone, party.unit_id) == (
        BEA["first_name"],
        True,
        True,
        unit_id,
    )
    assert party.has_notice_words and (party.unit, party.turn_status) == ("Unit U1", "Active")
    answer = await forget(company, boss, bea["id"], "once", ticket_texts=[*TEXTS, TEXTS[0]], with_notice=True)
    assert await rows_with_mark(served) == {}
    assert await forget(company, boss, bea["id"], "once", ticket_texts=[*TEXTS, TEXTS[0]], with_notice=True) == answer

    remaining = await residency(company, unit_id)
    gone, other = remaining.parties
    fields = {field.name for field, _ in gone.ListFields()}
    assert fields == {"id", "role", "forgotten_at"} and gone.forgotten_at == answer.forgotten_at
    assert (other.first_name, other.email, other.HasField("forgotten_at")) == ("Ida", IDA["email"], False)
    assert (
        not (remaining.notes or remaining.ntv_reason_code or remaining.departure_destination_code)
        and remaining.move_out_date
    )
    # The public record has nothing of it, so it stays byte for byte.
    assert await company.served_turn(remaining.turn_id) == turn
    # A replay still answers 201 with the turn, the lease and the other party.
    replay = await company.write("RecordMoveIn", unit_id, body, "moved in")
    again = dict.fromkeys(("first_name", "last_name", "external_id"))
    assert replay.replayed and json.loads(replay.body) == json.loads(first.body) | {"parties": [bea | again, ida]}

    event = (await published(served, company))[-1]
    assert event.HasField("person_forgotten")
    forgotten = event.person_forgotten
    assert (forgotten.unit_id, forgotten.party_id, list(forgotten.ticket_texts), forgotten.actor) == (
        unit_id, bea["id"], TEXTS, "administrator:9"
    )  # fmt: skip
    after = {"party_id": bea["id"], "turn_id": remaining.turn_id, "ticket_texts": 2, "notice": True}
    entries = [entry for entry in await company.audited() if entry[1] == "unit.person_forgotten"]
    assert entries == [("administrator:9", "unit.person_forgotten", unit_id, {}, after)]


async def test_the_audit_log_that_people_see_does_not_repeat_the_words_of_the_notice(
    company: Company, served: Database, boss: Identity
) -> None:
    """Those that the turn had when the person was forgotten, and those that a cancelled notice had."""
    unit_id = await company.known_unit(served)
    await company.make_units("U2")
    other_id = (await company.unit_ids())["U2"]
    for turn_unit in (unit_id, other_id):
        await company.move_in(turn_unit, parties=[BEA])
        words: dict[str, Any] = WORDS
        await company.command("AddNotice", unit_id=turn_unit, move_out_date="2999-01-31", **words)
        await company.command("CancelNotice", unit_id=turn_unit)
        await company.command("AddNotice", unit_id=turn_unit, move_out_date="2999-02-28", notes=f"{MARK} again")
    turn_id = (await residency(company, unit_id)).turn_id

    async def seen(turn_id: int, who: Identity) -> str:
        request = ListAuditRequest(subject="turn", subject_id=turn_id, limit=200)
        entries = (await company.house("ListAudit", request, who)).entries
        return "\n".join(f"{entry.action} {entry.before.decode()} {entry.after.decode()}" for entry in entries)

    for who in (boss, company.staff, company.operator):
        assert (await seen(turn_id, who)).count(f"{MARK} moves to her sister") == 2
    (party,) = (await residency(company, unit_id)).parties
    await forget(company, boss, party.id, with_notice=True)
    for who in (boss, company.staff, company.operator):
        entries = await seen(turn_id, who)
        assert MARK not in entries and "2999-01-31" in entries and "2999-02-28" in entries
    assert f"{MARK} again" in await seen((await residency(company, other_id)).turn_id, boss)
    assert not any(MARK in str(entry) for entry in await company.audited() if entry[2] == turn_id)
    # What is written later is no secret, and the log itself is as it was.
    await company.command("AddNotice", unit_id=unit_id, move_out_date="2999-03-31", notes="They want the deposit back")
    assert "They want the deposit back" in await seen(turn_id, boss)
    assert (await rows_with_mark(served))["audit"] >= 3


async def test_forgetting_again_removes_further_texts_alone(company: Company, served: Database, boss: Identity) -> None:
    unit_id = await company.known_unit(served)
    await company.move_in(unit_id, parties=[BEA])
    (party,) = (await residency(company, unit_id)).parties
    first = await forget(company, boss, party.id)
    # Also without marked texts svc-tickets hears of it, once: it keeps texts that nobody sees.
    assert await forget(company, boss, party.id) == first
    told = [event.person_forgotten for event in await published(served, company) if event.HasField("person_forgotten")]
    assert [(person.unit_id, list(person.ticket_texts)) for person in told] == [(unit_id, [])]
    assert await forget(company, boss, party.id, ticket_texts=TEXTS) == first
    assert (await published(served, company))[-1].person_forgotten.ticket_texts == TEXTS
    counts = [entry[4]["ticket_texts"] for entry in await company.audited() if entry[1] == "unit.person_forgotten"]
    assert counts == [0, 2]


async def test_parties_with_the_same_email_are_named(company: Company, served: Database, boss: Identity) -> None:
    await company.make_units("U1", "U2")
    ids = await company.unit_ids()
    for name, email in (("U1", "Same@tenants.test"), ("U2", "same@TENANTS.test")):
        await company.move_in(ids[name], parties=[BEA | {"email": email}, IDA])
    (here, _), (there, _) = [(await residency(company, ids[name])).parties for name in ("U1", "U2")]
    response = await company.house("GetParty", pb.GetPartyRequest(party_id=here.id), boss)
    assert [(match.party_id, match.unit, match.last_name) for match in response.same_email] == [
        (there.id, "Unit U2", BEA["last_name"])
    ]
    await forget(company, boss, there.id)
    assert not (await company.house("GetParty", pb.GetPartyRequest(party_id=here.id), boss)).same_email


async def test_who_may_and_whom(company: Company, served: Database, boss: Identity) -> None:
    unit_id = await company.known_unit(served)
    await company.move_in(unit_id, parties=[BEA])
    (party,) = (await residency(company, unit_id)).parties
    late = Identity(ADMINISTRATOR, "gateway", company.id, administrator_id=9)
    stranger = Identity(
        ADMINISTRATOR, "gateway", company.id + 500_000, administrator_id=9, stepped_up_at=int(time.time())
    )
    refusals: list[tuple[Identity, int, int, list[str]]] = [
        (late, party.id, 403, []),
        (stranger, party.id, 404, []),
        (boss, 2**62, 404, []),
        (boss, party.id, 400, ["41.description'"]),
        (boss, party.id, 400, [f"{number}.title" for number in range(501)]),
    ]
    for who, party_id, status, texts in refusals:
        with pytest.raises(Refusal) as refused:
            await forget(company, who, party_id, ticket_texts=texts)
        assert refused.value.status == status
    for who, party_id in ((stranger, party.id), (boss, 2**62)):
        with pytest.raises(Refusal) as missing:
            await company.house("GetParty", pb.GetPartyRequest(party_id=party_id), who)
        assert (missing.value.status, missing.value.message) == (404, "The company has no party with this id.")
    assert (await residency(company, unit_id)).parties[0].email == BEA["email"]


def test_only_the_answer_to_the_turns_own_move_in_is_changed() -> None:
    party = {"id": 5, "first_name": "A", "last_name": "B", "role": None, "external_id": None}
    record: dict[str, Any] = {"entity_type": "occupancy", "entity_id": 3, "parties": [party, party | {"id": 6}]}
    others: list[Any] = [
        record | {"entity_id": 4},
        record | {"entity_type": "turn"},
        [],
        None,
        record | {"parties": []},
    ]
    for other in others:
        assert not rules.without_party(other, 3, 5)
    assert rules.without_party(record, 3, 5) and not rules.without_party(record, 3, 5)
    assert [party["first_name"] for party in record["parties"]] == [None, "A"]
