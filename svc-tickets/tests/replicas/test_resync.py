"""Resync of replicas: after a lost database, and after an owner's restore of an older backup."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import FieldDescriptor
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from chassis.auth.identity import INTEGRATION, OPERATOR, SERVICE, Identity
from chassis.db import migrations
from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.refusals import Refusal
from chassis.replicas import resync
from makeready.catalog.v1 import places_pb2, vendors_pb2
from makeready.common.v1 import documents_pb2 as common
from makeready.events.v1 import replicas_pb2 as pb
from makeready.events.v1.events_pb2 import PropertyReference, References
from makeready.identity.v1 import identity_pb2, staff_pb2
from makeready.tickets.v1 import tickets_pb2
from svc_tickets import tables as t
from svc_tickets.replicas.consumer import put_references
from testkit.examples import examples
from testkit.plugin import PostgresServer
from testkit.services import Keys, RunningService

NO_NATS = "nats://127.0.0.1:1"
ANYBODY = Identity(OPERATOR, "operator")
KINDS = ["companies", "staff", "properties", "units", "assets", "vendors"]
PROPERTIES = resync.ROWS + 3


def sent(*rows: dict[str, Any]) -> list[common.ImportRow]:
    return [common.ImportRow(line=n, json=json.dumps(fields).encode()) for n, fields in enumerate(rows, 2)]


class Lost:
    """A svc-tickets with a new, migrated, empty database in place of the lost one, and without NATS."""

    def __init__(self, service: RunningService, database: Database) -> None:
        self.service, self.database = service, database

    async def __call__(self, request: Any, who: Identity = ANYBODY) -> Any:
        async with self.service.channel() as channel:
            return await self.service.call(channel, request, who)

    async def rebuild(self, kind: str, overwrite: bool = False) -> list[int]:
        """The number of rows of each page."""
        pages, request = [], pb.RebuildReplicasRequest(kind=kind, overwrite=overwrite)
        while True:
            page = await self(request)
            pages.append(page.rows)
            if not page.HasField("next"):
                return pages
            request.after.CopyFrom(page.next)


@pytest.fixture(scope="module")
async def lost(
    postgres_server: PostgresServer,
    keys: Keys,
    away_catalog: RunningService,
    away_gateway: RunningService,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Lost]:
    url = postgres_server.create_database("tickets_lost")
    addresses = {"svc-catalog": away_catalog.target, "gateway": away_gateway.target}
    log = tmp_path_factory.mktemp("lost") / "log"
    service = RunningService("svc-tickets", keys, url, NO_NATS, log, addresses=addresses)
    await asyncio.to_thread(migrations.migrate, url, "svc_tickets", t.metadata, "tickets_lost")
    service.start()
    database = Database(url, application="tests")
    await database.open()
    yield Lost(service, database)
    await database.close()
    service.stop()


_made: list[int] = []


@pytest.fixture
async def company(owners: dict[str, RunningService]) -> int:
    """The company of this module."""
    if not _made:
        _made.append(await make_company(owners))
    return _made[0]


async def make_company(owners: dict[str, RunningService]) -> int:
    """A company with a member of staff, a vendor, more properties than a page holds, a unit and an asset."""
    async with owners["gateway"].channel() as channel:
        creation = identity_pb2.CreateCompanyRequest(name=f"Lost {secrets.token_hex(4)}")
        gateway = owners["gateway"]
        company_id: int = (await gateway.call(channel, creation, ANYBODY)).company.id
        who = Identity(OPERATOR, "operator", company_id)
        people = staff_pb2.ImportStaffRequest(rows=sent({"external_id": "S1", "name": "Ada Byrne"}))
        await gateway.call(channel, people, who)
    houses = [{"external_id": f"P{n}", "name": f"House {n}", "address": "1 Elm St"} for n in range(PROPERTIES)]
    unit = {"external_id": "U1", "property": "P0", "name": "Unit 1", "unit_number": "1", "floorplan": "B2"}
    boiler = {"external_id": "A1", "property": "P0", "name": "Boiler", "category": "HVAC", "make": "M", "model": "N"}
    firm = {"external_id": "V1", "name": "Cascade Elevator"}
    catalog = owners["svc-catalog"]
    async with catalog.channel() as channel:
        for request in (
            places_pb2.ImportPropertiesRequest(rows=sent(*houses)),
            places_pb2.ImportUnitsRequest(rows=sent(unit)),
            places_pb2.ImportAssetsRequest(rows=sent(boiler)),
            vendors_pb2.ImportVendorsRequest(rows=sent(firm)),
        ):
            results = (await catalog.call(channel, request, who)).results
            assert {result.outcome for result in results} == {common.IMPORT_OUTCOME_CREATED}
    return company_id


async def test_a_restored_owner_overwrites_newer_versions_on_request(lost: Lost, company: int) -> None:
    await lost.rebuild("properties")
    mine = Statement(select(t.property_).where(t.property_.c.company_id == company, t.property_.c.external_id == "P0"))
    owned = await lost.database.row(mine)
    assert owned is not None
    newer = PropertyReference(id=owned["id"], version=9, company_id=company, name="Renamed since", external_id="P0")
    async with lost.database.transaction() as connection:
        await put_references(connection, [References(properties=[newer])])
    await lost.rebuild("properties")
    kept = await lost.database.row(mine)
    assert kept is not None and kept["name"] == "Renamed since"
    await lost.rebuild("properties", overwrite=True)
    assert await lost.database.row(mine) == owned


async def test_each_rpc_is_open_to_its_kind_alone(lost: Lost, owners: dict[str, RunningService]) -> None:
    service = Identity(SERVICE, "svc-tickets")
    calls = [
        (lost.service, pb.ListReplicasRequest(), OPERATOR),
        (lost.service, pb.RebuildReplicasRequest(kind="staff"), OPERATOR),
        (owners["svc-catalog"], pb.ListReferencesRequest(kind="units"), SERVICE),
        (owners["gateway"], pb.ListReferencesRequest(kind="staff"), SERVICE),
    ]
    for running, request, kind in calls:
        async with running.channel() as channel:
            for who in (ANYBODY, service, Identity(INTEGRATION, "gateway", 7, 1, "write")):
                if who.kind == kind:
                    await running.call(channel, request, who)
                    continue
                with pytest.raises(grpc.aio.AioRpcError) as refused:
                    await running.call(channel, request, who)
                assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED


async def test_an_owner_publishes_every_field_of_its_rows(company: int, owners: dict[str, RunningService]) -> None:
    service = Identity(SERVICE, "svc-tickets")
    for name, kinds in (
        ("gateway", ("companies", "staff")),
        ("svc-catalog", ("properties", "units", "assets", "vendors")),
    ):
        async with owners[name].channel() as channel:
            for kind in kinds:
                request = pb.ListReferencesRequest(kind=kind, after=pb.Place(company_id=company - 1, id=2**62))
                answer = await owners[name].call(channel, request, service)
                rows = getattr(answer.references, kind)
                assert rows, kind
                filled = {field.name for row in rows for field, _ in row.ListFields()}
                fields = rows[0].DESCRIPTOR.fields
                assert {field.name for field in fields if field.type != FieldDescriptor.TYPE_BOOL} <= filled, kind


# In any order, twice, in any batches

_companies = iter(range(100_000, 10**9, 10))


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[tuple[str, int]], list[tuple[int, int, int]]]:
    """An owner's history: each row's kind and newest version; and the arrivals in order, with repetitions: (row,
    version, 0 if it is a page of a resync that overwrites)."""
    kinds, versions = st.sampled_from(("properties", "units")), st.integers(1, 4)
    rows = [(draw(kinds), draw(versions)) for _ in range(4)]
    stages = [(n, version) for n, (_, newest) in enumerate(rows) for version in range(1, newest + 1)]
    again = draw(st.lists(st.sampled_from(stages), max_size=6))
    arriving = draw(st.permutations([*stages, *again]))
    return rows, [(n, version, draw(st.integers(0, 3))) for n, version in arriving]


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(histories(), st.lists(st.integers(1, 4)))
async def test_replicas_end_as_a_model_says_whatever_arrives_when_and_how_often(
    lost: Lost, history: tuple[list[tuple[str, int]], list[tuple[int, int, int]]], sizes: list[int]
) -> None:
    rows, arriving = history
    company_id = next(_companies)
    first_id = company_id * 10
    model: dict[int, tuple[int, str]] = {}
    batches = iter([*sizes, *[1] * len(arriving)])
    waiting = list(arriving)
    while waiting:
        size = next(batches)
        batch, waiting = waiting[:size], waiting[size:]
        overwrite = batch[0][2] == 0
        references = References()
        offered: dict[int, tuple[int, str]] = {}
        for n, version, _ in batch:
            row_id = first_id + n
            name = f"v{version}"
            if rows[n][0] == "properties":
                references.properties.add(id=row_id, version=version, company_id=company_id, name=name)
            else:
                references.units.add(
                    id=row_id, version=version, company_id=company_id, property_id=first_id + 9, name=name
                )
            offered[row_id] = max(offered.get(row_id, (0, "")), (version, name))
        for row_id, newest in offered.items():
            if overwrite or newest[0] > model.get(row_id, (0, ""))[0]:
                model[row_id] = newest
        async with lost.database.transaction() as connection:
            await put_references(connection, [references], overwrite)
    # The model may hold older versions after an overwrite; a final pass over the owner's rows brings the newest.
    assert await _stored(lost.database, company_id) == model
    last = References()
    for n, (kind, version) in enumerate(rows):
        if kind == "properties":
            last.properties.add(id=first_id + n, version=version, company_id=company_id, name=f"v{version}")
        else:
            last.units.add(
                id=first_id + n, version=version, company_id=company_id, property_id=first_id + 9, name=f"v{version}"
            )
    async with lost.database.transaction() as connection:
        await put_references(connection, [last])
    assert await _stored(lost.database, company_id) == {
        first_id + n: (version, f"v{version}") for n, (_, version) in enumerate(rows)
    }


async def _stored(database: Database, company_id: int) -> dict[int, tuple[int, str]]:
    """The company's properties and units that have arrived, without placeholders of parents."""
    names: dict[int, tuple[int, str]] = {}
    for table in (t.property_, t.unit):
        arrived = select(table).where(table.c.company_id == company_id, table.c.version > 0)
        names |= {row["id"]: (row["version"], row["name"]) for row in await database.rows(Statement(arrived))}
    return names


# This test is the last one, because it stops the owners.


async def test_a_lost_database_has_all_nested_objects_again(
    lost: Lost, company: int, owners: dict[str, RunningService]
) -> None:
    listed = (await lost(pb.ListReplicasRequest())).kinds
    assert [kind.kind for kind in listed] == KINDS
    assert {kind.owner for kind in listed} == {"gateway", "svc-catalog"}
    pages = {kind: await lost.rebuild(kind) for kind in KINDS}
    assert all(rows == resync.ROWS for pages_of_kind in pages.values() for rows in pages_of_kind[:-1])
    assert sum(pages["properties"]) >= PROPERTIES and len(pages["properties"]) > 1
    for owner in owners.values():  # from here on no owner can be queried
        owner.stop()
    row = {
        "external_id": "T1",
        "property": "P0",
        "unit": "U1",
        "asset": "A1",
        "assignee": "S1",
        "assigned_vendor": "V1",
    }
    last = {"external_id": "T2", "property": f"P{PROPERTIES - 1}"}
    rows = sent(*({**fields, "title": "Lift stuck", "category": "Elevator"} for fields in (row, last)))
    who = Identity(OPERATOR, "operator", company)
    done = await lost(tickets_pb2.ImportTicketsRequest(rows=rows), who)
    assert [result.outcome for result in done.results] == [common.IMPORT_OUTCOME_CREATED] * 2, done
    caller = Identity(INTEGRATION, "gateway", company, 1, "read")
    page = (await lost(tickets_pb2.ListTicketsRequest(limit=5), caller)).page
    first, second = json.loads(page.data)
    assert (first["property"]["name"], first["unit"]["name"], first["unit_number"]) == ("House 0", "Unit 1", "1")
    assert (first["assignee"]["name"], first["assigned_vendor"]["name"]) == ("Ada Byrne", "Cascade Elevator")
    assert second["property"]["name"] == f"House {PROPERTIES - 1}"
    with pytest.raises(grpc.aio.AioRpcError) as fault:
        await lost.rebuild("units")
    assert fault.value.code() is grpc.StatusCode.UNAVAILABLE
    with pytest.raises(Refusal) as refused:
        await lost.rebuild("tickets")
    assert refused.value.status == 400 and "properties" in refused.value.message
