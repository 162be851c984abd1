"""A ticket for its page: its details, and all that happened to it, the newest first."""

from __future__ import annotations

import datetime
import time
from typing import Any

import pytest

from chassis.auth.identity import ADMINISTRATOR, Identity
from chassis.db.database import Database
from chassis.refusals import Refusal
from chassis.schedule import instants
from makeready.tickets.v1 import ticket_commands_pb2, ticket_views_pb2
from makeready.tickets.v1 import tickets_pb2 as pb
from testkit.services import RunningService

from ..companies import Company, import_tickets, new_company
from ..tickets.changing import change
from ..tickets.changing import opened as opened_by_key
from ..tickets.commands import open_ticket, run_command
from .views import Views, stamp

NOTE = "It is all good again now"
OPENED, COMMENT, PHOTO, STATUS, CHANGE = range(1, 6)


@pytest.fixture
async def company(database: Database) -> Company:
    return await new_company(database)


@pytest.fixture
def views(service: RunningService, company: Company) -> Views:
    return Views(service, company.staff)


async def test_details_have_what_the_page_shows(
    service: RunningService, client: Any, database: Database, company: Company, views: Views
) -> None:
    row = {"unit": "U", "asset": "A", "source": "resident_portal", "assignee": "S", "description": "Cold since six"}
    at = instants.now() - datetime.timedelta(hours=60)
    times = {"created_at": stamp(at), "updated_at": stamp(at)}
    rows = [{"external_id": name, "title": name} | row | times for name in ("one", "two", "three")]
    await import_tickets(client, company, *rows)
    await views.wait_for(3, asset_id=company.id)
    by_title = {summary.title: summary.ticket_id for summary in (await views("SearchTickets")).tickets}
    async with database.connection() as connection:
        await connection.raw.execute(
            "INSERT INTO ticket_of_inspection_row (company_id, inspection_id, row_id, ticket_id) VALUES ($1, 5, 2, $2)",
            company.id,
            by_title["one"],
        )
    details = await views("GetTicketDetails", ticket_id=by_title["one"])
    ticket = details.ticket
    assert (ticket.unit_name, ticket.asset_name, ticket.assignee_name) == ("1A", "Lift", "Ada")
    assert (details.inspection_id, details.inspection_row_id, details.other_tickets_of_asset) == (5, 2, 2)
    assert details.description == "Cold since six" and not details.photo_required and not ticket.is_stale
    assert ticket.stale_from.ToDatetime() - ticket.quiet_since.ToDatetime() == datetime.timedelta(hours=72)
    public = await client("GetTicket", pb.GetTicketRequest(ticket_id=by_title["one"]), company.caller)
    assert details.document == public.document
    ids = [by_title["two"], 10**12, ticket.ticket_id, by_title["two"]]
    both = (await views("BatchGetTickets", ticket_ids=ids)).tickets
    assert [summary.ticket_id for summary in both] == [by_title["two"], by_title["one"]] and both[1] == ticket
    (of_row,) = (await views("ListTicketsOfInspection", inspection_id=5)).tickets
    assert (of_row.row_id, of_row.ticket) == (2, ticket)
    administrator = Identity(ADMINISTRATOR, "gateway", company.id, administrator_id=3, stepped_up_at=int(time.time()))
    await client("UpdateTicketPolicy", pb.UpdateTicketPolicyRequest(stale_after_hours=24), administrator)
    assert (await views("GetTicketDetails", ticket_id=by_title["one"])).ticket.is_stale
    other = await client("GetTicket", pb.GetTicketRequest(ticket_id=by_title["two"]), company.caller)
    assert (await views("GetTicketDetails", ticket_id=by_title["two"])).document == other.document
    assert len(await views.titles(stale=True)) == 3 and await views.titles(soon_stale=True) == []


@pytest.mark.parametrize(
    "named",
    [("property_id", "unit_id", "asset_id"), ("unit_id",), ("asset_id",), ("property_id",), ("unit_id", "asset_id")],
)
async def test_a_new_tickets_place_has_its_property_and_names(
    company: Company, views: Views, named: tuple[str, ...]
) -> None:
    response = await views("GetTicketPlace", **dict.fromkeys(named, company.id))
    assert (response.property_id, response.property_name) == (company.id, "Elm")
    assert response.unit_name == ("1A" if "unit_id" in named else "") and response.HasField("unit_id") is (
        "unit_id" in named
    )
    assert response.asset_name == ("Lift" if "asset_id" in named else "")


@pytest.mark.usefixtures("reached")
async def test_a_place_of_another_company_or_property_is_not_found(
    service: RunningService, database: Database, company: Company, views: Views
) -> None:
    other = await new_company(database)
    places: list[dict[str, int]] = [
        {"unit_id": other.id}, {"property_id": other.id}, {"property_id": company.id, "unit_id": other.id},
        {"unit_id": company.id, "asset_id": other.id}, {"asset_id": 10**12}, {"unit_id": -1},
    ]  # fmt: skip
    for place in places:
        with pytest.raises(Refusal, match="no such place"):
            await views("GetTicketPlace", **place)
    with pytest.raises(Refusal, match="Give property_id"):
        await views("GetTicketPlace")
    for several in ([], [1] * 201):
        with pytest.raises(Refusal, match="1 to 200"):
            await views("BatchGetTickets", ticket_ids=several)


async def test_the_timeline_has_each_thing_once_newest_first(client: Any, company: Company, views: Views) -> None:
    opened = await open_ticket(
        client, company.staff, property_id=company.id, photo_url="https://photos.test/before.jpg",
        by=ticket_commands_pb2.OPENER_RESIDENT,
    )  # fmt: skip
    ticket_id = opened["entity_id"]
    acts: list[tuple[str, dict[str, Any]]] = [
        ("AssignTicket", {"assignee_id": company.id}),
        ("CommentOnTicket", {"body": "When?", "by": ticket_commands_pb2.AUTHOR_RESIDENT}),
        ("AddTicketPhoto", {"photo_url": "https://photos.test/after.jpg"}),
        ("SetTicketStatus", {"status": "Completed", "note": NOTE}),
        ("SetTicketStatus", {"status": "Open"}),
        ("SetTicketStatus", {"status": "Cancelled", "cancellation_reason_code": "duplicate_ticket"}),
        ("AssignTicket", {"clear": ["assignee_id"]}),
        ("UpdateTicket", {"unit_id": company.id, "permission_to_enter": True, "room": "Hall"}),
    ]
    for rpc, values in acts:
        await run_command(client, rpc, company.staff, ticket_id=ticket_id, **values)
    timeline = await views("ListTicketTimeline", ticket_id=ticket_id)
    told = [
        (entry.kind, entry.author, entry.text or entry.source, entry.from_status, entry.to_status)
        for entry in timeline.entries
    ]
    assert told == [
        (CHANGE, "", "", "", ""),
        (CHANGE, "", "", "", ""),
        (STATUS, "", "", "Open", "Cancelled"),
        (STATUS, "", "", "Completed", "Open"),
        (STATUS, "staff", NOTE, "Open", "Completed"),
        (PHOTO, "staff", "https://photos.test/after.jpg", "", ""),
        (COMMENT, "resident", "When?", "", ""),
        (CHANGE, "", "", "", ""),
        (PHOTO, "resident", "https://photos.test/before.jpg", "", ""),
        (OPENED, "resident", "staff", "", ""),
    ]
    assert {entry.actor for entry in timeline.entries} == {f"staff:{company.id}"}
    assigned, taken = ([(c.field, c.before, c.after) for c in timeline.entries[n].changes] for n in (7, 1))
    assert assigned == [("assignee", "", "Ada")] and taken == [("assignee", "Ada", "")]
    corrected = {c.field: (c.before, c.after) for c in timeline.entries[0].changes}
    assert corrected == {"unit": ("", "1A"), "permission_to_enter": ("false", "true"), "room": ("", "Hall")}
    assert timeline.entries[2].cancellation_reason_code == "duplicate_ticket"
    paged, after = [], None
    while True:
        page = await views("ListTicketTimeline", ticket_id=ticket_id, limit=2, after=after)
        paged += page.entries
        if not page.HasField("next"):
            break
        after = page.next
    assert paged == list(timeline.entries)
    comments = await views("ListTicketTimeline", ticket_id=ticket_id, kinds=[COMMENT])
    assert [entry.text for entry in comments.entries] == ["When?"]


async def test_the_timeline_of_an_integrations_ticket_names_its_key(
    client: Any, company: Company, views: Views
) -> None:
    ticket_id = await opened_by_key(client, company.caller, company.id)
    await change(client, ticket_id, {"status": "Completed", "note": NOTE}, who=company.caller)
    changed, opened = (await views("ListTicketTimeline", ticket_id=ticket_id)).entries
    assert (opened.kind, opened.source, opened.actor) == (OPENED, "api", "administrator:3")
    assert (changed.kind, changed.text, changed.actor) == (STATUS, NOTE, "caller:1")
    await views.wait_for(1, words="good again", statuses=[4])


@pytest.mark.parametrize("after", ["x", "1.2", "1.2.3.4", "1.2.-3", f"{10**18}.1.1"])
async def test_a_cursor_that_no_timeline_issued_is_refused(
    client: Any, company: Company, views: Views, after: str
) -> None:
    opened = await open_ticket(client, company.staff, property_id=company.id)
    with pytest.raises(Refusal) as refused:
        await views("ListTicketTimeline", ticket_id=opened["entity_id"], after=after)
    assert refused.value.code == "invalid_cursor"


def test_each_kind_of_entry_has_its_label() -> None:
    assert set(ticket_views_pb2.TimelineKind.values()) == {0, OPENED, COMMENT, PHOTO, STATUS, CHANGE}
