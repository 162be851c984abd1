"""Lists: limit, filters, cursors (spec 4.12), as the gateway reads them and the services receive them."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest

from gateway.http.filters import Filter
from gateway.http.routes import OPERATIONS, OWN_SERVICE, Operation
from testkit.gateways import Operator
from testkit.raw_http import Api, Response
from testkit.stub_contexts import RECORDS, Contexts, first_id

LISTS = [
    operation.route.path.replace(f"{{{operation.id_field}}}", "1")
    for operation in OPERATIONS
    if operation.kind == "list" and operation.service != OWN_SERVICE
]


async def test_a_page_is_laid_around_the_services_bytes(api: Api, key: str, company_id: int) -> None:
    response = await api.get("/webhooks?limit=2", key)
    first = first_id(company_id)
    records = json.dumps([{"entity_id": first, "filters": {}}, {"entity_id": first + 1, "filters": {}}])
    cursor = response.json["next_cursor"]
    assert response.body == f'{{"data":{records},"next_cursor":"{cursor}","limit":2}}'.encode()


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize("limit", [1, 7, 40, RECORDS, RECORDS + 1, None])
async def test_every_page_of_a_list_is_reached_once(
    api: Api, key: str, company_id: int, path: str, limit: int | None
) -> None:
    ids: list[int] = []
    query = f"?limit={limit}" if limit else "?"
    cursor: str | None = ""
    first = first_id(company_id)
    path = path.replace("/1/", f"/{first}/")
    while cursor is not None and len(ids) < 100:
        response = await api.get(path + query + (f"&cursor={cursor}" if cursor else ""), key)
        assert response.json["limit"] == (limit or 50)
        ids += [record["entity_id"] for record in response.json["data"]]
        cursor = response.json["next_cursor"]
        if limit == 1 and len(ids) == 5:
            return
    assert ids == list(range(first, first + len(ids)))
    assert cursor is not None or len(ids) == RECORDS


@pytest.mark.parametrize(("text", "applied"), [("1", 1), ("007", 7), ("200", 200), ("201", 200), ("9" * 5000, 200)])
async def test_limit_is_clamped_and_returned(api: Api, key: str, text: str, applied: int) -> None:
    assert (await api.get(f"/tickets?limit={text}", key)).json["limit"] == applied


@pytest.mark.parametrize(
    "text", ["", "0", "000", "-1", "+5", "%2B5", "1e2", "1.0", "ten", "0x10", "1%20", "%D9%A3", "1_0"]
)
@pytest.mark.parametrize("path", LISTS)
async def test_a_limit_that_is_no_positive_integer_is_refused(api: Api, key: str, path: str, text: str) -> None:
    response = await api.get(f"{path}?limit={text}", key)
    assert (response.status, response.code) == (400, "invalid_limit")


async def seen_filters(api: Api, key: str, path: str) -> dict[str, Any]:
    response = await api.get(path, key)
    assert response.status == 200, response.body
    filters: dict[str, Any] = response.json["data"][0]["filters"]
    return filters


@pytest.mark.parametrize(
    ("text", "arrives"),
    [
        ("5", "5"),
        ("0", "0"),
        ("-3", "0"),
        ("007", "7"),
        ("0" * 30 + "7", "7"),
        (str(2**63 - 1), str(2**63 - 1)),
        (str(2**63), "0"),
        ("9" * 5000, "0"),
    ],
)
async def test_any_plain_integer_is_an_id_to_filter_by(api: Api, key: str, text: str, arrives: int) -> None:
    """An id that no record can have becomes 0, which matches nothing: the page is empty, not refused."""
    assert await seen_filters(api, key, f"/tickets?property_id={text}") == {"property_id": str(arrives)}


@pytest.mark.parametrize(
    "text", ["%2B5", "+5", "1.0", "1e3", "abc", "5%20", "--5", "%D9%A3", "0x5", "5,6", "%00", "1_0"]
)
async def test_what_is_no_integer_is_refused_as_an_id(api: Api, key: str, text: str) -> None:
    for path in ("/tickets?property_id=", "/tickets?unit_id=", "/units?property_id=", "/assets?unit_id="):
        response = await api.get(path + text, key)
        assert (response.status, response.code) == (400, "invalid_request")


TICKET_STATUSES = ["Open", "In Progress", "On Hold", "Completed", "Cancelled"]
ASSET_STATUSES = ["Active", "Needs Service", "Out of Service", "Retired"]


@pytest.mark.parametrize(("path", "labels"), [("/tickets", TICKET_STATUSES), ("/assets", ASSET_STATUSES)])
async def test_status_takes_the_labels_of_the_contract_and_lists_them_otherwise(
    api: Api, key: str, path: str, labels: list[str]
) -> None:
    for number, label in enumerate(labels, start=1):
        assert await seen_filters(api, key, f"{path}?status={quote(label)}") == {"status": str(number)}
        assert await seen_filters(api, key, f"{path}?status={label.replace(' ', '+')}") == {"status": str(number)}
    for text in ("open", "OPEN", "1", "Open%20", "In%20progress", "TICKET_STATUS_OPEN", "%E2%82%AC", "nonsense"):
        response = await api.get(f"{path}?status={text}", key)
        assert (response.status, response.code) == (422, "invalid_request")
        assert response.message == f"status must be one of: {', '.join(labels)}."


@pytest.mark.parametrize(
    ("text", "seconds", "nanos"),
    [
        ("1970-01-01T00:00:10Z", 10, 0),
        ("1970-01-01T00:00:10%2B00:00", 10, 0),
        ("1970-01-01T00:00:10+00:00", 10, 0),  # an unencoded plus sign is a space in a query
        ("1970-01-01T01:00:10%2B01:00", 10, 0),
        ("1969-12-31T19:00:10.5-05:00", 10, 500_000_000),
        ("1970-01-01T00:00:10.123456Z", 10, 123_456_000),
        ("0001-01-01T00:00:00Z", -62135596800, 0),
        ("9999-12-31T23:59:59.999999Z", 253402300799, 999_999_000),
        ("2016-12-31T23:59:60Z", 1483228800, 0),
    ],
)
async def test_updated_since_is_an_instant(
    api: Api, key: str, contexts: Contexts, text: str, seconds: int, nanos: int
) -> None:
    for path in ("/tickets", "/assets"):
        assert (await api.get(f"{path}?updated_since={text}", key)).status == 200
        instant = contexts.seen[-1].request.updated_since
        assert (instant.seconds, instant.nanos) == (seconds, nanos)


@pytest.mark.parametrize(
    "text",
    [
        "1970-01-01T00:00:10",
        "1970-01-01",
        "1970-01-01T00:00:10.5",
        "1970-01-01%2000:00:10Z",
        "10",
        "yesterday",
        "1970-13-01T00:00:00Z",
        "1970-02-30T00:00:00Z",
        "0001-01-01T00:00:00%2B01:00",
        "9999-12-31T23:59:59-01:00",
        "10000-01-01T00:00:00Z",
        "1970-01-01T00:00:10Zjunk",
        "1970-01-01T00:00:10%2B25:00",
        "%00",
    ],
)
async def test_updated_since_without_offset_or_sense_is_refused(api: Api, key: str, text: str) -> None:
    response = await api.get(f"/tickets?updated_since={text}", key)
    assert (response.status, response.code) == (400, "invalid_request")
    assert "UTC offset" in response.message


async def test_ticket_number_needs_property_id(api: Api, key: str) -> None:
    response = await api.get("/tickets?ticket_number=5", key)
    assert (response.status, response.code) == (400, "invalid_request")
    assert "property_id" in response.message
    filters = await seen_filters(api, key, "/tickets?ticket_number=5&property_id=2")
    assert filters == {"property_id": "2", "ticket_number": "5"}


@pytest.mark.parametrize(
    "query", ["property_id=1&property_id=1", "limit=1&limit=2", "cursor=a&cursor=a", "status=Open&status=Open"]
)
async def test_a_repeated_key_is_refused(api: Api, key: str, query: str) -> None:
    response = await api.get(f"/tickets?{query}", key)
    assert (response.status, response.code) == (400, "invalid_request")
    assert "more than once" in response.message


@pytest.mark.parametrize("query", ["property_id", "property_id=", "updated_since=", "status=Open&unit_id="])
async def test_an_empty_filter_is_refused(api: Api, key: str, query: str) -> None:
    response = await api.get(f"/tickets?{query}", key)
    assert (response.status, response.code) == (400, "invalid_request")


ENUM_FILTERS = {
    f"{operation.route.path} {query_filter.name}": (operation, query_filter)
    for operation in OPERATIONS
    for query_filter in operation.filters
    if query_filter.labels
}


@pytest.mark.parametrize(("operation", "filter_"), ENUM_FILTERS.values(), ids=ENUM_FILTERS)
async def test_an_empty_value_is_outside_an_enum(api: Api, key: str, operation: Operation, filter_: Filter) -> None:
    path = operation.route.path.replace(f"{{{operation.id_field}}}", "1")
    for text in ("=", ""):
        response = await api.get(f"{path}?{filter_.name}{text}", key)
        assert (response.status, response.code) == (422, "invalid_request")
        assert response.message == f"{filter_.name} must be one of: {', '.join(filter_.labels)}."


async def test_filters_of_one_list_are_unknown_to_another(api: Api, key: str) -> None:
    for path in (
        "/properties?property_id=1",
        "/units?status=Open",
        "/units?unit_id=1",
        "/webhooks?status=healthy",
        "/meters?status=Active",
        "/meters/1/readings?property_id=1",
        "/meters/1/readings?updated_since=2026-01-01T00:00:00Z",
    ):
        assert (await api.get(path, key)).code == "invalid_request"


async def test_a_query_of_very_many_pairs_is_refused(api: Api, key: str) -> None:
    assert (await api.get("/tickets?" + "&".join(["property_id=1"] * 500), key)).code == "invalid_request"


async def cursor_of(api: Api, key: str, path: str) -> str:
    response = await api.get(path, key)
    cursor: str = response.json["next_cursor"]
    return cursor


def refused(response: Response) -> bool:
    return (response.status, response.code) == (400, "invalid_cursor")


async def test_a_cursor_works_in_its_own_company_list_and_filters_alone(
    api: Api, key: str, company_id: int, operator: Operator
) -> None:
    cursor = await cursor_of(api, key, "/tickets?property_id=7&limit=2")
    page = await api.get(f"/tickets?property_id=7&cursor={cursor}", key)
    assert page.json["data"][0]["entity_id"] == first_id(company_id) + 2
    for path in (
        f"/tickets?cursor={cursor}",
        f"/tickets?property_id=8&cursor={cursor}",
        f"/tickets?unit_id=7&cursor={cursor}",
        f"/tickets?property_id=7&status=Open&cursor={cursor}",
        f"/units?property_id=7&cursor={cursor}",
        f"/assets?property_id=7&cursor={cursor}",
    ):
        assert refused(await api.get(path, key)), path
    another_key = await operator.key(company_id, "read")
    assert (await api.get(f"/tickets?property_id=7&cursor={cursor}", another_key)).json == page.json
    stranger = await operator.key(await operator.company())
    assert refused(await api.get(f"/tickets?property_id=7&cursor={cursor}", stranger))


async def test_a_cursor_of_readings_works_with_its_own_meter_alone(api: Api, key: str, company_id: int) -> None:
    first = first_id(company_id)
    cursor = await cursor_of(api, key, f"/meters/{first}/readings?limit=2")
    page = await api.get(f"/meters/{first}/readings?cursor={cursor}", key)
    assert [record["entity_id"] for record in page.json["data"]][:2] == [first + 2, first + 3]
    assert (await api.get(f"/meters/00{first}/readings?cursor={cursor}", key)).json == page.json
    for path in (f"/meters/{first + 1}/readings", f"/meters/{2**63}/readings", "/meters/x/readings", "/meters"):
        assert refused(await api.get(f"{path}?cursor={cursor}", key)), path


async def test_the_readings_of_an_unknown_meter_are_not_found(api: Api, key: str, company_id: int) -> None:
    for entity_id in (first_id(company_id) + RECORDS, 0, 2**63, "x"):
        response = await api.get(f"/meters/{entity_id}/readings?limit=5", key)
        assert (response.status, response.code) == (404, "not_found")


async def test_a_cursor_goes_with_the_same_filters_however_they_are_spelled(api: Api, key: str) -> None:
    path = "/tickets?status=In%20Progress&updated_since=2026-01-01T00:00:00Z&limit=2"
    cursor = await cursor_of(api, key, path)
    spelled = f"/tickets?cursor={cursor}&updated_since=2026-01-01T01:00:00.000%2B01:00&limit=9&status=In+Progress"
    assert (await api.get(spelled, key)).status == 200


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize(
    "text", ["", "x", "1", "1.", ".", "1.AAAA", "0", "null", "%00", "%E2%82%AC", "../..", "a" * 5000]
)
async def test_what_is_no_cursor_of_ours_is_refused(api: Api, key: str, path: str, text: str) -> None:
    assert refused(await api.get(f"{path}?cursor={text}", key))


async def test_bad_filters_are_reported_before_a_bad_cursor(api: Api, key: str) -> None:
    assert (await api.get("/tickets?cursor=x&status=nonsense", key)).status == 422
    assert (await api.get("/tickets?cursor=x&limit=0", key)).code == "invalid_limit"
    assert (await api.get("/tickets?cursor=x&nonsense=1", key)).code == "invalid_request"
