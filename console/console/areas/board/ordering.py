"""The order of a turn's make-ready tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aiohttp import web

from console.areas.board.pages import TASKS
from console.kit.context import PageContext
from console.kit.texts import _
from makeready.occupancy.v1 import turn_tasks_pb2

ORDER = "occupancy.TurnTasksService/OrderTasks"
_BY_DATE = "date"


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
