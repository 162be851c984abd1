"""A real svc-occupancy for the tests, and a real svc-catalog: each hears from the other."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

import grpc
import pytest

from chassis import migrations
from chassis.database import Database
from chassis.identity import CALLER, OPERATOR, Identity
from makeready.catalog.v1 import catalog_pb2, catalog_pb2_grpc
from makeready.common.v1.documents_pb2 import ImportOutcome, ImportResult, ImportRow
from makeready.events.v1.events_pb2 import CompanyReference, References
from makeready.occupancy.v1 import occupancy_pb2, occupancy_pb2_grpc
from makeready_local.nats import Nats
from makeready_local.running import Keys, RunningService
from makeready_local.testing import PostgresServer, server_folder
from svc_occupancy import consumers, tables

_companies = itertools.count(7_000)

KINDS = {
    "properties": ("ImportProperties", catalog_pb2.ImportPropertiesRequest),
    "units": ("ImportUnits", catalog_pb2.ImportUnitsRequest),
    "turns": ("ImportTurns", occupancy_pb2.ImportTurnsRequest),
}


class House:
    """The two services, called by RPC names."""

    def __init__(
        self, catalog: RunningService, occupancy: RunningService, channels: Sequence[grpc.aio.Channel]
    ) -> None:
        in_catalog, in_occupancy = channels
        self._stubs: list[tuple[RunningService, Any]] = [
            (catalog, catalog_pb2_grpc.PropertiesServiceStub(in_catalog)),
            (catalog, catalog_pb2_grpc.UnitsServiceStub(in_catalog)),
            (occupancy, occupancy_pb2_grpc.TurnsServiceStub(in_occupancy)),
        ]

    async def __call__(self, rpc: str, request: Any, who: Identity) -> Any:
        service, stub = next(one for one in self._stubs if hasattr(one[1], rpc))
        return await service.call(getattr(stub, rpc), request, who)


class Company:
    """One company's eyes on the two services: its callers read, the operator imports for it."""

    def __init__(self, house: House, company_id: int) -> None:
        self.house = house
        self.id = company_id
        self.caller = Identity(CALLER, "gateway", company_id, 1, "read")
        self.operator = Identity(OPERATOR, "operator", company_id)

    async def results(self, kind: str, rows: Sequence[Any], dry_run: bool = False) -> list[ImportResult]:
        """What became of each row; a row is an object, or raw bytes. Lines count from 2, as below a heading."""
        rpc, request = KINDS[kind]
        sent = [
            ImportRow(line=line, json=row if isinstance(row, bytes) else json.dumps(row).encode())
            for line, row in enumerate(rows, start=2)
        ]
        response = await self.house(rpc, request(rows=sent, dry_run=dry_run), self.operator)
        assert [result.line for result in response.results] == [row.line for row in sent]
        return list(response.results)

    async def put(self, kind: str, *rows: Any, dry_run: bool = False) -> list[str]:
        """The outcomes in lower case, and for a rejected row its field."""
        outcomes = []
        for result in await self.results(kind, rows, dry_run):
            name = ImportOutcome.Name(result.outcome).removeprefix("IMPORT_OUTCOME_").lower()
            assert bool(result.reason) == (name == "rejected")
            outcomes.append(f"{name} {result.field}".strip())
        return outcomes

    async def make_units(self, *external_ids: str) -> None:
        """Units of these external ids in a property of the same company, P1."""
        await self.put("properties", {"external_id": "P1", "name": "Elm Court", "address": "1 Elm St"})
        made = await self.put(
            "units", *({"external_id": u, "property": "P1", "name": f"Unit {u}"} for u in external_ids)
        )
        assert set(made) == {"created"}

    async def page(self, after_id: int = 0, limit: int = 200, **filters: Any) -> Any:
        request = occupancy_pb2.ListTurnsRequest(after_id=after_id, limit=limit, **filters)
        return (await self.house("ListTurns", request, self.caller)).page

    async def turns(self, **filters: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads((await self.page(**filters)).data)
        return found

    async def turn(self, external_id: str) -> dict[str, Any]:
        (found,) = [one for one in await self.turns() if one["external_id"] == external_id]
        return found

    async def units(self) -> dict[str, tuple[str | None, str | None]]:
        """What svc-catalog serves of each unit: its status and its ready date, by external_id."""
        request = catalog_pb2.ListUnitsRequest(limit=200)
        data = (await self.house("ListUnits", request, self.caller)).page.data
        return {one["external_id"]: (one["unit_status"], one["projected_ready_on"]) for one in json.loads(data)}

    async def unit_ids(self) -> dict[str, int]:
        request = catalog_pb2.ListUnitsRequest(limit=200)
        data = (await self.house("ListUnits", request, self.caller)).page.data
        return {one["external_id"]: one["entity_id"] for one in json.loads(data)}


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="session")
def own_nats() -> Iterator[Nats]:
    """A NATS that no other service of the session consumes from: one durable consumer brings an event to one."""
    with server_folder() as folder:
        server = Nats(folder / "nats", "test", log=folder / "nats.log")
        server.start()
        try:
            yield server
        finally:
            server.stop()


@pytest.fixture(scope="session")
def services(
    postgres_server: PostgresServer, own_nats: Nats, keys: Keys, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, RunningService]]:
    logs = tmp_path_factory.mktemp("logs")
    made = {
        name: RunningService(name, keys, postgres_server.create_database(database), own_nats.url, logs / name)
        for name, database in (("svc-catalog", "catalog_of_occupancy"), ("svc-occupancy", "occupancy_test"))
    }
    addresses = {name: service.target for name, service in made.items()}
    for number, service in enumerate(made.values()):
        service.addresses = addresses
        service.migrate(first_id=7_000_000_000 + number * 500_000_000)
        service.start()
    yield made
    for service in made.values():
        service.stop()


@pytest.fixture(scope="session")
def catalog(services: dict[str, RunningService]) -> RunningService:
    return services["svc-catalog"]


@pytest.fixture(scope="session")
def occupancy(services: dict[str, RunningService]) -> RunningService:
    return services["svc-occupancy"]


@pytest.fixture(scope="session")
async def house(catalog: RunningService, occupancy: RunningService) -> AsyncIterator[House]:
    async with catalog.channel() as in_catalog, occupancy.channel() as in_occupancy:
        yield House(catalog, occupancy, (in_catalog, in_occupancy))


@pytest.fixture(scope="session")
async def served(occupancy: RunningService) -> AsyncIterator[Database]:
    """The database of the running svc-occupancy."""
    database = Database(occupancy.database_url, application="tests")
    await database.open()
    yield database
    await database.close()


@pytest.fixture(scope="session")
async def found(house: House, served: Database) -> Callable[[], Company]:
    """Founds a company that has nothing yet. No gateway runs here: 2,000 companies are known from the start."""
    companies = [
        CompanyReference(id=number, version=1, name="C", active=True, timezone="UTC") for number in range(7_000, 9_000)
    ]
    async with served.transaction() as connection:
        await consumers.put_references(connection, [References(companies=companies)])
    return lambda: Company(house, next(_companies))


@pytest.fixture
def company(found: Callable[[], Company]) -> Company:
    return found()


@pytest.fixture(scope="session")
async def database(postgres_server: PostgresServer) -> AsyncIterator[Database]:
    """A migrated database that no process uses."""
    url = postgres_server.create_database("occupancy_alone")
    await asyncio.to_thread(migrations.migrate, url, "svc_occupancy", tables.metadata)
    database = Database(url, application="tests")
    await database.open()
    yield database
    await database.close()
