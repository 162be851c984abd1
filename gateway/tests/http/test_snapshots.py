"""Snapshots: every record on a line, the cursor from before the first, and never half of them for all."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from chassis.auth.clients import ServiceUnavailable
from gateway.http import snapshots
from gateway.http.replies import ApiError
from gateway.http.routes import CHANGES, OPERATIONS, SNAPSHOTS, operation_at
from gateway.http.shared_limits import SharedLimits
from gateway.http.snapshots import SnapshotLate, Snapshots, lines
from gateway.http.store import Store
from makeready.common.v1.documents_pb2 import Page
from testkit.gateways import Operator
from testkit.patience import PATIENCE_SECONDS
from testkit.raw_http import Api, Response
from testkit.stub_contexts import RECORDS, Contexts, fail, first_id, hang

PATHS = [operation.route.path for operation in OPERATIONS if operation.kind == "snapshot"]
every_snapshot = pytest.mark.parametrize("path", PATHS)


def ids(response: Response) -> list[int]:
    assert response.status == 200 and response.header("Content-Type") == "application/x-ndjson"
    assert response.body.endswith(b"\n") or not response.body
    return [json.loads(line)["entity_id"] for line in response.body.splitlines()]


def after(path: str, entity_id: int) -> str:
    """The address at which a snapshot goes on after a record."""
    return f"{path}?" + "&".join(f"{name}={entity_id}" for name in operation_at("GET", path).allowed_query)


@pytest.fixture(autouse=True)
def _behaving(contexts: Contexts) -> Iterator[None]:
    yield
    contexts.behaviours.clear()


@every_snapshot
async def test_a_snapshot_has_every_record_and_the_cursor_from_before_the_first(
    api: Api, key: str, company_id: int, contexts: Contexts, path: str
) -> None:
    response = await api.get(path, key)
    first = first_id(company_id)
    assert ids(response) == list(range(first, first + RECORDS))
    rpcs = [operation_at("GET", route).rpc_path for route in (path.replace(SNAPSHOTS, CHANGES), path)]
    assert [context.operation.rpc_path for context in contexts.seen] == rpcs
    assert contexts.seen[0].request.from_now
    assert {context.request_id for context in contexts.seen} == {response.header("X-Request-Id")}
    cursor = response.header("Service-Resume-Cursor")
    changes = path.replace(SNAPSHOTS, CHANGES)
    assert (await api.get(f"{changes}?cursor={cursor}", key)).status == 200
    assert (await api.get(f"/tickets?cursor={cursor}", key)).code == "invalid_cursor"


@every_snapshot
async def test_a_snapshot_goes_on_after_an_id_without_another_cursor(
    api: Api, key: str, company_id: int, path: str
) -> None:
    last = first_id(company_id) + 99
    response = await api.get(after(path, last), key)
    assert ids(response) == list(range(last + 1, last + 21))
    assert response.header("Service-Resume-Cursor") is None
    assert ids(await api.get(after(path, 2**63 - 1), key)) == []
    begun = await api.get(after(path, 0), key)
    assert len(ids(begun)) == RECORDS and begun.header("Service-Resume-Cursor")


@every_snapshot
async def test_a_snapshot_is_compressed_for_those_who_accept_it(api: Api, key: str, path: str) -> None:
    plain, packed = await api.get(path, key), await api.get(path, key, Accept_Encoding="gzip")
    assert packed.header("Content-Encoding") == "gzip" and plain.header("Content-Encoding") is None
    assert packed.header("Vary") == plain.header("Vary") == "Accept-Encoding"
    assert gzip.decompress(packed.body) == plain.body


@every_snapshot
async def test_values_without_sense_are_refused(api: Api, key: str, path: str, contexts: Contexts) -> None:
    for query in (
        *("after_id=x", "after_id=-1", "after_id=1.0", "after_id=", f"after_id={2**63}", "after_id=%D9%A3"),
        *("after_id=1&after_id=2", "limit=5", "cursor=x", "status=Open"),
    ):
        refused = await api.get(f"{path}?{query}", key)
        assert (refused.status, refused.code) == (400, "invalid_request"), query
    assert not contexts.seen


@every_snapshot
async def test_what_fails_before_the_first_line_is_an_error_as_elsewhere(
    api: Api, key: str, path: str, contexts: Contexts
) -> None:
    for rpc in (operation_at("GET", path).route.rpc, operation_at("GET", path.replace(SNAPSHOTS, CHANGES)).route.rpc):
        contexts.behaviours[rpc] = fail
        response = await api.get(path, key)
        assert (response.status, response.code) == (500, "internal_error")
        contexts.behaviours.clear()
    assert len(ids(await api.get(path, key))) == RECORDS  # it has ended


async def test_readings_go_on_after_a_meter_and_a_reading(api: Api, key: str, contexts: Contexts) -> None:
    path = "/snapshots/readings"
    for query in ("after_id=5", "after_meter_id=5"):
        refused = await api.get(f"{path}?{query}", key)
        assert (refused.status, refused.code) == (400, "invalid_request")
        assert "after_meter_id and after_id go together" in refused.message
    assert not contexts.seen
    assert (await api.get(f"{path}?after_meter_id=7&after_id=0", key)).status == 200
    assert [context.request.after_meter_id for context in contexts.seen] == [7]


@every_snapshot
async def test_the_last_id_leaves_room_for_the_one_after_it(api: Api, key: str, path: str, contexts: Contexts) -> None:
    """Statements add 1 to it."""
    operation = operation_at("GET", path)
    query = "&".join(f"{name}={2**63 - 1}" for name in operation.allowed_query)
    assert (await api.get(f"{path}?{query}", key)).status == 200
    (seen,) = contexts.seen
    assert {getattr(seen.request, name) for name in operation.allowed_query} == {2**63 - 2}


async def test_a_company_has_one_snapshot_of_a_kind_at_a_time(
    api: Api, key: str, company_id: int, operator: Operator, contexts: Contexts
) -> None:
    path = PATHS[0]
    contexts.behaviours[operation_at("GET", path).route.rpc] = hang
    connection = await api.connect()
    await connection.send(api.bytes("GET", path, key))
    async with asyncio.timeout(PATIENCE_SECONDS):
        while len(contexts.seen) < 2:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.01)
    contexts.behaviours.clear()
    for another in (key, await operator.key(company_id, "read")):
        refused = await api.get(path, another)
        assert (refused.status, refused.code) == (429, "rate_limited")
        assert "under way" in refused.message
    stranger = await operator.key(await operator.company())
    assert len(ids(await api.get(path, stranger))) == RECORDS
    assert (await connection.receive()).status == 500  # the service did not answer in time
    assert len(ids(await api.get(path, key))) == RECORDS


async def test_a_process_has_a_bounded_number_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "SNAPSHOTS_MAX", 1)
    under_way = Snapshots(SharedLimits(Store("memory://")))
    async with under_way.begin(1, "/a"):
        for company_id, path in ((1, "/a"), (2, "/a")):
            with pytest.raises(ApiError, match="under way"):
                async with under_way.begin(company_id, path):
                    pass
    async with under_way.begin(2, "/a"):
        pass


@dataclass(frozen=True)
class Answer:
    page: Page


PAGES = {
    0: Page(data=b'[{"entity_id": 1, "text": "a,{}[]\\n"} ,\n {"entity_id":2}]', next_after_id=2),
    2: Page(data='[{"entity_id":3,"text":"é"}]'.encode(), next_after_id=3),
    3: Page(data=b"[]"),
}
WHOLE = '{"entity_id": 1, "text": "a,{}[]\\n"}\n{"entity_id":2}\n{"entity_id":3,"text":"é"}\n'.encode()


async def following(answer: Any) -> Any:
    return Answer(PAGES[answer.page.next_after_id]) if answer.page.HasField("next_after_id") else None


async def collected(pieces: AsyncIterator[bytes]) -> bytes:
    return b"".join([piece async for piece in pieces])


async def test_records_of_many_pages_are_lines_to_the_byte() -> None:
    assert await collected(lines(Answer(PAGES[0]), following, is_compressed=False)) == WHOLE
    assert gzip.decompress(await collected(lines(Answer(PAGES[0]), following, is_compressed=True))) == WHOLE
    assert await collected(lines(Answer(Page(data=b"[]")), following, is_compressed=False)) == b""


async def test_a_page_is_asked_for_when_the_one_before_is_taken() -> None:
    positions: list[int] = []

    async def counted(answer: Any) -> Any:
        positions.append(answer.page.next_after_id)
        return await following(answer)

    pieces = lines(Answer(PAGES[0]), counted, is_compressed=False)
    await anext(pieces)
    assert positions == []
    await anext(pieces)
    assert positions == [2]


async def _away(_answer: Any) -> Any:
    raise ServiceUnavailable("svc-x")


@pytest.mark.parametrize(("then", "seconds"), [(_away, 60.0), (following, -1.0)], ids=["away", "late"])
async def test_a_snapshot_that_cannot_go_on_raises(
    monkeypatch: pytest.MonkeyPatch, then: Callable[[Any], Awaitable[Any]], seconds: float
) -> None:
    monkeypatch.setattr(snapshots, "SECONDS_MAX", seconds)
    with pytest.raises((ServiceUnavailable, SnapshotLate)):
        await collected(lines(Answer(PAGES[0]), then, is_compressed=True))


def test_every_kind_that_can_be_followed_has_a_snapshot() -> None:
    kinds = [
        operation.route.path.removeprefix(CHANGES)
        for operation in OPERATIONS
        if operation.route.path.startswith(CHANGES)
    ]
    assert sorted(kinds) == sorted(path.removeprefix(SNAPSHOTS) for path in PATHS) and len(kinds) == 9
    for path in PATHS:
        operation = operation_at("GET", path)
        changes = operation_at("GET", path.replace(SNAPSHOTS, CHANGES))
        assert (changes.kind, changes.service, changes.scope) == ("feed", operation.service, operation.scope)
