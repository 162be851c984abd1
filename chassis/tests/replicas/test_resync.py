"""Replicas rebuilt from their owner, a page a call, over real gRPC."""

from __future__ import annotations

import datetime
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import grpc
import pytest
import sqlalchemy as sa

from chassis.auth.clients import ServiceClient
from chassis.auth.identity import TokenSigner, make_keys
from chassis.db.database import Connection, Database
from chassis.db.statements import Statement
from chassis.refusals import Refusal
from chassis.replicas.resync import ROWS, ReplicaResync, ReplicaSource
from chassis.replicas.tables import Replica
from chassis.schedule.clocks import CompanyClocks
from makeready.events.v1 import replicas_pb2 as pb
from makeready.events.v1.events_pb2 import CompanyReference, References
from testkit.grpc_servers import serve
from testkit.plugin import PostgresServer

from ..databases import database_with
from ..parcels import operator, service
from .directory import OWNED, company, metadata, staff


async def put(connection: Connection, batches: Sequence[References], overwrite: bool = False) -> None:
    for references in batches:
        await Replica(company).put(connection, references.companies, overwrite)
        await Replica(staff).put(connection, references.staff, overwrite)


@pytest.fixture(scope="module")
async def owner(postgres_server: PostgresServer) -> AsyncIterator[Database]:
    """Three companies, and a few more members of staff than a page holds, their ids not in their companies' order."""
    async with database_with(postgres_server, "chassis_resync_owner", metadata) as database:
        async with database.connection() as connection:
            await connection.raw.execute("INSERT INTO company SELECT n, 3, 'C' || n FROM generate_series(1, 3) n")
            await connection.raw.execute(
                "INSERT INTO staff SELECT n, 5, 1 + n % 3, 'S' || n, CASE WHEN n % 2 = 0 THEN 'x' || n END"
                f" FROM generate_series(1, {ROWS + 5}) n"
            )
        yield database


@pytest.fixture(scope="module")
async def opened(postgres_server: PostgresServer) -> AsyncIterator[Database]:
    async with database_with(postgres_server, "chassis_resync", metadata) as database:
        yield database


@pytest.fixture
async def resync(owner: Database, opened: Database, tmp_path: Path) -> AsyncIterator[ReplicaResync]:
    """Stores the rows that `owner` serves over gRPC; empty at first."""
    async with opened.connection() as connection:
        await connection.raw.execute("TRUNCATE company, staff")
    source = ReplicaSource(owner, OWNED)

    class Served:
        async def ListReferences(self, request: pb.ListReferencesRequest, _context: Any) -> pb.ListReferencesResponse:
            return await source.ListReferences(request, service())

    server = grpc.aio.server()
    serve(server, pb.DESCRIPTOR.services_by_name["ReplicaSourceService"], Served())
    target = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    make_keys(tmp_path, ["svc-parcels"])
    client = ServiceClient("svc-directory", target, TokenSigner(tmp_path / "svc-parcels.jwk"))
    yield ReplicaResync(opened, put, {"companies": client, "staff": client})
    await client.close()
    await server.stop(None)


async def rebuild(resync: ReplicaResync, kind: str, overwrite: bool = False) -> list[int]:
    """The number of rows of each page."""
    request, pages = pb.RebuildReplicasRequest(kind=kind, overwrite=overwrite), []
    while True:
        response = await resync.RebuildReplicas(request, operator())
        pages.append(response.rows)
        if not response.HasField("next"):
            return pages
        request.after.CopyFrom(response.next)


async def rows(database: Database, table: sa.Table) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in await database.rows(Statement(sa.select(table).order_by(table.c.id)))]


async def test_every_row_of_the_owner_is_taken_in_page_by_page(
    owner: Database, opened: Database, resync: ReplicaResync
) -> None:
    assert await rebuild(resync, "companies") == [3]
    assert await rebuild(resync, "staff") == [ROWS, 5]
    for table in (company, staff):
        assert await rows(opened, table) == await rows(owner, table) != []


async def test_a_newer_row_stays_unless_the_owner_is_to_be_believed(opened: Database, resync: ReplicaResync) -> None:
    await rebuild(resync, "companies")
    async with opened.connection() as connection:
        await connection.raw.execute("UPDATE company SET version = 9, name = 'newer' WHERE id = 2")
    name = Statement(sa.select(company.c.name).where(company.c.id == 2))
    await rebuild(resync, "companies")
    assert await opened.value(name) == "newer"
    await rebuild(resync, "companies", overwrite=True)
    assert await opened.value(name) == "C2"


async def test_a_companys_clock_is_never_turned_back(owner: Database, opened: Database, resync: ReplicaResync) -> None:
    async with owner.connection() as connection:
        await connection.raw.execute("UPDATE company SET is_sandbox = true WHERE id = 2")
    await rebuild(resync, "companies")
    async with opened.connection() as connection:
        await connection.raw.execute("UPDATE company SET clock_offset = '25 hours' WHERE id = 2")
    offset = Statement(sa.select(company.c.clock_offset).where(company.c.id == 2))
    for overwrite in (False, True):
        await rebuild(resync, "companies", overwrite=overwrite)
        assert await opened.value(offset) == datetime.timedelta(hours=25)
    async with opened.transaction() as connection:
        row = CompanyReference(id=2, version=9, is_sandbox=True)
        row.clock_offset.FromTimedelta(datetime.timedelta(hours=24))
        await put(connection, [References(companies=[row])])
        assert await connection.value(offset) == datetime.timedelta(hours=25)
        row.version += 1
        row.clock_offset.FromTimedelta(datetime.timedelta(hours=26))
        await put(connection, [References(companies=[row])])
        assert await connection.value(offset) == datetime.timedelta(hours=26)


async def test_a_live_company_has_no_offset_whatever_was_stored_before_its_row_arrived(opened: Database) -> None:
    await CompanyClocks(opened, company).advance(88, datetime.timedelta(hours=25))
    async with opened.transaction() as connection:
        await put(connection, [References(companies=[CompanyReference(id=88, version=1)])])
    stored = await opened.row(
        Statement(sa.select(company.c.is_sandbox, company.c.clock_offset).where(company.c.id == 88))
    )
    assert stored is not None and tuple(stored) == (False, datetime.timedelta())


async def test_the_kinds_that_are_kept_are_listed_with_their_owners(resync: ReplicaResync) -> None:
    listed = await resync.ListReplicas(pb.ListReplicasRequest(), operator())
    assert [(replica_kind.kind, replica_kind.owner) for replica_kind in listed.kinds] == [
        ("companies", "svc-directory"),
        ("staff", "svc-directory"),
    ]


async def test_a_kind_that_is_not_kept_is_refused(resync: ReplicaResync) -> None:
    with pytest.raises(Refusal, match="kind must be one of: companies, staff"):
        await rebuild(resync, "vendors")
