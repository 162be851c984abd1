"""The public shape of each record (spec 2.4, 2.5, 2.7): keys, their order, types and nulls."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from chassis.db.database import Database
from chassis.refusals import Refusal
from makeready.catalog.v1 import places_pb2 as pb
from testkit.event_contract import public_fields

INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


FULL_PROPERTY = {
    "external_id": "P-1",
    "name": "Résidence 漏水 🚿 تسريب",
    "address": "12 Elm Street",
    "city": "Toronto",
    "state": "ON",
    "postal_code": "M5V",
    "building_type": "High-rise",
    "construction_type": "Concrete",
    "unit_count": "120",
    "year_built": "1972",
    "latitude": "43.655490881",
    "longitude": "-79.3742822812",
    "created_at": "2019-05-04",
}


async def test_a_property_has_every_key_in_the_order_of_the_contract(company: Any) -> None:
    assert await company.put("properties", FULL_PROPERTY) == ["created"]
    (property_,) = await company.list("properties")
    assert list(property_) == public_fields("Property")
    assert property_ == {
        "schema_version": 1,
        "entity_type": "property",
        "entity_id": property_["entity_id"],
        "name": "Résidence 漏水 🚿 تسريب",
        "address": "12 Elm Street",
        "city": "Toronto",
        "state": "ON",
        "postal_code": "M5V",
        "building_type": "High-rise",
        "construction_type": "Concrete",
        "unit_count": 120,
        "year_built": 1972,
        "latitude": 43.655490881,
        "longitude": -79.3742822812,
        "created_at": "2019-05-04T00:00:00.000000Z",
        "external_id": "P-1",
        "source": "import",
        "url": f"https://app.test/properties/{property_['entity_id']}",
    }


async def test_a_bare_property_has_nulls(company: Any) -> None:
    await company.put("properties", {"external_id": "P", "name": "Bare", "address": "1 A St"})
    (property_,) = await company.list("properties")
    assert list(property_) == public_fields("Property")
    filled = {"schema_version", "entity_type", "entity_id", "name", "address", "created_at", "external_id", "source"}
    assert {key for key, value in property_.items() if value is not None} == filled | {"url"}
    assert INSTANT.fullmatch(property_["created_at"])


async def test_a_unit_has_every_key_and_its_nested_objects(company: Any, elm: Any, database: Database) -> None:
    row = {
        "external_id": "U-1",
        "property": "P1",
        "name": "Unit 12B",
        "unit_number": "12B",
        "building": "North Tower",
        "floor": "12",
        "floorplan": "Two bed",
        "bedrooms": "2",
        "bathrooms": "1.5",
        "square_feet": "840",
    }
    assert await company.put("units", row) == ["created"]
    (unit,) = await company.list("units")
    # svc-occupancy owns these fields. They are null until it publishes them.
    assert (unit["unit_status"], unit["projected_ready_on"]) == (None, None)
    async with database.connection() as connection:
        await connection.raw.execute(
            "UPDATE unit SET unit_status = 'Notice', projected_ready_on = '2026-03-01' WHERE id = $1",
            unit["entity_id"],
        )
    (unit,) = await company.list("units")
    assert list(unit) == public_fields("Unit")
    assert unit == {
        "schema_version": 1,
        "entity_type": "unit",
        "entity_id": unit["entity_id"],
        "name": "Unit 12B",
        "unit_number": "12B",
        "unit_status": "Notice",
        "property": {"id": elm["entity_id"], "name": "Elm Court", "external_id": "P1"},
        "floorplan": {
            "id": unit["floorplan"]["id"],
            "name": "Two bed",
            "external_id": None,
            "bedrooms": 2,
            "bathrooms": 1.5,
            "square_feet": 840,
        },
        "building": {"id": unit["building"]["id"], "name": "North Tower", "external_id": None},
        "floor": {"id": unit["floor"]["id"], "name": "12", "external_id": None},
        "created_at": unit["created_at"],
        "external_id": "U-1",
        "source": "import",
        "projected_ready_on": "2026-03-01",
        "url": f"https://app.test/properties/{elm['entity_id']}/units/{unit['entity_id']}",
    }
    assert list(unit["floorplan"]) == ["id", "name", "external_id", "bedrooms", "bathrooms", "square_feet"]
    assert list(unit["property"]) == list(unit["building"]) == list(unit["floor"]) == ["id", "name", "external_id"]


async def test_a_bare_unit_has_nulls(company: Any, elm: Any) -> None:
    await company.put("units", {"external_id": "U", "property": "P1", "name": "1"})
    (unit,) = await company.list("units")
    assert list(unit) == public_fields("Unit")
    nulls = {"unit_number", "unit_status", "floorplan", "building", "floor", "projected_ready_on"}
    assert {key for key, value in unit.items() if value is None} == nulls


async def test_an_asset_has_every_key_and_stands_in_a_unit(company: Any, elm: Any) -> None:
    await company.put("units", {"external_id": "U", "property": "P1", "name": "Unit 1"})
    (unit,) = await company.list("units")
    row = {
        "external_id": "A-1",
        "property": "P1",
        "location": "U",
        "name": "Fridge",
        "category": "Appliance",
        "sub_category": "Refrigerator",
        "asset_tag": "T-9",
        "make": "Frost",
        "model": "F1",
        "serial_number": "S123",
        "status": "Needs Service",
        "year": "2015",
        "installed_on": "2016-02-29",
        "warranty_expires_on": "2020-02-29",
        "expected_life_years": "15",
        "created_at": "2016-02-29T10:00:00+02:00",
    }
    assert await company.put("assets", row) == ["created"]
    (asset,) = await company.list("assets")
    assert list(asset) == public_fields("Asset")
    assert INSTANT.fullmatch(asset["updated_at"]) and asset["updated_at"] > "2026"
    assert asset | {"updated_at": None} == {
        "schema_version": 1,
        "entity_type": "asset",
        "entity_id": asset["entity_id"],
        "name": "Fridge",
        "category": "Appliance",
        "sub_category": "Refrigerator",
        "asset_tag": "T-9",
        "make": "Frost",
        "model": "F1",
        "serial_number": "S123",
        "status": "Needs Service",
        "property": {"id": elm["entity_id"], "name": "Elm Court", "external_id": "P1"},
        "location": {"id": unit["entity_id"], "name": "Unit 1", "external_id": "U", "location_type": "unit"},
        "year": 2015,
        "installed_on": "2016-02-29",
        "warranty_expires_on": "2020-02-29",
        "expected_life_years": 15,
        "created_at": "2016-02-29T08:00:00.000000Z",
        "updated_at": None,
        "external_id": "A-1",
        "source": "import",
        "url": f"https://app.test/assets/{asset['entity_id']}",
    }


async def test_an_asset_may_stand_in_a_mechanical_room_or_nowhere(company: Any, elm: Any) -> None:
    boiler = {"property": "P1", "name": "Boiler", "category": "HVAC", "make": "Heat", "model": "H"}
    room = {"location": "Boiler room", "location_type": "mechanical_room"}
    await company.put("assets", boiler | room | {"external_id": "A"}, boiler | {"external_id": "B"})
    assets = await company.by_external_id("assets")
    assert assets["A"]["location"] == {
        "id": assets["A"]["location"]["id"],
        "name": "Boiler room",
        "external_id": None,
        "location_type": "mechanical_room",
    }
    nulls = [
        "sub_category",
        "asset_tag",
        "serial_number",
        "location",
        "year",
        "installed_on",
        "warranty_expires_on",
        "expected_life_years",
    ]
    assert {key for key, value in assets["B"].items() if value is None} == set(nulls)
    assert assets["B"]["status"] == "Active" and assets["B"]["created_at"] == assets["B"]["updated_at"]


async def test_a_fetch_serves_what_the_list_does_to_the_byte(company: Any, elm: Any) -> None:
    await company.put("units", {"external_id": "U", "property": "P1", "name": "Unit 1"})
    row = {"external_id": "A", "property": "P1", "name": "B", "category": "C", "make": "M", "model": "N"}
    await company.put("assets", row | {"status": "Retired"})
    for kind, rpc, request, field in (
        ("properties", "GetProperty", pb.GetPropertyRequest, "property_id"),
        ("units", "GetUnit", pb.GetUnitRequest, "unit_id"),
        ("assets", "GetAsset", pb.GetAssetRequest, "asset_id"),
    ):
        page = (await company.page(kind)).data
        (listed,) = json.loads(page)
        fetched = await company.catalog(rpc, request(**{field: listed["entity_id"]}), company.caller)
        assert b"[" + fetched.document.json + b"]" == page
        assert (fetched.document.entity_id, fetched.document.version) == (listed["entity_id"], 1)


@pytest.mark.parametrize("entity_id", [0, -1, 2**63 - 1])
async def test_an_unknown_id_is_not_found(company: Any, entity_id: int) -> None:
    for rpc, request, noun in (
        ("GetProperty", pb.GetPropertyRequest(property_id=entity_id), "property"),
        ("GetUnit", pb.GetUnitRequest(unit_id=entity_id), "unit"),
        ("GetAsset", pb.GetAssetRequest(asset_id=entity_id), "asset"),
    ):
        with pytest.raises(Refusal) as refused:
            await company.catalog(rpc, request, company.caller)
        assert (refused.value.status, refused.value.code) == (404, "not_found")
        assert refused.value.message == f"No {noun} with that id is visible to this key; check the id and the key."
