"""Reports say what SQL says of the raw history, whatever was corrected, and also after they are made anew."""

from __future__ import annotations

import asyncio
import datetime
import json
import random
from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import BigInteger, Text, text

from chassis.db.database import Database
from chassis.db.statements import TIME, Statement, sql
from chassis.refusals import Refusal
from chassis.reports.histograms import ERROR, EXACT
from chassis.schedule import instants
from makeready.common.v1.reports_pb2 import RebuildReportsRequest, ReportBucket
from makeready.events.v1 import events_pb2
from makeready.tickets.v1 import ticket_reports_pb2 as pb
from svc_tickets.replicas.consumer import put_references
from testkit.patience import PATIENCE_SECONDS

from ..companies import Company, import_tickets, new_company, tell
from ..tickets.commands import open_ticket, run_command

NOW = instants.now()
ZONE = "America/Chicago"
STATUSES = ("Open", "In Progress", "On Hold", "Completed", "Cancelled")
THREE = "array[count(*)" + "".join(f", percentile_disc({p}) WITHIN GROUP (ORDER BY m)" for p in (0.5, 0.9)) + "]"
# One row a month: of all tickets, or of those with a value in a column.
RAW = """
WITH mine AS (
    SELECT * FROM ticket WHERE company_id = :company_id AND (:value = '' OR {column}::text = :value)
), history AS (
    SELECT change.*, mine.created_at FROM mine
    JOIN ticket_status_change AS change ON change.company_id = mine.company_id AND change.ticket_id = mine.id
), months AS (
    SELECT (date_trunc('month', (:now)::timestamptz AT TIME ZONE :zone) - make_interval(months => n)) AS month
    FROM generate_series(0, 11) AS n
), answers AS (
    SELECT created_at, least(
        (SELECT min(c.created_at) FROM ticket_comment AS c WHERE c.company_id = mine.company_id
            AND c.ticket_id = mine.id AND c.author IN ('staff', 'vendor')),
        (SELECT min(occurred_at) FROM history WHERE ticket_id = mine.id)
    ) AS answered_at FROM mine WHERE resident_asked OR source NOT IN ('staff', 'inspection')
)
SELECT to_char(month, 'YYYY-MM') AS month,
    (SELECT count(*) FROM mine WHERE date_trunc('month', created_at AT TIME ZONE :zone) = month) AS opened,
    (SELECT {three}
        FROM (SELECT floor(extract(epoch FROM answered_at - created_at) / 60)::bigint AS m FROM answers
            WHERE date_trunc('month', answered_at AT TIME ZONE :zone) = month) AS q) AS first_response,
    (SELECT {three}
        FROM (SELECT floor(extract(epoch FROM completed_at - created_at) / 60)::bigint AS m FROM mine
            WHERE date_trunc('month', completed_at AT TIME ZONE :zone) = month) AS q) AS completed,
    (SELECT count(*) FROM mine WHERE date_trunc('month', cancelled_at AT TIME ZONE :zone) = month) AS cancelled,
    (SELECT count(*) FROM history WHERE date_trunc('month', occurred_at AT TIME ZONE :zone) = month
        AND from_status IN ('Completed', 'Cancelled') AND to_status NOT IN ('Completed', 'Cancelled')) AS reopened,
    (SELECT count(*) FROM mine WHERE created_at AT TIME ZONE :zone < month + interval '1 month' AND coalesce(
        (SELECT h.to_status FROM history AS h WHERE h.ticket_id = mine.id
            AND h.occurred_at AT TIME ZONE :zone < month + interval '1 month' ORDER BY h.version DESC LIMIT 1),
        CASE WHEN EXISTS (SELECT FROM history AS h WHERE h.ticket_id = mine.id) THEN 'Open'
            WHEN coalesce(completed_at, cancelled_at) AT TIME ZONE :zone < month + interval '1 month' THEN 'Completed'
            ELSE 'Open' END
    ) NOT IN ('Completed', 'Cancelled')) AS backlog
FROM months ORDER BY month
"""


async def raw(database: Database, company: Company, zone: str = ZONE, column: str = "id", value: str = "") -> list[Any]:
    statement = Statement(
        sql(RAW.format(column=column, three=THREE), company_id=BigInteger, value=Text, zone=Text, now=TIME)
    )
    return await database.rows(statement, company_id=company.id, value=value, zone=zone, now=NOW)


async def report(client: Any, company: Company, **fields: Any) -> dict[str, Any]:
    request = pb.GetTicketReportRequest(**{"to_month": f"{NOW.astimezone(_zone()):%Y-%m}"} | fields)
    document: dict[str, Any] = json.loads((await client("GetTicketReport", request, company.operator)).document.json)
    return document


def _zone() -> Any:
    return instants.zone_of(ZONE)


def figures(part: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {figure["measure"]: (figure["count"], figure["median"], figure["p90"]) for figure in part}


def is_close(near: int | None, true: int | None) -> bool:
    if near is None or true is None:
        return near is true
    return near == true if true <= EXACT else abs(near - true) <= ERROR * true + 1


def differences(document: dict[str, Any], rows: Sequence[Any]) -> list[str]:
    wrong = []
    for bucket, row in zip(document["buckets"], rows, strict=True):
        mine = figures(bucket["figures"])
        assert bucket["starts_on"][:7] == row["month"]
        for name in ("opened", "cancelled", "reopened", "backlog"):
            if mine[name][0] != row[name]:
                wrong.append(f"{row['month']} {name}: {mine[name][0]}, SQL {row[name]}")
        for name in ("first_response", "completed"):
            count, *percentiles = row[name]
            is_near = all(map(is_close, mine[name][1:], percentiles))
            if mine[name][0] != count or not is_near:
                wrong.append(f"{row['month']} {name}: {mine[name]}, SQL {row[name]}")
    return wrong


async def agrees(client: Any, database: Database, company: Company, zone: str = ZONE, **where: Any) -> None:
    """Waits until the report says what SQL says."""
    column, value = where.pop("column", "id"), str(where.pop("value", ""))
    wrong = ["nothing was compared"]
    deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
    while wrong and asyncio.get_running_loop().time() < deadline:
        rows = await raw(database, company, zone, column, value)
        wrong = differences(await report(client, company, **where), rows)
        await asyncio.sleep(0.2 if wrong else 0)
    assert not wrong, "\n".join(wrong)


async def _places(database: Database, company: Company) -> None:
    references = events_pb2.References(
        properties=[
            events_pb2.PropertyReference(
                id=company.id + 500_000, version=1, company_id=company.id, name="Oak", external_id="P2"
            )
        ],
        vendors=[
            events_pb2.VendorReference(
                id=10 * company.id + n, version=1, company_id=company.id, name=f"Vendor {n}", external_id=f"V{n}"
            )
            for n in (1, 2)
        ],
    )
    async with database.transaction() as connection:
        await put_references(connection, [references])


def _row(place: int, chance: random.Random, opened: datetime.datetime | None = None) -> dict[str, Any]:
    opened = opened or NOW - datetime.timedelta(minutes=chance.randrange(60 * 24 * 330))
    status = chance.choice(STATUSES)
    closed = min(opened + datetime.timedelta(minutes=chance.choice([5, 50, 700, 9000, 90_000])), NOW)
    row = {
        "external_id": f"T{place}",
        "property": chance.choice(["P", "P2"]),
        "title": "Tap drips",
        "category": chance.choice(["Plumbing", "HVAC", "Leak"]),
        "priority": chance.choice(["Low", "High"]),
        "status": status,
        "created_at": instants.printed(opened),
        "assignee": chance.choice(["S", None]),
        "assigned_vendor": chance.choice(["V1", "V2", None]),
        "source": chance.choice(["staff", "resident_portal", None]),
    }
    if status == "Completed":
        row["completed_at"] = instants.printed(closed)
    if status == "Cancelled":
        row["cancelled_at"] = instants.printed(closed)
    return {name: value for name, value in row.items() if value is not None}


@pytest.fixture(scope="module")
async def company(client: Any, database: Database) -> Company:
    """A company with years of tickets from files, some of which people work on."""
    new = await new_company(database, ZONE)
    await _places(database, new)
    chance = random.Random(7)
    await import_tickets(client, new, *(_row(n, chance) for n in range(150)))
    for n in range(8):
        ticket = await open_ticket(client, new.operator, property_id=new.id, category="HVAC", by=n % 2 + 1)
        ids = {"ticket_id": ticket["entity_id"]}
        if n % 3 == 0:
            await run_command(client, "AssignTicket", new.operator, **ids, vendor_id=10 * new.id + 1)
        if n % 2:
            await run_command(client, "CommentOnTicket", new.operator, **ids, body="The part is ordered")
        await run_command(client, "SetTicketStatus", new.operator, **ids, status="On Hold")
        if n > 2:
            await run_command(
                client, "SetTicketStatus", new.operator, **ids, status="Completed", note="It is all good again now"
            )
        if n > 5:
            await run_command(client, "SetTicketStatus", new.operator, **ids, status="In Progress")
    return new


async def test_a_report_says_what_the_raw_history_says(client: Any, database: Database, company: Company) -> None:
    await agrees(client, database, company)
    await agrees(client, database, company, property_id=company.id, column="property_id", value=company.id)
    document = await report(client, company, group_by=pb.TICKET_REPORT_GROUP_CATEGORY)
    by_category = {group["name"]: figures(group["figures"]) for group in document["groups"]}
    total = figures(document["total"])
    for name in ("opened", "first_response", "completed", "cancelled", "reopened", "on_hold", "backlog"):
        assert sum(group[name][0] for group in by_category.values()) == total[name][0]
    assert total["on_hold"][0] == 3 and total["opened"][0] > 100 and total["reopened"][0] == 2
    for category, group in by_category.items():
        rows = await raw(database, company, column="category", value=category)
        assert group["opened"][0] == sum(row["opened"] for row in rows)
        assert group["completed"][0] == sum(row["completed"][0] for row in rows)
        assert group["backlog"][0] == rows[-1]["backlog"]


async def test_days_add_up_to_months(client: Any, database: Database, company: Company) -> None:
    await agrees(client, database, company)
    by_month = await report(client, company)
    month = by_month["buckets"][-2]
    days = await report(
        client, company, from_month=month["starts_on"][:7], to_month=month["starts_on"][:7],
        bucket=ReportBucket.REPORT_BUCKET_DAY,
    )  # fmt: skip
    assert days["total"] == month["figures"] and len(days["buckets"]) >= 28
    assert (
        sum(figures(day["figures"])["opened"][0] for day in days["buckets"]) == figures(month["figures"])["opened"][0]
    )
    assert days["buckets"][-1]["figures"][-1] == month["figures"][-1], "the backlog at the month's end"


async def test_corrections_of_the_past_move_the_figures_of_their_day(client: Any, database: Database) -> None:
    company = await new_company(database, ZONE)
    await _places(database, company)
    opened = NOW - datetime.timedelta(days=100)
    row = _row(1, random.Random(1), opened) | {
        "status": "Completed", "property": "P", "assigned_vendor": "V1", "source": "resident_portal",
        "completed_at": instants.printed(opened + datetime.timedelta(days=1)),
    }  # fmt: skip
    row.pop("cancelled_at", None)
    await import_tickets(client, company, row)
    await agrees(client, database, company)
    before = await report(client, company, group_by=pb.TICKET_REPORT_GROUP_VENDOR)
    # Another time of completion, another vendor.
    later = opened + datetime.timedelta(days=40)
    await import_tickets(client, company, row | {"completed_at": instants.printed(later), "assigned_vendor": "V2"})
    await agrees(client, database, company)
    after = await report(client, company, group_by=pb.TICKET_REPORT_GROUP_VENDOR)
    assert after != before and [group["name"] for group in after["groups"]] == ["Vendor 2"]
    assert figures(after["total"])["completed"][0] == 1
    # The company moves; its days begin elsewhere.
    await tell(database, company.id, 2, "Pacific/Kiritimati")
    await import_tickets(client, company, row | {"title": "Drips on"})
    await agrees(client, database, company, "Pacific/Kiritimati")


async def stored(database: Database, company: Company) -> list[Any]:
    rows = Statement(text(f"SELECT * FROM report_figure WHERE company_id = {company.id} ORDER BY 1, 2, 3, 4, 5, 6, 7"))
    return [tuple(row) for row in await database.rows(rows)]


async def test_figures_that_are_made_anew_are_the_same(client: Any, database: Database, company: Company) -> None:
    await agrees(client, database, company)
    kept = await stored(database, company)
    request = RebuildReportsRequest(company_id=company.id)
    read = 0
    while not (answer := await client("RebuildReports", request, company.operator)).done:
        read += answer.records
        request = RebuildReportsRequest(company_id=company.id, part=answer.part, above=answer.above)
    read += answer.records
    assert read == 158 and await stored(database, company) == kept and len(kept) > 500


async def test_what_another_company_asks_for_is_its_own(client: Any, database: Database, company: Company) -> None:
    other = await new_company(database)
    with pytest.raises(Refusal) as refusal:
        await report(client, other, property_id=company.id)
    assert refusal.value.status == 404
    assert figures((await report(client, other))["total"])["opened"] == (0, None, None)
