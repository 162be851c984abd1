"""Imports: upsert by external_id; each bad row is rejected with its field, the others are saved."""

from __future__ import annotations

import asyncio
import datetime
import itertools
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import pytest
from sqlalchemy import select

from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.refusals import Refusal
from chassis.schedule import instants
from svc_catalog import field_rules, schema
from svc_catalog.places import tables as t
from testkit.patience import took
from testkit.stored_documents import written_columns

P = {"external_id": "P1", "name": "Elm Court", "address": "1 Elm St"}
U = {"external_id": "U1", "property": "P1", "name": "Unit 1"}
A = {"external_id": "A1", "property": "P1", "name": "Boiler", "category": "HVAC", "make": "Heat", "model": "H1"}
GOOD = {"properties": P, "units": U, "assets": A}
TABLES = {"properties": t.property_, "units": t.unit, "assets": t.asset}


async def stored(database: Database, kind: str, company_id: int) -> dict[str, Any]:
    """The stored rows by external_id, without the columns that the service fills after a write."""
    rows = await database.rows(Statement(select(*written_columns(TABLES[kind]))))
    return {row["external_id"]: dict(row) for row in rows if row["company_id"] == company_id}


async def prepared(company: Any, kind: str) -> Any:
    """Imports the records that the kind's good row refers to."""
    if kind != "properties":
        await company.put("properties", P)
    return company


@pytest.mark.parametrize("kind", GOOD)
async def test_a_row_is_created_then_unchanged_then_changed(company: Any, database: Database, kind: str) -> None:
    await prepared(company, kind)
    assert await company.put(kind, GOOD[kind]) == ["created"]
    before = await stored(database, kind, company.id)
    assert await company.put(kind, GOOD[kind]) == ["unchanged"]
    assert await stored(database, kind, company.id) == before
    assert await company.put(kind, GOOD[kind] | {"name": "Other"}) == ["changed"]
    (was,), (now,) = before.values(), (await stored(database, kind, company.id)).values()
    differing = {name for name in was if was[name] != now[name]}
    assert differing == {"version", "changed_xid", "name", *({"updated_at"} if kind == "assets" else ())}
    assert now["version"] == 2 and now.get("updated_at", 1) >= was.get("updated_at", 1)


@pytest.mark.parametrize(
    ("kind", "field"),
    [(kind, field) for kind, row in GOOD.items() for field in row],
)
@pytest.mark.parametrize("value", [None, "", "   "])
async def test_a_row_without_a_required_field_is_rejected(
    company: Any, kind: str, field: str, value: str | None
) -> None:
    await prepared(company, kind)
    row = GOOD[kind] | {field: value}
    assert await company.put(kind, row, GOOD[kind] | {"external_id": "good"}) == [f"rejected {field}", "created"]
    absent = {name: value for name, value in row.items() if name != field}
    assert await company.put(kind, absent) == [f"rejected {field}"]


LONG = "x" * (field_rules.NAME_POINTS_MAX + 1)
BAD = [
    ("properties", {"name": LONG}, "name"),
    ("properties", {"external_id": LONG}, "external_id"),
    ("properties", {"address": "x" * 501}, "address"),
    ("properties", {"city": LONG}, "city"),
    ("properties", {"name": 12}, "name"),
    ("properties", {"name": ["x"]}, "name"),
    ("properties", {"external_id": 12}, "external_id"),
    ("properties", {"postal_code": True}, "postal_code"),
    ("properties", {"year_built": "0"}, "year_built"),
    ("properties", {"year_built": "19 70"}, "year_built"),
    ("properties", {"year_built": "1970.0"}, "year_built"),
    ("properties", {"year_built": "N/A"}, "year_built"),
    ("properties", {"year_built": "1_970"}, "year_built"),
    ("properties", {"year_built": "\uff11\uff19\uff17\uff10"}, "year_built"),
    ("properties", {"unit_count": "-1"}, "unit_count"),
    ("properties", {"unit_count": str(2**31)}, "unit_count"),
    ("properties", {"unit_count": 10**30}, "unit_count"),
    ("properties", {"unit_count": True}, "unit_count"),
    ("properties", {"unit_count": 1.5}, "unit_count"),
    ("properties", {"latitude": "90.01"}, "latitude"),
    ("properties", {"latitude": "nan"}, "latitude"),
    ("properties", {"latitude": "inf"}, "latitude"),
    ("properties", {"latitude": "1e999"}, "latitude"),
    ("properties", {"longitude": "-180.5"}, "longitude"),
    ("properties", {"longitude": {"x": 1}}, "longitude"),
    ("properties", {"created_at": "2026-02-30"}, "created_at"),
    ("properties", {"created_at": "31/12/2025"}, "created_at"),
    ("properties", {"created_at": "2026-01-01T10:00:00"}, "created_at"),
    ("properties", {"created_at": "20260101"}, "created_at"),
    ("properties", {"created_at": "0001-01-01T00:00:00+14:00"}, "created_at"),
    ("properties", {"adress": "1 Elm St"}, "adress"),
    ("properties", {"entity_id": "4"}, "entity_id"),
    ("properties", {"city": "a\0b"}, ""),
    ("units", {"property": "nobody"}, "property"),
    ("units", {"property": 7}, "property"),
    ("units", {"name": LONG}, "name"),
    ("units", {"unit_number": "x" * 51}, "unit_number"),
    ("units", {"building": LONG}, "building"),
    ("units", {"floor": 3}, "floor"),
    ("units", {"floorplan": "   "}, "floorplan"),
    ("units", {"bedrooms": "2"}, "bedrooms"),
    ("units", {"floorplan": "F", "bathrooms": "1,5"}, "bathrooms"),
    ("units", {"floorplan": "F", "square_feet": "840.5"}, "square_feet"),
    ("units", {"unit_status": "Occupied"}, "unit_status"),
    ("assets", {"property": "nobody"}, "property"),
    ("assets", {"location": "nobody"}, "location"),
    ("assets", {"location_type": "mechanical_room"}, "location_type"),
    ("assets", {"location": "x", "location_type": "roof"}, "location_type"),
    ("assets", {"status": "active"}, "status"),
    ("assets", {"status": 1}, "status"),
    ("assets", {"installed_on": "9O0719"}, "installed_on"),
    ("assets", {"installed_on": "********"}, "installed_on"),
    ("assets", {"installed_on": "2026-13-01"}, "installed_on"),
    ("assets", {"warranty_expires_on": "20260101"}, "warranty_expires_on"),
    ("assets", {"year": "20150"}, "year"),
    ("assets", {"expected_life_years": "-1"}, "expected_life_years"),
    ("assets", {"updated_at": "2026-01-01"}, "updated_at"),
]


@pytest.mark.parametrize(("kind", "fault", "field"), BAD, ids=[f"{k}-{json.dumps(f)[:40]}" for k, f, _ in BAD])
async def test_a_bad_row_is_rejected_by_field_and_its_neighbours_kept(
    company: Any, database: Database, kind: str, fault: dict[str, Any], field: str
) -> None:
    await prepared(company, kind)
    before, after = GOOD[kind] | {"external_id": "before"}, GOOD[kind] | {"external_id": "after"}
    outcomes = await company.put(kind, before, GOOD[kind] | fault, after)
    assert outcomes == ["created", f"rejected {field}".strip(), "created"]
    assert set(await stored(database, kind, company.id)) == {"before", "after"}


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b'"x"',
        b"null",
        b"{",
        b"\xff\xfe",
        b'{"external_id": "a", "external_id": "b"}',
        b'{"external_id": NaN}',
        b'{"external_id": "\\ud800"}',
        b'{"external_id": "\\u0000"}',
        b"[" * 100_000,
    ],
)
async def test_a_row_that_is_no_json_object_is_rejected(company: Any, raw: bytes) -> None:
    assert await company.put("properties", raw, P) == ["rejected", "created"]


async def test_a_reason_is_a_sentence_that_repeats_no_value(company: Any) -> None:
    (result,) = await company.results("properties", [P | {"year_built": "wrongvalue"}])
    assert (result.line, result.field) == (2, "year_built")
    assert result.reason == "year_built must be an integer."


async def test_the_second_row_of_an_external_id_is_rejected(company: Any) -> None:
    outcomes = await company.put("properties", P, P | {"name": "Second"}, P | {"external_id": "P2"})
    assert outcomes == ["created", "rejected external_id", "created"]
    assert (await company.by_external_id("properties"))["P1"]["name"] == "Elm Court"


async def test_a_batch_of_more_than_2000_rows_is_refused(company: Any) -> None:
    rows = [P | {"external_id": str(number)} for number in range(2001)]
    with pytest.raises(Refusal) as refused:
        await company.results("properties", rows)
    assert refused.value.status == 400
    assert await company.list("properties") == []


async def test_an_empty_batch_is_nothing(company: Any) -> None:
    for kind in GOOD:
        assert await company.results(kind, []) == []


async def test_a_blank_cell_clears_a_field_and_a_missing_column_leaves_it(company: Any) -> None:
    await company.put("properties", P | {"city": "Toronto", "year_built": 1970, "created_at": "2001-01-01"})
    assert await company.put("properties", P) == ["unchanged"]
    assert await company.put("properties", P | {"city": "Toronto"}) == ["unchanged"]
    assert await company.put("properties", P | {"city": "", "year_built": None, "created_at": ""}) == ["changed"]
    (property_,) = await company.list("properties")
    assert (property_["city"], property_["year_built"]) == (None, None)
    # A blank does not clear created_at.
    assert property_["created_at"] == "2001-01-01T00:00:00.000000Z"


async def test_the_longest_texts_count_code_points(company: Any) -> None:
    row = P | {"name": "🚿" * 200, "address": "漏" * 500, "external_id": "é" * 200}
    assert await company.put("properties", row) == ["created"]
    (property_,) = await company.list("properties")
    assert {name: property_[name] for name in row} == row


async def test_values_may_be_text_or_json(company: Any) -> None:
    text = {"unit_count": "12", "year_built": "1970", "latitude": "43.5", "longitude": "-79"}
    typed = {"unit_count": 12, "year_built": 1970, "latitude": 43.5, "longitude": -79}
    assert await company.put("properties", P | text) == ["created"]
    assert await company.put("properties", P | typed) == ["unchanged"]


@pytest.mark.parametrize("kind", GOOD)
async def test_a_dry_run_reports_the_same_and_writes_nothing(
    company: Any,
    database: Database,
    published: Callable[[], Awaitable[None]],
    searched: Callable[[], Awaitable[None]],
    kind: str,
) -> None:
    await prepared(company, kind)
    await company.put(kind, GOOD[kind] | {"external_id": "old"}, GOOD[kind] | {"external_id": "same"})
    places = (t.building, t.floor, t.floorplan, t.location)

    async def everything() -> list[Any]:
        """Of this company, for other tests' rows may still change; the outbox has the events of all."""
        contents = []
        for table in (t.property_, t.unit, t.asset, schema.outbox, *places):
            rows = select(*written_columns(table)).order_by(*table.primary_key.columns)
            if "company_id" in table.c:
                rows = rows.where(table.c.company_id == company.id)
            contents.append([dict(row) for row in await database.rows(Statement(rows))])
        return contents

    places_named: dict[str, dict[str, Any]] = {
        "properties": {},
        "units": {"building": "B", "floor": "F", "floorplan": "P", "bedrooms": 1},
        "assets": {"location": "L", "location_type": "other"},
    }
    rows = [
        GOOD[kind] | places_named[kind] | {"external_id": "new"},
        GOOD[kind] | {"external_id": "old", "name": "Other"},
        GOOD[kind] | {"external_id": "same"},
        GOOD[kind] | {"external_id": "bad", "name": ""},
    ]
    # The service writes these after the imports.
    await published()
    await searched()
    before = await everything()
    dry = await company.put(kind, *rows, dry_run=True)
    assert await everything() == before
    assert dry == await company.put(kind, *rows) == ["created", "changed", "unchanged", "rejected name"]


# Places


async def test_buildings_floors_and_floorplans_are_made_once_by_name(company: Any) -> None:
    await company.put("properties", P, P | {"external_id": "P2"})
    places = {"building": "North", "floor": "2", "floorplan": "Studio", "square_feet": 400}
    rows = [
        U | places,
        U | places | {"external_id": "U2"},
        U | places | {"external_id": "U3", "building": "South"},
        U | places | {"external_id": "U4", "property": "P2"},
        U | {"external_id": "U5", "floor": "2"},
    ]
    assert await company.put("units", *rows) == ["created"] * 5
    assert await company.put("units", *rows) == ["unchanged"] * 5
    units = await company.by_external_id("units")

    def ids(field: str) -> list[int | None]:
        return [units[f"U{n}"][field] and units[f"U{n}"][field]["id"] for n in range(1, 6)]

    first, second, third, fourth, none = ids("building")
    assert first == second and len({first, third, fourth}) == 3 and none is None
    first, second, third, fourth, fifth = ids("floor")
    assert first == second and len({first, third, fourth, fifth}) == 4
    first, second, third, fourth, none = ids("floorplan")
    assert first == second == third != fourth and none is None


async def test_a_floor_given_alone_lies_in_the_building_that_the_unit_has(company: Any, elm: Any) -> None:
    await company.put("units", U | {"building": "North", "floor": "1"}, U | {"external_id": "U2", "building": "North"})
    assert await company.put("units", U | {"external_id": "U2", "floor": "1"}) == ["changed"]
    units = await company.by_external_id("units")
    assert units["U1"]["floor"] == units["U2"]["floor"]


async def test_a_floorplans_measures_change_for_all_its_units(company: Any, elm: Any, database: Database) -> None:
    plan = {"floorplan": "Studio", "bedrooms": "0", "bathrooms": "1", "square_feet": "400"}
    await company.put("units", U | plan, U | plan | {"external_id": "U2"}, U | {"external_id": "U3"})
    bigger = {"floorplan": "Studio", "square_feet": "410"}
    assert await company.put("units", U | bigger, U | bigger | {"external_id": "U2"}) == ["changed"] * 2
    assert await company.put("units", U | bigger) == ["unchanged"]
    for unit in ("U1", "U2"):
        assert (await company.by_external_id("units"))[unit]["floorplan"] | {"id": 0} == {
            "id": 0,
            "name": "Studio",
            "external_id": None,
            "bedrooms": 0,
            "bathrooms": 1.0,
            "square_feet": 410,
        }


async def test_rows_that_contradict_each_other_on_a_floorplan_are_rejected(company: Any, elm: Any) -> None:
    rows = [
        U | {"floorplan": "Studio", "bedrooms": 0},
        U | {"floorplan": "Studio", "bedrooms": 1, "external_id": "U2"},
        U | {"floorplan": "Studio", "square_feet": 400, "external_id": "U3"},
        U | {"floorplan": "Large", "bedrooms": 1, "external_id": "U4"},
    ]
    assert await company.put("units", *rows) == ["created", "rejected bedrooms", "created", "created"]


async def test_a_unit_stays_in_its_property(company: Any, elm: Any) -> None:
    await company.put("properties", P | {"external_id": "P2"})
    await company.put("units", U)
    assert await company.put("units", U | {"property": "P2"}) == ["rejected property"]
    assert (await company.list("units"))[0]["property"]["external_id"] == "P1"


async def test_a_rejected_row_makes_no_places(company: Any, elm: Any, database: Database) -> None:
    await company.put("units", U | {"building": "North", "name": ""}, U | {"floorplan": "S", "property": "P2"})
    for table in (t.building, t.floorplan):
        rows = await database.rows(Statement(select(table.c.company_id)))
        assert company.id not in {row["company_id"] for row in rows}


async def test_an_assets_location_lies_in_its_property(company: Any, elm: Any) -> None:
    await company.put("properties", P | {"external_id": "P2"})
    await company.put("units", U)
    assert await company.put("assets", A | {"property": "P2", "location": "U1"}) == ["rejected location"]
    assert await company.put("assets", A | {"location": "U1"}) == ["created"]
    # The asset can move to another property with a new location or without one, but not with the old one.
    moved = A | {"property": "P2"}
    assert await company.put("assets", moved) == ["rejected location"]
    assert await company.put("assets", moved | {"location": ""}) == ["changed"]
    (asset,) = await company.list("assets")
    assert asset["property"]["external_id"] == "P2" and asset["location"] is None


async def test_an_asset_changes_between_unit_and_mechanical_room(company: Any, elm: Any) -> None:
    await company.put("units", U)
    in_unit = {"location": "U1", "location_type": "unit"}
    in_room = {"location": "Boiler room", "location_type": "mechanical_room"}
    seen = []
    for where in (in_unit, in_room, in_room, in_unit, {}):
        outcome = await company.put("assets", A | where)
        (asset,) = await company.list("assets")
        seen.append((*outcome, asset["location"]["location_type"]))
    assert seen == [
        ("created", "unit"),
        ("changed", "mechanical_room"),
        ("unchanged", "mechanical_room"),
        ("changed", "unit"),
        ("unchanged", "unit"),
    ]


async def test_rooms_of_the_same_name_and_type_are_one(company: Any, elm: Any) -> None:
    rows = [
        A | {"location": "Roof", "location_type": "exterior"},
        A | {"external_id": "A2", "location": "Roof", "location_type": "exterior"},
        A | {"external_id": "A3", "location": "Roof", "location_type": "other"},
    ]
    await company.put("assets", *rows)
    assets = await company.by_external_id("assets")
    first, second, third = (assets[name]["location"]["id"] for name in ("A1", "A2", "A3"))
    assert first == second != third


async def test_a_blank_status_is_the_default(company: Any, elm: Any) -> None:
    await company.put("assets", A | {"status": "Retired"})
    assert await company.put("assets", A) == ["unchanged"]
    assert await company.put("assets", A | {"status": ""}) == ["changed"]
    assert (await company.list("assets"))[0]["status"] == "Active"


async def test_an_asset_from_the_future_is_not_updated_before_it_was_created(company: Any, elm: Any) -> None:
    soon = instants.printed(instants.now() + datetime.timedelta(minutes=4))
    await company.put("assets", A | {"created_at": soon})
    (asset,) = await company.list("assets")
    assert asset["created_at"] == asset["updated_at"] == soon


# Many at once


async def test_batches_of_one_company_side_by_side_leave_each_record_once(company: Any, elm: Any) -> None:
    rows = [
        U | {"external_id": f"U{number}", "name": str(number), "building": "B", "floor": str(number % 7)}
        for number in range(200)
    ]
    orders = [rows, rows[::-1], rows[100:] + rows[:100]]

    async def put(order: list[dict[str, str]]) -> list[str]:
        while True:  # as the command line does where a batch has waited too long for the others
            try:
                outcomes: list[str] = await company.put("units", *order)
                return outcomes
            except grpc.aio.AioRpcError as error:
                assert error.code() is grpc.StatusCode.UNAVAILABLE, error

    outcomes = await asyncio.gather(*map(put, orders))
    assert sorted(itertools.chain(*outcomes)) == ["created"] * 200 + ["unchanged"] * 400
    units = await company.list("units")
    assert len(units) == 200 and len({unit["building"]["id"] for unit in units}) == 1
    assert len({unit["floor"]["id"] for unit in units}) == 7


async def test_records_keep_the_order_of_the_file(company: Any) -> None:
    rows = [P | {"external_id": f"{(number * 37) % 101}"} for number in range(101)]
    await company.put("properties", *rows)
    properties = await company.list("properties")
    assert [property_["external_id"] for property_ in properties] == [row["external_id"] for row in rows]


async def test_thousands_of_rows_a_second(company: Any, elm: Any) -> None:
    """Prints how long 500 rows took: with a statement for each it would be ten times as long."""
    rows = [
        U | {"external_id": f"U{number}", "unit_number": str(number), "building": "B", "floor": str(number // 10)}
        for number in range(3000)
    ]
    rate = 0.0
    for first in range(0, len(rows), 500):
        started = time.perf_counter()
        assert await company.put("units", *rows[first : first + 500]) == ["created"] * 500
        rate = max(rate, 500 / (time.perf_counter() - started))
    took("500 units were imported", 500 / rate)


async def test_a_table_that_an_import_fills_is_counted_before_the_next_kind_names_its_rows(
    company: Any, database: Database
) -> None:
    # Without statistics, the check of each asset's property would read all properties of the company.
    counted = "SELECT analyze_count + autoanalyze_count FROM pg_stat_user_tables WHERE relname = 'property'"
    async with database.connection() as connection:
        filled = await connection.raw.fetchval("SELECT count(*) FROM property")
        before = await connection.raw.fetchval(counted)
        for first in range(0, 2 * filled + 1000, 500):
            await company.put("properties", *(P | {"external_id": f"C{first + n}"} for n in range(500)))
        for _ in range(600):
            if await connection.raw.fetchval(counted) > before:
                return
            await asyncio.sleep(0.1)
    raise AssertionError("nobody has counted the properties")
