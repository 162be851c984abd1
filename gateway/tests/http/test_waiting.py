"""Requests that wait for something new, over real sockets and a real NATS."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

import pytest
from prometheus_client import REGISTRY

from chassis.auth.clients import ServiceUnavailable
from chassis.http.connection_limits import ConnectionLimits
from chassis.http.port import Listening, Port
from chassis.http.replies import Reply, json
from chassis.http.requests import Request
from chassis.messaging.transport import Transport
from gateway.http import replies, waiting
from gateway.http.shared_limits import SharedLimits
from gateway.http.store import Store
from gateway.http.waiting import WAITS_MAX, Question, Waiting
from testkit.patience import PATIENCE_SECONDS
from testkit.plugin import Server
from testkit.processes import free_port
from testkit.raw_http import Api

SECONDS = 40.0  # a wait that something ends; shorter than the deadline of the client
HALF_SECOND = 0.5


class Service:
    """What is asked: `news` by company. A path is `/company/key/seconds`."""

    def __init__(self, waiting: Waiting) -> None:
        self.waiting = waiting
        self.news: dict[int, bytes] = {}
        self.asked: Counter[int] = Counter()
        self.is_away = False
        self.idle: list[float] = []

    async def __call__(self, request: Request) -> Reply:
        company_id, key, seconds = request.target()[0][1:].split("/")
        question = Question("svc-x", int(company_id), "", lambda: self._ask(int(company_id)), bool)
        awaited = await self.waiting.answer(request, f"{key}:/x", float(seconds), question)
        self.idle.append(request.idle_seconds)
        return json(b'["%b",%b]' % (awaited.answer, b"true" if awaited.is_superseded else b"false"))

    async def _ask(self, company_id: int) -> bytes:
        self.asked[company_id] += 1
        await asyncio.sleep(0.01)
        if self.is_away:
            raise ServiceUnavailable("svc-x")
        return self.news.get(company_id, b"")


@pytest.fixture
async def transport(nats_server: Server) -> AsyncIterator[Transport]:
    connection = Transport(nats_server.url, "gateway")
    running = asyncio.create_task(connection.run())
    await connection.connected()
    yield connection
    running.cancel()
    await connection.close()


@pytest.fixture
async def service(transport: Transport, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Service]:
    waits = Waiting(transport, SharedLimits(Store("memory://")))
    running = asyncio.create_task(waits.run())
    yield Service(waits)
    running.cancel()


@pytest.fixture
async def api(service: Service) -> AsyncIterator[Api]:
    port = Port(Listening("TEST_PORT", "127.0.0.1", free_port()), service, ConnectionLimits(), replies.ERRORS)
    await port.open()
    yield Api(port.number)
    await port.close()
    assert REGISTRY.get_sample_value("makeready_http_waiting_requests") == 0


async def begun(service: Service, company_id: int, times: int = 1) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while service.asked[company_id] < times:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.01)


async def test_news_is_answered_at_once_and_nothing_new_when_the_time_is_over(api: Api, service: Service) -> None:
    service.news[1] = b"news"
    assert (await api.get(f"//1/a/{SECONDS}")).json == ["news", False]
    assert (await api.get(f"//2/a/{HALF_SECOND}")).json == ["", False]
    assert service.idle[0] < 0.2 < service.idle[1]


async def test_a_hint_ends_the_wait_long_before_a_question_by_the_clock(
    api: Api, service: Service, transport: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "POLL_SECONDS", 1e9)
    answer = asyncio.ensure_future(api.get(f"//3/a/{SECONDS}"))
    await begun(service, 3)
    await asyncio.sleep(0.1)  # by then it listens
    for other in ("hints.svc-x.4.thing.1", "hints.svc-y.3.thing.1"):
        await transport.send(other)
    await asyncio.sleep(0.3)
    assert service.asked[3] == 1
    service.news[3] = b"hinted"
    await transport.send("hints.svc-x.3.thing.1")
    assert (await answer).json == ["hinted", False]
    assert service.asked[3] == 2


async def test_hints_without_news_do_not_make_a_question_each(
    api: Api, service: Service, transport: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "POLL_SECONDS", 1e9)
    answer = asyncio.ensure_future(api.get("//5/a/3"))
    await begun(service, 5)
    await asyncio.sleep(0.1)
    while not answer.done():
        await transport.send("hints.svc-x.5.thing.1")
        await asyncio.sleep(0.01)
    assert answer.result().json == ["", False]
    assert 2 <= service.asked[5] <= 1 + 3 / waiting.BETWEEN_SECONDS


async def test_without_hints_the_clock_finds_it_and_equal_questions_are_asked_once(api: Api, service: Service) -> None:
    answers = [asyncio.ensure_future(api.get(f"//6/{key}/{SECONDS}")) for key in range(20)]
    await begun(service, 6, 20)
    before = service.asked[6]
    service.news[6] = b"late"
    assert [response.json for response in await asyncio.gather(*answers)] == [["late", False]] * 20
    assert service.asked[6] - before <= 2  # not 20


async def test_eight_requests_of_a_key_wait_and_one_more_ends_the_oldest(api: Api, service: Service) -> None:
    oldest = asyncio.ensure_future(api.get(f"//7/a/{SECONDS}"))
    await begun(service, 7)
    newer = [asyncio.ensure_future(api.get(f"//7/a/{SECONDS}")) for _ in range(WAITS_MAX - 1)]
    of_another_key = asyncio.ensure_future(api.get(f"//7/b/{SECONDS}"))
    await begun(service, 7, WAITS_MAX + 1)
    assert not oldest.done()
    newest = asyncio.ensure_future(api.get(f"//7/a/{SECONDS}"))
    assert (await oldest).json == ["", True]
    still_waiting = [*newer, of_another_key, newest]
    assert not any(response.done() for response in still_waiting)
    service.news[7] = b"for all"
    assert [(await response).json for response in still_waiting] == [["for all", False]] * (WAITS_MAX + 1)


async def test_a_client_that_hangs_up_frees_everything(api: Api, service: Service) -> None:
    connection = await api.connect()
    await connection.send(api.bytes("GET", f"//8/a/{SECONDS}"))
    await begun(service, 8)
    connection.close()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while REGISTRY.get_sample_value("makeready_http_waiting_requests"):  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.02)
    assert not service.waiting._queues
    questions = service.asked[8]
    await asyncio.sleep(1.1)
    assert service.asked[8] == questions


async def test_a_wait_outlasts_a_service_that_is_away_for_a_moment(api: Api, service: Service) -> None:
    answer = asyncio.ensure_future(api.get(f"//9/a/{SECONDS}"))
    await begun(service, 9)
    await asyncio.sleep(0.05)
    service.is_away = True
    await begun(service, 9, 2)
    service.news[9] = b"back"
    service.is_away = False
    assert (await answer).json == ["back", False]


async def test_hints_are_heard_no_longer_than_a_while_after_the_last_request(
    api: Api, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "LOOK_SECONDS", 0.05)
    await api.get("//10/a/0.2")
    assert service.waiting._topics
    monkeypatch.setattr(waiting, "LINGER_SECONDS", 0.0)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while service.waiting._topics:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.05)
