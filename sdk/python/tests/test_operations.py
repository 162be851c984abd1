"""Every operation of the document can be called, with and without coroutines, and is sent as the document says."""

from __future__ import annotations

import asyncio
import datetime
import inspect
import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from makeready_client import AsyncMakeready, Makeready, errors, models
from makeready_client.paging import AsyncWalk, Walk
from makeready_client.snapshots import AsyncSnapshot, Snapshot

ROOT = Path(__file__).parents[3]
DOCUMENT = json.loads((ROOT / "gateway/gateway/pages/openapi.json").read_text())
OPERATIONS = {
    operation["operationId"]: (method.upper(), template, operation)
    for template, item in DOCUMENT["paths"].items()
    for method, operation in item.items()
}
NOW = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)


def methods(client: Any) -> dict[str, Any]:
    """Every public method of a client and of its resources, by its dotted name."""
    methods_by_name = {name: getattr(client, name) for name in ("whoami", "openapi", "search")}
    for name, resource in inspect.getmembers(type(client), lambda member: isinstance(member, property)):
        resource_of_client = resource.fget(client)
        methods_by_name |= {
            f"{name}.{key}": method
            for key, method in inspect.getmembers(resource_of_client, inspect.ismethod)
            if key[0] != "_"
        }
    return methods_by_name


def arguments(method: Any) -> dict[str, Any]:
    """A value for every parameter."""
    values: dict[str, Any] = {"datetime.datetime": NOW, "datetime.date": NOW.date(), "int": 7, "str": "text"}
    arguments_by_name = {}
    for name, parameter in inspect.signature(method).parameters.items():
        kind = str(parameter.annotation).removesuffix(" | None")
        arguments_by_name[name] = ["text"] if kind.startswith("Sequence") else values.get(kind, "text")
    return arguments_by_name


class Api:
    """Answers every request with the document's own example, and remembers what was asked."""

    def __init__(self) -> None:
        self.asked: dict[str, httpx.Request] = {}

    def __call__(self, request: httpx.Request) -> httpx.Response:
        place = request.url.path.removeprefix("/api/v1")
        for name, (method, template, operation) in OPERATIONS.items():
            if method == request.method and re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), place):
                self.asked[name] = request
                status, response = next(entry for entry in operation["responses"].items() if entry[0].startswith("2"))
                examples = [content.get("examples", {}) for content in response.get("content", {}).values()]
                value = next((example["value"] for example_set in examples for example in example_set.values()), None)
                if value is None and status == "204":
                    return httpx.Response(204)
                text = value if isinstance(value, str) else json.dumps(value or {})
                return httpx.Response(int(status), text=text, headers={"Service-Resume-Cursor": "c"})
        return httpx.Response(404, json={"error": {"code": "not_found", "message": f"No {place}."}})


def called(call_result: Any) -> Any:
    """What a call brings; a list's first page, a snapshot's records."""
    if isinstance(call_result, Walk):
        return call_result.page()
    return list(call_result) if isinstance(call_result, Snapshot) else call_result


async def awaited(call_result: Any) -> Any:
    if isinstance(call_result, AsyncWalk):
        return await call_result.page()
    return [record async for record in call_result] if isinstance(call_result, AsyncSnapshot) else await call_result


def test_every_operation_can_be_called_in_both_ways() -> None:
    api, other = Api(), Api()
    client = Makeready("k", base_url="https://h/api/v1", transport=httpx.MockTransport(api))
    results = {
        name: called(method(**arguments(method))) for name, method in methods(client).items() if name != "events.follow"
    }

    async def with_coroutines() -> dict[str, Any]:
        async with AsyncMakeready("k", base_url="https://h/api/v1", transport=httpx.MockTransport(other)) as twin:
            return {
                name: await awaited(method(**arguments(method)))
                for name, method in methods(twin).items()
                if name != "events.follow"
            }

    assert asyncio.run(with_coroutines()) == results
    assert set(api.asked) == set(OPERATIONS) == set(other.asked)
    for name, request in api.asked.items():
        parameters = OPERATIONS[name][2].get("parameters", [])
        assert set(request.url.params) == {
            parameter["name"] for parameter in parameters if parameter["in"] == "query"
        }, name
        assert ("Idempotency-Key" in request.headers) == any(parameter["in"] == "header" for parameter in parameters), (
            name
        )
        if body := OPERATIONS[name][2].get("requestBody"):
            reference = body["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
            assert set(json.loads(request.content)) == set(DOCUMENT["components"]["schemas"][reference]["properties"])
        assert other.asked[name].url == request.url and other.asked[name].method == request.method


def test_every_code_has_an_error_class() -> None:
    responses = [response for _, _, operation in OPERATIONS.values() for response in operation["responses"].values()]
    responses += DOCUMENT["components"]["responses"].values()
    codes = set(re.findall(r'"code": {"enum": \[(.*?)\]', json.dumps(responses)))
    assert {code for codes_text in codes for code in json.loads(f"[{codes_text}]")} == set(errors.BY_CODE)


def test_unknown_fields_and_values_pass() -> None:
    example = json.loads((ROOT / "openapi/examples/Ticket.json").read_text())
    changed = example | {"status": "Dreamt Of", "source": "a_new_one", "a_new_field": {"deep": [1]}}
    api = httpx.MockTransport(lambda _: httpx.Response(200, json=changed, headers={"X-Request-Id": "r1"}))
    ticket = Makeready("k", base_url="https://h/api/v1", transport=api).tickets.get(1)
    assert (ticket.status, ticket.source, ticket.request_id, ticket.replayed) == ("Dreamt Of", "a_new_one", "r1", False)


def test_an_answer_that_is_none_is_an_error_of_the_library() -> None:
    api = httpx.MockTransport(lambda _: httpx.Response(200, text="<html>"))
    with pytest.raises(errors.ApiError, match="cannot read"):
        Makeready("k", base_url="https://h/api/v1", transport=api).whoami()


def test_an_unknown_event_passes_in_a_page() -> None:
    event = {"schema_version": 2, "event_id": "e", "event": "roof.gone", "occurred_at": "2026-01-01T00:00:00Z"}
    page = {"data": [event | {"company_id": 1, "data": {}, "change": None}], "positions": [1]}
    page |= {"next_cursor": None, "resume_cursor": "c", "limit": 200}
    api = httpx.MockTransport(lambda _: httpx.Response(200, json=page))
    (listed,) = Makeready("k", base_url="https://h/api/v1", transport=api).events.list()
    assert isinstance(listed, models.UnknownEvent) and listed.event == "roof.gone"


def test_an_instant_needs_an_offset() -> None:
    client = Makeready("k", base_url="https://h/api/v1", transport=httpx.MockTransport(Api()))
    with pytest.raises(ValueError, match="offset"):
        client.tickets.list(updated_since=datetime.datetime(2026, 1, 1)).page()


def test_a_snapshot_that_breaks_off_goes_on_behind_its_last_record() -> None:
    lines = [f'{{"entity_id":{number},"meter_id":{number // 10}}}\n'.encode() for number in range(10, 16)]
    requests: list[dict[str, str]] = []

    class Body(httpx.SyncByteStream):
        def __init__(self, begin: int) -> None:
            self.begin = begin

        def __iter__(self) -> Any:
            remainder = b"".join(lines[self.begin : self.begin + 2])
            yield remainder[:5]
            yield remainder[5:] + b'{"entity_'
            if self.begin < 4:
                raise httpx.ReadError("broke off")

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(dict(request.url.params))
        headers = {} if len(requests) > 1 else {"Service-Resume-Cursor": "first"}
        return httpx.Response(200, stream=Body(2 * (len(requests) - 1)), headers=headers)

    client = Makeready("k", base_url="https://h/api/v1", transport=httpx.MockTransport(answer))
    snapshot = client.snapshots.readings()
    assert [line + b"\n" for line in snapshot.lines()] == lines
    assert snapshot.resume_cursor == "first"
    assert requests == [{}, {"after_id": "11", "after_meter_id": "1"}, {"after_id": "13", "after_meter_id": "1"}]
