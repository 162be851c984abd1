"""The hourly snapshot of vendors' insurance, and the holds that a lapse places."""

from __future__ import annotations

import asyncio
import datetime
from dataclasses import asdict
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from chassis.db.database import Database
from chassis.db.statements import Statement
from svc_catalog.vendors import queries, rules
from svc_catalog.vendors.records import VENDOR
from svc_catalog.vendors.rules import LAPSED
from svc_catalog.vendors.tables import vendor
from testkit.plans import statement_plan

from ..overdue_companies import LINKS, QUARTER, OverdueCompany, compliance, utc
from ..published import audited, events, public

DAY = datetime.timedelta(days=1)
HELD = {"field": "on_hold", "from": False, "to": True}
EXPIRES = datetime.date(2031, 3, 8)


@pytest.fixture
def database(alone: Any) -> Database:
    database: Database = alone.database
    return database


async def vendors(company: OverdueCompany) -> dict[int, dict[str, Any]]:
    rows = await company.database.rows(Statement(select(vendor).order_by(vendor.c.id)))
    return {row["id"]: dict(row) for row in rows if row["company_id"] == company.id}


async def held(company: OverdueCompany) -> list[int]:
    return [data["entity_id"] for key, data, _ in await public(company.database, company.id) if key == "vendor.hold"]


async def test_the_state_moves_day_by_day_where_the_company_is(database: Database) -> None:
    company = await OverdueCompany(database).founded("Asia/Tokyo")
    vendor_id = await company.insures(EXPIRES)
    missing = await company.insures(None)
    sweeps = compliance(database)
    seen = []
    start = utc("2031-02-01T15:00")  # midnight in Tokyo: the second of February begins
    for day in range(40):
        for quarter in range(0, 96, 16):
            await sweeps.sweep(start + day * DAY + quarter * QUARTER)
        states = await vendors(company)
        seen.append(states[vendor_id]["last_compliance_state"])
        assert states[missing]["last_compliance_state"] == "missing"
    assert seen == ["compliant"] * 4 + ["expiring"] * 31 + ["noncompliant"] * 5
    # The version increases once for each change of a served field, and for nothing else.
    assert (await vendors(company))[vendor_id]["version"] == 4
    assert await held(company) == [vendor_id]


async def test_the_event_of_a_lapse_has_the_vendor_as_its_get_serves_it(database: Database) -> None:
    company = await OverdueCompany(database).founded("America/Chicago")
    vendor_id = await company.insures(EXPIRES, external_id="V1", nickname="Ace")
    sweeps = compliance(database)
    # The last insured day ends at midnight, two hours before the clocks go forward in Chicago.
    assert (await sweeps.sweep(utc("2031-03-09T05:59")))["vendor.hold"] == 0
    assert await sweeps.sweep(utc("2031-03-09T06:00")) == {"vendor.compliance_changed": 1, "vendor.hold": 1}
    row = await database.row(queries.ONE_VENDOR, company_id=company.id, entity_id=vendor_id)
    assert row is not None
    published = [event for _, event in await events(database, company.id)]
    (event,) = [message.public for message in published if message.HasField("public")]
    assert (event.event, event.entity_id) == ("vendor.hold", vendor_id)
    assert event.data == VENDOR.renderer(LINKS).json(row)
    assert (await public(database, company.id))[0][1]["last_compliance_state"] == "noncompliant"
    assert (await public(database, company.id))[0][2] == HELD
    ((reference,),) = [message.references.vendors for message in published if message.HasField("references")]
    assert (reference.id, reference.name, reference.external_id, reference.on_hold) == (vendor_id, "Ace", "V1", True)
    assert (reference.company_id, reference.version) == (company.id, row[-1])
    ((actor, action, subject, subject_id, before, after, _),) = await audited(database, company.id)
    assert (actor, action, subject, subject_id) == ("svc-catalog", "vendor.held", "vendor", vendor_id)
    assert (before, after) == (
        {"on_hold": False, "hold_reason": None},
        {"on_hold": True, "hold_reason": LAPSED},
    )


async def test_days_without_a_sweep_and_several_at_once_hold_each_vendor_once(database: Database) -> None:
    company = await OverdueCompany(database).founded()
    ids = [await company.insures(EXPIRES + n % 3 * DAY) for n in range(120)]
    later = utc("2031-03-14T07:15")
    done = await asyncio.gather(*(compliance(database).sweep(later) for _ in range(4)))
    assert sum(counts["vendor.hold"] for counts in done) == 120
    assert sorted(await held(company)) == ids
    assert await compliance(database).sweep(later + 30 * DAY) == {"vendor.compliance_changed": 0, "vendor.hold": 0}


async def test_a_snapshot_is_as_of_the_full_hour(database: Database) -> None:
    company = await OverdueCompany(database).founded("Asia/Kolkata")  # days begin at half past the hour in UTC
    vendor_id = await company.insures(EXPIRES)
    for at, expected in (
        ("2031-03-08T18:15", "expiring"),
        ("2031-03-08T18:45", "expiring"),
        ("2031-03-08T19:00", "noncompliant"),
    ):
        await compliance(database).sweep(utc(at))
        assert (await vendors(company))[vendor_id]["last_compliance_state"] == expected, at


async def test_who_is_not_tracked_and_inactive_companies_are_left_alone(database: Database) -> None:
    company, inactive = await OverdueCompany(database).founded(), await OverdueCompany(database).founded(active=False)
    imported = {"insurance_tracked": False, "compliance_due_on": None, "last_compliance_state": "noncompliant"}
    await company.insures(None, **imported)
    await inactive.insures(EXPIRES)
    before = [await vendors(company), await vendors(inactive)]
    await compliance(database).sweep(utc("2031-04-01T00:00"))
    assert [await vendors(company), await vendors(inactive)] == before


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("sweep"), st.integers(1, 24 * 20)),
        st.tuples(st.just("insure"), st.integers(-5, 70)),
        st.tuples(st.just("release"), st.just(0)),
    ),
    max_size=12,
)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS)
async def test_whenever_it_is_taken_the_snapshot_is_what_the_day_says(alone: Any, steps: list[tuple[str, int]]) -> None:
    """The state follows the rule; the sweep's index misses no vendor."""
    database: Database = alone.database
    company = await OverdueCompany(database).founded("America/Chicago")
    vendor_id = await company.insures(EXPIRES)
    expires_on, now, holds, held_for = EXPIRES, utc("2031-03-01T00:00"), 0, set[datetime.date]()
    on_hold = False
    for step, much in steps:
        if step == "sweep":
            now += much * 4 * QUARTER
            await compliance(database).sweep(now)
            today = now.astimezone(ZoneInfo("America/Chicago")).date()
            state = rules.compliance(expires_on, today)
            if state == "noncompliant" and expires_on not in held_for:
                held_for.add(expires_on)
                holds += not on_hold
                on_hold = True
            stored = (await vendors(company))[vendor_id]
            assert (stored["last_compliance_state"], stored["on_hold"]) == (state, on_hold)
            assert len(await held(company)) == holds
            continue
        standing = queries.compliance_of((await vendors(company))[vendor_id])
        if step == "insure":
            today = now.astimezone(ZoneInfo("America/Chicago")).date()
            expires_on = today + much * DAY
            standing = rules.record_insurance(standing, expires_on, today)
            if much >= 0:
                on_hold = False
                held_for.clear()
        else:
            standing, on_hold = rules.release(standing), False
        await company.stands(vendor_id, asdict(standing))


async def test_a_sweep_looks_at_those_alone_of_whom_a_day_may_say_something_new(database: Database) -> None:
    company = await OverdueCompany(database).founded()
    async with database.transaction() as connection:
        await connection.raw.execute(
            "INSERT INTO business (company_id, legal_name) SELECT $1, 'n' || n FROM generate_series(1, 20000) n",
            company.id,
        )
        # Without statistics, the foreign key's check would read the whole table for each vendor.
        await connection.raw.execute("ANALYZE business")
        await connection.raw.execute(
            "INSERT INTO vendor (company_id, business_id, rating_count, is_active, property_visibility, onboarded_at,"
            " source, insurance_tracked, insurance_expires_on, compliance_due_on)"
            " SELECT $1, id, 0, true, 'all_properties', now(), 'import', true, date '2032-01-01',"
            " CASE id % 2 WHEN 0 THEN date '2031-12-02' END FROM business WHERE company_id = $1",
            company.id,
        )
    due = [await company.insures(EXPIRES) for _ in range(9)]
    find: Any = compliance(database)._overdue._find
    values = {"zones": ["UTC"], "days": [EXPIRES], "first_company_id": company.id, "rows": 100}
    plan = await statement_plan(database, find, **values)
    assert plan.returned == len(due)
    assert "vendor_compliance_due" in plan.indexes and "vendor" not in plan.whole_tables
    async with database.transaction() as connection:
        await connection.raw.execute("DELETE FROM vendor WHERE company_id = $1", company.id)
