"""What people read: the board by ready date, one unit, counts, changes of status, residencies, open tasks, turns."""

from __future__ import annotations

import datetime
import itertools
import json
from typing import Any

import grpc
import pytest

from chassis.auth.identity import ADMINISTRATOR, INTEGRATION, STAFF, Identity
from chassis.db.database import Database
from chassis.refusals import Refusal
from makeready.occupancy.v1 import (
    residencies_pb2,
    residency_commands_pb2,
    turn_board_pb2,
    turn_tasks_pb2,
    turns_pb2,
)
from svc_occupancy.turn_tasks.queries import PLACE_TASKS
from svc_occupancy.units.queries import PLACE_STATES
from svc_occupancy.units.rules import UNDER_WAY
from testkit.clocks import today

from ..harness import ANA, SIX, Company, lived_in, until

BEN = {"first_name": "Ben", "last_name": "Osei", "role": "guarantor", "email": "ben@example.com", "phone": "555 0101"}
PROTOS = (turn_board_pb2, turn_tasks_pb2, residencies_pb2, turns_pb2)
STATUSES = list(UNDER_WAY)


async def read(company: Company, rpc: str, who: Identity | None = None, **fields: Any) -> Any:
    contract = next(proto for proto in PROTOS if hasattr(proto, f"{rpc}Request"))
    return await company.house(rpc, getattr(contract, f"{rpc}Request")(**fields), who or company.staff)


async def refusal(company: Company, rpc: str, **fields: Any) -> tuple[int, str, str]:
    with pytest.raises(Refusal) as refused:
        await read(company, rpc, **fields)
    return refused.value.status, refused.value.message, refused.value.field


def administrator(company: Company) -> Identity:
    return Identity(ADMINISTRATOR, "gateway", company.id, administrator_id=3)


def day(days: int) -> str:
    """A date so many days from today, in UTC."""
    return (today() + datetime.timedelta(days=days)).isoformat()


async def fill(company: Company) -> dict[str, int]:
    """Eight units in two properties, six of them on their way to ready; returns their ids by external_id."""
    await company.put(
        "properties",
        {"external_id": "P1", "name": "Elm Court", "address": "1 Elm St"},
        {"external_id": "P2", "name": "Alder Row", "address": "2 Oak St"},
    )
    places = {"U1": "P1", "U2": "P1", "U3": "P1", "U4": "P2", "U5": "P2", "U6": "P2", "U7": "P2", "U8": "P2"}
    await company.put(
        "units", *({"external_id": unit, "property": at, "name": f"Unit {unit}"} for unit, at in places.items())
    )
    departed = {"move_out_date": "2026-01-31"}
    outcomes = await company.put(
        "turns",
        {"external_id": "T1", "unit": "U1", "move_out_date": "2999-01-31", "projected_ready_on": "2999-02-09"},
        {"external_id": "T2", "unit": "U2", **departed, "projected_ready_on": "2026-03-01"},
        {"external_id": "T3", "unit": "U3", **departed},
        {
            "external_id": "T4",
            "unit": "U4",
            **departed,
            "projected_ready_on": "2026-03-01",
            "unit_status": "Vacant Ready",
        },
        {"external_id": "T5", "unit": "U5", "move_in_date": "2999-05-01", "unit_status": "Vacant Ready"},
        {"external_id": "T6", "unit": "U6", **departed, "projected_ready_on": "2026-02-01", "unit_status": "Down"},
        {"external_id": "T7", "unit": "U7", "move_in_date": "2026-01-01"},
    )
    assert set(outcomes) == {"created"}

    async def arrived() -> Any:
        return (await read(company, "CountBoard")).units

    await until(arrived, 8)
    return await company.unit_ids()


async def test_units_on_their_way_stand_by_ready_date_in_pages_that_inserts_do_not_shift(company: Company) -> None:
    ids = await fill(company)
    pages: list[list[str]] = []
    request: dict[str, Any] = {"under_way": True, "limit": 2}
    for number in itertools.count():
        page = await read(company, "ListBoard", **request)
        pages.append([unit.name.removeprefix("Unit ") for unit in page.units])
        if not page.HasField("next_after"):
            break
        request["after"] = page.next_after
        if number == 0:
            # A unit before the cursor and one after it.
            await company.command("SetUnitStatus", unit_id=ids["U8"], unit_status="Down")
            await company.put("turns", {"external_id": "T7", "unit": "U7", "move_out_date": "2026-01-31",
                                        "projected_ready_on": "2026-01-31"})  # fmt: skip
    # Without a ready date last, in the order of ids.
    assert pages == [["U6", "U2"], ["U4", "U1"], ["U3", "U5"], ["U8"]]
    assert [unit.name for unit in (await read(company, "ListBoard", under_way=True, limit=1)).units] == ["Unit U7"]

    async def names(**fields: Any) -> list[str]:
        return [unit.name.removeprefix("Unit ") for unit in (await read(company, "ListBoard", **fields)).units]

    of_second = (await read(company, "ListBoard", unit_statuses=["Down"])).units[0].property_id
    assert await names(unit_statuses=["Vacant Ready"]) == ["U4", "U5"]
    assert await names(unit_statuses=["Notice", "Down"]) == ["U6", "U1", "U8"]
    assert await names(under_way=True, property_id=of_second) == ["U7", "U6", "U4", "U5", "U8"]
    assert await names(unit_statuses=STATUSES, property_id=of_second, limit=1, after="2026-02-01.1") == ["U6"]
    assert await names(unit_statuses=["Vacant Ready"], property_id=of_second + 10**9) == []
    assert [await refusal(company, "ListBoard", **fields) for fields in (
        {"unit_statuses": ["Occupied"]}, {"under_way": True, "after": "x"},
        {"under_way": True, "after": "2026-02-01.0"},
        {"after": "2026-02-01.1"}, {"under_way": True, "after_id": 1}, {"with_tasks": True, "limit": 201},
    )] == [
        (422, "unit_statuses may name Notice, Vacant Not Ready, Vacant Ready and Down only.", "unit_statuses"),
        (400, "after must be the next_after of an earlier page.", "after"),
        (400, "after must be the next_after of an earlier page.", "after"),
        (400, "after_id belongs to the order of ids, and after to that of ready dates.", "after"),
        (400, "after_id belongs to the order of ids, and after to that of ready dates.", "after"),
        (400, "limit must be from 1 to 200.", "limit"),
    ]  # fmt: skip


async def test_a_card_has_what_is_late_what_is_next_and_since_when(company: Company) -> None:
    ids = await fill(company)
    turns = {turn["external_id"]: turn["entity_id"] for turn in await company.turns()}
    for name, on in (("Some day", ""), ("Walk", day(999)), ("Paint", day(-3)), ("Today", day(0))):
        more: Any = {"scheduled_date": on} if on else {}
        await company.command("AddTask", turn_id=turns["T2"], task_type=name, **more)
    done = await company.command("AddTask", turn_id=turns["T2"], task_type="Clean out", scheduled_date=day(-9))
    gone = await company.command("AddTask", turn_id=turns["T2"], task_type="Mistake", scheduled_date=day(-9))
    await company.command("CompleteTask", task_id=done.task_id)
    await company.command("CancelTask", task_id=gone.task_id)
    before = datetime.datetime.now(datetime.UTC)
    await company.command("SetUnitStatus", unit_id=ids["U2"], unit_status="Down")
    cards = {
        listed.name: listed for listed in (await read(company, "ListBoard", under_way=True, with_tasks=True)).units
    }
    card = cards["Unit U2"]
    assert [task.task_type for task in card.tasks] == ["Clean out", "Paint", "Today", "Walk", "Some day"]
    assert (card.tasks_open, card.tasks_late) == (4, 1)
    assert card.unit_status_since.ToDatetime(datetime.UTC) >= before and not card.since_or_earlier
    # The file says what state a unit is in, not since when.
    assert cards["Unit U6"].HasField("unit_status_since") and cards["Unit U6"].since_or_earlier
    assert (cards["Unit U6"].empty_since, cards["Unit U1"].HasField("empty_since")) == ("2026-01-31", False)
    await company.put("turns", {"external_id": "T6", "unit": "U6", "status": "Completed", "unit_status": "Down"})
    await company.put(
        "turns", {"external_id": "T66", "unit": "U6", "move_in_date": "2999-03-01", "unit_status": "Down"}
    )
    unit = (await read(company, "GetBoardUnit", unit_id=ids["U6"])).unit
    assert (unit.empty_since, unit.next_move_in) == ("2026-01-31", "2999-03-01")
    assert cards["Unit U5"].next_move_in == "2999-05-01" and not card.HasField("next_move_in")
    assert not (await read(company, "ListBoard", under_way=True)).units[0].tasks
    for number in range(9):
        await company.command("AddTask", turn_id=turns["T2"], task_type=f"More {number}", scheduled_date=day(-20))
    fields: dict[str, Any] = {"unit_statuses": ["Down"], "with_tasks": True, "limit": 1, "after": f"2026-02-28.{2**62}"}
    (card,) = (await read(company, "ListBoard", **fields)).units
    assert [task.task_type for task in card.tasks] == [f"More {number}" for number in range(8)]
    assert (card.tasks_open, card.tasks_late) == (13, 10)


async def test_a_unit_has_its_residents_names_and_no_contacts(
    company: Company, new_company: Any, served: Database
) -> None:
    unit_id = await company.known_unit(served)
    empty = await read(company, "GetBoardUnit", unit_id=unit_id)
    assert (empty.unit.name, empty.unit.HasField("unit_status"), list(empty.residents)) == ("Unit U1", False, [])
    await company.move_in(unit_id, parties=[BEN, ANA])
    for who in (company.staff, administrator(company)):
        board_unit = await read(company, "GetBoardUnit", who, unit_id=unit_id)
        assert [(p.first_name, p.last_name, p.role) for p in board_unit.residents] == [
            ("Ana", "Ortiz", "leaseholder"), ("Ben", "Osei", "guarantor")]  # fmt: skip
        assert board_unit.unit.unit_status == "Occupied" and b"ben@" not in board_unit.SerializeToString()
    other = await new_company()
    nobodys = 404, "The company has no unit with this id.", ""
    for rpc in ("GetBoardUnit", "ListResidencies", "ListUnitStatusChanges"):
        assert await refusal(other, rpc, unit_id=unit_id) == nobodys == await refusal(other, rpc, unit_id=1), rpc


async def test_every_change_of_a_unit_s_status_is_recorded(going: Company, served: Database) -> None:
    unit_id, first = await lived_in(going, served)
    await going.sweep(SIX)
    await going.command("SetUnitStatus", unit_id=unit_id, unit_status="Vacant Ready")
    await going.command("SetUnitStatus", unit_id=unit_id, unit_status="Vacant Ready")
    await going.command("ScheduleTurn", turn_id=first, projected_ready_on="2980-04-01")
    await going.command("SetUnitStatus", unit_id=unit_id, unit_status="Notice")
    await going.command("CancelNotice", unit_id=unit_id)
    await going.notice(unit_id)
    second = (await going.move_in(unit_id, predecessor_transition_id=first))["entity_id"]
    await going.put("turns", {"external_id": "T9", "unit": "U1", "status": "Completed", "unit_status": "Down"})
    after = await read(going, "ListUnitStatusChanges", unit_id=unit_id)
    cause = turn_board_pb2.UnitStatusCause.Name
    changes = [
        (
            cause(change.cause).removeprefix("UNIT_STATUS_CAUSE_").lower(),
            change.from_status,
            change.to_status,
            change.actor,
            change.turn_id,
        )
        for change in reversed(after.changes)
    ]
    caller, staff, unknown = "caller:2", "staff:12", ""
    assert changes == [
        ("move_in", unknown, "Occupied", caller, first),
        ("notice", "Occupied", "Notice", caller, first),
        ("vacated", "Notice", "Vacant Not Ready", "svc-occupancy", first),
        ("board", "Vacant Not Ready", "Vacant Ready", staff, first),
        ("board", "Vacant Ready", "Notice", staff, first),
        ("notice_cancelled", "Notice", "Occupied", staff, first),
        ("notice", "Occupied", "Notice", caller, first),
        ("move_in", "Notice", "Occupied", caller, second),
    ]
    versions = [change.version for change in after.changes]
    assert versions == sorted(versions, reverse=True) and not after.HasField("next_before_version")
    assert all(change.changed_at.ToDatetime().year < 2900 for change in after.changes)  # the sweep's real instant
    page = await read(going, "ListUnitStatusChanges", unit_id=unit_id, limit=3)
    second_page = await read(going, "ListUnitStatusChanges", unit_id=unit_id, before_version=page.next_before_version)
    assert [*page.changes, *second_page.changes] == list(after.changes) and len(second_page.changes) == 5
    assert (await read(going, "GetBoardUnit", unit_id=unit_id)).unit.unit_status_since == after.changes[0].changed_at


async def test_a_look_at_contacts_is_logged_once_a_page(company: Company, served: Database) -> None:
    unit_id = await company.known_unit(served)
    first = (await company.move_in(unit_id, external_id="R1", lease_end_date="2026-12-31"))["entity_id"]
    await company.notice(unit_id, "2026-01-02", ntv_reason_code="RENT", departure_destination_code="CITY", notes="Keys")
    before = await company.audited()
    page = await read(company, "ListResidencies", unit_id=unit_id)
    assert await company.audited() == before  # nobody has an address or a number yet
    second = (await company.move_in(unit_id, parties=[BEN, ANA]))["entity_id"]
    page = await read(company, "ListResidencies", unit_id=unit_id)
    assert (page.unit, page.property, page.unit_id) == ("Unit U1", "Elm Court", unit_id)
    newest, oldest = page.residencies
    assert (newest.turn_id, newest.status, oldest.turn_id, oldest.status) == (second, "Active", first, "Completed")
    assert [(p.first_name, p.email, p.phone) for p in newest.parties] == [
        ("Ana", "", ""),
        ("Ben", BEN["email"], BEN["phone"]),
    ]
    assert (newest.lease.lease_type, newest.lease.HasField("end_date")) == ("month_to_month", False)
    assert (oldest.lease.lease_type, oldest.lease.end_date) == ("fixed_term", "2026-12-31")
    assert (oldest.ntv_reason_code, oldest.departure_destination_code, oldest.notes) == ("RENT", "CITY", "Keys")
    assert (oldest.external_id, oldest.move_out_date, oldest.occupancy_source) == ("R1", "2026-01-02", "feed")
    looks: list[Any] = [("staff:12", "unit.contacts_viewed", unit_id, {}, {"turn_ids": [second]})]
    assert (await company.audited())[len(before) :] == looks
    page = await read(company, "ListResidencies", administrator(company), unit_id=unit_id, limit=1)
    assert [residency.turn_id for residency in page.residencies] == [second]
    second_page = await read(company, "ListResidencies", unit_id=unit_id, before_turn_id=page.next_before_turn_id)
    assert [residency.turn_id for residency in second_page.residencies] == [first]
    looks.append(("administrator:3", *looks[0][1:]))
    assert (await company.audited())[len(before) :] == looks


async def test_the_board_is_counted_by_status_and_property(
    company: Company, new_company: Any, served: Database
) -> None:
    ids = await fill(company)
    turns = {turn["external_id"]: turn["entity_id"] for turn in await company.turns()}
    for on in (day(-1), day(0), ""):
        more: Any = {"scheduled_date": on} if on else {}
        await company.command("AddTask", turn_id=turns["T6"], task_type="Abatement", **more)
    every = await read(company, "CountBoard")
    assert {count.unit_status: count.units for count in every.statuses} == {
        "Notice": 1, "Vacant Not Ready": 2, "Vacant Ready": 2, "Down": 1}  # fmt: skip
    assert (every.units, every.tasks_open, every.tasks_late, every.HasField("days_empty")) == (8, 3, 1, False)
    assert [(count.property, count.units) for count in every.properties] == [("Alder Row", 3), ("Elm Court", 3)]
    place = every.properties[0].property_id
    # Unit U7's resident leaves, and two weeks later another one comes.
    departed_on, came = day(-30), day(-16)
    await company.put("turns", {"external_id": "T7", "unit": "U7", "move_out_date": departed_on, "status": "Completed"})
    await company.put("turns", {"external_id": "T8", "unit": "U7", "move_in_date": came})
    counts = await read(company, "CountBoard", property_id=place)
    assert {count.unit_status: count.units for count in counts.statuses} == {
        "": 1, "Occupied": 1, "Vacant Ready": 2, "Down": 1}  # fmt: skip
    assert (counts.units, counts.tasks_open, counts.tasks_late, counts.days_empty, list(counts.properties)) == (
        5,
        3,
        1,
        13,
        [],
    )
    assert (await read(company, "CountBoard", property_id=place + 10**9)).units == 0
    assert (await read(await new_company(), "CountBoard", property_id=place)).units == 0
    assert (await read(await new_company(), "CountBoard")).units == 0 and ids


async def test_open_tasks_stand_by_date_and_are_found_by_place_and_lateness(company: Company, new_company: Any) -> None:
    await fill(company)
    turns = {turn["external_id"]: turn["entity_id"] for turn in await company.turns()}

    async def add(turn: str, name: str, on: str) -> Any:
        more: Any = {"scheduled_date": on} if on else {}
        return await company.command("AddTask", turn_id=turns[turn], task_type=name, **more)

    await add("T2", "d", "")
    late = await add("T6", "a", day(-2))
    for turn, name, on in (("T2", "b", day(-1)), ("T6", "c", day(3)), ("T6", "e", "")):
        await add(turn, name, on)
    ended = await add("T6", "done", day(-5))
    await company.command("CompleteTask", task_id=ended.task_id)
    await company.put("turn-tasks", {"external_id": "M1", "turn": "T6", "task_type": "f"})

    async def names(**fields: Any) -> str:
        return "".join(placed.task.task_type for placed in (await read(company, "ListOpenTasks", **fields)).tasks)

    task = (await read(company, "GetTask", task_id=late.task_id)).task
    assert (task.task.task_type, task.unit, task.property) == ("a", "Unit U6", "Alder Row")
    assert await names() == "abcdef" and await names(late=True) == "ab"
    assert (
        await names(property_id=task.property_id) == "acef"
        and await names(late=True, property_id=task.property_id) == "a"
    )
    assert await names(due_by=day(3)) == "abc" and await names(due_by=day(-2), late=True) == "a"
    pages = ""
    request: dict[str, Any] = {"limit": 2}
    for number in range(4):
        page = await read(company, "ListOpenTasks", **request)
        pages += "".join(placed.task.task_type for placed in page.tasks) + "|"
        if page.HasField("next_after"):
            request["after"] = page.next_after
        if number == 0:
            await add("T2", "x", day(-9))
            await add("T2", "y", day(1))
    assert pages == "ab|yc|de|f|" and not page.HasField("next_after")
    other: Company = await new_company()
    assert not (await read(other, "ListOpenTasks")).tasks
    assert await refusal(other, "GetTask", task_id=late.task_id) == (404, "The company has no task with this id.", "")
    assert (await refusal(company, "ListOpenTasks", due_by="tomorrow"))[::2] == (400, "due_by")
    assert (await refusal(company, "ListOpenTasks", after="2026-13-01.1"))[::2] == (400, "after")


async def test_people_read_turns_as_integrations_do(company: Company, new_company: Any) -> None:
    await fill(company)
    page = await company.page()
    turn_id = json.loads(page.data)[0]["entity_id"]
    public = await company.served_turn(turn_id)
    for who in (company.staff, administrator(company)):
        assert (await read(company, "GetTurn", who, turn_id=turn_id)).document.json == public
        assert (await read(company, "ListTurns", who, limit=200)).page == page
    other: Company = await new_company()
    refused = await refusal(other, "GetTurn", turn_id=turn_id)
    assert refused == await refusal(other, "GetTurn", turn_id=1) and refused[0] == 404
    assert json.loads((await read(other, "ListTurns", limit=200)).page.data) == []


async def test_reads_for_people_are_for_people_of_a_company(company: Company) -> None:
    strangers = Identity(INTEGRATION, "gateway", company.id, 1, "write"), Identity(STAFF, "gateway", 0, staff_id=1)
    rpcs = "GetBoardUnit", "CountBoard", "ListUnitStatusChanges", "ListResidencies", "GetTask", "ListOpenTasks"
    for rpc, who in itertools.product(rpcs, strangers):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await read(company, rpc, who)
        assert refused.value.code() == grpc.StatusCode.PERMISSION_DENIED


async def test_rows_of_the_release_before_get_their_property(company: Company, served: Database) -> None:
    await fill(company)
    turn_id = (await company.turn("T6"))["entity_id"]
    await company.command("AddTask", turn_id=turn_id, task_type="Abatement")
    tables = ("unit_state", "turn_task")
    async with served.transaction() as connection:
        for table in tables:
            await connection.raw.execute(f"UPDATE {table} SET property_id = NULL WHERE company_id = {company.id}")
        for statement in (PLACE_STATES, PLACE_TASKS):
            await connection.execute(statement)
    place = (await read(company, "CountBoard")).properties[0].property_id
    assert len((await read(company, "ListBoard", under_way=True, property_id=place)).units) == 3
    assert len((await read(company, "ListOpenTasks", property_id=place)).tasks) == 1


async def test_clashes_are_listed_whatever_the_unit_s_status(company: Company) -> None:
    """A resident stays beyond the move-in of the next one: on notice, or behind a move-in that is planned itself."""
    ids = await fill(company)
    for name, leaves, comes in (("U1", "2999-01-31", "2999-02-10"), ("U7", "2999-03-01", "2999-03-01"),
                                ("U8", None, "2999-01-05")):  # fmt: skip
        if leaves:
            await company.command("AddNotice", unit_id=ids[name], move_out_date=leaves)
        await company.command("AddMoveIn", unit_id=ids[name], **lease(comes), **await predecessor(company, ids[name]))
    by_name = {unit.name.removeprefix("Unit "): unit for unit in (await read(company, "ListBoard")).units}
    assert {name: (unit.next_move_in, unit.is_clash) for name, unit in by_name.items() if unit.next_turn_id} == {
        "U1": ("2999-02-10", False), "U5": ("2999-05-01", False), "U7": ("2999-03-01", False),
        "U8": ("2999-01-05", False)}  # fmt: skip
    assert not (await read(company, "ListBoard", clashes=True)).units

    await company.command("AddNotice", unit_id=ids["U1"], move_out_date="2999-02-11")
    await company.command("AddNotice", unit_id=ids["U8"], move_out_date="2999-06-30")
    behind = await predecessor(company, ids["U8"])
    await company.command("AddMoveIn", unit_id=ids["U8"], **lease("2999-06-01"), **behind)
    page = await read(company, "ListBoard", clashes=True, with_tasks=True, limit=1)
    assert [(unit.name, unit.unit_status, unit.is_clash) for unit in page.units] == [("Unit U1", "Notice", True)]
    second_page = await read(company, "ListBoard", clashes=True, after_id=page.next_after_id)
    assert [(unit.name, unit.turn_id, unit.is_clash) for unit in second_page.units] == [("Unit U8", 0, True)]
    assert not second_page.HasField("next_after_id")
    place = second_page.units[0].property_id
    of_place = await read(company, "ListBoard", clashes=True, property_id=place)
    assert [unit.name for unit in of_place.units] == ["Unit U8"]
    assert await refusal(company, "ListBoard", clashes=True, under_way=True) == (
        400, "clashes go with no status: they are of units with any.", "clashes")  # fmt: skip


def lease(move_in: str) -> dict[str, Any]:
    party = residency_commands_pb2.NewParty(first_name="Ana", last_name="Ortiz", role="leaseholder")
    return {"move_in_date": move_in, "lease_start_date": move_in, "parties": [party]}


async def predecessor(company: Company, unit_id: int) -> dict[str, Any]:
    response = await read(company, "GetBoardUnit", unit_id=unit_id)
    turn_id = response.planned[-1].turn_id if response.planned else response.unit.turn_id
    return {"predecessor_transition_id": turn_id} if turn_id else {}
