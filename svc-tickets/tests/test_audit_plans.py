"""The cost of a page of the audit log depends on the page alone, not on the company's other entries."""

from __future__ import annotations

import secrets

import pytest
from sqlalchemy import text

from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.writes.audit import Audit
from svc_tickets import tables as t
from testkit.plans import statement_plan

pytestmark = pytest.mark.plans

ENTRIES, ROWS = 20_000, 50


@pytest.mark.parametrize("analyzed", [False, True])
async def test_a_page_costs_itself(database: Database, analyzed: bool) -> None:
    company_id = 10**12 + int(secrets.token_hex(4), 16)
    audit = Audit(t.audit, database)
    async with database.connection() as connection:
        await connection.raw.execute(
            "INSERT INTO audit (company_id, actor, action, subject, subject_id, before, after, request_id)"
            " SELECT $1, 'operator', 'x', CASE WHEN n % 100 = 0 THEN 'ticket' ELSE 'pm_task' END, n % 1000, '{}', '{}',"
            " '' FROM generate_series(1, $2::int) n",
            company_id,
            ENTRIES,
        )
    if analyzed:
        await database.execute(Statement(text("ANALYZE audit")))
    values = {"company_id": company_id, "before_id": 2**62, "rows": ROWS}
    of_one = {"subject_id": 7}
    for statement, more in (
        (audit._all, {}),
        (audit._of_kind, {"subject": "ticket"}),
        (audit._of_kind, {"subject": "pm_task"}),
        (audit._of_kind, {"subject": "unit"}),
        (audit._of_one, {"subject": "pm_task"} | of_one),
        (audit._of_one, {"subject": "ticket"} | of_one),
    ):
        plan = await statement_plan(database, statement, **values, **more)
        assert plan.rows_met == plan.returned <= ROWS, more
        assert not plan.whole_tables
