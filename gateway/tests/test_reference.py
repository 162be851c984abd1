"""The contract as the gateway serves it: public, with this installation's address, for reading only."""

from __future__ import annotations

import pytest
from edge_house import Operator
from edge_http import Api

from gateway.reference import BASE_URL, Reference

VERBS = ("HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE")


async def test_the_document_needs_no_key_and_looks_at_none(api: Api, operator: Operator) -> None:
    document = await api.get("/openapi.json")
    assert document.status == 200 and document.json["openapi"].startswith("3.1")
    assert document.header("Content-Type") == "application/json"
    assert document.header("Cache-Control") == "no-store"
    assert document.header("RateLimit") is None
    assert not [name for name, _ in document.headers if name.lower().startswith("access-control")]
    key_id, revoked = await operator.minted(await operator.company())
    await operator.revoke(key_id)
    for key in ("mk_nonsense", revoked):
        assert (await api.get("/openapi.json", key)).body == document.body


async def test_the_document_names_the_installation(api: Api) -> None:
    document = (await api.get("/openapi.json")).json
    assert [one["url"] for one in document["servers"]] == [f"http://127.0.0.1:{api.port}/api/v1"]
    assert BASE_URL not in (await api.get("/openapi.json")).body.decode()


def test_an_address_is_quoted_where_it_stands() -> None:
    reference = Reference('https://example.org/a"b/api/v1')
    assert rb'"https://example.org/a\"b/api/v1"' in reference.document.body


async def test_the_document_takes_no_query(api: Api) -> None:
    for query in ("?x=1", "?limit=1", "?key=mk_x"):
        response = await api.get("/openapi.json" + query)
        assert (response.status, response.code) == (400, "invalid_request")
    assert (await api.get("/openapi.json?")).status == 200


@pytest.mark.parametrize("verb", VERBS)
async def test_the_document_can_only_be_read(api: Api, verb: str) -> None:
    response = await api.request(verb, "/openapi.json")
    assert (response.status, response.header("Allow")) == (405, "GET")
