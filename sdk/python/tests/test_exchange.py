"""Which answers are repeated, when, and with what; a clock of the test's own, and nothing is sent."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from makeready_client import AsyncMakeready, Attempt, Makeready, errors
from makeready_client import exchange as exchanges
from makeready_client.exchange import Exchange as Steps
from makeready_client.exchange import Settings
from makeready_client.requests import Request, path

CREATE = Request("POST", "/tickets", body={"title": "Tap", "note": None})
READ = Request("GET", "/tickets/1")
Answer = httpx.Response | httpx.RequestError


class Clock:
    """Seconds that pass only where the library waits."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock_of_test = Clock()
    monkeypatch.setattr(exchanges, "time", clock_of_test)
    return clock_of_test


class Exchange:
    """One exchange with answers that the test gives; what was sent, and how long was waited before each."""

    def __init__(self, settings: Settings, request: Request, clock: Clock, answers: list[Answer]) -> None:
        self.sent: list[httpx.Request] = []
        self.pauses: list[float] = []
        self.failure: errors.MakereadyError | None = None
        self.response: httpx.Response | None = None
        pause = 0.0
        steps = Steps(settings, request).steps()
        try:
            step = next(steps)
            while True:
                if isinstance(step, float):
                    clock.now += step
                    pause += step
                    step = steps.send(None)
                else:
                    self.sent.append(step)
                    self.pauses.append(pause)
                    pause = 0.0
                    step = steps.send(answers.pop(0))
        except StopIteration as done:
            self.response = done.value
        except errors.MakereadyError as failure:
            self.failure = failure
        assert not answers, "not all were asked for"


@pytest.fixture
def exchange(clock: Clock) -> Callable[..., Exchange]:
    def made(request: Request, *answers: Answer, **options: Any) -> Exchange:
        settings: dict[str, Any] = {"timeout": 100.0, "retries": 4} | options
        return Exchange(Settings("mk_key", "https://host/api/v1", **settings), request, clock, list(answers))

    return made


def ok() -> httpx.Response:
    return httpx.Response(200, json={})


def refused(status: int, code: str, **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(status, json={"error": {"code": code, "message": "No."}}, headers=named)


RETRIED = [
    refused(429, "rate_limited", Retry_After="3"),
    refused(500, "internal_error"),
    refused(503, "vault_unavailable"),
    refused(409, "idempotency_in_progress"),
    httpx.Response(502, text="a proxy"),
    httpx.Response(503, text="a proxy"),
    httpx.Response(504, text="a proxy"),
    httpx.ConnectError("refused"),
    httpx.ReadTimeout("late"),
    httpx.RemoteProtocolError("broke off"),
]


@pytest.mark.parametrize("answer", RETRIED, ids=repr)
def test_what_may_pass_is_repeated_with_the_same_key(exchange: Callable[..., Exchange], answer: Answer) -> None:
    done = exchange(CREATE, answer, ok())
    assert done.response is not None
    keys = {request.headers["Idempotency-Key"] for request in done.sent}
    assert len(done.sent) == 2 and len(keys) == 1 and keys != {""}
    assert {request.content for request in done.sent} == {b'{"title":"Tap"}'}


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "invalid_request"),
        (401, "key_revoked"),
        (403, "insufficient_scope"),
        (404, "not_found"),
        (405, "method_not_allowed"),
        (409, "idempotency_mismatch"),
        (410, "cursor_expired"),
        (422, "events_empty"),
        (501, "what_is_this"),
    ],
)
def test_nothing_else_is_repeated(exchange: Callable[..., Exchange], status: int, code: str) -> None:
    done = exchange(CREATE, refused(status, code, X_Request_Id="r7"))
    assert len(done.sent) == 1
    assert isinstance(done.failure, errors.ApiError)
    assert type(done.failure) is errors.BY_CODE.get(code, errors.ApiError)
    assert (done.failure.status, done.failure.code, done.failure.request_id) == (status, code, "r7")


def test_a_fault_is_repeated_once(exchange: Callable[..., Exchange]) -> None:
    done = exchange(READ, refused(500, "internal_error"), refused(500, "internal_error"))
    assert isinstance(done.failure, errors.InternalError)


def test_retries_end(exchange: Callable[..., Exchange]) -> None:
    done = exchange(READ, *[httpx.ConnectError("refused") for _ in range(5)])
    assert isinstance(done.failure, errors.ConnectionFailed)
    assert len(exchange(READ, httpx.ConnectError("refused"), retries=0).sent) == 1
    assert len(exchange(READ, refused(429, "rate_limited", Retry_After="1"), retries=0).sent) == 1


def test_backoff_is_a_half_to_the_whole_of_twice_the_last(exchange: Callable[..., Exchange]) -> None:
    seen = [exchange(READ, *[httpx.ConnectError("refused") for _ in range(5)]).pauses for _ in range(200)]
    for number, most in enumerate((0.0, 0.5, 1.0, 2.0, 4.0)):
        waited = [pauses[number] for pauses in seen]
        assert most / 2 <= min(waited) <= max(waited) <= most
        assert (min(waited) < most * 0.6 and max(waited) > most * 0.9) or not most


def test_retry_after_is_kept_and_costs_no_retry(exchange: Callable[..., Exchange]) -> None:
    done = exchange(READ, *[refused(429, "rate_limited", Retry_After="3") for _ in range(6)], ok())
    assert done.response is not None
    assert all(pause >= 3 for pause in done.pauses[1:])


def test_one_deadline_for_all(exchange: Callable[..., Exchange], clock: Clock) -> None:
    done = exchange(READ, refused(429, "rate_limited", Retry_After="3"), refused(429, "rate_limited", Retry_After="98"))
    assert isinstance(done.failure, errors.RateLimited) and done.failure.retry_after == 98
    assert clock.now < 1005, "it waited in vain"
    (first, second) = [request.extensions["timeout"]["read"] for request in done.sent]
    assert first == exchanges.ANSWER_SECONDS and second <= first
    waiting = Request("GET", "/events", query={"wait": 25})
    assert exchange(waiting, ok()).sent[0].extensions["timeout"]["read"] == exchanges.ANSWER_SECONDS + 25


def test_it_waits_before_the_limit_is_hit(clock: Clock) -> None:
    settings = Settings("mk_key", "https://host/api/v1", 100.0, 4)
    remaining = httpx.Response(200, json={}, headers={"RateLimit": '"key";r=2;t=40'})
    none = httpx.Response(200, json={}, headers={"RateLimit": '"key";r=0;t=40'})
    assert not settings.allowance.is_short()
    assert Exchange(settings, READ, clock, [remaining]).pauses == [0]
    assert settings.allowance.is_short()
    assert Exchange(settings, READ, clock, [none]).pauses == [0]
    waited = Exchange(settings, READ, clock, [none])
    assert waited.pauses == [40]
    # Beyond the deadline it fails at once, without a request.
    settings.timeout = 10
    failed = Exchange(settings, READ, clock, [])
    assert isinstance(failed.failure, errors.RateLimited) and not failed.sent


def test_a_deletion_that_had_its_effect_is_no_error(exchange: Callable[..., Exchange]) -> None:
    delete = Request("DELETE", "/webhooks/1")
    gone = refused(404, "not_found")
    assert exchange(delete, httpx.ReadError("lost"), gone).response is gone
    assert isinstance(exchange(delete, gone).failure, errors.NotFound)
    assert isinstance(exchange(READ, httpx.ReadError("lost"), gone).failure, errors.NotFound)


def test_an_answer_of_something_else_is_told_apart(exchange: Callable[..., Exchange]) -> None:
    done = exchange(READ, httpx.Response(404, text="<html>"))
    assert type(done.failure) is errors.ApiError and done.failure.code == ""
    assert "is base_url right?" in str(done.failure)
    behind_a_proxy = exchange(READ, httpx.Response(502, text="<html>"), retries=0)
    assert "a proxy did not reach the API at https://host/api/v1" in str(behind_a_proxy.failure)


class Unsteady:
    """An API that a client does not reach the first time."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.keys.append(request.headers["Idempotency-Key"])
        if len(self.keys) % 2:
            raise httpx.ConnectError("refused")
        return httpx.Response(200, json={"ok": True})


async def test_both_clients_repeat_what_was_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchanges, "BACKOFF_SECONDS", 0.0)
    api = Unsteady()
    with Makeready("k", base_url="https://h", transport=httpx.MockTransport(api)) as client:
        assert client.call(CREATE, dict[str, bool]) == {"ok": True}
    async with AsyncMakeready("k", base_url="https://h", transport=httpx.MockTransport(api)) as twin:
        assert await twin.call(CREATE, dict[str, bool]) == {"ok": True}
    assert [len(set(api.keys[:2])), len(set(api.keys[2:])), len(set(api.keys))] == [1, 1, 2]


def test_what_cannot_be_sent_is_refused_here() -> None:
    for settings in ({"api_key": "a b"}, {"api_key": ""}, {"base_url": "host/api"}, {"timeout": 0}, {"retries": -1}):
        arguments: dict[str, Any] = {"api_key": "k", "base_url": "https://h", "timeout": 1.0, "retries": 0}
        with pytest.raises(ValueError, match="must be"):
            Settings(**arguments | settings)
    assert path("/webhooks/{sub_id}/deliveries/{event_id}", 1, "a/b?") == "/webhooks/1/deliveries/a%2Fb%3F"
    for entity_id in ("", ".", "..", None):
        with pytest.raises(ValueError, match="no id"):
            path("/tickets/{ticket_id}", entity_id)  # type: ignore[arg-type]


@pytest.mark.parametrize("key", ["", " ", "é", "x" * 65, "a\nb"])
def test_a_key_of_a_write_that_cannot_be_sent_never_becomes_another(
    exchange: Callable[..., Exchange], key: str
) -> None:
    with pytest.raises(ValueError, match="idempotency_key must be"):
        exchange(Request("POST", "/tickets", body={"title": "Tap"}, idempotency_key=key))


def test_a_wrong_address_is_told(clock: Clock) -> None:
    redirected = httpx.Response(307, headers={"Location": "/sign-in"})
    exchange = Exchange(Settings("k\n", "https://h:81/api/v1/", 100.0, 4), READ, clock, [redirected])
    assert all(phrase in str(exchange.failure) for phrase in ("307", "/sign-in", "https://h:81/api/v1"))
    at_root = Exchange(Settings("k", "https://h", 100.0, 4), READ, clock, [refused(404, "not_found")])
    assert "base_url is https://h; most end with /api/v1" in str(at_root.failure)
    refusal = Exchange(Settings("k", "https://h/api/v1", 100.0, 4), READ, clock, [refused(404, "not_found")]).failure
    assert "base_url" not in str(refusal)


def test_what_is_printed_of_a_client_has_no_key() -> None:
    with Makeready("mk_secret", base_url="https://h/api/v1") as client:
        assert repr(client) == "Makeready(base_url='https://h/api/v1')"
        assert "mk_secret" not in repr(client.settings)
        assert repr(client.units.list()) == "<GET /units: iterate over it, or take a page()>"


class Transport(httpx.BaseTransport):
    closed = False

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize(
    ("error", "closes"), [(ValueError, True), (KeyError, True), (KeyboardInterrupt, False), (SystemExit, False)]
)
def test_connections_are_closed_except_where_a_signal_may_have_come(error: type[BaseException], closes: bool) -> None:
    transport = Transport()
    with pytest.raises(error), Makeready("mk_key", base_url="https://host/api/v1", transport=transport):
        raise error
    assert transport.closed == closes


def test_options_of_some_calls_share_the_connections_and_the_limit() -> None:
    sent: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(200, json={"ok": True}, headers={"RateLimit": '"key";r=7;t=60'})

    with Makeready(
        "mk_key", base_url="https://h", transport=httpx.MockTransport(answer), headers={"X-Team": "bi"}
    ) as client:
        hurried = client.with_options(
            timeout=2, retries=0, headers={"X-Run": "9", "authorization": "none", "x-team": "ops"}
        )  # short: nothing waits
        assert isinstance(hurried, Makeready)
        hurried.call(READ, dict[str, bool])
        client.call(READ, dict[str, bool])
    first, second = sent
    assert (first.headers["X-Team"], first.headers["X-Run"], first.headers["Authorization"]) == (
        "ops",
        "9",
        "Bearer mk_key",
    )
    assert first.extensions["timeout"]["read"] <= 2 < second.extensions["timeout"]["read"]
    assert second.headers["X-Team"] == "bi" and "X-Run" not in second.headers
    assert client.settings.allowance is hurried.settings.allowance
    with pytest.raises(ValueError, match="timeout must be"):
        client.with_options(timeout=0)  # short: nothing waits


@pytest.fixture
def _quiet_afterwards() -> Iterator[None]:
    yield
    exchanges.log.setLevel(logging.NOTSET)
    exchanges.log.handlers.clear()


@pytest.mark.usefixtures("_quiet_afterwards")
def test_each_request_is_told_to_the_hook_and_the_log_and_never_the_key(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(exchanges, "BACKOFF_SECONDS", 0.0)
    monkeypatch.setenv("MAKEREADY_LOG", "debug")
    attempts: list[Attempt] = []
    answers: list[Answer] = [
        httpx.ConnectError("refused"),
        refused(503, "vault_unavailable", X_Request_Id="r1"),
        httpx.Response(200, json={"ok": True}, headers={"X-Request-Id": "r2", "RateLimit": '"key";r=7;t=60'}),
    ]

    def answer(request: httpx.Request) -> httpx.Response:
        outcome = answers.pop(0)
        if isinstance(outcome, httpx.RequestError):
            raise outcome
        return outcome

    with Makeready(
        "mk_secret", base_url="https://h", transport=httpx.MockTransport(answer), on_response=attempts.append
    ) as client:
        client.call(CREATE, dict[str, bool])
    assert [(request.status, request.request_id, request.number, request.remaining) for request in attempts] == [
        (None, None, 1, None),
        (503, "r1", 2, None),
        (200, "r2", 3, 7),
    ]
    assert {(request.method, request.path, request.seconds >= 0) for request in attempts} == {
        ("POST", "/tickets", True)
    }
    lines = [record.getMessage() for record in caplog.records if record.name == "makeready_client"]
    assert [line.partition(" in ")[0] for line in lines] == [
        "POST /tickets: ConnectError: refused",
        "POST /tickets: 503",
        "POST /tickets: 200",
    ]
    assert "mk_secret" not in caplog.text
    monkeypatch.setenv("MAKEREADY_LOG", "loud")
    with pytest.raises(ValueError, match="MAKEREADY_LOG must be"):
        Makeready("k", base_url="https://h")


def test_a_record_has_the_response_that_brought_it() -> None:
    body = b'{"api_version":"v1","company":{"id":1,"name":"A","timezone":"UTC","mode":"live"},'
    body += b'"key":{"id":1,"name":"B","prefix":"mk","scope":"read",'
    body += b'"created_at":"2026-11-01T00:00:00Z","expires_at":null}}'
    answer = httpx.Response(200, content=body, headers={"X-Request-Id": "r3"})
    transport = httpx.MockTransport(lambda _: answer)
    with Makeready("k", base_url="https://h", transport=transport) as client:
        caller = client.whoami()
    assert caller.response is not None
    assert (caller.response.status, caller.response.body, caller.response.headers["x-request-id"]) == (200, body, "r3")
    assert caller.request_id == "r3" and not caller.replayed and caller.company.name == "A"


def test_an_error_has_the_field_and_the_page_that_the_headers_name(exchange: Callable[..., Exchange]) -> None:
    page = "/docs/api/errors#invalid_request"
    links = f'<{page}>; rel="help"'
    failure = exchange(CREATE, refused(422, "invalid_request", Service_Error_Param="title", Link=links)).failure
    assert isinstance(failure, errors.InvalidRequest) and failure.param == "title"
    assert failure.doc_url == f"https://host{page}"
    bare = exchange(CREATE, refused(422, "invalid_request", Link="<https://host/>; rel=next")).failure
    assert isinstance(bare, errors.InvalidRequest) and (bare.param, bare.doc_url) == (None, None)
