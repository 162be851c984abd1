"""Vendors (spec 2.8, 4.7): their shape, their references for other contexts, and their pages."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from sqlalchemy import select

from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.refusals import Refusal
from makeready.catalog.v1 import places_pb2, vendors_pb2
from makeready.events.v1.events_pb2 import Event
from svc_catalog import schema
from svc_catalog.vendors import queries, rules
from svc_catalog.vendors.tables import vendor
from testkit.event_contract import public_fields
from testkit.plans import page_plan, rows_looked_at

INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
V = {"external_id": "V1", "name": "Ace Plumbing"}
FULL = {
    "external_id": "V-1",
    "name": "Ace 漏水 🚿",
    "legal_name": "Ace Plumbing & Heating Inc.",
    "website": "https://ace.example",
    "avg_rating": "4.5",
    "rating_count": "12",
    "is_active": "no",
    "property_visibility": "selected_properties",
    "onboarded_at": "2019-05-04",
    "retired_at": "2024-01-31T10:00:00+02:00",
    "last_compliance_state": "expiring",
}


async def stored(database: Database, company_id: int) -> dict[str, Any]:
    """The company's stored vendors by external_id."""
    rows = await database.rows(Statement(select(vendor)))
    return {row["external_id"]: dict(row) for row in rows if row["company_id"] == company_id}


# Shape


async def test_a_vendor_has_every_key_in_the_order_of_the_contract(company: Any) -> None:
    assert await company.put("vendors", FULL) == ["created"]
    (vendor,) = await company.list("vendors")
    assert list(vendor) == public_fields("Vendor")
    assert vendor == {
        "schema_version": 1,
        "entity_type": "vendor",
        "entity_id": vendor["entity_id"],
        "name": "Ace 漏水 🚿",
        "business": {
            "id": vendor["business"]["id"],
            "legal_name": "Ace Plumbing & Heating Inc.",
            "website": "https://ace.example",
        },
        "avg_rating": 4.5,
        "rating_count": 12,
        "is_active": False,
        "property_visibility": "selected_properties",
        "onboarded_at": "2019-05-04T00:00:00.000000Z",
        "retired_at": "2024-01-31T08:00:00.000000Z",
        "url": f"https://app.test/vendors/{vendor['entity_id']}",
        "last_compliance_state": "expiring",
    }
    assert list(vendor["business"]) == ["id", "legal_name", "website"]


async def test_a_bare_vendor_has_nulls_and_defaults_and_an_unknown_compliance(company: Any, database: Database) -> None:
    await company.put("vendors", V)
    (vendor,) = await company.list("vendors")
    assert list(vendor) == public_fields("Vendor")
    assert {key for key, value in vendor.items() if value is None} == {"avg_rating", "retired_at"}
    assert vendor["business"] | {"id": 0} == {"id": 0, "legal_name": "Ace Plumbing", "website": None}
    assert (vendor["rating_count"], vendor["is_active"]) == (0, True)
    assert (vendor["property_visibility"], vendor["last_compliance_state"]) == ("all_properties", "unknown")
    assert INSTANT.fullmatch(vendor["onboarded_at"]) and vendor["onboarded_at"] > "2026"
    # Without a snapshot, the column stays null.
    assert (await stored(database, company.id))["V1"]["last_compliance_state"] is None


@pytest.mark.parametrize("state", rules.COMPLIANCE_STATES)
async def test_each_compliance_state_is_served_as_it_was_stored(company: Any, state: str) -> None:
    assert await company.put("vendors", V | {"last_compliance_state": state}) == ["created"]
    assert (await company.list("vendors"))[0]["last_compliance_state"] == state


@pytest.mark.parametrize("visibility", rules.PROPERTY_VISIBILITIES)
async def test_each_property_visibility_is_served(company: Any, visibility: str) -> None:
    assert await company.put("vendors", V | {"property_visibility": visibility}) == ["created"]
    assert (await company.list("vendors"))[0]["property_visibility"] == visibility


def test_the_lists_of_the_contract_are_those_of_the_rules() -> None:
    assert rules.COMPLIANCE_STATES == ("compliant", "expiring", "noncompliant", "missing", "unknown")
    assert rules.published_compliance(None) == "unknown"
    for state in rules.COMPLIANCE_STATES:
        assert rules.published_compliance(state) == state


async def test_an_inactive_vendor_lists_and_fetches_to_the_same_bytes(company: Any) -> None:
    await company.put("vendors", V | {"is_active": "false"})
    page = (await company.page("vendors")).data
    (listed,) = json.loads(page)
    request = vendors_pb2.GetVendorRequest(vendor_id=listed["entity_id"])
    fetched = (await company.catalog("GetVendor", request, company.caller)).document
    assert not listed["is_active"] and b"[" + fetched.json + b"]" == page
    assert (fetched.entity_id, fetched.version) == (listed["entity_id"], 1)


@pytest.mark.parametrize("vendor_id", [0, -1, 2**63 - 1])
async def test_an_unknown_id_is_not_found(company: Any, vendor_id: int) -> None:
    with pytest.raises(Refusal) as refused:
        await company.catalog("GetVendor", vendors_pb2.GetVendorRequest(vendor_id=vendor_id), company.caller)
    assert (refused.value.status, refused.value.code) == (404, "not_found")
    assert refused.value.message == "No vendor with that id is visible to this key; check the id and the key."


# References


async def test_events_and_answers_have_the_same_vendor(company: Any, other: Any, database: Database) -> None:
    await company.put("vendors", V | {"legal_name": "Ace Inc."}, {"external_id": "V2", "name": "Bee"})
    await company.put("vendors", V | {"name": "Renamed"})
    vendors = await company.list("vendors")
    rows = await database.rows(Statement(select(schema.outbox.c.message).order_by(schema.outbox.c.recorded_at)))
    events = [event for row in rows if (event := Event.FromString(row["message"])).company_id == company.id]
    references = [
        [MessageToDict(reference, preserving_proto_field_name=True) for reference in e.references.vendors]
        for e in events
    ]
    first, second = ({"id": str(vendor["entity_id"]), "company_id": str(company.id)} for vendor in vendors)
    assert references == [
        [
            first | {"version": "1", "name": "Ace Plumbing", "external_id": "V1"},
            second | {"version": "1", "name": "Bee", "external_id": "V2"},
        ],
        [first | {"version": "2", "name": "Renamed", "external_id": "V1"}],
    ]

    async def ask(who: Any, **fields: Any) -> list[Any]:
        request = places_pb2.BatchGetReferencesRequest(company_id=who.id, **fields)
        answered = (await company.catalog("BatchGetReferences", request, who.tickets)).references
        return sorted(answered.vendors, key=lambda reference: reference.id)

    newest = [events[1].references.vendors[0], events[0].references.vendors[1]]
    assert await ask(company, vendor_ids=[vendors[0]["entity_id"], 2**62], vendor_external_ids=["V2", "X"]) == newest
    assert await ask(other, vendor_ids=[vendors[0]["entity_id"]], vendor_external_ids=["V2"]) == []


# Pages


async def test_a_walk_returns_each_vendor_once_ascending_and_no_other_companys(company: Any, other: Any) -> None:
    rows = [V | {"external_id": str(number), "is_active": number % 2 == 0} for number in range(7)]
    await company.put("vendors", *rows[:4])
    await other.put("vendors", *rows)
    await company.put("vendors", *rows[4:])
    expected = [vendor["entity_id"] for vendor in await company.list("vendors")]
    assert len(expected) == 7 and expected == sorted(expected)
    seen: list[int] = []
    after: int | None = 0
    while after is not None:
        page = await company.page("vendors", after, 3)
        seen += [vendor["entity_id"] for vendor in json.loads(page.data)]
        after = page.next_after_id if page.HasField("next_after_id") else None
    assert seen == expected


async def test_a_page_looks_at_no_other_companys_rows(crowded: Database) -> None:
    small, big = 1, 2
    async with crowded.connection() as connection:
        for company_id, many in ((big, 4000), (small, 60), (big, 4000)):
            await connection.raw.execute(
                "WITH made AS (INSERT INTO business (company_id, legal_name)"
                " SELECT $1, 'x' || nextval('business_id') FROM generate_series(1, $2) RETURNING id)"
                " INSERT INTO vendor (company_id, business_id, rating_count, is_active, property_visibility,"
                " onboarded_at, source) SELECT $1, id, 0, true, 'all_properties', now(), 'import' FROM made",
                company_id,
                many,
            )
        await connection.raw.execute("ANALYZE")
    plan = await page_plan(crowded, queries.VENDORS_PAGE, small, 50)
    (scan,) = (node for node in plan if node.get("Relation Name") == "vendor")
    assert scan.get("Index Name") == "vendor_pkey"
    assert max(map(rows_looked_at, plan)) <= 51, json.dumps(plan[0], indent=1)
    assert not [node for node in plan if node["Node Type"] in ("Sort", "Hash Join")], json.dumps(plan[0], indent=1)
