"""In whatever order events arrive, the replicas end with their owners' newest versions."""

from __future__ import annotations

import datetime
import itertools
import random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.messaging.consumer import Consumer
from chassis.messaging.outbox import uuid7
from chassis.messaging.transport import Transport
from makeready.events.v1.events_pb2 import (
    CompanyReference,
    Event,
    PropertyReference,
    References,
    UnitReference,
)
from svc_occupancy import tables as t
from svc_occupancy.replicas import consumers
from testkit.examples import examples

_numbers = itertools.count(1000, 1000)
DAY = datetime.timedelta(days=1)


def event(**rows: Any) -> Event:
    event = Event(event_id=str(uuid7()), company_id=1, references=References(**rows))
    event.occurred_at.FromDatetime(datetime.datetime.now(datetime.UTC))
    return event


async def rows(database: Database, table: Any) -> dict[int, dict[str, Any]]:
    return {row["id"]: dict(row) for row in await database.rows(Statement(select(table)))}


def taker(database: Database) -> Consumer:
    """svc-occupancy's consumer without NATS and without producers."""
    return Consumer("svc-occupancy", database, t.inbox, Transport("nats://127.0.0.1:1", "t"), consumers.apply, {}, {})


def history(start: int) -> list[Event]:
    """The events of a company and two properties with two units each, one event for each step."""
    steps: list[Event] = []
    for version in range(1, 4):
        company = CompanyReference(
            id=start, version=version, name=f"v{version}", active=version != 2, timezone="America/Toronto"
        )
        company.is_sandbox = True
        company.clock_offset.FromTimedelta(version * DAY)
        steps.append(event(companies=[company]))
        for place in (start + 1, start + 2):
            house = PropertyReference(id=place, version=version, company_id=start, name=f"House v{version}")
            if version == 2:
                house.external_id = "P"
            steps.append(event(properties=[house]))
            for unit_id in (place * 10, place * 10 + 1):
                unit = UnitReference(
                    id=unit_id, version=version, company_id=start, property_id=place, name=f"Unit v{version}"
                )
                if version == 3:
                    unit.unit_number, unit.floorplan = "3", "A1"
                steps.append(event(units=[unit]))
    return steps


def newest(start: int) -> tuple[dict[int, Any], dict[int, Any], dict[int, Any]]:
    """The tables' rows at the end of `history`."""
    houses = {
        place: {"id": place, "version": 3, "company_id": start, "name": "House v3", "external_id": None}
        for place in (start + 1, start + 2)
    }
    units = {
        unit_id: {
            "id": unit_id,
            "version": 3,
            "company_id": start,
            "name": "Unit v3",
            "external_id": None,
            "property_id": unit_id // 10,
            "unit_number": "3",
            "floorplan": "A1",
        }
        for place in houses
        for unit_id in (place * 10, place * 10 + 1)
    }
    company = {"id": start, "version": 3, "name": "v3", "active": True, "timezone": "America/Toronto"}
    company |= {"is_sandbox": True, "clock_offset": 3 * DAY, "ended": False}
    return {start: company}, houses, units


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), repeats=st.integers(1, 3), cuts=st.lists(st.integers(1, 7), min_size=1, max_size=5))
async def test_any_order_any_repetition_any_batches_end_the_same(
    database: Database, seed: int, repeats: int, cuts: list[int]
) -> None:
    start = next(_numbers)
    events = history(start) * repeats
    random.Random(seed).shuffle(events)
    consumer = taker(database)
    waiting = iter(events)
    for size in itertools.cycle(cuts):
        batch = list(itertools.islice(waiting, size))
        if not batch:
            break
        await consumer.store(batch, by="test")
    companies, houses, units = newest(start)
    for table, expected in ((t.company, companies), (t.property_, houses), (t.unit, units)):
        stored = await rows(database, table)
        assert {entity_id: stored[entity_id] for entity_id in expected} == expected


async def test_a_unit_before_its_property_leaves_a_stand_in_that_the_property_fills(database: Database) -> None:
    start = next(_numbers)
    consumer = taker(database)
    unit = UnitReference(id=start + 1, version=1, company_id=start, property_id=start, name="1A", external_id="U")
    await consumer.store([event(units=[unit])], by="test")
    stand_in = (await rows(database, t.property_))[start]
    assert stand_in == {"id": start, "version": 0, "company_id": start, "name": "", "external_id": None}
    house = PropertyReference(id=start, version=1, company_id=start, name="Elm Court", external_id="P1")
    await consumer.store([event(properties=[house])], by="test")
    filled = (await rows(database, t.property_))[start]
    assert (filled["version"], filled["name"], filled["external_id"]) == (1, "Elm Court", "P1")


async def test_a_late_older_version_changes_nothing(database: Database) -> None:
    start = next(_numbers)
    consumer = taker(database)
    seen = []
    for version, name in ((5, "new"), (4, "old"), (5, "new, sent again"), (1, "first")):
        house = PropertyReference(id=start, version=version, company_id=1, name=name)
        await consumer.store([event(properties=[house])], by="test")
        seen.append((await rows(database, t.property_))[start])
    assert seen == [seen[0]] * 4 and (seen[0]["version"], seen[0]["name"]) == (5, "new")


async def test_one_event_is_applied_once(database: Database) -> None:
    consumer = taker(database)
    produced = event(companies=[CompanyReference(id=next(_numbers), version=1, name="A", active=True, timezone="UTC")])
    assert [await consumer.store([produced], by="test") for _ in range(3)] == [1, 0, 0]


async def test_rows_that_are_not_kept_here_are_passed_over(database: Database) -> None:
    references = References()
    references.assets.add(id=1, version=1, company_id=1, property_id=1, name="Boiler")
    references.staff.add(id=1, version=1, company_id=1, name="Ann")
    passed = Event(event_id=str(uuid7()), company_id=1, references=references)
    assert await taker(database).store([passed], by="test") == 1
