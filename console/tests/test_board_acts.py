"""Actions on the turn board: each form does what it says, once, and shows what is refused beside its field."""

from __future__ import annotations

import asyncio
import gzip
from typing import Any

import pytest

from chassis.refusals import Refusal
from makeready.common.v1 import documents_pb2
from makeready.occupancy.v1 import residency_commands_pb2 as commands_pb
from makeready.occupancy.v1 import turn_board_pb2, turn_tasks_pb2

from .browsing import Browser
from .samples_board import day
from .stubs import Stubs

MOVE, SCHEDULE = "occupancy.TurnBoardService/SetUnitStatus", "occupancy.TurnBoardService/ScheduleTurn"
ADD, COMPLETE = "occupancy.TurnTasksService/AddTask", "occupancy.TurnTasksService/CompleteTask"
NOTICE, MOVE_IN = ("occupancy.ResidencyCommandsService/AddNotice", "occupancy.ResidencyCommandsService/AddMoveIn")
TASK = turn_tasks_pb2.TurnTask(task_id=32, task_type="Paint")


def refusal(message: str, field: str = "", status: int = 422) -> Any:
    def refuse(_request: Any, _who: Any) -> Any:
        raise Refusal(status, "invalid_request", message, field)

    return refuse


async def test_a_card_s_form_does_each_thing_once(staff: Browser, stubs: Stubs) -> None:
    stubs.answers[COMPLETE] = turn_tasks_pb2.CompleteTaskResponse(task=TASK)
    await staff.get("/board?property_id=1")
    form = staff.form("/board/units/15")
    assert form["next"] == "/board?property_id=1" and form["seen_ready_on"] == day(4)
    changed = {
        "unit_status": "Vacant Ready",
        "projected_ready_on": day(2),
        "task_type": "Keys",
        "scheduled_date": day(1),
    }
    sent = [*{**form, **changed}.items(), ("done", "32"), ("done", "33"), ("done", "x"), ("done", "33")]
    replies = await asyncio.gather(*(staff.post("/board/units/15", sent) for _ in range(2)))
    for reply in replies:
        assert (reply.status, reply.headers["Location"]) == (303, "/board?property_id=1")
    requests = {rpc: stubs.called(rpc) for rpc in (MOVE, SCHEDULE, ADD, COMPLETE)}
    keys = [{request.idempotency_key for request in of_rpc} for of_rpc in requests.values()]
    assert [len(keys_of_rpc) for keys_of_rpc in keys] == [1, 1, 1, 2] and len(set.union(*keys)) == 5, (
        "a key for each act"
    )
    assert all(len(key) <= 64 and key.startswith(form["act"]) for key in set.union(*keys))
    (move, *_), (schedule, *_), (task, *_), _ = requests.values()
    assert (move.unit_id, move.unit_status, move.expected_unit_status) == (15, "Vacant Ready", "Vacant Not Ready")
    assert (schedule.turn_id, schedule.projected_ready_on, schedule.expected_ready_on) == (5, day(2), day(4))
    assert (task.turn_id, task.task_type, task.scheduled_date) == (5, "Keys", day(1))
    after = (await staff.follow(replies[0])).words
    for words in ("Alder Court 403: task “Paint” completed", "task “Keys” added", "ready date set to 24 Nov",
                  "status set to Vacant Ready."):  # fmt: skip
        assert words in after


async def test_what_a_form_did_fits_a_cookie(staff: Browser, stubs: Stubs) -> None:
    long = turn_tasks_pb2.TurnTask(task_type="\N{HOUSE BUILDING}" * 200)
    stubs.answers[COMPLETE] = turn_tasks_pb2.CompleteTaskResponse(task=long)
    await staff.get("/board/units/15")
    form = [*staff.form("/board/units/15").items()]
    reply = await staff.post("/board/units/15", [*form, *(("done", str(number)) for number in range(1, 31))])
    assert reply.status == 303 and len(stubs.called(COMPLETE)) == 30
    assert max(map(len, reply.headers.getall("Set-Cookie"))) < 4096
    assert "Alder Court 403: task" in (await staff.follow(reply)).words


async def test_a_form_without_changes_calls_nothing(staff: Browser, stubs: Stubs) -> None:
    await staff.get("/turns/5")
    reply = await staff.send("/board/units/15", unit_status="Vacant Not Ready")
    assert "Alder Court 403: no changes." in (await staff.follow(reply)).words
    assert not [call for call in stubs.calls if call.rpc in (MOVE, SCHEDULE, ADD, COMPLETE)]
    # A ready date is cleared by an empty field.
    await staff.get("/board/units/15?next=/turns/5")
    reply = await staff.send("/board/units/15", unit_status="Vacant Not Ready", projected_ready_on="")
    assert reply.headers["Location"] == "/turns/5"
    (request,) = stubs.called(SCHEDULE)
    assert list(request.clear) == ["projected_ready_on"] and not request.HasField("projected_ready_on")
    await staff.get("/board/units/15?next=//evil.example")
    assert (await staff.send("/board/units/15", unit_status="Down")).headers["Location"] == "/board"


async def test_what_is_refused_stands_beside_its_field_and_the_rest_is_done(staff: Browser, stubs: Stubs) -> None:
    stubs.answers[MOVE] = refusal("The unit is Down by now; look at it again before you move it.", "unit_status")
    await staff.get("/board/units/15")
    sent = {"unit_status": "Vacant Ready", "task_type": "Keys", "scheduled_date": "", "projected_ready_on": day(2)}
    reply = await staff.send("/board/units/15", **sent)
    assert reply.status == 422 and reply.title == "Alder Court 403"
    assert (
        "The unit is Down by now" in reply.words
        and "Saved: task “Keys” added, ready date set to 24 Nov." in reply.words
    )
    assert 'id="plan-f-unit_status-e"' in reply.text and '<option value="Vacant Ready" selected>' in reply.text
    again = staff.form("/board/units/15")
    assert again["task_type"] == "" and again["act"] != reply.path
    reply = await staff.send("/board/units/15", unit_status="Vacant Not Ready", scheduled_date=day(2))
    assert reply.status == 422 and "Enter the task for that day." in reply.words
    stubs.answers[COMPLETE] = refusal("The task is cancelled already; only an open one can change.")
    await staff.get("/board/units/15")
    reply = await staff.send("/board/units/15", unit_status="Vacant Not Ready", done="32")
    assert reply.status == 422 and "The task is cancelled already" in reply.words


async def test_a_task_is_changed_by_what_differs(staff: Browser, stubs: Stubs) -> None:
    update = "occupancy.TurnTasksService/UpdateTask"
    for changed in ({"task_type": "Paint twice"}, {"scheduled_date": ""}, {}):
        await staff.get("/turn-tasks/32/change?next=/turns/5")
        assert (await staff.send("/turn-tasks/32/change", **changed)).headers["Location"] == "/turns/5"
    renamed, cleared = stubs.called(update)
    assert renamed.task_type == "Paint twice" and not renamed.HasField("scheduled_date") and not renamed.clear
    assert list(cleared.clear) == ["scheduled_date"] and not cleared.HasField("task_type")
    # Another has renamed it meanwhile: that stands beside the text, which stays.
    await staff.get("/turn-tasks/32/change")
    seen = {"seen.task_type": "Prime", "task_type": "Paint it blue"}
    reply = await staff.send("/turn-tasks/32/change", **seen)
    assert (
        reply.status == 422
        and "Meanwhile someone changed this to “Paint”." in reply.words
        and "Paint it blue" in reply.text
    )
    stubs.answers[update] = refusal("The task is completed already; only an open one can change.")
    await staff.get("/turn-tasks/32/change")
    reply = await staff.send("/turn-tasks/32/change", task_type="Paint it blue")
    assert reply.status == 422 and "The task is completed already" in reply.words and "Paint it blue" in reply.text
    stubs.answers["occupancy.TurnTasksService/CompleteTask"] = refusal("The task is cancelled already.")
    await staff.get("/turn-tasks/32")
    reply = await staff.send("/turn-tasks/32/complete")
    assert reply.status == 422 and reply.title == "Paint" and "The task is cancelled already." in reply.words
    stubs.answers["occupancy.TurnTasksService/CancelTask"] = turn_tasks_pb2.CancelTaskResponse(task=TASK)
    await staff.get("/turn-tasks/32")
    assert "Task “Paint” is cancelled." in (await staff.follow(await staff.send("/turn-tasks/32/cancel"))).words


async def test_a_notice_says_what_its_person_saw(staff: Browser, stubs: Stubs) -> None:
    page = await staff.get("/units/15/notice")
    assert "A notice is on file: moved out 15 Nov ." in page.words and "NEW_JOB" in page.text
    reply = await staff.send("/units/15/notice", move_out_date=day(9), notes="Keys at the desk", external_id="")
    assert (reply.status, reply.headers["Location"]) == (303, "/turns/5")
    (request,) = stubs.called(NOTICE)
    assert (request.unit_id, request.move_out_date, request.notes) == (15, day(9), "Keys at the desk")
    assert (request.expected_turn_id, request.expected_move_out_date, request.ntv_reason_code) == (
        5,
        day(-7),
        "NEW_JOB",
    )
    assert not request.HasField("external_id")
    stubs.answers[NOTICE] = refusal("The move-out date is 2026-12-24 by now; look at it again.", "move_out_date")
    await staff.get("/units/15/notice")
    reply = await staff.send("/units/15/notice", move_out_date=day(9), notes="Typed with care")
    assert reply.status == 422 and "The move-out date is 2026-12-24 by now" in reply.words
    assert "Typed with care" in reply.text and 'aria-invalid="true"' in reply.text
    assert (await staff.send("/units/15/notice", move_out_date="")).status == 422
    assert "No resident is on file for this unit" in (await staff.get("/units/41/notice")).words
    # Whose notice it is has changed, or what was sent is no turn: the form comes back with what is true now.
    before = len(stubs.called(NOTICE))
    for seen in ("\N{SUPERSCRIPT TWO}", "4", ""):
        await staff.get("/units/15/notice")
        reply = await staff.send("/units/15/notice", move_out_date=day(9), seen=seen)
        assert reply.status == 422 and "Not saved yet." in reply.words
    assert len(stubs.called(NOTICE)) == before


async def test_a_move_in_with_several_parties(staff: Browser, stubs: Stubs) -> None:
    document = documents_pb2.Document(json=b"{}", entity_id=5, version=1)
    stubs.answers[MOVE_IN] = commands_pb.AddMoveInResponse(document=document)
    await staff.get("/units/15/move-in")
    form = staff.form("/units/15/move-in")
    dates = {"move_in_date": day(10), "lease_start_date": day(9), "lease_end_date": "", "seen": "planned"}
    base = [(name, value) for name, value in {**form, **dates}.items() if name not in PARTY]
    ana, ben = party("Ana", "Ortiz", "", "", "leaseholder"), party("Ben", "Osei", "ben@example", "555", "guarantor")
    blank = party("", " ", "", "", "leaseholder")
    reply = await staff.post("/units/15/move-in", [*base, *ana, ("more", "1")])
    assert reply.status == 200 and "Resident 2" in reply.words and 'value="Ortiz"' in reply.text
    assert not stubs.called(MOVE_IN)
    reply = await staff.post("/units/15/move-in", [*base, *ana, *blank, *ben])
    assert (reply.status, reply.headers["Location"]) == (303, "/turns/5")
    (request,) = stubs.called(MOVE_IN)
    assert (request.unit_id, request.move_in_date, request.lease_start_date) == (15, day(10), day(9))
    assert request.predecessor_transition_id == 5 and not request.HasField("lease_end_date")
    assert [(sent_party.first_name, sent_party.role, sent_party.email) for sent_party in request.parties] == [
        ("Ana", "leaseholder", ""), ("Ben", "guarantor", "ben@example")]  # fmt: skip
    assert not request.parties[0].HasField("email") and not request.parties[0].HasField("phone")
    stubs.answers[MOVE_IN] = refusal("parties[1].email must be an e-mail address.", "parties[1].email", 400)
    reply = await staff.post("/units/15/move-in", [*base, *ana, *blank, *ben])
    assert reply.status == 422 and 'id="p1-f-email-e">It must be an e-mail address.' in reply.text
    assert "ben@example" in reply.text and 'value="Ana"' in reply.text
    reply = await staff.post("/units/15/move-in", [*base, *party("Ana", "", "", "", "leaseholder")])
    assert reply.status == 422 and "Last name is required." in reply.words
    reply = await staff.post("/units/15/move-in", [*base, *party("Ana", "Ortiz", "", "", "owner")])
    assert reply.status == 422 and "Role is none of the choices." in reply.words
    assert len(stubs.called(MOVE_IN)) == 2
    many = [pair for number in range(30) for pair in party(f"N{number}", "O", "", "", "leaseholder")]
    reply = await staff.post("/units/15/move-in", [*base, *many, ("more", "1")])
    assert "Resident 20" in reply.words and "Resident 21" not in reply.words and "Add resident" not in reply.words


PARTY = ("first_name", "last_name", "email", "phone", "role")


def party(*texts: str) -> list[tuple[str, str]]:
    return list(zip(PARTY, texts, strict=True))


@pytest.mark.parametrize(
    ("path", "rpc", "button", "message"),
    [
        ("/turns/5/notice/cancel", "CancelNotice", "The move-out date, 15 Nov", "Alder Court 403 stays occupied."),
        ("/turns/5/cancel", "CancelTurn", "The unit stays Vacant Not Ready", "Turn 5 cancelled."),
    ],
)
async def test_an_end_says_what_it_will_do(
    staff: Browser, stubs: Stubs, path: str, rpc: str, button: str, message: str
) -> None:
    rpc = f"occupancy.TurnBoardService/{rpc}"
    assert button in (await staff.get(path)).words
    reply = await staff.send(path)
    assert reply.headers["Location"] == "/turns/5" and message in (await staff.follow(reply)).words
    (request,) = stubs.called(rpc)
    assert (request.unit_id if "Notice" in rpc else request.turn_id) == (15 if "Notice" in rpc else 5)
    stubs.answers[rpc] = refusal("It is completed by now.")
    await staff.get(path)
    reply = await staff.send(path)
    assert reply.status == 422 and "It is completed by now." in reply.words
    over = await staff.get(path.replace("5", "4"))
    assert over.status == 200 and "<form" not in over.text[over.text.index("<main") : over.text.index("</main")]


async def test_a_full_board_stays_light(staff: Browser, stubs: Stubs) -> None:
    plain = stubs.answers["occupancy.TurnBoardService/ListBoard"]

    def board(request: Any, who: Any) -> Any:
        (first, *_) = plain(request, who).units
        units = []
        for number in range(request.limit):
            unit = turn_board_pb2.BoardUnit()
            unit.CopyFrom(first)
            unit.unit_id, unit.turn_id, unit.name = 1000 + number, 2000 + number, f"Alder Court {number}"
            units.append(unit)
        return turn_board_pb2.ListBoardResponse(units=units)

    stubs.answers["occupancy.TurnBoardService/ListBoard"] = board
    page = await staff.get("/board")
    assert page.text.count('<details class="act">') == 80
    # A form for each of the 80 cards: their tokens, which nothing compresses, are 3.4 kB of it.
    assert len(gzip.compress(page.text.encode(), 5)) <= 13_200
