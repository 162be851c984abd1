"""A real svc-catalog for the tests."""

from __future__ import annotations

import asyncio
import itertools
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Any

import grpc
import pytest
from sqlalchemy import select

from chassis.auth.identity import INTEGRATION, OPERATOR, SERVICE, Identity
from chassis.auth.rpcs import rpc_of
from chassis.db import migrations
from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.refusals import Refusal
from makeready.catalog.v1 import (
    inspections_pb2,
    meters_pb2,
    notices_pb2,
    places_pb2,
    vendors_pb2,
)
from makeready.common.v1 import audit_pb2
from makeready.common.v1.documents_pb2 import ImportOutcome, ImportResult, ImportRow
from makeready.events.v1 import events_pb2
from svc_catalog import schema, tables
from svc_catalog.__main__ import CHANGES
from svc_catalog.search.indexing import _STALE
from testkit.event_contract import check_outbox
from testkit.plugin import PostgresServer, Server, embedded_nats
from testkit.services import Keys, RunningService, gateway_alone
from testkit.stored_documents import check_documents

_companies = itertools.count(1000)
_UNPUBLISHED = Statement(select(schema.outbox.c.event_id).where(schema.outbox.c.published_at.is_(None)))

# Each kind's contract.
KINDS: dict[str, Any] = {
    "properties": places_pb2,
    "units": places_pb2,
    "assets": places_pb2,
    "vendors": vendors_pb2,
    "inspections": inspections_pb2,
    "meters": meters_pb2,
    "readings": meters_pb2,
    "notices": notices_pb2,
}
# The kinds whose changes can be followed, as their RPCs name them.
NOUNS = {
    "properties": "Property",
    "units": "Unit",
    "assets": "Asset",
    "vendors": "Vendor",
    "inspections": "Inspection",
    "meters": "Meter",
    "readings": "Reading",
}


class Catalog:
    """Calls svc-catalog's RPCs by name, by default as a caller of a company."""

    def __init__(self, service: RunningService, channel: grpc.aio.Channel) -> None:
        self.service = service
        self._channel = channel

    async def __call__(self, rpc: str, request: Any, who: Identity) -> Any:
        assert rpc_of(type(request)).name == rpc
        return await self.service.call(self._channel, request, who)


class Company:
    """Calls svc-catalog for one company: its callers read, the operator imports."""

    def __init__(self, catalog: Catalog, company_id: int) -> None:
        self.catalog = catalog
        self.id = company_id
        self.caller = Identity(INTEGRATION, "gateway", company_id, 1, "read")
        self.operator = Identity(OPERATOR, "operator", company_id)
        self.tickets = Identity(SERVICE, "svc-tickets", company_id)

    async def command(self, contract: Any, rpc: str, who: Identity | None = None, **values: Any) -> Any:
        """Calls an RPC of the back office; default: as the operator, with a new idempotency key."""
        request: Any = getattr(contract, f"{rpc}Request")(**values)
        if "idempotency_key" in request.DESCRIPTOR.fields_by_name and not request.idempotency_key:
            request.idempotency_key = secrets.token_hex(8)
        return await self.catalog(rpc, request, who or self.operator)

    async def status_for(self, contract: Any, rpc: str, kind: str) -> int | None:
        """The status for an empty request: 200, or a refusal's. None if a caller of the kind may not call the RPC."""
        issuer = {OPERATOR: "operator", SERVICE: "svc-tickets"}.get(kind, "gateway")
        who = Identity(kind, issuer, self.id, api_key_id=1, administrator_id=1, staff_id=1)
        try:
            await self.command(contract, rpc, who)
        except grpc.aio.AioRpcError as error:
            assert error.code() == grpc.StatusCode.PERMISSION_DENIED
            return None
        except Refusal as refused:
            return refused.status
        return 200

    async def audit(self, subject: str = "", subject_id: int | None = None) -> list[audit_pb2.AuditEntry]:
        """The company's audit entries, oldest first."""
        request = audit_pb2.ListAuditRequest(subject=subject, subject_id=subject_id, limit=200)
        return list((await self.catalog("ListAudit", request, self.operator)).entries)[::-1]

    async def results(self, kind: str, rows: Sequence[Any], dry_run: bool = False, **more: Any) -> list[ImportResult]:
        """The result of each row; a row is an object, or raw bytes. Lines count from 2, as below a heading."""
        rpc = f"Import{kind.capitalize()}"
        request = getattr(KINDS[kind], f"{rpc}Request")
        sent = [
            ImportRow(line=line, json=row if isinstance(row, bytes) else json.dumps(row).encode())
            for line, row in enumerate(rows, start=2)
        ]
        response = await self.catalog(rpc, request(rows=sent, dry_run=dry_run, **more), self.operator)
        assert [result.line for result in response.results] == [row.line for row in sent]
        return list(response.results)

    async def put(self, kind: str, *rows: Any, dry_run: bool = False, **more: Any) -> list[str]:
        """The outcomes in lower case, with the field for a rejected row."""
        outcomes = []
        for result in await self.results(kind, rows, dry_run, **more):
            name = ImportOutcome.Name(result.outcome).removeprefix("IMPORT_OUTCOME_").lower()
            assert bool(result.reason) == (name == "rejected")
            outcomes.append(f"{name} {result.field}".strip())
        return outcomes

    async def list(self, kind: str, after_id: int = 0, limit: int = 200, **filters: Any) -> list[dict[str, Any]]:
        page = (await self.page(kind, after_id, limit, **filters)).data
        records: list[dict[str, Any]] = json.loads(page)
        return records

    async def page(self, kind: str, after_id: int = 0, limit: int = 200, **filters: Any) -> Any:
        name = f"List{kind.capitalize()}"
        request = getattr(KINDS[kind], f"{name}Request")(after_id=after_id, limit=limit, **filters)
        return (await self.catalog(name, request, self.caller)).page

    async def changes(self, kind: str, position: bytes = b"", limit: int = 200, **more: Any) -> Any:
        name = f"List{NOUNS[kind]}Changes"
        request = getattr(KINDS[kind], f"{name}Request")(position=position, limit=limit, **more)
        return (await self.catalog(name, request, self.caller)).feed

    async def by_name(self, kind: str) -> dict[str, dict[str, Any]]:
        return {record["name"]: record for record in await self.list(kind)}

    async def by_external_id(self, kind: str) -> dict[str, dict[str, Any]]:
        return {record["external_id"]: record for record in await self.list(kind)}


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="session")
def own_nats() -> Iterator[Server]:
    """A NATS for this svc-catalog only: a durable consumer delivers each event to one service."""
    with embedded_nats() as server:
        yield server


@pytest.fixture(scope="session")
def occupancy(
    postgres_server: PostgresServer, own_nats: Server, keys: Keys, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningService]:
    """The svc-occupancy whose events svc-catalog consumes."""
    url = postgres_server.create_database("occupancy_of_catalog")
    log = tmp_path_factory.mktemp("svc-occupancy") / "log"
    running = RunningService("svc-occupancy", keys, url, own_nats.url, log)
    running.migrate()
    running.start()
    yield running
    running.stop()


@pytest.fixture(scope="session")
def away_gateway(
    postgres_server: PostgresServer, keys: Keys, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningService]:
    """The gateway from which svc-catalog fetches staff; it runs only in tests that request `gateway`.

    It has no NATS, so svc-catalog's only way to its staff is to fetch them.
    """
    url = postgres_server.create_database("gateway_of_catalog")
    log = tmp_path_factory.mktemp("gateway") / "log"
    prepared = RunningService("gateway", keys, url, "nats://127.0.0.1:1", log)
    prepared.migrate(first_id=8_000_000_000)
    yield prepared
    prepared.stop()


@pytest.fixture
async def gateway(away_gateway: RunningService, service: RunningService) -> AsyncIterator[RunningService]:
    """`away_gateway`, running, after svc-catalog has caught up with it."""
    away_gateway.start(**gateway_alone())
    async with service.channel() as channel:
        for attempt in range(600):
            try:
                await service.call(channel, events_pb2.CatchUpRequest(), Identity(OPERATOR, "operator"))
                break
            except grpc.aio.AioRpcError:
                assert attempt < 599
                await asyncio.sleep(0.1)
    yield away_gateway
    away_gateway.stop()


@pytest.fixture(scope="session")
def service(
    occupancy: RunningService,
    away_gateway: RunningService,
    postgres_server: PostgresServer,
    own_nats: Server,
    keys: Keys,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[RunningService]:
    url = postgres_server.create_database("catalog_test")
    log = tmp_path_factory.mktemp("svc-catalog") / "log"
    addresses = {"svc-occupancy": occupancy.target, "gateway": away_gateway.target}
    running = RunningService("svc-catalog", keys, url, own_nats.url, log, addresses=addresses)
    running.migrate(first_id=5_000_000_000)
    running.start()
    yield running
    running.stop()


@pytest.fixture(scope="session")
async def catalog(service: RunningService) -> AsyncIterator[Catalog]:
    async with service.channel() as channel:
        yield Catalog(service, channel)
    await check_outbox(service.database_url, events_pb2.Event.FromString)
    await check_documents(service.database_url, *(kind for kind in CHANGES if kind.documents is not None))


@pytest.fixture(scope="session")
async def database(service: RunningService) -> AsyncIterator[Database]:
    database = Database(service.database_url, application="tests")
    await database.open()
    yield database
    await database.close()


@pytest.fixture
def searched(database: Database) -> Callable[[], Awaitable[None]]:
    """Waits until the words of every row are up to date."""

    return partial(_none_left, database, _STALE, "words are not up to date after a minute")


@pytest.fixture
def published(database: Database) -> Callable[[], Awaitable[None]]:
    """Waits until every event is published: tests before may have left many."""
    return partial(_none_left, database, _UNPUBLISHED, "the outbox still holds unpublished events after a minute")


async def _none_left(database: Database, waiting: Statement, otherwise: str) -> None:
    for _ in range(600):
        if not await database.rows(waiting):
            return
        await asyncio.sleep(0.1)
    raise AssertionError(otherwise)


class Alone:
    """A migrated database that no process uses."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def make_units(self, company_id: int) -> list[int]:
        """Inserts a property with two units; returns the units' ids."""
        async with self.database.connection() as connection:
            property_id = await connection.raw.fetchval(
                "INSERT INTO property (company_id, name, address, created_at, source)"
                " VALUES ($1, 'P', 'A', now(), 'import') RETURNING id",
                company_id,
            )
            rows = await connection.raw.fetch(
                "INSERT INTO unit (company_id, property_id, name, created_at, source)"
                " SELECT $1, $2, 'U', now(), 'import' FROM generate_series(1, 2) RETURNING id",
                company_id,
                property_id,
            )
        return sorted(row["id"] for row in rows)


@pytest.fixture(scope="session")
async def alone(postgres_server: PostgresServer) -> AsyncIterator[Alone]:
    url = postgres_server.create_database("catalog_alone")
    await asyncio.to_thread(migrations.migrate, url, "svc_catalog", tables.metadata)
    database = Database(url, application="tests")
    await database.open()
    yield Alone(database)
    await database.close()


@pytest.fixture(scope="session")
async def crowded(postgres_server: PostgresServer) -> AsyncIterator[Database]:
    """A migrated database for thousands of rows of other companies. In the service's own, the service would render and
    index all of them."""
    url = postgres_server.create_database("catalog_crowded")
    await asyncio.to_thread(migrations.migrate, url, "svc_catalog", tables.metadata)
    database = Database(url, application="tests")
    await database.open()
    yield database
    await database.close()


@pytest.fixture(scope="session")
def new_company(catalog: Catalog) -> Callable[[], Company]:
    """Creates companies without records."""
    return lambda: Company(catalog, next(_companies))


@pytest.fixture
def company(new_company: Callable[[], Company]) -> Company:
    return new_company()


@pytest.fixture
def other(new_company: Callable[[], Company]) -> Company:
    """Another company."""
    return new_company()


@pytest.fixture
async def elm(company: Company) -> dict[str, Any]:
    """The company's only property, Elm Court, with external_id P1."""
    assert await company.put("properties", {"external_id": "P1", "name": "Elm Court", "address": "1 Elm St"}) == [
        "created"
    ]
    (property_,) = await company.list("properties")
    return property_
