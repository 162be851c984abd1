"""RPCs found by their requests: for every contract, and for messages that no RPC takes."""

from __future__ import annotations

from pathlib import Path

import pytest
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message_factory import GetMessageClass

import makeready
from chassis.auth.clients import ServiceClient
from chassis.auth.identity import TokenSigner, make_keys
from chassis.auth.rpcs import path_of, response_to, rpc_of, services_of
from makeready.common.v1 import documents_pb2
from makeready.events.v1 import events_pb2, replicas_pb2

PACKAGES = [f"makeready.{folder.parent.name}.v1" for root in makeready.__path__ for folder in Path(root).glob("*/v1")]
RPCS = {
    path_of(rpc): rpc for package in PACKAGES for service in services_of(package).values() for rpc in service.methods
}


def test_there_are_contracts() -> None:
    assert "/makeready.events.v1.OutboxService/BatchGetEvents" in RPCS and len(RPCS) > 200


@pytest.mark.parametrize("path", RPCS)
def test_a_request_says_which_rpc_it_is_for(path: str) -> None:
    rpc: MethodDescriptor = RPCS[path]
    request = GetMessageClass(rpc.input_type)
    assert path_of(rpc_of(request)) == path
    assert response_to(request) is GetMessageClass(rpc.output_type)


def test_a_message_that_no_rpc_takes_is_none() -> None:
    with pytest.raises(TypeError, match=r"no RPCs take a makeready\.common\.v1\.ImportRow"):
        rpc_of(documents_pb2.ImportRow)


async def test_a_response_of_another_rpc_is_a_mistake_of_the_caller(tmp_path: Path) -> None:
    make_keys(tmp_path, ["svc-orders"])
    client = ServiceClient("svc-parcels", "127.0.0.1:1", TokenSigner(tmp_path / "svc-orders.jwk"))
    with pytest.raises(TypeError, match="GetLagRequest is answered with GetLagResponse, not ListReplicasResponse"):
        await client.call(events_pb2.GetLagRequest(), replicas_pb2.ListReplicasResponse)
    await client.close()
