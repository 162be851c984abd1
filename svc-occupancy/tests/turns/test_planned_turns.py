"""A unit that is let ahead: planned turns change nothing about it until their day, for feeds, staff and the board."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sqlalchemy import select

from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.refusals import Refusal
from makeready.occupancy.v1.turn_board_pb2 import GetBoardUnitRequest
from svc_occupancy import tables as t

from ..harness import Company, fired, published, until

BEN = {"first_name": "Ben", "last_name": "Osei", "role": "leaseholder"}
LEAVES, READY, ARRIVES, LATER = "2980-12-28", "2981-01-04", "2981-01-10", "2981-03-01"
AFTER_LEAVING, ON_ARRIVAL = "2980-12-30T00:00:00Z", "2981-01-10T12:00:00Z"


async def let_ahead(company: Company, served: Database, unit_id: int | None = None) -> tuple[int, int, int]:
    """A unit whose resident leaves, and which is let ahead; returns the ids of the unit and of the two turns."""
    unit_id = unit_id or await company.known_unit(served)
    current = (await company.move_in(unit_id))["entity_id"]
    await company.notice(unit_id, LEAVES)
    await company.command("ScheduleTurn", turn_id=current, projected_ready_on=READY)
    record = await company.move_in(
        unit_id, move_in_date=ARRIVES, predecessor_transition_id=current, parties=[BEN], external_id="R-2"
    )
    assert (record["status"], record["move_in_date"], record["move_out_date"]) == ("active", ARRIVES, None)
    return unit_id, current, record["entity_id"]


async def statuses(company: Company) -> dict[int, str]:
    return {turn["entity_id"]: turn["status"] for turn in await company.turns()}


async def board(company: Company, unit_id: int) -> Any:
    """The unit's page: GetBoardUnitResponse."""
    return await company.house("GetBoardUnit", GetBoardUnitRequest(unit_id=unit_id), company.staff)


async def row(served: Database, turn_id: int) -> dict[str, Any]:
    row = await served.row(Statement(select(t.transition).where(t.transition.c.id == turn_id)))
    assert row is not None
    return dict(row)


# As seen on a running system, in that order.


async def test_a_move_in_of_a_later_date_changes_nothing_today(company: Company, served: Database) -> None:
    unit_id = await company.known_unit(served)
    first = (await company.move_in(unit_id))["entity_id"]
    await company.notice(unit_id, LEAVES)
    task = await company.command("AddTask", turn_id=first, task_type="Paint", scheduled_date=READY)
    await company.command("ScheduleTurn", turn_id=first, projected_ready_on=READY)
    before = await published(served, company), await company.served_turn(first)
    planned = await company.move_in(unit_id, move_in_date=ARRIVES, predecessor_transition_id=first)
    assert (await published(served, company), await company.served_turn(first)) == before
    assert await statuses(company) == {first: "Active", planned["entity_id"]: "Active"}
    await until(company.units, {"U1": ("Notice", READY)})
    page = await board(company, unit_id)
    assert [listed_task.task_id for listed_task in page.unit.tasks] == [task.task_id] and page.unit.turn_id == first


async def test_a_corrected_notice_is_of_the_resident_who_lives_there(company: Company, served: Database) -> None:
    unit_id, current, planned = await let_ahead(company, served)
    events = await fired(served, company)
    corrected = await company.notice(unit_id, "2981-01-03", notes="A week later.")
    assert (corrected["entity_id"], corrected["move_out_date"]) == (current, "2981-01-03")
    assert (await row(served, planned))["move_out_date"] is None
    by_staff = await company.command("AddNotice", unit_id=unit_id, move_out_date="2981-01-05")
    assert (by_staff["entity_id"], by_staff["move_out_date"]) == (current, "2981-01-05")
    assert await fired(served, company) == events


async def test_the_work_between_two_residents_can_be_planned(company: Company, served: Database) -> None:
    _, current, _ = await let_ahead(company, served)
    events = await fired(served, company)
    await company.command("ScheduleTurn", turn_id=current, projected_ready_on="2981-01-06")
    await company.command("AddTask", turn_id=current, task_type="Paint", scheduled_date="2981-01-02")
    assert (await fired(served, company))[len(events) :] == [("turn.schedule_changed", current, READY, "2981-01-06")]
    await until(company.units, {"U1": ("Notice", "2981-01-06")})


async def test_a_planned_turn_that_is_cancelled_leaves_the_resident_there(company: Company, served: Database) -> None:
    unit_id, current, planned = await let_ahead(company, served)
    events = await fired(served, company)
    cancelled = await company.command("CancelTurn", turn_id=planned)
    assert cancelled["status"] == "Cancelled" and cancelled == json.loads(await company.served_turn(planned))
    assert await company.command("CancelTurn", turn_id=planned) == cancelled
    assert await fired(served, company) == events
    assert await statuses(company) == {current: "Active", planned: "Cancelled"}
    assert (await company.notice(unit_id, "2981-01-03"))["entity_id"] == current
    again = await company.move_in(unit_id, move_in_date=LATER, predecessor_transition_id=current)
    assert await statuses(company) == {current: "Active", planned: "Cancelled", again["entity_id"]: "Active"}


async def test_a_move_in_of_a_later_date_occupies_no_empty_unit(company: Company, served: Database) -> None:
    unit_id = await company.known_unit(served)
    planned = (await company.move_in(unit_id, move_in_date=LATER))["entity_id"]
    assert await published(served, company) == []
    assert await company.units() == {"U1": (None, None)}
    page = await board(company, unit_id)
    assert not page.unit.HasField("turn_id") and not page.unit.HasField("unit_status")
    assert (page.unit.next_turn_id, page.unit.next_move_in, page.unit.next_resident) == (planned, LATER, "Ana Ortiz")
    # What staff say of the unit meanwhile is an event of the only turn that it has.
    await company.command("SetUnitStatus", unit_id=unit_id, unit_status="Vacant Ready")
    assert await fired(served, company) == [("turn.status_changed", planned, None, "Vacant Ready")]
    for status in ("Occupied", "Notice"):
        with pytest.raises(Refusal, match="needs an active turn"):
            await company.command("SetUnitStatus", unit_id=unit_id, unit_status=status)


async def test_a_notice_sent_again_leaves_what_staff_have_set(going: Company, served: Database) -> None:
    unit_id = await going.known_unit(served)
    first = (await going.move_in(unit_id))["entity_id"]
    await going.notice(unit_id, LEAVES)
    await going.sweep(AFTER_LEAVING)
    await going.command("SetUnitStatus", unit_id=unit_id, unit_status="Vacant Ready")
    before = await published(served, going), await going.served_turn(first)
    for date in (LEAVES, "2980-12-27"):
        with pytest.raises(Refusal, match="no active resident"):
            await going.notice(unit_id, date)
        with pytest.raises(Refusal, match="no active resident"):
            await going.command("AddNotice", unit_id=unit_id, move_out_date=date)
    await going.sweep("2981-02-01T00:00:00Z")
    assert (await published(served, going), await going.served_turn(first)) == before


async def test_the_same_notice_again_changes_the_feeds_fields_alone(company: Company, served: Database) -> None:
    unit_id, current, _ = await let_ahead(company, served)
    await company.command("SetUnitStatus", unit_id=unit_id, unit_status="Down")
    events, before = await fired(served, company), await company.turns()
    await company.notice(unit_id, LEAVES, notes="Once more.")
    after = await company.turns()
    changed = {"updated_at", "occupancy_fed_at"}
    assert [{k: v for k, v in turn.items() if k not in changed} for turn in after] == [
        {k: v for k, v in turn.items() if k not in changed} for turn in before
    ]
    assert after[0]["occupancy_fed_at"] > before[0]["occupancy_fed_at"] and after[1] == before[1]
    assert (await row(served, current))["notes"] == "Once more."
    assert await fired(served, company) == events


# Beginning.


async def test_a_planned_turn_begins_and_its_predecessor_ends(going: Company, served: Database) -> None:
    unit_id, current, planned = await let_ahead(going, served)
    left_over = await going.command("AddTask", turn_id=current, task_type="Paint", scheduled_date=ARRIVES)
    await going.command("AddTask", turn_id=planned, task_type="Welcome")
    await going.sweep(AFTER_LEAVING)
    events = await fired(served, going)
    done = await going.sweep(ON_ARRIVAL)
    assert done["turn.begun"] >= 1
    assert (await fired(served, going))[len(events) :] == [
        ("turn.status_changed", planned, "Vacant Not Ready", "Occupied")
    ]
    event = [message for message in await published(served, going) if message.HasField("public")][-1]
    assert event.public.data == await going.served_turn(planned)
    assert await statuses(going) == {current: "Completed", planned: "Active"}
    stored = await row(served, planned)
    assert stored["has_begun"] and stored["began_at"] is not None and stored["predecessor_id"] == current
    await until(going.units, {"U1": ("Occupied", None)})
    assert [entry[1:3] for entry in (await going.audited())[-3:]] == [
        ("turn.completed", current),
        ("turn.begun", planned),
        ("unit.status_changed", unit_id),
    ]
    # Tasks that are left over stay on their turn, and become stale once as ever.
    page = await board(going, unit_id)
    assert sorted((task.turn_id, task.task_type) for task in page.unit.tasks) == sorted(
        [(current, "Paint"), (planned, "Welcome")]
    )
    for _ in range(2):
        await going.sweep("2981-01-12T00:00:00Z")
    assert (await fired(served, going))[len(events) + 1 :] == [("turn.task.stale", left_over.task_id, None, None)]


async def test_both_on_one_day_is_one_event(going: Company, served: Database) -> None:
    unit_id = await going.known_unit(served)
    current = (await going.move_in(unit_id))["entity_id"]
    await going.notice(unit_id, LEAVES)
    planned = (await going.move_in(unit_id, move_in_date=LEAVES, predecessor_transition_id=current))["entity_id"]
    assert not (await board(going, unit_id)).unit.is_clash
    events = await fired(served, going)
    await going.sweep("2981-02-01T00:00:00Z")
    assert (await fired(served, going))[len(events) :] == [("turn.status_changed", planned, "Notice", "Occupied")]


async def test_a_clash_waits_in_red_until_the_resident_leaves(
    going: Company, served: Database, new_company: Any
) -> None:
    # It is still yesterday where another company is.
    await (await new_company()).know(served, timezone="Pacific/Pago_Pago")
    unit_id, current, planned = await let_ahead(going, served)
    assert not (await board(going, unit_id)).unit.is_clash
    await going.notice(unit_id, "2981-01-20")
    page = await board(going, unit_id)
    assert page.unit.is_clash and [turn.is_clash for turn in page.planned] == [True]
    events = await fired(served, going)
    await going.sweep("2981-01-20T04:59:00Z")  # the 19th in Toronto
    assert await fired(served, going) == events
    await going.sweep("2981-01-20T05:00:00Z")
    assert (await fired(served, going))[len(events) :] == [("turn.status_changed", planned, "Notice", "Occupied")]
    assert await statuses(going) == {current: "Completed", planned: "Active"}
    assert not (await board(going, unit_id)).unit.is_clash


async def test_a_resident_without_a_date_is_waited_for(going: Company, served: Database) -> None:
    """A notice cannot be cancelled over a planned move-in, but a file can clear the date."""
    await going.make_units("U1")
    unit_id = (await going.unit_ids())["U1"]
    await going.put("turns", {"external_id": "T1", "unit": "U1"})
    rows = [{"external_id": "T2", "unit": "U1", "move_in_date": ARRIVES}]
    assert await going.put("turns", *rows) == ["created"]
    assert (await board(going, unit_id)).unit.is_clash
    await going.sweep(ON_ARRIVAL)
    assert (await board(going, unit_id)).unit.turn_id == (await going.turn("T1"))["entity_id"]
    await going.notice(unit_id, "2981-01-31")
    await going.sweep("2981-02-01T12:00:00Z")
    assert {turn["external_id"]: turn["status"] for turn in await going.turns()} == {"T1": "Completed", "T2": "Active"}


@pytest.mark.parametrize("status", ["Down", "Vacant Ready", "Occupied"])
async def test_a_turn_begins_whatever_its_unit_is(going: Company, served: Database, status: str) -> None:
    unit_id, _, planned = await let_ahead(going, served)
    await going.sweep(AFTER_LEAVING)
    await going.command("SetUnitStatus", unit_id=unit_id, unit_status=status)
    events = await fired(served, going)
    await going.sweep(ON_ARRIVAL)
    happened = [] if status == "Occupied" else [("turn.status_changed", planned, status, "Occupied")]
    assert (await fired(served, going))[len(events) :] == happened
    await until(going.units, {"U1": ("Occupied", None)})


async def test_a_row_of_two_begins_one_after_the_other_however_late(going: Company, served: Database) -> None:
    unit_id, current, second = await let_ahead(going, served)
    for predecessor in (None, current):
        with pytest.raises(Refusal, match=r"is planned already|No outgoing transition"):
            await going.move_in(unit_id, move_in_date=LATER, predecessor_transition_id=predecessor)
    with pytest.raises(Refusal, match="has no move_out_date"):
        await going.move_in(unit_id, move_in_date=LATER, predecessor_transition_id=second)
    # The next lease brings both dates: while the resident is there, a notice is that resident's.
    await going.command("SetUnitStatus", unit_id=unit_id, unit_status="Vacant Ready")
    both = await going.notice(unit_id, "2981-02-15")
    assert (both["entity_id"], both["move_in_date"], both["move_out_date"]) == (second, ARRIVES, "2981-02-15")
    third = (await going.move_in(unit_id, move_in_date=LATER, predecessor_transition_id=second))["entity_id"]
    page = await board(going, unit_id)
    assert [(turn.turn_id, turn.move_in_date, turn.move_out_date) for turn in page.planned] == [
        (second, ARRIVES, "2981-02-15"),
        (third, LATER, ""),
    ]
    events = await fired(served, going)
    await going.sweep("2981-04-01T00:00:00Z")
    assert (await fired(served, going))[len(events) :] == [
        ("turn.status_changed", second, "Vacant Ready", "Notice"),
        ("turn.status_changed", second, "Notice", "Vacant Not Ready"),
        ("turn.status_changed", third, "Vacant Not Ready", "Occupied"),
    ]
    assert await statuses(going) == {current: "Completed", second: "Completed", third: "Active"}
    listed = await going.command("ListUnitStatusChanges", unit_id=unit_id)
    assert [(change.to_status, change.turn_id) for change in reversed(listed)][-3:] == [
        ("Notice", second),
        ("Vacant Not Ready", second),
        ("Occupied", third),
    ]


async def test_the_next_residents_date_before_that_resident_has_moved_in(going: Company, served: Database) -> None:
    unit_id = await going.known_unit(served)
    planned = (await going.move_in(unit_id, move_in_date=ARRIVES))["entity_id"]
    assert (await going.notice(unit_id, LATER))["entity_id"] == planned
    turn = await going.command("AddNotice", unit_id=unit_id, move_out_date="2981-03-02")
    assert (turn["entity_id"], turn["move_out_date"]) == (planned, "2981-03-02")
    await going.sweep(ON_ARRIVAL)
    assert await fired(served, going) == [("turn.status_changed", planned, None, "Notice")]


async def test_a_notice_cannot_be_cancelled_over_a_planned_move_in(company: Company, served: Database) -> None:
    unit_id, _, planned = await let_ahead(company, served)
    with pytest.raises(Refusal, match=f"A move-in is planned for {ARRIVES}; cancel that first"):
        await company.command("CancelNotice", unit_id=unit_id)
    await company.command("CancelTurn", turn_id=planned)
    await company.command("CancelNotice", unit_id=unit_id)
    await until(company.units, {"U1": ("Occupied", None)})


async def test_the_successor_of_a_cancelled_turn_moves_up(going: Company, served: Database) -> None:
    unit_id, current, second = await let_ahead(going, served)
    await going.command("SetUnitStatus", unit_id=unit_id, unit_status="Vacant Ready")
    await going.notice(unit_id, "2981-02-15")
    third = (await going.move_in(unit_id, move_in_date=LATER, predecessor_transition_id=second))["entity_id"]
    before = await going.served_turn(third)
    await going.command("CancelTurn", turn_id=second)
    assert (await row(served, third))["predecessor_id"] == current and await going.served_turn(third) == before
    residencies = {residency.turn_id: residency for residency in await going.residencies(unit_id)}
    assert [(residency.is_planned, residency.predecessor_id) for residency in residencies.values()] == [
        (True, current),
        (False, current),
        (False, 0),
    ]
    await going.sweep("2981-03-01T12:00:00Z")
    assert await statuses(going) == {current: "Completed", second: "Cancelled", third: "Active"}


async def test_planned_turns_outlive_a_cancelled_current_one(going: Company, served: Database) -> None:
    unit_id, current, planned = await let_ahead(going, served)
    events = await fired(served, going)
    await going.command("CancelTurn", turn_id=current)
    assert (await fired(served, going))[len(events) :] == [
        ("turn.status_changed", current, "Notice", "Vacant Not Ready")
    ]
    with pytest.raises(Refusal, match="is planned already"):
        await going.move_in(unit_id)
    page = await board(going, unit_id)
    assert not page.unit.HasField("turn_id") and page.unit.next_turn_id == planned and not page.unit.is_clash
    await going.sweep(ON_ARRIVAL)
    assert (await fired(served, going))[-1] == ("turn.status_changed", planned, "Vacant Not Ready", "Occupied")


# The date of a planned move-in.


async def test_staff_move_a_planned_move_in(going: Company, served: Database) -> None:
    unit_id, current, planned = await let_ahead(going, served)
    events = await fired(served, going)
    moved = await going.command("ChangeMoveIn", turn_id=planned, move_in_date=LATER, expected_move_in_date=ARRIVES)
    assert moved["move_in_date"] == LATER and moved == json.loads(await going.served_turn(planned))
    assert (await going.audited())[-1][1:] == (
        "turn.move_in_changed",
        planned,
        {"move_in_date": ARRIVES},
        {"move_in_date": LATER},
    )
    with pytest.raises(Refusal, match=f"The move-in date is {LATER} by now"):
        await going.command("ChangeMoveIn", turn_id=planned, move_in_date=READY, expected_move_in_date=ARRIVES)
    assert await going.command("ChangeMoveIn", turn_id=planned, move_in_date=LATER) == moved
    for turn_id, sentence in ((current, "The resident has moved in"), (1, "no turn")):
        with pytest.raises(Refusal, match=sentence):
            await going.command("ChangeMoveIn", turn_id=turn_id, move_in_date=LATER)
    with pytest.raises(Refusal, match="move_in_date"):
        await going.command("ChangeMoveIn", turn_id=planned, move_in_date="soon")
    assert await fired(served, going) == events
    await going.sweep(ON_ARRIVAL)
    assert await statuses(going) == {current: "Active", planned: "Active"}
    await going.sweep("2981-03-01T12:00:00Z")
    assert await statuses(going) == {current: "Completed", planned: "Active"}
    assert (await board(going, unit_id)).unit.turn_id == planned


@pytest.mark.parametrize("set_since", ["", "Down"])
async def test_a_no_show_is_put_off_and_the_unit_is_what_it_was(
    going: Company, served: Database, set_since: str
) -> None:
    unit_id, current, planned = await let_ahead(going, served)
    await going.sweep(AFTER_LEAVING)
    await going.command("SetUnitStatus", unit_id=unit_id, unit_status="Vacant Ready")
    await going.sweep(ON_ARRIVAL)
    if set_since:
        await going.command("SetUnitStatus", unit_id=unit_id, unit_status=set_since)
    events = await fired(served, going)
    put_off = await going.command("ChangeMoveIn", turn_id=planned, move_in_date=LATER)
    assert (put_off["status"], put_off["move_in_date"]) == ("Active", LATER)
    after = set_since or "Vacant Ready"
    happened = [] if set_since else [("turn.status_changed", current, "Occupied", after)]
    assert (await fired(served, going))[len(events) :] == happened
    assert await statuses(going) == {current: "Active", planned: "Active"}
    await until(going.units, {"U1": (after, READY)})
    if not set_since:
        (change, *_) = await going.command("ListUnitStatusChanges", unit_id=unit_id)
        assert (change.turn_id, change.cause) == (current, 8)
    # It begins again on its new day, and a feed's notice is the former resident's no more.
    await going.sweep("2981-02-28T12:00:00Z")
    assert await statuses(going) == {current: "Active", planned: "Active"}
    await going.sweep("2981-03-01T12:00:00Z")
    assert (await fired(served, going))[-1] == ("turn.status_changed", planned, after, "Occupied")


async def test_a_holdover_is_there_again(going: Company, served: Database) -> None:
    """The new resident's turn began on the day of the departure, but the resident before has not left."""
    unit_id = await going.known_unit(served)
    current = (await going.move_in(unit_id))["entity_id"]
    await going.notice(unit_id, ARRIVES)
    planned = (await going.move_in(unit_id, move_in_date=ARRIVES, predecessor_transition_id=current))["entity_id"]
    await going.sweep(ON_ARRIVAL)
    events = await fired(served, going)
    await going.command("ChangeMoveIn", turn_id=planned, move_in_date=LATER)
    await going.notice(unit_id, "2981-02-15")
    assert (await fired(served, going))[len(events) :] == [("turn.status_changed", current, "Occupied", "Notice")]
    await going.sweep("2981-02-20T00:00:00Z")
    assert (await fired(served, going))[-1] == ("turn.status_changed", current, "Notice", "Vacant Not Ready")


async def test_a_turn_that_began_in_an_empty_unit_is_put_off(going: Company, served: Database) -> None:
    unit_id = await going.known_unit(served)
    planned = (await going.move_in(unit_id, move_in_date=ARRIVES))["entity_id"]
    await going.sweep(ON_ARRIVAL)
    await going.command("ChangeMoveIn", turn_id=planned, move_in_date=LATER)
    assert await fired(served, going) == [
        ("turn.status_changed", planned, None, "Occupied"),
        ("turn.status_changed", planned, "Occupied", "Vacant Not Ready"),
    ]
    page = await board(going, unit_id)
    assert not page.unit.HasField("turn_id") and page.unit.next_turn_id == planned


async def test_a_company_whose_timezone_changes_un_begins_nothing(going: Company, served: Database) -> None:
    unit_id, current, planned = await let_ahead(going, served)
    await going.sweep("2981-01-10T05:00:00Z")  # midnight in Toronto
    before = await fired(served, going), await statuses(going)
    assert before[1] == {current: "Completed", planned: "Active"}
    await going.know(served, timezone="Pacific/Honolulu")
    for moment in ("2981-01-10T05:15:00Z", "2981-01-10T10:00:00Z", "2981-01-11T12:00:00Z"):
        await going.sweep(moment)
    assert (await fired(served, going), await statuses(going)) == before
    assert (await board(going, unit_id)).unit.turn_id == planned


# The board.


async def test_the_board_says_who_comes_next_and_who_has_left(going: Company, served: Database) -> None:
    unit_id, current, planned = await let_ahead(going, served)
    page = await board(going, unit_id)
    unit = page.unit
    assert (unit.turn_id, unit.move_out_date, unit.projected_ready_on) == (current, LEAVES, READY)
    assert (unit.next_turn_id, unit.next_move_in, unit.next_resident) == (planned, ARRIVES, "Ben Osei")
    assert (unit.has_left, unit.is_clash, unit.HasField("empty_since")) == (False, False, False)
    assert [resident.last_name for resident in page.residents] == ["Ortiz"] and page.notice.move_out_date == LEAVES
    (following,) = page.planned
    assert (following.turn_id, following.move_in_date, following.HasField("move_out_date"), following.is_clash) == (
        planned,
        ARRIVES,
        False,
        False,
    )
    assert [party.first_name for party in following.residents] == ["Ben"]
    (listed,) = await going.command("ListBoard")
    assert (listed.next_turn_id, listed.next_resident) == (planned, "Ben Osei")
    await going.sweep(AFTER_LEAVING)
    assert (await board(going, unit_id)).unit.has_left
    await going.command("SetUnitStatus", unit_id=unit_id, unit_status="Occupied")
    assert not (await board(going, unit_id)).unit.has_left


async def test_a_unit_that_is_not_empty_yet_counts_for_nothing(company: Company, served: Database) -> None:
    """Its last resident left long ago, and the present one's departure is to come, though staff set it vacant."""
    await company.make_units("U1", "U2")
    ids = await company.unit_ids()
    past = {"status": "Completed", "move_in_date": "2023-01-01", "move_out_date": "2024-10-01"}
    for unit in ("U1", "U2"):
        assert await company.put("turns", {"external_id": f"{unit} before", "unit": unit, **past}) == ["created"]
    assert (await board(company, ids["U1"])).unit.empty_since == "2024-10-01"
    await company.move_in(ids["U1"], move_in_date="2024-10-02")
    await company.notice(ids["U1"], LEAVES)
    await company.command("SetUnitStatus", unit_id=ids["U1"], unit_status="Vacant Not Ready")
    assert not (await board(company, ids["U1"])).unit.HasField("empty_since")
    # A planned move-in has emptied nothing either.
    await company.move_in(ids["U2"], move_in_date=LATER)
    assert (await board(company, ids["U2"])).unit.empty_since == "2024-10-01"


# The order of changes.


async def test_a_planned_turn_is_followed_when_it_is_recorded_and_when_it_begins(
    going: Company, served: Database
) -> None:
    _, current, planned = await let_ahead(going, served)
    places = Statement(
        select(t.transition.c.id, t.transition.c.changed_xid).where(t.transition.c.company_id == going.id)
    )
    before = {row["id"]: row["changed_xid"] for row in await served.rows(places)}
    assert before[planned] > before[current]
    await going.sweep(ON_ARRIVAL)
    after = {row["id"]: row["changed_xid"] for row in await served.rows(places)}
    assert min(after.values()) > max(before.values())
