"""From an import in svc-catalog to the replicas of a running svc-occupancy, over NATS and without it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import grpc
import nats
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from sqlalchemy import select

from chassis.auth.clients import ServiceClient
from chassis.auth.identity import INTEGRATION, OPERATOR, SERVICE, STAFF, Identity, TokenSigner
from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.messaging.consumer import Consumer
from chassis.messaging.outbox import uuid7
from chassis.messaging.transport import Transport
from makeready.catalog.v1 import places_pb2
from makeready.common.v1.documents_pb2 import IMPORT_OUTCOME_REJECTED, ImportRow
from makeready.events.v1 import events_pb2
from svc_occupancy import tables as t
from svc_occupancy.replicas import consumers
from testkit.services import RunningService


async def put(catalog: RunningService, company_id: int, kind: str, *rows: dict[str, Any]) -> None:
    """Imports rows of `Properties` or `Units`."""
    sent = [ImportRow(line=line, json=json.dumps(row).encode()) for line, row in enumerate(rows)]
    request = getattr(places_pb2, f"Import{kind}Request")(rows=sent)
    async with catalog.channel() as channel:
        operator = Identity(OPERATOR, "operator", company_id)
        response = await catalog.call(channel, request, operator)
    assert not [result for result in response.results if result.outcome == IMPORT_OUTCOME_REJECTED]


async def held(database: Database, table: Any, company_id: int) -> list[dict[str, Any]]:
    rows = await database.rows(Statement(select(table).order_by(table.c.external_id)))
    return [dict(row) for row in rows if row["company_id"] == company_id]


async def until(read: Any, expected: Any) -> None:
    """Waits until `found()` returns the expected value."""
    last = None
    for _ in range(600):
        last = await read()
        if last == expected:
            return
        await asyncio.sleep(0.1)
    assert last == expected


async def test_properties_and_units_reach_the_replicas_and_follow_their_changes(
    catalog: RunningService, served: Database
) -> None:
    house = {"external_id": "P1", "name": "Elm Court", "address": "1 Elm St"}
    units = [{"external_id": f"U{n}", "property": "P1", "name": f"Unit {n}", "unit_number": str(n)} for n in range(3)]
    await put(catalog, 70, "Properties", house)
    await put(catalog, 70, "Units", *units)

    async def names() -> list[tuple[Any, ...]]:
        properties = {row["id"]: row for row in await held(served, t.property_, 70)}
        return [
            (
                row["external_id"],
                row["name"],
                row["unit_number"],
                row["version"],
                properties[row["property_id"]]["name"],
            )
            for row in await held(served, t.unit, 70)
        ]

    await until(names, [(f"U{n}", f"Unit {n}", str(n), 1, "Elm Court") for n in range(3)])
    await put(catalog, 70, "Properties", house | {"name": "Elm House"})
    await put(catalog, 70, "Units", units[0], units[1] | {"name": "Renamed"}, units[2])
    await until(
        names,
        [
            ("U0", "Unit 0", "0", 1, "Elm House"),
            ("U1", "Renamed", "1", 2, "Elm House"),
            ("U2", "Unit 2", "2", 1, "Elm House"),
        ],
    )


# Far from the ids of other tests' companies, because NATS carries the events of all of them.
COMPANY = 7_100_000_000_071


async def test_what_nats_brings_out_of_order_and_twice_ends_right(
    occupancy: RunningService, catalog: RunningService, own_nats: Any, served: Database
) -> None:
    def message(event_id: str, **rows: Any) -> bytes:
        references = events_pb2.References(**rows)
        return events_pb2.Event(event_id=event_id, company_id=COMPANY, references=references).SerializeToString()

    def unit(version: int) -> events_pb2.UnitReference:
        return events_pb2.UnitReference(
            id=7_100_000_000_001, version=version, company_id=COMPANY, property_id=7_100_000_000_000, name=f"v{version}"
        )

    newest, older, house = str(uuid7()), str(uuid7()), str(uuid7())
    place = events_pb2.PropertyReference(id=7_100_000_000_000, version=1, company_id=COMPANY, name="Elm Court")
    company = events_pb2.CompanyReference(id=COMPANY, version=1, name="Late", active=True, timezone="Asia/Tokyo")
    # The owner has them too: a version that skips one is checked with it.
    owner = Database(catalog.database_url, application="tests")
    await owner.open()
    async with owner.connection() as its:
        await its.raw.execute(
            "INSERT INTO property (company_id, id, version, name, address, created_at, source)"
            " VALUES ($1, $2, 1, 'Elm Court', 'A', now(), 'import')",
            COMPANY,
            place.id,
        )
        await its.raw.execute(
            "INSERT INTO unit (company_id, id, property_id, version, name, created_at, source)"
            " VALUES ($1, $2, $3, 2, 'v2', now(), 'import')",
            COMPANY,
            unit(2).id,
            place.id,
        )
    await owner.close()
    messages = [
        message(newest, units=[unit(2)]),
        message(older, units=[unit(1)]),
        message(newest, units=[unit(2)]),
        message(house, properties=[place]),
        message(house, properties=[place]),
    ]
    connection = await nats.connect(own_nats.url)
    try:
        for payload in messages:
            await connection.jetstream().publish("events.svc-catalog.references", payload)
        await connection.jetstream().publish("events.gateway.references", message(str(uuid7()), companies=[company]))
    finally:
        await connection.close()

    async def state() -> list[Any]:
        companies = await served.rows(Statement(select(t.company)))
        return [
            [(row["name"], row["version"]) for row in await held(served, t.unit, COMPANY)],
            [(row["name"], row["version"]) for row in await held(served, t.property_, COMPANY)],
            [(row["name"], row["timezone"]) for row in companies if row["id"] == COMPANY],
        ]

    await until(state, [[("v2", 2)], [("Elm Court", 1)], [("Late", "Asia/Tokyo")]])


async def test_without_nats_everything_comes_from_the_owners_outbox(
    catalog: RunningService, database: Database
) -> None:
    await put(catalog, 72, "Properties", {"external_id": "P1", "name": "Elm Court", "address": "1 Elm St"})
    await put(catalog, 72, "Units", {"external_id": "U1", "property": "P1", "name": "Unit 1"})
    issuer = TokenSigner(catalog.keys.folder / "svc-occupancy.jwk")
    client = ServiceClient("svc-catalog", catalog.target, issuer)
    away = Transport("nats://127.0.0.1:1", "tests")
    taken = {"svc-catalog": consumers.SUBJECTS["svc-catalog"]}
    consumer = Consumer("svc-occupancy", database, t.inbox, away, consumers.apply, taken, {"svc-catalog": client})
    try:
        assert await consumer.catch_up() >= 2
        assert [row["name"] for row in await held(database, t.property_, 72)] == ["Elm Court"]
        assert [row["name"] for row in await held(database, t.unit, 72)] == ["Unit 1"]
        assert await consumer.catch_up() == 0
    finally:
        await client.close()


async def test_health_says_serving(occupancy: RunningService) -> None:
    async with occupancy.channel() as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        answer = await stub.Check(health_pb2.HealthCheckRequest(), timeout=60, wait_for_ready=True)
    assert answer.status == health_pb2.HealthCheckResponse.SERVING


@pytest.mark.parametrize("kind", [INTEGRATION, SERVICE, OPERATOR, STAFF])
@pytest.mark.parametrize("rpc", ["CatchUp", "GetLag"])
async def test_each_rpc_is_open_to_its_kinds_alone(occupancy: RunningService, rpc: str, kind: str) -> None:
    allowed = {OPERATOR}
    issuer = {INTEGRATION: "gateway", SERVICE: "svc-webhooks", OPERATOR: "operator", STAFF: "gateway"}[kind]
    async with occupancy.channel() as channel:
        request = getattr(events_pb2, f"{rpc}Request")()
        try:
            await occupancy.call(channel, request, Identity(kind, issuer, 7))
        except grpc.aio.AioRpcError as error:
            # No gateway runs in these tests: catching up with it is attempted and fails.
            tried = error.code() == grpc.StatusCode.UNAVAILABLE and rpc == "CatchUp"
            assert tried if kind in allowed else error.code() == grpc.StatusCode.PERMISSION_DENIED
        else:
            assert kind in allowed


async def test_the_operator_sees_that_nothing_waits(occupancy: RunningService) -> None:
    async with occupancy.channel() as channel:

        async def pending() -> int:
            lag = await occupancy.call(channel, events_pb2.GetLagRequest(), Identity(OPERATOR, "operator"))
            return int(lag.pending) if lag.HasField("pending") else -1

        await until(pending, 0)
