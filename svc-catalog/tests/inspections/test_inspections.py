"""Inspections (spec 2.9, 4.8): their shape, every enum and every null."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

import pytest

from chassis.db.database import Database
from chassis.refusals import Refusal
from makeready.catalog.v1 import inspections_pb2 as pb
from makeready.common.v1 import options_pb2
from makeready.events.v1.events_pb2 import References, StaffReference
from svc_catalog import consumers
from svc_catalog.inspections import rules
from testkit.event_contract import public_fields
from testkit.patience import eventually

INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
I = {"external_id": "I1", "property": "P1"}  # noqa: E741 - beside P, U and A of the other kinds
_staff_ids = itertools.count(9_000_000_000)


async def hire(database: Database, company_id: int, external_id: str, name: str) -> int:
    """Inserts a member of staff into the replica; returns the id."""
    member = StaffReference(id=next(_staff_ids), version=1, company_id=company_id, name=name, external_id=external_id)
    async with database.transaction() as connection:
        await consumers.put_references(connection, [References(staff=[member])])
    return member.id


async def fetch(company: Any, inspection_id: int) -> Any:
    request = pb.GetInspectionRequest(inspection_id=inspection_id)
    return (await company.catalog("GetInspection", request, company.caller)).document


# Shape


async def test_an_inspection_has_every_key_in_the_order_of_the_contract(
    company: Any, elm: Any, database: Database
) -> None:
    await company.put("units", {"external_id": "U1", "property": "P1", "name": "Unit 1"})
    (unit,) = await company.list("units")
    ada = await hire(database, company.id, "S1", "Ada Ôberg")
    row = {
        "external_id": "I-1",
        "property": "P1",
        "unit": "U1",
        "title": "Sprinklers 漏水 🚿",
        "inspection_type": "Fire Alarm",
        "inspection_number": "14",
        "status": "Completed",
        "result": "failed",
        "scheduled_date": "2026-02-27",
        "completed_date": "2026-02-28",
        "assignee": "S1",
        "is_compliance_inspection": "yes",
        "compliance_type": "NFPA 25",
        "kind": "acceptance_walk",
        "created_at": "2026-02-01T10:00:00+02:00",
    }
    assert await company.put("inspections", row) == ["created"]
    (inspection,) = await company.list("inspections")
    assert list(inspection) == public_fields("Inspection")
    assert inspection == {
        "schema_version": 1,
        "entity_type": "inspection",
        "entity_id": inspection["entity_id"],
        "inspection_number": 14,
        "title": "Sprinklers 漏水 🚿",
        "inspection_type": "Fire Alarm",
        "status": "Completed",
        "result": "failed",
        "property": {"id": elm["entity_id"], "name": "Elm Court", "external_id": "P1"},
        "unit": {"id": unit["entity_id"], "name": "Unit 1", "external_id": "U1"},
        "scheduled_date": "2026-02-27",
        "completed_date": "2026-02-28",
        "assignee": {"id": ada, "name": "Ada Ôberg"},
        "is_compliance_inspection": True,
        "compliance_type": "NFPA 25",
        "created_at": "2026-02-01T08:00:00.000000Z",
        "external_id": "I-1",
        "source": "import",
        "url": f"https://app.test/inspections/{inspection['entity_id']}",
    }
    assert list(inspection["unit"]) == ["id", "name", "external_id"] and list(inspection["assignee"]) == ["id", "name"]


async def test_a_bare_inspection_has_nulls_and_defaults(company: Any, elm: Any) -> None:
    await company.put("inspections", I)
    (inspection,) = await company.list("inspections")
    assert list(inspection) == public_fields("Inspection")
    nulls = ["title", "inspection_type", "result", "unit", "scheduled_date", "completed_date", "assignee"]
    assert [key for key, value in inspection.items() if value is None] == [*nulls, "compliance_type"]
    assert (inspection["status"], inspection["is_compliance_inspection"]) == ("Scheduled", False)
    assert inspection["inspection_number"] == 1 and INSTANT.fullmatch(inspection["created_at"])


@pytest.mark.parametrize("status", rules.STORED_STATUSES)
async def test_each_status_is_served_and_a_legacy_final_one_as_completed(company: Any, elm: Any, status: str) -> None:
    assert await company.put("inspections", I | {"status": status}) == ["created"]
    (inspection,) = await company.list("inspections")
    assert inspection["status"] == ("Completed" if status == "Finalized" else status)
    # Legacy inspections have no number either.
    assert inspection["inspection_number"] == (None if status == "Finalized" else 1)
    listed = [await company.list("inspections", status=number) for number in (1, 2, 3)]
    assert [page for page in listed if page] == [[inspection]]
    assert rules.INSPECTION_STATUSES[listed.index([inspection])] == inspection["status"]


@pytest.mark.parametrize("result", [*rules.INSPECTION_RESULTS, None])
async def test_each_result_is_served(company: Any, elm: Any, result: str | None) -> None:
    assert await company.put("inspections", I | {"result": result}) == ["created"]
    assert (await company.list("inspections"))[0]["result"] == result


def test_the_lists_of_the_contract_are_those_of_the_rules() -> None:
    values = pb.InspectionStatus.DESCRIPTOR.values[1:]
    labels = tuple(value.GetOptions().Extensions[options_pb2.label] for value in values)
    assert labels == rules.INSPECTION_STATUSES == ("Scheduled", "In Progress", "Completed")
    assert {rules.published_status(status) for status in rules.STORED_STATUSES} == set(rules.INSPECTION_STATUSES)
    assert rules.INSPECTION_RESULTS == ("passed", "failed")


async def test_a_fetch_serves_what_the_list_does_to_the_byte(company: Any, elm: Any) -> None:
    await company.put("inspections", I)
    page = (await company.page("inspections")).data
    (listed,) = json.loads(page)
    fetched = await fetch(company, listed["entity_id"])
    assert b"[" + fetched.json + b"]" == page
    assert (fetched.entity_id, fetched.version) == (listed["entity_id"], 1)


@pytest.mark.parametrize("inspection_id", [0, -1, 2**63 - 1])
async def test_an_unknown_id_is_not_found(company: Any, inspection_id: int) -> None:
    with pytest.raises(Refusal) as refused:
        await fetch(company, inspection_id)
    assert (refused.value.status, refused.value.code) == (404, "not_found")
    assert refused.value.message == "No inspection with that id is visible to this key; check the id and the key."


async def test_the_assignees_new_name_is_served_once_it_has_arrived(company: Any, elm: Any, database: Database) -> None:
    staff_id = await hire(database, company.id, "S1", "Ada")
    await company.put("inspections", I | {"assignee": "S1"})
    renamed = StaffReference(id=staff_id, version=2, company_id=company.id, name="Ada B.", external_id="S1")
    async with database.transaction() as connection:
        await consumers.put_references(connection, [References(staff=[renamed])])

    async def is_served() -> bool:
        return bool((await company.list("inspections"))[0]["assignee"] == {"id": staff_id, "name": "Ada B."})

    await eventually(is_served)  # at once, unless the service was storing the imported record just then
