"""A report reads its months' figures and no tickets, however many these are and however old the company is."""

from __future__ import annotations

import datetime

import pytest
from sqlalchemy import text

from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.reports.reading import ReportStatements
from svc_tickets import schema
from testkit.plans import statement_plan

pytestmark = pytest.mark.plans

MEASURES = ["opened", "completed", "backlog"]
# Ten years of two companies: of all tickets, and of 300 assignees.
FILL = """INSERT INTO report_figure (company_id, grain, dimension, property_id, measure, starts_on, value, amount)
    SELECT company, grain, dimension, 0, measure, starts::date, value, 1
    FROM generate_series(880001, 880002) AS company, unnest(ARRAY['opened', 'completed', 'backlog']) AS measure,
    (SELECT 'month' AS grain, '' AS dimension, '' AS value UNION ALL
        SELECT 'month', 'assignee', n::text FROM generate_series(1, 300) AS n) AS part,
    generate_series('2016-01-01'::date, '2025-12-01', '1 month') AS starts"""
KEY = {"company_id": 880001, "grain": "month", "property_id": 0, "measures": MEASURES}
YEAR = {"since": datetime.date(2025, 1, 1), "until": datetime.date(2026, 1, 1)}


async def test_a_year_costs_its_months_however_old_the_company_is(crowded: Database) -> None:
    await crowded.execute(Statement(text(FILL)))
    statements = ReportStatements(schema.reports.figure)
    series = await statement_plan(crowded, statements.series, **KEY, **YEAR, dimension="")
    assert (series.returned, series.rows_met) == (36, 36) and series.indexes == ["report_figure_pkey"]
    values = await statement_plan(
        crowded, statements.values, **KEY | {"measures": ["opened"]}, **YEAR, dimension="assignee"
    )
    assert values.returned == 300 and values.rows_met == 3600
    chosen = [str(n) for n in range(1, 101)]
    groups = await statement_plan(crowded, statements.groups, **KEY, **YEAR, dimension="assignee", values=chosen)
    assert groups.returned == 3600 and groups.rows_met <= 10_800 and groups.buffers < 1000
