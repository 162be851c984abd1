"""What people do on the turn board: they move a unit, set its ready date, add, change and end tasks."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from chassis.refusals import Refusal
from console.areas.board import cards, residencies, rows
from console.areas.board.bulk import TASK, UPDATE_TASK
from console.areas.board.pages import HERE, PATH, TEMPLATES, UNIT, render, today
from console.areas.board.plans import DATE, HANDS, PLAN, TASK_MAX, Plan, fitting, plan_of
from console.areas.board.rows import UnitResponse
from console.kit import pickers
from console.kit.calls import together
from console.kit.context import PageContext
from console.kit.forms import Edit, Field, Form
from console.kit.sending import send
from console.kit.texts import _, ngettext
from makeready.occupancy.v1 import turn_board_pb2, turn_tasks_pb2, turn_templates_pb2

MOVE = "occupancy.TurnBoardService/SetUnitStatus"
SCHEDULE = "occupancy.TurnBoardService/ScheduleTurn"
ADD_TASK = "occupancy.TurnTasksService/AddTask"
APPLY = "occupancy.TurnTemplatesService/ApplyTurnTemplate"
COMPLETE_TASK = "occupancy.TurnTasksService/CompleteTask"
CANCEL_TASK = "occupancy.TurnTasksService/CancelTask"
SHOWS = (UNIT, TEMPLATES)
PLANS = (*SHOWS, MOVE, SCHEDULE, ADD_TASK, APPLY, COMPLETE_TASK)


async def show_card(context: PageContext) -> web.StreamResponse:
    response = await context.rpcs.call(UNIT, turn_board_pb2.GetBoardUnitRequest(unit_id=context.number("unit_id")))
    return await _card(context, response, plan_of(response.unit))


async def _card(context: PageContext, response: UnitResponse, plan: Plan, status: int = 200) -> web.Response:
    days = today(context)
    _filled, listed = await together(
        pickers.fill(context, plan.task, prefix=PLAN),
        context.rpcs.panel(TEMPLATES, turn_templates_pb2.ListTurnTemplatesRequest()),
    )
    return render(
        context, "card", status, here=HERE, response=response, unit=response.unit, plan=plan,
        card=cards.card_of(response.unit, days, context.wall.zone), next=context.next_path(PATH),
        row=rows.row_of(response), lets=rows.can_be_let(response), party_name=residencies.party_name,
        templates=fitting(listed.templates, response.unit.property_id, response.unit.floorplan) if listed.ok else (),
    )  # fmt: skip


async def save_card(context: PageContext) -> web.StreamResponse:
    """Does each thing that the form asks for, one after the other.

    Each has a key of its own, made of the form's, so that the form sent twice does each once. What is refused stands
    beside its field; the rest is done.
    """
    unit_id = context.number("unit_id")
    request = turn_board_pb2.GetBoardUnitRequest(unit_id=unit_id)
    response = await context.rpcs.call(UNIT, request)
    plan = plan_of(response.unit)
    read = [form.read(context.form) for form in plan.forms]
    turn_id = int(context.form.get("turn_id", "")) if _is_id(context.form.get("turn_id", "")) else 0
    if plan.task.is_finding:
        return await _card(context, response, plan)
    for task_id in dict.fromkeys(filter(_is_id, context.form.getall("done", []))):
        await _complete(context, plan, int(task_id))
    if read[2]:
        await _add_task(context, plan, turn_id)
    if _is_id(context.form.get("template_id", "")):
        await _apply(context, plan, turn_id)
    if read[1]:
        await _schedule(context, plan, turn_id)
    if read[0]:
        await _move(context, plan, unit_id)
    if plan.has_errors:
        fresh = await context.rpcs.call(UNIT, request) if plan.done else response
        return await _card(context, fresh, plan, 422)
    name = response.unit.name
    message = f"{name}: {', '.join(plan.done)}." if plan.done else _("%(unit)s: no changes.") % {"unit": name}
    return context.redirect(context.next_path(f"/board/units/{unit_id}"), message)


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdigit() and 0 < len(text) < 19 and int(text) > 0


async def _complete(context: PageContext, plan: Plan, task_id: int) -> None:
    request = turn_tasks_pb2.CompleteTaskRequest(idempotency_key=f"{context.form_token}.{task_id}", task_id=task_id)
    try:
        task = (await context.rpcs.call(COMPLETE_TASK, request)).task
    except Refusal as refusal:
        plan.fault = refusal.message
    else:
        plan.done.append(_("task “%(task)s” completed") % {"task": task.task_type})


async def _add_task(context: PageContext, plan: Plan, turn_id: int) -> None:
    form = plan.task
    if not (form.values["task_type"] or form.values["scheduled_date"]):
        return
    if not form.values["task_type"]:
        form.errors["task_type"] = _("Enter the task for that day.")
        return
    form.message.turn_id = turn_id
    if await send(context, ADD_TASK, form, "t"):
        plan.done.append(_("task “%(task)s” added") % {"task": form.message.task_type})
        form.values |= dict.fromkeys(form.values, "")


async def _apply(context: PageContext, plan: Plan, turn_id: int) -> None:
    request = turn_templates_pb2.ApplyTurnTemplateRequest(
        idempotency_key=f"{context.form_token}.f", turn_id=turn_id, template_id=int(context.form["template_id"])
    )
    try:
        plan.done.append(outcome(await context.rpcs.call(APPLY, request)))
    except Refusal as refusal:
        plan.fault = refusal.message


def outcome(response: turn_templates_pb2.ApplyTurnTemplateResponse) -> str:
    """What a template has added to a turn, as a part of a sentence."""
    number = len(response.tasks)
    words = ngettext("%(count)s task added", "%(count)s tasks added", number) % {"count": number}
    parts = [words if number else _("no task added")]
    if response.present:
        parts.append(_("already there: %(names)s") % {"names": ", ".join(f"“{name}”" for name in response.present)})
    if response.vendors_on_hold:
        names = ", ".join(response.vendors_on_hold)
        parts.append(_("without a vendor, because it is on hold: %(names)s") % {"names": names})
    return "; ".join(parts)


async def _schedule(context: PageContext, plan: Plan, turn_id: int) -> None:
    form, seen = plan.schedule, context.form.get("seen_ready_on", "")
    if not turn_id or form.values["projected_ready_on"] == seen:
        return
    form.message.turn_id = turn_id
    form.message.expected_ready_on = seen
    if not form.values["projected_ready_on"]:
        form.message.clear.append("projected_ready_on")
    if await send(context, SCHEDULE, form, "d"):
        ready_on = cards.date_of(form.values["projected_ready_on"])
        words = _("ready date set to %(day)s") if ready_on else _("ready date cleared")
        plan.done.append(words % {"day": today(context).words(ready_on) if ready_on else ""})


async def _move(context: PageContext, plan: Plan, unit_id: int) -> None:
    form, seen = plan.move, context.form.get("seen_status", "")
    if form.values["unit_status"] in ("", seen):
        return
    form.message.unit_id = unit_id
    form.message.expected_unit_status = seen
    if await send(context, MOVE, form, "s"):
        plan.done.append(_("status set to %(status)s") % {"status": form.message.unit_status})


def _change_form(task: turn_tasks_pb2.TurnTask) -> Edit:
    message = turn_tasks_pb2.UpdateTaskRequest(
        task_id=task.task_id, task_type=task.task_type, scheduled_date=task.scheduled_date or None,
        assignee_id=task.assignee_id or None, vendor_id=task.vendor_id or None,
    )  # fmt: skip
    return Edit(
        message,
        [
            Field("task_type", "Task", required=True, more=TASK_MAX),
            Field("scheduled_date", _("Scheduled for"),
                  _("Leave blank for no date. A task still open the morning after is overdue."), kind=DATE),
            *HANDS,
        ],
    )  # fmt: skip


async def _task_of(context: PageContext) -> turn_tasks_pb2.PlacedTask:
    request = turn_tasks_pb2.GetTaskRequest(task_id=context.number("task_id"))
    task: turn_tasks_pb2.PlacedTask = (await context.rpcs.call(TASK, request)).task
    return task


async def show_change(context: PageContext) -> web.StreamResponse:
    placed = await _task_of(context)
    form = _change_form(placed.task)
    if placed.task.status != "Open":
        status = placed.task.status.lower()
        form.fault = _("The task is %(status)s; only open tasks can be edited.") % {"status": status}
    return await _change(context, placed, form)


async def _change(
    context: PageContext, placed: turn_tasks_pb2.PlacedTask, form: Form, status: int = 200
) -> web.Response:
    await pickers.fill(context, form)
    return render(
        context,
        "change_task",
        status,
        here=HERE,
        placed=placed,
        task=placed.task,
        form=form,
        next=context.next_path(""),
    )


async def change_task(context: PageContext) -> web.StreamResponse:
    placed = await _task_of(context)
    form, path = _change_form(placed.task), f"/turn-tasks/{placed.task.task_id}"
    if form.read(context.form):
        form.message.idempotency_key = context.form_token
        try:
            if form.changed:
                await context.rpcs.call(UPDATE_TASK, form.message)
            return context.redirect(
                context.next_path(path), _("Task “%(task)s” updated.") % {"task": form.values["task_type"]}
            )
        except Refusal as refusal:
            if refusal.status == web.HTTPNotFound.status_code:
                raise
            form.refuse(refusal)
    return await _change(context, placed, form, form.status)


async def complete_task(context: PageContext) -> web.StreamResponse:
    request = turn_tasks_pb2.CompleteTaskRequest(idempotency_key=context.form_token, task_id=context.number("task_id"))
    return await _end(context, COMPLETE_TASK, request, "completed")


async def cancel_task(context: PageContext) -> web.StreamResponse:
    request = turn_tasks_pb2.CancelTaskRequest(idempotency_key=context.form_token, task_id=context.number("task_id"))
    return await _end(context, CANCEL_TASK, request, "cancelled")


async def _end(context: PageContext, rpc: str, request: Any, word: str) -> web.StreamResponse:
    """Ends a task. A refusal says how it has ended meanwhile: on its page."""
    try:
        task = (await context.rpcs.call(rpc, request)).task
    except Refusal as refusal:
        if refusal.status == web.HTTPNotFound.status_code:
            raise
        placed = await _task_of(context)
        return render(
            context, "task", 422, here=HERE, placed=placed, task=placed.task, others=(), error=refusal.message
        )
    return context.redirect(context.next_path(f"/turn-tasks/{request.task_id}"), f"Task “{task.task_type}” is {word}.")
