"""Templates of make-ready tasks, who does tasks, and their order: what each form sends."""

from __future__ import annotations

from typing import Any

import pytest

from chassis.refusals import Refusal
from console.areas.board.plans import fitting
from console.areas.board.turn_templates import tasks_of
from makeready.occupancy.v1 import turn_tasks_pb2 as tasks_pb
from makeready.occupancy.v1 import turn_templates_pb2 as pb

from .browsing import Browser
from .stubs import Stubs

ADD = "occupancy.TurnTemplatesService/AddTurnTemplate"
UPDATE = "occupancy.TurnTemplatesService/UpdateTurnTemplate"
APPLY = "occupancy.TurnTemplatesService/ApplyTurnTemplate"
ORDER, CHANGE = "occupancy.TurnTasksService/OrderTasks", "occupancy.TurnTasksService/UpdateTask"


def test_a_line_is_a_task_with_its_days() -> None:
    tasks, error = tasks_of("Trash-out, 1\r\n Paint : 2 \n\nWalk; -3\nKeys\nUnit 5, 2 coats")
    assert [(task.task_type, task.days_after_move_out if task.HasField("days_after_move_out") else None)
            for task in tasks] == [("Trash-out", 1), ("Paint", 2), ("Walk", -3), ("Keys", None),
                                   ("Unit 5, 2 coats", None)]  # fmt: skip
    assert not error and tasks_of(" \n")[1] and tasks_of("x" * 12_001)[1]


def test_a_template_for_fewer_units_comes_first() -> None:
    templates = [
        pb.TurnTemplate(template_id=1, name="All"),
        pb.TurnTemplate(template_id=2, name="Tower", property_id=5),
        pb.TurnTemplate(template_id=3, name="A1", floorplan="A1"),
        pb.TurnTemplate(template_id=4, name="Tower A1", property_id=5, floorplan="a1"),
    ]
    assert [template.template_id for template in fitting(templates, 5, "A1")] == [4, 3, 2, 1]
    assert [template.template_id for template in fitting(templates, 5, "")] == [2, 1]
    assert [template.template_id for template in fitting(templates, 6, "B2")] == [1]


async def test_a_template_is_made_of_lines_and_kept_when_it_is_refused(administrator: Browser, stubs: Stubs) -> None:
    def refuse(_request: Any, _who: Any) -> Any:
        raise Refusal(422, "invalid_request", "A template of that name exists.", "name")

    await administrator.get("/turn-templates/new")
    form = administrator.form("/turn-templates/new") | {"name": "Quick", "lines": "Paint, 2\nKeys"}
    stubs.answers[ADD] = refuse
    reply = await administrator.post("/turn-templates/new", form)
    assert reply.status == 422 and "A template of that name exists." in reply.words and "Paint, 2\nKeys" in reply.text
    reply = await administrator.post("/turn-templates/new", form | {"lines": " "})
    assert reply.status == 422 and "Write at least one task." in reply.words
    stubs.answers[ADD] = pb.AddTurnTemplateResponse(template=pb.TurnTemplate(template_id=8, name="Quick"))
    reply = await administrator.post("/turn-templates/new", form)
    assert (reply.status, reply.headers["Location"]) == (303, "/turn-templates/8")
    request = stubs.called(ADD)[-1]
    assert (request.name, [task.task_type for task in request.tasks]) == ("Quick", ["Paint", "Keys"])
    assert request.tasks[0].days_after_move_out == 2 and not request.tasks[1].HasField("days_after_move_out")


@pytest.mark.parametrize(
    ("number", "act", "after"),
    [
        (1, "down", ["Paint", "Trash-out", "Final walk"]),
        (3, "up", ["Trash-out", "Final walk", "Paint"]),
        (1, "up", ["Trash-out", "Paint", "Final walk"]),
        (2, "remove", ["Trash-out", "Final walk"]),
    ],
)
async def test_a_template_s_tasks_are_moved_and_removed(
    administrator: Browser, stubs: Stubs, number: int, act: str, after: list[str]
) -> None:
    stubs.answers[UPDATE] = pb.UpdateTurnTemplateResponse()
    await administrator.get("/turn-templates/8")
    path = f"/turn-templates/8/tasks/{number}"
    names = ["Trash-out", "Paint", "Final walk"]
    form = administrator.form(path) | {"do": act, "seen_task": names[number - 1]}
    reply = await administrator.post(path, form)
    assert reply.status == 303, reply.words
    (request,) = stubs.called(UPDATE)
    assert [task.task_type for task in request.tasks] == after and request.version == 2
    paint = [task for task in request.tasks if task.task_type == "Paint"]
    assert all((task.days_after_move_out, task.assignee_id) == (2, 8) for task in paint)


async def test_what_another_person_has_changed_meanwhile_is_not_overwritten(
    administrator: Browser, stubs: Stubs
) -> None:
    await administrator.get("/turn-templates/8")
    form = administrator.form("/turn-templates/8/tasks/1") | {"do": "remove", "seen_task": "Clean"}
    reply = await administrator.post("/turn-templates/8/tasks/1", form)
    assert reply.status == 422 and "Another person has changed the template meanwhile" in reply.words
    assert not stubs.called(UPDATE)


async def test_two_clicks_on_a_card_add_the_tasks_of_a_template(staff: Browser, stubs: Stubs) -> None:
    """Change, and the template's button: it is in the card's own form."""
    page = await staff.get("/board")
    assert "Standard turn 3" in page.words
    stubs.answers[APPLY] = pb.ApplyTurnTemplateResponse(
        tasks=[tasks_pb.TurnTask(task_id=90), tasks_pb.TurnTask(task_id=91)], present=["Paint"],
        vendors_on_hold=["Kessler site GC"],
    )  # fmt: skip
    form = staff.form("/board/units/15") | {"unit_status": "Vacant Not Ready", "template_id": "8"}
    reply = await staff.post("/board/units/15", form)
    assert reply.status == 303
    words = (await staff.follow(reply)).words
    assert "2 tasks added; already there: “Paint”" in words and "on hold: Kessler site GC" in words
    (request,) = stubs.called(APPLY)
    assert (request.turn_id, request.template_id) == (5, 8)


async def test_ticked_tasks_are_assigned_and_undone_and_the_reason_stands_beside_each_refused_one(
    staff: Browser, stubs: Stubs
) -> None:
    def update(request: Any, _who: Any) -> Any:
        if request.task_id == 33:
            raise Refusal(422, "invalid_request", "The vendor is on hold and gets no new work.")
        return tasks_pb.UpdateTaskResponse()

    stubs.answers[CHANGE] = update
    page = await staff.get("/turns/5?tick=all")
    assert 'id="tick-32" name="task" value="32"' in " ".join(page.text.split()) and "Assign" in page.words
    path = "/turn-tasks/bulk"
    page = await staff.get(f"{path}?do=assign&task=32&task=33&task=404404&back=/turns/5")
    assert "Paint" in page.words and "Floors" in page.words and "DeShawn Whitfield" in page.words
    form = staff.form(path)
    reply = await staff.post(path, form)
    assert reply.status == 422 and "Choose a staff member, a vendor" in reply.words
    pairs = [pair for pair in form.items() if pair[0] not in ("task", "assignee_id", "vendor_id", "clear")]
    sent = [*pairs, ("task", "32"), ("task", "33"), ("assignee_id", "9"), ("vendor_id", "2")]
    reply = await staff.post(path, sent)
    assert reply.status == 422 and "1 of 2 done" in reply.words and "is on hold" in reply.words
    requests = {request.task_id: request for request in stubs.called(CHANGE)}
    assert set(requests) == {32, 33} and requests[32].assignee_id == 9 and requests[32].vendor_id == 2
    assert all(request.HasField("from_assignee_id") and request.HasField("from_vendor_id")
               for request in requests.values())  # fmt: skip
    assert len({request.idempotency_key for request in requests.values()}) == 2
    stubs.calls.clear()
    reply = await staff.send(f"{path}/undo")
    assert (reply.status, reply.headers["Location"]) == (303, "/turns/5")
    (undone,) = stubs.called(CHANGE)
    before = requests[32]
    assert (undone.task_id, undone.from_assignee_id, undone.from_vendor_id) == (32, 9, 2)
    assert undone.assignee_id == before.from_assignee_id and undone.vendor_id == before.from_vendor_id


async def test_a_task_moves_down_without_dragging(staff: Browser, stubs: Stubs) -> None:
    stubs.answers[ORDER] = tasks_pb.OrderTasksResponse()
    await staff.get("/turns/5")
    reply = await staff.post("/turns/5/order", staff.form("/turns/5/order") | {"task": "32", "by": "down"})
    assert (reply.status, reply.headers["Location"]) == (303, "/turns/5#tasks")
    (request,) = stubs.called(ORDER)
    assert request.turn_id == 5 and list(request.task_ids)[:2] == [33, 32]


async def test_the_list_of_tasks_says_who_does_them_and_is_narrowed_to_nobody_s(staff: Browser, stubs: Stubs) -> None:
    page = await staff.get("/turn-tasks")
    assert "DeShawn Whitfield" in page.words and "Lakeside Plumbing" in page.words and "Unassigned" in page.words
    page = await staff.get("/turn-tasks?who=unassigned")
    assert stubs.called("occupancy.TurnTasksService/ListOpenTasks")[-1].unassigned and "Lakeside" not in page.words
    csv = await staff.get("/turn-tasks?csv=1")
    assert csv.text.splitlines()[0].endswith(
        "scheduled_date,assignee_id,assignee,vendor_id,vendor,turn_id,unit_id,unit,property_id,property"
    )
    assert "8,DeShawn Whitfield,1,Lakeside Plumbing" in csv.text
