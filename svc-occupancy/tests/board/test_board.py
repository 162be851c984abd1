"""The turn board: commands of staff on units and turns, with their events, audit entries and effect on GET /units."""

from __future__ import annotations

import datetime
import json
from typing import Any

import pytest
from sqlalchemy import func, select

from chassis.auth.identity import ADMINISTRATOR, Identity
from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.refusals import Refusal
from chassis.schedule import instants
from makeready.occupancy.v1 import turn_board_pb2
from svc_occupancy import tables as t
from svc_occupancy.units import rules as unit_rules
from testkit.stored_documents import written_columns

from ..harness import Company, fired, published, until

LEAVES = {"external_id": "T1", "unit": "U1", "move_out_date": "2999-01-31"}


@pytest.fixture
async def unit_id(company: Company) -> int:
    """A unit that has no turn and no state."""
    await company.make_units("U1")
    return (await company.unit_ids())["U1"]


@pytest.fixture
async def turn_id(company: Company, unit_id: int) -> int:
    """The turn of a resident who leaves in 2999."""
    assert await company.put("turns", LEAVES) == ["created"]
    turn_id: int = (await company.turn("T1"))["entity_id"]
    return turn_id


async def refusal(company: Company, rpc: str, **fields: Any) -> tuple[int, str]:
    with pytest.raises(Refusal) as refused:
        await company.command(rpc, **fields)
    return refused.value.status, refused.value.message


async def test_a_status_fires_with_the_active_turn_as_it_is_served(
    company: Company, unit_id: int, turn_id: int, served: Database
) -> None:
    before = json.loads(await company.served_turn(turn_id))
    unit = await company.command("SetUnitStatus", unit_id=unit_id, unit_status="Down")
    assert (unit.unit_id, unit.unit_status, unit.turn_id, unit.move_out_date) == (
        unit_id,
        "Down",
        turn_id,
        "2999-01-31",
    )
    await until(company.units, {"U1": ("Down", None)})
    (event,) = [message for message in await published(served, company) if message.HasField("public")]
    served_turn = await company.served_turn(turn_id)
    assert event.public.data == served_turn
    assert event.public.change == b'{"field":"unit_status","from":"Notice","to":"Down"}'
    after = json.loads(served_turn)
    # Only updated_at changes: it equals the event's instant, so that the turn's events sort.
    assert after == before | {"updated_at": after["updated_at"]} and after["updated_at"] > before["updated_at"]
    assert instants.printed(event.occurred_at.ToDatetime(datetime.UTC)) == after["updated_at"]
    assert await company.audited() == [
        ("staff:12", "unit.status_changed", unit_id, {"unit_status": "Notice"}, {"unit_status": "Down"})
    ]


async def test_without_an_active_turn_the_newest_speaks_for_the_unit(
    company: Company, unit_id: int, served: Database
) -> None:
    rows = [{"external_id": name, "unit": "U1", "status": "Completed"} for name in ("T1", "T2", "T3")]
    await company.put("turns", *rows)
    await company.command("SetUnitStatus", unit_id=unit_id, unit_status="Vacant Ready")
    newest = max(turn["entity_id"] for turn in await company.turns())
    assert await fired(served, company) == [("turn.status_changed", newest, "Vacant Not Ready", "Vacant Ready")]


async def test_a_cancelled_plan_speaks_for_a_unit_that_never_had_another_turn(
    company: Company, unit_id: int, served: Database
) -> None:
    planned = await company.move_in(unit_id, move_in_date="2999-02-01")
    await company.command("CancelTurn", turn_id=planned["entity_id"])
    await company.command("SetUnitStatus", unit_id=unit_id, unit_status="Vacant Ready")
    assert (await fired(served, company))[-1] == ("turn.status_changed", planned["entity_id"], None, "Vacant Ready")


async def test_a_unit_without_a_turn_changes_and_fires_nothing(
    company: Company, unit_id: int, served: Database
) -> None:
    unit = await company.command("SetUnitStatus", unit_id=unit_id, unit_status="Vacant Ready")
    assert (unit.unit_status, unit.HasField("turn_id")) == ("Vacant Ready", False)
    await until(company.units, {"U1": ("Vacant Ready", None)})
    assert await fired(served, company) == []
    assert (await company.audited())[0][3:] == ({"unit_status": None}, {"unit_status": "Vacant Ready"})
    # A later move-in starts from that status.
    turn = await company.move_in(unit_id)
    assert await fired(served, company) == [("turn.status_changed", turn["entity_id"], "Vacant Ready", "Occupied")]


async def rows_of(served: Database, company: Company) -> list[Any]:
    """All rows of the company, except claims, and the number of its events."""
    tables = (t.transition, t.unit_state, t.turn_task, t.audit)
    rows: list[Any] = [
        await served.rows(
            Statement(select(*written_columns(x)).where(x.c.company_id == company.id).order_by(*x.primary_key))
        )
        for x in tables
    ]
    return [*rows, len(await published(served, company))]


async def test_what_changes_nothing_leaves_nothing(
    company: Company, unit_id: int, turn_id: int, served: Database
) -> None:
    await company.command("ScheduleTurn", turn_id=turn_id, projected_ready_on="2999-02-09")
    task = await company.command("AddTask", turn_id=turn_id, task_type="Paint", scheduled_date="2999-02-01")
    before = await rows_of(served, company)
    unit = await company.command("SetUnitStatus", unit_id=unit_id, unit_status="Notice")
    assert unit.unit_status == "Notice"
    turn = await company.command("ScheduleTurn", turn_id=turn_id, projected_ready_on="2999-02-09")
    assert turn["projected_ready_on"] == "2999-02-09"
    assert await company.command("UpdateTask", task_id=task.task_id, task_type="Paint") == task
    assert await rows_of(served, company) == before


async def test_a_schedule_fires_where_the_date_moves_and_the_unit_shows_it(
    company: Company, unit_id: int, turn_id: int, served: Database
) -> None:
    for ready_on in ("2999-02-09", "2999-02-20", None):
        fields: dict[str, Any] = {"projected_ready_on": ready_on} if ready_on else {"clear": ["projected_ready_on"]}
        turn = await company.command("ScheduleTurn", turn_id=turn_id, **fields)
        assert turn == json.loads(await company.served_turn(turn_id)) and turn["projected_ready_on"] == ready_on
        await until(company.units, {"U1": ("Notice", ready_on)})
    moves = [(None, "2999-02-09"), ("2999-02-09", "2999-02-20"), ("2999-02-20", None)]
    assert await fired(served, company) == [("turn.schedule_changed", turn_id, *move) for move in moves]
    assert [entry[1:] for entry in await company.audited()] == [
        ("turn.scheduled", turn_id, {"projected_ready_on": before}, {"projected_ready_on": after})
        for before, after in moves
    ]


async def test_a_notice_that_is_cancelled_leaves_the_resident_where_they_were(
    company: Company, unit_id: int, served: Database
) -> None:
    turn_id = (await company.move_in(unit_id))["entity_id"]
    before = json.loads(await company.served_turn(turn_id))
    await company.notice(unit_id, external_id="N1", ntv_reason_code="moving", notes="keys at the desk")
    await company.command("ScheduleTurn", turn_id=turn_id, projected_ready_on="2999-02-09")
    open_task = await company.command("AddTask", turn_id=turn_id, task_type="Paint")
    done_task = await company.command("AddTask", turn_id=turn_id, task_type="Clean")
    done_task = await company.command("CompleteTask", task_id=done_task.task_id)
    start = len(await fired(served, company))
    turn = await company.command("CancelNotice", unit_id=unit_id)
    assert turn == json.loads(await company.served_turn(turn_id))
    changed = {name: turn[name] for name in ("updated_at", "occupancy_source", "occupancy_fed_at")}
    assert turn == before | changed
    assert set((await fired(served, company))[start:]) == {
        ("turn.status_changed", turn_id, "Notice", "Occupied"),
        ("turn.schedule_changed", turn_id, "2999-02-09", None),
    }
    # Receivers order an object's events by occurred_at; the last one has the record's own instant.
    public = [event for event in await published(served, company) if event.HasField("public")]
    instant_of = {
        event.public.event: instants.printed(event.occurred_at.ToDatetime(datetime.UTC)) for event in public[start:]
    }
    assert instant_of["turn.status_changed"] < instant_of["turn.schedule_changed"] == turn["updated_at"]
    tasks = await company.command("ListTasks", turn_id=turn_id)
    assert [(task.task_id, task.status) for task in tasks] == [
        (done_task.task_id, "Completed"),
        (open_task.task_id, "Cancelled"),
    ]
    await until(company.units, {"U1": ("Occupied", None)})
    notice = Statement(
        select(t.transition.c.notice_external_id, t.transition.c.notes).where(t.transition.c.id == turn_id)
    )
    assert tuple(*await served.rows(notice)) == (None, None)
    actions = [(entry[1], entry[2]) for entry in (await company.audited())[-3:]]
    assert actions == [
        ("turn.notice_cancelled", turn_id),
        ("turn_task.cancelled", open_task.task_id),
        ("unit.status_changed", unit_id),
    ]
    # A second cancellation changes nothing; after it, a new notice is possible.
    rows = await rows_of(served, company)
    assert await company.command("CancelNotice", unit_id=unit_id) == turn
    assert await rows_of(served, company) == rows
    await company.notice(unit_id, "2999-03-31")
    assert (await company.turns())[0]["move_out_date"] == "2999-03-31"


async def test_what_the_board_refuses(company: Company, unit_id: int) -> None:
    async def status(name: str) -> tuple[int, str]:
        return await refusal(company, "SetUnitStatus", unit_id=unit_id, unit_status=name)

    assert (await status("Occupied"))[0] == 422 and "the unit has no resident on record" in (await status("Notice"))[1]
    assert (await status("Haunted")) == (422, f"unit_status must be one of: {', '.join(unit_rules.UNIT_STATUSES)}.")
    assert (await refusal(company, "CancelNotice", unit_id=unit_id))[0] == 422
    turn_id = (await company.move_in(unit_id))["entity_id"]
    assert "needs a move_out_date" in (await status("Notice"))[1]
    assert await refusal(company, "ScheduleTurn", turn_id=turn_id, projected_ready_on="2999-01-01") == (
        422,
        "projected_ready_on needs a move_out_date.",
    )
    assert (await refusal(company, "ScheduleTurn", turn_id=turn_id))[0] == 400
    assert (await refusal(company, "ScheduleTurn", turn_id=turn_id, projected_ready_on="tomorrow"))[0] == 400
    assert (await refusal(company, "AddTask", turn_id=turn_id, task_type=" "))[0] == 400
    assert (await refusal(company, "AddTask", turn_id=turn_id, task_type="x" * 201))[0] == 400
    await company.notice(unit_id)
    await company.move_in(unit_id, predecessor_transition_id=turn_id)
    late = await refusal(company, "ScheduleTurn", turn_id=turn_id, projected_ready_on="2999-01-01")
    assert late[0] == 422 and "completed" in late[1]
    late = await refusal(company, "AddTask", turn_id=turn_id, task_type="Paint")
    assert late[0] == 422 and "completed" in late[1]


async def test_a_task_goes_its_way(company: Company, turn_id: int) -> None:
    task = await company.command("AddTask", turn_id=turn_id, task_type="Paint", scheduled_date="2999-02-01")
    assert (task.turn_id, task.status, task.source) == (turn_id, "Open", "staff")
    task = await company.command("UpdateTask", task_id=task.task_id, task_type="Paint all", clear=["scheduled_date"])
    assert (task.task_type, task.HasField("scheduled_date")) == ("Paint all", False)
    assert (await refusal(company, "UpdateTask", task_id=task.task_id, clear=["task_type"]))[0] == 400
    done = await company.command("CompleteTask", task_id=task.task_id)
    assert done.status == "Completed" and done.completed_at == done.updated_at
    assert await company.command("CompleteTask", task_id=task.task_id) == done
    assert (await refusal(company, "CancelTask", task_id=task.task_id))[0] == 422
    assert (await refusal(company, "UpdateTask", task_id=task.task_id, task_type="x"))[0] == 422
    other = await company.command("AddTask", turn_id=turn_id, task_type="Clean")
    gone = await company.command("CancelTask", task_id=other.task_id)
    assert gone.status == "Cancelled" and gone.cancelled_at == gone.updated_at
    assert list(await company.command("ListTasks", turn_id=turn_id)) == [done, gone]
    new = {"transition_id": turn_id, "task_type": "Paint", "status": "open", "scheduled_date": "2999-02-01"}
    assert (await company.audited())[:3] == [
        ("staff:12", "turn_task.added", task.task_id, {}, new),
        (
            "staff:12",
            "turn_task.changed",
            task.task_id,
            {"task_type": "Paint", "scheduled_date": "2999-02-01"},
            {"task_type": "Paint all", "scheduled_date": None},
        ),
        ("staff:12", "turn_task.completed", task.task_id, {"status": "open"}, {"status": "completed"}),
    ]


async def test_the_board_lists_units_with_what_is_left_to_do(company: Company) -> None:
    await company.make_units("U1", "U2", "U3")
    await company.put("properties", {"external_id": "P2", "name": "Oak Row", "address": "2 Oak St"})
    await company.put("units", {"external_id": "U4", "property": "P2", "name": "Unit U4"})
    turns = [{"external_id": "T1", "unit": "U1", "move_out_date": "2999-01-31", "projected_ready_on": "2999-02-09"}]
    await company.put("turns", *turns, {"external_id": "T2", "unit": "U2"}, {"external_id": "T4", "unit": "U4"})
    ids = await company.unit_ids()
    turn_ids = {turn["external_id"]: turn["entity_id"] for turn in await company.turns()}
    for _ in range(2):
        await company.command("AddTask", turn_id=turn_ids["T1"], task_type="Paint")
    done = await company.command("AddTask", turn_id=turn_ids["T1"], task_type="Clean")
    await company.command("CompleteTask", task_id=done.task_id)

    async def shown() -> list[str]:
        return [unit.name for unit in await company.command("ListBoard")]

    await until(shown, ["Unit U1", "Unit U2", "Unit U3", "Unit U4"])
    first, second, third, _ = await company.command("ListBoard")
    assert (first.unit_id, first.property, first.unit_status, first.turn_id, first.tasks_open) == (
        ids["U1"],
        "Elm Court",
        "Notice",
        turn_ids["T1"],
        2,
    )
    assert (first.move_out_date, first.projected_ready_on) == ("2999-01-31", "2999-02-09")
    assert (second.unit_status, second.tasks_open, second.HasField("move_out_date")) == ("Occupied", 0, False)
    assert not third.HasField("unit_status") and not third.HasField("turn_id")
    of_first = [unit.name for unit in await company.command("ListBoard", property_id=first.property_id)]
    assert of_first == ["Unit U1", "Unit U2", "Unit U3"]
    pages, request = [], turn_board_pb2.ListBoardRequest(limit=3)
    for _ in range(2):
        page = await company.house("ListBoard", request, company.staff)
        pages.append([unit.name for unit in page.units])
        request.after_id = page.next_after_id
    assert pages == [["Unit U1", "Unit U2", "Unit U3"], ["Unit U4"]] and not page.HasField("next_after_id")
    assert list(await company.command("ListBoard", property_id=1)) == []
    assert (await refusal(company, "ListBoard", limit=0))[0] == 400


async def test_a_unit_that_the_replica_lacks_is_asked_for(company: Company, no_nats: Any, served: Database) -> None:
    await company.make_units("U1")
    unit_id = (await company.unit_ids())["U1"]
    unit = await company.command("SetUnitStatus", unit_id=unit_id, unit_status="Down")
    assert (unit.name, unit.unit_status) == ("Unit U1", "Down")
    status, message = await refusal(company, "SetUnitStatus", unit_id=unit_id + 10**9, unit_status="Down")
    assert (status, message) == (404, "The company has no unit with this id.")


async def test_another_company_s_records_are_none(
    company: Company, new_company: Any, unit_id: int, turn_id: int
) -> None:
    task = await company.command("AddTask", turn_id=turn_id, task_type="Paint")
    other: Company = await new_company()
    refused = [
        await refusal(other, "SetUnitStatus", unit_id=unit_id, unit_status="Down"),
        await refusal(other, "CancelNotice", unit_id=unit_id),
        await refusal(other, "ScheduleTurn", turn_id=turn_id, projected_ready_on="2999-01-01"),
        await refusal(other, "AddTask", turn_id=turn_id, task_type="Paint"),
        await refusal(other, "ListTasks", turn_id=turn_id),
        *[await refusal(other, rpc, task_id=task.task_id) for rpc in ("UpdateTask", "CompleteTask", "CancelTask")],
    ]
    nouns = ["unit", "unit", "turn", "turn", "turn", "task", "task", "task"]
    assert refused == [(404, f"The company has no {noun} with this id.") for noun in nouns]
    assert list(await other.command("ListBoard")) == []


ACTS = {
    "SetUnitStatus": {"unit_status": "Down"},
    "ScheduleTurn": {"projected_ready_on": "2999-02-09"},
    "CancelNotice": {},
    "AddTask": {"task_type": "Paint"},
    "UpdateTask": {"task_type": "Clean"},
    "CompleteTask": {},
    "CancelTask": {},
}


@pytest.mark.parametrize("rpc", ACTS)
async def test_an_act_sent_again_is_done_once_for_each_actor(
    company: Company, unit_id: int, turn_id: int, served: Database, rpc: str
) -> None:
    task = await company.command("AddTask", turn_id=turn_id, task_type="Paint")
    ids = {"unit_id": unit_id, "turn_id": turn_id, "task_id": task.task_id}
    place = next(name for name in ids if rpc in _of(name))
    fields = {place: ids[place], "idempotency_key": "once", **ACTS[rpc]}
    first = await company.command(rpc, **fields)
    rows = await rows_of(served, company)
    assert await company.command(rpc, **fields) == first
    assert await rows_of(served, company) == rows
    assert (await refusal(company, rpc, **fields | {place: ids[place] + 1}))[0] == 409
    assert (await refusal(company, rpc, **fields | {"idempotency_key": ""}))[0] == 400
    for who in (company.operator, Identity(ADMINISTRATOR, "gateway", company.id, administrator_id=3)):
        await company.command(rpc, who, **fields)
    claims = select(func.count()).where(t.idempotency.c.company_id == company.id)
    assert await served.value(Statement(claims)) == 4  # including the task's


def _of(place: str) -> tuple[str, ...]:
    return {
        "unit_id": ("SetUnitStatus", "CancelNotice"),
        "turn_id": ("ScheduleTurn", "AddTask"),
        "task_id": ("UpdateTask", "CompleteTask", "CancelTask"),
    }[place]
