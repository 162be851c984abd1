"""Searches find what a plain reading of the tickets finds, in each order, page by page, for one company alone."""

from __future__ import annotations

import asyncio
import datetime
import random
import re
from typing import Any

import pytest
from sqlalchemy import text

from chassis.auth.identity import ADMINISTRATOR, Identity
from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.refusals import Refusal
from chassis.schedule import instants
from makeready.common.v1 import maintenance_pb2
from makeready.events.v1 import events_pb2
from makeready.tickets.v1 import ticket_views_pb2 as pb
from makeready.tickets.v1.tickets_pb2 import TicketStatus
from svc_tickets.replicas.consumer import put_references
from svc_tickets.search import filters, queries
from svc_tickets.tickets.rules import fields
from testkit.patience import PATIENCE_SECONDS
from testkit.services import RunningService

from ..companies import Company, import_tickets, new_company
from ..tickets.commands import open_ticket, run_command
from .views import Views, stamp

NOW = instants.now()
CLOSED = ("Completed", "Cancelled")
ROWS = 120
ORDERS = {"newest": 1, "oldest": 2, "priority": 3, "stale": 4}
SELDOM = "Elevator"


async def _places(database: Database, company: Company) -> None:
    """A second property, unit, member of staff, and two vendors."""
    company_id = company.id
    references = events_pb2.References(
        properties=[
            events_pb2.PropertyReference(
                id=company_id + 500_000, version=1, company_id=company_id, name="Oak", external_id="P2"
            )
        ],
        units=[
            events_pb2.UnitReference(
                id=company_id + 500_000,
                version=1,
                company_id=company_id,
                property_id=company_id,
                name="2B",
                external_id="U2",
            )
        ],
        staff=[
            events_pb2.StaffReference(
                id=company_id + 500_000, version=1, company_id=company_id, name="Bo", external_id="S2"
            )
        ],
        vendors=[
            events_pb2.VendorReference(
                id=company_id + n,
                version=1,
                company_id=company_id,
                name=f"Vendor {n}",
                external_id=f"V{n}",
                on_hold=n == 500_001,
            )
            for n in (500_000, 500_001)
        ],
    )
    async with database.transaction() as connection:
        await put_references(connection, [references])


def _row(place: int, chance: random.Random) -> dict[str, Any]:
    at = NOW - datetime.timedelta(hours=chance.uniform(1, 24 * 60), microseconds=place)
    property_ = chance.choice(["P", "P", "P2"])
    status = chance.choice(fields.STATUSES)
    return {
        "external_id": f"X-{place}",
        "title": f"Ticket {place} {chance.choice(['leak', 'lamp', 'leaking tap'])}",
        "property": property_,
        "unit": chance.choice([None, "U", "U2"]) if property_ == "P" else None,
        "asset": chance.choice([None, None, "A"]) if property_ == "P" else None,
        "assignee": chance.choice([None, "S", "S2"]),
        "assigned_vendor": chance.choice([None, None, "V500000", "V500001"]),
        "status": status,
        "priority": chance.choice(fields.PRIORITIES),
        "category": SELDOM if place == 3 else chance.choice(["Leak", "HVAC", "Plumbing"]),
        "source": chance.choice(fields.SOURCES),
        "created_at": stamp(at),
        "updated_at": stamp(at),
        **({"cancellation_reason_code": "see_notes"} if status == "Cancelled" else {}),
    }


@pytest.fixture(scope="module")
async def company(service: RunningService, client: Any, database: Database) -> Company:
    company = await new_company(database)
    await _places(database, company)
    chance = random.Random(7)
    await import_tickets(client, company, *(_row(place, chance) for place in range(ROWS)))
    other = await new_company(database)
    await import_tickets(client, other, {"title": "Ticket of others leak", "external_id": "X-1"})
    await Views(service, other.staff).wait_for(1)
    await Views(service, company.staff).wait_for(ROWS)
    return company


@pytest.fixture
def views(service: RunningService, company: Company) -> Views:
    return Views(service, company.staff)


async def _tickets(database: Database, company: Company) -> list[dict[str, Any]]:
    rows = await database.rows(Statement(text(f"SELECT * FROM ticket WHERE company_id = {company.id}")))
    return [dict(row) for row in rows]


def _fits(  # noqa: PLR0911 - a line for each filter
    ticket: dict[str, Any], request: Any, now: datetime.datetime
) -> bool:
    """Reads one ticket as the proto says."""
    lists = {"statuses": fields.STATUSES, "priorities": fields.PRIORITIES, "categories": fields.CATEGORIES}
    columns = {"statuses": "status", "priorities": "priority", "categories": "category"}
    for name, all_labels in lists.items():
        labels = [all_labels[number - 1] for number in getattr(request, name)]
        if labels and ticket[columns[name]] not in labels:
            return False
    if request.sources and ticket["source"] not in request.sources:
        return False
    for name in ("property_id", "unit_id", "asset_id", "assignee_id", "vendor_id", "ticket_number", "external_id"):
        if request.HasField(name) and ticket[name] != getattr(request, name):
            return False
    for name, column in (("has_assignee", "assignee_id"), ("has_vendor", "vendor_id")):
        if request.HasField(name) and (ticket[column] is not None) != getattr(request, name):
            return False
    if request.HasField("opened_from") and ticket["created_at"] < request.opened_from.ToDatetime(datetime.UTC):
        return False
    if request.HasField("opened_to") and ticket["created_at"] >= request.opened_to.ToDatetime(datetime.UTC):
        return False
    if request.stale or request.soon_stale:
        if ticket["stale_due_at"] is None:
            return False
        remaining = ticket["quiet_since"] + datetime.timedelta(hours=72) - now
        is_stale, is_soon = remaining.total_seconds() <= 0, 0 < remaining.total_seconds() <= 86400
        if not ((request.stale and is_stale) or (request.soon_stale and is_soon)):
            return False
    texts = [str(ticket[name]) for name in ("title", "ticket_number", "external_id", "cancellation_reason_code")]
    stored = re.findall("[a-z0-9]+", " ".join(texts).lower())
    return all(any(stored_word.startswith(word) for stored_word in stored) for word in request.words.lower().split())


def _key(ticket: dict[str, Any], order: str) -> Any:
    opened, is_closed = ticket["created_at"].timestamp(), ticket["status"] in CLOSED
    if order in ("newest", "oldest"):
        return (-opened, -ticket["id"]) if order == "newest" else (opened, ticket["id"])
    if order == "priority":
        rank = 9 if is_closed else -fields.PRIORITIES.index(ticket["priority"])
        return rank, -opened if is_closed else opened, ticket["id"]
    if ticket["stale_due_at"] is None:
        return 2, -opened, ticket["id"]
    return ticket["priority"] != "Emergency", ticket["quiet_since"].timestamp(), ticket["id"]


def _stamp(hours: float) -> Any:
    stamp = pb.SearchTicketsRequest().opened_from
    stamp.FromDatetime(NOW - datetime.timedelta(hours=hours))
    return stamp


def _choices(company: Company) -> dict[str, list[Any]]:
    company_id = company.id
    return {
        "statuses": [[1], [1, 2, 3], [4, 5], [5], [1, 4]],
        "priorities": [[4], [3, 4]],
        "categories": [[6], [1, 12], [17]],
        "sources": [["api"], ["import", "inspection"]],
        "property_id": [company_id, company_id + 500_000, 1],
        "unit_id": [company_id, company_id + 500_000],
        "asset_id": [company_id],
        "assignee_id": [company_id, company_id + 500_000],
        "vendor_id": [company_id + 500_001],
        "has_assignee": [True, False],
        "has_vendor": [True, False],
        "stale": [True],
        "soon_stale": [True],
        "opened_from": [_stamp(24 * 20)],
        "opened_to": [_stamp(24 * 10)],
        "words": ["leak", "LEAKING tap", "ticket 3", "xyz"],
        "ticket_number": [3],
        "external_id": ["X-7", "X-1"],
    }


async def _check(views: Views, tickets: list[dict[str, Any]], order: str, values: dict[str, Any]) -> int:
    request = pb.SearchTicketsRequest(**values)
    now = instants.now()
    right = sorted(
        (ticket for ticket in tickets if _fits(ticket, request, now)), key=lambda ticket: _key(ticket, order)
    )
    ids = await views.every(order=ORDERS[order], **values)
    assert ids == [ticket["id"] for ticket in right], (order, values)
    return len(ids)


async def test_each_filter_alone_in_each_order(views: Views, database: Database, company: Company) -> None:
    tickets = await _tickets(database, company)
    count = 0
    for name, choices in _choices(company).items():
        for place, value in enumerate(choices):
            count += await _check(views, tickets, list(ORDERS)[place % 4], {name: value})
    assert count > 500


async def test_filters_together(views: Views, database: Database, company: Company) -> None:
    tickets, chance, count = await _tickets(database, company), random.Random(3), 0
    choices = _choices(company)
    for _ in range(60):
        names = chance.sample(list(choices), chance.randint(2, 4))
        count += await _check(
            views, tickets, chance.choice(list(ORDERS)), {name: chance.choice(choices[name]) for name in names}
        )
    assert count > 50


async def test_a_page_that_is_looked_up_is_the_page_that_a_scan_finds(database: Database, company: Company) -> None:
    choices, compared = _choices(company), 0
    for order in ORDERS.values():
        for name in ("statuses", "priorities", "sources", "assignee_id", "has_assignee", "has_vendor", "words"):
            request_fields: dict[str, Any] = {"order": order, name: choices[name][-1]}
            request = pb.SearchTicketsRequest(**request_fields)
            search = filters.search(request, company.id, NOW, datetime.timedelta(hours=72))
            scanned = await queries.page(database, company.id, search, None, 50, backwards=False)
            values = dict(search.values) | {"terms": search.terms}
            looked_up = await queries.page(
                database, company.id, search._replace(scans=False, values=values), None, 50, backwards=False
            )
            assert [ticket[:2] for ticket in looked_up] == [ticket[:2] for ticket in scanned], request
            compared += len(scanned)
    assert compared > 200


async def test_pages_neither_lose_nor_repeat_tickets_while_others_are_opened(
    views: Views, client: Any, company: Company
) -> None:
    before = await views.every()
    first = await views("SearchTickets", limit=50)
    await import_tickets(client, company, {"title": "Came between", "external_id": "between"})
    await views.wait_for(1, external_id="between")
    second = await views("SearchTickets", limit=200, after=first.next)
    ids = [ticket.ticket_id for answer in (first, second) for ticket in answer.tickets]
    assert ids == before
    again = await views("SearchTickets", limit=200, before=second.previous)
    assert again.tickets[0].title == "Came between" and len(again.tickets) == 51


async def test_words_in_any_script_find_titles_descriptions_and_comments(
    service: RunningService, client: Any, database: Database
) -> None:
    company = await new_company(database)
    views = Views(service, company.staff)
    texts = {
        "Latin": "Nguyễn says the Spülmaschine leaks",
        "Chinese": "卫生间天花板漏水,墙面起泡",
        "Thai": "ก๊อกน้ำรั่วในห้องครัว",
        "Arabic": "المكيّف لا يعمل",
        "Hebrew": "דליפה מתחת לכיור במטבח",
    }
    await import_tickets(
        client, company, *({"title": name, "description": words, "external_id": name} for name, words in texts.items())
    )
    await views.wait_for(len(texts))
    for words, name in (
        ("nguyen spulm", "Latin"), ("天花板", "Chinese"), ("水", "Chinese"), ("น้ำรั่ว", "Thai"), ("المكيف", "Arabic"),
        ("דליפה", "Hebrew"), ("arab", "Arabic"),
    ):  # fmt: skip
        assert await views.titles(words=words) == [name], words
    assert await views.titles(words="花天") == []
    (thai,) = (await views("SearchTickets", words="Thai")).tickets
    await run_command(client, "CommentOnTicket", company.staff, ticket_id=thai.ticket_id, body="Grout is renewed")
    await views.wait_for(1, words="grout")
    assert await views.titles(words="grout renew") == ["Thai"]
    # One wrong letter is forgiven where no ticket is spelled so. Other filters hold, and short words are no others.
    for words, title in (("gruot", "Thai"), ("grouut renewd", "Thai"), ("nguyne", "Latin")):
        close = await views("SearchTickets", words=words)
        assert close.is_close and [ticket.title for ticket in close.tickets] == [title], words
    assert not (await views("SearchTickets", words="nguyen")).is_close
    nothing = [await views("SearchTickets", **more) for more in ({"words": "gruot", "statuses": [4]}, {"words": "tye"})]
    assert [(list(answer.tickets), answer.is_close) for answer in nothing] == [([], False)] * 2


async def test_a_change_is_found_within_a_second_and_shown_at_once(
    service: RunningService, client: Any, database: Database
) -> None:
    company = await new_company(database)
    views = Views(service, company.staff)
    opened = await open_ticket(client, company.staff, property_id=company.id, unit_id=company.id)
    ticket_id = opened["entity_id"]
    await views.wait_for(1, statuses=[1])
    await run_command(client, "AssignTicket", company.staff, ticket_id=ticket_id, assignee_id=company.id)
    (summary,) = (await views("SearchTickets", unit_id=company.id)).tickets
    assert (summary.assignee_name, summary.property_name, summary.unit_name) == ("Ada", "Elm", "1A")
    await views.wait_for(1, assignee_id=company.id)
    await run_command(client, "SetTicketStatus", company.staff, ticket_id=ticket_id, status="Completed",
                      note="It is all good again now")  # fmt: skip
    await views.wait_for(1, statuses=[4], words="good again")
    assert await views.titles(statuses=[1, 2, 3]) == []
    (closed,) = (await views("SearchTickets")).tickets
    assert closed.HasField("closed_at") and closed.status == "Completed"


async def test_a_company_sees_its_own_tickets_alone(
    service: RunningService, client: Any, database: Database, company: Company, views: Views
) -> None:
    stranger = await new_company(database)
    of_stranger = Views(service, stranger.staff)
    first = (await views("SearchTickets")).tickets[0]
    for values in (
        {},
        {"words": "leak"},
        {"property_id": company.id},
        {"external_id": "X-1"},
        {"assignee_id": company.id},
    ):
        assert (await of_stranger("SearchTickets", **values)).tickets == [], values
    assert (
        (await of_stranger("CountTickets")).open
        == (await of_stranger("CountTickets", property_id=company.id)).open
        == 0
    )
    assert (await of_stranger("ListTicketsOfInspection", inspection_id=1)).tickets == []
    refusals = []
    for ticket_id in (first.ticket_id, 10**15):
        for rpc in ("GetTicketDetails", "ListTicketTimeline"):
            with pytest.raises(Refusal) as refused:
                await of_stranger(rpc, ticket_id=ticket_id)
            refusals.append((refused.value.status, refused.value.message))
    assert len(set(refusals)) == 1 and refusals[0][0] == 404


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"limit": 0}, "limit"), ({"limit": 201}, "limit"), ({"statuses": [9]}, "statuses"), ({"order": 9}, "order"),
        ({"sources": ["x"]}, "sources"), ({"after": "1.1", "before": "1.1"}, "before"), ({"words": "!"}, "words"),
        ({"after": "'; DROP"}, ""),
    ],
)  # fmt: skip
async def test_a_search_without_sense_is_refused(views: Views, values: dict[str, Any], field: str) -> None:
    with pytest.raises(Refusal) as refused:
        await views("SearchTickets", **values)
    assert refused.value.status in (400, 422) and refused.value.field == field


async def test_an_administrator_sees_what_staff_see(service: RunningService, company: Company, views: Views) -> None:
    administrator = Views(service, Identity(ADMINISTRATOR, "gateway", company.id, administrator_id=3))
    for rpc in ("SearchTickets", "CountTickets"):
        assert await administrator(rpc) == await views(rpc)


async def test_counts_are_those_of_the_open_tickets(views: Views, database: Database, company: Company) -> None:
    tickets = [ticket for ticket in await _tickets(database, company) if ticket["status"] not in CLOSED]
    counts, now = await views("CountTickets"), instants.now()
    stale = [ticket for ticket in tickets if _fits(ticket, pb.SearchTicketsRequest(stale=True), now)]
    nobody = [ticket for ticket in tickets if ticket["assignee_id"] is ticket["vendor_id"] is None]
    assert (counts.open, counts.stale, counts.unassigned) == (len(tickets), len(stale), len(nobody))
    assert counts.urgent_unassigned == sum(ticket["priority"] in ("High", "Emergency") for ticket in nobody) > 0
    assert counts.soon_stale == len(
        [ticket for ticket in tickets if _fits(ticket, pb.SearchTicketsRequest(soon_stale=True), now)]
    )
    assert counts.emergencies == sum(ticket["priority"] == "Emergency" for ticket in tickets)
    for part, column in ((counts.by_status, "status"), (counts.by_priority, "priority")):
        assert {count.name: count.tickets for count in part if count.tickets} == _counted(tickets, column)
    for part, column in ((counts.by_assignee, "assignee_id"), (counts.by_property, "property_id")):
        assert {count.id or None: count.tickets for count in part} == _counted(tickets, column)
    assert {count.name for count in counts.by_assignee} == {"", "Ada", "Bo"}
    for count in counts.by_age:
        ages = [(now - ticket["created_at"]).total_seconds() / 3600 for ticket in tickets]
        assert count.tickets == sum(count.hours_from <= age < (count.hours_to or 10**9) for age in ages), count
        assert count.on_hold <= count.tickets
    assert sum(counted.on_hold for counted in counts.by_age) == sum(
        counted["status"] == "On Hold" for counted in tickets
    )
    of_property = await views("CountTickets", property_id=company.id)
    assert of_property.open == sum(ticket["property_id"] == company.id for ticket in tickets)


def _counted(tickets: list[dict[str, Any]], column: str) -> dict[Any, int]:
    values = [ticket[column] for ticket in tickets]
    return {value: values.count(value) for value in values}


async def test_every_enum_of_views_is_spelled_by_the_rules() -> None:
    assert TicketStatus.values()[1:] == list(range(1, len(fields.STATUSES) + 1))
    assert maintenance_pb2.TicketPriority.values()[1:] == list(range(1, len(fields.PRIORITIES) + 1))
    assert set(ORDERS.values()) == {number for number in pb.TicketOrder.values() if number}


async def test_rows_that_a_killed_process_left_are_made_after_its_start(
    service: RunningService, client: Any, database: Database, company: Company, views: Views
) -> None:
    right = await views.every(limit=200)
    for change in (
        "DELETE FROM ticket_search WHERE company_id = $1 AND id % 3 = 0",
        "UPDATE ticket_search SET version = 0, property_id = 1 WHERE company_id = $1 AND id % 3 = 1",
        "UPDATE ticket_search SET quiet_since = '2020-01-01', assignee_id = 1 WHERE company_id = $1 AND id % 3 = 2",
    ):
        async with database.connection() as connection:
            await connection.raw.execute(change, company.id)
    assert await views.titles(assignee_id=1)
    service.kill()
    service.start()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while await views.every(limit=200) != right or await views.titles(assignee_id=1):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
