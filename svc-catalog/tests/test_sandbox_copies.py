"""A sandbox that is a copy of its live company's places and assets."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from chassis.auth.identity import SERVICE, Identity
from chassis.db.database import Database
from chassis.refusals import Refusal
from makeready.catalog.v1 import places_pb2
from makeready.catalog.v1 import sandbox_copies_pb2 as pb
from makeready.common.v1 import documents_pb2
from makeready.events.v1 import events_pb2
from svc_catalog import sandbox_copies

GATEWAY = Identity(SERVICE, "gateway")
PLACES = ("properties", "units", "assets")


async def make_company(database: Database, company_id: int, *, is_sandbox: bool = True, ended: bool = False) -> None:
    async with database.connection() as connection:
        await connection.raw.execute(
            "INSERT INTO company (id, version, is_sandbox, ended) VALUES ($1, 1, $2, $3)", company_id, is_sandbox, ended
        )


async def copy_some(live: Any, sandbox: Any) -> int:
    request = pb.CopyPlacesRequest(from_company_id=live.id, company_id=sandbox.id)
    return int((await live.catalog("CopyPlaces", request, GATEWAY)).rows)


async def live_records(live: Any) -> None:
    """Two properties with everything that a place may have."""
    for name in ("P1", "P2"):
        await live.put(
            "properties", {"external_id": name, "name": f"{name} Court", "address": "1 Elm St", "year_built": 1990}
        )
        parts = {"building": "North", "floor": "3", "floorplan": "A1", "bedrooms": 2, "square_feet": 800}
        units = [{"external_id": f"{name}-{n}", "property": name, "name": f"Unit {n}", **parts} for n in range(700)]
        assert set(await live.put("units", *units)) == {"created"}
        asset = {"name": "Boiler", "category": "HVAC", "make": "Acme", "model": "B1"}
        outcomes = await live.put(
            "assets",
            {**asset, "external_id": f"{name}-in-unit", "property": name, "location": f"{name}-1"},
            {
                **asset,
                "external_id": f"{name}-roof",
                "property": name,
                "location": "Roof",
                "location_type": "mechanical_room",
            },
            {**asset, "external_id": f"{name}-somewhere", "property": name, "status": "Retired"},
        )
        assert set(outcomes) == {"created"}


def compared(value: Any) -> Any:
    """A record without what a copy has anew."""
    if not isinstance(value, dict):
        return value
    anew = ("entity_id", "id", "url", "unit_status", "projected_ready_on")
    return {name: compared(field) for name, field in value.items() if name not in anew}


@pytest.fixture
async def records(company: Any) -> Any:
    await live_records(company)
    return company


async def everything(company: Any, kind: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    while page := await company.list(kind, rows[-1]["entity_id"] if rows else 0):
        rows += page
    return rows


async def test_a_copy_has_the_same_records_under_new_ids_however_often_it_is_made(
    records: Any, other: Any, database: Database, published: Callable[[], Awaitable[None]]
) -> None:
    await make_company(database, other.id)
    # Cut off after some batches, then by several processes at once.
    first = [await copy_some(records, other) for _ in range(3)]
    assert first[0] == 2, "properties come first"
    while any(await asyncio.gather(*(copy_some(records, other) for _ in range(3)))):
        pass
    for kind in PLACES:
        originals, copies = await everything(records, kind), await everything(other, kind)
        assert [compared(row) for row in copies] == [compared(row) for row in originals], kind
        assert not {row["entity_id"] for row in copies} & {row["entity_id"] for row in originals}
    unit = (await everything(other, "units"))[0]
    assert unit["floorplan"]["square_feet"] == 800 and unit["building"]["name"] == "North"
    assert await copy_some(records, other) == 0
    await published()
    async with database.connection() as connection:
        messages = await connection.raw.fetch("SELECT message FROM outbox WHERE subject LIKE '%references'")
        notes = await connection.raw.fetchval("SELECT count(*) FROM copied_place WHERE company_id = $1", other.id)
    events = [events_pb2.Event.FromString(row["message"]) for row in messages]
    published_units = [u for e in events if e.company_id == other.id for u in e.references.units]
    assert len(published_units) == 1400 == len({unit.id for unit in published_units}), (
        "other contexts hear of each once"
    )
    assert {unit.company_id for unit in published_units} == {other.id}
    assert notes == 2 + 2 + 2 + 2 + 2 + 1400 + 6
    assert sandbox_copies.BATCH < 700


@pytest.mark.parametrize("company_is", [None, {"is_sandbox": False}, {"ended": True}], ids=["away", "live", "ended"])
async def test_only_a_sandbox_that_has_arrived_is_filled(
    company: Any, other: Any, database: Database, company_is: dict[str, bool] | None
) -> None:
    await company.put("properties", {"external_id": "P", "name": "P", "address": "A"})
    if company_is is not None:
        await make_company(database, other.id, **company_is)
    with pytest.raises(Refusal) as refused:
        await copy_some(company, other)
    assert refused.value.status == 404
    assert await other.list("properties") == []


async def test_the_gateway_itself_imports_into_sandboxes_alone(other: Any, database: Database) -> None:
    await make_company(database, other.id, is_sandbox=False)
    gateway = Identity(SERVICE, "gateway", company_id=other.id)
    row = documents_pb2.ImportRow(line=1, json=b'{"external_id": "P", "name": "P", "address": "A"}')
    with pytest.raises(Refusal) as refused:
        await other.catalog("ImportProperties", places_pb2.ImportPropertiesRequest(rows=[row]), gateway)
    assert refused.value.status == 404
    assert await other.list("properties") == []
