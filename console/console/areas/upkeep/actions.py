"""What people do with preventive-maintenance tasks: add, edit, complete, cancel."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from chassis.refusals import Refusal
from console.areas.upkeep.pages import GET, HERE, PATH, Due, page
from console.kit import pickers
from console.kit.context import PageContext
from console.kit.forms import Edit, Field, Form
from console.kit.sending import needs_confirmation, send
from console.kit.texts import _
from makeready.tickets.v1 import pm_tasks_pb2 as pb

ADD = "tickets.PmTasksService/AddPmTask"
UPDATE = "tickets.PmTasksService/UpdatePmTask"
COMPLETE = "tickets.PmTasksService/CompletePmTask"
CANCEL = "tickets.PmTasksService/CancelPmTask"
_PRESET = ("property_id", "unit_id", "asset_id", "area", "task_name", "due_date", "repeat_days", "repeat_months")
_TEXT = {"maxlength": "200"}
_PLACE = Field("property_id", _("Property"), kind="picker", required=True)
_FIELDS = (
    Field("task_name", _("Task"), _("For example “Change HVAC filters”."), required=True, more=_TEXT),
    Field("unit_id", _("Unit"), _("Leave blank for an area or the whole property."), kind="picker"),
    Field("area", _("Or area"), _("For example “Boiler room”."), more=_TEXT),
    Field("asset_id", _("Asset"), _("If the task is for one piece of equipment."), kind="picker"),
    Field("due_date", _("Due date"), kind="date", required=True),
    Field("repeat_months", _("Months"), more={"maxlength": "3"}),
    Field("repeat_days", _("Days"), more={"maxlength": "4"}),
    Field("assignee_id", _("Assignee"), kind="picker"),
    Field("external_id", _("External ID"), _("Its ID in another system."), more=_TEXT),
)
_PERIOD = ("repeat_months", "repeat_days")


def _new_form() -> Form:
    return Form(pb.AddPmTaskRequest(), (_FIELDS[0], _PLACE, *_FIELDS[1:]))


def _edit_form(task: pb.PmTask) -> Edit:
    request = pb.UpdatePmTaskRequest(pm_task_id=task.pm_task_id, task_name=task.task_name, due_date=task.due_date)
    for name in ("unit_id", "area", "asset_id", *_PERIOD, "assignee_id", "external_id"):
        if task.HasField(name):  # type: ignore[arg-type]
            setattr(request, name, getattr(task, name))
    return Edit(request, _FIELDS)


def _read(context: PageContext, form: Form) -> bool:
    """Also checks what does not go together, in the words of the form."""
    fits = form.read(context.form)
    if all(form.values[name] for name in _PERIOD):
        form.errors.setdefault("repeat_days", _("Enter months or days, not both."))
    if form.values["unit_id"] and form.values["area"]:
        form.errors.setdefault("area", _("Choose a unit or an area, not both."))
    if form.is_finding:
        form.errors = {}
    return fits and not form.errors


async def _does(context: PageContext, form: Form, rpc: str) -> Any:
    """Reads the form and sends it. Returns the task; None if the form is to be shown again."""
    answer = await send(context, rpc, form) if _read(context, form) else None
    return None if answer is None else answer.task


async def show_new(context: PageContext) -> web.StreamResponse:
    form = _new_form()
    form.preset(context.query, *_PRESET)
    return await _new(context, form)


async def _new(context: PageContext, form: Form, status: int = 200) -> web.Response:
    return context.render("upkeep/new.html", status, here=HERE, form=await pickers.fill(context, form))


async def add(context: PageContext) -> web.StreamResponse:
    form = _new_form()
    task = await _does(context, form, ADD)
    if task is None:
        return await _new(context, form, form.status)
    return context.redirect(f"{PATH}/{task.pm_task_id}", _("Task scheduled."))


async def _task(context: PageContext) -> pb.PmTask:
    response = await context.rpcs.call(GET, pb.GetPmTaskRequest(pm_task_id=context.number("pm_task_id")))
    task: pb.PmTask = response.task
    return task


async def show_edit(context: PageContext) -> web.StreamResponse:
    task = await _task(context)
    if task.status != "Open":
        return context.redirect(
            f"{PATH}/{task.pm_task_id}",
            _("The task is %(status)s and can no longer be edited.") % {"status": task.status.lower()},
        )
    return await _edit(context, task, _edit_form(task))


async def _edit(context: PageContext, task: pb.PmTask, form: Form, status: int = 200) -> web.Response:
    form = await pickers.fill(context, form, property_id=task.property_id)
    return context.render("upkeep/edit.html", status, here=HERE, task=task, form=form)


async def edit(context: PageContext) -> web.StreamResponse:
    task = await _task(context)
    form = _edit_form(task)
    if await _does(context, form, UPDATE) is None:
        return await _edit(context, task, form, form.status)
    return context.redirect(f"{PATH}/{task.pm_task_id}", form.summary(_("Task updated.")))


async def complete(context: PageContext) -> web.StreamResponse:
    request = pb.CompletePmTaskRequest(pm_task_id=context.number("pm_task_id"), idempotency_key=context.form_token)
    return await _closes(context, COMPLETE, request, _("Task completed."))


async def cancel(context: PageContext) -> web.StreamResponse:
    request = pb.CancelPmTaskRequest(pm_task_id=context.number("pm_task_id"), idempotency_key=context.form_token)
    return await _closes(context, CANCEL, request, _("Task cancelled."))


async def _closes(context: PageContext, rpc: str, request: Any, done: str) -> web.StreamResponse:
    try:
        task = (await context.rpcs.call(rpc, request)).task
    except Refusal as refusal:
        if refusal.status == web.HTTPNotFound.status_code or needs_confirmation(refusal):
            raise
        return await page(context, refusal.status, error=refusal.message)
    message = done
    if task.HasField("next_pm_task_id"):
        following = (await context.rpcs.call(GET, pb.GetPmTaskRequest(pm_task_id=task.next_pm_task_id))).task
        message += " " + _("The next one is due %(day)s.") % {"day": Due(context).day(following.due_date).striptags()}
    return context.redirect(context.next_path(f"{PATH}/{request.pm_task_id}"), message)
