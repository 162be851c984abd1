"""Who may call which RPC; and no company sees another's records."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from google.protobuf.message_factory import GetMessageClass

from chassis.auth.identity import ADMINISTRATOR, INTEGRATION, KINDS, OPERATOR, SERVICE, STAFF, Identity
from chassis.auth.rpcs import method_on
from chassis.refusals import Refusal
from makeready.catalog.v1 import inspections_pb2, meters_pb2, vendors_pb2
from makeready.catalog.v1 import places_pb2 as pb
from makeready.common.v1 import options_pb2

CALLERS = {
    INTEGRATION: "gateway",
    SERVICE: "svc-tickets",
    OPERATOR: "operator",
    STAFF: "gateway",
    ADMINISTRATOR: "gateway",
}
CONTRACTS = (pb, vendors_pb2, inspections_pb2, meters_pb2)
RPCS = [
    rpc
    for contract in CONTRACTS
    for service in contract.DESCRIPTOR.services_by_name.values()
    for rpc in service.methods
]
ALLOWED = {
    "List": {INTEGRATION},
    "Get": {INTEGRATION},
    "Import": {OPERATOR, ADMINISTRATOR, SERVICE},
    "Batch": {SERVICE},
}
# The contracts whose lists and fetches people may call too.
FOR_PEOPLE = (pb, meters_pb2)
PEOPLE = {OPERATOR, ADMINISTRATOR, STAFF}


@pytest.mark.parametrize("kind", CALLERS)
@pytest.mark.parametrize("rpc", RPCS, ids=[rpc.name for rpc in RPCS])
async def test_each_rpc_is_open_to_its_kinds_alone(company: Any, rpc: Any, kind: str) -> None:
    (expected,) = (allowed for prefix, allowed in ALLOWED.items() if rpc.name.startswith(prefix))
    is_feed = rpc.name.endswith(("Changes", "OfAllMeters"))
    if (
        INTEGRATION in expected
        and not is_feed
        and rpc.containing_service.file in [contract.DESCRIPTOR for contract in FOR_PEOPLE]
    ):
        expected = expected | PEOPLE
    assert set(rpc.GetOptions().Extensions[options_pb2.allowed]) == {KINDS[number] for number in expected}
    if rpc.name.startswith("Import"):
        expected = expected - {SERVICE}  # the gateway alone, and the caller is another
    request = GetMessageClass(rpc.input_type)()
    if hasattr(request, "limit"):
        request.limit = 1
    if hasattr(request, "company_id"):
        request.company_id = company.id
    who = Identity(kind, CALLERS[kind], company.id, scope="read")
    try:
        await company.catalog(rpc.name, request, who)
    except Refusal as refused:
        assert refused.status == 404 and kind in expected
    except grpc.aio.AioRpcError as error:
        assert error.code() == grpc.StatusCode.PERMISSION_DENIED and kind not in expected
    else:
        assert kind in expected


@pytest.mark.parametrize("token", ["", "nonsense"])
async def test_a_call_without_a_token_is_refused(catalog: Any, token: str) -> None:
    async with catalog.service.channel() as channel:
        method = method_on(channel, pb.ListPropertiesRequest)
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await method(pb.ListPropertiesRequest(limit=1), metadata=[("authorization", token)], timeout=60)
    assert error.value.code() == grpc.StatusCode.PERMISSION_DENIED


async def test_a_token_for_another_service_is_refused(company: Any) -> None:
    service = company.catalog.service
    async with service.channel() as channel:
        method = method_on(channel, pb.ListPropertiesRequest)
        token = service.keys.token(company.caller, "svc-tickets")
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await method(pb.ListPropertiesRequest(limit=1), metadata=[("authorization", token)], timeout=60)
    assert error.value.code() == grpc.StatusCode.PERMISSION_DENIED


async def test_no_list_fetch_or_filter_shows_another_companys_records(company: Any, other: Any, elm: Any) -> None:
    await company.put("units", {"external_id": "U", "property": "P1", "name": "1"})
    row = {"property": "P1", "name": "Boiler", "category": "HVAC", "make": "M", "model": "N", "location": "U"}
    await company.put("assets", row | {"external_id": "A"})
    (unit,), (asset,) = await company.list("units"), await company.list("assets")
    of_the_property = {"property_id": elm["entity_id"]}
    assert await company.list("units", **of_the_property) and await company.list("assets", **of_the_property)
    for kind, filters in (
        ("properties", {}),
        ("units", {}),
        ("units", of_the_property),
        ("assets", {}),
        ("assets", of_the_property),
        ("assets", {"unit_id": unit["entity_id"]}),
    ):
        assert await other.list(kind, **filters) == []
    for rpc, request in (
        ("GetProperty", pb.GetPropertyRequest(property_id=elm["entity_id"])),
        ("GetUnit", pb.GetUnitRequest(unit_id=unit["entity_id"])),
        ("GetAsset", pb.GetAssetRequest(asset_id=asset["entity_id"])),
    ):
        with pytest.raises(Refusal) as refused:
            await other.catalog(rpc, request, other.caller)
        with pytest.raises(Refusal) as unknown:
            await other.catalog(rpc, type(request)(**{request.ListFields()[0][0].name: 2**62}), other.caller)
        assert vars(refused.value) == vars(unknown.value)


async def test_an_import_neither_finds_nor_touches_another_companys_records(company: Any, other: Any, elm: Any) -> None:
    assert await other.put("units", {"external_id": "U", "property": "P1", "name": "1"}) == ["rejected property"]
    mine = {"external_id": "P1", "name": "Mine", "address": "9 Oak St"}
    assert await other.put("properties", mine) == ["created"]
    assert await company.list("properties") == [elm]
    await company.put("units", {"external_id": "U", "property": "P1", "name": "1"})
    asset = {"external_id": "A", "name": "B", "category": "C", "make": "M", "model": "N"}
    stolen = await other.put("assets", asset | {"property": "P1", "location": "U"})
    assert stolen == ["rejected location"]


async def test_references_hold_the_tokens_company_alone(company: Any, other: Any, elm: Any) -> None:
    def request(company_id: int) -> pb.BatchGetReferencesRequest:
        return pb.BatchGetReferencesRequest(
            company_id=company_id, property_ids=[elm["entity_id"]], property_external_ids=["P1"]
        )

    theirs = await company.catalog("BatchGetReferences", request(company.id), company.tickets)
    assert [row.id for row in theirs.references.properties] == [elm["entity_id"]]
    others = await other.catalog("BatchGetReferences", request(other.id), other.tickets)
    assert not others.references.ListFields()
    for who in (other.tickets, Identity(SERVICE, "svc-tickets")):
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await company.catalog("BatchGetReferences", request(company.id), who)
        assert error.value.code() == grpc.StatusCode.PERMISSION_DENIED
