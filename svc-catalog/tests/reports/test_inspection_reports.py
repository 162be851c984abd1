"""Reports say what SQL says of the inspections and their rows, and also after they are made anew."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sqlalchemy import BigInteger, Text

from chassis.db.database import Database
from chassis.db.statements import Statement, sql
from chassis.refusals import Refusal
from makeready.catalog.v1 import inspection_commands_pb2 as commands_pb
from makeready.catalog.v1 import inspection_reports_pb2 as pb
from makeready.common.v1.reports_pb2 import RebuildReportsRequest
from testkit.patience import eventually

SPAN = {"from_month": "2025-01", "to_month": "2025-12"}
# One row a month with inspections: all, or those of a type.
RAW = Statement(
    sql(
        """
SELECT to_char(completed_date, 'YYYY-MM') AS month, count(*) AS inspected,
    count(*) FILTER (WHERE result = 'passed') AS inspections_passed,
    count(*) FILTER (WHERE result = 'failed') AS inspections_failed,
    coalesce(sum(items), 0)::bigint AS items, coalesce(sum(items_failed), 0)::bigint AS items_failed
FROM inspection LEFT JOIN LATERAL (
    SELECT count(*) FILTER (WHERE result IS NOT NULL) AS items,
        count(*) FILTER (WHERE result = 'failed') AS items_failed
    FROM inspection_row WHERE company_id = inspection.company_id AND inspection_id = inspection.id
) AS counted ON true
WHERE company_id = :company_id AND status = 'Completed' AND kind = 'operations'
    AND (:type = '' OR inspection_type = :type)
GROUP BY 1
""",
        company_id=BigInteger,
        type=Text,
    )
)
MEASURES = ("inspected", "inspections_passed", "inspections_failed", "items", "items_failed")


async def report(company: Any, **fields: Any) -> dict[str, Any]:
    request = pb.GetInspectionReportRequest(**SPAN | fields)
    document: dict[str, Any] = json.loads(
        (await company.catalog("GetInspectionReport", request, company.caller)).document.json
    )
    return document


def counts(figures: list[dict[str, Any]]) -> dict[str, int]:
    return {figure["measure"]: figure["count"] for figure in figures}


async def by_month(database: Database, company: Any, kind: str = "") -> dict[str, dict[str, int]]:
    rows = await database.rows(RAW, company_id=company.id, type=kind)
    return {row["month"]: {name: row[name] for name in MEASURES} for row in rows}


async def agrees(database: Database, company: Any) -> None:
    """Waits until the report says what SQL says."""

    async def is_equal() -> bool:
        buckets = (await report(company))["buckets"]
        months = {bucket["starts_on"][:7]: counts(bucket["figures"]) for bucket in buckets}
        return {month: row for month, row in months.items() if any(row.values())} == await by_month(database, company)

    await eventually(is_equal, "the report says what SQL says")


async def walk(company: Any, rows: dict[str, str], day: str, **values: Any) -> int:
    """Completes an inspection; returns its id. rows: each label's result."""
    answer = await company.command(
        commands_pb, "ScheduleInspection", scheduled_date=day, row=list(rows), title="Walk", **values
    )
    about = {"inspection_id": answer.document.entity_id}
    for row in (await company.command(commands_pb, "ListInspectionRows", **about)).rows:
        if rows[row.label] == "failed":
            fault = {"note": "It does not close", "category": "Doors/Windows"}
            await company.command(commands_pb, "FailInspectionRow", row_id=row.row_id, **about, **fault)
        elif rows[row.label] == "passed":
            await company.command(commands_pb, "PassInspectionRow", row_id=row.row_id, **about)
    await company.command(commands_pb, "CompleteInspection", completed_date=day, **about)
    return int(about["inspection_id"])


@pytest.fixture
async def inspected(company: Any, database: Database) -> Any:
    """A company with a year of inspections, from files and walked."""
    names = {"P1": "P1 Court", "P2": "P2 Court"}
    await company.put("properties", *({"external_id": p, "name": n, "address": "A"} for p, n in names.items()))
    await company.put(
        "inspections",
        *(
            {
                "external_id": f"I{n}", "property": f"P{n % 2 + 1}", "title": f"Walk {n}", "status": "Completed",
                "completed_date": f"2025-{n % 9 + 1:02}-0{n % 9 + 1}", "result": ("passed", "failed", None)[n % 3],
                "inspection_type": ("General", "Fire")[n % 4 == 0],
            }
            for n in range(40)
        ),
        {"external_id": "open", "property": "P1", "title": "Open", "status": "Scheduled"},
    )  # fmt: skip
    return company


async def test_a_report_says_what_the_inspections_say(inspected: Any, database: Database) -> None:
    await agrees(database, inspected)
    by_type = await report(inspected, group_by=pb.INSPECTION_REPORT_GROUP_TYPE)
    assert {group["name"] for group in by_type["groups"]} == {"General", "Fire"}
    for group in by_type["groups"]:
        rows = (await by_month(database, inspected, group["name"])).values()
        assert counts(group["figures"]) == {name: sum(row[name] for row in rows) for name in MEASURES}
    properties = await report(inspected, group_by=pb.INSPECTION_REPORT_GROUP_PROPERTY)
    assert {group["name"] for group in properties["groups"]} == {"P1 Court", "P2 Court"}
    first = next(group for group in properties["groups"] if group["name"] == "P1 Court")
    alone = await report(inspected, property_id=first["entity_id"])
    assert alone["total"] == first["figures"] and counts(alone["total"])["inspected"] == 20


async def test_the_items_that_fail_most_come_first(inspected: Any, database: Database) -> None:
    (place,) = [row["entity_id"] for row in await inspected.list("properties") if row["name"] == "P1 Court"]
    for n in range(3):
        rows = {"Door": "failed" if n else "passed", "Alarm": "passed", "Roof": "failed" if n == 2 else "passed"}
        await walk(inspected, rows, f"2025-11-0{n + 1}", property_id=place)
    await agrees(database, inspected)
    items = (await report(inspected, group_by=pb.INSPECTION_REPORT_GROUP_ITEM))["groups"]
    figures = [
        (group["name"], counts(group["figures"])["items_failed"], counts(group["figures"])["items"]) for group in items
    ]
    assert figures == [("Door", 2, 3), ("Roof", 1, 3)], "those that never failed are none of them"


async def test_corrections_move_the_figures_and_made_anew_they_are_the_same(inspected: Any, database: Database) -> None:
    await agrees(database, inspected)
    moved = {"external_id": "I1", "property": "P2", "title": "Walk 1", "status": "Completed", "result": "passed"}
    assert await inspected.put("inspections", moved | {"completed_date": "2025-12-24"}) == ["changed"]
    assert await inspected.put("inspections", {"external_id": "I2", "property": "P1", "status": "Scheduled"})
    await agrees(database, inspected)
    stored = await report(inspected, group_by=pb.INSPECTION_REPORT_GROUP_TYPE)
    request = RebuildReportsRequest(company_id=inspected.id)
    while not (answer := await inspected.catalog("RebuildReports", request, inspected.operator)).done:
        request = RebuildReportsRequest(company_id=inspected.id, part=answer.part, above=answer.above)
    assert await report(inspected, group_by=pb.INSPECTION_REPORT_GROUP_TYPE) == stored


async def test_the_property_is_one_of_the_company(inspected: Any) -> None:
    with pytest.raises(Refusal) as refusal:
        await report(inspected, property_id=10**9)
    assert (refusal.value.status, refusal.value.field) == (404, "property_id")
