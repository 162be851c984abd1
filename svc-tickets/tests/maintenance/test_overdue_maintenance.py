"""`pm.stale`: the morning after a task's due date, in the company's timezone, once for each task."""

from __future__ import annotations

import asyncio
import datetime
import json
import zoneinfo
from typing import Any

import grpc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.messaging.outbox import Outbox
from chassis.schedule import instants
from chassis.schedule.overdue import ROWS_AT_ONCE
from makeready.common.v1.documents_pb2 import IMPORT_OUTCOME_REJECTED, IMPORT_OUTCOME_UNCHANGED
from svc_tickets import tables as t
from svc_tickets.maintenance.records import STALE_PM_TASK
from svc_tickets.maintenance.sweeps import OverdueMaintenance
from testkit.plans import statement_plan
from testkit.services import RunningService

from ..companies import Company, fired, new_company, sweep, tell
from .pm import Pm

HOUR = datetime.timedelta(hours=1)
MINUTE = datetime.timedelta(minutes=1)
# Far in the future, so that no real sweep of the service finds anything due.
DUE = datetime.date(2040, 3, 5)


def six(day: datetime.date, timezone: str = "UTC") -> datetime.datetime:
    """06:00 local time on the following day."""
    local = datetime.datetime.combine(day, datetime.time(6)) + datetime.timedelta(days=1)
    return local.replace(tzinfo=zoneinfo.ZoneInfo(timezone)).astimezone(datetime.UTC)


async def stale(database: Database, company: Company) -> list[Any]:
    return await fired(database, company, "pm.stale")


async def test_its_data_are_exactly_the_five_keys(service: RunningService, database: Database) -> None:
    company = await new_company(database)
    pm = Pm(service, company)
    task = await pm.add(unit_id=company.id)
    await sweep(service, six(DUE))
    (event,) = await stale(database, company)
    assert event.public.data == (
        b'{"task_name":"Filters","property":"Elm","unit":"1A","due_date":"2040-03-05",'
        b'"url":"https://app.test/pm-tasks/%d"}' % task.pm_task_id
    )
    assert (event.public.change, event.company_id) == (b"", company.id)
    (event_data,) = await pm.tasks()
    assert event_data.stale_at.ToDatetime() == event.occurred_at.ToDatetime() > event_data.updated_at.ToDatetime()
    assert event_data.updated_at == task.updated_at


async def test_it_fires_on_the_morning_after_and_only_once(service: RunningService, database: Database) -> None:
    company = await new_company(database)
    pm = Pm(service, company)
    number = (await pm.add()).pm_task_id
    await sweep(service, six(DUE) - MINUTE)
    assert await stale(database, company) == []
    for days in range(4):
        await sweep(service, six(DUE) + days * 24 * HOUR)
        assert len(await stale(database, company)) == 1
    # A new due date does not announce it again.
    await pm.update(number, due_date="2040-06-01")
    await sweep(service, six(datetime.date(2040, 6, 1)))
    assert len(await stale(database, company)) == 1


async def test_one_that_is_moved_before_fires_by_its_new_date(service: RunningService, database: Database) -> None:
    company = await new_company(database)
    pm = Pm(service, company)
    number = (await pm.add()).pm_task_id
    await pm.update(number, due_date="2040-03-20")
    await sweep(service, six(DUE))
    assert await stale(database, company) == []
    await sweep(service, six(datetime.date(2040, 3, 20)))
    (event,) = await stale(database, company)
    assert json.loads(event.public.data)["due_date"] == "2040-03-20"


async def test_what_is_done_or_dropped_does_not_fire_and_its_successor_does(
    service: RunningService, database: Database
) -> None:
    company = await new_company(database)
    pm = Pm(service, company)
    await pm.complete((await pm.add(repeat_days=10)).pm_task_id)
    await pm.cancel((await pm.add()).pm_task_id)
    await sweep(service, six(DUE))
    assert await stale(database, company) == []
    await sweep(service, six(DUE) + 10 * 24 * HOUR)
    assert len(await stale(database, company)) == 1


@pytest.mark.parametrize(
    ("timezone", "due", "fires_at"),
    [
        ("UTC", "2040-03-05", "2040-03-06T06:00:00Z"),
        # The clocks go forward, and back, in the night before 06:00.
        ("America/Chicago", "2030-03-09", "2030-03-10T11:00:00Z"),
        ("America/Chicago", "2030-03-10", "2030-03-11T11:00:00Z"),
        ("America/Chicago", "2030-11-02", "2030-11-03T12:00:00Z"),
        ("Europe/Berlin", "2030-03-30", "2030-03-31T04:00:00Z"),
        ("Europe/Berlin", "2030-10-26", "2030-10-27T05:00:00Z"),
        ("Australia/Lord_Howe", "2030-04-06", "2030-04-06T19:30:00Z"),
        ("Pacific/Auckland", "2030-09-28", "2030-09-28T17:00:00Z"),
        ("Asia/Kathmandu", "2030-05-05", "2030-05-06T00:15:00Z"),
        ("Pacific/Kiritimati", "2030-05-05", "2030-05-05T16:00:00Z"),
        ("Pacific/Pago_Pago", "2030-05-05", "2030-05-06T17:00:00Z"),
    ],
)
async def test_it_is_the_companys_morning(
    service: RunningService, database: Database, timezone: str, due: str, fires_at: str
) -> None:
    company = await new_company(database, timezone)
    await Pm(service, company).add(due_date=due)
    at = datetime.datetime.fromisoformat(fires_at)
    await sweep(service, at - MINUTE)
    assert await stale(database, company) == []
    await sweep(service, at)
    assert len(await stale(database, company)) == 1


async def test_walked_through_a_month_each_fires_on_its_morning(service: RunningService, database: Database) -> None:
    """Sweeps hourly, with an outage, in three timezones at once, over the days on which their clocks change."""
    companies = {zone: await new_company(database, zone) for zone in ("America/New_York", "Europe/Paris", "Asia/Tokyo")}
    days = [datetime.date(2031, 3, 1) + datetime.timedelta(days=n) for n in range(31)]
    expected: dict[tuple[str, str], datetime.datetime] = {}
    for zone, company in companies.items():
        rows = [{"external_id": str(day), "task_name": str(day), "due_date": str(day)} for day in days]
        await Pm(service, company).bring(*rows)
        expected |= {(zone, str(day)): six(day, zone) for day in days}
    replica = _replica(database)
    seen: dict[tuple[str, str], datetime.datetime] = {}
    down, up = (datetime.datetime(2031, 3, day, 1, tzinfo=datetime.UTC) for day in (11, 14))
    now = datetime.datetime(2031, 3, 1, tzinfo=datetime.UTC)
    while now < datetime.datetime(2031, 4, 3, tzinfo=datetime.UTC):
        if not down <= now < up and (await replica.sweep(now))["pm.stale"]:
            for zone, company in companies.items():
                for event in await stale(database, company):
                    seen.setdefault((zone, json.loads(event.public.data)["task_name"]), now)
        now += HOUR
    for key, at in expected.items():
        assert seen[key] == (up if down <= at < up else at), key
    for company in companies.values():
        assert len(await stale(database, company)) == len(days)


def _replica(database: Database) -> OverdueMaintenance:
    renderer = STALE_PM_TASK.renderer("https://app.test")
    return OverdueMaintenance(database, Outbox("svc-tickets", t.outbox), renderer)


async def test_several_replicas_at_once_fire_each_once(service: RunningService, database: Database) -> None:
    company = await new_company(database)
    await Pm(service, company).bring(*({"external_id": str(n)} for n in range(350)))
    done = await asyncio.gather(*(_replica(database).sweep(six(DUE)) for _ in range(4)))
    events = await stale(database, company)
    assert len({event.public.entity_id for event in events}) == len(events) == 350
    assert sum(counts["pm.stale"] for counts in done) >= 350


async def test_a_sweep_killed_on_the_way_is_made_good(service: RunningService, database: Database) -> None:
    company = await new_company(database)
    await Pm(service, company).bring(*({"external_id": str(n)} for n in range(ROWS_AT_ONCE + 50)))
    service.stop()
    service.start(MAKEREADY_KILL_AT="sweep-before-commit")
    with pytest.raises(grpc.aio.AioRpcError):
        await sweep(service, six(DUE))
    assert service.process is not None and await asyncio.to_thread(service.process.wait, 20) == -9
    assert await stale(database, company) == []
    service.start()
    for _ in range(2):
        await sweep(service, six(DUE))
    events = await stale(database, company)
    assert len({event.public.entity_id for event in events}) == len(events) == ROWS_AT_ONCE + 50


async def test_inactive_and_unknown_companies_have_no_sweeps(service: RunningService, database: Database) -> None:
    inactive, unknown = await new_company(database), await new_company(database, arrived=False)
    for company in (inactive, unknown):
        await Pm(service, company).add()
    await tell(database, inactive.id, 2, "UTC", active=False)
    await sweep(service, six(DUE))
    assert await stale(database, inactive) == await stale(database, unknown) == []
    await tell(database, inactive.id, 3, "UTC")
    await sweep(service, six(DUE))
    assert len(await stale(database, inactive)) == 1


async def test_an_import_without_events_counts_overdue_tasks_as_announced(
    service: RunningService, database: Database
) -> None:
    company = await new_company(database)
    pm, today = Pm(service, company), instants.now().date()
    rows = [
        {"external_id": "old", "due_date": "2020-01-01"},
        {"external_id": "ahead", "due_date": str(today + datetime.timedelta(days=3))},
    ]
    await pm.bring(*rows)
    old, ahead = await pm.tasks()
    assert (old.HasField("stale_at"), ahead.HasField("stale_at")) == (True, False)
    again = await pm.bring(*rows)
    assert [result.outcome for result in again] == [IMPORT_OUTCOME_UNCHANGED] * 2
    await pm.bring(rows[1] | {"due_date": "2020-01-02"})
    await sweep(service, instants.now())
    assert await stale(database, company) == []


async def test_an_import_with_events_leaves_it_to_the_next_sweep(service: RunningService, database: Database) -> None:
    company = await new_company(database)
    await Pm(service, company).bring({"external_id": "old", "due_date": "2020-01-01"}, events=True)
    assert await stale(database, company) == []
    for _ in range(2):
        await sweep(service, instants.now())
        assert len(await stale(database, company)) == 1


@pytest.mark.usefixtures("catalog")
async def test_what_a_row_of_a_file_may_say(service: RunningService, database: Database) -> None:
    company = await new_company(database)
    pm = Pm(service, company)
    bad: list[dict[str, Any]] = [
        {"unit": "U", "area": "Roof"},
        {"repeat_days": 1, "repeat_months": 1},
        {"repeat_days": 0},
        {"due_date": "soon"},
        {"property": "nowhere"},
        {"status": "Late"},
        {"completed_at": "2026-01-01"},
        {"cancelled_at": "2026-01-01", "status": "Completed"},
        {"task_name": ""},
    ]
    done = await pm.bring(*(row | {"external_id": str(n)} for n, row in enumerate(bad)))
    assert [result.outcome for result in done] == [IMPORT_OUTCOME_REJECTED] * len(bad)
    assert [result.field for result in done] == (
        "area repeat_months repeat_days due_date property status completed_at cancelled_at task_name".split()
    )
    good = {"external_id": "G", "unit": "U", "asset": "A", "repeat_months": 1, "due_date": "2040-01-31"}
    await pm.bring(good)
    (task,) = await pm.tasks()
    assert (task.unit, task.asset_id, task.source, task.external_id) == ("1A", company.id, "import", "G")
    await pm.bring(good | {"status": "Completed", "completed_at": "2026-01-30"})
    (task,) = await pm.tasks()
    assert (task.status, task.completed_at.ToDatetime()) == ("Completed", datetime.datetime(2026, 1, 30))
    await pm.bring(good | {"unit": None, "area": "Roof", "status": "Open"})
    (task,) = await pm.tasks()
    assert (task.status, task.unit, task.HasField("completed_at")) == ("Open", "Roof", False)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    zone=st.sampled_from(["America/Chicago", "Europe/London", "Asia/Kolkata", "Pacific/Chatham"]),
    due=st.dates(datetime.date(2030, 1, 1), datetime.date(2039, 12, 31)),
    steps=st.lists(st.integers(1, 40 * 4), min_size=1, max_size=6),
)
async def test_whatever_the_rhythm_of_the_sweeps_it_fires_at_the_first_after_its_morning(
    service: RunningService, database: Database, zone: str, due: datetime.date, steps: list[int]
) -> None:
    company = await new_company(database, zone)
    await Pm(service, company).add(due_date=str(due))
    now = six(due, zone) - 20 * HOUR
    for step in steps:
        now += step * 15 * MINUTE
        await _replica(database).sweep(now)
        assert len(await stale(database, company)) == (1 if now >= six(due, zone) else 0)


async def test_what_a_sweep_costs_grows_with_what_is_stale(service: RunningService, database: Database) -> None:
    company = await new_company(database)
    await Pm(service, company).bring(*({"external_id": str(n)} for n in range(5)))
    async with database.connection() as connection:
        await connection.raw.execute(
            "INSERT INTO pm_task (company_id, task_name, property_id, due_date, created_at, updated_at, source,"
            " stale_at) SELECT $1, 'x', $1, CASE WHEN n % 2 = 0 THEN date '2020-01-01' ELSE date '2045-01-01' END,"
            " now(), now(), 'import', CASE WHEN n % 2 = 0 THEN now() END FROM generate_series(1, 10000) n",
            company.id,
        )
    companies = await database.value(Statement(text("SELECT count(*) FROM company WHERE active AND version > 0")))
    find: Any = _replica(database)._overdue._find
    values = {"zones": ["UTC"], "days": [DUE + datetime.timedelta(days=1)], "first_company_id": company.id, "rows": 100}
    plan = await statement_plan(database, find, **values)
    assert plan.returned == 5
    assert "pm_task_due" in plan.indexes and "pm_task" not in plan.whole_tables
    assert plan.rows_met <= 5 + 2 * companies
    following: Any = _replica(database)._overdue._next._find
    plan = await statement_plan(database, following, company_id=company.id)
    assert plan.rows_met <= 2 and "pm_task_due" in plan.indexes  # the company, and the task that is due first
