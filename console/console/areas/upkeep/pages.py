"""The pages of preventive-maintenance tasks."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from aiohttp import web
from markupsafe import Markup

from console.kit import csv_files, links, times
from console.kit.calls import together
from console.kit.context import PageContext
from console.kit.panels import include
from console.kit.texts import _, ngettext
from makeready.tickets.v1 import pm_tasks_pb2 as pb

HERE = "Preventive maintenance"
PATH = "/pm-tasks"
LIST = "tickets.PmTasksService/ListPmTasks"
GET = "tickets.PmTasksService/GetPmTask"
COUNT = "tickets.PmTasksService/CountPmTasks"
LISTS = (LIST, COUNT)

SHOWN, CSV_ROWS, PART_ROWS, WORK_ROWS = 50, 1000, 8, 100
WEEK_DAYS = 6
VIEWS = {
    "open": _("Open"), "overdue": _("Overdue"), "week": _("This week"), "later": _("Later"), "closed": _("Closed"),
}  # fmt: skip
PLACES = {"property": "property_id", "unit": "unit_id", "asset": "asset_id"}


@dataclass(frozen=True, slots=True)
class Group:
    """Tasks that are due in the same stretch of time; an empty name for the only group."""

    name: str
    tone: str
    tasks: Sequence[pb.PmTask]


def grouped(tasks: Iterable[pb.PmTask], today: datetime.date) -> list[Group]:
    """Open tasks by when they are due, in their order."""
    week_end = today + datetime.timedelta(days=WEEK_DAYS)
    groups: dict[str, list[pb.PmTask]] = {"overdue": [], "week": [], "later": []}
    for task in tasks:
        due = datetime.date.fromisoformat(task.due_date)
        groups["overdue" if due < today else "week" if due <= week_end else "later"].append(task)
    tones = {"overdue": "in-red", "week": "in-amber", "later": ""}
    return [Group(VIEWS[name], tones[name], rows) for name, rows in groups.items() if rows]


class Due:
    """Words for due dates, by the company's clock."""

    def __init__(self, context: PageContext) -> None:
        self.today = context.wall.now.date()

    def day(self, date: str) -> Markup:
        """ "Fri 20 Nov", or "1 March 2027" in another year, in a `time` element."""
        day = datetime.date.fromisoformat(date)
        same_year = day.year == self.today.year
        words = f"{day:%a} {day.day} {day:%b}" if same_year else f"{day.day} {day:%B} {day.year}"
        return Markup('<time datetime="{}">{}</time>').format(date, words)

    def late(self, date: str) -> str:
        """ "3 days overdue", "today", "in 5 days" """
        days = (datetime.date.fromisoformat(date) - self.today).days
        if days in (0, 1):
            return (_("today"), _("tomorrow"))[days]
        if days > 0:
            return ngettext("in %(num)s day", "in %(num)s days", days) % {"num": days}
        return ngettext("%(num)s day overdue", "%(num)s days overdue", -days) % {"num": -days}

    def is_late(self, task: pb.PmTask) -> bool:
        return task.status == "Open" and datetime.date.fromisoformat(task.due_date) < self.today


def period(task: pb.PmTask) -> str:
    """ "every 3 months"; empty for a task that does not repeat."""
    for number, name in ((task.repeat_days, "day"), (task.repeat_months, "month")):
        if number:
            return f"every {name}" if number == 1 else f"every {times.count(number, name)}"
    return ""


def _request(context: PageContext, view: str) -> tuple[pb.ListPmTasksRequest, dict[str, str]]:
    """The list that the address asks for, and its filters as they stand there."""
    request = pb.ListPmTasksRequest(order=pb.PM_TASK_ORDER_DUE, limit=SHOWN, open=view != "closed")
    query: dict[str, str] = {} if view == "open" else {"view": view}
    for name, field in PLACES.items():
        text = context.query.get(name, "")
        if text.isascii() and text.isdigit() and 0 < len(text) < 19:
            setattr(request, field, int(text))
            query[name] = text
    today = context.wall.now.date()
    day = datetime.timedelta(days=1)
    if view == "overdue":
        request.due_to = (today - day).isoformat()
    elif view == "week":
        request.due_from, request.due_to = today.isoformat(), (today + WEEK_DAYS * day).isoformat()
    elif view == "later":
        request.due_from = (today + (WEEK_DAYS + 1) * day).isoformat()
    return request, query


async def list_tasks(context: PageContext) -> web.StreamResponse:
    view = context.query.get("view", "open")
    view = view if view in VIEWS else "open"
    request, query = _request(context, view)
    if "csv" in context.query:
        request.limit = CSV_ROWS
        return _csv((await context.rpcs.call(LIST, request)).tasks)
    for name in ("after", "before"):
        if cursor := context.query.get(name, ""):
            setattr(request, name, cursor)
            break
    page, counts = await together(context.rpcs.call(LIST, request), context.rpcs.panel(COUNT, pb.CountPmTasksRequest()))
    due = Due(context)
    numbers = {}
    if counts.ok:
        numbers = {"overdue": counts.overdue, "week": counts.this_week, "later": counts.later}
        numbers["open"] = sum(numbers.values())
    places = {name: value for name, value in query.items() if name != "view"}
    tabs = [
        (words + (f" {numbers[name]:,}" if name in numbers else ""),
         links.with_query(PATH, {"view": "" if name == "open" else name, **places}), name == view)
        for name, words in VIEWS.items()
    ]  # fmt: skip
    groups = grouped(page.tasks, due.today) if view == "open" else [Group("", "", page.tasks)]
    names = {name: getattr(page.tasks[0], name, "") for name in places} if page.tasks else {}
    chips = [
        (f"{name.capitalize()} {names.get(name) or value}", _without(query, name)) for name, value in places.items()
    ]
    return context.render(
        "upkeep/list.html", here=HERE, view=view, page=page, counts=counts, groups=groups, tabs=tabs, due=due,
        period=period, chips=chips, unit_path=unit_path,
        next=links.with_query(PATH, {**query, "after": page.next}) if page.HasField("next") else "",
        previous=links.with_query(PATH, {**query, "before": page.previous}) if page.HasField("previous") else "",
        csv_path=links.with_query(PATH, {**query, "csv": 1}), is_filtered=bool(places),
        plan=_plan_path(context, {PLACES[name]: value for name, value in places.items()}),
    )  # fmt: skip


def _plan_path(context: PageContext, values: Mapping[str, object]) -> str:
    """The form of a new task with these values; empty for one who may not open it."""
    return links.with_query(f"{PATH}/new", values) if context.navigation.opens(f"{PATH}/new") else ""


def _without(query: dict[str, str], name: str) -> str:
    return links.with_query(PATH, {key: value for key, value in query.items() if key != name})


def _csv(tasks: Iterable[pb.PmTask]) -> web.Response:
    header = (
        "id",
        "task_name",
        "status",
        "due_date",
        "property",
        "unit",
        "assignee",
        "repeats",
        "completed_at",
        "external_id",
    )
    return csv_files.answer(
        "upkeep",
        header,
        (
            (task.pm_task_id, task.task_name, task.status, task.due_date, task.property, task.unit,
             task.assignee_name, period(task),
             task.completed_at.ToJsonString() if task.HasField("completed_at") else "", task.external_id)
            for task in tasks
        ),
    )  # fmt: skip


async def show_task(context: PageContext) -> web.StreamResponse:
    return await page(context)


async def page(context: PageContext, status: int = 200, *, error: str = "") -> web.Response:
    """One task. error: why an action was refused."""
    task_id = context.number("pm_task_id")
    response = await context.rpcs.call(GET, pb.GetPmTaskRequest(pm_task_id=task_id))
    task = response.task
    tickets, events, audit = await together(
        include(context, "/tickets/panel", asset_id=task.asset_id) if task.HasField("asset_id") else _nothing(),
        include(context, "/events/panel", kind="pm_task", id=task_id),
        include(context, "/audit/panel", kind="pm_task", id=task_id),
    )
    return context.render(
        "upkeep/task.html", status, here=HERE, error=error, response=response, task=task,
        chain=[*response.earlier, task, *response.later],
        due=Due(context), period=period(task), panels=[tickets, events, audit], unit_path=unit_path(context, task),
    )  # fmt: skip


async def _nothing() -> str:
    return ""


def unit_path(context: PageContext, task: pb.PmTask) -> str:
    """The page of the task's unit; empty if there is none."""
    if not task.unit_id or not context.navigation.opens("/properties/{property_id}/units/{unit_id}"):
        return ""
    return f"/properties/{task.property_id}/units/{task.unit_id}"


async def work(context: PageContext) -> web.StreamResponse:
    """The open tasks of a member of staff, for their list of work."""
    staff_id = context.query.get("staff_id", "")
    if not (staff_id.isascii() and staff_id.isdigit() and len(staff_id) < 19):
        raise web.HTTPNotFound
    request = pb.ListPmTasksRequest(order=pb.PM_TASK_ORDER_DUE, limit=WORK_ROWS, open=True, assignee_id=int(staff_id))
    page = await context.rpcs.call(LIST, request)
    return context.render("upkeep/work.html", tasks=page.tasks, has_more=page.HasField("next"))


async def panel(context: PageContext) -> web.StreamResponse:
    """The open tasks of a property, unit or asset."""
    # The narrowest place counts; the others are for the form of a new task.
    narrowest = reversed(PLACES.items())
    name, field = next(((name, field) for name, field in narrowest if context.query.get(field)), ("", ""))
    text = context.query.get(field, "")
    if not (text.isascii() and text.isdigit() and 0 < len(text) < 19):
        raise web.HTTPNotFound
    request = pb.ListPmTasksRequest(order=pb.PM_TASK_ORDER_DUE, limit=PART_ROWS, open=True)
    setattr(request, field, int(text))
    page = await context.rpcs.call(LIST, request)
    return context.render(
        "upkeep/panel.html", tasks=page.tasks, has_more=page.HasField("next"), name=name, due=Due(context),
        period=period, path=links.with_query(PATH, {name: text}),
        plan=_plan_path(context, {key: context.query.get(key) for key in PLACES.values()}),
    )  # fmt: skip


async def home(context: PageContext) -> web.StreamResponse:
    """The first page's count of tasks that are overdue."""
    counts = await context.rpcs.call(COUNT, pb.CountPmTasksRequest())
    return context.render("upkeep/home.html", counts=counts, due=Due(context))
