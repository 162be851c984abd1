"""The cost of a sweep grows with the due rows and the number of companies, not with their turns and tasks."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import AsyncIterator
from typing import Any

import pytest

from chassis.db import migrations
from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.messaging.outbox import Outbox
from chassis.schedule.overdue import ROWS_AT_ONCE
from chassis.writes.audit import Audit
from svc_occupancy import tables
from svc_occupancy.turn_tasks.records import STALE_TASK
from svc_occupancy.turn_tasks.sweeps import stale_tasks
from svc_occupancy.turns import queries
from svc_occupancy.turns.records import TURN
from svc_occupancy.turns.sweeps import Turnovers
from testkit.plans import explained
from testkit.plugin import PostgresServer

pytestmark = pytest.mark.plans

COMPANIES, EACH = 40, 500
DAY = datetime.date(2026, 3, 10)
# Each company has residents who stay, whose departure is handled, and who leave later; behind half of them another turn
# is planned, for a later day, or for a day that is past while the resident is still there. Three residents of one
# company and one of another have left and are due; so are four planned turns. The tasks are alike.
FILL = f"""
INSERT INTO company (id, version, name) SELECT c, 1, 'x' FROM generate_series(1, {COMPANIES}) c;
INSERT INTO property (id, company_id, version, name) SELECT c, c, 1, 'x' FROM generate_series(1, {COMPANIES}) c;
CREATE TABLE many AS SELECT c, c * {EACH} + n AS id, n FROM generate_series(1, {COMPANIES}) c,
  generate_series(0, {EACH - 1}) n;
INSERT INTO unit (id, company_id, version, name, property_id) SELECT id, c, 1, 'x', c FROM many;
INSERT INTO transition (company_id, id, status, property_id, unit_id, move_out_date, vacated_on, created_at, updated_at,
    source)
  SELECT c, id, 'active', c, id,
    CASE n % 3 WHEN 0 THEN NULL WHEN 1 THEN date '{DAY}' - n ELSE date '{DAY}' + n END,
    CASE n % 3 WHEN 1 THEN date '{DAY}' - n END, '2020-01-01', '2020-01-01', 'import' FROM many;
INSERT INTO transition (company_id, id, status, property_id, unit_id, move_in_date, has_begun, planned_version,
    predecessor_id, created_at, updated_at, source)
  SELECT c, 1000000 + id, 'active', c, id, date '{DAY}' + n, false, 1, id, '2020-01-01', '2020-01-01', 'api' FROM many
  WHERE n % 2 = 0 AND n > 0;
UPDATE transition SET move_in_date = '{DAY}' WHERE (company_id, id % {EACH}) IN ((7, 10), (7, 16), (7, 22), (30, 40))
  AND NOT has_begun;
UPDATE transition SET move_in_date = '{DAY}' WHERE (company_id, id % {EACH}) IN ((9, 30), (9, 36)) AND NOT has_begun;
INSERT INTO unit_state (company_id, unit_id, version, unit_status) SELECT c, id, 1, 'Notice' FROM many;
INSERT INTO turn_task (company_id, transition_id, unit_id, task_type, status, scheduled_date, completed_at, stale_at,
    created_at, updated_at, source)
  SELECT c, id, id, 'Paint', CASE n % 4 WHEN 0 THEN 'completed' ELSE 'open' END,
    CASE n % 4 WHEN 1 THEN NULL WHEN 2 THEN date '{DAY}' + n ELSE date '{DAY}' - 1 - n END,
    CASE n % 4 WHEN 0 THEN now() END, CASE n % 4 WHEN 3 THEN now() END, '2020-01-01', '2020-01-01', 'staff' FROM many;
UPDATE transition SET move_out_date = '{DAY}'::date - 1, vacated_on = NULL
  WHERE (company_id, id % {EACH}) IN ((7, 5), (7, 6), (7, 7), (30, 8));
UPDATE turn_task SET scheduled_date = '{DAY}'::date - 1, stale_at = NULL, status = 'open', completed_at = NULL
  WHERE (company_id, transition_id % {EACH}) IN ((7, 5), (7, 6), (7, 7), (30, 8));
"""
DUE, WAITING = 4, 2


@pytest.fixture
async def alone(postgres_server: PostgresServer) -> AsyncIterator[Database]:
    url = postgres_server.create_database("occupancy_sweeps")
    await asyncio.to_thread(migrations.migrate, url, "svc_occupancy", tables.metadata)
    database = Database(url, application="tests")
    await database.open()
    async with database.transaction() as connection:
        await connection.raw.execute(FILL)
    yield database
    await database.close()


async def test_a_sweep_meets_what_is_due_and_each_company_once(alone: Database) -> None:
    outbox = Outbox("svc-occupancy", tables.outbox)
    turnovers = Turnovers(alone, Audit(tables.audit, alone), outbox, TURN.renderer())
    tasks = stale_tasks(alone, outbox, STALE_TASK.renderer())
    first: dict[str, Any] = {"first_company_id": 0, "rows": ROWS_AT_ONCE}
    cases: list[tuple[Statement, str, int]] = [
        (turnovers._departures._find, "transition_to_vacate", DUE),
        # With each planned turn whose day has come its predecessor, and the current one: some wait for that.
        (turnovers._arrivals._find, "transition_to_begin", 3 * (DUE + WAITING)),
        (tasks._overdue._find, "turn_task_to_tell_of", DUE),
    ]
    lock = turnovers._departures._hold_first
    assert lock is not None
    departed = [(company_id, company_id * EACH + n) for company_id, n in ((7, 5), (7, 6), (7, 7), (30, 8))]
    for analyzed in (False, True):
        if analyzed:
            async with alone.connection() as connection:
                await connection.raw.execute("ANALYZE")
        for statement, index, most in cases:
            async with explained(alone, statement) as explain:
                for day, due in ((DAY, DUE), (DAY - datetime.timedelta(days=1), 0)):
                    plan = await explain(**first, days=[day], zones=["UTC"])
                    assert plan.returned == due and index in plan.indexes
                    assert plan.rows_met <= COMPANIES + (most if due else 0), (plan.rows_met, plan.indexes)
                    assert set(plan.whole_tables) <= {"company"}
        for overdue, index in (
            (turnovers._departures, "transition_to_vacate"),
            (turnovers._arrivals, "transition_to_begin"),
            (tasks._overdue, "turn_task_to_tell_of"),
        ):
            async with explained(alone, overdue._next._find) as explain:
                for company_id in (7, 9, 30):
                    plan = await explain(company_id=company_id)
                    # The company; the first turns in order, with those in their units.
                    assert index in plan.indexes and plan.rows_met <= 20, (index, plan.rows_met, plan.indexes)
                    assert set(plan.whole_tables) <= {"company"}
        async with explained(alone, queries.LOOK_AT_SEVERAL) as explain:
            ids = [7 * EACH + n for n in (5, 6, 7, 10, 16, 22)]
            plan = await explain(company_id=7, unit_ids=ids)
            # Of each: the unit, its property, its turns, its state and the company.
            assert plan.returned == len(ids) and plan.rows_met <= 8 * len(ids), (plan.rows_met, plan.indexes)
            assert set(plan.whole_tables) <= {"company", "property"}
        async with explained(alone, lock) as explain:
            plan = await explain(
                company_id=[company for company, _ in departed], id=[turn_id for _, turn_id in departed]
            )
            assert plan.returned == DUE and not plan.whole_tables
            # The array, the turns and the units, nothing else.
            assert plan.rows_met <= 3 * DUE, (plan.rows_met, plan.indexes)
