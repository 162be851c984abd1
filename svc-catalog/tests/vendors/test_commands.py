"""The back office of vendors: add, change, hold and release them, and record their insurance."""

from __future__ import annotations

import datetime
import json
from typing import Any

import grpc
import pytest
from google.protobuf.json_format import MessageToDict

from chassis.auth.identity import ADMINISTRATOR, INTEGRATION, OPERATOR, SERVICE, STAFF, Identity
from chassis.db.database import Database
from chassis.refusals import Refusal
from makeready.catalog.v1 import places_pb2, vendors_pb2
from makeready.catalog.v1 import vendor_commands_pb2 as pb
from testkit.clocks import today

from ..published import audited, events, public

HELD = {"field": "on_hold", "from": False, "to": True}
RPCS = [rpc.name for rpc in pb.DESCRIPTOR.services_by_name["VendorCommandsService"].methods]


def days(many: int) -> str:
    return str(today() + datetime.timedelta(days=many))


async def add(company: Any, name: str = "Ace", **values: Any) -> dict[str, Any]:
    vendor: dict[str, Any] = json.loads((await company.command(pb, "AddVendor", name=name, **values)).document.json)
    return vendor


async def got(company: Any, vendor_id: int) -> bytes:
    answer = await company.catalog("GetVendor", vendors_pb2.GetVendorRequest(vendor_id=vendor_id), company.caller)
    document: bytes = answer.document.json
    return document


async def references(company: Any, database: Database) -> list[dict[str, Any]]:
    """The references to vendors that svc-catalog published."""
    published = [
        event.references.vendors for _, event in await events(database, company.id) if event.references.vendors
    ]
    return [MessageToDict(vendor, preserving_proto_field_name=True) for rows in published for vendor in rows]


async def holds(company: Any) -> list[tuple[int, str, str]]:
    holds = (await company.command(pb, "ListVendorHolds")).holds
    return [(hold.vendor_id, hold.name, hold.reason) for hold in holds]


async def test_a_vendor_is_added_and_served_as_it_was_answered(company: Any, database: Database) -> None:
    added = await add(company, "Ace", legal_name="Ace Inc.", website="https://ace.example", external_id="V1")
    assert (added["name"], added["business"]["legal_name"], added["is_active"]) == ("Ace", "Ace Inc.", True)
    assert json.loads(await got(company, added["entity_id"])) == added
    assert await references(company, database) == [
        {
            "id": str(added["entity_id"]),
            "version": "1",
            "company_id": str(company.id),
            "name": "Ace",
            "external_id": "V1",
        }
    ]
    ((actor, action, subject, subject_id, before, after, request_id),) = await audited(database, company.id)
    assert (actor, action, subject, subject_id) == ("operator", "vendor.added", "vendor", added["entity_id"])
    assert (before, after["name"], after["on_hold"], request_id) == ({}, "Ace", False, "req-test")
    # An import with the same external_id finds it.
    assert await company.put("vendors", {"external_id": "V1", "name": "Ace"}) == ["unchanged"]
    assert await public(database, company.id) == []


async def test_vendors_of_one_legal_name_share_a_business(company: Any) -> None:
    first, second = await add(company, "Ace"), await add(company, "Ace North", legal_name="Ace")
    assert first["business"]["id"] == second["business"]["id"]
    await company.command(pb, "UpdateVendor", vendor_id=second["entity_id"], website="https://ace.example")
    assert json.loads(await got(company, first["entity_id"]))["business"]["website"] == "https://ace.example"
    third = await company.command(pb, "UpdateVendor", vendor_id=second["entity_id"], legal_name="Ace North LLC")
    assert json.loads(third.document.json)["business"]["id"] != first["business"]["id"]
    assert json.loads(third.document.json)["name"] == "Ace North"


async def test_an_update_changes_what_it_names_and_clears_what_it_says(company: Any, database: Database) -> None:
    added = await add(company, "Ace", avg_rating=4.5, rating_count=3, website="https://ace.example", external_id="V1")
    vendor_id = added["entity_id"]
    done = await company.command(pb, "UpdateVendor", vendor_id=vendor_id, name="Ace Two", clear=["avg_rating"])
    vendor = json.loads(done.document.json)
    assert vendor == added | {"name": "Ace Two", "avg_rating": None}
    assert done.document.json == await got(company, vendor_id)
    entry = (await audited(database, company.id))[-1]
    assert entry[:6] == (
        "operator",
        "vendor.updated",
        "vendor",
        vendor_id,
        {"name": "Ace", "avg_rating": 4.5},
        {"name": "Ace Two", "avg_rating": None},
    )
    assert [reference["name"] for reference in await references(company, database)] == ["Ace", "Ace Two"]
    # A change of fields that no other context replicates publishes no reference; a repeated value writes nothing.
    await company.command(pb, "UpdateVendor", vendor_id=vendor_id, rating_count=4)
    await company.command(pb, "UpdateVendor", vendor_id=vendor_id, rating_count=4, name="Ace Two")
    assert len(await references(company, database)) == 2
    assert len(await audited(database, company.id)) == 3


async def test_a_relationship_ends_and_is_taken_up_again(company: Any) -> None:
    vendor_id = (await add(company))["entity_id"]
    ended = json.loads((await company.command(pb, "UpdateVendor", vendor_id=vendor_id, is_active=False)).document.json)
    assert not ended["is_active"] and ended["retired_at"] is not None
    again = json.loads((await company.command(pb, "UpdateVendor", vendor_id=vendor_id, is_active=True)).document.json)
    assert again["is_active"] and again["retired_at"] is None


async def test_a_hold_fires_once_with_the_vendor_as_its_get_serves_it(company: Any, database: Database) -> None:
    added = await add(company)
    vendor_id = added["entity_id"]
    answer = (await company.command(pb, "HoldVendor", vendor_id=vendor_id, reason="no answer")).document.json
    assert answer == await got(company, vendor_id)
    ((subject, event),) = [
        published_event
        for published_event in await events(database, company.id)
        if published_event[1].HasField("public")
    ]
    assert (subject, event.public.data, event.public.entity_id) == ("public.vendor.hold", answer, vendor_id)
    assert (json.loads(event.public.change), event.request_id) == (HELD, "req-test")
    assert [reference.get("on_hold", False) for reference in await references(company, database)] == [False, True]
    entry = (await audited(database, company.id))[-1]
    changed = ({"on_hold": False, "hold_reason": None}, {"on_hold": True, "hold_reason": "no answer"})
    assert entry[1:6] == ("vendor.held", "vendor", vendor_id, *changed)
    # Another reason does not make another hold.
    await company.command(pb, "HoldVendor", vendor_id=vendor_id, reason="no answer")
    await company.command(pb, "HoldVendor", vendor_id=vendor_id, reason="a quarrel")
    assert await holds(company) == [(vendor_id, "Ace", "a quarrel")]
    assert len(await public(database, company.id)) == 1
    # After a release, it does.
    await company.command(pb, "ReleaseVendor", vendor_id=vendor_id)
    assert await holds(company) == []
    entries = len(await audited(database, company.id))
    await company.command(pb, "ReleaseVendor", vendor_id=vendor_id)
    assert len(await audited(database, company.id)) == entries
    await company.command(pb, "HoldVendor", vendor_id=vendor_id, reason="again")
    assert [key for key, _, _ in await public(database, company.id)] == ["vendor.hold"] * 2
    assert [reference.get("on_hold", False) for reference in await references(company, database)] == [
        False,
        True,
        False,
        True,
    ]
    versions = [int(reference["version"]) for reference in await references(company, database)]
    assert versions == sorted(set(versions))


async def test_who_asks_for_a_vendor_learns_of_its_hold(company: Any) -> None:
    vendor_id = (await add(company))["entity_id"]
    await company.command(pb, "HoldVendor", vendor_id=vendor_id, reason="r")
    request = places_pb2.BatchGetReferencesRequest(company_id=company.id, vendor_ids=[vendor_id])
    answer = await company.catalog("BatchGetReferences", request, company.tickets)
    assert [vendor.on_hold for vendor in answer.references.vendors] == [True]
    # An import of the vendor does not end the hold.
    await company.put("vendors", {"external_id": "V", "name": "Other"})
    await company.command(pb, "UpdateVendor", vendor_id=vendor_id, external_id="V1")
    assert await company.put("vendors", {"external_id": "V1", "name": "Renamed"}) == ["changed"]
    assert await holds(company) == [(vendor_id, "Renamed", "r")]
    answer = await company.catalog("BatchGetReferences", request, company.tickets)
    assert [vendor.on_hold for vendor in answer.references.vendors] == [True]


async def test_recording_insurance_leaves_the_snapshot_to_the_clock(company: Any, database: Database) -> None:
    added = await add(company)
    vendor_id = added["entity_id"]
    for expires_on in (days(100), days(-1)):
        answer = await company.command(pb, "RecordInsurance", vendor_id=vendor_id, expires_on=expires_on)
        assert json.loads(answer.document.json)["last_compliance_state"] == "unknown"
    assert await holds(company) == []
    await company.command(pb, "RecordInsurance", vendor_id=vendor_id)
    befores = [entry[4:6] for entry in await audited(database, company.id)][1:]
    assert befores == [
        (
            {"insurance_tracked": False, "insurance_expires_on": None},
            {"insurance_tracked": True, "insurance_expires_on": days(100)},
        ),
        ({"insurance_expires_on": days(100)}, {"insurance_expires_on": days(-1)}),
        ({"insurance_expires_on": days(-1)}, {"insurance_expires_on": None}),
    ]
    await company.command(pb, "RecordInsurance", vendor_id=vendor_id)
    assert len(await audited(database, company.id)) == 4


async def test_the_same_key_does_it_once(company: Any, database: Database) -> None:
    first = await company.command(pb, "AddVendor", idempotency_key="k", name="Ace")
    assert await company.command(pb, "AddVendor", idempotency_key="k", name="Ace") == first
    assert len(await company.list("vendors")) == 1
    with pytest.raises(Refusal) as refused:
        await company.command(pb, "AddVendor", idempotency_key="k", name="Other")
    assert (refused.value.status, refused.value.code) == (409, "idempotency_mismatch")
    # The same key sent by another person is another key.
    boss = Identity(ADMINISTRATOR, "gateway", company.id, administrator_id=7)
    assert await company.command(pb, "AddVendor", boss, idempotency_key="k", name="Ace") != first
    assert [entry[0] for entry in await audited(database, company.id)] == ["operator", "administrator:7"]


@pytest.mark.parametrize("rpc", ["UpdateVendor", "HoldVendor", "ReleaseVendor", "RecordInsurance"])
async def test_another_companys_vendor_is_not_there(company: Any, other: Any, database: Database, rpc: str) -> None:
    vendor_id = (await add(company))["entity_id"]
    values = {"HoldVendor": {"reason": "r"}, "UpdateVendor": {"name": "Mine now"}}.get(rpc, {})
    before = await got(company, vendor_id)
    for unknown in (vendor_id, 2**62, 0, -1):
        with pytest.raises(Refusal) as refused:
            await other.command(pb, rpc, vendor_id=unknown, **values)
        assert (refused.value.status, refused.value.code) == (404, "not_found")
        assert "company" in refused.value.message and "key" not in refused.value.message
    assert await got(company, vendor_id) == before
    assert await audited(database, other.id) == []


async def test_another_companys_holds_are_not_listed(company: Any, other: Any) -> None:
    await company.command(pb, "HoldVendor", vendor_id=(await add(company))["entity_id"], reason="r")
    assert await holds(other) == []


@pytest.mark.parametrize(
    ("rpc", "values", "status", "field"),
    [
        ("AddVendor", {"name": " "}, 400, "name"),
        ("AddVendor", {"name": "n" * 201}, 400, "name"),
        ("AddVendor", {"name": "a\0b"}, 400, "name"),
        ("AddVendor", {"name": "n", "property_visibility": "some"}, 422, "property_visibility"),
        ("AddVendor", {"name": "n", "avg_rating": 101}, 400, "avg_rating"),
        ("AddVendor", {"name": "n", "avg_rating": float("nan")}, 400, "avg_rating"),
        ("AddVendor", {"name": "n", "rating_count": -1}, 400, "rating_count"),
        ("UpdateVendor", {"clear": ["name"]}, 400, "clear"),
        ("UpdateVendor", {"clear": ["vendor_id"]}, 400, "clear"),
        ("UpdateVendor", {"website": "w", "clear": ["website"]}, 400, "cleared"),
        ("HoldVendor", {}, 400, "reason"),
        ("HoldVendor", {"reason": "r" * 501}, 400, "reason"),
        ("RecordInsurance", {"expires_on": "soon"}, 400, "expires_on"),
        ("RecordInsurance", {"expires_on": "2026-02-30"}, 400, "expires_on"),
    ],
)
async def test_what_is_no_such_value_is_refused_by_its_field(
    company: Any, database: Database, rpc: str, values: dict[str, Any], status: int, field: str
) -> None:
    if rpc != "AddVendor":
        values = values | {"vendor_id": (await add(company))["entity_id"]}
    entries = len(await audited(database, company.id))
    with pytest.raises(Refusal) as refused:
        await company.command(pb, rpc, **values)
    assert (refused.value.status, refused.value.code) == (status, "invalid_request")
    assert field in refused.value.message and refused.value.message.endswith(".")
    assert len(await audited(database, company.id)) == entries


async def test_an_external_id_is_one_vendors(company: Any, other: Any) -> None:
    await add(company, "Ace", external_id="V1")
    second = await add(company, "Bee", external_id="V2")
    await add(other, "Ace", external_id="V1")
    for rpc, values in (
        ("AddVendor", {"name": "Cat"}),
        ("UpdateVendor", {"vendor_id": second["entity_id"]}),
    ):
        with pytest.raises(Refusal) as refused:
            await company.command(pb, rpc, external_id="V1", **values)
        assert refused.value.status == 422
    assert [vendor["name"] for vendor in await company.list("vendors")] == ["Ace", "Bee"]


@pytest.mark.parametrize("kind", [INTEGRATION, SERVICE, OPERATOR, STAFF, ADMINISTRATOR])
@pytest.mark.parametrize("rpc", RPCS)
async def test_the_operator_and_administrators_alone_may_and_staff_see_holds(company: Any, rpc: str, kind: str) -> None:
    may = {OPERATOR, ADMINISTRATOR} | ({STAFF} if rpc == "ListVendorHolds" else set())
    issuer = {OPERATOR: "operator", SERVICE: "svc-tickets"}.get(kind, "gateway")
    who = Identity(kind, issuer, company.id, api_key_id=1, administrator_id=1, staff_id=1)
    try:
        await company.command(pb, rpc, who)
    except grpc.aio.AioRpcError as error:
        assert error.code() == grpc.StatusCode.PERMISSION_DENIED and kind not in may
    except Refusal as refused:
        assert refused.status in (400, 404) and kind in may
    else:
        assert kind in may
