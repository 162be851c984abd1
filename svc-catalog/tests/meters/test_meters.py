"""Meters and readings (spec 2.11, 4.10): shapes, lists, filters and imports."""

from __future__ import annotations

import datetime
import json
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.refusals import Refusal
from makeready.catalog.v1 import meters_pb2 as pb
from svc_catalog.meters import queries, rules
from svc_catalog.meters import tables as m
from testkit.event_contract import public_fields
from testkit.examples import examples
from testkit.plans import rows_looked_at, statement_plan
from testkit.stored_documents import written_columns

INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
M = {"external_id": "M1", "property": "P1", "name": "Main", "utility_type": "electric", "unit_of_measure": "kWh"}
R = {
    "external_id": "R1",
    "meter": "M1",
    "period_start": "2026-01-01T00:00:00Z",
    "period_end": "2026-02-01T00:00:00Z",
    "consumption": "120.5",
}


@pytest.fixture
async def place(company: Any, elm: Any) -> Any:
    """The company, with property P1, its unit U1, property P2 and its unit V1."""
    await company.put("properties", {"external_id": "P2", "name": "Oak", "address": "2 Oak St"})
    await company.put("units", {"external_id": "U1", "property": "P1", "name": "Unit 1"})
    await company.put("units", {"external_id": "V1", "property": "P2", "name": "Unit 1"})
    return company


@pytest.fixture
async def main(place: Any) -> dict[str, Any]:
    """The company's only meter, with external_id M1."""
    assert await place.put("meters", M) == ["created"]
    (meter,) = await place.list("meters")
    return dict(meter)


# Shapes


async def test_a_meter_has_every_key_in_order(place: Any, elm: Any) -> None:
    row = {
        "external_id": "M-1",
        "property": "P1",
        "unit": "U1",
        "name": "Küche 水表",
        "utility_type": "water",
        "scope": "unit",
        "meter_number": "0042-B",
        "unit_of_measure": "m³",
        "is_active": "no",
        "created_at": "2019-05-04",
    }
    assert await place.put("meters", row) == ["created"]
    (meter,) = await place.list("meters")
    (unit,) = await place.list("units", property_id=elm["entity_id"])
    assert list(meter) == public_fields("Meter")
    assert INSTANT.fullmatch(meter["updated_at"])
    assert meter == {
        "schema_version": 1,
        "entity_type": "utility_meter",
        "entity_id": meter["entity_id"],
        "name": "Küche 水表",
        "utility_type": "water",
        "scope": "unit",
        "meter_number": "0042-B",
        "unit_of_measure": "m³",
        "is_active": False,
        "property": {"id": elm["entity_id"], "name": "Elm Court", "external_id": "P1"},
        "unit": {"id": unit["entity_id"], "name": "Unit 1", "external_id": "U1"},
        "created_at": "2019-05-04T00:00:00.000000Z",
        "updated_at": meter["updated_at"],
        "external_id": "M-1",
        "source": "import",
        "url": f"https://app.test/meters/{meter['entity_id']}",
    }
    response = await place.catalog("GetMeter", pb.GetMeterRequest(meter_id=meter["entity_id"]), place.caller)
    assert json.loads(response.document.json) == meter
    assert (response.document.entity_id, response.document.version) == (meter["entity_id"], 1)


async def test_a_bare_meter_is_an_active_master_with_nulls(place: Any) -> None:
    await place.put("meters", {name: M[name] for name in ("external_id", "property", "name", "utility_type")})
    (meter,) = await place.list("meters")
    assert list(meter) == public_fields("Meter")
    assert {key for key, value in meter.items() if value is None} == {"meter_number", "unit_of_measure", "unit"}
    assert (meter["scope"], meter["is_active"]) == ("master", True)


async def test_a_reading_has_every_key_in_order(place: Any, main: Any) -> None:
    row = R | {"unit_of_measure": "MWh", "cost": "17.35", "is_estimated": "yes", "created_at": "2026-02-03T04:05:06Z"}
    assert await place.put("readings", row) == ["created"]
    (reading,) = await place.list("readings", meter_id=main["entity_id"])
    assert list(reading) == public_fields("Reading")
    assert reading == {
        "schema_version": 1,
        "entity_type": "utility_reading",
        "entity_id": reading["entity_id"],
        "meter_id": main["entity_id"],
        "period_start": "2026-01-01T00:00:00.000000Z",
        "period_end": "2026-02-01T00:00:00.000000Z",
        "consumption": 120.5,
        "unit_of_measure": "MWh",
        "cost": 17.35,
        "is_estimated": True,
        "created_at": "2026-02-03T04:05:06.000000Z",
        "external_id": "R1",
        "source": "import",
    }


async def test_a_bare_reading_counts_in_the_meters_unit_of_measure(place: Any, main: Any) -> None:
    await place.put("readings", R)
    (reading,) = await place.list("readings", meter_id=main["entity_id"])
    assert list(reading) == public_fields("Reading")
    assert (reading["unit_of_measure"], reading["cost"], reading["is_estimated"]) == ("kWh", None, False)
    # Later readings are in the new unit; earlier readings keep theirs.
    assert await place.put("meters", M | {"unit_of_measure": "MWh"}) == ["changed"]
    assert await place.put("readings", R, R | {"external_id": "R2"}) == ["unchanged", "created"]
    readings = await place.list("readings", meter_id=main["entity_id"])
    assert [reading["unit_of_measure"] for reading in readings] == ["kWh", "MWh"]


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    digits=st.integers(-(10**15) + 1, 10**15 - 1),
    places=st.integers(0, 12),
    as_text=st.booleans(),
)
async def test_a_number_of_up_to_fifteen_digits_comes_back_as_it_was_sent(
    place: Any, main: Any, digits: int, places: int, as_text: bool
) -> None:
    sent = f"{digits}e-{places}"
    value: Any = sent if as_text else json.loads(sent)
    row = R | {"consumption": value, "cost": value}
    assert await place.put("readings", row) in (["created"], ["changed"], ["unchanged"])
    (reading,) = await place.list("readings", meter_id=main["entity_id"])
    assert reading["consumption"] == reading["cost"] == float(sent)
    assert f"{reading['consumption']:.{places}f}" == f"{float(sent):.{places}f}"


# Lists


async def test_meters_are_filtered_by_every_combination_and_inactive_ones_are_there(place: Any, elm: Any) -> None:
    rows = [
        M,
        M | {"external_id": "M2", "unit": "U1", "is_active": "false"},
        M | {"external_id": "M3", "property": "P2", "scope": "common_area"},
        M | {"external_id": "M4", "property": "P2", "unit": "V1"},
    ]
    assert await place.put("meters", *rows) == ["created"] * 4
    units = await place.by_external_id("units")
    of_elm, of_unit = {"property_id": elm["entity_id"]}, {"unit_id": units["U1"]["entity_id"]}

    async def names(**filters: Any) -> list[str]:
        return [meter["external_id"] for meter in await place.list("meters", **filters)]

    assert await names() == ["M1", "M2", "M3", "M4"]
    assert await names(**of_elm) == ["M1", "M2"]
    assert await names(**of_unit) == ["M2"]
    assert await names(**of_elm, **of_unit) == ["M2"]
    assert await names(property_id=elm["entity_id"], unit_id=units["V1"]["entity_id"]) == []
    assert await names(unit_id=0) == await names(property_id=2**63 - 1) == []


async def test_updated_since_is_inclusive(place: Any, main: Any) -> None:
    request = pb.ListMetersRequest(limit=200)
    instant = datetime.datetime.fromisoformat(main["updated_at"])
    request.updated_since.FromDatetime(instant)
    page = (await place.catalog("ListMeters", request, place.caller)).page
    assert [meter["external_id"] for meter in json.loads(page.data)] == ["M1"]
    request.updated_since.FromDatetime(instant + datetime.timedelta(microseconds=1))
    assert (await place.catalog("ListMeters", request, place.caller)).page.data == b"[]"


async def test_readings_are_walked_by_id_within_their_meter(place: Any, main: Any) -> None:
    await place.put("meters", M | {"external_id": "M2"})
    rows = [R | {"external_id": f"{meter}{n}", "meter": meter} for n in range(7) for meter in ("M1", "M2")]
    assert await place.put("readings", *rows) == ["created"] * 14
    walked, after = [], 0
    while True:
        page = await place.page("readings", after, 3, meter_id=main["entity_id"])
        walked += [reading["external_id"] for reading in json.loads(page.data)]
        if not page.HasField("next_after_id"):
            break
        after = page.next_after_id
    assert walked == [f"M1{n}" for n in range(7)]
    whole = await place.page("readings", 0, 7, meter_id=main["entity_id"])
    assert not whole.HasField("next_after_id")


async def test_the_readings_of_all_meters_are_walked_by_meter_and_id(place: Any, other: Any, main: Any) -> None:
    await place.put("meters", M | {"external_id": "M2"}, M | {"external_id": "M3"})
    rows = [R | {"external_id": f"{meter}{n}", "meter": meter} for n in range(7) for meter in ("M3", "M1")]
    assert await place.put("readings", *rows) == ["created"] * 14
    of_each = {record["external_id"]: record["entity_id"] for record in await place.list("meters")}
    expected = [reading for meter in ("M1", "M3") for reading in await place.list("readings", meter_id=of_each[meter])]
    for limit in (1, 3, 7, 14, 1000):
        walked: list[Any] = []
        request = pb.ListReadingsOfAllMetersRequest(limit=limit)
        while True:
            response = await place.catalog("ListReadingsOfAllMeters", request, place.caller)
            walked += json.loads(response.page.data)
            if not response.page.HasField("next_after_id"):
                break
            request.after_meter_id, request.after_id = response.next_after_meter_id, response.page.next_after_id
        assert walked == expected
    nothing = await other.catalog("ListReadingsOfAllMeters", pb.ListReadingsOfAllMetersRequest(limit=9), other.caller)
    assert nothing.page.data == b"[]"


async def test_a_meter_without_readings_has_an_empty_list(place: Any, main: Any) -> None:
    page = await place.page("readings", meter_id=main["entity_id"])
    assert page.data == b"[]" and not page.HasField("next_after_id")
    await place.put("readings", R)
    page = await place.page("readings", 2**62, meter_id=main["entity_id"])
    assert page.data == b"[]" and not page.HasField("next_after_id")


async def test_no_page_of_readings_is_longer_than_200(place: Any, main: Any) -> None:
    await place.put("readings", *(R | {"external_id": f"R{n}"} for n in range(201)))
    page = await place.page("readings", 0, 1000, meter_id=main["entity_id"])
    assert len(json.loads(page.data)) == 200 and page.HasField("next_after_id")


async def test_another_companys_meter_is_not_found_and_shows_nothing(place: Any, other: Any, main: Any) -> None:
    await place.put("readings", R)
    assert await other.list("meters") == []
    assert await other.list("meters", property_id=main["property"]["id"]) == []
    for rpc, message in (("GetMeter", pb.GetMeterRequest), ("ListReadings", pb.ListReadingsRequest)):
        refused = []
        for meter_id in (main["entity_id"], 2**62, 0):
            with pytest.raises(Refusal) as error:
                await other.catalog(rpc, message(meter_id=meter_id), other.caller)
            refused.append(vars(error.value))
        assert refused[0] == refused[1] == refused[2]
        assert (refused[0]["status"], refused[0]["code"]) == (404, "not_found")
    assert await other.put("readings", R) == ["rejected meter"]


async def test_a_page_of_readings_reads_no_row_of_another_meter(crowded: Database) -> None:
    company_id = 1
    async with crowded.connection() as connection:
        raw = connection.raw
        property_id = await raw.fetchval(
            "INSERT INTO property (company_id, name, address, created_at, source)"
            " VALUES ($1, 'P', 'A', now(), 'import') RETURNING id",
            company_id,
        )
        await raw.execute(
            "INSERT INTO meter (company_id, property_id, name, utility_type, scope, is_active, created_at, updated_at,"
            " source) SELECT $1, $2, 'M', 'gas', 'master', true, now(), now(), 'import' FROM generate_series(1, 20)",
            company_id,
            property_id,
        )
        await raw.execute(
            "INSERT INTO reading (company_id, meter_id, period_start, period_end, consumption, is_estimated,"
            " created_at, source) SELECT $1, meter.id, now(), now(), 1, false, now(), 'import'"
            " FROM generate_series(1, 1000), meter WHERE meter.company_id = $1",
            company_id,
        )
        await raw.execute("ANALYZE")
        meter_id = await raw.fetchval("SELECT max(id) FROM meter WHERE company_id = $1", company_id)
        for after in ("min", "max"):
            # A page at the start of the list, and one near its end.
            after_id = await raw.fetchval(f"SELECT {after}(id) - 100 FROM reading WHERE meter_id = $1", meter_id)
            values = {"company_id": company_id, "meter_id": meter_id, "after_id": after_id, "rows": 51}
            nodes = await statement_plan(crowded, queries.READINGS_PAGE, **values)
            (scan,) = (node for node in nodes if node.get("Relation Name") == "reading")
            assert scan["Index Name"] == "reading_pkey"
            assert max(map(rows_looked_at, nodes)) <= 51, json.dumps(nodes[0], indent=1)
            values = {"company_id": company_id, "after_meter_id": meter_id - 1, "after_id": after_id, "rows": 51}
            nodes = await statement_plan(crowded, queries.ALL_READINGS_PAGE, **values)
            (scan,) = (node for node in nodes if node.get("Relation Name") == "reading")
            assert scan["Index Name"] == "reading_pkey"
            assert max(map(rows_looked_at, nodes)) <= 51, json.dumps(nodes[0], indent=1)


# Imports


@pytest.mark.parametrize(("kind", "row", "change"), [("meters", M, {"name": "B"}), ("readings", R, {"cost": "1"})])
async def test_a_row_is_created_then_unchanged_then_changed(
    place: Any, main: Any, database: Database, kind: str, row: dict[str, str], change: dict[str, str]
) -> None:
    from sqlalchemy import select

    row = row | {"external_id": "X"}

    async def stored() -> list[dict[str, Any]]:
        table = m.meter if kind == "meters" else m.reading
        written = select(*written_columns(table)).order_by(table.c.id)  # an update moves a row
        rows = await database.rows(Statement(written))
        return [dict(row) for row in rows if row["company_id"] == place.id]

    assert await place.put(kind, row, dry_run=True) == ["created"]
    assert len(await stored()) == (1 if kind == "meters" else 0)
    assert await place.put(kind, row) == ["created"]
    before = await stored()
    assert await place.put(kind, row) == ["unchanged"]
    assert await stored() == before
    assert await place.put(kind, row | change, dry_run=True) == ["changed"]
    assert await stored() == before
    assert await place.put(kind, row | change) == ["changed"]
    differing = {
        name for was, now in zip(before, await stored(), strict=True) for name in was if was[name] != now[name]
    }
    assert differing == {*change, "changed_xid", *({"version", "updated_at"} if kind == "meters" else ())}


BAD: list[tuple[str, dict[str, Any], str]] = [
    *(("meters", {field: value}, field) for field in M if field != "unit_of_measure" for value in (None, "", "  ")),
    *(("readings", {field: value}, field) for field in R for value in (None, "")),
    ("meters", {"property": "nobody"}, "property"),
    ("meters", {"unit": "nobody"}, "unit"),
    ("meters", {"unit": "V1"}, "unit"),
    ("meters", {"utility_type": "Electric"}, "utility_type"),
    ("meters", {"scope": "unit"}, "unit"),
    ("meters", {"scope": "Master"}, "scope"),
    ("meters", {"unit": "U1", "scope": "master"}, "scope"),
    ("meters", {"unit": "U1", "scope": "common_area"}, "scope"),
    ("meters", {"unit_of_measure": "x" * 51}, "unit_of_measure"),
    ("meters", {"meter_number": "x" * 201}, "meter_number"),
    ("meters", {"is_active": "perhaps"}, "is_active"),
    ("meters", {"created_at": "soon"}, "created_at"),
    ("meters", {"updated_at": "2026-01-01"}, "updated_at"),
    ("readings", {"meter": "nobody"}, "meter"),
    ("readings", {"period_start": "2026-01-01T00:00:00"}, "period_start"),
    ("readings", {"period_start": "2026-01-01 00:00:00Z"}, "period_start"),
    ("readings", {"period_end": "2025-12-31"}, "period_end"),
    ("readings", {"period_end": "2026-02-30"}, "period_end"),
    ("readings", {"consumption": "12 kWh"}, "consumption"),
    ("readings", {"consumption": "nan"}, "consumption"),
    ("readings", {"consumption": "inf"}, "consumption"),
    ("readings", {"consumption": "1e999"}, "consumption"),
    ("readings", {"consumption": "1e16"}, "consumption"),
    ("readings", {"consumption": True}, "consumption"),
    ("readings", {"consumption": [1]}, "consumption"),
    ("readings", {"cost": "-1e16"}, "cost"),
    ("readings", {"is_estimated": "maybe"}, "is_estimated"),
    ("readings", {"unit": "U1"}, "unit"),
    ("readings", {"entity_id": "1"}, "entity_id"),
    ("readings", {"external_id": "x" * 201}, "external_id"),
]


@pytest.mark.parametrize(("kind", "fault", "field"), BAD)
async def test_a_bad_row_is_rejected_by_its_field_and_the_others_are_kept(
    place: Any, main: Any, kind: str, fault: dict[str, Any], field: str
) -> None:
    row = {"meters": M, "readings": R}[kind]
    good = row | {"external_id": "good"}
    assert await place.put(kind, row | {"external_id": "bad"} | fault, good) == [f"rejected {field}", "created"]


async def test_the_scope_follows_the_unit(place: Any, main: Any) -> None:
    async def scope(row: dict[str, Any]) -> tuple[str, str | None]:
        assert await place.put("meters", row) in (["changed"], ["unchanged"])
        (meter,) = await place.list("meters")
        return meter["scope"], meter["unit"] and meter["unit"]["external_id"]

    assert await scope(M | {"unit": "U1"}) == ("unit", "U1")
    assert await scope(M) == ("unit", "U1")
    assert await scope(M | {"scope": ""}) == ("unit", "U1")
    assert await place.put("meters", M | {"scope": "master"}) == ["rejected scope"]
    assert await place.put("meters", M | {"property": "P2"}) == ["rejected unit"]
    assert await scope(M | {"property": "P2", "unit": "V1"}) == ("unit", "V1")
    assert await scope(M | {"unit": ""}) == ("master", None)
    assert await scope(M | {"scope": "common_area"}) == ("common_area", None)
    assert await scope(M) == ("common_area", None)
    assert await scope(M | {"scope": ""}) == ("master", None)


async def test_what_the_file_lacks_stays_and_what_it_leaves_blank_is_cleared(place: Any, main: Any) -> None:
    meter = M | {"meter_number": "7", "is_active": "no"}
    reading = R | {"unit_of_measure": "MWh", "cost": "3", "is_estimated": "true", "created_at": "2026-02-02"}
    await place.put("meters", meter)
    await place.put("readings", reading)
    assert await place.put("meters", {name: M[name] for name in M if name != "unit_of_measure"}) == ["unchanged"]
    assert await place.put("readings", R) == ["unchanged"]
    blank = {"meter_number": "", "is_active": "", "unit_of_measure": "", "created_at": ""}
    assert await place.put("meters", M | blank) == ["changed"]
    (record,) = await place.list("meters")
    assert (record["meter_number"], record["is_active"], record["unit_of_measure"]) == (None, True, None)
    assert record["created_at"] == main["created_at"]
    await place.put("meters", M)
    assert await place.put("readings", R | {"unit_of_measure": "", "cost": "", "is_estimated": ""}) == ["changed"]
    (record,) = await place.list("readings", meter_id=main["entity_id"])
    assert (record["unit_of_measure"], record["cost"], record["is_estimated"]) == ("kWh", None, False)
    assert record["created_at"] == "2026-02-02T00:00:00.000000Z"


async def test_a_reading_stays_with_its_meter(place: Any, main: Any) -> None:
    await place.put("meters", M | {"external_id": "M2"})
    await place.put("readings", R)
    assert await place.put("readings", R | {"meter": "M2"}) == ["rejected meter"]


async def test_a_period_of_dates_ends_on_the_day_that_it_starts_at_the_earliest(place: Any, main: Any) -> None:
    row = R | {"period_start": "2026-03-01", "period_end": "2026-03-01"}
    assert await place.put("readings", row) == ["created"]


def test_the_limits_of_the_rules_are_those_of_a_double() -> None:
    assert float(rules.AMOUNT_MAX - 1) == rules.AMOUNT_MAX - 1
