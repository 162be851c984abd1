"""From svc-occupancy and the gateway to a running svc-catalog, over NATS and without it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
import nats
import pytest
from sqlalchemy import select

from chassis.auth.clients import ServiceClient
from chassis.auth.identity import INTEGRATION, OPERATOR, SERVICE, STAFF, Identity, TokenSigner
from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.messaging.consumer import Consumer
from chassis.messaging.outbox import Outbox, uuid7
from chassis.messaging.transport import Transport
from chassis.schedule import instants
from makeready.events.v1 import events_pb2
from svc_catalog import consumers, schema
from svc_catalog.places import tables as t
from testkit.services import RunningService


@pytest.fixture
async def occupancy_database(occupancy: RunningService) -> AsyncIterator[Database]:
    database = Database(occupancy.database_url, application="tests")
    await database.open()
    yield database
    await database.close()


async def until(read: Callable[[], Awaitable[Any]], expected: Any) -> None:
    """Waits until `found()` returns the expected value."""
    last = None
    for _ in range(600):
        last = await read()
        if last == expected:
            return
        await asyncio.sleep(0.1)
    assert last == expected


async def record(database: Database, unit_id: int, version: int, company_id: int, **fields: str) -> None:
    """Adds a unit's reference to svc-occupancy's outbox."""
    reference = events_pb2.UnitOccupancyReference(id=unit_id, version=version, company_id=company_id, **fields)
    # Both outboxes have the same columns, so svc-catalog's table object can write svc-occupancy's.
    outbox = Outbox("svc-occupancy", schema.outbox)
    references = events_pb2.References(unit_occupancies=[reference])
    async with database.transaction() as connection:
        row = outbox.references(references, company_id=company_id, occurred_at=instants.now())
        await outbox.add(connection, row)


async def test_a_units_status_and_ready_date_are_served_as_svc_occupancy_has_them(
    company: Any, elm: Any, occupancy_database: Database
) -> None:
    assert await company.put("units", {"external_id": "U", "property": "P1", "name": "Unit 1"}) == ["created"]
    (unit,) = await company.list("units")

    async def shown() -> tuple[Any, Any]:
        (unit,) = await company.list("units")
        return unit["unit_status"], unit["projected_ready_on"]

    assert await shown() == (None, None)
    occupancy = {"unit_status": "Vacant Not Ready", "projected_ready_on": "2026-03-01"}
    await record(occupancy_database, unit["entity_id"], 1, company.id, **occupancy)
    await until(shown, ("Vacant Not Ready", "2026-03-01"))
    await record(occupancy_database, unit["entity_id"], 2, company.id, unit_status="Occupied")
    await until(shown, ("Occupied", None))
    # An import of the unit does not change what svc-occupancy owns.
    assert await company.put("units", {"external_id": "U", "property": "P1", "name": "Renamed"}) == ["changed"]
    assert await shown() == ("Occupied", None)


async def test_staff_and_companies_reach_the_replicas(service: Any, own_nats: Any, database: Database) -> None:
    company_id = 7_200_000_000_000
    newest = events_pb2.StaffReference(
        id=7_200_000_000_001, version=2, company_id=company_id, name="Ada", external_id="S1"
    )
    older = events_pb2.StaffReference(id=7_200_000_000_001, version=1, company_id=company_id, name="A.")
    house = events_pb2.CompanyReference(id=company_id, version=1, name="Far", active=True, timezone="Asia/Tokyo")
    connection = await nats.connect(own_nats.url)
    try:
        for rows in ({"staff": [newest]}, {"staff": [older]}, {"companies": [house]}):
            references = events_pb2.References(**rows)
            message = events_pb2.Event(event_id=str(uuid7()), company_id=company_id, references=references)
            await connection.jetstream().publish("events.gateway.references", message.SerializeToString())
    finally:
        await connection.close()

    async def state() -> list[Any]:
        staff = await database.rows(Statement(select(schema.staff)))
        companies = await database.rows(Statement(select(schema.company)))
        return [
            [(row["name"], row["external_id"], row["version"]) for row in staff if row["company_id"] == company_id],
            [(row["name"], row["timezone"]) for row in companies if row["id"] == company_id],
        ]

    await until(state, [[("Ada", "S1", 2)], [("Far", "Asia/Tokyo")]])


async def test_without_nats_everything_comes_from_the_owners_outbox(
    alone: Any, occupancy: RunningService, occupancy_database: Database
) -> None:
    company_id = 7_200_000_000_010
    unit_id, _ = await alone.make_units(company_id)
    await record(occupancy_database, unit_id, 1, company_id, unit_status="Down")
    issuer = TokenSigner(occupancy.keys.folder / "svc-catalog.jwk")
    client = ServiceClient("svc-occupancy", occupancy.target, issuer)
    away = Transport("nats://127.0.0.1:1", "tests")
    taken = {"svc-occupancy": consumers.SUBJECTS["svc-occupancy"]}
    consumer = Consumer(
        "svc-catalog", alone.database, schema.inbox, away, consumers.apply, taken, {"svc-occupancy": client}
    )
    try:
        assert await consumer.catch_up() >= 1
        rows = await alone.database.rows(Statement(select(t.unit)))
        assert {row["id"]: row["unit_status"] for row in rows}[unit_id] == "Down"
        assert await consumer.catch_up() == 0
    finally:
        await client.close()


@pytest.mark.parametrize("kind", [INTEGRATION, SERVICE, OPERATOR, STAFF])
@pytest.mark.parametrize("rpc", ["CatchUp", "GetLag"])
async def test_each_rpc_is_open_to_its_kinds_alone(service: RunningService, rpc: str, kind: str) -> None:
    allowed = {OPERATOR}
    issuer = {INTEGRATION: "gateway", SERVICE: "svc-webhooks", OPERATOR: "operator", STAFF: "gateway"}[kind]
    async with service.channel() as channel:
        request = getattr(events_pb2, f"{rpc}Request")()
        try:
            await service.call(channel, request, Identity(kind, issuer, 7))
        except grpc.aio.AioRpcError as error:
            # No gateway runs in these tests: catching up with it is attempted and fails.
            tried = error.code() == grpc.StatusCode.UNAVAILABLE and rpc == "CatchUp"
            assert tried if kind in allowed else error.code() == grpc.StatusCode.PERMISSION_DENIED
        else:
            assert kind in allowed
