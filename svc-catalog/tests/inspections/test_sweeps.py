"""`inspection.stale` fires once for each inspection: on the morning after its scheduled date, in the company's zone."""

from __future__ import annotations

import asyncio
import datetime
import json
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chassis.db.database import Database
from svc_catalog.inspections import queries, rules
from svc_catalog.inspections.records import INSPECTION
from testkit.plans import statement_plan

from ..overdue_companies import LINKS, QUARTER, OverdueCompany, overdue_inspections, utc
from ..published import events, public

DAY = datetime.timedelta(days=1)
MARCH = datetime.date(2031, 3, 1)


@pytest.fixture
def database(alone: Any) -> Database:
    database: Database = alone.database
    return database


async def stale(database: Database, company_id: int) -> list[int]:
    return [data["entity_id"] for key, data, _ in await public(database, company_id) if key == "inspection.stale"]


@pytest.mark.parametrize(
    ("timezone", "scheduled", "morning"),
    [
        ("America/Chicago", "2031-03-07", "2031-03-08T12:00"),
        # The clocks go forward in the night before this morning, and back in the night before the next one.
        ("America/Chicago", "2031-03-08", "2031-03-09T11:00"),
        ("America/Chicago", "2031-11-01", "2031-11-02T12:00"),
        ("Australia/Lord_Howe", "2031-04-05", "2031-04-05T19:30"),
        ("Asia/Kathmandu", "2031-05-05", "2031-05-06T00:15"),
        ("Pacific/Kiritimati", "2031-05-05", "2031-05-05T16:00"),
        ("UTC", "2031-12-31", "2032-01-01T06:00"),
    ],
)
async def test_it_fires_with_the_morning_and_not_before(
    database: Database, timezone: str, scheduled: str, morning: str
) -> None:
    company = await OverdueCompany(database).founded(timezone)
    inspection_id = await company.plans(datetime.date.fromisoformat(scheduled))
    sweeps = overdue_inspections(database)
    await sweeps.sweep(utc(morning) - datetime.timedelta(microseconds=1))
    await sweeps.sweep(utc(morning) - QUARTER)
    assert await stale(database, company.id) == []
    assert (await sweeps.sweep(utc(morning)))["inspection.stale"] == 1
    assert await sweeps.sweep(utc(morning) + 9 * DAY) == {"inspection.stale": 0}
    assert await stale(database, company.id) == [inspection_id]


async def test_it_bears_the_inspection_as_its_get_serves_it_and_changes_nothing(database: Database) -> None:
    company = await OverdueCompany(database).founded()
    inspection_id = await company.plans(MARCH, title=None, status="In Progress", inspection_number=7)
    before = datetime.datetime.now(datetime.UTC)
    await overdue_inspections(database).sweep(utc("2031-03-02T06:00"))
    ((subject, event),) = await events(database, company.id)
    key = (company.id, inspection_id)
    (served,) = await queries.INSPECTION_DOCUMENTS.fetch(database, INSPECTION.renderer(LINKS), [key])
    assert served is not None and served.version == 1
    assert event.public.data == served.json
    assert (subject, event.public.entity_id, event.public.change) == ("public.inspection.stale", inspection_id, b"")
    # occurred_at is the actual time, not the sweep's `now`.
    assert before <= event.occurred_at.ToDatetime(datetime.UTC) <= datetime.datetime.now(datetime.UTC)
    assert json.loads(event.public.data)["title"] is None


@pytest.mark.parametrize("status", rules.STORED_STATUSES)
@pytest.mark.parametrize(
    ("kind", "engagement"),
    [
        ("operations", None),
        ("acceptance_walk", None),
        ("acceptance_walk", "E"),
        ("consulting_walk", None),
        ("consulting_walk", "E"),
    ],
)
async def test_only_what_is_open_and_served_fires(
    database: Database, status: str, kind: str, engagement: str | None
) -> None:
    assert kind in rules.INSPECTION_KINDS
    company = await OverdueCompany(database).founded()
    inspection_id = await company.plans(MARCH, status=status, kind=kind, engagement=engagement)
    await company.plans(None, status=status, kind=kind, engagement=engagement)
    await overdue_inspections(database).sweep(utc("2031-03-02T06:00"))
    fires = rules.may_become_stale(status, kind, engagement)
    assert await stale(database, company.id) == [inspection_id] * fires


async def test_an_inactive_company_and_one_that_has_not_arrived_hear_of_it_later(database: Database) -> None:
    inactive = await OverdueCompany(database).founded(active=False)
    unknown = await OverdueCompany(database).founded(version=0)
    planned = [await company.plans(MARCH) for company in (inactive, unknown)]
    sweeps = overdue_inspections(database)
    await sweeps.sweep(utc("2031-03-02T06:00"))
    assert await stale(database, inactive.id) == await stale(database, unknown.id) == []
    await inactive.sets(active=True)
    await unknown.sets(version=1)
    assert (await sweeps.sweep(utc("2031-03-02T06:15")))["inspection.stale"] == 2
    assert await stale(database, inactive.id) + await stale(database, unknown.id) == planned


async def test_what_is_moved_before_its_morning_moves_and_afterwards_it_does_not_fire_again(database: Database) -> None:
    company = await OverdueCompany(database).founded()
    inspection_id = await company.plans(MARCH)
    sweeps = overdue_inspections(database)
    await company.moves(inspection_id, scheduled_date=MARCH + 5 * DAY)
    await sweeps.sweep(utc("2031-03-04T06:00"))
    assert await stale(database, company.id) == []
    await sweeps.sweep(utc("2031-03-07T06:00"))
    await company.moves(inspection_id, scheduled_date=MARCH + 9 * DAY)
    await sweeps.sweep(utc("2031-03-20T06:00"))
    assert await stale(database, company.id) == [inspection_id]


async def test_several_replicas_after_days_of_outage_announce_each_once(database: Database) -> None:
    companies = [
        await OverdueCompany(database).founded(timezone) for timezone in ("UTC", "Asia/Tokyo", "America/Chicago")
    ]
    planned = [[await company.plans(MARCH + n % 4 * DAY) for n in range(60)] for company in companies]
    sweeps = [overdue_inspections(database) for _ in range(4)]
    done = await asyncio.gather(*(replica.sweep(utc("2031-03-05T16:00")) for replica in sweeps))
    assert sum(counts["inspection.stale"] for counts in done) == 180
    for company, ids in zip(companies, planned, strict=True):
        assert sorted(await stale(database, company.id)) == ids


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("sweep"), st.integers(1, 4 * 24 * 5), st.just(0)),
        st.tuples(st.just("move"), st.integers(0, 3), st.integers(0, 20)),
        st.tuples(st.just("complete"), st.integers(0, 3), st.just(0)),
        st.tuples(st.just("travel"), st.sampled_from([0, 1]), st.just(0)),
    ),
    max_size=14,
)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, 20), min_size=4, max_size=4), STEPS)
async def test_each_overdue_inspection_fires_once_whatever_is_moved_and_however_late_the_sweep(
    alone: Any, days: list[int], steps: list[tuple[str, int, int]]
) -> None:
    database: Database = alone.database
    zones = ("America/Chicago", "Asia/Kathmandu")
    timezone = zones[0]
    company = await OverdueCompany(database).founded(timezone)
    ids = [await company.plans(MARCH + day * DAY) for day in days]
    scheduled = {inspection_id: MARCH + day * DAY for inspection_id, day in zip(ids, days, strict=True)}
    is_open, announced = set(ids), []
    now = utc("2031-03-01T00:00")
    for step, operand, day in steps:
        if step == "sweep":
            now += operand * QUARTER
            await overdue_inspections(database).sweep(now)
            for inspection_id in ids:
                morning = datetime.datetime.combine(
                    scheduled[inspection_id] + DAY, datetime.time(6), ZoneInfo(timezone)
                )
                if (
                    inspection_id in is_open
                    and inspection_id not in announced
                    and morning.timestamp() <= now.timestamp()
                ):
                    announced.append(inspection_id)
            assert sorted(await stale(database, company.id)) == sorted(announced)
        elif step == "move":
            scheduled[ids[operand]] = MARCH + day * DAY
            await company.moves(ids[operand], scheduled_date=scheduled[ids[operand]])
        elif step == "complete":
            is_open.discard(ids[operand])
            await company.moves(ids[operand], status="Completed")
        else:
            timezone = zones[operand]
            await company.sets(timezone=timezone)


async def test_a_sweep_looks_at_what_is_due_alone(database: Database) -> None:
    company = await OverdueCompany(database).founded()
    async with database.transaction() as connection:
        await connection.raw.execute(
            "INSERT INTO inspection (company_id, property_id, status, is_compliance_inspection, kind, created_at,"
            " source, scheduled_date, stale_announced_at)"
            " SELECT $1, $1, CASE n % 3 WHEN 0 THEN 'Completed' ELSE 'Scheduled' END, false,"
            " CASE n % 5 WHEN 0 THEN 'consulting_walk' ELSE 'operations' END, now(), 'import',"
            " CASE n % 2 WHEN 0 THEN date '2031-02-01' ELSE date '2031-06-01' END,"
            " CASE n % 2 WHEN 0 THEN now() END FROM generate_series(1, 20000) n",
            company.id,
        )
    due = [await company.plans(MARCH) for _ in range(9)]
    find: Any = overdue_inspections(database)._overdue._find
    values = {"zones": ["UTC"], "days": [MARCH + DAY], "first_company_id": company.id, "rows": 100}
    plan = await statement_plan(database, find, **values)
    assert plan.returned == len(due)
    assert "inspection_stale" in plan.indexes and "inspection" not in plan.whole_tables
    async with database.transaction() as connection:
        await connection.raw.execute("DELETE FROM inspection WHERE company_id = $1", company.id)
