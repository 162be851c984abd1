"""The report on turns says what SQL says of the raw history, and the same after it is made anew."""

from __future__ import annotations

import datetime
import json
from collections.abc import Awaitable, Callable
from typing import Any

from sqlalchemy import BigInteger, text

from chassis.db.database import Database
from chassis.db.statements import Statement, sql
from makeready.common.v1.reports_pb2 import RebuildReportsRequest
from makeready.occupancy.v1 import turn_reports_pb2 as pb

from ..harness import Company, until

TODAY = datetime.datetime.now(datetime.UTC).date()
# Of all turns whose residents have left: the days to the next move-in, and to the day on which the unit was ready.
RAW = """
WITH begun AS (
    SELECT *, lead(move_in_date) OVER (PARTITION BY unit_id ORDER BY id) AS next_move_in FROM transition
    WHERE company_id = :company_id AND has_begun AND status <> 'cancelled'
), gone AS (
    SELECT *, (SELECT (change.changed_at AT TIME ZONE 'UTC')::date FROM unit_status_change AS change
        WHERE change.company_id = begun.company_id AND change.unit_id = begun.unit_id AND change.turn_id = begun.id
        AND change.to_status = 'Vacant Ready' ORDER BY change.version DESC LIMIT 1) AS ready_on
    FROM begun WHERE move_out_date IS NOT NULL AND (status = 'completed' OR vacated_on = move_out_date)
)
SELECT count(*) AS moved_out, count(next_move_in) AS moved_in, count(ready_on) AS ready,
    percentile_disc(0.5) WITHIN GROUP (ORDER BY next_move_in - move_out_date) AS days_to_move_in,
    percentile_disc(0.5) WITHIN GROUP (ORDER BY ready_on - move_out_date) AS days_to_ready,
    count(*) - count(next_move_in) AS vacant
FROM gone
"""


def before(days: int) -> str:
    return (TODAY - datetime.timedelta(days=days)).isoformat()


async def report(company: Company, **fields: Any) -> dict[str, Any]:
    response = await company.house("GetTurnReport", pb.GetTurnReportRequest(**fields), company.operator)
    document: dict[str, Any] = json.loads(response.document.json)
    return document


def figures(part: list[dict[str, Any]]) -> dict[str, tuple[int, int | None]]:
    return {figure["measure"]: (figure["count"], figure["median"]) for figure in part}


async def played(company: Company, served: Database) -> int:
    """Turns of files, and one that staff make ready; returns its unit."""
    unit_id = await company.known_unit(served)
    await company.make_units("U2", "U3")
    turns = (
        ("A1", "U2", 300, 200, "Completed"), ("A2", "U2", 190, 90, "Completed"), ("A3", "U2", 80, None, "Active"),
        ("B1", "U3", 400, 120, "Completed"), ("B2", "U3", 100, None, "Active"),
    )  # fmt: skip
    for external_id, unit, moved_in, moved_out, status in turns:
        row = {"external_id": external_id, "unit": unit, "move_in_date": before(moved_in), "status": status}
        row |= {} if moved_out is None else {"move_out_date": before(moved_out)}
        assert await company.put("turns", row) == ["created"]
    await company.move_in(unit_id, move_in_date=before(60))
    await company.notice(unit_id, before(3))
    for status in ("Vacant Not Ready", "Vacant Ready"):
        await company.command("SetUnitStatus", unit_id=unit_id, unit_status=status)
    return unit_id


async def test_the_report_says_what_the_raw_history_says(
    new_company: Callable[[], Awaitable[Company]], served: Database
) -> None:
    company = await new_company()
    await played(company, served)
    raw = await served.row(Statement(sql(RAW, company_id=BigInteger)), company_id=company.id)
    assert raw is not None and (raw["moved_out"], raw["moved_in"], raw["ready"]) == (4, 3, 1)

    async def total() -> dict[str, Any]:
        return figures((await report(company))["total"])

    expected = {
        "moved_out": (raw["moved_out"], None),
        "moved_in": (raw["moved_in"], raw["days_to_move_in"]),
        "ready": (raw["ready"], raw["days_to_ready"]),
        "vacant": (raw["vacant"], None),
    }

    async def same() -> dict[str, Any]:
        return {name: figure for name, figure in (await total()).items() if name in expected}

    await until(same, expected)
    document = await report(company, group_by=pb.TURN_REPORT_GROUP_PROPERTY)
    assert [group["name"] for group in document["groups"]] == ["Elm Court"]
    assert document["groups"][0]["figures"] == document["total"]

    # A file corrects the past: the figures of their months move, and no others.
    assert await company.put("turns", {"external_id": "A2", "unit": "U2", "move_in_date": before(195)}) == ["changed"]

    async def median() -> Any:
        return (await total())["moved_in"]

    await until(median, (3, 10))  # 5, 10 and 20 days


async def test_figures_that_are_made_anew_are_the_same(
    new_company: Callable[[], Awaitable[Company]], served: Database
) -> None:
    company = await new_company()
    await played(company, served)
    stored = Statement(
        text(f"SELECT * FROM report_figure WHERE company_id = {company.id} ORDER BY 1, 2, 3, 4, 5, 6, 7")
    )

    async def moved_out() -> Any:
        return figures((await report(company))["total"])["moved_out"][0]

    await until(moved_out, 4)
    kept = [tuple(row) for row in await served.rows(stored)]
    answer = await company.house("RebuildReports", RebuildReportsRequest(company_id=company.id), company.operator)
    assert answer.done and answer.records == 3
    assert [tuple(row) for row in await served.rows(stored)] == kept and len(kept) > 20
