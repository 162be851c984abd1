"""The clients' connections: they send what an Exchange says, and wait."""

from __future__ import annotations

import asyncio
import copy
import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Self, TypeVar

import httpx
import msgspec

from makeready_client import errors
from makeready_client.answers import Answer, Response
from makeready_client.events import decoded
from makeready_client.exchange import Allowance, Exchange, Settings
from makeready_client.models import Event
from makeready_client.requests import Request

T = TypeVar("T")
OWN_TRANSPORT = (
    "this client was made in another process or event loop, with a transport of yours whose connections cannot be "
    "shared: make a client where you use it"
)


def read(response: httpx.Response, kind: type[T]) -> T:
    """The answer in a response. Raises errors.ApiError if it is none of the API's."""
    answer = _decoded(response, lambda body: msgspec.json.decode(body, type=kind))
    if isinstance(answer, Answer):
        answer.__dict__["_response"] = Response(response.status_code, response.headers, response.content)
    return answer


def _decoded(response: httpx.Response, decode: Callable[[bytes], T]) -> T:
    try:
        return decode(response.content)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise errors.ApiError(response.status_code, "", f"An answer that this version cannot read: {error}") from error


class _Reading(threading.local):
    """What this thread reads."""

    deadline = float("inf")
    """The instant of the monotonic clock by which all must be there, however slowly its pieces come."""


_READING = _Reading()


def _read_until_the_deadline(event: str, details: dict[str, Any]) -> None:
    """Has each read of a new connection end with the deadline of the thread that reads: a hook of httpcore, which
    itself limits the single read alone, so that a head or a body that drips would take for ever."""
    if not event.endswith(("connect_tcp.complete", "start_tls.complete")):
        return
    stream = details["return_value"]
    read_of_stream = stream.read

    def read(max_bytes: int, timeout: float | None = None) -> bytes:
        remaining = _READING.deadline - time.monotonic()
        if remaining <= 0:
            raise httpx.ReadTimeout("the answer was not whole in time")
        read_bytes: bytes = read_of_stream(max_bytes, remaining if timeout is None else min(timeout, remaining))
        return read_bytes

    stream.read = read


class _Configured:
    """What both kinds of client have."""

    settings: Settings

    def __repr__(self) -> str:
        return f"{type(self).__name__}(base_url={self.settings.base_url!r})"

    def with_options(
        self, *, timeout: float | None = None, retries: int | None = None, headers: Mapping[str, str] | None = None
    ) -> Self:
        """The same client with other options, for some calls: `client.with_options(timeout=5).tickets.get(17)`.

        It shares the connections and the rate limit. headers: sent besides the client's own.
        """
        client = copy.copy(self)
        client.settings = self.settings.changed(timeout, retries, headers)
        return client


class _Connections:
    """The connections of a process."""

    def __init__(self, transport: httpx.BaseTransport | None, allowance: Allowance) -> None:
        self._has_transport = transport is not None
        self._allowance = allowance
        self._http = httpx.Client(transport=transport)
        self._process_id = os.getpid()

    def http(self) -> httpx.Client:
        """Those of this process. Raises RuntimeError in a fork, if the transport is the caller's."""
        if os.getpid() != self._process_id:
            # Answers to the parent's requests would come here, and the other way round.
            if self._has_transport:
                raise RuntimeError(OWN_TRANSPORT)
            self._allowance.forget()
            self._http, self._process_id = httpx.Client(), os.getpid()
        return self._http

    def close(self) -> None:
        self._http.close()


class Core(_Configured):
    """Sends requests and waits for the answers. Threads may share it; a fork gets connections of its own."""

    def __init__(self, settings: Settings, transport: httpx.BaseTransport | None) -> None:
        self.settings = settings
        self._connections = _Connections(transport, settings.allowance)

    def call(self, request: Request, kind: type[T]) -> T:
        """The answer to a request. Raises errors.ApiError or errors.ConnectionFailed."""
        return read(self.respond(request), kind)

    def event(self, request: Request) -> Event:
        """The event that a request is answered with. Raises as `call`."""
        return _decoded(self.respond(request), decoded)

    def respond(self, request: Request, *, is_stream: bool = False) -> httpx.Response:
        """The response; with its body, unless that is a stream. Raises as `call`."""
        http = self._connections.http()
        steps = Exchange(self.settings, request).steps()
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
            step.extensions["trace"] = _read_until_the_deadline
            _READING.deadline = step.extensions["deadline"]
            try:
                outcome = http.send(step, stream=True)
                if not (is_stream and outcome.is_success):
                    outcome.read()
            except httpx.RequestError as error:
                outcome = error
            finally:
                _READING.deadline = _Reading.deadline

    def close(self) -> None:
        """Closes the connections."""
        self._connections.close()


class _AsyncConnections:
    """The connections of a process and an event loop."""

    def __init__(self, transport: httpx.AsyncBaseTransport | None, allowance: Allowance) -> None:
        self._has_transport = transport is not None
        self._allowance = allowance
        self._http = httpx.AsyncClient(transport=transport)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process_id = os.getpid()

    def http(self) -> httpx.AsyncClient:
        """Those of this process and loop.

        Raises RuntimeError where another loop uses them, and in another process or loop if the transport is the
        caller's.
        """
        loop, is_forked = asyncio.get_running_loop(), os.getpid() != self._process_id
        if not is_forked and self._loop in (None, loop):
            self._loop = loop
            return self._http
        if not is_forked and self._loop is not None and not self._loop.is_closed():
            raise RuntimeError("this client is in use in another event loop: make a client for each loop")
        if self._has_transport:
            raise RuntimeError(OWN_TRANSPORT)
        if is_forked:
            self._allowance.forget()
        self._http, self._loop, self._process_id = httpx.AsyncClient(), loop, os.getpid()
        return self._http

    async def close(self) -> None:
        await self._http.aclose()


class AsyncCore(_Configured):
    """As Core, with coroutines. It serves one event loop after another, and one at a time."""

    def __init__(self, settings: Settings, transport: httpx.AsyncBaseTransport | None) -> None:
        self.settings = settings
        self._connections = _AsyncConnections(transport, settings.allowance)

    async def call(self, request: Request, kind: type[T]) -> T:
        """The answer to a request. Raises errors.ApiError or errors.ConnectionFailed."""
        return read(await self.respond(request), kind)

    async def event(self, request: Request) -> Event:
        """As `Core.event`."""
        return _decoded(await self.respond(request), decoded)

    async def respond(self, request: Request, *, is_stream: bool = False) -> httpx.Response:
        """The response; with its body, unless that is a stream. Raises as `call`."""
        http = self._connections.http()
        steps = Exchange(self.settings, request).steps()
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
        await self._connections.close()


class Resource:
    """Operations of one resource."""

    def __init__(self, client: Core) -> None:
        self.client = client


class AsyncResource:
    """Operations of one resource, with coroutines."""

    def __init__(self, client: AsyncCore) -> None:
        self.client = client
