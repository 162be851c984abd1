"""The one way out: resolves a destination, refuses what is not public, dials what was checked, sends.

`check` (when a subscription is created) and `post` (when a delivery is sent) share `_endpoints`, so an
address that validation refuses can't be dialled, and the address dialled is the very one that was
checked: the request goes to the address, the name only to Host, SNI and the certificate. A kept
connection is keyed by (address, port, name); it serves a send only if that send's own resolution
brought its address and found it public.
"""

import asyncio
import functools
import socket
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_address
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple, Self

import aiohttp
from aiohttp.client_proto import ResponseHandler
from yarl import URL

from svc_webhooks.destinations import Address, Destination, DestinationRefused, is_public, parse

PORT = 443
DEADLINE_SECONDS = 10.0
RESOLVE_SECONDS_MAX = 5.0
CONNECT_SECONDS_MAX = 3.0  # for an address that has alternatives
EXCERPT_BYTES_MAX = 4096
DRAIN_BYTES_MAX = 65536  # beyond it a connection is dropped, not read to its end and kept
RESOLUTION_SECONDS_KEPT = 5.0
RESOLUTIONS_KEPT_MAX = 4096
RESOLVER_THREADS_MAX = 32

Resolve = Callable[[str], Awaitable[Sequence[str]]]


class NoAddress(Exception):  # noqa: N818 - the receiver's fault
    """The name does not exist or has no address."""


class ResolverFault(Exception):  # noqa: N818 - says whose fault it is
    """The resolver did not answer; nothing is known about the name."""


class Endpoint(NamedTuple):
    """A checked address, or the operator's."""

    address: Address
    port: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one attempt."""

    status: int | None  # the receiver's, where one arrived
    error: str  # class of the failure; empty after a 2xx
    excerpt: bytes  # the first EXCERPT_BYTES_MAX bytes of the response's body
    duration_milliseconds: int
    ours: bool = False  # the fault lies on our side: it must not use up the ladder
    address: str | None = None  # what was dialled, or is connected
    connect_milliseconds: int | None = None  # None where a kept connection served
    tls_milliseconds: int | None = None
    first_byte_milliseconds: int | None = None

    @property
    def succeeded(self) -> bool:
        return not self.error


async def system_resolve(host: str) -> Sequence[str]:
    """All addresses of `host`. Raises NoAddress or ResolverFault.

    In a daemon thread: `getaddrinfo` can hang for half a minute, and an executor would make the
    process wait for it at exit.
    """
    loop = asyncio.get_running_loop()
    found: asyncio.Future[Sequence[str]] = loop.create_future()

    def settle(result: Sequence[str] | Exception) -> None:
        if found.done():
            return
        if isinstance(result, Exception):
            found.set_exception(result)
        else:
            found.set_result(result)

    def look_up() -> None:
        result = _getaddrinfo(host)
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, result)

    threading.Thread(target=look_up, name="resolve", daemon=True).start()
    return await found


def _getaddrinfo(host: str) -> Sequence[str] | Exception:
    try:
        # The final dot keeps the resolver's search list out: the name is meant as it is written.
        found = socket.getaddrinfo(host + ".", PORT, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    except UnicodeError:
        return NoAddress()
    except socket.gaierror as error:
        passing = error.errno in (socket.EAI_AGAIN, socket.EAI_SYSTEM, socket.EAI_MEMORY)
        return ResolverFault() if passing else NoAddress()
    except OSError:
        return ResolverFault()
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


@dataclass(slots=True)
class _Exchange:
    """A request under way; its status is what remains of it when the deadline strikes."""

    body: bytes
    headers: Mapping[str, str]
    status: int | None = None
    reused: bool = False


class _HeadFirst(ResponseHandler):
    """Shows aiohttp's parser a response's head by itself.

    In one piece with it, bytes that are no HTTP (a 204 with a body, a malformed chunk) would undo the status, and
    a delivery that the receiver accepted would be sent again.
    """

    def data_received(self, data: bytes) -> None:
        head, mark, rest = data.partition(b"\r\n\r\n")
        super().data_received(head + mark)
        if rest and self.exception() is None:
            super().data_received(rest)
        # The parser leaves whoever reads a malformed body waiting.
        if self.exception() is not None and self._payload is not None and not self._payload.is_eof():
            self._payload.set_exception(aiohttp.ClientPayloadError())


class Egress:
    """Sends to destinations. One per process; made inside the event loop."""

    def __init__(
        self,
        *,
        overrides: Mapping[str, tuple[str, int]],
        ca_file: Path | None,
        user_agent: str,
        deadline_seconds: float = DEADLINE_SECONDS,
        resolve: Resolve = system_resolve,
    ) -> None:
        self._overrides = {host: Endpoint(ip_address(address), port) for host, (address, port) in overrides.items()}
        self._user_agent = user_agent
        self._deadline_seconds = deadline_seconds
        self._resolve = resolve
        self._resolver_slots = asyncio.Semaphore(RESOLVER_THREADS_MAX)
        self._resolutions: dict[str, tuple[float, Sequence[Endpoint]]] = {}
        self._resolving: dict[str, asyncio.Task[Sequence[Endpoint]]] = {}
        self._tls = ssl.create_default_context()
        if ca_file is not None:
            self._tls.load_verify_locations(cafile=ca_file)
        reuse = aiohttp.TraceConfig()
        reuse.on_connection_reuseconn.append(_note_reuse)
        connector = aiohttp.TCPConnector(ssl=self._tls, limit=0, keepalive_timeout=15)
        # There is no public way to choose the protocol of its connections.
        protocol: type[ResponseHandler] = _HeadFirst
        connector._factory = functools.partial(protocol, loop=asyncio.get_running_loop())
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            read_bufsize=8192,
            skip_auto_headers=("Accept", "Accept-Encoding"),
            trace_configs=[reuse],
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        for task in self._resolving.values():
            task.cancel()
        await self._session.close()

    async def check(self, url: str) -> None:
        """Raise DestinationRefused where `url` may not be a destination, ResolverFault where unknown."""
        destination = parse(url, overridden=self._overrides)
        try:
            await self._endpoints(destination)
        except NoAddress as error:
            raise DestinationRefused("must have a public host") from error

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Outcome:
        """POST `body` as it is; never raises for anything that the receiver or the network does."""
        started = time.monotonic()
        exchange = _Exchange(body, headers)
        try:
            async with asyncio.timeout(self._deadline_seconds):
                outcome = await self._post(url, exchange)
        except TimeoutError:
            outcome = _failure("timeout", exchange.status)
        return replace(outcome, duration_milliseconds=round((time.monotonic() - started) * 1000))

    async def _post(self, url: str, exchange: _Exchange) -> Outcome:
        try:
            destination = parse(url, overridden=self._overrides)
            endpoints = await self._endpoints(destination)
        except DestinationRefused:
            return _failure("destination_refused")
        except NoAddress:
            return _failure("no_address")
        except ResolverFault:
            return _failure("resolver", ours=True)
        outcome = _failure("connect")
        for index, endpoint in enumerate(endpoints):
            patience = CONNECT_SECONDS_MAX if index + 1 < len(endpoints) else None
            outcome = await self._send(destination, endpoint, exchange, patience)
            if outcome.error != "connect":
                break
        return outcome

    async def _send(
        self,
        destination: Destination,
        endpoint: Endpoint,
        exchange: _Exchange,
        connect_seconds: float | None,
    ) -> Outcome:
        # A receiver may close a kept connection at the very moment it is used again: that is no
        # failure of the delivery, so a fresh connection gets its turn under the same deadline.
        while True:
            exchange.reused = False
            outcome = await self._exchange(destination, endpoint, exchange, connect_seconds)
            if outcome.error != "disconnected" or outcome.status is not None or not exchange.reused:
                return outcome

    async def _exchange(
        self,
        destination: Destination,
        endpoint: Endpoint,
        exchange: _Exchange,
        connect_seconds: float | None,
    ) -> Outcome:
        name = destination.host
        host = f"[{name}]" if ":" in name else name
        try:
            async with self._session.post(
                _url(endpoint, destination.target),
                data=exchange.body,
                headers={**exchange.headers, "Host": host, "User-Agent": self._user_agent},
                server_hostname=name,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=connect_seconds),
                trace_request_ctx=exchange,
            ) as response:
                exchange.status = response.status
                excerpt = await _read(response)
        except aiohttp.ConnectionTimeoutError:
            return _failure("connect")
        except aiohttp.ClientPayloadError:
            excerpt = b""  # the status came; what follows it decides nothing
        except aiohttp.ClientError as error:
            return _failure(_error_class(error), exchange.status)
        except ValueError:
            return _failure("protocol", exchange.status)
        assert exchange.status is not None
        return Outcome(exchange.status, _status_error(exchange.status), excerpt, 0)

    async def _endpoints(self, destination: Destination) -> Sequence[Endpoint]:
        """Where `destination` may be dialled. Raises DestinationRefused, NoAddress or ResolverFault."""
        override = self._overrides.get(destination.host)
        if override is not None:
            return (override,)
        if destination.address is not None:
            return _checked([destination.address])
        kept = self._resolutions.get(destination.host)
        if kept is not None and kept[0] > time.monotonic():
            return kept[1]
        task = self._resolving.get(destination.host)
        if task is None:
            task = asyncio.create_task(self._look_up(destination.host))
            self._resolving[destination.host] = task
            task.add_done_callback(lambda done: self._looked_up(destination.host, done))
        return await asyncio.shield(task)

    async def _look_up(self, host: str) -> Sequence[Endpoint]:
        try:
            async with asyncio.timeout(RESOLVE_SECONDS_MAX), self._resolver_slots:
                found = await self._resolve(host)
        except TimeoutError as error:
            raise ResolverFault from error
        if not found:
            raise NoAddress
        endpoints = _checked([ip_address(address) for address in found])
        if len(self._resolutions) >= RESOLUTIONS_KEPT_MAX:
            self._resolutions.clear()
        self._resolutions[host] = (time.monotonic() + RESOLUTION_SECONDS_KEPT, endpoints)
        return endpoints

    def _looked_up(self, host: str, task: asyncio.Task[Sequence[Endpoint]]) -> None:
        self._resolving.pop(host, None)
        if not task.cancelled():
            task.exception()  # seen, though every waiter may have met its own deadline


def _checked(addresses: Sequence[Address]) -> Sequence[Endpoint]:
    # One private address behind a name is enough: which one is dialled must not depend on luck.
    if not all(is_public(address) for address in addresses):
        raise DestinationRefused("must have a public host")
    return tuple(Endpoint(address, PORT) for address in addresses)


def _url(endpoint: Endpoint, target: str) -> URL:
    address = str(endpoint.address)
    host = f"[{address}]" if ":" in address else address
    return URL(f"https://{host}:{endpoint.port}{target}", encoded=True)


async def _note_reuse(_: object, context: SimpleNamespace, __: object) -> None:
    exchange = context.trace_request_ctx
    assert isinstance(exchange, _Exchange)
    exchange.reused = True


async def _read(response: aiohttp.ClientResponse) -> bytes:
    """The excerpt. Reads on for a while, so that a connection with a modest body can be kept."""
    excerpt = bytearray()
    size = 0
    async for chunk in response.content.iter_any():
        excerpt += chunk[: EXCERPT_BYTES_MAX - len(excerpt)]
        size += len(chunk)
        if size > DRAIN_BYTES_MAX:
            response.close()
            break
    return bytes(excerpt)


def _status_error(status: int) -> str:
    if 200 <= status < 300:
        return ""
    return "redirect" if 300 <= status < 400 else "status"


def _error_class(error: aiohttp.ClientError) -> str:
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return "certificate"
        case aiohttp.ClientSSLError():
            return "tls"
        case aiohttp.ClientConnectorError():
            return "connect"
        case aiohttp.ServerDisconnectedError() | aiohttp.ClientOSError():
            return "disconnected"
        case _:
            return "protocol"


def _failure(error: str, status: int | None = None, *, ours: bool = False) -> Outcome:
    return Outcome(status, error, b"", 0, ours)
