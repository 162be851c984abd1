"""The cost of a page of the audit log depends on the page alone, not on the company's other entries."""

from __future__ import annotations

import datetime
import secrets
from typing import Any

import pytest
from sqlalchemy import text

from chassis.db.database import IN_ORDER, Database
from chassis.db.statements import Statement
from chassis.writes.audit import Audit
from svc_tickets import tables as t
from testkit.plans import statement_plan

pytestmark = pytest.mark.plans

ENTRIES, ROWS = 20_000, 50


@pytest.mark.parametrize("analyzed", [False, True])
async def test_a_page_costs_itself(crowded: Database, analyzed: bool) -> None:
    company_id = 10**12 + int(secrets.token_hex(4), 16)
    audit = Audit(t.audit, crowded)
    async with crowded.connection() as connection:
        await connection.raw.execute(
            "INSERT INTO audit (company_id, actor, action, subject, subject_id, before, after, request_id)"
            " SELECT $1, 'operator', 'x', CASE WHEN n % 100 = 0 THEN 'ticket' ELSE 'pm_task' END, n % 1000, '{}', '{}',"
            " 'r-' || n FROM generate_series(1, $2::int) n",
            company_id,
            ENTRIES,
        )
    if analyzed:
        await crowded.execute(Statement(text("ANALYZE audit")))
    since, until = (datetime.datetime(year, 1, 1, tzinfo=datetime.UTC) for year in (1980, 2200))
    values = {"company_id": company_id, "after_id": 0, "before_id": 2**62, "since": since, "until": until, "rows": ROWS}
    filters: tuple[dict[str, Any], ...] = (
        {},
        {"subject": "ticket"},
        {"subject": "pm_task"},
        {"subject": "unit"},
        {"subject": "pm_task", "subject_id": 7},
        {"subject": "ticket", "subject_id": 7},
        {"actor": "operator"},
        {"actor": "operator", "subject": "ticket"},
        {"actor": "operator", "subject": "unit"},
        {"actor": "staff:1"},
        {"request_id": "r-7"},
    )
    for more in filters:
        plan = await statement_plan(crowded, audit._pages[frozenset(more)], IN_ORDER, **values, **more)
        assert plan.rows_met == plan.returned <= ROWS, (
            more,
            [node.get("Index Name", node["Node Type"]) for node in plan],
        )
        assert not plan.whole_tables
