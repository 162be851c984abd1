"""Feeds: pages of changes, as the gateway reads them and the services receive them."""

from __future__ import annotations

import pytest

from gateway.http.routes import OPERATIONS, OWN_SERVICE
from testkit.gateways import Operator
from testkit.raw_http import Api
from testkit.stub_contexts import RECORDS, Contexts, first_id

FEEDS = [
    operation.route.path for operation in OPERATIONS if operation.kind == "feed" and operation.service != OWN_SERVICE
]


async def test_a_page_is_laid_around_the_services_bytes(api: Api, key: str, company_id: int) -> None:
    response = await api.get("/changes/tickets?limit=2", key)
    first, cursor = first_id(company_id), response.json["next_cursor"]
    documents = f'{{ "entity_id": {first} }},{{ "entity_id": {first + 1} }}'
    expected = f'{{"data":[{documents}],"next_cursor":"{cursor}","resume_cursor":"{cursor}","limit":2}}'
    assert response.body == expected.encode()


@pytest.mark.parametrize("path", FEEDS)
async def test_a_feed_is_followed_to_its_end_and_beyond(api: Api, key: str, company_id: int, path: str) -> None:
    ids: list[int] = []
    query, first = "?limit=7", first_id(company_id)
    while True:
        page = (await api.get(path + query, key)).json
        numbers = ["positions"] if path == "/events" else []
        assert list(page) == ["data", *numbers, "next_cursor", "resume_cursor", "limit"] and page["limit"] == 7
        ids += [record["entity_id"] for record in page["data"]]
        query = f"?limit=7&cursor={page['resume_cursor']}"
        if page["next_cursor"] is None:
            break
        assert page["next_cursor"] == page["resume_cursor"]
    assert ids == list(range(first, first + RECORDS))
    later = (await api.get(path + query, key)).json
    assert (later["data"], later["next_cursor"], later["resume_cursor"]) == ([], None, page["resume_cursor"])


@pytest.mark.parametrize("path", FEEDS)
async def test_a_cursor_belongs_to_its_company_and_feed(api: Api, key: str, operator: Operator, path: str) -> None:
    cursor = (await api.get(f"{path}?limit=2", key)).json["resume_cursor"]
    assert (await api.get(f"{path}?cursor={cursor}", key)).status == 200
    stranger = await operator.key(await operator.company())
    of_list = (await api.get("/tickets?limit=2", key)).json["next_cursor"]
    for place, by, foreign in (
        (path, stranger, cursor),
        ("/tickets", key, cursor),
        (path, key, of_list),
        (path, key, cursor + "A"),
        (path, key, ""),
        (path, key, "1."),
        *((other, key, cursor) for other in FEEDS if other != path),
    ):
        refused = await api.get(f"{place}?cursor={foreign}", by)
        assert (refused.status, refused.code) == (400, "invalid_cursor"), (place, foreign)


@pytest.mark.parametrize("path", FEEDS)
async def test_query_values_without_sense_are_refused(api: Api, key: str, contexts: Contexts, path: str) -> None:
    for wait in ("-1", "26", "100", "1.5", "x", "%D9%A3", "1e1", "+5"):
        refused = await api.get(f"{path}?wait={wait}", key)
        assert (refused.status, refused.code) == (422, "invalid_request"), wait
        assert refused.message == "wait must be a whole number of seconds from 0 to 25."
    for query, code in (("limit=0", "invalid_limit"), ("wait=", "invalid_request"), ("from_now=1", "invalid_request")):
        refused = await api.get(f"{path}?{query}", key)
        assert (refused.status, refused.code) == (400, code), query
    assert not contexts.seen
