"""References for other contexts: events of imports, and responses to their requests."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from google.protobuf.json_format import MessageToDict

from chassis.db.database import Database
from chassis.messaging.outbox import Outbox
from chassis.schedule import instants
from makeready.catalog.v1 import places_pb2 as pb
from makeready.events.v1.events_pb2 import Event
from svc_catalog import field_rules, schema
from svc_catalog.places import rules
from testkit.outboxes import OutboxRows

_RECORDED = OutboxRows(schema.outbox, "recorded_at")


async def events(database: Database, company_id: int) -> list[Event]:
    rows = await _RECORDED.containing(database, Event(company_id=company_id))
    recorded = [(row["subject"], Event.FromString(row["message"])) for row in rows]
    theirs = [(subject, event) for subject, event in recorded if event.company_id == company_id]
    assert {subject for subject, _ in theirs} <= {"events.svc-catalog.references"}
    return [event for _, event in theirs]


async def test_each_batch_publishes_its_changed_rows_in_one_event(company: Any, database: Database) -> None:
    rows = [{"external_id": f"P{n}", "name": f"House {n}", "address": "A"} for n in range(3)]
    await company.put("properties", *rows)
    rows[1] |= {"name": "Renamed"}
    await company.put("properties", *rows)
    await company.put("properties", *rows)
    properties = await company.by_external_id("properties")
    first, second = await events(database, company.id)
    references = [
        (row.id, row.version, row.company_id, row.name, row.external_id) for row in first.references.properties
    ]
    assert references == [(properties[f"P{n}"]["entity_id"], 1, company.id, f"House {n}", f"P{n}") for n in range(3)]
    (changed,) = second.references.properties
    assert (changed.id, changed.version, changed.name) == (properties["P1"]["entity_id"], 2, "Renamed")
    assert first.event_id < second.event_id and first.request_id == "req-test"


async def test_units_and_assets_are_published_with_their_property(company: Any, elm: Any, database: Database) -> None:
    unit = {"external_id": "U", "property": "P1", "name": "Unit 1"}
    await company.put("units", unit, unit | {"external_id": "V", "unit_number": "2"})
    asset = {"external_id": "A", "property": "P1", "name": "Lift", "category": "C", "make": "M", "model": "N"}
    await company.put("assets", asset)
    units, assets = await company.by_external_id("units"), await company.by_external_id("assets")
    _, of_units, of_assets = await events(database, company.id)
    bare, numbered = of_units.references.units
    assert (bare.id, bare.property_id, bare.name) == (units["U"]["entity_id"], elm["entity_id"], "Unit 1")
    assert not bare.HasField("unit_number") and numbered.unit_number == "2"
    (reference,) = of_assets.references.assets
    assert MessageToDict(reference, preserving_proto_field_name=True) == {
        "id": str(assets["A"]["entity_id"]),
        "version": "1",
        "company_id": str(company.id),
        "property_id": str(elm["entity_id"]),
        "name": "Lift",
        "external_id": "A",
    }


async def test_a_dry_run_and_rejected_rows_publish_nothing(company: Any, database: Database) -> None:
    row = {"external_id": "P", "name": "N", "address": "A"}
    assert await company.put("properties", row, dry_run=True) == ["created"]
    assert await company.put("properties", {"external_id": "P"}) == ["rejected name"]
    assert await events(database, company.id) == []


async def test_events_reach_nats(company: Any, elm: Any, published: Callable[[], Awaitable[None]]) -> None:
    await published()


def test_the_largest_batch_fits_into_a_message_of_nats() -> None:
    widest = "\U0001f9ff" * field_rules.NAME_POINTS_MAX
    event = Event()
    for number in range(500):
        event.references.units.add(
            id=2**62 + number,
            version=2**62,
            company_id=2**62,
            property_id=2**62,
            name=widest,
            unit_number="\U0001f9ff" * rules.UNIT_NUMBER_POINTS_MAX,
            external_id="\U0001f9ff" * field_rules.EXTERNAL_ID_POINTS_MAX,
        )
    event_of_all = Outbox("svc-catalog", schema.outbox).references(
        event.references, company_id=1, occurred_at=instants.now()
    )
    assert len(event_of_all.message) < 1024 * 1024


async def test_a_context_that_lacks_a_row_is_given_it_with_its_property(company: Any, elm: Any) -> None:
    await company.put("units", {"external_id": "U", "property": "P1", "name": "1", "unit_number": "1A"})
    row = {"external_id": "A", "property": "P1", "name": "Lift", "category": "C", "make": "M", "model": "N"}
    await company.put("assets", row)
    (unit,), (asset,) = await company.list("units"), await company.list("assets")

    async def ask(**fields: Any) -> dict[str, list[Any]]:
        request = pb.BatchGetReferencesRequest(company_id=company.id, **fields)
        references = (await company.catalog("BatchGetReferences", request, company.tickets)).references
        return {field.name: [row.id for row in rows] for field, rows in references.ListFields()}

    whole = {"properties": [elm["entity_id"]]}
    assert await ask(property_external_ids=["P1", "nobody"]) == whole
    assert await ask(unit_ids=[unit["entity_id"], 2**62]) == whole | {"units": [unit["entity_id"]]}
    assert await ask(unit_external_ids=["U"]) == whole | {"units": [unit["entity_id"]]}
    assert await ask(asset_ids=[asset["entity_id"]], asset_external_ids=["A"]) == whole | {
        "assets": [asset["entity_id"]]
    }
    assert await ask(property_external_ids=["U", "A"], unit_external_ids=["P1"]) == {}
    assert await ask() == {}


async def test_an_answer_bears_the_same_version_as_the_event(company: Any, elm: Any, database: Database) -> None:
    await company.put("properties", {"external_id": "P1", "name": "New name", "address": "1 Elm St"})
    request = pb.BatchGetReferencesRequest(company_id=company.id, property_ids=[elm["entity_id"]])
    answered = (await company.catalog("BatchGetReferences", request, company.tickets)).references
    assert (await events(database, company.id))[-1].references == answered
    assert json.loads((await company.page("properties")).data)[0]["name"] == "New name"
