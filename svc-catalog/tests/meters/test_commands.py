"""The back office of meters and readings: the rules of an import, and records served like all others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chassis.auth.identity import STAFF, Identity
from chassis.db.database import Database
from chassis.refusals import Refusal
from makeready.catalog.v1 import meter_commands_pb2 as pb
from makeready.catalog.v1 import meters_pb2, place_commands_pb2

METER = {"name": "Elm electric", "utility_type": pb.UTILITY_TYPE_ELECTRIC}
JANUARY = {"period_start": "2026-01-01", "period_end": "2026-02-01", "consumption": 812.5}


async def refusal(call: Any) -> tuple[int, str]:
    with pytest.raises(Refusal) as refused:
        await call
    assert refused.value.message.endswith(".") and " key" not in refused.value.message
    return refused.value.status, refused.value.message


async def done(company: Any, rpc: str, **values: Any) -> dict[str, Any]:
    """The meter in the response, which equals its GET."""
    document = (await company.command(pb, rpc, **values)).document
    request = meters_pb2.GetMeterRequest(meter_id=document.entity_id)
    assert (await company.catalog("GetMeter", request, company.caller)).document == document
    record: dict[str, Any] = json.loads(document.json)
    return record


async def readings(company: Any, meter_id: int) -> list[bytes]:
    request = meters_pb2.ListReadingsRequest(meter_id=meter_id, limit=200)
    page: bytes = (await company.catalog("ListReadings", request, company.caller)).page.data
    return [json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode() for record in json.loads(page)]


@pytest.fixture
async def unit_id(company: Any, elm: Any) -> int:
    response = await company.command(
        place_commands_pb2, "AddUnit", property_id=elm["entity_id"], name="204", external_id="U1"
    )
    entity_id: int = response.document.entity_id
    return entity_id


async def test_a_meters_scope_is_settled_by_its_unit(company: Any, elm: Any, unit_id: int) -> None:
    of_elm = {"property_id": elm["entity_id"], **METER}
    meter = await done(company, "AddMeter", unit_of_measure="kWh", **of_elm)
    assert (meter["scope"], meter["is_active"], meter["source"], meter["unit"]) == ("master", True, "staff", None)
    assert (await done(company, "AddMeter", scope=pb.METER_SCOPE_COMMON_AREA, **of_elm))["scope"] == "common_area"
    in_unit = await done(company, "UpdateMeter", meter_id=meter["entity_id"], unit_id=unit_id, is_active=False)
    assert (in_unit["scope"], in_unit["unit"]["external_id"], in_unit["is_active"]) == ("unit", "U1", False)
    assert in_unit["updated_at"] > meter["updated_at"]
    again = await company.command(pb, "UpdateMeter", meter_id=meter["entity_id"], unit_id=unit_id)
    assert json.loads(again.document.json) == in_unit, "nothing changed"
    out = await done(company, "UpdateMeter", meter_id=meter["entity_id"], clear=["unit_id", "is_active"])
    assert (out["scope"], out["unit"], out["is_active"]) == ("master", None, True)
    for values in ({"scope": pb.METER_SCOPE_UNIT}, {"scope": pb.METER_SCOPE_MASTER, "unit_id": unit_id}):
        assert (await refusal(company.command(pb, "AddMeter", **of_elm, **values)))[0] == 400
        assert (await refusal(company.command(pb, "UpdateMeter", meter_id=meter["entity_id"], **values)))[0] == 400


async def test_a_meter_that_moves_names_its_unit_there(company: Any, elm: Any, unit_id: int) -> None:
    oak = (await company.command(place_commands_pb2, "AddProperty", name="Oak", address="2")).document.entity_id
    there = (await company.command(place_commands_pb2, "AddUnit", property_id=oak, name="1")).document.entity_id
    meter = await done(company, "AddMeter", property_id=elm["entity_id"], unit_id=unit_id, **METER)
    move = {"meter_id": meter["entity_id"], "property_id": oak}
    assert (await refusal(company.command(pb, "UpdateMeter", **move)))[0] == 400
    assert (await refusal(company.command(pb, "UpdateMeter", unit_id=unit_id, **move)))[0] == 400
    assert (await done(company, "UpdateMeter", unit_id=there, **move))["unit"]["id"] == there
    assert (await done(company, "UpdateMeter", meter_id=meter["entity_id"], clear=["unit_id"]))["scope"] == "master"


async def test_a_reading_is_recorded_by_staff_and_is_what_the_list_serves(company: Any, elm: Any) -> None:
    member = Identity(STAFF, "gateway", company.id, staff_id=8)
    meter = await done(company, "AddMeter", property_id=elm["entity_id"], unit_of_measure="kWh", **METER)
    recorded = (await company.command(pb, "RecordReading", member, meter_id=meter["entity_id"], **JANUARY)).document
    record = json.loads(recorded.json)
    assert (record["period_start"], record["period_end"]) == (
        "2026-01-01T00:00:00.000000Z",
        "2026-02-01T00:00:00.000000Z",
    )
    assert (record["unit_of_measure"], record["cost"], record["is_estimated"], record["source"]) == (
        "kWh",
        None,
        False,
        "staff",
    )
    hourly = {"period_start": "2026-02-01T00:00:00-05:00", "period_end": "2026-02-01T06:00:00Z", "consumption": -3}
    more = {"unit_of_measure": "MWh", "cost": 1.5, "is_estimated": True, "external_id": "R2"}
    second = (await company.command(pb, "RecordReading", meter_id=meter["entity_id"], **hourly, **more)).document
    assert await readings(company, meter["entity_id"]) == [recorded.json, second.json]
    (entry,) = await company.audit("reading", recorded.entity_id)
    assert (entry.actor, entry.action, json.loads(entry.before)) == ("staff:8", "reading.recorded", {})
    assert json.loads(entry.after)["consumption"] == 812.5
    assert await refusal(company.command(pb, "RecordReading", meter_id=meter["entity_id"], **hourly, **more)) == (
        422,
        "A reading with that external_id exists; use another.",
    )
    row = {
        "external_id": "R2",
        "meter": "M1",
        "period_start": "2026-02-01T05:00:00Z",
        "period_end": "2026-02-01T06:00:00Z",
        "consumption": "-3",
    }
    await done(company, "UpdateMeter", meter_id=meter["entity_id"], external_id="M1")
    assert await company.put("readings", row) == ["unchanged"]


@pytest.mark.parametrize(
    "values",
    [
        {"period_end": "2025-12-31"},
        {"period_start": "yesterday"},
        {"period_start": ""},
        {"period_end": "2026-02-01T00:00:00"},
        {"consumption": float("inf")},
        {"consumption": 1e16},
        {"cost": -1e16},
        {"unit_of_measure": "x" * 51},
        {"external_id": " "},
    ],
)
async def test_a_bad_reading_is_refused_and_leaves_nothing(
    company: Any, elm: Any, database: Database, values: dict[str, Any]
) -> None:
    meter = await done(company, "AddMeter", property_id=elm["entity_id"], **METER)
    answer = await refusal(company.command(pb, "RecordReading", meter_id=meter["entity_id"], **(JANUARY | values)))
    assert answer[0] == 400
    assert await readings(company, meter["entity_id"]) == []
    assert len(await company.audit()) == 1


async def test_a_reading_is_corrected_in_place_and_the_audit_log_has_what_it_was(company: Any, elm: Any) -> None:
    meter = await done(company, "AddMeter", property_id=elm["entity_id"], unit_of_measure="kWh", **METER)
    number = meter["entity_id"]
    first = (await company.command(pb, "RecordReading", meter_id=number, cost=9, external_id="R1", **JANUARY)).document
    second = (await company.command(pb, "RecordReading", meter_id=number, **JANUARY)).document
    member = Identity(STAFF, "gateway", company.id, staff_id=8)

    async def correct(who: Any = member, **values: Any) -> dict[str, Any]:
        values = {"meter_id": number, "reading_id": first.entity_id, **values}
        record: dict[str, Any] = json.loads((await company.command(pb, "CorrectReading", who, **values)).document.json)
        return record

    before = json.loads(first.json)
    new = await correct(consumption=81.25, period_end="2026-01-31", is_estimated=True, clear=["cost"])
    changed = {"consumption": 81.25, "period_end": "2026-01-31T00:00:00.000000Z", "is_estimated": True, "cost": None}
    assert new == before | changed
    assert [json.loads(reading) for reading in await readings(company, number)] == [new, json.loads(second.json)]
    assert await correct(consumption=81.25) == new, "nothing changed"
    recorded, corrected = sorted(await company.audit("reading", first.entity_id), key=lambda entry: entry.id)
    assert (corrected.actor, corrected.action) == ("staff:8", "reading.corrected")
    assert json.loads(corrected.after) == changed
    assert json.loads(corrected.before).items() <= json.loads(recorded.after).items()
    assert json.loads(corrected.before).keys() == changed.keys()
    assert (await correct(clear=["is_estimated"]))["is_estimated"] is False
    other_meter = await done(company, "AddMeter", property_id=elm["entity_id"], **METER)
    for values, status in (
        ({"period_start": "2026-02-02"}, 400),
        ({"clear": ["consumption"]}, 400),
        ({"consumption": 1e16}, 400),
        ({"reading_id": second.entity_id, "external_id": "R1"}, 422),
        ({"reading_id": 2**62}, 404),
        ({"meter_id": other_meter["entity_id"]}, 404),
    ):
        assert (await refusal(correct(**values)))[0] == status, values
    assert [json.loads(reading)["consumption"] for reading in await readings(company, number)] == [81.25, 812.5]


async def test_a_meter_is_found_by_a_later_import_and_bad_ones_are_refused(company: Any, elm: Any) -> None:
    meter = await done(company, "AddMeter", property_id=elm["entity_id"], external_id="M1", **METER)
    row = {"external_id": "M1", "property": "P1", "name": "Elm electric", "utility_type": "electric"}
    assert await company.put("meters", row) == ["unchanged"]
    assert (await company.list("meters")) == [meter]
    of_elm = {"property_id": elm["entity_id"]}
    for values, status in (
        (of_elm | METER | {"external_id": "M1"}, 422),
        (of_elm | METER | {"utility_type": pb.UTILITY_TYPE_UNSPECIFIED}, 422),
        (of_elm | METER | {"utility_type": 99}, 422),
        (of_elm | METER | {"scope": 99}, 422),
        (of_elm | METER | {"name": ""}, 400),
        (of_elm | METER | {"unit_id": 2**62}, 404),
        (METER | {"property_id": 2**62}, 404),
    ):
        assert (await refusal(company.command(pb, "AddMeter", **values)))[0] == status
    assert len(await company.list("meters")) == 1


async def test_meters_of_another_company_are_not_there(company: Any, other: Any, elm: Any) -> None:
    meter = await done(company, "AddMeter", property_id=elm["entity_id"], **METER)
    for rpc, values in (
        ("UpdateMeter", {"name": "x"}),
        ("RecordReading", JANUARY),
        ("CorrectReading", {"reading_id": 1, "consumption": 1}),
    ):
        theirs = await refusal(other.command(pb, rpc, meter_id=meter["entity_id"], **values))
        assert theirs == await refusal(other.command(pb, rpc, meter_id=2**62, **values))
        assert theirs == (404, "The company has no meter with that id; check the id.")
    assert await company.list("meters") == [meter]
