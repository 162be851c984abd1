"""Who does make-ready tasks: several are assigned together, and a turn's are put in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from aiohttp import web

from chassis.refusals import Refusal
from console.areas.board.actions import UPDATE_TASK, next_path
from console.areas.board.pages import HERE, TASK, TASKS, TASKS_PATH, render
from console.areas.board.plans import HANDS
from console.kit import pickers
from console.kit.calls import together
from console.kit.context import PageContext
from console.kit.forms import Field, Form
from console.kit.texts import _, ngettext
from makeready.occupancy.v1 import turn_tasks_pb2

ORDER = "occupancy.TurnTasksService/OrderTasks"
ASSIGN_PATH = "/turn-tasks/assign"
SEVERAL_MAX, AT_ONCE = 50, 10
ANSWERED = (400, 404, 409, 422)
_BY_DATE = "date"


@dataclass
class Chosen:
    """Tasks to assign together. errors: why one was refused."""

    tasks: Sequence[turn_tasks_pb2.PlacedTask]
    errors: dict[int, str] = field(default_factory=dict)


def _form() -> Form:
    taken = [("assignee_id", _("Remove the assignee")), ("vendor_id", _("Remove the vendor"))]
    return Form(turn_tasks_pb2.UpdateTaskRequest(), (*HANDS, Field("clear", _("Or unassign"), choices=taken)))


async def _chosen(context: PageContext, texts: Sequence[str]) -> Chosen:
    ids = dict.fromkeys(int(text) for text in texts if text.isascii() and text.isdigit() and 0 < len(text) < 19)
    requests = [turn_tasks_pb2.GetTaskRequest(task_id=task_id) for task_id in ids if task_id][:SEVERAL_MAX]
    tasks = []
    for start in range(0, len(requests), AT_ONCE):
        calls = (context.rpcs.call(TASK, request) for request in requests[start : start + AT_ONCE])
        tasks += [response.task for response in await together(*calls)]
    return Chosen([placed for placed in tasks if placed.task.status == "Open"])


async def show_assign(context: PageContext) -> web.StreamResponse:
    chosen = await _chosen(context, context.request.query.getall("task", []))
    return await _page(context, chosen, _form())


async def _page(context: PageContext, chosen: Chosen, form: Form, status: int = 200) -> web.StreamResponse:
    await pickers.fill(context, form)
    back = next_path(context, TASKS_PATH)
    return render(context, "assign_tasks", status, here=HERE, chosen=chosen, form=form, back=back)


async def assign(context: PageContext) -> web.StreamResponse:
    """Assigns each task by an action of its own: sent again, it does what is left to do."""
    chosen, form = await _chosen(context, context.form.getall("task", [])), _form()
    if not form.read(context.form):
        return await _page(context, chosen, form, form.status)
    if not chosen.tasks:
        form.fault = _("Choose at least one open task.")
    elif not form.message.clear and not form.message.assignee_id and not form.message.vendor_id:
        form.fault = _("Choose a member of staff or a vendor, or unassign.")
    if form.fault:
        return await _page(context, chosen, form, 422)
    for start in range(0, len(chosen.tasks), AT_ONCE):
        part = chosen.tasks[start : start + AT_ONCE]
        await together(*(_assign_one(context, chosen, form, placed.task.task_id) for placed in part))
    done = len(chosen.tasks) - len(chosen.errors)
    if not chosen.errors:
        words = ngettext("The task is assigned.", "%(count)s tasks are assigned.", done) % {"count": done}
        if form.message.clear:
            words = ngettext("The task is changed.", "%(count)s tasks are changed.", done) % {"count": done}
        return context.redirect(next_path(context, TASKS_PATH), words)
    form.fault = _("%(done)s of %(all)s tasks are assigned. The others are listed with the reason.") % {
        "done": done, "all": len(chosen.tasks),
    }  # fmt: skip
    chosen.tasks = [placed for placed in chosen.tasks if placed.task.task_id in chosen.errors]
    return await _page(context, chosen, form, 422)


async def _assign_one(context: PageContext, chosen: Chosen, form: Form, task_id: int) -> None:
    request = turn_tasks_pb2.UpdateTaskRequest()
    request.CopyFrom(form.message)
    request.idempotency_key, request.task_id = f"{context.form_token}.{task_id}", task_id
    try:
        await context.rpcs.call(UPDATE_TASK, request)
    except Refusal as refusal:
        if refusal.status not in ANSWERED:
            raise
        chosen.errors[task_id] = refusal.message


async def order(context: PageContext) -> web.StreamResponse:
    """Moves one open task up or down in its turn's order; or orders all of them by their dates again."""
    turn_id = context.number("turn_id")
    request = turn_tasks_pb2.OrderTasksRequest(idempotency_key=context.form_token, turn_id=turn_id)
    sent: Mapping[str, str] = context.form
    if sent.get("by") != _BY_DATE:
        tasks = (await context.rpcs.call(TASKS, turn_tasks_pb2.ListTasksRequest(turn_id=turn_id))).tasks
        ids = [task.task_id for task in tasks if task.status == "Open"]
        request.task_ids.extend(moved(ids, sent.get("task", ""), is_up=sent.get("by") == "up"))
    await context.rpcs.call(ORDER, request)
    words = (
        _("The tasks are in the order of their dates.") if sent.get("by") == _BY_DATE else _("The order is changed.")
    )
    return context.redirect(f"/turns/{turn_id}#tasks", words)


def moved(ids: Sequence[int], text: str, *, is_up: bool) -> list[int]:
    """The ids, with the one in the text a place further up or down; as they are if it is none of them."""
    order_now = list(ids)
    place = next((number for number, task_id in enumerate(order_now) if str(task_id) == text), None)
    if place is not None:
        other = place - 1 if is_up else place + 1
        if 0 <= other < len(order_now):
            order_now[place], order_now[other] = order_now[other], order_now[place]
    return order_now
