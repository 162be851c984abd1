"""What people do with preventive-maintenance tasks: add, edit, complete, cancel."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from chassis.refusals import Refusal
from console.areas.upkeep.pages import GET, HERE, PATH, Due, page
from console.kit import pickers
from console.kit.forms import Edit, Field, Form
from console.kit.visit import Visit, needs_confirmation
from makeready.tickets.v1 import pm_tasks_pb2 as pb

ADD = "tickets.PmTasksService/AddPmTask"
UPDATE = "tickets.PmTasksService/UpdatePmTask"
COMPLETE = "tickets.PmTasksService/CompletePmTask"
CANCEL = "tickets.PmTasksService/CancelPmTask"
_PRESET = ("property_id", "unit_id", "asset_id", "area", "task_name", "due_date", "repeat_days", "repeat_months")
_TEXT = {"maxlength": "200"}
_PLACE = Field("property_id", "Property", kind="picker", required=True)
_FIELDS = (
    Field("task_name", "What", "In one line, such as “Change the air filters”.", required=True, more=_TEXT),
    Field("unit_id", "Unit", "Empty: an area, or the whole property.", kind="picker"),
    Field("area", "Or an area", "In your own words, such as “Boiler room”.", more=_TEXT),
    Field("asset_id", "Asset", "Where it is one piece of equipment.", kind="picker"),
    Field("due_date", "Due", kind="date", required=True),
    Field("repeat_months", "Months", more={"maxlength": "3"}),
    Field("repeat_days", "Days", more={"maxlength": "4"}),
    Field("external_id", "External id", "Its number in another system of yours.", more=_TEXT),
)
_PERIOD = ("repeat_months", "repeat_days")


def _new_form() -> Form:
    return Form(pb.AddPmTaskRequest(), (_FIELDS[0], _PLACE, *_FIELDS[1:]))


def _edit_form(task: Any) -> Edit:
    request = pb.UpdatePmTaskRequest(pm_task_id=task.pm_task_id, task_name=task.task_name, due_date=task.due_date)
    for name in ("unit_id", "area", "asset_id", *_PERIOD, "external_id"):
        if task.HasField(name):
            setattr(request, name, getattr(task, name))
    return Edit(request, _FIELDS)


def _read(visit: Visit, form: Form) -> bool:
    """Also checks what does not go together, in the words of the form."""
    fits = form.read(visit.form)
    if all(form.values[name] for name in _PERIOD):
        form.errors.setdefault("repeat_days", "It repeats by months or by days: empty one of the two.")
    if form.values["unit_id"] and form.values["area"]:
        form.errors.setdefault("area", "It is in a unit or in an area: empty one of the two.")
    if form.is_finding:
        form.errors = {}
    return fits and not form.errors


async def _does(visit: Visit, form: Form, rpc: str) -> Any:
    """Reads the form and sends it. Returns the task; None if the form is to be shown again."""
    answer = await visit.send(rpc, form) if _read(visit, form) else None
    return None if answer is None else answer.task


async def show_new(visit: Visit) -> web.StreamResponse:
    form = _new_form()
    form.preset(visit.query, *_PRESET)
    return await _new(visit, form)


async def _new(visit: Visit, form: Form, status: int = 200) -> web.Response:
    return visit.render("upkeep/new.html", status, here=HERE, form=await pickers.fill(visit, form))


async def add(visit: Visit) -> web.StreamResponse:
    form = _new_form()
    task = await _does(visit, form, ADD)
    if task is None:
        return await _new(visit, form, form.status)
    return visit.redirect(f"{PATH}/{task.pm_task_id}", "The task is planned.")


async def _task(visit: Visit) -> pb.PmTask:
    response = await visit.call(GET, pb.GetPmTaskRequest(pm_task_id=visit.number("pm_task_id")))
    task: pb.PmTask = response.task
    return task


async def show_edit(visit: Visit) -> web.StreamResponse:
    task = await _task(visit)
    if task.status != "Open":
        return visit.redirect(f"{PATH}/{task.pm_task_id}", f"The task is {task.status.lower()}; it stays as it is.")
    return await _edit(visit, task, _edit_form(task))


async def _edit(visit: Visit, task: pb.PmTask, form: Form, status: int = 200) -> web.Response:
    form = await pickers.fill(visit, form, property_id=task.property_id)
    return visit.render("upkeep/edit.html", status, here=HERE, task=task, form=form)


async def edit(visit: Visit) -> web.StreamResponse:
    task = await _task(visit)
    form = _edit_form(task)
    if await _does(visit, form, UPDATE) is None:
        return await _edit(visit, task, form, form.status)
    return visit.redirect(f"{PATH}/{task.pm_task_id}", form.summary("The task is changed."))


async def complete(visit: Visit) -> web.StreamResponse:
    request = pb.CompletePmTaskRequest(pm_task_id=visit.number("pm_task_id"), idempotency_key=visit.act)
    return await _closes(visit, COMPLETE, request, "completed")


async def cancel(visit: Visit) -> web.StreamResponse:
    request = pb.CancelPmTaskRequest(pm_task_id=visit.number("pm_task_id"), idempotency_key=visit.act)
    return await _closes(visit, CANCEL, request, "cancelled")


async def _closes(visit: Visit, rpc: str, request: Any, done: str) -> web.StreamResponse:
    try:
        task = (await visit.call(rpc, request)).task
    except Refusal as refusal:
        if refusal.status == web.HTTPNotFound.status_code or needs_confirmation(refusal):
            raise
        return await page(visit, refusal.status, error=refusal.message)
    message = f"The task is {done}."
    if task.HasField("next_pm_task_id"):
        following = (await visit.call(GET, pb.GetPmTaskRequest(pm_task_id=task.next_pm_task_id))).task
        message += f" The next one is due {Due(visit).late(following.due_date)}, on {following.due_date}."
    return visit.redirect(f"{PATH}/{request.pm_task_id}", message)
