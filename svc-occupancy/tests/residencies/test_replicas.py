"""Writes on a unit or in a company that the replicas lack: one request to the owner, and other writes do not wait."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest

from chassis.db.database import Database
from chassis.refusals import Refusal
from makeready.events.v1 import events_pb2
from makeready_local.nats import Nats
from svc_occupancy.replicas import consumers
from svc_occupancy.turns import queries
from testkit.services import RunningService

from ..harness import Company, move_in, until


async def code_of(work: Any) -> grpc.StatusCode:
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await work
    code: grpc.StatusCode = failed.value.code()
    return code


async def test_a_unit_that_has_not_arrived_is_asked_for(company: Company, no_nats: Nats) -> None:
    await company.make_units("U1", "U2")
    ids = await company.unit_ids()
    with pytest.raises(Refusal, match="no active resident"):
        await company.notice(ids["U2"])
    record = await company.move_in(ids["U1"])
    (turn,) = await company.turns()
    assert turn["entity_id"] == record["entity_id"]
    assert (turn["unit"]["name"], turn["property"]["name"]) == ("Unit U1", "Elm Court")


async def test_a_unit_that_came_before_its_property_is_asked_for_too(
    company: Company, no_nats: Nats, served: Database
) -> None:
    await company.make_units("U1")
    unit_id = (await company.unit_ids())["U1"]
    # Version 2, because the periodic comparison with the outboxes may have brought version 1.
    early = events_pb2.UnitReference(
        id=unit_id, version=2, company_id=company.id, property_id=unit_id + 10**15, name="Unit U1"
    )
    async with served.transaction() as connection:
        await consumers.put_references(connection, [events_pb2.References(units=[early])])
    with pytest.raises(Refusal, match="No unit with that id"):
        await company.move_in(unit_id)


async def test_a_unit_that_arrives_after_the_look_for_its_lock_is_not_held(database: Database) -> None:
    """Nothing holds it, so two who move in at once could both write."""
    company_id, unit_id = 1, 10**15
    unit = events_pb2.UnitReference(id=unit_id, version=1, company_id=company_id, property_id=unit_id, name="U")
    place = events_pb2.PropertyReference(id=unit_id, version=1, company_id=company_id, name="P")

    async def hold() -> bool:
        async with database.transaction() as connection:
            return await queries.held_unit(connection, company_id, unit_id) is not None

    async with database.transaction() as owner:
        # The other finds no unit to lock, and then waits for the turns.
        await owner.raw.execute("LOCK TABLE transition IN ACCESS EXCLUSIVE MODE")
        await consumers.put_references(owner, [events_pb2.References(properties=[place], units=[unit])])
        holding = asyncio.create_task(hold())
        waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'transition'::regclass"
        async with asyncio.timeout(60):
            while not (holding.done() or await owner.raw.fetchval(waiting)):  # noqa: ASYNC110 - a lock sets no event
                await asyncio.sleep(0.01)
    assert not await holding
    assert await hold()


async def test_while_the_owner_is_away_known_units_are_written_to_and_replays_answered(
    company: Company, catalog: RunningService, served: Database
) -> None:
    unit_id = await company.known_unit(served)
    first = await company.write("RecordMoveIn", unit_id, move_in(), key="once")
    catalog.kill()
    try:
        again = await company.write("RecordMoveIn", unit_id, move_in(), key="once")
        assert (again.body, again.replayed) == (first.body, True)
        await company.notice(unit_id)
        assert await code_of(company.move_in(unit_id + 10**15)) is grpc.StatusCode.UNAVAILABLE
    finally:
        catalog.start()

    async def refused() -> str:
        try:
            await company.move_in(unit_id + 10**15)
        except Refusal as refusal:
            return refusal.code
        except grpc.aio.AioRpcError as error:
            return str(error.code())
        return ""

    await until(refused, "not_found")


async def test_a_company_that_has_not_arrived_is_asked_for_where_the_day_counts(
    company: Company, served: Database
) -> None:
    """No gateway runs here, so fetching the company fails; a notice of a resident who is there succeeds."""
    unknown = Company(company.house, 9_500_001)
    unit_id = await unknown.known_unit(served)
    assert await code_of(unknown.move_in(unit_id)) is grpc.StatusCode.UNAVAILABLE
    async with served.transaction() as connection:
        await connection.raw.execute(
            "INSERT INTO transition (company_id, property_id, unit_id, status, created_at, updated_at, source)"
            " SELECT company_id, property_id, id, 'active', now(), now(), 'staff' FROM unit WHERE id = $1",
            unit_id,
        )
    await unknown.notice(unit_id)
    async with served.transaction() as connection:
        await connection.raw.execute("UPDATE transition SET vacated_on = move_out_date WHERE unit_id = $1", unit_id)
    assert await code_of(unknown.notice(unit_id, "2020-01-31")) is grpc.StatusCode.UNAVAILABLE
    assert len(await unknown.turns(status=1)) == 1
