"""My work: the rows of four areas in one list, by day, emergencies first."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from markupsafe import Markup

from console.kit.panels import Included
from console.kit.work import merged
from makeready.catalog.v1 import inspection_details_pb2, inspections_pb2
from makeready.occupancy.v1 import turn_tasks_pb2
from makeready.tickets.v1 import pm_tasks_pb2, ticket_views_pb2

from .browsing import Browser
from .samples_board import day
from .stubs import Stubs, ago

SCHEDULED = inspections_pb2.INSPECTION_STATUS_SCHEDULED
TODAY = datetime.date(2026, 11, 26)
SEARCH = "tickets.TicketViewsService/SearchTickets"
INSPECTIONS = "catalog.InspectionDetailsService/SearchInspections"
TASKS, UPKEEP = "occupancy.TurnTasksService/ListOpenTasks", "tickets.PmTasksService/ListPmTasks"


def row(on: str, rank: int, name: str) -> str:
    return f'<li class="work-row" data-day="{on}" data-rank="{rank}">{name}</li>'


def test_rows_of_all_areas_are_one_list_by_day_and_emergencies_come_first() -> None:
    panels = [
        Included(Markup(row("2026-11-26", 2, "a") + row("2026-11-26", 0, "b") + row("", 1, "c") + "<p>more</p>")),
        Included(Markup(row("2026-11-20", 2, "d") + row("2026-11-27", 2, "e") + row("2026-12-02", 2, "f"))),
        Included(Markup(row("2026-12-03", 2, "g") + row("2026-11-25", 0, "h") + row("2026-11-28", 0, "i")
                        + row("2026-11-28", 2, "k"))),
        Included(),
    ]  # fmt: skip
    work = merged(panels, TODAY)
    titles = [(group.name, "".join(html.partition(">")[2][0] for html in group.rows)) for group in work.groups]
    assert titles == [
        ("Overdue", "hd"), ("Today", "ba"), ("Tomorrow", "e"), ("This week", "ikf"), ("Later", "g"), ("No date", "c"),
    ]  # fmt: skip
    assert work.size == 10 and [str(part) for part in work.below] == ["<p>more</p>"]
    assert [(group.name, len(group.rows)) for group in work.first(3)] == [("Overdue", 2), ("Today", 1)]


@pytest.fixture
def working(stubs: Stubs) -> Stubs:
    """One piece of work of each kind, whoever looks."""

    def tickets(request: Any, _who: Any) -> Any:
        summary = ticket_views_pb2.TicketSummary
        return ticket_views_pb2.SearchTicketsResponse(
            tickets=[
                summary(ticket_id=41, title="Gas smell", priority="Emergency", status="Open", property_id=1,
                        property_name="Alder Court", unit_name="Alder 12", category="Other", created_at=ago(days=1)),
                summary(ticket_id=42, title="Door squeaks", priority="Low", status="In Progress", property_id=1,
                        property_name="Alder Court", category="Other", created_at=ago(days=1)),
            ] if request.assignee_id else [],
        )  # fmt: skip

    stubs.answers[SEARCH] = tickets
    stubs.answers[INSPECTIONS] = inspection_details_pb2.SearchInspectionsResponse(
        inspections=[inspection_details_pb2.InspectionDetails(
            inspection_id=1, title="Monthly walk", status=SCHEDULED, property_id=1, property_name="Alder Court",
            scheduled_date=day(1))]
    )  # fmt: skip
    placed = turn_tasks_pb2.PlacedTask(unit="Alder 7", property_id=1, property="Alder Court")
    placed.task.MergeFrom(turn_tasks_pb2.TurnTask(task_id=32, task_type="Paint", status="Open", scheduled_date=day(-2)))
    stubs.answers[TASKS] = turn_tasks_pb2.ListOpenTasksResponse(tasks=[placed])
    stubs.answers[UPKEEP] = pm_tasks_pb2.ListPmTasksResponse(tasks=[pm_tasks_pb2.PmTask(
        pm_task_id=31, task_name="Filters", status="Open", due_date=day(20), property="Alder Court", unit="Roof",
        property_id=1)])  # fmt: skip
    return stubs


async def test_a_technician_sees_all_of_their_own_work_in_one_list(staff: Browser, working: Stubs) -> None:
    page = await staff.get("/my-work")
    order = ["Overdue", "Paint", "Today", "Gas smell", "Tomorrow", "Monthly walk", "Later", "Filters", "No date",
             "Door squeaks"]  # fmt: skip
    places = [page.words.index(words, page.words.index("5 open items")) for words in order]
    assert places == sorted(places), page.words
    for path in ("/tickets/41?next=/my-work", "/inspections/1/walk", "/turn-tasks/32", "/pm-tasks/31"):
        assert f'href="{path}"' in page.text, path
    own_id = working.called(TASKS)[-1].assignee_id
    assert own_id == working.called(UPKEEP)[-1].assignee_id == working.called(SEARCH)[-1].assignee_id > 0
    # The next act is in the row.
    assert staff.form("/tickets/41/status")["status"] == "In Progress"
    assert staff.form("/turn-tasks/32/complete")["next"] == staff.form("/pm-tasks/31/complete")["next"] == "/my-work"
    assert "Gas smell" in (await staff.get("/")).words
    # Nobody looks at another person's by its address.
    await staff.get("/my-work?staff_id=99")
    assert working.called(TASKS)[-1].assignee_id == own_id


async def test_after_an_act_people_are_back_at_their_work(staff: Browser, stubs: Stubs) -> None:
    await staff.get("/tickets/102?next=/my-work")
    assert staff.form("/tickets/102/status")["next"] == "/my-work"
    for path, values in (
        ("/tickets/102/status", {"status": "Completed", "note": "Valve replaced, no leak any more"}),
        ("/pm-tasks/31/complete", {"next": "/my-work"}),
    ):
        reply = await staff.send(path, **values)
        assert (reply.status, reply.headers["Location"]) == (303, "/my-work"), path
        await staff.get("/my-work")
    await staff.get("/tickets/102?next=//evil.example")
    assert "next" not in staff.form("/tickets/102/status")


async def test_an_administrator_chooses_whose_work_they_see(administrator: Browser, working: Stubs) -> None:
    page = await administrator.get("/my-work")
    assert "Gas smell" not in page.words and "Member of staff" in page.words
    page = await administrator.get("/my-work?staff_id=8")
    assert "Gas smell" in page.words and working.called(TASKS)[-1].assignee_id == 8


async def test_a_context_that_is_away_takes_only_its_own_rows(staff: Browser, working: Stubs) -> None:
    def fails(_request: Any, _who: Any) -> Any:
        raise RuntimeError("away")

    working.answers[UPKEEP] = fails
    page = await staff.get("/my-work")
    assert page.status == 200 and "Gas smell" in page.words and "Filters" not in page.words
    assert "Preventive maintenance: unavailable right now." in page.words
    # "Try again" loads the list: the rows alone have no place on the page.
    assert 'href="/my-work"' in page.text and 'hx-get="/upkeep/work' not in page.text


async def test_no_work_says_what_would_appear(staff: Browser, stubs: Stubs) -> None:
    stubs.answers[SEARCH] = ticket_views_pb2.SearchTicketsResponse()
    stubs.answers[INSPECTIONS] = inspection_details_pb2.SearchInspectionsResponse()
    stubs.answers[TASKS] = turn_tasks_pb2.ListOpenTasksResponse()
    stubs.answers[UPKEEP] = pm_tasks_pb2.ListPmTasksResponse()
    page = await staff.get("/my-work")
    assert "appear here by day, emergencies first" in page.words
