"""Templates of make-ready tasks: administrators keep them, and people add a template's tasks to a turn in one act."""

from __future__ import annotations

import re
from collections.abc import Sequence

from aiohttp import web

from chassis.refusals import Refusal
from console.areas.board.ordering import moved
from console.areas.board.pages import HERE, TEMPLATES, TEMPLATES_PATH, render
from console.areas.board.plans import HANDS, TASK_MAX
from console.kit import pickers
from console.kit.context import PageContext
from console.kit.forms import Edit, Field, Form
from console.kit.sending import send
from console.kit.texts import _
from makeready.occupancy.v1 import turn_templates_pb2 as pb

ADD = "occupancy.TurnTemplatesService/AddTurnTemplate"
UPDATE = "occupancy.TurnTemplatesService/UpdateTurnTemplate"
REMOVE = "occupancy.TurnTemplatesService/RemoveTurnTemplate"
LINES_CHARACTERS_MAX = 12_000
# "Paint, 2": a task, and its days after the move-out.
_LINE = re.compile(r"(?P<task_type>.*?)(?:\s*[,;:]\s*(?P<days>[-+]?\d{1,3}))?")


def _path(template_id: int) -> str:
    return f"{TEMPLATES_PATH}/{template_id}"


async def _templates(context: PageContext) -> Sequence[pb.TurnTemplate]:
    response: pb.ListTurnTemplatesResponse = await context.rpcs.call(TEMPLATES, pb.ListTurnTemplatesRequest())
    return response.templates


async def _template(context: PageContext) -> pb.TurnTemplate:
    template_id = context.number("template_id")
    template = next((each for each in await _templates(context) if each.template_id == template_id), None)
    if template is None:
        raise web.HTTPNotFound
    return template


async def list_templates(context: PageContext) -> web.StreamResponse:
    return render(context, "templates", here=HERE, templates=await _templates(context))


def _units() -> tuple[Field, ...]:
    """The fields that say what a template is for."""
    return (
        Field("name", _("Name"), required=True, more=TASK_MAX | {"placeholder": _("Standard turn")}),
        Field("property_id", _("Property"), _("Empty: offered in all properties."), kind="picker"),
        Field("floorplan", _("Floorplan"), _("The floorplan's name, for example A1. Empty: for all floorplans."),
              more=TASK_MAX),
    )  # fmt: skip


async def show_new(context: PageContext) -> web.StreamResponse:
    return await _new_page(context, Form(pb.AddTurnTemplateRequest(), _units()), "")


async def _new_page(
    context: PageContext, form: Form, lines: str, error: str = "", status: int = 200
) -> web.StreamResponse:
    await pickers.fill(context, form)
    return render(context, "new_template", status, here=HERE, form=form, lines=lines, error=error)


async def add(context: PageContext) -> web.StreamResponse:
    form, lines = Form(pb.AddTurnTemplateRequest(), _units()), context.form.get("lines", "")
    tasks, error = tasks_of(lines)
    is_read = form.read(context.form)
    if form.is_finding:
        return await _new_page(context, form, lines)
    if not is_read or error:
        return await _new_page(context, form, lines, error, 422)
    form.message.tasks.extend(tasks)
    response = await send(context, ADD, form)
    if response is None:
        return await _new_page(context, form, lines, status=422)
    words = _("Template “%(name)s” is added. Say here who does which task.") % {"name": response.template.name}
    return context.redirect(_path(response.template.template_id), words)


def tasks_of(lines: str) -> tuple[list[pb.NewTemplateTask], str]:
    """The tasks of a text, one a line, each with its days after the move-out behind a comma; and what is wrong with
    them, empty if nothing is."""
    tasks = []
    for line in lines[: LINES_CHARACTERS_MAX + 1].splitlines():
        match = _LINE.fullmatch(line.strip())
        if match and match["task_type"]:
            task = pb.NewTemplateTask(task_type=match["task_type"])
            if match["days"]:
                task.days_after_move_out = int(match["days"])
            tasks.append(task)
    if len(lines) > LINES_CHARACTERS_MAX:
        return tasks, _("The tasks are too long.")
    return tasks, "" if tasks else _("Write at least one task.")


def _unit_form(template: pb.TurnTemplate) -> Edit:
    message = pb.UpdateTurnTemplateRequest(template_id=template.template_id, name=template.name)
    if template.HasField("property_id"):
        message.property_id = template.property_id
    if template.HasField("floorplan"):
        message.floorplan = template.floorplan
    return Edit(message, _units())


def _task_form(task: pb.TurnTemplateTask | None = None) -> Form:
    message = pb.NewTemplateTask()
    if task is not None:
        message = _kept(task)
    return Form(
        message,
        [
            Field("task_type", _("Task"), required=True,
                  more=TASK_MAX | {"placeholder": _("Paint, floors, final walk …")}),
            Field("days_after_move_out", _("Days after move-out"), _("Empty: without a date."),
                  more={"min": "-365", "max": "365"}),
            *HANDS,
        ],
    )  # fmt: skip


def _kept(task: pb.TurnTemplateTask) -> pb.NewTemplateTask:
    """The task as it is set."""
    new = pb.NewTemplateTask(task_type=task.task_type)
    for name in ("days_after_move_out", "assignee_id", "vendor_id"):
        if task.HasField(name):
            setattr(new, name, getattr(task, name))
    return new


async def show(context: PageContext) -> web.StreamResponse:
    template = await _template(context)
    return await _page(context, template, _unit_form(template), _task_form())


async def _page(
    context: PageContext, template: pb.TurnTemplate, form: Form, new: Form, status: int = 200, error: str = ""
) -> web.StreamResponse:
    await pickers.fill(context, form, prefix="of-")
    await pickers.fill(context, new, prefix="new-")
    return render(
        context, "template", status, here=HERE, template=template, form=form, new=new, error=error,
        path=_path(template.template_id),
    )  # fmt: skip


async def update(context: PageContext) -> web.StreamResponse:
    template = await _template(context)
    form = _unit_form(template)
    if not form.read(context.form):
        return await _page(context, template, form, _task_form(), form.status)
    if form.changed and await send(context, UPDATE, form) is None:
        return await _page(context, template, form, _task_form(), 422)
    return context.redirect(_path(template.template_id), form.summary(_("The template is changed.")))


async def add_task(context: PageContext) -> web.StreamResponse:
    template = await _template(context)
    form = _task_form()
    if not form.read(context.form):
        return await _page(context, template, _unit_form(template), form, form.status)
    tasks = [*map(_kept, template.tasks), form.message]
    if not await _save(context, template, tasks, form):
        return await _page(context, template, _unit_form(template), form, 422)
    words = _("Task “%(task)s” is added to the template.") % {"task": form.message.task_type}
    return context.redirect(_path(template.template_id), words)


async def _save(
    context: PageContext, template: pb.TurnTemplate, tasks: Sequence[pb.NewTemplateTask], form: Form
) -> bool:
    """Replaces the template's tasks. Returns whether that was done; else the form says why not."""
    request = pb.UpdateTurnTemplateRequest(
        idempotency_key=context.form_token, template_id=template.template_id, tasks=tasks, version=template.version
    )
    try:
        await context.rpcs.call(UPDATE, request)
    except Refusal as refusal:
        if refusal.status == web.HTTPNotFound.status_code and not refusal.field:
            raise
        form.refuse(refusal)
        return False
    return True


def _numbered(context: PageContext, template: pb.TurnTemplate) -> int:
    """The place of the task in the page's path, from 0. Raises HTTPNotFound."""
    number = context.number("number")
    if not 0 < number <= len(template.tasks):
        raise web.HTTPNotFound
    return number - 1


async def show_task(context: PageContext) -> web.StreamResponse:
    template = await _template(context)
    number = _numbered(context, template)
    return await _task_page(context, template, number, _task_form(template.tasks[number]))


async def _task_page(
    context: PageContext, template: pb.TurnTemplate, number: int, form: Form, status: int = 200
) -> web.StreamResponse:
    await pickers.fill(context, form)
    return render(
        context, "template_task", status, here=HERE, template=template, task=template.tasks[number], form=form,
        path=_path(template.template_id), number=number + 1,
        seen=context.form.get("seen_task", template.tasks[number].task_type),
    )  # fmt: skip


async def change_task(context: PageContext) -> web.StreamResponse:
    """Changes a task of a template, moves it up or down, or removes it."""
    template = await _template(context)
    number, act = _numbered(context, template), context.form.get("do", "")
    tasks, form = [_kept(task) for task in template.tasks], _task_form(template.tasks[number])
    if context.form.get("seen_task", "") != template.tasks[number].task_type:
        form.fault = _("Another person has changed the template meanwhile; look at it again.")
        return await _page(context, template, _unit_form(template), _task_form(), 422, form.fault)
    if act in ("up", "down"):
        places = moved(range(len(tasks)), str(number), is_up=act == "up")
        tasks, words = [tasks[place] for place in places], _("The order is changed.")
    elif act == "remove":
        words = _("Task “%(task)s” is removed from the template.") % {"task": tasks.pop(number).task_type}
    else:
        if not form.read(context.form):
            return await _task_page(context, template, number, form, form.status)
        tasks[number], words = form.message, _("Task “%(task)s” is changed.") % {"task": form.message.task_type}
    if tasks and await _save(context, template, tasks, form):
        return context.redirect(_path(template.template_id), words)
    if act:
        error = form.fault or _("A template has at least one task. Remove the whole template instead.")
        return await _page(context, template, _unit_form(template), _task_form(), 422, error)
    return await _task_page(context, template, number, form, 422)


async def remove(context: PageContext) -> web.StreamResponse:
    request = pb.RemoveTurnTemplateRequest(
        idempotency_key=context.form_token, template_id=context.number("template_id")
    )
    template = (await context.rpcs.call(REMOVE, request)).template
    return context.redirect(TEMPLATES_PATH, _("Template “%(name)s” is removed.") % {"name": template.name})
