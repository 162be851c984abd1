"""Forks, event loops, errors and records that travel, and servers that fail, on real sockets."""

from __future__ import annotations

import asyncio
import copy
import json
import multiprocessing
import pickle
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest

from makeready_client import AsyncMakeready, Makeready, errors, exchange, models, pauses
from makeready_client.requests import Request

GETS = 50
TIMES = 3


class Server(ThreadingHTTPServer):
    """Answers each path with itself, or as `answer` says."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.base_url = f"http://127.0.0.1:{self.server_address[1]}/api/v1"
        self.paths: list[str] = []
        self.answer: Callable[[Handler, int], None] = Handler.echo


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self.server.paths.append(self.path)
        self.server.answer(self, len(self.server.paths))

    def echo(self, _number: int = 0) -> None:
        self.reply(200, {"path": self.path, "key": self.headers["Idempotency-Key"]})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.echo()

    def reply(self, status: int, document: object, **headers: str) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def mistaken(client: Makeready, name: str) -> list[str]:
    """What came instead of the answers to a process's own requests."""
    wrong = []
    for number in range(GETS):
        got = client.call(Request("GET", f"/{name}/{number}"), dict[str, str | None])
        if got["path"] != f"/api/v1/{name}/{number}":
            wrong.append(str(got))
        key = f"{name}-{number}"
        written = client.call(Request("POST", f"/{name}", body={}, idempotency_key=key), dict[str, str | None])
        if written["key"] != key:
            wrong.append(str(written))
    return wrong


def _in_child(client: Makeready, name: str, results: Any) -> None:
    results.put(mistaken(client, name))


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_forked_processes_get_the_answers_to_their_own_requests(server: Server) -> None:
    fork = multiprocessing.get_context("fork")
    with Makeready("k", base_url=server.base_url) as client:
        client.call(Request("GET", "/before"), dict[str, str | None])
        results = fork.Queue()
        children = [fork.Process(target=_in_child, args=(client, f"child{n}", results)) for n in range(TIMES)]
        for child in children:
            child.start()
        assert mistaken(client, "parent") == []
        assert [results.get(timeout=60) for _ in children] == [[]] * TIMES
        for child in children:
            child.join()


def _with_own_transport(client: Makeready, results: Any) -> None:
    try:
        client.call(Request("GET", "/x"), dict[str, str])
    except RuntimeError as error:
        results.put(str(error))


def test_a_transport_of_the_callers_is_not_shared_with_a_fork(server: Server) -> None:
    fork = multiprocessing.get_context("fork")
    with Makeready("k", base_url=server.base_url, transport=httpx.HTTPTransport()) as client:
        results = fork.Queue()
        child = fork.Process(target=_with_own_transport, args=(client, results))
        child.start()
        assert "make a client where you use it" in results.get(timeout=60)
        child.join()


def test_one_client_serves_one_event_loop_after_another(server: Server) -> None:
    client = AsyncMakeready("k", base_url=server.base_url)

    async def get(path: str) -> object:
        return await client.call(Request("GET", path), dict[str, str | None])

    for number in range(TIMES):
        assert asyncio.run(get(f"/{number}")) == {"path": f"/api/v1/{number}", "key": None}

    async def beside_another_loop() -> None:
        await get("/here")
        with pytest.raises(RuntimeError, match="make a client for each loop"):
            await asyncio.to_thread(asyncio.run, get("/there"))
        await client.close()

    asyncio.run(beside_another_loop())


def _missing() -> None:
    raise errors.NotFound(404, "not_found", "No such record.", request_id="r7", retry_after=3, param="id", doc_url="u")


def test_errors_travel() -> None:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as pool:
        error = pool.submit(_missing).exception(timeout=60)
    assert isinstance(error, errors.NotFound)
    copies = [error, copy.copy(error), copy.deepcopy(error), pickle.loads(pickle.dumps(error))]
    for copied in copies:
        details = (str(copied), copied.status, copied.code, copied.message, copied.request_id, copied.retry_after)
        text = "404 not_found: No such record. [r7]"
        assert details == (text, 404, "not_found", "No such record.", "r7", 3)
        assert (copied.param, copied.doc_url) == ("id", "u")


DATES = {"created_at": "2026-11-01T00:00:00Z", "expires_at": "2026-12-01T00:00:00Z"}


def test_records_travel_and_become_json(server: Server) -> None:
    document = {
        "company": {"id": 7, "name": "Alder", "timezone": "America/Denver", "mode": "live"},
        "key": {"id": 1, "name": "BI", "prefix": "mk_1", "scope": "read"} | DATES,
        "api_version": "v1",
    }
    server.answer = lambda handler, _: handler.reply(200, document, X_Request_Id="r9")
    with Makeready("k", base_url=server.base_url) as client:
        record = client.whoami()
    for same in (copy.copy(record), copy.deepcopy(record), pickle.loads(pickle.dumps(record))):
        assert same == record and same.request_id == "r9"
    assert isinstance(record, models.Whoami)
    assert json.loads(record.to_json()) == record.to_dict()
    assert record.to_dict()["company"] == document["company"] == record.company.to_dict()


def drip(handler: Handler, _number: int) -> None:
    """Sends a byte every tenth of a second, and no end."""
    handler.send_response(200)
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    try:
        for _ in range(600):
            handler.wfile.write(b" ")
            time.sleep(0.1)
    except OSError:
        pass


def drip_the_head(handler: Handler, _number: int) -> None:
    """Sends a header every tenth of a second, and no body."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    try:
        for number in range(600):
            handler.wfile.write(f"X-{number}: 1\r\n".encode())
            time.sleep(0.1)
    except OSError:
        pass


@pytest.mark.parametrize("answer", [drip, drip_the_head])
async def test_an_answer_that_drips_ends_with_the_deadline(
    server: Server, answer: Callable[[Handler, int], None]
) -> None:
    server.answer = answer
    with (
        Makeready("k", base_url=server.base_url, timeout=1) as client,  # short: the limit that is tried
        pytest.raises(errors.ConnectionFailed, match=r"not whole in time|timed out"),
    ):
        await asyncio.to_thread(client.call, Request("GET", "/x"), dict[str, str])
    limited = AsyncMakeready("k", base_url=server.base_url, timeout=1)  # short: the limit that is tried
    async with limited as client_with_coroutines:
        with pytest.raises(errors.ConnectionFailed, match=r"not whole in time|timed out"):
            await client_with_coroutines.call(Request("GET", "/x"), dict[str, str])
    assert len(server.paths) == 2


EMPTY: dict[str, Any] = {"data": [], "next_cursor": None, "resume_cursor": "c", "limit": 50, "positions": []}
EVENT = {
    "event_id": "e1",
    "event": "made.up",
    "occurred_at": "2026-03-01T00:00:00Z",
    "company_id": 1,
    "schema_version": 1,
    "data": {},
    "change": None,
}


def faults_then_an_event(handler: Handler, number: int) -> None:
    if number <= 4:
        handler.close_connection = True
        handler.connection.shutdown(socket.SHUT_RDWR)
    elif number <= 8:
        handler.reply(502, "a proxy")
    else:
        handler.reply(200, EMPTY | {"data": [EVENT], "positions": [1]})


async def test_following_outlasts_faults(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pauses, "PAUSE_SECONDS", 0.001)
    server.answer = faults_then_an_event
    retried: list[tuple[type[Exception], float]] = []

    def on_retry(error: Exception, seconds: float) -> None:
        retried.append((type(error), seconds))

    with Makeready("k", base_url=server.base_url, retries=0) as client:
        event = await asyncio.to_thread(lambda: next(iter(client.events.follow("c", on_retry=on_retry))))
    assert event.event_id == "e1"
    kinds = [errors.ConnectionFailed] * 4 + [errors.ApiError] * 4
    assert retried == [(kind, 0.001 * 2**number) for number, kind in enumerate(kinds)]
    server.paths.clear()
    retried.clear()
    async with AsyncMakeready("k", base_url=server.base_url, retries=0) as client_with_coroutines:
        async for event in client_with_coroutines.events.follow("c", on_retry=on_retry):
            assert event.event_id == "e1"
            break
    assert [kind for kind, _ in retried] == kinds


def test_a_follower_whose_waits_end_early_asks_less_and_less_often(
    server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(pauses, "PAUSE_SECONDS", 0.001)
    monkeypatch.setattr("makeready_client.following.time.sleep", slept.append)
    server.answer = lambda handler, number: (
        handler.reply(200, EMPTY, Service_Wait="superseded")
        if number < 15
        else handler.reply(200, EMPTY | {"data": [EVENT], "positions": [1]})
    )
    with Makeready("k", base_url=server.base_url) as client:
        next(iter(client.events.follow("c")))
    assert slept == [min(0.001 * 2**number, pauses.PAUSE_SECONDS_MAX) for number in range(14)]
    assert [record.getMessage() for record in caplog.records if record.name == "makeready_client"] == [
        "Other programs follow with this API key, more than may wait: each should have a key."
    ]


def test_a_certificate_that_is_refused_is_not_asked_for_again(server: Server) -> None:
    distrust = httpx.ConnectError("certificate verify failed")
    distrust.__cause__ = ssl.SSLCertVerificationError("self-signed")
    sent: list[httpx.Request] = []

    def refuse(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        raise distrust

    with (
        Makeready("k", base_url="https://h/api/v1", transport=httpx.MockTransport(refuse)) as client,
        pytest.raises(errors.ConnectionFailed),
    ):
        client.whoami()
    assert len(sent) == 1


def test_retries_outlast_a_release_of_the_api() -> None:
    steps = range(Makeready("k", base_url="https://h").settings.retries)
    longest = [min(exchange.BACKOFF_SECONDS * 2**number, exchange.BACKOFF_SECONDS_MAX) for number in steps]
    assert sum(longest) / 2 * 1.5 >= 29  # on average; a pause is a half to the whole of the longest
