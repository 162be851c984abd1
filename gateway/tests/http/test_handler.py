"""Requests through the API handler: the reply of each kind of operation, and the order of the checks."""

from __future__ import annotations

from testkit.raw_http import Api
from testkit.stub_contexts import Contexts, first_id


async def test_whoami_returns_company_and_key(api: Api, key: str, company_id: int) -> None:
    response = await api.get("/whoami", key)
    assert response.status == 200
    assert list(response.json) == ["api_version", "company", "key"]
    assert response.json["company"] == {"id": company_id, "name": "Maple Homes", "timezone": "UTC"}
    assert list(response.json["key"]) == ["id", "name", "prefix", "scope", "created_at"]
    assert response.json["key"]["prefix"] == key[:17]


async def test_a_record_passes_through_to_the_byte(api: Api, key: str, company_id: int, contexts: Contexts) -> None:
    entity_id = first_id(company_id)
    response = await api.get(f"/tickets/{entity_id}", key)
    assert response.status == 200
    assert response.body == b'{ "entity_id": %d,  "b":1,"a":"\xc3\xa9" }' % entity_id
    assert contexts.seen[0].request_id == response.header("X-Request-Id")
    assert contexts.seen[0].identity.company_id == company_id
