"""The pages of svc-occupancy: the turn board, turns, make-ready tasks, and the residencies of units."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from aiohttp import web

from console.areas.board import bulk, cards, forgetting, residencies, rows
from console.areas.board.bulk import TASK, TASKS_PATH
from console.areas.board.cards import UNDER_WAY, Card, Days
from console.areas.board.plans import PLAN, fitting, plan_of
from console.areas.board.weeks import weeks
from console.kit import csv_files, pickers
from console.kit.browser_session import STAFF
from console.kit.calls import together
from console.kit.context import PageContext
from console.kit.links import with_query
from console.kit.names import RPC as NAMES_RPC
from console.kit.names import names_of
from console.kit.panels import include
from console.kit.records import Record, record_of
from console.kit.texts import _
from makeready.occupancy.v1 import residencies_pb2, turn_board_pb2, turn_tasks_pb2, turn_templates_pb2, turns_pb2

HERE = "Turn board"
PATH, TURNS_PATH, TEMPLATES_PATH = "/board", "/turns", "/turn-templates"
BOARD = "occupancy.TurnBoardService/ListBoard"
UNIT = "occupancy.TurnBoardService/GetBoardUnit"
COUNTS = "occupancy.TurnBoardService/CountBoard"
CHANGES = "occupancy.TurnBoardService/ListUnitStatusChanges"
TURN = "occupancy.TurnsService/GetTurn"
TURNS = "occupancy.TurnsService/ListTurns"
TASKS = "occupancy.TurnTasksService/ListTasks"
TEMPLATES = "occupancy.TurnTemplatesService/ListTurnTemplates"
OPEN_TASKS = "occupancy.TurnTasksService/ListOpenTasks"
RESIDENCIES = "occupancy.ResidenciesService/ListResidencies"
NAMES = NAMES_RPC

WORK_ROWS = 100
SHOWN, CSV_ROWS, CSV_UNITS, CARDS, ON_HOME, CLASHES, FEW = 50, 200, 5000, 20, 7, 6, 5
RECENT_DAYS = 31
"""So long after a move-in its page offers that nobody came."""
VIEWS = (("board", "Board"), ("weeks", "Weeks"), ("list", "List"))
UNASSIGNED = "unassigned"
TURN_STATUSES = ("Active", "Completed", "Cancelled")
UNIT_PAGE = re.compile(r"/properties/\{\w+\}/units/\{\w+\}")


def number(context: PageContext, name: str) -> int:
    """A number of the query; 0 for one that no record can have."""
    text = context.query.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0


def today(context: PageContext) -> Days:
    return Days(context.wall.now.date())


def unit_path(context: PageContext, property_id: int, unit_id: int) -> str:
    """The unit's own page; its residencies where there is none."""
    has_page = any(UNIT_PAGE.fullmatch(page.path) for page in context.site.pages)
    return f"/properties/{property_id}/units/{unit_id}" if has_page else f"/units/{unit_id}/transitions"


def render(context: PageContext, template: str, status: int = 200, /, **values: object) -> web.Response:
    """A page of the area, with what all its templates use."""
    return context.render(
        f"board/{template}.html", status, moves=cards.moves, days=today(context), tags=cards.TAGS,
        turn_tags=cards.TURN_TAGS,
        task_tags=cards.TASK_TAGS, is_late=cards.is_late, date_of=cards.date_of,
        unit_path=lambda *ids: unit_path(context, *ids),
        keeps_templates=context.navigation.opens(TEMPLATES_PATH), **values,
    )  # fmt: skip


def _request(context: PageContext, **more: Any) -> turn_board_pb2.ListBoardRequest:
    if property_id := number(context, "property_id"):
        more["property_id"] = property_id
    return turn_board_pb2.ListBoardRequest(**more)


def _cards(context: PageContext, units: Sequence[turn_board_pb2.BoardUnit]) -> list[Card]:
    return [cards.card_of(unit, today(context), context.wall.zone) for unit in units]


async def show_board(context: PageContext) -> web.StreamResponse:
    """One of three views of the same units."""
    view = context.query.get("view", "")
    if view == "list":
        return await _list(context)
    property_id = number(context, "property_id")
    requests = [_request(context, unit_statuses=[status], with_tasks=True, limit=CARDS) for status in UNDER_WAY]
    if view == "weeks":
        after = {"after": context.query["after"]} if context.query.get("after") else {}
        requests = [_request(context, under_way=True, with_tasks=True, limit=SHOWN, **after)]
    else:
        view = "board"
    counted, chosen, clashing, templates, *pages = await together(
        *_counts(context, property_id),
        context.rpcs.call(BOARD, _clashes(context)),
        context.rpcs.panel(TEMPLATES, turn_templates_pb2.ListTurnTemplatesRequest()),
        *(context.rpcs.call(BOARD, request) for request in requests),
    )
    head, clashes = _head(context, view, counted, chosen), _cards(context, clashing.units)
    if view == "weeks":
        (page,) = pages
        days, shown_cards = today(context), _cards(context, page.units)
        return render(
            context, "weeks", here=HERE, board=head, property_id=property_id, back=context.address, clashes=clashes,
            weeks=weeks(shown_cards, days, context.wall.zone), older=_next(context, page),
        )  # fmt: skip
    by_status = {row.unit_status: row.units for row in head.counts.statuses}
    columns = [
        (status, by_status.get(status, 0), _cards(context, page.units))
        for status, page in zip(UNDER_WAY, pages, strict=True)
    ]
    return render(
        context, "board", here=HERE, board=head, property_id=property_id, back=context.address, clashes=clashes,
        columns=columns,
        templates_of=lambda unit: fitting(
            templates.templates if templates.ok else (), unit.property_id, unit.floorplan
        ),
    )  # fmt: skip


def _clashes(context: PageContext) -> turn_board_pb2.ListBoardRequest:
    """The units in which a resident is still there when the next one moves in. The columns lack the occupied ones."""
    return _request(context, clashes=True, limit=CLASHES)


def _counts(context: PageContext, property_id: int) -> list[Awaitable[turn_board_pb2.CountBoardResponse | None]]:
    """Of the company, for the choice of a property, and of what is shown."""
    every = context.rpcs.call(COUNTS, turn_board_pb2.CountBoardRequest())
    if not property_id:
        return [every, _nothing()]
    return [every, context.rpcs.call(COUNTS, turn_board_pb2.CountBoardRequest(property_id=property_id))]


async def _nothing() -> None:
    return None


@dataclass(frozen=True, slots=True)
class BoardHead:
    """The head of the board's three views. counts: of what is shown; properties: with the numbers of their units."""

    view: str
    views: Sequence[tuple[str, str, bool]]
    """The words of each, its path, and whether it is this one."""
    counts: turn_board_pb2.CountBoardResponse
    properties: Sequence[turn_board_pb2.PropertyCount]
    property_id: int
    """The property that is shown alone; 0 for all."""

    @property
    def property_name(self) -> str:
        return next((row.property for row in self.properties if row.property_id == self.property_id), "")

    @property
    def under_way(self) -> int:
        """The number of units whose turn is under way."""
        return sum(row.units for row in self.counts.statuses if row.unit_status in UNDER_WAY)


def _head(
    context: PageContext,
    view: str,
    of_company: turn_board_pb2.CountBoardResponse,
    of_property: turn_board_pb2.CountBoardResponse | None,
) -> BoardHead:
    views = [(words, _path(context, view=name), name == view) for name, words in VIEWS]
    return BoardHead(view, views, of_property or of_company, of_company.properties, number(context, "property_id"))


def _path(context: PageContext, **values: object) -> str:
    """The board with the filters of this context, and with these values."""
    kept = {name: context.query.get(name, "") for name in ("view", "property_id", "status", "clashes")} | values
    if kept["view"] == "board":
        kept["view"] = ""
    if kept["view"] != "list":
        kept["status"] = kept["clashes"] = ""
    return with_query(PATH, kept)


def _next(context: PageContext, page: turn_board_pb2.ListBoardResponse) -> str:
    if page.HasField("next_after_id"):  # in the order of ids
        return _path(context, after=page.next_after_id)
    return _path(context, after=page.next_after) if page.HasField("next_after") else ""


async def _list(context: PageContext) -> web.StreamResponse:
    status, property_id = context.query.get("status", ""), number(context, "property_id")
    clashes = bool(context.query.get("clashes"))
    choices: dict[str, Any] = {"unit_statuses": [status] if status in UNDER_WAY else list(UNDER_WAY)}
    after: dict[str, Any] = {"after": context.query["after"]} if context.query.get("after") else {}
    if clashes:
        choices, after = {"clashes": True}, {"after_id": number(context, "after")} if number(context, "after") else {}
    if "csv" in context.query:
        page = await context.rpcs.call(BOARD, _request(context, limit=CSV_UNITS, **choices, **after))
        return _csv_of_units(_cards(context, page.units))
    request = _request(context, limit=SHOWN, with_tasks=True, **choices, **after)
    counted, chosen, page = await together(*_counts(context, property_id), context.rpcs.call(BOARD, request))
    return render(
        context, "list", cards=_cards(context, page.units), older=_next(context, page), later=bool(after), only=status,
        csv_path=_path(context, csv=1), all_path=_path(context, status="", property_id="", clashes=""),
        statuses=UNDER_WAY, only_clashes=clashes,
        here=HERE, board=_head(context, "list", counted, chosen), property_id=property_id, back=context.address,
    )  # fmt: skip


def _csv_of_units(board_cards: Sequence[Card]) -> web.Response:
    header = (
        "unit_id", "unit", "property_id", "property", "unit_status", "since", "since_or_earlier", "turn_id",
        "move_out_date", "has_left", "projected_ready_on", "next_move_in", "next_turn_id", "next_resident",
        "tasks_open", "tasks_late", "late", "clash", "soon",
    )  # fmt: skip
    rows = []
    for card in board_cards:
        unit = card.unit
        rows.append([
            unit.unit_id, unit.name, unit.property_id, unit.property, unit.unit_status,
            csv_files.stamp(unit.unit_status_since), "yes" if unit.since_or_earlier else "no",
            unit.turn_id or "", unit.move_out_date, "yes" if unit.has_left else "no", unit.projected_ready_on,
            unit.next_move_in, unit.next_turn_id or "", unit.next_resident, unit.tasks_open, unit.tasks_late, card.late,
            card.clash, card.soon,
        ])  # fmt: skip
    return csv_files.answer("turn-board", header, rows)


async def list_turns(context: PageContext) -> web.StreamResponse:
    """All turns, those that are over too, in the order of their ids."""
    names = ("property_id", "unit_id")
    filters: dict[str, Any] = {name: number(context, name) or "" for name in names}
    filters["status"] = context.query.get("status", "") if context.query.get("status") in TURN_STATUSES else ""
    rows = CSV_ROWS if "csv" in context.query else SHOWN
    request = turns_pb2.ListTurnsRequest(after_id=number(context, "after"), limit=rows)
    for name in names:
        if filters[name]:
            setattr(request, name, filters[name])
    if filters["status"]:
        request.status = turns_pb2.TurnStatus.Value(f"TURN_STATUS_{filters['status'].upper()}")
    page = (await context.rpcs.call(TURNS, request)).page
    turns = json.loads(page.data or b"[]")
    if "csv" in context.query:
        return _csv_of_turns(turns)
    after = page.next_after_id if page.HasField("next_after_id") else ""
    return render(
        context, "turns", here=HERE, turns=turns, filters=filters, statuses=TURN_STATUSES,
        later=number(context, "after"), older=with_query(TURNS_PATH, {**filters, "after": after}) if after else "",
        csv_path=with_query(TURNS_PATH, {**filters, "after": context.query.get("after", ""), "csv": 1}),
    )  # fmt: skip


def _csv_of_turns(turns: Sequence[Record]) -> web.Response:
    names = (
        "entity_id", "status", "move_in_date", "move_out_date", "projected_ready_on", "occupancy_source", "external_id",
        "source", "created_at", "updated_at",
    )  # fmt: skip
    header = (*names, "unit_id", "unit", "property_id", "property")
    rows = [
        [*(turn[name] for name in names), turn["unit"]["id"], turn["unit"]["name"], turn["property"]["id"],
         turn["property"]["name"]]
        for turn in turns
    ]  # fmt: skip
    return csv_files.answer("turns", header, rows)


async def show_turn(context: PageContext) -> web.StreamResponse:
    turn_id = context.number("turn_id")
    turn = record_of((await context.rpcs.call(TURN, turns_pb2.GetTurnRequest(turn_id=turn_id))).document)
    unit_id = turn["unit"]["id"]
    response, templates, tasks, tickets, events, audit = await together(
        context.rpcs.panel(UNIT, turn_board_pb2.GetBoardUnitRequest(unit_id=unit_id)),
        context.rpcs.panel(TEMPLATES, turn_templates_pb2.ListTurnTemplatesRequest()),
        context.rpcs.panel(TASKS, turn_tasks_pb2.ListTasksRequest(turn_id=turn_id)),
        include(context, "/tickets/panel", unit_id=unit_id),
        include(context, "/events/panel", kind="turn", id=turn_id),
        include(context, "/audit/panel", kind="turn", id=turn_id),
    )
    days = today(context)
    now = cards.card_of(response.unit, days, context.wall.zone) if response.ok else None
    late = sum(cards.is_late(task, days.today) for task in tasks.tasks) if tasks.ok else 0
    stay, before, _ = rows.stay_of(response.value, turn_id) if response.ok else (None, None, None)
    came = cards.date_of(turn["move_in_date"] or "")
    is_now = response.ok and response.unit.turn_id == turn_id
    plan = plan_of(response.unit) if is_now else None
    if plan is not None:
        await pickers.fill(context, plan.task, prefix=PLAN)
    place = (turn["property"]["id"], response.unit.floorplan if response.ok else "")
    return render(
        context, "turn", here=HERE, turn=turn, response=response, now=now, tasks=tasks, late=late,
        is_now=is_now, plan=plan,
        templates=fitting(templates.templates, *place) if templates.ok and turn["status"] == "Active" else (),
        others=(tickets, audit, events), changed=_instant(turn["updated_at"]), fed=_instant(turn["occupancy_fed_at"]),
        stay=stay, before=before,
        is_clash=response.ok and any(planned.is_clash for planned in response.planned if planned.turn_id == turn_id),
        lets=response.ok and rows.can_be_let(response.value), party_name=residencies.party_name,
        bulk=bulk.RECORDS, ticks_all=context.query.get("tick") == "all",
        is_recent=came is not None and 0 <= (days.today - came).days < RECENT_DAYS,
    )  # fmt: skip


def _instant(text: str | None) -> datetime.datetime | None:
    return datetime.datetime.fromisoformat(text) if text else None


async def list_tasks(context: PageContext) -> web.StreamResponse:
    """Open make-ready tasks of all turns, the early ones first."""
    property_id, late, due = number(context, "property_id"), "late" in context.query, context.query.get("due_by", "")
    error = ""
    try:
        due_by = datetime.date.fromisoformat(due) if due else None
    except ValueError:
        due_by, error = None, _("Enter a date such as 2026-11-22.")
    request = turn_tasks_pb2.ListOpenTasksRequest(late=late, limit=CSV_ROWS if "csv" in context.query else SHOWN)
    if property_id:
        request.property_id = property_id
    if context.query.get("who") == UNASSIGNED:
        request.unassigned = True
    elif who := number(context, "who"):
        request.assignee_id = who
    if due_by:
        request.due_by = due_by.isoformat()
    if context.query.get("after"):
        request.after = context.query["after"]
    filters = {
        "property_id": property_id or "", "who": UNASSIGNED if request.unassigned else request.assignee_id or "",
        "late": "1" if late else "", "due_by": due if due_by else "",
    }  # fmt: skip
    if "csv" in context.query:
        return _csv_of_tasks((await context.rpcs.call(OPEN_TASKS, request)).tasks)
    counted, page = await together(
        context.rpcs.call(COUNTS, turn_board_pb2.CountBoardRequest()), context.rpcs.call(OPEN_TASKS, request)
    )
    older = with_query(TASKS_PATH, {**filters, "after": page.next_after}) if page.HasField("next_after") else ""
    return render(
        context, "tasks", here=HERE, tasks=page.tasks, counts=counted, filters=filters, error=error, older=older,
        later=context.query.get("after", ""), property_id=property_id, own_id=_own_id(context), back=context.address,
        csv_path=with_query(TASKS_PATH, {**filters, "after": context.query.get("after", ""), "csv": 1}),
        all_path=with_query(TASKS_PATH, {**filters, "after": context.query.get("after", ""), "tick": "all"}),
        bulk=bulk.RECORDS, ticks_all=context.query.get("tick") == "all",
    )  # fmt: skip


def _own_id(context: PageContext) -> int:
    """The id of the member of staff who is signed in; 0 for an administrator."""
    return context.session.person.person_id if context.session.kind == STAFF else 0


def _csv_of_tasks(tasks: Sequence[turn_tasks_pb2.PlacedTask]) -> web.Response:
    header = (
        "task_id",
        "task_type",
        "status",
        "scheduled_date",
        "assignee_id",
        "assignee",
        "vendor_id",
        "vendor",
        "turn_id",
        "unit_id",
        "unit",
        "property_id",
        "property",
    )
    rows = [
        [placed.task.task_id, placed.task.task_type, placed.task.status, placed.task.scheduled_date,
         placed.task.assignee_id or "", placed.task.assignee_name, placed.task.vendor_id or "", placed.task.vendor_name,
         placed.task.turn_id, placed.task.unit_id, placed.unit, placed.property_id, placed.property]
        for placed in tasks
    ]  # fmt: skip
    return csv_files.answer("make-ready-tasks", header, rows)


async def show_task(context: PageContext) -> web.StreamResponse:
    task_id = context.number("task_id")
    placed = (await context.rpcs.call(TASK, turn_tasks_pb2.GetTaskRequest(task_id=task_id))).task
    events, audit = await together(
        include(context, "/events/panel", kind="turn_task", id=task_id),
        include(context, "/audit/panel", kind="turn_task", id=task_id),
    )
    return render(context, "task", here=HERE, placed=placed, task=placed.task, others=(audit, events))


async def show_transitions(context: PageContext) -> web.StreamResponse:
    """A unit's residencies with contacts, which svc-occupancy writes to the audit log, and its changes of status."""
    unit_id = context.number("unit_id")
    request = residencies_pb2.ListResidenciesRequest(unit_id=unit_id, limit=SHOWN)
    if before := number(context, "before"):
        request.before_turn_id = before
    changes_request = turn_board_pb2.ListUnitStatusChangesRequest(unit_id=unit_id, limit=SHOWN)
    if before_change := number(context, "changes_before"):
        changes_request.before_version = before_change
    page = await context.rpcs.call(RESIDENCIES, request)
    response, changes = await together(
        context.rpcs.panel(UNIT, turn_board_pb2.GetBoardUnitRequest(unit_id=unit_id)),
        context.rpcs.panel(CHANGES, changes_request),
    )
    names = await names_of(context.rpcs, [change.actor for change in changes.changes] if changes.ok else [])
    days, path = today(context), f"/units/{unit_id}/transitions"
    more = with_query(path, {"before": page.next_before_turn_id}) if page.HasField("next_before_turn_id") else ""
    has_older = changes.ok and changes.HasField("next_before_version")
    older = {"before": before or "", "changes_before": changes.next_before_version} if has_older else {}
    return render(
        context, "transitions", here=HERE, page=page, response=response, changes=changes, names=names, before=before,
        now=cards.card_of(response.unit, days, context.wall.zone) if response.ok else None, more=more, path=path,
        row=rows.row_of(response.value) if response.ok else [], lets=response.ok and rows.can_be_let(response.value),
        bars=residencies.bars(page.residencies, days.today), causes=residencies.CAUSES, before_change=before_change,
        older_changes=with_query(path, older) if older else "", name_of=residencies.name_of,
        party_name=residencies.party_name, forgets=context.navigation.opens(forgetting.PATH),
    )  # fmt: skip


async def contacts(context: PageContext) -> web.StreamResponse:
    """The names and phone numbers of those who live in a unit, which svc-occupancy writes to the audit log."""
    unit_id = number(context, "unit_id")
    if not unit_id:
        raise web.HTTPNotFound
    page = await context.rpcs.call(RESIDENCIES, residencies_pb2.ListResidenciesRequest(unit_id=unit_id, limit=FEW))
    today_text = today(context).today.isoformat()
    parties = [
        party
        for residency in page.residencies
        if residency.status == "Active"
        and not residency.is_planned
        and (residency.move_out_date or today_text) >= today_text
        for party in residency.parties
        if party.role != "guarantor" and not party.HasField("forgotten_at")
    ]
    return render(context, "contacts", parties=parties, party_name=residencies.party_name)


async def panel(context: PageContext) -> web.StreamResponse:
    """A unit's status, turns and residents; or a property's units by status, and its clashes."""
    if unit_id := number(context, "unit_id"):
        response = await context.rpcs.call(UNIT, turn_board_pb2.GetBoardUnitRequest(unit_id=unit_id))
        card, over = cards.card_of(response.unit, today(context), context.wall.zone), rows.left_over(response)
        ids = {task.task_id for task in over}
        card = replace(card, tasks=[task for task in card.tasks if task.task_id not in ids])
        return render(
            context, "unit_panel", unit=response.unit, card=card, residents=response.residents,
            planned=response.planned, left_over=over, row=rows.row_of(response), lets=rows.can_be_let(response),
            party_name=residencies.party_name,
        )  # fmt: skip
    property_id = number(context, "property_id")
    if not property_id:
        raise web.HTTPNotFound
    counts, clashing = await together(
        context.rpcs.call(COUNTS, turn_board_pb2.CountBoardRequest(property_id=property_id)),
        context.rpcs.call(BOARD, _clashes(context)),
    )
    clashes = _cards(context, clashing.units)
    return render(
        context, "property_panel", counts=counts, property_id=property_id, statuses=UNDER_WAY, clashes=clashes
    )


async def work(context: PageContext) -> web.StreamResponse:
    """The open make-ready tasks of a member of staff, for their list of work."""
    if not (staff_id := number(context, "staff_id")):
        raise web.HTTPNotFound
    request = turn_tasks_pb2.ListOpenTasksRequest(limit=WORK_ROWS, assignee_id=staff_id)
    page = await context.rpcs.call(OPEN_TASKS, request)
    return render(context, "work", tasks=page.tasks, has_more=page.HasField("next_after"), staff_id=staff_id)


async def home(context: PageContext) -> web.StreamResponse:
    """The panel of the first page: late tasks, clashes, and the units whose ready date comes first."""
    late = turn_tasks_pb2.ListOpenTasksRequest(late=True, limit=1)
    units = turn_board_pb2.ListBoardRequest(under_way=True, with_tasks=True, limit=ON_HOME)
    counted, page, tasks, clashing = await together(
        context.rpcs.call(COUNTS, turn_board_pb2.CountBoardRequest()),
        context.rpcs.call(BOARD, units),
        context.rpcs.call(OPEN_TASKS, late),
        context.rpcs.call(BOARD, turn_board_pb2.ListBoardRequest(clashes=True, limit=SHOWN)),
    )
    days = today(context)
    return render(
        context, "home", counts=counted, oldest=tasks.tasks[0] if tasks.tasks else None,
        weeks=weeks(_cards(context, page.units), days, context.wall.zone), clashes=_cards(context, clashing.units),
        under_way=sum(row.units for row in counted.statuses),
    )  # fmt: skip
