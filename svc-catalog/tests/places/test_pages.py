"""Keyset pages and filters (spec 4.3, 4.4, 4.6, 4.12)."""

from __future__ import annotations

import datetime
import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chassis.db.database import Database
from makeready.catalog.v1 import places_pb2 as pb
from svc_catalog.places import queries, rules
from svc_catalog.places import tables as t
from testkit.examples import examples
from testkit.plans import page_plan, rows_looked_at


async def fill(database: Database, company_id: int, ids: list[int]) -> None:
    async with database.transaction() as connection:
        await connection.raw.executemany(
            "INSERT INTO property (id, company_id, name, address, created_at, source)"
            " VALUES ($1, $2, 'x', 'y', now(), 'import')",
            [(entity_id, company_id) for entity_id in ids],
        )


async def walk(company: Any, kind: str, limits: list[int], **filters: Any) -> list[int]:
    """The ids on all pages; limits: the limit of each page in turn."""
    seen: list[int] = []
    after = 0
    for limit in itertools.cycle(limits):
        page = await company.page(kind, after, limit, **filters)
        ids = [record["entity_id"] for record in json.loads(page.data)]
        assert len(ids) <= limit
        seen += ids
        if not page.HasField("next_after_id"):
            return seen
        assert ids and page.next_after_id == ids[-1] > after
        after = page.next_after_id
    raise AssertionError


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    gaps=st.lists(st.integers(1, 10**6), max_size=60),
    strangers=st.lists(st.integers(1, 10**6), max_size=20),
    limits=st.lists(st.integers(1, 200), min_size=1, max_size=4),
)
async def test_a_walk_returns_each_record_once_ascending(
    new_company: Any, database: Database, gaps: list[int], strangers: list[int], limits: list[int]
) -> None:
    company, stranger = new_company(), new_company()
    start: int = await database.value(_NEXT)
    mine = list(itertools.accumulate(gaps, initial=start))[1:]
    theirs = sorted({start + gap for gap in strangers} - set(mine))
    await fill(database, company.id, mine)
    await fill(database, stranger.id, theirs)
    assert await walk(company, "properties", limits) == mine


def _next() -> Any:
    from sqlalchemy import func, select

    from chassis.db.statements import Statement

    return Statement(select((func.coalesce(func.max(t.property_.c.id), 0) + 10**8).label("free")))


_NEXT = _next()


async def test_a_full_last_page_ends_the_walk(company: Any) -> None:
    rows = [{"external_id": f"P{index}", "name": "N", "address": "A"} for index in range(4)]
    await company.put("properties", *rows)
    first = await company.page("properties", limit=2)
    assert first.HasField("next_after_id")
    last = await company.page("properties", first.next_after_id, limit=2)
    assert len(json.loads(last.data)) == 2 and not last.HasField("next_after_id")


async def test_an_empty_list_is_an_empty_array(company: Any) -> None:
    for kind in ("properties", "units", "assets", "vendors", "inspections"):
        page = await company.page(kind)
        assert page.data == b"[]" and not page.HasField("next_after_id")


async def test_no_page_is_longer_than_200(company: Any) -> None:
    await company.put("properties", *({"external_id": str(index), "name": "N", "address": "A"} for index in range(201)))
    page = await company.page("properties", limit=1000)
    assert len(json.loads(page.data)) == 200 and page.HasField("next_after_id")


@pytest.fixture
async def estate(company: Any) -> dict[str, dict[str, Any]]:
    """Two properties with two units each; an asset of each status in each unit, and one asset without a unit."""
    properties = [{"external_id": p, "name": p, "address": "A"} for p in ("P1", "P2")]
    await company.put("properties", *properties)
    units = [{"external_id": f"{p}U{n}", "property": p, "name": str(n)} for p in ("P1", "P2") for n in (1, 2)]
    await company.put("units", *units)
    asset = {"name": "A", "category": "C", "make": "M", "model": "N"}
    assets = [
        asset
        | {
            "external_id": f"{u['external_id']}A{n}",
            "property": u["property"],
            "location": u["external_id"],
            "status": status,
        }
        for u in units
        for n, status in enumerate(rules.ASSET_STATUSES)
    ]
    await company.put("assets", *assets, asset | {"external_id": "P1A", "property": "P1"})
    return {kind: await company.by_external_id(kind) for kind in ("properties", "units", "assets")}


async def test_units_are_filtered_by_property(company: Any, estate: Any) -> None:
    property_id = estate["properties"]["P2"]["entity_id"]
    assert [unit["external_id"] for unit in await company.list("units", property_id=property_id)] == ["P2U1", "P2U2"]


async def test_assets_are_filtered_by_every_combination(company: Any, estate: Any) -> None:
    chosen: dict[str, Any] = {
        "property_id": estate["properties"]["P1"]["entity_id"],
        "unit_id": estate["units"]["P1U2"]["entity_id"],
        "status": pb.ASSET_STATUS_OUT_OF_SERVICE,
    }
    matches: dict[str, Callable[[Any], bool]] = {
        "property_id": lambda asset: asset["property"]["external_id"] == "P1",
        "unit_id": lambda asset: asset["location"] is not None and asset["location"]["external_id"] == "P1U2",
        "status": lambda asset: asset["status"] == "Out of Service",
    }
    for size in range(4):
        for names in itertools.combinations(chosen, size):
            expected = [
                asset["entity_id"] for asset in estate["assets"].values() if all(matches[name](asset) for name in names)
            ]
            filters = {name: chosen[name] for name in names}
            assert expected and await walk(company, "assets", [1, 3], **filters) == expected


@pytest.mark.parametrize("status", range(1, 5))
async def test_each_status_filter_means_what_the_contract_calls_it(company: Any, estate: Any, status: int) -> None:
    assets = await company.list("assets", status=status)
    label = rules.ASSET_STATUSES[status - 1]
    assert {asset["status"] for asset in assets} == {label}
    name = pb.AssetStatus.Name(status)  # type: ignore[arg-type]
    assert name.removeprefix("ASSET_STATUS_").replace("_", " ").title().replace(" Of ", " of ") == label


async def test_updated_since_is_inclusive(company: Any, estate: Any) -> None:
    instants = sorted({asset["updated_at"] for asset in estate["assets"].values()})
    latest = datetime.datetime.fromisoformat(instants[-1])
    request = pb.ListAssetsRequest(limit=200)
    request.updated_since.FromDatetime(latest)
    page_data = (await company.catalog("ListAssets", request, company.caller)).page.data
    assert [asset["updated_at"] for asset in json.loads(page_data)] == [instants[-1]] * 17
    request.updated_since.FromDatetime(latest + datetime.timedelta(microseconds=1))
    assert (await company.catalog("ListAssets", request, company.caller)).page.data == b"[]"


async def test_ids_in_filters_that_match_nothing_give_an_empty_page(company: Any, estate: Any) -> None:
    for filters in ({"property_id": 2**63 - 1}, {"unit_id": 0}, {"property_id": -5}):
        assert (await company.page("assets", **filters)).data == b"[]"


async def test_the_labels_of_the_proto_are_the_statuses_of_the_rules() -> None:
    from makeready.common.v1 import options_pb2

    values = pb.AssetStatus.DESCRIPTOR.values[1:]
    assert tuple(value.GetOptions().Extensions[options_pb2.label] for value in values) == rules.ASSET_STATUSES


# Plans


@pytest.fixture(scope="module")
async def crowd(crowded: Database) -> tuple[int, int]:
    """A small company between many records of large ones; returns its id and one of its properties' ids."""
    small, big = 1, 2
    start = await crowded.value(_NEXT)
    async with crowded.connection() as connection:
        for company_id, first, many in ((big, start, 4000), (small, start + 4000, 40), (big, start + 5000, 4000)):
            await connection.raw.execute(
                "INSERT INTO property (id, company_id, name, address, created_at, source)"
                " SELECT i, $1, 'x', 'y', now(), 'import' FROM generate_series($2::bigint, $2 + $3 - 1) i",
                company_id,
                first,
                many,
            )
            for place, more in (("building", ""), ("floor", ""), ("floorplan", ""), ("location", "'other', ")):
                type_column = "location_type, " if more else ""
                await connection.raw.execute(
                    f"INSERT INTO {place} ({type_column}id, company_id, property_id, name)"
                    f" SELECT {more} id, company_id, id, 'x' FROM property WHERE company_id = $1 AND id >= $2",
                    company_id,
                    first,
                )
            await connection.raw.execute(
                "INSERT INTO unit (id, company_id, property_id, building_id, floor_id, floorplan_id, name, created_at,"
                " source) SELECT id, company_id, id, id, id, id, 'x', now(), 'import' FROM property"
                " WHERE company_id = $1 AND id >= $2",
                company_id,
                first,
            )
            await connection.raw.execute(
                "INSERT INTO asset (id, company_id, property_id, unit_id, name, category, make, model, status,"
                " created_at, updated_at, source) SELECT id, company_id, property_id, id, 'x', 'c', 'm', 'm',"
                " (ARRAY['Active', 'Needs Service', 'Out of Service', 'Retired'])[1 + id % 4],"
                " now(), now(), 'import' FROM unit WHERE company_id = $1 AND id >= $2",
                company_id,
                first,
            )
        await connection.raw.execute("ANALYZE")
    return small, start + 4000


PLANS = {
    "properties": (queries.PROPERTIES_PAGE, "property", "property_pkey", []),
    "units": (queries.UNITS_PAGE, "unit", "unit_pkey", []),
    "units of a property": (queries.UNITS_PAGE, "unit", "unit_page_of_property", ["property_id"]),
    "assets": (queries.ASSETS_PAGE, "asset", "asset_pkey", []),
    "assets of a property": (queries.ASSETS_PAGE, "asset", "asset_page_of_property", ["property_id"]),
    "assets of a unit": (queries.ASSETS_PAGE, "asset", "asset_page_of_unit", ["unit_id"]),
    "assets by status": (queries.ASSETS_PAGE, "asset", "asset_page_of_status", ["status"]),
}


@pytest.mark.parametrize("list_name", PLANS)
async def test_a_page_is_read_from_its_index_and_looks_at_no_other_companys_rows(
    crowded: Database, crowd: tuple[int, int], list_name: str
) -> None:
    pages, table, index, names = PLANS[list_name]
    company_id, first = crowd
    values = {"property_id": first, "unit_id": first, "status": "Active"}
    plan = await page_plan(crowded, pages, company_id, 50, **{name: values[name] for name in names})
    (scan,) = (node for node in plan if node.get("Relation Name") == table)
    assert scan.get("Index Name") == index
    assert max(map(rows_looked_at, plan)) <= 51, json.dumps(plan[0], indent=1)
    assert not [node for node in plan if node["Node Type"] in ("Sort", "Hash Join")], json.dumps(plan[0], indent=1)
