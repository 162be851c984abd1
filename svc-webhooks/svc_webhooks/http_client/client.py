"""Resolves a destination, refuses addresses that are not public, dials the checked address, sends.

`check` (when a subscription is created) and `post` (when a delivery is sent) share `_endpoints`. So an address that
validation refuses can't be dialled, and the dialled address is the checked one: the request goes to the address; only
Host, SNI and the certificate's check use the name. A pooled connection has the key (address, port, name). A send uses
it only if its own resolution returned that address and found it public.
"""

from __future__ import annotations

import asyncio
import functools
import math
import re
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv6Network, ip_address
from pathlib import Path
from typing import Protocol, Self

import structlog

from svc_webhooks.http_client.connection import ReceiverConnection, Times, dial
from svc_webhooks.http_client.destinations import (
    HTTPS_PORT,
    Address,
    Destination,
    DestinationRefused,
    is_local,
    is_public,
    parse,
    unwrapped,
)
from svc_webhooks.http_client.pool import Pool
from svc_webhooks.http_client.resolver import Names, NoAddress, Resolve, ResolverFault, SystemResolver
from svc_webhooks.http_client.response import Response
from svc_webhooks.http_client.sockets import Endpoint, Failed

DEADLINE_SECONDS = 10.0
CONNECT_SECONDS_MAX = 3.0  # until TLS is agreed upon, for an address that has alternatives
HUNG_MILLISECONDS = 900
STALLED_SECONDS = 2.0  # an attempt this late past its deadline says nothing about the receiver
DESTINATIONS_KEPT_MAX = 1024

_HEADER_NAME = re.compile(r"[A-Za-z0-9-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")

log = structlog.stdlib.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one attempt."""

    status: int | None  # the receiver's, if one arrived
    error: str  # class of the failure; empty after a 2xx
    excerpt: bytes  # the first EXCERPT_BYTES_MAX bytes of the response's body
    duration_milliseconds: int
    is_internal_fault: bool = False  # a fault on our side, which must not use up the ladder
    address: str | None = None  # the dialled or connected address
    connect_milliseconds: int | None = None  # None if a pooled connection served
    tls_milliseconds: int | None = None
    first_byte_milliseconds: int | None = None
    was_admitted: bool = True
    """False if the gate refused every address that was left: then nothing was sent, and nothing is known."""

    @property
    def hung(self) -> bool:
        """Whether the receiver did not answer, or accept a connection, in time."""
        return self.error in ("timeout", "connect") and self.duration_milliseconds >= HUNG_MILLISECONDS

    @property
    def succeeded(self) -> bool:
        return not self.error and self.was_admitted


class Gate(Protocol):
    """Decides which addresses an attempt may dial."""

    @property
    def is_at_new_receiver(self) -> bool:
        """Whether the connection must not outlive the attempt unless it is answered 2xx."""

    async def admits(self, address: str) -> bool:
        """address: see `receiver_of`. The attempt has left other addresses by then."""


class _NotAdmitted(Exception):  # noqa: N818 - neither's fault
    """The gate refused the addresses."""


@dataclass(slots=True)
class _Attempt:
    """The facts about a running attempt; if the deadline passes, they are all that remains of it."""

    started: float
    gate: Gate | None = None
    seconds_max: float = DEADLINE_SECONDS
    response: Response = field(default_factory=Response)
    times: Times = field(default_factory=Times)
    endpoint: Endpoint | None = None
    is_ours: bool = False  # the resolver, or the gate, is awaited: a timeout is no fault of the receiver's

    def outcome(self, error: str = "", *, is_internal_fault: bool = False) -> Outcome:
        now = time.monotonic()
        status, times = self.response.status, self.times
        if not error and status is not None and not 200 <= status < 300:
            error = "redirect" if 300 <= status < 400 else "status"
        return Outcome(
            status,
            error,
            bytes(self.response.excerpt),
            round((now - self.started) * 1000),
            is_internal_fault,
            str(self.endpoint.address) if self.endpoint else None,
            _milliseconds(times.dialled, times.connected),
            _milliseconds(times.connected, times.secured),
            _milliseconds(self.started, times.first_byte),
        )


class HttpClient:
    """Sends to destinations. One for each process; made inside the event loop."""

    def __init__(
        self,
        *,
        overrides: Mapping[str, tuple[str, int]],
        ca_file: Path | None,
        user_agent: str,
        deadline_seconds: float = DEADLINE_SECONDS,
        resolve: Resolve | None = None,
    ) -> None:
        self._overrides = {host: Endpoint(ip_address(address), port) for host, (address, port) in overrides.items()}
        self._user_agent = user_agent
        self._deadline_seconds = deadline_seconds
        resolve = resolve or SystemResolver()
        self._names = Names(resolve, functools.partial(_checked_texts, may_be_local=False))
        self._local_names = Names(resolve, functools.partial(_checked_texts, may_be_local=True))
        self._parsed = functools.lru_cache(DESTINATIONS_KEPT_MAX)(
            functools.partial(parse, overridden=frozenset(overrides))
        )
        self._tls = ssl.create_default_context()
        self._tls.minimum_version = ssl.TLSVersion.TLSv1_2
        self._tls.set_alpn_protocols(["http/1.1"])
        if ca_file is not None:
            self._tls.load_verify_locations(cafile=ca_file)
        self._pool = Pool()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        self._names.close()
        self._local_names.close()
        self._pool.close()

    async def check(self, url: str, *, party: int = 0, may_be_local: bool = False) -> None:
        """Raises DestinationRefused if `url` may not be a destination, ResolverFault if that is unknown. For
        `may_be_local` see `parse`."""
        try:
            await self._endpoints(self._parsed(url, may_be_local=may_be_local), party)
        except NoAddress as error:
            raise DestinationRefused("must have a public host") from error

    def name_of(self, url: str) -> str:
        """The host of `url` as all its spellings have it: a name, or `receiver_of` its address. Empty if it may never
        be dialled."""
        try:
            destination = self._parsed(url, may_be_local=True)
        except DestinationRefused:
            return ""
        if destination.address is not None and destination.host not in self._overrides:
            return receiver_of(Endpoint(destination.address, destination.port))
        return destination.host

    def headers(self, url: str, body: bytes) -> dict[str, str]:
        """The headers that `post` adds to those of its caller. Raises DestinationRefused."""
        return _of_connection(self._parsed(url, may_be_local=True), self._user_agent, body)

    async def post(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        *,
        party: int = 0,
        gate: Gate | None = None,
        seconds_max: float = math.inf,
        may_be_local: bool = False,
    ) -> Outcome:
        """POSTs `body` unchanged. Never raises: internal faults are outcomes too.

        party: the one that lookups are made for. seconds_max: if shorter than the usual deadline. For `may_be_local`
        see `parse`.
        """
        attempt = _Attempt(time.monotonic(), gate, min(self._deadline_seconds, seconds_max))
        try:
            async with asyncio.timeout(attempt.seconds_max):
                destination = self._parsed(url, may_be_local=may_be_local)
                await self._post(destination, body, headers, attempt, party)
        except _NotAdmitted:
            return Outcome(None, "", b"", 0, was_admitted=False)
        except Exception as error:
            error_class, is_internal_fault = self._class_of(error, attempt)
            return attempt.outcome(error_class, is_internal_fault=is_internal_fault)
        return attempt.outcome()

    def _class_of(self, error: Exception, attempt: _Attempt) -> tuple[str, bool]:
        """The class of an attempt's error, and whether it is an internal fault."""
        match error:
            case DestinationRefused():
                classified = "destination_refused", False
            case NoAddress():
                classified = "no_address", False
            case Failed():
                classified = error.error, error.is_internal_fault
            case TimeoutError() if not attempt.is_ours:
                late = time.monotonic() - attempt.started - attempt.seconds_max
                classified = ("egress", True) if late > STALLED_SECONDS else ("timeout", False)
            case ResolverFault() | TimeoutError():
                classified = "resolver", True
            case _:
                log.error("egress_fault", exc_info=error)
                classified = "egress", True
        return classified

    async def _post(
        self, destination: Destination, body: bytes, headers: Mapping[str, str], attempt: _Attempt, party: int
    ) -> None:
        attempt.is_ours = True
        endpoints = await self._endpoints(destination, party)
        attempt.is_ours = False
        head = _head(destination, self._user_agent, body, headers)
        connection = self._pool.take(endpoints, destination.host)
        if connection is not None:
            if not await _admits(attempt, connection.endpoint):
                self._pool.keep(connection)
                raise _NotAdmitted
            attempt.endpoint = connection.endpoint
            try:
                await connection.exchange(head, body, attempt.response, attempt.times)
            except Failed:
                # A receiver may close a pooled connection at the very moment of its reuse. That is no failure of the
                # delivery, so a fresh connection is tried within the same deadline.
                if attempt.times.first_byte is not None:
                    raise
            else:
                self._keep(connection, attempt)
                return
        connection = await self._dialled(destination.host, endpoints, attempt)
        await connection.exchange(head, body, attempt.response, attempt.times)
        self._keep(connection, attempt)

    def _keep(self, connection: ReceiverConnection, attempt: _Attempt) -> None:
        status = attempt.response.status
        if attempt.gate is not None and attempt.gate.is_at_new_receiver and not (status and 200 <= status < 300):
            connection.close()  # else many names at one address would leave a connection each
        else:
            self._pool.keep(connection)

    async def _dialled(self, name: str, endpoints: Sequence[Endpoint], attempt: _Attempt) -> ReceiverConnection:
        """Tries each address in turn until one completes the handshake. Raises _NotAdmitted if none did and the gate
        refused one; else Failed, with the receiver's fault if an address had one."""
        failure: tuple[Failed, Endpoint] | None = None
        are_all_admitted = True
        for index, endpoint in enumerate(endpoints):
            if not await _admits(attempt, endpoint):
                are_all_admitted = False
                continue
            attempt.endpoint = endpoint
            try:
                async with asyncio.timeout(CONNECT_SECONDS_MAX if index + 1 < len(endpoints) else None):
                    return await dial(endpoint, name, self._tls, attempt.times)
            except TimeoutError:
                failed = Failed("connect")
            except Failed as error:
                failed = error
            if failed.error == "certificate":
                raise failed
            if failure is None or failure[0].is_internal_fault:
                failure = failed, endpoint
        if not are_all_admitted:
            raise _NotAdmitted
        assert failure is not None
        failed, attempt.endpoint = failure
        raise failed

    async def _endpoints(self, destination: Destination, party: int = 0) -> Sequence[Endpoint]:
        """The endpoints to dial for `destination`. Raises DestinationRefused, NoAddress or ResolverFault."""
        override = self._overrides.get(destination.host)
        if override is not None:
            return (override._replace(is_plain=destination.is_plain),)
        if destination.address is not None:
            addresses = _checked([destination.address], may_be_local=destination.may_be_local)
        else:
            names = self._local_names if destination.may_be_local else self._names
            addresses = await names.find(destination.host, party)
        if destination.must_be_local and not all(map(is_local, addresses)):
            raise DestinationRefused("must be https on port 443, or have a private host")
        return [Endpoint(address, destination.port, destination.is_plain) for address in addresses]


@functools.lru_cache(DESTINATIONS_KEPT_MAX)
def receiver_of(endpoint: Endpoint) -> str:
    """The address as one receiver: an IPv4 address, also where it is embedded in another; the /64 of an IPv6 address,
    which one subscriber of a network has to itself. With the port if it is another than 443."""
    address = unwrapped(endpoint.address)
    receiver = str(address) if address.version == 4 else str(IPv6Network((int(address) >> 64 << 64, 64)))
    return receiver if endpoint.port == HTTPS_PORT else f"{receiver}:{endpoint.port}"


async def _admits(attempt: _Attempt, endpoint: Endpoint) -> bool:
    if attempt.gate is None:
        return True
    attempt.is_ours = True
    admitted = await attempt.gate.admits(receiver_of(endpoint))
    attempt.is_ours = False
    return admitted


def _checked(addresses: Sequence[Address], *, may_be_local: bool) -> Sequence[Address]:
    # One private address is enough to refuse a name: the outcome must not depend on which address is dialled.
    if not all(is_public(address) or (may_be_local and is_local(address)) for address in addresses):
        raise DestinationRefused(f"must have a public{' or private' if may_be_local else ''} host")
    return tuple(addresses)


def _checked_texts(addresses: Sequence[str], *, may_be_local: bool) -> Sequence[Address]:
    return _checked([ip_address(address) for address in addresses], may_be_local=may_be_local)


def _head(destination: Destination, user_agent: str, body: bytes, headers: Mapping[str, str]) -> bytes:
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise ValueError("a header's name or value would break its line")
    whole = _of_connection(destination, user_agent, body) | dict(headers)
    lines = "".join(f"{name}: {value}\r\n" for name, value in whole.items())
    return f"POST {destination.target} HTTP/1.1\r\n{lines}\r\n".encode("latin-1")


def _of_connection(destination: Destination, user_agent: str, body: bytes) -> dict[str, str]:
    """The headers that every request has."""
    return {"Host": destination.authority, "User-Agent": user_agent, "Content-Length": str(len(body))}


def _milliseconds(since: float | None, until: float | None) -> int | None:
    return None if since is None or until is None else round((until - since) * 1000)
