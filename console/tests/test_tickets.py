"""Pages of tickets and upkeep: what the address asks for, and what a person finds."""

from __future__ import annotations

import datetime
import re
from typing import Any

from console.areas.tickets.pages import grouped
from console.kit.links import host_of
from console.kit.links import of_another_site as is_elsewhere
from makeready.tickets.v1 import pm_tasks_pb2 as pm_pb
from makeready.tickets.v1 import ticket_views_pb2 as pb

from .browsing import Browser, Tags
from .samples import tickets
from .stubs import NOW, Stubs

SEARCH = "tickets.TicketViewsService/SearchTickets"


def asked(stubs: Stubs, rpc: str = SEARCH) -> Any:
    return stubs.called(rpc)[-1]


async def test_the_address_says_which_tickets(administrator: Browser, staff: Browser, stubs: Stubs) -> None:
    cases: list[tuple[Browser, str, dict[str, Any]]] = [
        (administrator, "", {"statuses": [1, 2, 3], "order": 3}),
        (administrator, "?view=closed", {"statuses": [4, 5], "order": 1}),
        (administrator, "?view=waiting", {"stale": True, "order": 4}),
        (administrator, "?view=soon", {"soon_stale": True, "order": 4}),
        (administrator, "?view=all", {"order": 1}),
        (administrator, "?view=mine", {"statuses": [1, 2, 3], "order": 3}),
        (staff, "?view=mine", {"statuses": [1, 2, 3], "order": 3, "assignee_id": 7}),
        (staff, "?priority=High&priority=Emergency&assignee=none&vendor=none",
         {"statuses": [1, 2, 3], "order": 3, "priorities": [3, 4], "has_assignee": False, "has_vendor": False}),
        (staff, "?view=all&q=leak&category=Leak&source=api&property=4&unit=17&asset=70&vendor=5&order=oldest",
         {"words": "leak", "categories": [12], "sources": ["api"], "property_id": 4, "unit_id": 17, "asset_id": 70,
          "vendor_id": 5, "order": 2}),
        (staff, "?view=all&status=On+Hold&status=Nonsense&priority=x&unit=x&order=x&after=7.9",
         {"statuses": [3], "order": 1, "after": "7.9"}),
    ]  # fmt: skip
    for browser, query, right in cases:
        reply = await browser.get(f"/tickets{query}")
        assert reply.status == 200 and asked(stubs) == pb.SearchTicketsRequest(limit=50, **right), query
    reply = await staff.get("/tickets?view=all&from=2026-11-01&to=2026-11-20")
    request = asked(stubs)
    assert request.opened_from.ToDatetime() == datetime.datetime(2026, 11, 1, 4)  # midnight in New York, in summer time
    assert request.opened_to.ToDatetime() == datetime.datetime(2026, 11, 21, 5)
    reply = await staff.get("/tickets?older=72&younger=168")
    assert "Older than 3 days" in reply.words and "Newer than 7 days" in reply.words
    assert asked(stubs).opened_to.ToDatetime(datetime.UTC) == NOW - datetime.timedelta(hours=72)
    for query in ("?from=yesterday", "?q=%3F%21", "?to=9999-12-31"):
        reply = await staff.get(f"/tickets{query}")
        assert reply.status == 200 and 'role="alert"' in reply.text, query


async def test_a_filter_goes_along_to_the_next_page_and_into_the_file(administrator: Browser, stubs: Stubs) -> None:
    reply = await administrator.get("/tickets?priority=High&q=o")
    links = {attributes["rel"]: attributes["href"] for tag, attributes in Tags(reply.text).found
             if tag == "a" and attributes.get("rel")}  # fmt: skip
    assert links["next"] == "/tickets?priority=High&q=o&after=7.9"
    file = await administrator.get("/tickets?priority=High&csv=1")
    assert file.headers["Content-Type"].startswith("text/csv") and "No hot water since this morning" in file.text
    assert [request.after for request in stubs.called(SEARCH)[-2:]] == ["7.9", "7.9"] or asked(stubs).limit == 200
    assert asked(stubs).priorities == [3]


async def test_staff_see_their_own_and_nobody_else_does(administrator: Browser, staff: Browser) -> None:
    assert "Assigned to me 6" in (await staff.get("/tickets")).words
    assert "Mine" not in (await administrator.get("/tickets")).words.split("Waiting")[0]


async def test_a_ticket_of_nobody_and_of_another_company_are_the_same_page(
    administrator: Browser, stranger: Browser
) -> None:
    def neutral(text: str) -> str:
        return re.sub(r"[0-9a-f]{24}|/(tickets|pm-tasks)/\d+|act\" value=\"[^\"]+", "", text)

    for path, nobodys in (("/tickets/102", "/tickets/404"), ("/pm-tasks/31", "/pm-tasks/404")):
        of_other, of_nobody = await stranger.get(path), await stranger.get(nobodys)
        assert (of_other.status, of_nobody.status) == (404, 404)
        assert neutral(of_other.text) == neutral(of_nobody.text)
        assert (await administrator.get(path)).status == 200


async def test_the_page_of_a_ticket_tells_its_story(staff: Browser, stubs: Stubs) -> None:
    reply = await staff.get("/tickets/102")
    sentences = ("No activity since Fri 20 Nov", "Response is overdue tomorrow", "3rd ticket in 12 months", "RP-48213",
            "A resident reported the issue · entered by DeShawn Whitfield",
            "DeShawn Whitfield assigned Nguyễn Thị Hồng Hạnh",
            "Open → In Progress · Nguyễn", "Resident · entered by Marguerite Okafor",
            "Radiator cold at the top", "weekdays after 5 pm")  # fmt: skip
    assert not [words for words in sentences if words not in reply.words], reply.words
    assert len([call for call in stubs.calls if call.rpc.startswith(("tickets.", "identity.Actors"))]) <= 8
    photos = [
        a for tag, a in Tags(reply.text).found if tag == "a" and (a.get("href") or "").startswith("https://photos.")
    ]
    assert len(photos) == 3 and all(photo["rel"] == "noreferrer noopener external" for photo in photos)
    reply = await staff.get("/tickets/102?show=comments&after=1.1.1")
    assert asked(stubs, "tickets.TicketViewsService/ListTicketTimeline").kinds == [2, 3]
    assert "Latest activity" in reply.words


async def test_without_its_parts_a_ticket_still_stands(apart: tuple[Stubs, Browser]) -> None:
    stubs, administrator = apart
    stubs.slow.update(
        {"tickets.TicketViewsService/ListTicketTimeline", "identity.ActorsService/BatchGetActors", SEARCH}
    )
    reply = await administrator.get("/tickets/102")
    assert reply.status == 200 and reply.title == "No hot water since this morning"
    assert reply.words.lower().count("unavailable right now") >= 2
    await stubs.stop("svc-tickets")
    for path in ("/tickets", "/tickets/102", "/pm-tasks", "/pm-tasks/31"):
        reply = await administrator.get(path)
        assert reply.status == 503 and reply.headers["X-Request-Id"] in reply.words, path


async def test_a_number_or_external_id_opens_its_ticket(administrator: Browser) -> None:
    for query in ("%2328", "28", "RP-48213", "ticket%2028", "Work%20order%20%2328", "wo%2028", "tickets%20no.%2028"):
        reply = await administrator.get(f"/tickets/found?q={query}")
        assert (reply.status, reply.headers.get("Location")) == (303, "/tickets/102"), query
    reply = await administrator.get("/tickets/found?q=hot")
    assert reply.status == 200 and "No hot water since this morning" in reply.words
    for query in ("", "%3F", "x" * 300, "%00"):
        assert (await administrator.get(f"/tickets/found?q={query}")).status == 200, query


async def test_panels_ask_for_their_place(administrator: Browser, stubs: Stubs) -> None:
    for name in ("property_id", "unit_id", "asset_id", "vendor_id", "assignee_id"):
        reply = await administrator.get(f"/tickets/panel?{name}=5")
        assert reply.status == 200 and getattr(asked(stubs), name) == 5 and list(asked(stubs).statuses) == [1, 2, 3]
    reply = await administrator.get("/tickets/panel?inspection_id=12")
    assert reply.status == 200 and "Pool gate" in reply.words
    for name in ("property_id", "unit_id", "asset_id"):
        assert (await administrator.get(f"/pm-tasks/panel?{name}=5")).status == 200
        request = asked(stubs, "tickets.PmTasksService/ListPmTasks")
        assert getattr(request, name) == 5 and request.open and request.order == pm_pb.PM_TASK_ORDER_DUE
    for path in ("/tickets/panel", "/tickets/panel?unit_id=x", "/pm-tasks/panel", "/pm-tasks/panel?unit_id=-1"):
        assert (await administrator.get(path)).status == 404, path


async def test_upkeep_is_grouped_by_when_it_is_due(administrator: Browser, stubs: Stubs) -> None:
    reply = await administrator.get("/pm-tasks?property=4")
    for words in ("Overdue 1", "This week 2", "Later 1", "4 days overdue", "in 99 days", "every 3 months"):
        assert words in reply.words, words
    stretches = {"overdue": ("", "2026-11-21"), "week": ("2026-11-22", "2026-11-28"), "later": ("2026-11-29", "")}
    for view, (first, last) in stretches.items():
        await administrator.get(f"/pm-tasks?view={view}")
        request = asked(stubs, "tickets.PmTasksService/ListPmTasks")
        assert (request.due_from, request.due_to, request.open) == (first, last, True)
    await administrator.get("/pm-tasks?view=closed")
    assert not asked(stubs, "tickets.PmTasksService/ListPmTasks").open
    reply = await administrator.get("/pm-tasks/31")
    assert "Due 23 Sep" in reply.words.replace("Wed ", "") and "Fire panel FP-1" in reply.words


def test_groups_have_the_order_of_their_rows_below_the_open_emergencies() -> None:
    rows = list(tickets())
    emergency = next(row for row in rows if row.priority == "Emergency" and row.HasField("assignee_id"))
    closed = pb.TicketSummary(priority="Emergency", status="Completed", assignee_id=9)
    first, *by_who = grouped([*rows, closed], "who")
    assert first.tickets == [emergency]
    assert [group.name for group in by_who] == ["Unassigned", "Staff", "Vendors"]
    assert sum(len(group.tickets) for group in by_who) == len(rows) and closed in by_who[1].tickets
    _, *by_status = grouped(rows, "status")
    assert [group.name for group in by_status] == list(
        dict.fromkeys(row.status for row in rows if row is not emergency)
    )
    assert [group.tickets for group in grouped(rows, "")] == [rows]


def test_only_addresses_of_other_sites_leave_this_one() -> None:
    for address in ("https://a.example/x", "http://a.example", "HTTPS://u:p@a.example:99/x"):
        assert is_elsewhere(address), address
    for address in ("javascript:alert(1)", "//a.example", "/x", "https://", "https:///x", "data:text/html,x", "",
                    "https://a.example/x y", "ftp://a.example", "javascript://a.example/%0aalert(1)"):  # fmt: skip
        assert not is_elsewhere(address), address
    assert host_of("https://u:p@a.example:99/x") == "a.example"
