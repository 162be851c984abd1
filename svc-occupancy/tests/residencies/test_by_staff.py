"""Notices and move-ins that staff record, and turns that they cancel: the effects and events of feeds."""

from __future__ import annotations

import asyncio
import itertools
import json
from typing import Any

import pytest
from sqlalchemy import select

from chassis.auth.identity import ADMINISTRATOR, Identity
from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.refusals import Refusal
from svc_occupancy import tables as t

from ..harness import ANA, Company, fired, published, until

BEN = {"first_name": "Ben", "last_name": "Osei", "email": "ben@example.com", "phone": "+1 207 555 0101"}
PARTIES = [{**BEN, "role": "guarantor"}, ANA]
MOVE_IN: dict[str, Any] = {"move_in_date": "2026-01-01", "lease_start_date": "2026-01-01"}
# A Turn's keys that tell a feed from staff, or one unit's turn from another's.
OWN = ("entity_id", "unit", "url", "created_at", "updated_at", "occupancy_source", "occupancy_fed_at", "source")


@pytest.fixture
async def unit_ids(company: Company) -> dict[str, int]:
    await company.make_units("FED", "BY STAFF")
    return await company.unit_ids()


class ByFeed:
    """The API's writes."""

    def __init__(self, company: Company, unit_id: int) -> None:
        self.company, self.unit_id = company, unit_id

    async def notice(self, **fields: Any) -> None:
        await self.company.notice(self.unit_id, **fields)

    async def move_in(self, **fields: Any) -> int:
        turn_id: int = (await self.company.move_in(self.unit_id, **fields))["entity_id"]
        return turn_id


class ByStaff(ByFeed):
    """The same by people."""

    async def notice(self, **fields: Any) -> None:
        await self.company.command("AddNotice", unit_id=self.unit_id, **fields)

    async def move_in(self, **fields: Any) -> int:
        turn_id: int = (await self.company.command("AddMoveIn", unit_id=self.unit_id, **MOVE_IN | fields))["entity_id"]
        return turn_id


async def story(by: ByFeed) -> None:
    """Two residents, with each effect of a notice and of a move-in on a unit's status."""
    first = await by.move_in(external_id="R-1", parties=PARTIES)
    await by.notice(move_out_date="2999-01-31", ntv_reason_code="NEW_JOB", notes="Keys at the desk", external_id="N-1")
    await by.notice(move_out_date="2999-02-28")  # Notice already: no event
    await by.company.command("ScheduleTurn", turn_id=first, projected_ready_on="2999-03-09")
    await by.company.command("SetUnitStatus", unit_id=by.unit_id, unit_status="Down")
    await by.notice(move_out_date="2999-02-28")  # the same date says nothing new
    await by.notice(move_out_date="2999-03-01")  # another one does: the unit is on Notice again
    second = await by.move_in(parties=[ANA], predecessor_transition_id=first, lease_end_date="2027-01-31")
    await by.notice(move_out_date="2026-01-31")
    await by.move_in(parties=[ANA])  # the resident before has left: no predecessor is needed
    assert second > first


async def seen(company: Company, served: Database, unit_id: int) -> Any:
    """A unit's turns, events, changes of status and leases, without what tells the two units apart."""
    turns = [turn for turn in await company.turns() if turn["unit"]["id"] == unit_id]
    order = {turn["entity_id"]: place for place, turn in enumerate(turns)}
    events = []
    for event in await published(served, company):
        data = json.loads(event.public.data or b"{}")
        if event.HasField("public") and data["unit"]["id"] == unit_id:
            events.append((event.public.event, order[event.public.entity_id], event.public.change, without(data)))
    by_unit = [t.unit_status_change.c.unit_id == unit_id, t.transition.c.unit_id == unit_id]
    change, turn, lease, party = t.unit_status_change, t.transition, t.lease, t.party
    changes = await served.rows(
        Statement(select(change.c.version, change.c.to_status, change.c.cause, change.c.turn_id).where(by_unit[0]))
    )
    stored = select(
        *(turn.c[name] for name in ("status", "notice_external_id", "ntv_reason_code", "notes", "vacated_on")),
        *(lease.c[name] for name in ("start_date", "end_date")),
        *(party.c[name] for name in ("position", "first_name", "last_name", "email", "phone", "role")),
    ).select_from(turn.join(lease, lease.c.transition_id == turn.c.id).join(party, party.c.transition_id == turn.c.id))
    rows = await served.rows(Statement(stored.where(by_unit[1]).order_by(turn.c.id, party.c.position)))
    status_changes = [
        (*tuple(row)[:3], order[row["turn_id"]]) for row in sorted(changes, key=lambda row: row["version"])
    ]
    return [without(turn) for turn in turns], events, status_changes, [tuple(row) for row in rows]


def without(turn: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in turn.items() if name not in OWN}


async def test_staff_have_the_effects_and_events_of_feeds(
    company: Company, unit_ids: dict[str, int], served: Database
) -> None:
    await story(ByFeed(company, unit_ids["FED"]))
    await story(ByStaff(company, unit_ids["BY STAFF"]))
    fed, by_staff = [await seen(company, served, unit_ids[name]) for name in ("FED", "BY STAFF")]
    assert by_staff == fed
    turns, events, changes, leases = by_staff
    assert len(turns) == 3 and len(events) == 8 and len(changes) == 7 and len(leases) == 4
    assert [row[-5:-3] for row in leases][:2] == [("Ana", "Ortiz"), ("Ben", "Osei")], "named leaseholders first"
    await until(company.units, {"FED": ("Occupied", None), "BY STAFF": ("Occupied", None)})
    for turn in await company.turns():
        is_fed = turn["unit"]["id"] == unit_ids["FED"]
        assert (turn["occupancy_source"], turn["source"]) == (("feed", "api") if is_fed else (None, "staff"))
        assert (turn["occupancy_fed_at"] is None) != is_fed
    # A turn's events sort by their instants, and the last one has the record's.
    last = {turn["entity_id"]: turn["updated_at"] for turn in await company.turns()}
    for turn_id, updated_at in last.items():
        instants = [
            json.loads(event.public.data)["updated_at"]
            for event in await published(served, company)
            if event.HasField("public") and event.public.entity_id == turn_id
        ]
        assert instants == sorted(instants) and instants[-1] <= updated_at
    entries = await company.audited()
    of_turns = [entry for entry in entries if entry[1].startswith("turn.") and entry[1] != "turn.scheduled"]
    assert {entry[0] for entry in of_turns} == {"staff:12"}
    assert [entry[1] for entry in of_turns] == [
        *("turn.move_in_recorded", *["turn.notice_recorded"] * 3, "turn.completed", "turn.move_in_recorded"),
        *("turn.notice_recorded", "turn.completed", "turn.move_in_recorded"),
    ]
    assert "ben@example.com" not in json.dumps(entries) and "Osei" not in json.dumps(entries)


async def test_a_notice_by_staff_takes_a_turn_over_from_its_feed(company: Company, unit_ids: dict[str, int]) -> None:
    unit_id = unit_ids["FED"]
    turn_id = (await company.move_in(unit_id))["entity_id"]
    turn = await company.command("AddNotice", unit_id=unit_id, move_out_date="2999-01-31")
    assert (turn["entity_id"], turn["occupancy_source"], turn["occupancy_fed_at"]) == (turn_id, None, None)
    assert turn == json.loads(await company.served_turn(turn_id))
    # The feed's next word names the feed again.
    assert (await company.notice(unit_id, "2999-02-28"))["occupancy_source"] == "feed"


async def test_the_same_act_twice_is_one(company: Company, unit_ids: dict[str, int], served: Database) -> None:
    unit_id, who = unit_ids["BY STAFF"], Identity(ADMINISTRATOR, "gateway", company.id, administrator_id=4)
    move_in: dict[str, Any] = {"unit_id": unit_id, "idempotency_key": "k1", **MOVE_IN, "parties": PARTIES}
    turn = await company.command("AddMoveIn", who, **move_in)
    assert await company.command("AddMoveIn", who, **move_in) == turn
    notice: dict[str, Any] = {"unit_id": unit_id, "idempotency_key": "k2", "move_out_date": "2999-01-31"}
    departed = await company.command("AddNotice", who, **notice)
    assert await company.command("AddNotice", who, **notice) == departed
    cancel = {"turn_id": turn["entity_id"], "idempotency_key": "k3"}
    over = await company.command("CancelTurn", who, **cancel)
    assert await company.command("CancelTurn", who, **cancel) == over
    before = await published(served, company)
    # Under another key too, a second cancellation changes nothing.
    assert await company.command("CancelTurn", who, turn_id=turn["entity_id"]) == over
    assert await published(served, company) == before and len(await company.turns()) == 1


async def refused(company: Company, rpc: str, who: Identity | None = None, **fields: Any) -> tuple[int, str]:
    with pytest.raises(Refusal) as caught:
        await company.command(rpc, who, **fields)
    assert caught.value.message.endswith(".")
    return caught.value.status, caught.value.field


async def test_what_staff_are_refused(company: Company, unit_ids: dict[str, int], served: Database) -> None:
    unit_id = unit_ids["BY STAFF"]
    move_in: dict[str, Any] = {"unit_id": unit_id, **MOVE_IN, "parties": [ANA]}
    assert await refused(company, "AddNotice", unit_id=unit_id, move_out_date="2999-01-31") == (422, "")
    for fields, expected in (
        ({"move_in_date": "soon"}, (400, "move_in_date")),
        ({"lease_start_date": ""}, (400, "lease_start_date")),
        ({"lease_end_date": "2025-12-31"}, (422, "lease_end_date")),
        ({"parties": []}, (400, "parties")),
        ({"parties": [{**ANA, "role": "guarantor"}]}, (422, "parties")),
        ({"parties": [{**ANA, "role": "owner"}]}, (422, "parties[0].role")),
        ({"parties": [ANA, {"email": "nobody"}]}, (400, "parties[1].email")),
        ({"parties": [{**ANA, "phone": "5" * 21}]}, (400, "parties[0].phone")),
        ({"parties": [{**ANA, "first_name": "A\0"}]}, (400, "first_name")),
        ({"parties": [ANA] * 21}, (400, "parties")),
        ({"external_id": "x" * 121}, (400, "external_id")),
        ({"predecessor_transition_id": 1}, (422, "")),
        ({"unit_id": 1}, (404, "")),
        ({"idempotency_key": ""}, (400, "idempotency_key")),
    ):
        assert await refused(company, "AddMoveIn", **move_in | fields) == expected, fields
    turn_id = (await company.command("AddMoveIn", **move_in))["entity_id"]
    assert await refused(company, "AddMoveIn", **move_in) == (422, "")
    notice: dict[str, Any] = {"unit_id": unit_id, "move_out_date": "2999-01-31"}
    for fields, expected in (
        ({"move_out_date": "x"}, (400, "move_out_date")),
        ({"notes": "x" * 20_001}, (400, "notes")),
        ({"expected_turn_id": turn_id + 1}, (422, "expected_turn_id")),
        ({"expected_move_out_date": "2999-01-30"}, (422, "move_out_date")),
    ):
        assert await refused(company, "AddNotice", **notice | fields) == expected, fields
    assert await fired(served, company) == [("turn.status_changed", turn_id, None, "Occupied")]


async def test_the_later_of_two_people_is_refused(company: Company, unit_ids: dict[str, int]) -> None:
    unit_id = unit_ids["BY STAFF"]
    turn_id = (await company.move_in(unit_id))["entity_id"]
    seen_before: dict[str, Any] = {"unit_id": unit_id, "expected_turn_id": turn_id, "expected_move_out_date": ""}
    await company.command("AddNotice", **seen_before, move_out_date="2999-01-31")
    with pytest.raises(Refusal, match="The move-out date is 2999-01-31 by now"):
        await company.command("AddNotice", **seen_before, move_out_date="2999-02-28")
    await company.command("AddNotice", **seen_before, move_out_date="2999-01-31")  # both mean the same
    schedule: dict[str, Any] = {"turn_id": turn_id, "expected_ready_on": ""}
    await company.command("ScheduleTurn", **schedule, projected_ready_on="2999-02-09")
    with pytest.raises(Refusal, match="The ready date is 2999-02-09 by now") as late:
        await company.command("ScheduleTurn", **schedule, projected_ready_on="2999-02-10")
    assert late.value.field == "projected_ready_on"
    move: dict[str, Any] = {"unit_id": unit_id, "expected_unit_status": "Notice"}
    await company.command("SetUnitStatus", **move, unit_status="Down")
    with pytest.raises(Refusal, match="The unit is Down by now") as late:
        await company.command("SetUnitStatus", **move, unit_status="Vacant Ready")
    assert late.value.field == "unit_status"
    await company.command("SetUnitStatus", unit_id=unit_id, expected_unit_status="Down", unit_status="Vacant Ready")


async def test_one_of_several_at_once_moves_in(company: Company, unit_ids: dict[str, int], served: Database) -> None:
    unit_id = unit_ids["BY STAFF"]
    by = [ByFeed(company, unit_id), ByStaff(company, unit_id)] * 4
    replies = await asyncio.gather(*(party.move_in(parties=[ANA]) for party in by), return_exceptions=True)
    moved_in = [reply for reply in replies if isinstance(reply, int)]
    assert len(moved_in) == 1 and [turn["entity_id"] for turn in await company.turns()] == moved_in
    # A feed is refused with a reply, staff with a Refusal.
    assert {type(reply).__name__ for reply in replies} <= {"int", "Refusal", "AssertionError"}
    ends = [ByStaff(company, unit_id).notice(move_out_date=f"2999-01-{day}") for day in range(11, 15)]
    await asyncio.gather(*ends, company.command("CancelTurn", turn_id=moved_in[0]), return_exceptions=True)
    (turn,) = await company.turns()
    assert turn["status"] == "Cancelled"
    events = await fired(served, company)
    assert events[0] == ("turn.status_changed", moved_in[0], None, "Occupied")
    # Each event begins with the status that the one before led to.
    assert all(event[3] == following[2] for event, following in itertools.pairwise(events))
    assert events[-1][3] == "Vacant Not Ready"


@pytest.mark.parametrize(
    ("moved_to", "after"), [("", "Vacant Not Ready"), ("Notice", "Vacant Not Ready"), ("Down", "Down")]
)
async def test_a_cancelled_turn_leaves_a_unit_without_a_resident(
    company: Company, unit_ids: dict[str, int], served: Database, moved_to: str, after: str
) -> None:
    unit_id = unit_ids["BY STAFF"]
    turn_id = (await company.command("AddMoveIn", unit_id=unit_id, **MOVE_IN, parties=[ANA]))["entity_id"]
    if moved_to:
        await company.command("AddNotice", unit_id=unit_id, move_out_date="2999-01-31")
        await company.command("ScheduleTurn", turn_id=turn_id, projected_ready_on="2999-02-09")
        await company.command("SetUnitStatus", unit_id=unit_id, unit_status=moved_to)
    task = await company.command("AddTask", turn_id=turn_id, task_type="Paint")
    before = await fired(served, company)
    turn = await company.command("CancelTurn", turn_id=turn_id)
    assert turn["status"] == "Cancelled" and turn == json.loads(await company.served_turn(turn_id))
    happened = (await fired(served, company))[len(before) :]
    was = moved_to or "Occupied"
    assert happened == ([] if was == after else [("turn.status_changed", turn_id, was, after)])
    if happened:
        public = [message.public.data for message in await published(served, company) if message.public.data]
        assert public[-1] == await company.served_turn(turn_id)
    (cancelled,) = await company.command("ListTasks", turn_id=turn_id)
    assert (cancelled.task_id, cancelled.status) == (task.task_id, "Cancelled")
    states = {"FED": (None, None), "BY STAFF": (after, None)}
    await until(company.units, states)
    change = Statement(
        select(t.unit_status_change.c.cause, t.unit_status_change.c.turn_id)
        .where(t.unit_status_change.c.unit_id == unit_id)
        .order_by(t.unit_status_change.c.version.desc())
    )
    if happened:
        assert tuple((await served.rows(change))[0]) == ("turn_cancelled", None)
    # The unit takes the next resident without a predecessor; the turn before it is over for good.
    await company.command("AddMoveIn", unit_id=unit_id, **MOVE_IN, parties=[ANA])
    assert (await company.audited())[-1][1] == "unit.status_changed"
    done = await company.move_in(unit_ids["FED"])
    await company.notice(unit_ids["FED"], "2026-01-31")
    await company.move_in(unit_ids["FED"])
    assert await refused(company, "CancelTurn", turn_id=done["entity_id"]) == (422, "")
    assert await refused(company, "CancelTurn", turn_id=1) == (404, "")


async def test_another_company_s_records_are_none(
    company: Company, new_company: Any, unit_ids: dict[str, int], served: Database
) -> None:
    other: Company = await new_company()
    await other.make_units("THEIRS")
    unit_id, theirs = unit_ids["BY STAFF"], (await other.unit_ids())["THEIRS"]
    move_in: dict[str, Any] = {**MOVE_IN, "parties": [ANA]}
    turn_id = (await company.command("AddMoveIn", unit_id=unit_id, **move_in))["entity_id"]
    await company.command("AddNotice", unit_id=unit_id, move_out_date="9999-12-31")
    before = await company.turns(), await company.audited(), await published(served, company)
    for rpc, fields, name in (
        ("AddMoveIn", move_in, "unit_id"),
        ("AddNotice", {"move_out_date": "2999-01-31"}, "unit_id"),
        ("CancelTurn", {}, "turn_id"),
    ):
        mine = turn_id if name == "turn_id" else unit_id
        sent: list[dict[str, Any]] = [{**fields, name: record_id} for record_id in (mine, 2**62, -1, 0)]
        replies = [await refused(other, rpc, None, **fields_sent) for fields_sent in sent]
        assert replies == [(404, "")] * 4, rpc
    # Another company's turn is no predecessor, as one that nobody has.
    for predecessor in (turn_id, 2**62):
        named: dict[str, Any] = {**move_in, "unit_id": theirs, "predecessor_transition_id": predecessor}
        assert await refused(other, "AddMoveIn", None, **named) == (422, "")
    assert (await company.turns(), await company.audited(), await published(served, company)) == before
    assert await other.turns() == [] and await published(served, other) == []
