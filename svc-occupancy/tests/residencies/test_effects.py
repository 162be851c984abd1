"""The effects of a notice and a move-in on the unit, and who receives them: subscribers and svc-catalog only."""

from __future__ import annotations

import datetime
import json
from typing import Any

import pytest
from sqlalchemy import select

from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.refusals import Refusal
from chassis.schedule import instants
from makeready.events.v1.events_pb2 import CompanyReference, References
from svc_occupancy import tables as t
from svc_occupancy.replicas import consumers
from testkit.clocks import today
from testkit.services import RunningService

from ..harness import ANA, Company, move_in, published, until


async def changes(served: Database, company: Company) -> list[tuple[Any, Any]]:
    """from and to of each `turn.status_changed`."""
    changes = [
        json.loads(event.public.change) for event in await published(served, company) if event.HasField("public")
    ]
    assert {change.pop("field") for change in changes} <= {"unit_status"}
    return [(change["from"], change["to"]) for change in changes]


async def states(served: Database, company: Company) -> list[tuple[int, str, str]]:
    """The references to units that svc-catalog received: version, status and ready date."""
    return [
        (occupancy.version, occupancy.unit_status, occupancy.projected_ready_on)
        for event in await published(served, company)
        for occupancy in event.references.unit_occupancies
    ]


@pytest.fixture
async def unit_id(company: Company) -> int:
    await company.make_units("U1")
    return (await company.unit_ids())["U1"]


async def test_each_change_of_the_unit_is_an_event_with_the_turn_as_it_is_served(
    company: Company, unit_id: int, served: Database
) -> None:
    turns = []
    first = (await company.move_in(unit_id))["entity_id"]
    turns.append(await company.served_turn(first))
    await company.notice(unit_id)
    turns.append(await company.served_turn(first))
    await company.notice(unit_id, "2999-02-28")
    second = (await company.move_in(unit_id, predecessor_transition_id=first))["entity_id"]
    turns.append(await company.served_turn(second))
    public = [event for event in await published(served, company) if event.HasField("public")]
    assert [event.public.data for event in public] == turns
    assert [event.public.entity_id for event in public] == [first, first, second]
    assert [event.public.change for event in public] == [
        b'{"field":"unit_status","from":null,"to":"Occupied"}',
        b'{"field":"unit_status","from":"Occupied","to":"Notice"}',
        b'{"field":"unit_status","from":"Notice","to":"Occupied"}',
    ]
    for event in public:
        assert (event.public.event, event.request_id) == ("turn.status_changed", "req-test")
        occurred_at = instants.printed(event.occurred_at.ToDatetime(datetime.UTC))
        assert occurred_at == json.loads(event.public.data)["updated_at"]
    assert await states(served, company) == [(1, "Occupied", ""), (2, "Notice", ""), (3, "Occupied", "")]


async def test_the_list_of_units_follows(company: Company, unit_id: int) -> None:
    turn = await company.move_in(unit_id)
    await until(company.units, {"U1": ("Occupied", None)})
    await company.notice(unit_id)
    await until(company.units, {"U1": ("Notice", None)})
    await company.move_in(unit_id, predecessor_transition_id=turn["entity_id"])
    await until(company.units, {"U1": ("Occupied", None)})


LEFT = {"external_id": "T1", "unit": "U1", "move_out_date": "2020-01-31", "projected_ready_on": "2020-02-09"}


@pytest.mark.parametrize("named", [False, True])
async def test_a_residency_that_has_lapsed_ends_with_the_next_move_in(
    company: Company, unit_id: int, served: Database, named: bool
) -> None:
    await company.put("turns", LEFT | {"unit_status": "Vacant Ready"})
    before = await company.turn("T1")
    more = {"predecessor_transition_id": before["entity_id"]} if named else {}
    opened = await company.move_in(unit_id, external_id="R2", **more)
    ended = await company.turn("T1")
    assert ended == before | {"status": "Completed", "updated_at": ended["updated_at"]}
    assert ended["updated_at"] > before["updated_at"]
    assert [turn["entity_id"] for turn in await company.turns(status=1)] == [opened["entity_id"]]
    assert await changes(served, company) == [("Vacant Ready", "Occupied")]
    assert await states(served, company) == [(1, "Vacant Ready", "2020-02-09"), (2, "Occupied", "")]


async def test_a_later_date_that_is_past_corrects_a_departure_and_nothing_else(
    company: Company, unit_id: int, served: Database
) -> None:
    await company.put("turns", LEFT)
    record = await company.notice(unit_id, "2020-03-31")
    turn = await company.turn("T1")
    assert (turn["entity_id"], turn["move_out_date"]) == (record["entity_id"], "2020-03-31")
    assert turn["projected_ready_on"] == "2020-02-09" and turn["source"] == "import"
    assert await changes(served, company) == []
    assert await states(served, company) == [(1, "Vacant Not Ready", "2020-02-09")]
    await company.sweep("2020-05-01T00:00:00Z")
    assert await changes(served, company) == [], "the morning after is handled"
    for date in ("2020-03-31", "2020-03-30"):
        with pytest.raises(Refusal, match="no active resident"):
            await company.notice(unit_id, date, notes="Once more.")
    assert (await company.turn("T1")) == turn, "a refused notice writes nothing"


async def test_a_later_date_that_is_to_come_says_that_the_resident_stayed_on(
    company: Company, unit_id: int, served: Database
) -> None:
    await company.put("turns", LEFT)
    await company.notice(unit_id)
    assert await changes(served, company) == [("Vacant Not Ready", "Notice")]
    assert await states(served, company) == [(1, "Vacant Not Ready", "2020-02-09"), (2, "Notice", "2020-02-09")]


async def test_a_status_that_stays_is_no_event_though_the_ready_date_goes(
    company: Company, unit_id: int, served: Database
) -> None:
    await company.put("turns", LEFT | {"unit_status": "Occupied"})
    await company.move_in(unit_id)
    assert await changes(served, company) == []
    assert await states(served, company) == [(1, "Occupied", "2020-02-09"), (2, "Occupied", "")]
    await company.notice(unit_id)
    before = await published(served, company)
    await company.notice(unit_id)
    assert await published(served, company) == before


async def test_a_notice_replaces_all_that_the_one_before_it_said(
    company: Company, unit_id: int, served: Database
) -> None:
    turn_id = (await company.move_in(unit_id, external_id="R1"))["entity_id"]
    words = {"ntv_reason_code": "JOB", "departure_destination_code": "CITY", "notes": "Keys.", "external_id": "N1"}
    names = ("ntv_reason_code", "departure_destination_code", "notes", "notice_external_id")
    kept = Statement(select(*(t.transition.c[name] for name in names)).where(t.transition.c.id == turn_id))
    await company.notice(unit_id, **words)
    row = await served.row(kept)
    assert row is not None and tuple(row) == ("JOB", "CITY", "Keys.", "N1")
    await company.notice(unit_id, notes="None left.", ntv_reason_code=None)
    row = await served.row(kept)
    assert row is not None and tuple(row) == (None, None, "None left.", None)
    assert (await company.turn("R1"))["entity_id"] == turn_id


async def test_a_turn_from_the_future_is_still_stamped_after_itself(
    company: Company, unit_id: int, served: Database
) -> None:
    await company.put("turns", {"external_id": "T1", "unit": "U1"})
    async with served.connection() as connection:  # an import refuses such instants, but earlier releases stored them
        await connection.raw.execute(
            "UPDATE transition SET created_at = '2900-01-01', updated_at = '2900-01-01T00:00:00.000005Z'"
            " WHERE company_id = $1",
            company.id,
        )
    record = await company.notice(unit_id, "2020-01-31")
    assert record["occupancy_fed_at"] == "2900-01-01T00:00:00.000006Z"
    opened = await company.move_in(unit_id)
    assert (await company.turn("T1"))["updated_at"] == "2900-01-01T00:00:00.000007Z"
    assert opened["occupancy_fed_at"] < "2100"


async def test_the_day_is_over_when_it_is_over_in_the_companys_timezone(new_company: Any, served: Database) -> None:
    """Kiritimati is 25 hours ahead of Pago Pago, so Pago Pago's date is always over in Kiritimati."""
    there = today("Pacific/Pago_Pago")
    for timezone, lapsed in (("Pacific/Pago_Pago", False), ("Pacific/Kiritimati", True)):
        company = await new_company()
        reference = CompanyReference(id=company.id, version=2, name="C", active=True, timezone=timezone)
        async with served.transaction() as connection:
            await consumers.put_references(connection, [References(companies=[reference])])
        await company.make_units("U1")
        unit = (await company.unit_ids())["U1"]
        await company.move_in(unit)
        await company.notice(unit, str(there))
        if lapsed:
            await company.move_in(unit)
        else:
            with pytest.raises(Refusal, match="already occupies"):
                await company.move_in(unit)


MAIL, PHONE = "very.private@residents.example", "+1 512 555 0199"


async def test_mail_and_phone_are_stored_and_in_no_answer(
    company: Company, unit_id: int, served: Database, occupancy: RunningService
) -> None:
    private = {"email": MAIL, "phone": PHONE}
    guarantor = {"first_name": "Gus", "role": "guarantor", **private}
    body = move_in() | {"parties": [guarantor, ANA | private]}
    replies = [await company.write("RecordMoveIn", unit_id, body, key="twice") for _ in range(2)]
    names = ("position", "first_name", "role", "email", "phone", "transition_id")
    of_company = t.party.c.company_id == company.id
    rows = await served.rows(Statement(select(*(t.party.c[n] for n in names)).where(of_company).order_by(t.party.c.id)))
    turn_id = json.loads(replies[0].body)["entity_id"]
    assert [tuple(row) for row in rows] == [
        (0, "Ana", "leaseholder", MAIL, PHONE, turn_id),
        (1, "Gus", "guarantor", MAIL, PHONE, turn_id),
    ]
    refusals = []
    for parties in ([ANA | {"email": MAIL + "@"}], [ANA | {"phone": PHONE * 2}], [guarantor], [ANA | private]):
        with pytest.raises(Refusal) as refused:
            await company.write("RecordMoveIn", unit_id, move_in() | {"parties": parties})
        refusals.append(refused.value.message)
    ledger = await served.rows(Statement(select(t.idempotency).where(t.idempotency.c.company_id == company.id)))
    texts = [reply.body for reply in replies] + [
        event.SerializeToString() for event in await published(served, company)
    ]
    texts += [(await company.page()).data, occupancy.log.read_bytes(), repr(ledger).encode(), repr(refusals).encode()]
    for text in texts:
        assert b"very.private" not in text and b"555 0199" not in text
