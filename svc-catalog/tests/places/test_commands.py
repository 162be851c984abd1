"""The back office of places: added records are served, published and imported like all others, by the same rules."""

from __future__ import annotations

import asyncio
import datetime
import json
from typing import Any

import grpc
import pytest
from google.protobuf.message_factory import GetMessageClass
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chassis.auth.identity import ADMINISTRATOR, INTEGRATION, KINDS, OPERATOR, SERVICE, STAFF, Identity
from chassis.db.database import Database
from chassis.records import bodies
from chassis.refusals import Refusal
from chassis.writes import commands
from makeready.catalog.v1 import meter_commands_pb2, places_pb2
from makeready.catalog.v1 import place_commands_pb2 as pb
from makeready.common.v1 import options_pb2
from svc_catalog.places import inputs
from testkit.examples import examples

from ..published import events

ISSUERS = {
    INTEGRATION: "gateway",
    STAFF: "gateway",
    ADMINISTRATOR: "gateway",
    OPERATOR: "operator",
    SERVICE: "svc-tickets",
}
SERVICES = [pb.DESCRIPTOR.services_by_name["PlaceCommandsService"]]
SERVICES.append(meter_commands_pb2.DESCRIPTOR.services_by_name["MeterCommandsService"])
BOILER = {"name": "Boiler", "category": "HVAC", "make": "Weil", "model": "W1"}


async def refusal(call: Any) -> tuple[int, str]:
    with pytest.raises(Refusal) as refused:
        await call
    assert refused.value.code == ("not_found" if refused.value.status == 404 else "invalid_request")
    assert refused.value.message.endswith(".") and " key" not in refused.value.message
    return refused.value.status, refused.value.message


async def done(company: Any, rpc: str, **values: Any) -> dict[str, Any]:
    """The record in the response, which equals its GET."""
    document = (await company.command(pb, rpc, **values)).document
    noun = rpc.removeprefix("Add").removeprefix("Update")
    request = getattr(places_pb2, f"Get{noun}Request")(**{f"{noun.lower()}_id": document.entity_id})
    assert (await company.catalog(f"Get{noun}", request, company.caller)).document == document
    record: dict[str, Any] = json.loads(document.json)
    return record


@pytest.mark.parametrize("kind", ISSUERS)
@pytest.mark.parametrize("rpc", [rpc for service in SERVICES for rpc in service.methods], ids=lambda rpc: rpc.name)
async def test_each_rpc_is_open_to_the_kinds_that_its_proto_names(company: Any, rpc: Any, kind: str) -> None:
    who = Identity(kind, ISSUERS[kind], company.id, administrator_id=7, staff_id=8, scope="write")
    allowed = {OPERATOR, ADMINISTRATOR} | ({STAFF} if rpc.name in ("RecordReading", "CorrectReading") else set())
    allowed = {INTEGRATION} if rpc.name == "AddMeterReadings" else allowed
    assert {KINDS[number] for number in allowed} == set(rpc.GetOptions().Extensions[options_pb2.allowed])
    try:
        await company.catalog(rpc.name, GetMessageClass(rpc.input_type)(), who)
    except Refusal as refused:
        assert refused.status in (400, 422) and kind in allowed
    except grpc.aio.AioRpcError as error:
        assert error.code() == grpc.StatusCode.PERMISSION_DENIED and kind not in allowed
    else:
        pytest.fail("an empty request was taken")


async def test_a_property_is_added_served_and_published(company: Any, database: Database) -> None:
    values = {
        "name": "Oak Hall",
        "address": "2 Oak St",
        "city": "Boston",
        "state": "MA",
        "postal_code": "02134",
        "building_type": "Garden",
        "construction_type": "Wood frame",
        "unit_count": 12,
        "year_built": 1970,
        "latitude": 42.35,
        "longitude": -71.06,
        "external_id": "P9",
    }
    before = datetime.datetime.now(datetime.UTC)
    record = await done(company, "AddProperty", **values)
    assert {name: record[name] for name in values} == values
    assert record["source"] == "staff"
    assert before <= datetime.datetime.fromisoformat(record["created_at"]) <= datetime.datetime.now(datetime.UTC)
    ((_, event),) = await events(database, company.id)
    (reference,) = event.references.properties
    assert (reference.id, reference.version, reference.name, reference.external_id) == (
        record["entity_id"],
        1,
        "Oak Hall",
        "P9",
    )
    assert event.request_id == "req-test"


async def test_what_a_change_leaves_out_stays_and_what_it_clears_is_null(company: Any, elm: Any) -> None:
    changed = await done(company, "UpdateProperty", property_id=elm["entity_id"], city="Boston", unit_count=0)
    assert changed == elm | {"city": "Boston", "unit_count": 0}
    cleared = await done(
        company, "UpdateProperty", property_id=elm["entity_id"], year_built=1900, clear=["city", "external_id"]
    )
    assert cleared == elm | {"year_built": 1900, "unit_count": 0, "external_id": None}


async def test_a_rename_is_in_every_nested_object_and_published_by_version(
    company: Any, elm: Any, database: Database
) -> None:
    unit = await done(company, "AddUnit", property_id=elm["entity_id"], name="1")
    asset = await done(company, "AddAsset", property_id=elm["entity_id"], unit_id=unit["entity_id"], **BOILER)
    await done(company, "UpdateProperty", property_id=elm["entity_id"], name="Elm House")
    await done(company, "UpdateUnit", unit_id=unit["entity_id"], name="One", unit_number="1A")
    await done(company, "UpdateAsset", asset_id=asset["entity_id"], name="Old boiler")
    (unit,), (asset,) = await company.list("units"), await company.list("assets")
    assert unit["property"] == asset["property"] == {"id": elm["entity_id"], "name": "Elm House", "external_id": "P1"}
    assert asset["location"]["name"] == "One"
    _, _, _, *changes = [event.references for _, event in await events(database, company.id)]
    assert [(reference.version, reference.name) for reference in changes[0].properties] == [(2, "Elm House")]
    assert [(reference.version, reference.name, reference.unit_number) for reference in changes[1].units] == [
        (2, "One", "1A")
    ]
    assert [(reference.version, reference.name, reference.property_id) for reference in changes[2].assets] == [
        (2, "Old boiler", elm["entity_id"])
    ]


async def test_a_unit_names_its_building_floor_and_floorplan_as_an_import_does(company: Any, elm: Any) -> None:
    parts = {"building": "A", "floor": "2", "floorplan": "B2"}
    first = await done(company, "AddUnit", property_id=elm["entity_id"], name="201", bedrooms=2, bathrooms=1.5, **parts)
    row = {"external_id": "U2", "property": "P1", "name": "202", "square_feet": "800", **parts}
    assert await company.put("units", row) == ["created"]
    units = {unit["name"]: unit for unit in await company.list("units")}
    assert units["201"]["building"] == units["202"]["building"] == first["building"]
    assert units["201"]["floor"] == units["202"]["floor"] == first["floor"]
    assert first["floorplan"] | {"square_feet": 800} == units["201"]["floorplan"] == units["202"]["floorplan"]
    assert (first["floorplan"]["bedrooms"], first["floorplan"]["bathrooms"]) == (2, 1.5)

    moved = await done(company, "UpdateUnit", unit_id=first["entity_id"], building="B", floor="2", clear=["floorplan"])
    assert moved["building"]["name"] == "B" and moved["floorplan"] is None
    assert moved["floor"]["name"] == "2" and moved["floor"]["id"] != first["floor"]["id"], "a floor of its building"


async def test_a_unit_in_another_building_is_on_the_floor_of_that_name_there(company: Any, elm: Any) -> None:
    plan = {"property_id": elm["entity_id"], "floor": "2"}
    first = json.loads((await company.command(pb, "AddUnit", name="A2", building="A", **plan)).document.json)
    there = json.loads((await company.command(pb, "AddUnit", name="B2", building="B", **plan)).document.json)
    nowhere = json.loads((await company.command(pb, "AddUnit", name="2", **plan)).document.json)
    assert len({unit["floor"]["id"] for unit in (first, there, nowhere)}) == 3
    for says, like in (({"building": "B"}, there), ({"clear": ["building"]}, nowhere)):
        moved = json.loads((await company.command(pb, "UpdateUnit", unit_id=first["entity_id"], **says)).document.json)
        assert (moved["building"], moved["floor"]) == (like["building"], like["floor"])


async def test_measures_belong_to_the_floorplan_and_to_all_units_of_it(company: Any, elm: Any) -> None:
    bare = {"property_id": elm["entity_id"], "name": "1"}
    assert await refusal(company.command(pb, "AddUnit", bedrooms=1, **bare)) == (
        400,
        "bedrooms belongs to a floorplan; name it in floorplan.",
    )
    first = await done(company, "AddUnit", floorplan="S", bedrooms=1, **bare)
    second = await done(company, "AddUnit", floorplan="S", **bare)
    assert second["floorplan"]["bedrooms"] == 1
    again = await company.command(pb, "UpdateUnit", unit_id=second["entity_id"], bedrooms=1)
    assert again.document.version == 1, "nothing changed"
    changed = await company.command(pb, "UpdateUnit", unit_id=second["entity_id"], bedrooms=0, clear=["bathrooms"])
    assert changed.document.version == 2
    units = await company.list("units")
    assert [unit["floorplan"]["bedrooms"] for unit in units] == [0, 0]
    entry = (await company.audit("unit", second["entity_id"]))[-1]
    assert json.loads(entry.before)["floorplan"]["bedrooms"] == 1
    assert json.loads(entry.after)["floorplan"]["bedrooms"] == 0
    assert first["floorplan"]["id"] == units[0]["floorplan"]["id"]


async def test_units_that_are_the_first_to_name_a_building_at_once_make_it_once(company: Any, elm: Any) -> None:
    parts = {"building": "New", "floor": "1", "floorplan": "P"}
    row = {"external_id": "U", "property": "P1", "name": "U", **parts}
    *responses, imported = await asyncio.gather(
        *(done(company, "AddUnit", property_id=elm["entity_id"], name=str(n), **parts) for n in range(8)),
        company.put("units", row),
    )
    assert imported == ["created"]
    units = await company.list("units")
    assert len(units) == 9
    for part in parts:
        assert len({unit[part]["id"] for unit in units}) == 1
    assert len({unit["entity_id"] for unit in responses}) == 8


async def test_an_asset_stands_in_a_unit_or_another_place_or_nowhere(company: Any, elm: Any) -> None:
    unit = await done(company, "AddUnit", property_id=elm["entity_id"], name="1", external_id="U1")
    asset = await done(company, "AddAsset", property_id=elm["entity_id"], unit_id=unit["entity_id"], **BOILER)
    assert asset["location"] == {
        "id": unit["entity_id"],
        "name": "1",
        "external_id": "U1",
        "location_type": "unit",
    }
    assert asset["status"] == "Active" and asset["created_at"] == asset["updated_at"]
    moved = await done(
        company,
        "UpdateAsset",
        asset_id=asset["entity_id"],
        location="Room 1",
        location_type=pb.LOCATION_TYPE_MECHANICAL_ROOM,
        status=places_pb2.ASSET_STATUS_OUT_OF_SERVICE,
        installed_on="2020-02-29",
    )
    assert (moved["location"]["name"], moved["location"]["location_type"]) == ("Room 1", "mechanical_room")
    assert (moved["status"], moved["installed_on"]) == ("Out of Service", "2020-02-29")
    assert moved["updated_at"] > asset["updated_at"]
    gone = await done(company, "UpdateAsset", asset_id=asset["entity_id"], clear=["location", "status"])
    assert gone["location"] is None and gone["status"] == "Active"


async def test_an_asset_that_moves_says_where_it_stands_there(company: Any, elm: Any) -> None:
    oak = await done(company, "AddProperty", name="Oak", address="2")
    unit, there = [
        await done(company, "AddUnit", property_id=property_["entity_id"], name="1") for property_ in (elm, oak)
    ]
    asset = await done(company, "AddAsset", property_id=elm["entity_id"], unit_id=unit["entity_id"], **BOILER)
    move = {"asset_id": asset["entity_id"], "property_id": oak["entity_id"]}
    assert (await refusal(company.command(pb, "UpdateAsset", **move)))[0] == 400
    assert (await refusal(company.command(pb, "UpdateAsset", unit_id=unit["entity_id"], **move)))[0] == 400
    moved = await done(company, "UpdateAsset", unit_id=there["entity_id"], **move)
    assert moved["property"]["id"] == oak["entity_id"] and moved["location"]["id"] == there["entity_id"]
    bare = await done(
        company, "UpdateAsset", asset_id=asset["entity_id"], property_id=elm["entity_id"], clear=["unit_id"]
    )
    assert bare["property"]["id"] == elm["entity_id"] and bare["location"] is None
    free = await done(company, "UpdateAsset", **move)
    assert free["property"]["id"] == oak["entity_id"]


@pytest.mark.parametrize(
    ("rpc", "values", "status"),
    [
        ("AddProperty", {"name": "", "address": "a"}, 400),
        ("AddProperty", {"name": " ", "address": "a"}, 400),
        ("AddProperty", {"name": "a\0b", "address": "a"}, 400),
        ("AddProperty", {"name": "x" * 201, "address": "a"}, 400),
        ("AddProperty", {"name": "x", "address": "a" * 501}, 400),
        ("AddProperty", {"name": "x", "address": "a", "year_built": 999}, 400),
        ("AddProperty", {"name": "x", "address": "a", "unit_count": -1}, 400),
        ("AddProperty", {"name": "x", "address": "a", "latitude": 90.5}, 400),
        ("AddProperty", {"name": "x", "address": "a", "longitude": float("nan")}, 400),
        ("AddProperty", {"name": "x", "address": "a", "external_id": ""}, 400),
        ("UpdateProperty", {"clear": ["name"]}, 400),
        ("UpdateProperty", {"clear": ["property_id"]}, 400),
        ("UpdateProperty", {"clear": ["nonsense"]}, 400),
        ("UpdateProperty", {"clear": ["city"], "city": "x"}, 400),
        ("AddUnit", {"name": "x", "unit_number": "1" * 51}, 400),
        ("AddUnit", {"name": "x", "building": " "}, 400),
        ("AddUnit", {"name": "x", "floorplan": "P", "bedrooms": 1001}, 400),
        ("AddAsset", BOILER | {"make": ""}, 400),
        ("AddAsset", BOILER | {"location": "Roof"}, 400),
        ("AddAsset", BOILER | {"location_type": pb.LOCATION_TYPE_EXTERIOR}, 400),
        ("AddAsset", BOILER | {"unit_id": 1, "location": "Roof", "location_type": pb.LOCATION_TYPE_EXTERIOR}, 400),
        ("AddAsset", BOILER | {"location": "Roof", "location_type": 99}, 422),
        ("AddAsset", BOILER | {"status": 99}, 422),
        ("AddAsset", BOILER | {"status": 0}, 422),
        ("AddAsset", BOILER | {"installed_on": "20200101"}, 400),
        ("AddAsset", BOILER | {"installed_on": "2021-02-29"}, 400),
        ("AddAsset", BOILER | {"expected_life_years": 1001}, 400),
    ],
)
async def test_a_bad_field_is_refused_and_leaves_nothing(
    company: Any, elm: Any, rpc: str, values: dict[str, Any], status: int
) -> None:
    if rpc != "AddProperty":
        values = values | {"property_id": elm["entity_id"]}
    assert (await refusal(company.command(pb, rpc, **values)))[0] == status
    assert await company.list("properties") == [elm]
    assert await company.list("units") == await company.list("assets") == await company.audit() == []


async def test_records_of_another_company_are_not_there(company: Any, other: Any, elm: Any) -> None:
    unit = await done(company, "AddUnit", property_id=elm["entity_id"], name="1")
    asset = await done(company, "AddAsset", property_id=elm["entity_id"], **BOILER)
    mine = await done(other, "AddProperty", name="Oak", address="2")
    for rpc, field, taken, more in (
        ("UpdateProperty", "property_id", elm, {"name": "x"}),
        ("AddUnit", "property_id", elm, {"name": "x"}),
        ("UpdateUnit", "unit_id", unit, {"name": "x"}),
        ("AddAsset", "property_id", elm, BOILER),
        ("UpdateAsset", "asset_id", asset, {"name": "x"}),
        ("AddAsset", "unit_id", unit, BOILER | {"property_id": mine["entity_id"]}),
    ):
        answers = {
            await refusal(other.command(pb, rpc, **{field: unit_id}, **more))
            for unit_id in (taken["entity_id"], 2**62, 0, -1)
        }
        assert len(answers) == 1 and answers.pop()[0] == 404
    assert (await company.list("units"), await company.list("assets")) == ([unit], [asset])


async def test_a_record_with_an_external_id_is_found_by_a_later_import(company: Any) -> None:
    oak = await done(company, "AddProperty", name="Oak", address="2", external_id="P7")
    unit = await done(company, "AddUnit", property_id=oak["entity_id"], name="1", external_id="U7")
    asset = await done(company, "AddAsset", property_id=oak["entity_id"], external_id="A7", **BOILER)
    assert await company.put("properties", {"external_id": "P7", "name": "Oak", "address": "2"}) == ["unchanged"]
    assert await company.put("units", {"external_id": "U7", "property": "P7", "name": "One"}) == ["changed"]
    row = {"external_id": "A7", "property": "P7", "location": "U7", **BOILER}
    assert await company.put("assets", row) == ["changed"]
    (after,) = await company.list("units")
    assert after == unit | {"name": "One"}, "the same record, added by staff"
    (moved,) = await company.list("assets")
    assert (moved["entity_id"], moved["source"], moved["location"]["id"]) == (
        asset["entity_id"],
        "staff",
        unit["entity_id"],
    )
    for rpc, more in (
        ("AddProperty", {"name": "x", "address": "y", "external_id": "P7"}),
        ("AddUnit", {"property_id": oak["entity_id"], "name": "x", "external_id": "U7"}),
        ("AddAsset", {"property_id": oak["entity_id"], "external_id": "A7", **BOILER}),
    ):
        assert (await refusal(company.command(pb, rpc, **more)))[0] == 422
    imported = {"external_id": "P8", "name": "Imported", "address": "3"}
    assert await company.put("properties", imported) == ["created"]
    assert (await refusal(company.command(pb, "UpdateProperty", property_id=oak["entity_id"], external_id="P8")))[
        0
    ] == 422
    assert {property_["external_id"] for property_ in await company.list("properties")} == {"P7", "P8"}


_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
_SOME = st.one_of(_TEXT, st.sampled_from(["x" * 200, "x" * 201, "x" * 500, "x" * 501, " ", "0"]))
_NUMBERS = st.one_of(st.integers(-5, 3000), st.sampled_from([10_000_000, 10_000_001, 2**31 - 1]))


@settings(max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.dictionaries(st.sampled_from(["name", "address", "city", "building_type", "external_id"]), _SOME),
    numbers=st.dictionaries(st.sampled_from(["unit_count", "year_built"]), _NUMBERS),
)
def test_a_request_is_refused_where_its_row_would_be_with_the_same_status_and_sentence(
    texts: dict[str, str], numbers: dict[str, int]
) -> None:
    values: dict[str, Any] = {"name": "Oak", "address": "2 Oak St"} | texts | numbers
    request = pb.AddPropertyRequest(idempotency_key="K", **values)
    row = {"external_id": "P1"} | commands.fields(request, *values)

    def outcome(check: Any) -> Any:
        try:
            check()
        except Refusal as refused:
            return refused.status, refused.message
        return None

    as_row = outcome(lambda: bodies.check(inputs.PropertyRow, row))
    as_request = outcome(lambda: inputs.PROPERTY_FIELDS.of(request))
    assert as_row == as_request
