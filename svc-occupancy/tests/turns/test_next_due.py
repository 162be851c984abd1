"""When time alone does something next in a sandbox's units: nothing before that instant, and something at it."""

from __future__ import annotations

import asyncio
import datetime
import itertools
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chassis.db import migrations
from chassis.db.database import Database
from chassis.messaging.outbox import Outbox
from chassis.schedule.clocks import Companies
from chassis.writes.audit import Audit
from svc_occupancy import tables
from svc_occupancy.turns.records import TURN
from svc_occupancy.turns.sweeps import Turnovers
from testkit.examples import examples
from testkit.plugin import PostgresServer

DAY = datetime.date(2990, 3, 1)
TICK, ONE_DAY = datetime.timedelta(microseconds=1), datetime.timedelta(days=1)
AFTER_ALL = datetime.datetime(2991, 1, 1, tzinfo=datetime.UTC)
_ids = itertools.count(1)
DAYS = st.integers(0, 9)
# Of a unit: what its resident does, on which day, and on which days the next ones arrive.
UNITS = st.lists(
    st.tuples(st.sampled_from(["none", "stays", "leaves", "left", "puts off"]), DAYS, st.lists(DAYS, max_size=2)),
    min_size=1,
    max_size=5,
)


@pytest.fixture(scope="module")
async def alone(postgres_server: PostgresServer) -> AsyncIterator[Database]:
    url = postgres_server.create_database("occupancy_next_due")
    await asyncio.to_thread(migrations.migrate, url, "svc_occupancy", tables.metadata)
    database = Database(url, application="tests")
    await database.open()
    yield database
    await database.close()


async def fill(database: Database, company_id: int, zone: str, units: list[tuple[str, int, list[int]]]) -> None:
    async with database.transaction() as connection:
        run = connection.raw.execute
        await run(
            "INSERT INTO company (id, version, name, timezone, is_sandbox) VALUES ($1, 1, 'x', $2, true)",
            company_id,
            zone,
        )
        await run("INSERT INTO property (id, company_id, version, name) VALUES ($1, $1, 1, 'x')", company_id)
        for resident, day, arrivals in units:
            unit_id = next(_ids)
            await run(
                "INSERT INTO unit (id, company_id, version, name, property_id) VALUES ($1, $2, 1, 'x', $2)",
                unit_id,
                company_id,
            )
            before: int | None = None
            if resident != "none":
                leaves = None if resident == "stays" else DAY + day * ONE_DAY
                vacated = {"left": leaves, "puts off": DAY - ONE_DAY}.get(resident)
                before = next(_ids)
                await run(
                    "INSERT INTO transition (company_id, id, status, property_id, unit_id, move_out_date, vacated_on,"
                    " created_at, updated_at, source)"
                    " VALUES ($1, $2, 'active', $1, $3, $4, $5, '2020-01-01', '2020-01-01', 'import')",
                    company_id,
                    before,
                    unit_id,
                    leaves,
                    vacated,
                )
            for arrival in sorted(arrivals):
                turn_id = next(_ids)
                await run(
                    "INSERT INTO transition (company_id, id, status, property_id, unit_id, move_in_date, has_begun,"
                    " planned_version, predecessor_id, created_at, updated_at, source)"
                    " VALUES ($1, $2, 'active', $1, $3, $4, false, 1, $5, '2020-01-01', '2020-01-01', 'api')",
                    company_id,
                    turn_id,
                    unit_id,
                    DAY + arrival * ONE_DAY,
                    before,
                )
                before = turn_id


async def turns(database: Database, company_id: int) -> list[Any]:
    async with database.connection() as connection:
        columns = "id, status, has_begun, vacated_on, version"
        rows = await connection.raw.fetch(
            f"SELECT {columns} FROM transition WHERE company_id = $1 ORDER BY id",
            company_id,
        )
        return [tuple(row) for row in rows]


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(units=UNITS, zone=st.sampled_from(["UTC", "America/Toronto", "Australia/Lord_Howe"]))
async def test_nothing_happens_before_the_next_instant_and_something_at_it(
    alone: Database, units: list[tuple[str, int, list[int]]], zone: str
) -> None:
    company_id = next(_ids)
    await fill(alone, company_id, zone, units)
    turnovers = Turnovers(alone, Audit(tables.audit, alone), Outbox("svc-occupancy", tables.outbox), TURN.renderer())

    async def sweep(now: datetime.datetime) -> None:
        await turnovers.sweep(now, Companies(lambda: now, company_id))

    before = await turns(alone, company_id)
    while (due := await turnovers.next_due(company_id)) is not None:
        await sweep(due.at - TICK)
        assert await turns(alone, company_id) == before, due
        await sweep(due.at)
        after = await turns(alone, company_id)
        assert after != before, due
        before = after
    await sweep(AFTER_ALL)
    assert await turns(alone, company_id) == before


async def test_another_companys_turns_make_nothing_due(alone: Database) -> None:
    turnovers = Turnovers(alone, Audit(tables.audit, alone), Outbox("svc-occupancy", tables.outbox), TURN.renderer())
    mine, other, idle = (next(_ids) for _ in range(3))
    await fill(alone, idle, "UTC", [("stays", 0, [])])
    await fill(alone, other, "UTC", [("none", 0, [1]), ("leaves", 2, [0])])
    await fill(alone, mine, "UTC", [("none", 0, [7]), ("leaves", 9, [8])])
    due_at = {company_id: await turnovers.next_due(company_id) for company_id in (mine, other, idle)}
    days = {company_id: None if due is None else due.at.date() - DAY for company_id, due in due_at.items()}
    assert days == {mine: 7 * ONE_DAY, other: ONE_DAY, idle: None}
