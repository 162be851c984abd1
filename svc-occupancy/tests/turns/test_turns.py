"""GET /turns (spec 2.10, 4.9, 4.12): shapes, paging, filters, and isolation of companies."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chassis.db.database import Database
from chassis.refusals import Refusal
from makeready.occupancy.v1 import turns_pb2 as pb
from svc_occupancy.turns.queries import TURNS_PAGE
from testkit.plans import page_plan, rows_looked_at

KEYS = [
    "schema_version",
    "entity_type",
    "entity_id",
    "status",
    "property",
    "unit",
    "move_out_date",
    "move_in_date",
    "projected_ready_on",
    "occupancy_source",
    "occupancy_fed_at",
    "created_at",
    "updated_at",
    "external_id",
    "source",
    "url",
]
STATUS = {"Active": 1, "Completed": 2, "Cancelled": 3}
LISTED = 30


async def test_a_turn_has_every_key_in_the_order_of_the_contract(company: Any) -> None:
    await company.make_units("U-é漏")
    row = {
        "external_id": "T-1",
        "unit": "U-é漏",
        "status": "Active",
        "move_out_date": "2026-03-31",
        "move_in_date": "2024-02-29",
        "projected_ready_on": "2026-04-15",
        "occupancy_source": " Yardi ",
        "occupancy_fed_at": "2026-03-01T10:00:00.5+02:00",
        "created_at": "2024-02-01",
        "updated_at": "2026-03-01T08:00:01Z",
    }
    assert await company.put("turns", row) == ["created"]
    (turn,) = await company.turns()
    (unit_id,) = (await company.unit_ids()).values()
    assert list(turn) == KEYS
    assert turn == {
        "schema_version": 1,
        "entity_type": "turn",
        "entity_id": turn["entity_id"],
        "status": "Active",
        "property": {"id": turn["property"]["id"], "name": "Elm Court", "external_id": "P1"},
        "unit": {"id": unit_id, "name": "Unit U-é漏", "external_id": "U-é漏"},
        "move_out_date": "2026-03-31",
        "move_in_date": "2024-02-29",
        "projected_ready_on": "2026-04-15",
        "occupancy_source": "yardi",
        "occupancy_fed_at": "2026-03-01T08:00:00.500000Z",
        "created_at": "2024-02-01T00:00:00.000000Z",
        "updated_at": "2026-03-01T08:00:01.000000Z",
        "external_id": "T-1",
        "source": "import",
        "url": f"https://app.test/turns/{turn['entity_id']}",
    }
    assert list(turn["property"]) == list(turn["unit"]) == ["id", "name", "external_id"]


async def test_a_first_ever_move_in_is_a_turn_with_nulls(company: Any) -> None:
    await company.make_units("U")
    await company.put("turns", {"external_id": "T", "unit": "U", "move_in_date": "2026-03-01"})
    (turn,) = await company.turns()
    assert list(turn) == KEYS and turn["status"] == "Active"
    nulls = {"move_out_date", "projected_ready_on", "occupancy_source", "occupancy_fed_at"}
    assert {key for key, value in turn.items() if value is None} == nulls
    assert turn["created_at"] == turn["updated_at"]


async def test_a_fetch_serves_what_the_list_does_to_the_byte(company: Any) -> None:
    await company.make_units("U")
    await company.put("turns", {"external_id": "T", "unit": "U", "move_out_date": "2026-03-01"})
    page = (await company.page()).data
    (listed,) = json.loads(page)
    request = pb.GetTurnRequest(turn_id=listed["entity_id"])
    document = (await company.house("GetTurn", request, company.caller)).document
    assert b"[" + document.json + b"]" == page
    assert (document.entity_id, document.version) == (listed["entity_id"], 1)


@pytest.mark.parametrize("turn_id", [0, -1, 2**63 - 1])
async def test_an_unknown_id_is_not_found(company: Any, turn_id: int) -> None:
    with pytest.raises(Refusal) as refused:
        await company.house("GetTurn", pb.GetTurnRequest(turn_id=turn_id), company.caller)
    assert (refused.value.status, refused.value.code) == (404, "not_found")
    assert refused.value.message == "No turn with that id is visible to this key; check the id and the key."


@pytest.fixture(scope="module")
async def listed(new_company: Callable[[], Any]) -> Any:
    """A company with thirty turns in two properties: three in each of ten units, two over and one active."""
    company = await new_company()
    properties = [{"external_id": f"P{n}", "name": f"House {n}", "address": "1 Elm St"} for n in range(2)]
    await company.put("properties", *properties)
    units = [{"external_id": f"U{n}", "property": f"P{n % 2}", "name": f"Unit {n}"} for n in range(10)]
    await company.put("units", *units)
    rows = [
        {
            "external_id": f"T{n}",
            "unit": f"U{n % 10}",
            "status": list(STATUS)[(n // 10 + 1) % 3],
            "created_at": "2026-01-01",
            "updated_at": f"2026-01-01T00:00:{n:02}Z",
        }
        for n in range(LISTED)
    ]
    assert set(await company.put("turns", *rows)) == {"created"}
    return company


async def walk(company: Any, limit: int, **filters: Any) -> list[dict[str, Any]]:
    turns: list[dict[str, Any]] = []
    after = 0
    while True:
        page = await company.page(after, limit, **filters)
        rows = json.loads(page.data)
        assert len(rows) <= limit
        turns += rows
        if not page.HasField("next_after_id"):
            return turns
        assert len(rows) == limit and page.next_after_id == rows[-1]["entity_id"] > after
        after = page.next_after_id


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(limit=st.integers(1, 40))
async def test_a_walk_returns_each_turn_once_ascending(listed: Any, limit: int) -> None:
    turns = await walk(listed, limit)
    ids = [row["entity_id"] for row in turns]
    assert len(ids) == LISTED and ids == sorted(set(ids))
    assert [row["external_id"] for row in turns] == [f"T{n}" for n in range(LISTED)]


async def test_each_filter_narrows_and_all_combine(listed: Any) -> None:
    since = Timestamp()
    since.FromDatetime(datetime.datetime(2026, 1, 1, 0, 0, 5, tzinfo=datetime.UTC))
    for status, number in STATUS.items():
        assert {row["status"] for row in await walk(listed, 7, status=number)} == {status}
        assert len(await walk(listed, 7, status=number)) == LISTED // 3
    everything = await walk(listed, 200)
    place, unit = everything[0]["property"]["id"], everything[0]["unit"]["id"]
    of_place, of_unit = await walk(listed, 7, property_id=place), await walk(listed, 7, unit_id=unit)
    assert [row["external_id"] for row in of_place] == [f"T{n}" for n in range(0, LISTED, 2)]
    assert [row["external_id"] for row in of_unit] == ["T0", "T10", "T20"]
    # updated_since is inclusive.
    assert [row["external_id"] for row in await walk(listed, 7, updated_since=since)] == [
        f"T{n}" for n in range(5, LISTED)
    ]
    combined = await walk(listed, 7, property_id=place, unit_id=unit, status=2, updated_since=since)
    assert [row["external_id"] for row in combined] == []
    combined = await walk(listed, 7, property_id=place, unit_id=unit, status=1, updated_since=since)
    assert [row["external_id"] for row in combined] == ["T20"]


@pytest.mark.parametrize("filters", [{"property_id": 0}, {"unit_id": 10**15}])
async def test_a_filter_that_names_nothing_is_an_empty_page(listed: Any, filters: Any) -> None:
    assert (await listed.page(**filters)).data == b"[]"


async def test_another_companys_turn_is_as_unknown_as_none(listed: Any, company: Any) -> None:
    mine = (await listed.turns())[0]
    sentences = []
    for turn_id in (mine["entity_id"], 10**12):
        with pytest.raises(Refusal) as refused:
            await company.house("GetTurn", pb.GetTurnRequest(turn_id=turn_id), company.caller)
        sentences.append((refused.value.status, refused.value.code, refused.value.message))
    assert sentences[0] == sentences[1] and sentences[0][:2] == (404, "not_found")
    assert await company.turns() == []
    assert await company.turns(unit_id=mine["unit"]["id"]) == []
    assert await company.turns(property_id=mine["property"]["id"]) == []


async def test_companies_may_use_the_same_external_ids(listed: Any, company: Any) -> None:
    before = await listed.turns()
    await company.make_units("U0")
    assert await company.put("turns", {"external_id": "T0", "unit": "U0", "move_out_date": "2026-05-01"}) == ["created"]
    assert await listed.turns() == before
    assert [turn["external_id"] for turn in await company.turns()] == ["T0"]


@pytest.fixture(scope="module")
async def crowd(database: Database) -> None:
    """Thousands of turns of company 91 around twenty of company 90; the statistics know few companies."""
    async with database.connection() as connection:
        for company_id, first, many in ((91, 10**10, 4000), (90, 10**10 + 4000, 20), (91, 10**10 + 4020, 4000)):
            for rows in (
                "property (id, company_id, version, name) SELECT i, $1, 1, 'x'",
                "unit (id, company_id, version, name, property_id) SELECT i, $1, 1, 'x', i",
                "transition (id, company_id, status, property_id, unit_id, created_at, updated_at, source)"
                " SELECT i, $1, (ARRAY['active', 'completed', 'cancelled'])[1 + i % 3], i, i, now(), now(), 'import'",
            ):
                await connection.raw.execute(
                    f"INSERT INTO {rows} FROM generate_series($2::bigint, $2 + $3 - 1) i", company_id, first, many
                )
        await connection.raw.execute("ANALYZE")


@pytest.mark.parametrize(
    ("names", "index"),
    [
        ([], "transition_pkey"),
        (["property_id"], "transition_page_of_property"),
        (["unit_id"], "transition_page_of_unit"),
        (["status"], "transition_page_of_status"),
    ],
)
async def test_a_page_is_read_from_its_index_and_looks_at_no_other_companys_rows(
    database: Database, crowd: None, names: list[str], index: str
) -> None:
    filters = {"property_id": 10**10 + 4000, "unit_id": 10**10 + 4000, "status": "active"}
    plan = await page_plan(database, TURNS_PAGE, 90, 50, **{name: filters[name] for name in names})
    (scan,) = (node for node in plan if node.get("Relation Name") == "transition")
    assert scan.get("Index Name") == index
    assert max(map(rows_looked_at, plan)) <= 51
