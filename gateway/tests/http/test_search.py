"""The search by external_id: which services are asked, what it returns, what it refuses."""

from __future__ import annotations

import pytest

from gateway.http.answers.searches import LABELS, OWNERS
from gateway.http.routes import OWN_SERVICE, operation_at
from testkit.raw_http import Api
from testkit.stub_contexts import Contexts, first_id


def test_each_kind_has_one_owner() -> None:
    kinds = [kind for of_owner in OWNERS.values() for kind in of_owner]
    assert sorted(kinds) == sorted(LABELS) and len(kinds) == len(set(kinds)) == 10
    (kind,) = [parameter for parameter in operation_at("GET", "/search").filters if parameter.labels]
    assert tuple(LABELS.values()) == kind.labels


async def test_all_owners_are_asked_once(api: Api, key: str, company_id: int, contexts: Contexts) -> None:
    response = await api.get("/search?external_id=found", key)
    expected = [
        {"schema_version": 1, "entity_type": kind, "entity_id": first_id(company_id), "external_id": "found"}
        for kind in ("property", "ticket", "turn")
    ]
    assert (response.status, response.json) == (200, {"data": expected})
    assert sorted(contexts.looked_up) == [
        (owner, company_id, "found") for owner in sorted(OWNERS) if owner != OWN_SERVICE
    ]


@pytest.mark.parametrize(("owner", "kind"), [(owner, kind) for owner, kinds in OWNERS.items() for kind in kinds])
async def test_a_kind_asks_its_owner_alone(api: Api, key: str, contexts: Contexts, owner: str, kind: int) -> None:
    response = await api.get(f"/search?external_id=found&kind={LABELS[kind]}", key)
    assert response.status == 200
    assert {name for name, _, _ in contexts.looked_up} == {owner} - {OWN_SERVICE}


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("", 400),
        ("?", 400),
        ("?kind=unit", 400),
        ("?external_id=", 400),
        ("?external_id=a&external_id=b", 400),
        ("?external_id=" + "x" * 201, 400),
        ("?external_id=a%00b", 400),
        ("?external_id=%ff", 400),
        ("?external_id=a&limit=1", 400),
        ("?external_id=a&kind=", 422),
        ("?external_id=a&kind=Unit", 422),
        ("?external_id=a&kind=notice", 422),
    ],
)
async def test_a_bad_query_is_refused_and_nobody_asked(
    api: Api, key: str, contexts: Contexts, query: str, status: int
) -> None:
    response = await api.get(f"/search{query}", key)
    assert (response.status, response.code) == (status, "invalid_request")
    assert not contexts.looked_up


@pytest.mark.parametrize("text", ["%20", "x" * 200, "%C3%A9%F0%9F%9A%BF", "a%26b%3Dc", "a+b", "%27%3B--"])
async def test_any_text_may_be_an_identifier(api: Api, key: str, text: str) -> None:
    assert (await api.get(f"/search?external_id={text}", key)).json == {"data": []}


async def test_a_service_that_is_away_is_a_fault(api: Api, key: str, contexts: Contexts) -> None:
    """An answer without its kinds would say that the record is not there."""
    await contexts.stop("svc-tickets")
    try:
        assert (await api.get("/search?external_id=found", key)).status == 500
        assert (await api.get("/search?external_id=found&kind=unit", key)).status == 200
    finally:
        await contexts.start("svc-tickets")
