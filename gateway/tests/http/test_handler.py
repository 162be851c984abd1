"""Requests through the API handler: the reply of each kind of operation, and the order of the checks."""

from __future__ import annotations

from makeready.identity.v1 import identity_pb2 as pb
from testkit.gateways import Operator
from testkit.raw_http import Api
from testkit.stub_contexts import Contexts, first_id


async def test_whoami_returns_company_and_key(api: Api, key: str, company_id: int) -> None:
    response = await api.get("/whoami", key)
    assert response.status == 200
    assert list(response.json) == ["api_version", "company", "key"]
    assert response.json["company"] == {
        "id": company_id,
        "name": "Maple Homes",
        "timezone": "UTC",
        "mode": "live",
    }
    assert list(response.json["key"]) == ["id", "name", "prefix", "scope", "created_at"]
    assert response.json["key"]["prefix"] == key[:17]


async def test_a_sandbox_says_so_to_callers_and_services(api: Api, operator: Operator, contexts: Contexts) -> None:
    request = pb.CreateCompanyRequest(name="Maple trial", is_sandbox=True)
    company_id = (await operator("CreateCompany", request)).company.id
    key = (await operator("MintKey", pb.MintKeyRequest(company_id=company_id, scope=pb.SCOPE_READ))).key
    response = await api.get("/whoami", key)
    assert response.json["company"]["mode"] == "sandbox"
    assert key.startswith("mk_test_") and key.startswith(response.json["key"]["prefix"])
    await api.get(f"/tickets/{first_id(company_id)}", key)
    identity = contexts.seen[-1].identity
    assert (identity.company_id, identity.is_sandbox) == (company_id, True)


async def test_a_record_passes_through_to_the_byte(api: Api, key: str, company_id: int, contexts: Contexts) -> None:
    entity_id = first_id(company_id)
    response = await api.get(f"/tickets/{entity_id}", key)
    assert response.status == 200
    assert response.body == b'{ "entity_id": %d,  "b":1,"a":"\xc3\xa9" }' % entity_id
    assert contexts.seen[0].request_id == response.header("X-Request-Id")
    assert contexts.seen[0].identity.company_id == company_id
