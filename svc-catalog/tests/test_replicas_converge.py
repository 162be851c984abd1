"""In whatever order events arrive, units and replicas end with their owners' newest versions."""

from __future__ import annotations

import asyncio
import datetime
import itertools
import random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from chassis.db.database import Database, DatabaseUnavailable
from chassis.db.statements import Statement
from chassis.messaging.consumer import Consumer, Produced
from chassis.messaging.outbox import uuid7
from chassis.messaging.transport import Transport
from makeready.events.v1.events_pb2 import (
    CompanyReference,
    Event,
    References,
    StaffReference,
    UnitOccupancyReference,
)
from svc_catalog import consumers, schema
from svc_catalog.places import import_queries, rules
from svc_catalog.places import tables as t
from testkit.examples import examples

_companies = itertools.count(1)
_UNITS = Statement(select(t.unit).order_by(t.unit.c.id))


def event(**rows: Any) -> Event:
    event = Event(event_id=str(uuid7()), company_id=1, references=References(**rows))
    event.occurred_at.FromDatetime(datetime.datetime.now(datetime.UTC))
    return event


def taker(database: Database) -> Consumer:
    """svc-catalog's consumer without NATS and without producers."""
    return Consumer(
        "svc-catalog", database, schema.inbox, Transport("nats://127.0.0.1:1", "t"), consumers.apply, {}, {}
    )


def reference_event(unit_id: int, version: int, company_id: int, **fields: Any) -> Event:
    reference = UnitOccupancyReference(id=unit_id, version=version, company_id=company_id, **fields)
    return event(unit_occupancies=[reference])


async def occupancies(database: Database, company_id: int) -> list[tuple[Any, ...]]:
    rows = [row for row in await database.rows(_UNITS) if row["company_id"] == company_id]
    return [(row["unit_status"], row["projected_ready_on"], row["occupancy_version"], row["version"]) for row in rows]


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.randoms(use_true_random=False), st.lists(st.integers(1, 5)))
async def test_any_order_any_batches_and_any_repetition_end_as_the_newest_versions(
    alone: Any, mixed: random.Random, sizes: list[int]
) -> None:
    company_id = next(_companies)
    units = await alone.make_units(company_id)
    steps = []
    for version in range(1, 5):
        ready = f"2026-03-0{version}"
        for unit_id in units:
            state = {} if version == 3 else {"unit_status": rules.UNIT_STATUSES[version], "projected_ready_on": ready}
            steps.append(reference_event(unit_id, version, company_id, **state))
        person = StaffReference(id=company_id * 10, version=version, company_id=company_id, name=f"v{version}")
        steps.append(event(staff=[person]))
        house = CompanyReference(id=company_id, version=version, name=f"v{version}", active=True, timezone="UTC")
        steps.append(event(companies=[house]))
    events = [*steps, *mixed.choices(steps, k=8)]
    mixed.shuffle(events)
    consumer = taker(alone.database)
    for size in [*sizes, len(events)]:
        batch, events = events[:size], events[size:]
        assert (
            await consumer.store_what_applies([Produced("svc-occupancy", sent) for sent in batch], by="nats") == set()
        )
    newest = (rules.UNIT_STATUSES[4], datetime.date(2026, 3, 4), 4, 1)
    assert await occupancies(alone.database, company_id) == [newest, newest]
    staff = await alone.database.rows(Statement(select(schema.staff)))
    assert [row["name"] for row in staff if row["id"] == company_id * 10] == ["v4"]
    companies = await alone.database.rows(Statement(select(schema.company)))
    assert [row["name"] for row in companies if row["id"] == company_id] == ["v4"]


async def test_a_unit_that_svc_occupancy_knows_nothing_of_any_more_is_null_again(alone: Any) -> None:
    company_id = next(_companies)
    unit_id, _ = await alone.make_units(company_id)
    consumer = taker(alone.database)
    await consumer.store(
        [reference_event(unit_id, 1, company_id, unit_status="Down", projected_ready_on="2026-12-31")], "nats"
    )
    await consumer.store([reference_event(unit_id, 2, company_id)], "nats")
    assert await occupancies(alone.database, company_id) == [(None, None, 2, 1), (None, None, 0, 1)]


async def test_an_unknown_unit_or_another_companys_is_passed_over_and_the_others_are_kept(alone: Any) -> None:
    mine, theirs = next(_companies), next(_companies)
    unit_id, second = await alone.make_units(mine)
    rows = [
        UnitOccupancyReference(id=unit_id, version=1, company_id=theirs, unit_status="Down"),
        UnitOccupancyReference(id=2**62, version=1, company_id=mine, unit_status="Down"),
        UnitOccupancyReference(id=second, version=1, company_id=mine, unit_status="Down"),
    ]
    passed = Produced("svc-occupancy", event(unit_occupancies=rows))
    assert await taker(alone.database).store_what_applies([passed], by="nats") == set()
    assert await occupancies(alone.database, mine) == [(None, None, 0, 1), ("Down", None, 1, 1)]


async def test_an_import_locks_units_in_the_order_of_their_ids_as_events_do(alone: Any) -> None:
    """In the file's order it would hold the second unit while it waits for the first: a deadlock."""
    company_id = next(_companies)
    first, second = await alone.make_units(company_id)

    async def lock_for_import() -> list[int]:
        async with alone.database.transaction() as connection:
            names = [f"U{second}", f"U{first}"]
            return [
                row["id"]
                for row in (await import_queries.UNITS.known.by_external_id(connection, company_id, names)).values()
            ]

    lock = "SELECT 1 FROM unit WHERE id = $1 FOR NO KEY UPDATE"
    waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
    async with alone.database.transaction() as consumer:
        await consumer.raw.execute("UPDATE unit SET external_id = 'U' || id WHERE company_id = $1", company_id)
    async with alone.database.transaction() as consumer:
        await consumer.raw.execute(lock, first)
        importing = asyncio.create_task(lock_for_import())
        for _ in range(3000):
            if await consumer.raw.fetchval(waiting):
                break
            await asyncio.sleep(0.01)
        await consumer.raw.execute(f"{lock} NOWAIT", second)
    assert await importing == [first, second]


async def test_the_loser_of_a_deadlock_is_asked_to_retry(alone: Any) -> None:
    company_id = next(_companies)
    units = await alone.make_units(company_id)

    async def lock(unit_ids: list[int], both_hold_one: asyncio.Barrier) -> None:
        async with alone.database.transaction() as connection:
            await connection.raw.execute("SELECT 1 FROM unit WHERE id = $1 FOR UPDATE", unit_ids[0])
            await both_hold_one.wait()
            await connection.raw.execute("SELECT 1 FROM unit WHERE id = $1 FOR UPDATE", unit_ids[1])

    barrier = asyncio.Barrier(2)
    ends = await asyncio.gather(lock(units, barrier), lock(units[::-1], barrier), return_exceptions=True)
    (lost,) = (end for end in ends if end is not None)
    assert isinstance(lost, DatabaseUnavailable)
