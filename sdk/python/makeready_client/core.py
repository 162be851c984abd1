"""Requests as they are sent: keys, retries, the deadline and the rate limit; once, for both kinds of client.

`exchange` is a generator: it yields seconds to sleep or a request to send, and gets the response or the error. The
clients only sleep and send, each in its own way.
"""

from __future__ import annotations

import asyncio
import os
import platform
import random
import re
import ssl
import threading
import time
import uuid
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

import httpx
import msgspec

from makeready_client import errors
from makeready_client.answers import Answer
from makeready_client.refusals import GATEWAY_FAULTS, error_of
from makeready_client.requests import Request

T = TypeVar("T")
__version__ = "0.2.0"
CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 35.0  # the slowest operation waits 30 s for a receiver of webhooks
# With the default of 8 retries they last 20 to 40 seconds: longer than a release or a restart of the API.
BACKOFF_SECONDS, BACKOFF_SECONDS_MAX = 0.5, 8.0
# Repeating these sends cannot change what they fail with.
NEVER_RETRIED = (httpx.UnsupportedProtocol, httpx.LocalProtocolError, httpx.TooManyRedirects)
REQUESTS_A_MINUTE = 120
OWN_TRANSPORT = (
    "this client was made in another process or event loop, with a transport of yours whose connections cannot be "
    "shared: make a client where you use it"
)
IDEMPOTENCY_KEY = re.compile("[!-~](?:[ -~]{0,62}[!-~])?")
LIMIT = re.compile(r";\s*r=(\d+)\s*;\s*t=(\d+)")
Steps = Generator["float | httpx.Request", "httpx.Response | httpx.RequestError | None", httpx.Response]


@dataclass
class Allowance:
    """What is left of the key's requests, by the last answer. Shared by all threads of a client."""

    remaining: int | None = None
    """None until an answer has said it."""
    resets_at: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, now: float) -> float:
        """Takes one request: 0, or the seconds to wait before asking again."""
        with self.lock:
            if self.remaining:
                self.remaining -= 1
            elif self.remaining == 0:
                if now < self.resets_at:
                    return self.resets_at - now
                # The window has moved on by one request at least; its answer tells how many more.
                self.resets_at = now + 1
            return 0.0

    def is_short(self) -> bool:
        """Whether fewer than half of a minute's requests are left."""
        return self.remaining is not None and self.remaining < REQUESTS_A_MINUTE / 2

    def note(self, header: str, now: float) -> None:
        """header: RateLimit, such as `"key";r=119;t=60`."""
        if found := LIMIT.search(header):
            with self.lock:
                self.remaining, self.resets_at = int(found[1]), now + int(found[2])


class Settings:
    """What a client was made with, and its base address."""

    def __init__(self, api_key: str, base_url: str, timeout: float, retries: int) -> None:
        api_key = api_key.strip()  # a key that was read from a file ends with a newline
        if not re.fullmatch("[!-~]+", api_key):
            raise ValueError("api_key must be printable ASCII without blanks; it is empty or has other characters")
        if not re.fullmatch(r"https?://[^/?#\s]+(/[^?#\s]*)?", base_url):
            raise ValueError("base_url must be like https://makeready.example/api/v1")
        if timeout <= 0 or retries < 0:
            raise ValueError("timeout must be more than 0 seconds, retries 0 or more")
        self.base_url = base_url.rstrip("/")
        self.timeout = timeout
        self.retries = retries
        self.allowance = Allowance()
        self.headers = {
            "Authorization": f"Bearer {api_key}",
            "User-Agent": f"makeready-client/{__version__} python/{platform.python_version()}",
        }

    def __repr__(self) -> str:
        return f"Settings(base_url={self.base_url!r})"  # without the key: it would end in logs

    def exchange(self, request: Request) -> Steps:
        """The response to a request, after all its retries. Raises errors.ApiError or errors.ConnectionFailed.

        Retried are 429 (after Retry-After), 503, 500 (once), 409 idempotency_in_progress, lost connections (section 7
        of the API's specification), and 502 and 504, which only proxies answer.
        """
        deadline = time.monotonic() + self.timeout + request.wait_seconds
        content = request.content()
        headers = self.headers if content is None else self.headers | _headers_of_write(request)
        tried, faults, may_have_happened = 0, 0, False
        while True:
            while (pause := self.allowance.take(time.monotonic())) > 0:
                if time.monotonic() + pause > deadline:
                    raise errors.RateLimited(
                        429, "rate_limited", "Not sent: no request is left before the deadline.", retry_after=pause
                    )
                yield pause
            left = max(deadline - time.monotonic(), 0.001)
            limit = httpx.Timeout(min(ANSWER_SECONDS + request.wait_seconds, left), connect=min(CONNECT_SECONDS, left))
            got = yield httpx.Request(
                request.method,
                self.base_url + request.path,
                params=request.parameters(),
                headers=headers,
                content=content,
                extensions={"timeout": limit.as_dict(), "deadline": deadline},
            )
            assert got is not None
            failure: errors.MakereadyError
            if isinstance(got, httpx.Response):
                self.allowance.note(got.headers.get("RateLimit", ""), time.monotonic())
                if got.is_success or (request.method == "DELETE" and may_have_happened and got.status_code == 404):
                    return got
                failure = error_of(got, self.base_url)
                faults += got.status_code == 500
                is_retried = (
                    got.status_code == 429
                    or got.status_code in GATEWAY_FAULTS
                    or (got.status_code == 500 and faults == 1)
                    or isinstance(failure, errors.IdempotencyInProgress)
                )
                may_have_happened |= got.status_code in (500, 502, 504)
            else:
                failure = errors.ConnectionFailed(f"{request.method} {self.base_url}{request.path}: {words_of(got)}")
                failure.__cause__ = got
                is_retried = not isinstance(got, NEVER_RETRIED) and not _is_distrust(got)
                may_have_happened = True
            longest = min(BACKOFF_SECONDS * 2**tried, BACKOFF_SECONDS_MAX)
            pause = random.uniform(longest / 2, longest)  # noqa: S311 - no secret
            if isinstance(failure, errors.ApiError) and failure.retry_after is not None:
                pause += failure.retry_after
            # The API says when a refused request may come again, so those do not use up the retries.
            is_limited = self.retries > 0 and isinstance(failure, errors.RateLimited)
            if not is_retried or (tried == self.retries and not is_limited) or time.monotonic() + pause > deadline:
                raise failure
            tried += not is_limited
            yield pause


def _headers_of_write(request: Request) -> dict[str, str]:
    key = str(uuid.uuid4()) if request.idempotency_key is None else request.idempotency_key
    if not IDEMPOTENCY_KEY.fullmatch(key):  # an empty one must not become a new one each time
        raise ValueError("idempotency_key must be 1 to 64 characters of printable ASCII")
    return {"Content-Type": "application/json", "Idempotency-Key": key}


def _is_distrust(error: BaseException | None) -> bool:
    """Whether the server's certificate was refused, which the next attempt would do again."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False


def words_of(error: httpx.RequestError) -> str:
    """An error of the network, in words."""
    return f"{type(error).__name__}: {error}".removesuffix(": ")


def read(response: httpx.Response, kind: type[T]) -> T:
    """The answer in a response. Raises errors.ApiError if it is none of the API's."""
    try:
        answer = msgspec.json.decode(response.content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise errors.ApiError(response.status_code, "", f"An answer that this version cannot read: {error}") from error
    if isinstance(answer, Answer):
        answer.__dict__["_request_id"] = response.headers.get("X-Request-Id")
        answer.__dict__["_replayed"] = response.headers.get("X-Idempotent-Replay") == "1"
        answer.__dict__["_superseded"] = response.headers.get("Service-Wait") == "superseded"
    return answer


class _UntilDeadline(httpx.SyncByteStream):
    """A body that must be there by an instant of the monotonic clock, however slowly its pieces come."""

    def __init__(self, stream: httpx.SyncByteStream, deadline: float) -> None:
        self._stream = stream
        self._deadline = deadline

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._stream:
            if time.monotonic() > self._deadline:
                raise httpx.ReadTimeout("the answer was not whole in time")
            yield chunk

    def close(self) -> None:
        self._stream.close()


class Core:
    """Sends requests and waits for the answers. Threads may share it; a fork gets connections of its own."""

    def __init__(self, settings: Settings, transport: httpx.BaseTransport | None) -> None:
        self.settings = settings
        self._has_transport = transport is not None
        self._connections = httpx.Client(transport=transport)
        self._process_id = os.getpid()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(base_url={self.settings.base_url!r})"

    def _http(self) -> httpx.Client:
        if os.getpid() != self._process_id:
            # Answers to the parent's requests would come here, and the other way round.
            if self._has_transport:
                raise RuntimeError(OWN_TRANSPORT)
            self.settings.allowance = Allowance()  # another thread may have held its lock
            self._connections, self._process_id = httpx.Client(), os.getpid()
        return self._connections

    def call(self, request: Request, kind: type[T]) -> T:
        """The answer to a request. Raises errors.ApiError or errors.ConnectionFailed."""
        return read(self.respond(request), kind)

    def respond(self, request: Request, *, is_stream: bool = False) -> httpx.Response:
        """The response; with its body, unless that is a stream. Raises as `call`."""
        http = self._http()
        steps = self.settings.exchange(request)
        outcome: httpx.Response | httpx.RequestError | None = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as done:
                response: httpx.Response = done.value
                return response
            outcome = None
            if isinstance(step, float):
                time.sleep(step)
                continue
            try:
                outcome = http.send(step, stream=True)
                if not (is_stream and outcome.is_success):
                    assert isinstance(outcome.stream, httpx.SyncByteStream)
                    outcome.stream = _UntilDeadline(outcome.stream, step.extensions["deadline"])
                    outcome.read()
            except httpx.RequestError as error:
                outcome = error

    def close(self) -> None:
        """Closes the connections."""
        self._connections.close()


class AsyncCore:
    """As Core, with coroutines. It serves one event loop after another, and one at a time."""

    def __init__(self, settings: Settings, transport: httpx.AsyncBaseTransport | None) -> None:
        self.settings = settings
        self._has_transport = transport is not None
        self._connections = httpx.AsyncClient(transport=transport)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process_id = os.getpid()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(base_url={self.settings.base_url!r})"

    def _http(self) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        is_forked = os.getpid() != self._process_id
        if not is_forked and self._loop in (None, loop):
            self._loop = loop
            return self._connections
        assert self._loop is not None or is_forked
        if not is_forked and self._loop is not None and not self._loop.is_closed():
            raise RuntimeError("this client is in use in another event loop: make a client for each loop")
        if self._has_transport:
            raise RuntimeError(OWN_TRANSPORT)
        # The connections of a closed loop, or of the process that forked, cannot be used here.
        self.settings.allowance = Allowance()
        self._connections, self._loop, self._process_id = httpx.AsyncClient(), loop, os.getpid()
        return self._connections

    async def call(self, request: Request, kind: type[T]) -> T:
        """The answer to a request. Raises errors.ApiError or errors.ConnectionFailed."""
        return read(await self.respond(request), kind)

    async def respond(self, request: Request, *, is_stream: bool = False) -> httpx.Response:
        """The response; with its body, unless that is a stream. Raises as `call`."""
        http = self._http()
        steps = self.settings.exchange(request)
        outcome: httpx.Response | httpx.RequestError | None = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as done:
                response: httpx.Response = done.value
                return response
            outcome = None
            if isinstance(step, float):
                await asyncio.sleep(step)
                continue
            try:
                async with asyncio.timeout(step.extensions["deadline"] - time.monotonic()):
                    outcome = await http.send(step, stream=True)
                    if not (is_stream and outcome.is_success):
                        await outcome.aread()
            except TimeoutError:
                outcome = httpx.ReadTimeout("the answer was not whole in time", request=step)
            except httpx.RequestError as error:
                outcome = error

    async def close(self) -> None:
        """Closes the connections."""
        await self._connections.aclose()


class Resource:
    """Operations of one resource."""

    def __init__(self, client: Core) -> None:
        self.client = client


class AsyncResource:
    """Operations of one resource, with coroutines."""

    def __init__(self, client: AsyncCore) -> None:
        self.client = client
