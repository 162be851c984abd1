"""A connection to a receiver: TCP, TLS and one HTTP request at a time, each timed.

This module speaks TLS itself, over a plain transport, instead of leaving it to the event loop. So connecting and the
handshake have their own times and errors, an unwanted connection is closed at once, and a request costs less CPU than
with a general client (docs/decisions/destinations.md).
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from dataclasses import dataclass
from typing import cast

from svc_webhooks.http_client.response import Malformed, Response
from svc_webhooks.http_client.sockets import Endpoint, Failed, connected

READ_BYTES = 65536
# Bytes that a slow receiver has not taken stay in the body, which the caller holds anyway, and are not also stored
# encrypted.
WRITE_BYTES = 32768


@dataclass(slots=True)
class Times:
    """The instants of each step, in seconds of the monotonic clock; None if the step did not happen."""

    dialled: float | None = None
    connected: float | None = None
    secured: float | None = None
    first_byte: float | None = None


async def dial(endpoint: Endpoint, name: str, context: ssl.SSLContext, times: Times) -> ReceiverConnection:
    """A connection to `endpoint` whose certificate is valid for `name`, or without TLS. Raises Failed."""
    loop = asyncio.get_running_loop()
    times.dialled, times.connected, times.secured = time.monotonic(), None, None
    opened = await connected(loop, endpoint)
    times.connected = time.monotonic()
    try:
        kind = PlainConnection if endpoint.is_plain else ReceiverConnection
        _, connection = await loop.create_connection(lambda: kind(loop, endpoint, name, context), sock=opened)
    except BaseException:
        opened.close()
        raise
    if not endpoint.is_plain:
        await connection.secure()
        times.secured = time.monotonic()
    return connection


class ReceiverConnection(asyncio.Protocol):
    """Made by `dial`. Serves one exchange at a time; unsolicited data closes it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, endpoint: Endpoint, name: str, context: ssl.SSLContext) -> None:
        self.endpoint = endpoint
        self.name = name
        self.idle_since = 0.0
        self.closed = False
        self._loop = loop
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=name)
        self._secured = False
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._full: asyncio.Future[None] | None = None
        self._response: Response | None = None
        self._times: Times | None = None

    async def secure(self) -> None:
        """Performs the TLS handshake. Raises Failed if the certificate, the version or the name is not acceptable."""
        self._waiter = self._loop.create_future()
        self._shake_hands()
        await self._waited()

    async def exchange(self, head: bytes, body: bytes, response: Response, times: Times) -> None:
        """Sends a request and reads until `response` has ended. Raises Failed; `response` then has the part that
        arrived."""
        self._response, self._times = response, times
        self._waiter = self._loop.create_future()
        try:
            is_sent = await self._send(head, body, self._waiter)
            await self._waited()
        except BaseException:
            self.abort()
            raise
        finally:
            self._response = self._times = None
        if not (is_sent and response.reusable):
            self.abort()

    async def _send(self, head: bytes, body: bytes, ended: asyncio.Future[None]) -> bool:
        """Sends at the receiver's pace. False if the exchange ended before the request was sent completely."""
        if len(body) <= WRITE_BYTES:
            self._write(head + body)
            return True
        self._write(head)
        unsent = memoryview(body)
        while unsent and not (ended.done() or self.closed):
            self._write(unsent[:WRITE_BYTES])
            unsent = unsent[WRITE_BYTES:]
            if self._full is not None:
                await asyncio.wait((ended, self._full), return_when=asyncio.FIRST_COMPLETED)
        return not unsent

    def _write(self, data: bytes | memoryview) -> None:
        try:
            self._tls.write(data)
        except ssl.SSLError as error:
            self._fail(Failed("tls"), error)
        else:
            self._flush()

    def close(self) -> None:
        """Sends close_notify and closes."""
        if not self.closed:
            with contextlib.suppress(ssl.SSLError):  # the receiver's own close_notify is not waited for
                self._tls.unwrap()
            self._flush()
            self._drop()

    def abort(self) -> None:
        """Closes at once, even during an exchange."""
        self.closed = True
        if self._transport is not None:
            self._transport.abort()

    # Called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self.closed:
            return
        self._incoming.write(data)
        if self._secured:
            self._read()
        else:
            self._shake_hands()

    def pause_writing(self) -> None:
        self._full = self._loop.create_future()

    def resume_writing(self) -> None:
        if self._full is not None and not self._full.done():
            self._full.set_result(None)
        self._full = None

    def connection_lost(self, error: Exception | None) -> None:
        self._fail(Failed("disconnected" if self._secured else "tls"), error)

    # TLS

    async def _waited(self) -> None:
        assert self._waiter is not None
        try:
            await self._waiter
        except BaseException:
            self.abort()
            raise
        finally:
            self._waiter = None

    def _shake_hands(self) -> None:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
        except ssl.SSLError as error:
            self._flush()  # sends the alert with the reason to the receiver
            certificate = isinstance(error, ssl.SSLCertVerificationError)
            self._fail(Failed("certificate" if certificate else "tls"), error)
        else:
            self._secured = True
            self._flush()
            self._settled()
            if self._incoming.pending:
                self._read()

    def _read(self) -> None:
        while not self.closed and (self._incoming.pending or self._tls.pending()):
            try:
                data = self._tls.read(READ_BYTES)
            except ssl.SSLWantReadError:  # session tickets, or part of a record
                break
            except ssl.SSLError as error:
                self._fail(Failed("tls"), error)
                return
            if not data:
                self._drop()  # the receiver sent close_notify; connection_lost fails the waiter
                return
            self._take(data)
        self._flush()

    def _take(self, data: bytes) -> None:
        response = self._response
        if response is None or self._times is None:
            self._drop()
            return
        if self._times.first_byte is None:
            self._times.first_byte = time.monotonic()
        try:
            response.feed(data)
        except Malformed as error:
            self._fail(Failed("protocol"), error)
            return
        if response.ended:
            self._settled()
            if not response.reusable:
                self.abort()

    def _flush(self) -> None:
        if self._outgoing.pending and self._transport is not None:
            self._transport.write(self._outgoing.read())

    def _drop(self) -> None:
        self.closed = True
        if self._transport is not None:
            self._transport.close()

    def _settled(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, failed: Failed, cause: Exception | None) -> None:
        if self._response is not None:
            self._response.closed()
            if self._response.ended:  # the status has arrived; later bytes decide nothing
                self._settled()
        failed.__cause__ = cause
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(failed)
        self.abort()


class PlainConnection(ReceiverConnection):
    """One without TLS, to a local receiver."""

    def __init__(self, loop: asyncio.AbstractEventLoop, endpoint: Endpoint, name: str, context: ssl.SSLContext) -> None:
        super().__init__(loop, endpoint, name, context)
        self._secured = True  # all that the peer sends is of its answer

    def close(self) -> None:
        if not self.closed:
            self._drop()

    def data_received(self, data: bytes) -> None:
        if not self.closed:
            self._take(data)

    def _write(self, data: bytes | memoryview) -> None:
        assert self._transport is not None
        self._transport.write(data)
