"""Undoing imports: what they created goes, what they changed goes back, and what somebody uses or changed stays."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sqlalchemy import func, select

from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.refusals import Refusal
from makeready.catalog.v1 import meters_pb2, places_pb2
from makeready.common.v1 import import_undo_pb2 as pb
from svc_catalog import schema

PROPERTY = {"name": "Elm Court", "address": "1 Elm St"}
METER = {"external_id": "M1", "property": "P1", "name": "Gas", "utility_type": "gas"}
READING = {"meter": "M1", "period_start": "2026-01-01", "period_end": "2026-02-01", "consumption": "5"}


def home(external_id: str, **more: Any) -> dict[str, Any]:
    return {"external_id": external_id, **PROPERTY, **more}


async def undo(company: Any, kind: str, key: str = "one", **more: Any) -> pb.UndoImportResponse:
    """Undoes an import of one kind as the runner does; other contexts release all records."""
    total, place = pb.UndoImportResponse(), None
    while True:
        released = (await step(company, kind, key, place, reserve=True, **more)).ids
        response = await step(company, kind, key, place, released=released, **more)
        total.withdrawn += response.withdrawn
        total.restored += response.restored
        total.kept.extend(response.kept)
        total.ids.extend(response.ids)
        if not response.HasField("next"):
            return total
        place = response.next


async def step(company: Any, kind: str, key: str, place: Any = None, **more: Any) -> pb.UndoImportResponse:
    request = pb.UndoImportRequest(import_key=key, kind=kind, place=place, **more)
    response: pb.UndoImportResponse = await company.catalog("UndoImport", request, company.operator)
    return response


def kept(response: pb.UndoImportResponse) -> dict[str, str]:
    return {record.external_id: record.used_by for record in response.kept}


async def feed(company: Any, kind: str, position: bytes = b"") -> tuple[dict[int, Any], bytes]:
    """What has changed behind the position, by id; None for what is gone."""
    changes: dict[int, Any] = {}
    while True:
        page = await company.changes(kind, position, limit=2)
        for document in map(json.loads, page.documents):
            assert document["gone"] == (document["record"] is None)
            changes[document["entity_id"]] = document["record"]
        position = page.position
        if not page.more:
            return changes, position


async def test_what_an_import_created_is_withdrawn_and_comes_back_with_its_id(company: Any) -> None:
    await company.put("properties", home("P0"))
    await company.put("properties", home("P1"), home("P2"), home("P3"), import_key="one")
    before = await company.by_external_id("properties")
    _, position = await feed(company, "properties")
    answer = await undo(company, "properties")
    assert (answer.withdrawn, answer.restored, list(answer.kept)) == (3, 0, [])
    assert list(await company.by_external_id("properties")) == ["P0"]
    gone = [before[name]["entity_id"] for name in ("P1", "P2", "P3")]
    with pytest.raises(Refusal) as refused:
        await company.catalog("GetProperty", places_pb2.GetPropertyRequest(property_id=gone[0]), company.caller)
    assert refused.value.status == 404
    changes, position = await feed(company, "properties", position)
    assert changes == dict.fromkeys(gone)
    # Whoever begins now does not hear of them, and whoever asks again neither.
    assert (await feed(company, "properties", position))[0] == {}
    assert [record and record["external_id"] for record in (await feed(company, "properties"))[0].values()] == ["P0"]
    assert (await undo(company, "properties")).withdrawn == 0
    assert await company.put("properties", home("P2", name="Oak")) == ["created"]
    again = (await company.by_external_id("properties"))["P2"]
    assert (again["entity_id"], again["name"]) == (before["P2"]["entity_id"], "Oak")
    changes, _ = await feed(company, "properties", position)
    assert changes == {again["entity_id"]: again}


async def test_what_was_changed_since_or_is_used_stays(company: Any) -> None:
    await company.put("properties", *(home(f"P{n}") for n in range(1, 5)), import_key="one")
    await company.put("units", {"external_id": "U", "property": "P1", "name": "1"})
    await company.put("meters", METER | {"property": "P2"})
    await company.put("properties", home("P3", name="Oak"))
    expected = {"P1": "unit", "P2": "meter", "P3": ""}
    dry = await undo(company, "properties", dry_run=True)
    assert (dry.withdrawn, kept(dry)) == (1, expected)
    assert len(await company.by_external_id("properties")) == 4
    answer = await undo(company, "properties")
    assert (answer.withdrawn, kept(answer)) == (1, expected)
    assert list(await company.by_external_id("properties")) == ["P1", "P2", "P3"]
    entries = await company.audit("property")
    (entry,) = [entry for entry in entries if entry.action == "import.undone"]
    assert len(json.loads(entry.after)["withdrawn"]) == 1


async def test_what_an_import_changed_goes_back(company: Any) -> None:
    await company.put("properties", home("P1", city="Boston", year_built="1990"), home("P2"))
    before = await company.by_external_id("properties")
    _, position = await feed(company, "properties")
    rows = home("P1", name="Oak", city="", latitude="42.5"), home("P2", name="Ash")
    assert await company.put("properties", *rows, import_key="one") == ["changed", "changed"]
    await company.put("properties", home("P2", name="Fir"))
    answer = await undo(company, "properties")
    assert (answer.withdrawn, answer.restored, kept(answer)) == (0, 1, {"P2": ""})
    after = await company.by_external_id("properties")
    assert after["P1"] == before["P1"] and after["P2"]["name"] == "Fir"
    changes, _ = await feed(company, "properties", position)
    assert changes == {record["entity_id"]: record for record in after.values()}


async def test_an_import_of_several_kinds_is_undone_from_the_last_kind_to_the_first(company: Any) -> None:
    await company.put("properties", home("P1"), import_key="one")
    units = [{"external_id": f"U{n}", "property": "P1", "name": str(n), "floorplan": "A", "floor": "2"} for n in (1, 2)]
    await company.put("units", *units, import_key="one")
    await company.put("meters", METER, import_key="one")
    await company.put("readings", READING | {"external_id": "R1"}, import_key="one")
    # A dry run counts the records of the same import as undone.
    assert (await undo(company, "properties", dry_run=True)).withdrawn == 1
    for kind in ("readings", "meters", "units", "properties"):
        answer = await undo(company, kind)
        assert answer.withdrawn == (2 if kind == "units" else 1) and not answer.kept
        assert await company.list(kind) == [] if kind != "readings" else True
    assert await company.put("properties", home("P1")) == ["created"]
    assert await company.put("units", *units) == ["created", "created"]
    (plan,) = {unit["floorplan"]["name"] for unit in await company.list("units")}
    assert plan == "A"


async def test_readings_that_were_corrected_since_stay(company: Any) -> None:
    await company.put("properties", home("P1"))
    await company.put("meters", METER)
    first = [READING | {"external_id": f"R{n}", "period_start": f"2026-01-0{n}"} for n in (1, 2)]
    await company.put("readings", *first, import_key="zero")
    rows = [READING | {"external_id": f"R{n}", "period_start": f"2026-01-0{n}", "cost": "3"} for n in (2, 3, 4)]
    assert await company.put("readings", *rows, import_key="one") == ["changed", "created", "created"]
    assert await company.put("readings", rows[2] | {"cost": "4"}) == ["changed"]
    answer = await undo(company, "readings")
    assert (answer.withdrawn, answer.restored, len(answer.kept)) == (1, 1, 1)
    (meter,) = await company.list("meters")
    request = meters_pb2.ListReadingsRequest(meter_id=meter["entity_id"], limit=50)
    page = (await company.catalog("ListReadings", request, company.caller)).page
    assert {reading["external_id"]: reading["cost"] for reading in json.loads(page.data)} == {
        "R1": None, "R2": None, "R4": 4,
    }  # fmt: skip


async def test_measures_of_a_floorplan_and_the_units_of_a_notice_go_back(company: Any) -> None:
    await company.put("properties", home("P1"))
    unit = {"property": "P1", "floorplan": "A"}
    await company.put(
        "units",
        {"external_id": "U1", "name": "1", "bedrooms": "1", **unit},
        {"external_id": "U2", "name": "2", "property": "P1"},
    )
    notice = {"external_id": "N", "property": "P1", "subject": "Water", "body": "Off", "when": "Monday", "unit": "U1"}
    await company.put("notices", notice)
    await company.put("units", {"external_id": "U3", "name": "3", "bedrooms": "2", **unit}, import_key="one")
    await company.put("notices", notice | {"unit": "U2"}, import_key="one")
    assert (await undo(company, "units")).withdrawn == 1
    assert (await company.by_external_id("units"))["U1"]["floorplan"]["bedrooms"] == 1
    assert (await undo(company, "notices")).restored == 1
    assert (await undo(company, "notices")).restored == 0


async def test_a_step_is_done_once_whoever_goes_on(company: Any) -> None:
    await company.put("properties", *(home(f"P{n}") for n in range(3)), import_key="one")
    released = (await step(company, "properties", "one", reserve=True, idempotency_key="k")).ids
    # While it is reserved, no context gets it.
    request = places_pb2.BatchGetReferencesRequest(company_id=company.id, property_ids=released)
    answer = await company.catalog("BatchGetReferences", request, company.tickets)
    assert not answer.references.properties
    first = await step(company, "properties", "one", released=released[1:], idempotency_key="k")
    assert first.withdrawn == 2 and [record.used_by for record in first.kept] == ["copy"]
    answer = await company.catalog("BatchGetReferences", request, company.tickets)
    assert [row.id for row in answer.references.properties] == [released[0]]
    assert list((await step(company, "properties", "one", reserve=True, idempotency_key="k")).ids) == []
    assert await step(company, "properties", "one", idempotency_key="k") == first
    assert (await undo(company, "properties")).withdrawn == 1


async def test_nothing_is_left_of_what_is_undone_and_other_companies_see_nothing(
    company: Any, database: Database, catalog: Any
) -> None:
    other = type(company)(catalog, company.id + 500_000)
    await company.put("properties", home("P1"), import_key="one")
    assert (await undo(other, "properties")).withdrawn == 0
    with pytest.raises(Refusal):
        await undo(company, "tickets")
    assert (await undo(company, "properties")).withdrawn == 1
    batch = schema.import_batch
    batches = Statement(select(func.count()).select_from(batch).where(batch.c.company_id == company.id))
    assert await database.value(batches) == 0
