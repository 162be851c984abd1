"""Feeds with `wait`, through a whole gateway. What ends a wait is tested in test_waiting.py."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from gateway.http.routes import OPERATIONS, OWN_SERVICE
from gateway.http.waiting import WAITS_MAX
from testkit.gateways import GatewayHarness, Operator
from testkit.patience import PATIENCE_SECONDS
from testkit.raw_http import Api, Response
from testkit.stub_contexts import Contexts

FEEDS = [operation for operation in OPERATIONS if operation.kind == "feed" and operation.service != OWN_SERVICE]
PATH = FEEDS[0].route.path


@pytest.fixture(autouse=True)
def _behaving(contexts: Contexts) -> Iterator[None]:
    yield
    contexts.behaviours.clear()


async def end_of(api: Api, path: str, key: str) -> str:
    """The cursor behind the last record."""
    return str((await api.get(f"{path}?limit=200", key)).json["resume_cursor"])


async def asked(contexts: Contexts, times: int) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while len(contexts.seen) < times:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.01)


def is_empty(response: Response, cursor: str) -> bool:
    page = response.json
    return (page["data"], page["next_cursor"], page["resume_cursor"]) == ([], None, cursor)


@pytest.mark.parametrize("path", [operation.route.path for operation in FEEDS])
async def test_news_is_no_reason_to_wait_and_nothing_new_is_an_empty_page_at_last(
    api: Api, key: str, contexts: Contexts, path: str
) -> None:
    assert len((await api.get(f"{path}?wait=25", key)).json["data"]) == 50
    cursor = await end_of(api, path, key)
    contexts.seen.clear()
    response = await api.get(f"{path}?wait=1&cursor={cursor}", key)
    assert is_empty(response, cursor)
    assert 1 <= len(contexts.seen) <= 3
    assert len({context.request_id for context in contexts.seen}) == 1


async def test_newer_requests_of_the_key_end_the_oldest_one_of_its_path(api: Api, key: str, contexts: Contexts) -> None:
    cursor = await end_of(api, PATH, key)
    contexts.seen.clear()
    oldest = asyncio.ensure_future(api.get(f"{PATH}?wait=25&cursor={cursor}", key))
    await asked(contexts, 1)
    newer = [api.get(f"{PATH}?wait=8&cursor={cursor}&limit={limit}", key) for limit in range(1, WAITS_MAX + 1)]
    answers = await asyncio.gather(oldest, *newer)
    assert all(is_empty(answer, cursor) for answer in answers)
    assert [answer.header("Service-Wait") for answer in answers] == ["superseded"] + [None] * WAITS_MAX


async def test_a_key_that_is_revoked_meanwhile_learns_nothing(
    api: Api, company_id: int, operator: Operator, contexts: Contexts
) -> None:
    key_id, key = await operator.minted(company_id)
    cursor = await end_of(api, PATH, key)
    contexts.seen.clear()
    waiting = asyncio.ensure_future(api.get(f"{PATH}?wait=6&cursor={cursor}", key))
    await asked(contexts, 1)
    await operator.revoke(key_id)
    assert (await waiting).code == "key_revoked"


async def test_a_service_that_is_away_for_a_moment_ends_no_wait(api: Api, key: str, contexts: Contexts) -> None:
    cursor = await end_of(api, PATH, key)
    contexts.seen.clear()
    times = 0

    async def after_the_first(context: Any) -> None:
        nonlocal times
        times += 1
        if times > 1:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "away")

    contexts.behaviours[FEEDS[0].route.rpc] = after_the_first
    assert is_empty(await api.get(f"{PATH}?wait=5&cursor={cursor}", key), cursor)
    assert times > 1
    assert (await api.get(f"{PATH}?wait=2&cursor={cursor}", key)).status == 500


async def test_a_gateway_that_stops_answers_at_once(harness: GatewayHarness, operator: Operator) -> None:
    gateway = harness.gateway()
    gateway.start()
    await gateway.ready()
    api = Api(gateway.api_port)
    key = await operator.key(await operator.company())
    cursor = await end_of(api, PATH, key)
    harness.contexts.seen.clear()
    connection = await api.connect()
    await connection.send(api.bytes("GET", f"{PATH}?wait=25&cursor={cursor}", key))
    await asked(harness.contexts, 1)
    stopping = asyncio.ensure_future(gateway.stop())
    response = await connection.receive()
    assert is_empty(response, cursor) and response.header("Connection") == "close"
    assert await stopping == 0
