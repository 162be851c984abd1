"""Imports of tickets: upsert by external_id, rows refused by field, no change the second time."""

from __future__ import annotations

import json
import secrets
from typing import Any

import grpc
import pytest
from sqlalchemy import func, select

from chassis.auth.identity import INTEGRATION, OPERATOR, Identity
from chassis.db.database import Database
from chassis.db.statements import Statement
from makeready.catalog.v1 import places_pb2, vendors_pb2
from makeready.common.v1 import documents_pb2 as common
from makeready.events.v1 import events_pb2
from makeready.events.v1.events_pb2 import Event
from makeready.identity.v1 import identity_pb2, staff_pb2
from makeready.tickets.v1 import tickets_pb2 as pb
from svc_tickets import tables as t
from svc_tickets.replicas.consumer import put_references
from testkit.services import RunningService

from .changing import SENT, change, events_of

pytestmark = pytest.mark.usefixtures("places")

CREATED, CHANGED = common.IMPORT_OUTCOME_CREATED, common.IMPORT_OUTCOME_CHANGED
UNCHANGED, REJECTED = common.IMPORT_OUTCOME_UNCHANGED, common.IMPORT_OUTCOME_REJECTED


def row(**changes: Any) -> dict[str, Any]:
    return {
        "external_id": secrets.token_hex(6),
        "property": "P10",
        "title": "Lift stuck",
        "category": "Elevator",
    } | changes


def sent(*rows: Any) -> list[common.ImportRow]:
    return [common.ImportRow(line=n, json=json.dumps(fields).encode()) for n, fields in enumerate(rows, 2)]


async def imported(client: Any, who: Any, rows: list[Any], **options: Any) -> list[Any]:
    response = await client("ImportTickets", pb.ImportTicketsRequest(rows=sent(*rows), **options), who)
    assert [result.line for result in response.results] == list(range(2, 2 + len(rows)))
    return list(response.results)


async def served(client: Any, external_id: str) -> dict[str, Any]:
    page = (await client("ListTickets", pb.ListTicketsRequest(limit=200))).page
    after = 0
    while True:
        page = (await client("ListTickets", pb.ListTicketsRequest(limit=200, after_id=after))).page
        tickets: list[dict[str, Any]] = json.loads(page.data)
        for ticket in tickets:
            if ticket["external_id"] == external_id:
                return ticket
        assert page.HasField("next_after_id"), f"{external_id} is not served"
        after = page.next_after_id


async def test_a_row_becomes_a_ticket_and_the_second_time_nothing(client: Any, operator: Any) -> None:
    first = row(
        unit="U1",
        status="Completed",
        created_at="2015-01-05",
        completed_at="2015-03-18T13:45:31-04:00",
        permission_to_enter="yes",
        description="",
    )
    assert [r.outcome for r in await imported(client, operator, [first])] == [CREATED]
    ticket = await served(client, first["external_id"])
    assert ticket["source"] == "import" and ticket["status"] == "Completed" and ticket["ticket_number"] > 0
    assert ticket["created_at"] == "2015-01-05T00:00:00.000000Z"
    assert ticket["completed_at"] == "2015-03-18T17:45:31.000000Z"
    assert ticket["updated_at"] > "2026", "who follows updated_since must hear of what is imported today"
    assert ticket["unit"]["id"] == 100 and ticket["unit_number"] == "1A" and ticket["permission_to_enter"] is True
    assert [r.outcome for r in await imported(client, operator, [first])] == [UNCHANGED]
    assert await served(client, first["external_id"]) == ticket


async def test_a_changed_row_changes_what_it_gives_and_leaves_the_rest(client: Any, operator: Any) -> None:
    first = row(room="Kitchen", subcategory="Cab", status="Cancelled", cancellation_reason_code="wrong_property")
    await imported(client, operator, [first])
    before = await served(client, first["external_id"])
    change = {name: first[name] for name in ("external_id", "property", "category")}
    change |= {"title": "Lift moves", "subcategory": "", "status": "In Progress"}
    assert [r.outcome for r in await imported(client, operator, [change])] == [CHANGED]
    after = await served(client, first["external_id"])
    assert after["title"] == "Lift moves" and after["room"] == "Kitchen" and after["subcategory"] is None
    assert after["cancelled_at"] is None and after["cancellation_reason_code"] is None
    assert after["updated_at"] > before["updated_at"] and after["ticket_number"] == before["ticket_number"]


async def test_a_row_names_its_assignee_and_vendor_and_a_later_one_takes_them_away(client: Any, operator: Any) -> None:
    first = row(assignee="S30", assigned_vendor="V40")
    assert [r.outcome for r in await imported(client, operator, [first])] == [CREATED]
    ticket = await served(client, first["external_id"])
    assert ticket["assignee"] == {"id": 30, "name": "Ada Byrne"}
    assert ticket["assigned_vendor"] == {"id": 40, "name": "Otis", "external_id": "V40"}
    assert [r.outcome for r in await imported(client, operator, [first])] == [UNCHANGED]
    without = {name: value for name, value in first.items() if name != "assigned_vendor"} | {"assignee": ""}
    assert [r.outcome for r in await imported(client, operator, [without])] == [CHANGED]
    ticket = await served(client, first["external_id"])
    assert ticket["assignee"] is None and ticket["assigned_vendor"]["id"] == 40


async def test_what_the_replicas_lack_is_asked_of_its_owners(client: Any, owners: dict[str, RunningService]) -> None:
    async with owners["gateway"].channel() as channel:
        name = f"Company {secrets.token_hex(4)}"
        request = identity_pb2.CreateCompanyRequest(name=name)
        company = (await owners["gateway"].call(channel, request, Identity(OPERATOR, "operator"))).company.id
        staff = staff_pb2.ImportStaffRequest(rows=sent({"external_id": "S1", "name": "Ada Byrne"}))
        who = Identity(OPERATOR, "operator", company)
        await owners["gateway"].call(channel, staff, who)
    async with owners["svc-catalog"].channel() as channel:
        service = {"external_id": "P1", "name": "Elm Court", "address": "1 Elm St"}
        places = places_pb2.ImportPropertiesRequest(rows=sent(service))
        await owners["svc-catalog"].call(channel, places, who)
        vendors = vendors_pb2.ImportVendorsRequest(rows=sent({"external_id": "V1", "name": "Cascade Elevator"}))
        await owners["svc-catalog"].call(channel, vendors, who)

    first = row(property="P1", assignee="S1", assigned_vendor="V1")
    results = await imported(client, who, [first, row(property="P1", assignee="S2"), row(property="P2")])
    assert [r.outcome for r in results] == [CREATED, REJECTED, REJECTED], [r.reason for r in results]
    assert [r.field for r in results] == ["", "assignee", "property"]
    page = (
        await client(
            "ListTickets", pb.ListTicketsRequest(limit=2), Identity(INTEGRATION, "gateway", company, 1, "read")
        )
    ).page
    (ticket,) = json.loads(page.data)
    assert ticket["property"]["name"] == "Elm Court" and ticket["assignee"]["name"] == "Ada Byrne"
    assert ticket["assigned_vendor"]["name"] == "Cascade Elevator"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"title": None}, "title"),
        ({"title": "x" * 151}, "title"),
        ({"title": "a\0b"}, ""),
        ({"category": "Lifts"}, "category"),
        ({"property": "nowhere"}, "property"),
        ({"unit": "nowhere"}, "unit"),
        ({"created_at": "05/01/2015"}, "created_at"),
        *(({name: "2999-01-01"}, name) for name in ("created_at", "updated_at")),
        ({"completed_at": "2999-01-01", "status": "Completed"}, "completed_at"),
        ({"cancelled_at": "2999-01-01", "status": "Cancelled"}, "cancelled_at"),
        ({"completed_at": "2015-01-05", "status": "Open"}, "completed_at"),
        ({"cancellation_reason_code": "see_notes", "status": "Open"}, "cancellation_reason_code"),
        ({"permission_to_enter": "perhaps"}, "permission_to_enter"),
        ({"external_id": " "}, "external_id"),
        ({"nonsense": "1"}, "nonsense"),
        ({"assignee": "nobody"}, "assignee"),
        ({"assignee": "S31"}, "assignee"),  # of another company
        ({"assigned_vendor": "nobody"}, "assigned_vendor"),
        ({"assigned_vendor": "V41"}, "assigned_vendor"),
    ],
)
async def test_a_bad_row_is_rejected_by_field_and_the_others_kept(
    client: Any, operator: Any, changes: dict[str, Any], field: str, owners: Any
) -> None:
    good, results = row(), []
    results = await imported(client, operator, [row(**changes), good])
    assert [r.outcome for r in results] == [REJECTED, CREATED]
    assert results[0].field == field and results[0].reason.endswith(".")
    await served(client, good["external_id"])


async def test_the_second_row_with_an_external_id_is_rejected(client: Any, operator: Any) -> None:
    first = row()
    results = await imported(client, operator, [first, first])
    assert [r.outcome for r in results] == [CREATED, REJECTED] and results[1].field == "external_id"


async def test_a_ticket_takes_neither_unit_nor_asset_along_to_another_property(
    client: Any, operator: Any, database: Database
) -> None:
    other = events_pb2.PropertyReference(
        id=12, version=1, company_id=operator.company_id, name="Ash Court", external_id="P12"
    )
    boiler = events_pb2.AssetReference(
        id=210, version=1, company_id=operator.company_id, property_id=10, name="Boiler", external_id="A210"
    )
    async with database.transaction() as connection:
        await put_references(connection, [events_pb2.References(properties=[other], assets=[boiler])])
    of_unit, of_asset = row(unit="U1"), row(asset="A210")
    await imported(client, operator, [of_unit, of_asset])
    moved = [
        {name: value for name, value in fields.items() if name not in ("unit", "asset")} | {"property": "P12"}
        for fields in (of_unit, of_asset)
    ]
    results = await imported(client, operator, moved)
    assert [(r.outcome, r.field) for r in results] == [(REJECTED, "unit"), (REJECTED, "asset")]
    assert (await served(client, of_unit["external_id"]))["property"]["external_id"] == "P10"
    cleared = [moved[0] | {"unit": ""}, moved[1] | {"asset": ""}]
    assert [r.outcome for r in await imported(client, operator, cleared)] == [CHANGED, CHANGED]
    ticket = await served(client, of_unit["external_id"])
    assert (ticket["property"]["external_id"], ticket["unit"]) == ("P12", None)


async def test_a_dry_run_reports_and_writes_nothing(client: Any, operator: Any, database: Database) -> None:
    first = row()
    assert [r.outcome for r in await imported(client, operator, [first], dry_run=True)] == [CREATED]
    there = Statement(select(func.count()).select_from(t.ticket).where(t.ticket.c.external_id == first["external_id"]))
    assert await database.value(there) == 0


async def test_public_events_fire_only_where_asked_for(client: Any, operator: Any, database: Database) -> None:
    quiet, loud = row(), row()
    await imported(client, operator, [quiet])
    await imported(client, operator, [loud], events=True)
    await imported(client, operator, [loud | {"status": "On Hold"}], events=True)
    for reason in ("wrong_property", "duplicate_ticket", "duplicate_ticket"):
        cancelled = loud | {"status": "Cancelled", "cancellation_reason_code": reason}
        await imported(client, operator, [cancelled], events=True)
    messages = [
        Event.FromString(r["message"])
        for r in await database.rows(Statement(select(t.outbox.c.message).order_by(t.outbox.c.event_id)))
    ]
    of_tickets = [m.public for m in messages if m.public.event.startswith("ticket.")]
    fired = [(event.event, json.loads(event.data), event.change) for event in of_tickets]
    assert not [data for _, data, _ in fired if data["external_id"] == quiet["external_id"]]
    mine = [(event, data, change) for event, data, change in fired if data["external_id"] == loud["external_id"]]
    assert [event for event, _, _ in mine] == ["ticket.created", *["ticket.status_changed"] * 3]
    changes = [json.loads(change) for _, _, change in mine[1:]]
    assert changes == [
        {"field": "status", "from": before, "to": after}
        for before, after in (("Open", "On Hold"), ("On Hold", "Cancelled"), ("Cancelled", "Cancelled"))
    ]
    assert mine[-1][1] == await served(client, loud["external_id"])


async def test_an_owner_that_is_away_fails_the_batch_and_keeps_nothing(
    client: Any, operator: Any, away_gateway: RunningService, database: Database
) -> None:
    away_gateway.kill()
    good = row()
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await imported(client, operator, [good, row(assignee="not here yet")])
    assert failed.value.code() == grpc.StatusCode.UNAVAILABLE
    there = Statement(select(func.count()).select_from(t.ticket).where(t.ticket.c.external_id == good["external_id"]))
    assert await database.value(there) == 0


CLOSED = {"Completed": "completed_at", "Cancelled": "cancelled_at"}


@pytest.mark.parametrize("status", CLOSED)
async def test_a_closed_ticket_without_a_close_date_has_none(
    client: Any, operator: Any, database: Database, status: str
) -> None:
    """The moment of the import is not when it was closed."""
    column, other = CLOSED[status], next(closed_column for name, closed_column in CLOSED.items() if name != status)
    first = row(status=status, created_at="2015-01-05", source="resident_portal")
    assert [r.outcome for r in await imported(client, operator, [first])] == [CREATED]
    ticket = await served(client, first["external_id"])
    assert (ticket["status"], ticket["completed_at"], ticket["cancelled_at"]) == (status, None, None)
    assert [r.outcome for r in await imported(client, operator, [first | {column: ""}])] == [UNCHANGED]
    # A later file knows it, then one without the column, then one that clears it.
    dated = first | {column: "2015-03-18"}
    for sent_row, expected in ((dated, "2015-03-18T00:00:00.000000Z"), (first, "2015-03-18T00:00:00.000000Z")):
        await imported(client, operator, [sent_row])
        assert (await served(client, first["external_id"]))[column] == expected
    assert [r.outcome for r in await imported(client, operator, [first | {column: ""}])] == [CHANGED]
    ticket = await served(client, first["external_id"])
    assert (ticket[column], ticket[other]) == (None, None)
    # An open ticket that a file closes without a date has none either; with events, the event says so too.
    opened_one = row(status="Open")
    await imported(client, operator, [opened_one])
    await imported(client, operator, [opened_one | {"status": status}], events=True)
    ticket = await served(client, opened_one["external_id"])
    assert (ticket["status"], ticket[column]) == (status, None)
    event = (await events_of(database, ticket["entity_id"]))[-1]
    assert json.loads(event.public.data) == ticket


@pytest.mark.parametrize("status", CLOSED)
async def test_a_ticket_closed_at_an_unknown_time_goes_on_like_any_other(
    client: Any, operator: Any, database: Database, status: str
) -> None:
    async def closed() -> int:
        first = row(status=status, created_at="2015-01-05", source="resident_portal")
        if status == "Cancelled":
            first["cancellation_reason_code"] = SENT["Cancelled"]["cancellation_reason_code"]
        await imported(client, operator, [first])
        ticket_id: int = (await served(client, first["external_id"]))["entity_id"]
        return ticket_id

    # Whoever asks for the status that it has already closes it now (spec 3.1): the API sets the instant.
    ticket_id, column = await closed(), CLOSED[status]
    reply = json.loads((await change(client, ticket_id, SENT[status])).body)
    assert reply["status"] == status and reply[column] == reply["updated_at"]
    (event,) = await events_of(database, ticket_id)
    assert json.loads(event.public.data) == reply
    assert json.loads(event.public.change) == {"field": "status", "from": status, "to": status}
    # Every other status follows, and comes back.
    for after in SENT.keys() - {status}:
        ticket_id = await closed()
        moved = json.loads((await change(client, ticket_id, SENT[after])).body)
        assert moved["status"] == after and moved[column] is None
        assert (moved["completed_at"] is None) == (after != "Completed")
        assert (moved["cancelled_at"] is None) == (after != "Cancelled")
        back = json.loads((await change(client, ticket_id, SENT[status])).body)
        assert back[column] == back["updated_at"]
        changes = [json.loads(event.public.change) for event in await events_of(database, ticket_id)]
        assert [(event_change["from"], event_change["to"]) for event_change in changes] == [
            (status, after),
            (after, status),
        ]
    # No sweep takes it for open, and a page by its status has it.
    due = Statement(select(t.ticket.c.stale_due_at, t.ticket.c.quiet_since).where(t.ticket.c.id == await closed()))
    due_row = await database.row(due)
    assert due_row is not None and due_row["stale_due_at"] is None and due_row["quiet_since"] is not None
    number = pb.TicketStatus.Value(f"TICKET_STATUS_{status.upper()}")
    page = (await client("ListTickets", pb.ListTicketsRequest(limit=200, status=number))).page
    assert None in {ticket[column] for ticket in json.loads(page.data)}
