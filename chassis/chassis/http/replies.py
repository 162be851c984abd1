"""Responses as bytes, with the headers that every response has."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import NamedTuple

_STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}
# Longer bodies are sent in pieces of this size, as the client reads them, and are never copied.
PIECE_BYTES = 32 * 1024
JSON = b"Content-Type: application/json\r\n"
NOT_STORED = b"Cache-Control: no-store\r\n"


class Reply(NamedTuple):
    """A response. Its `headers` are whole lines, without those that every response has."""

    status: int
    body: bytes
    headers: bytes = JSON
    is_shared: bool = False
    """The body stays in memory for all requests: none becomes free when a client has read it."""
    is_read: bool = False
    """It answers a read, so it is compressed for callers that accept it: see `encoding`."""
    compressed: bytes = b""
    """The compressed body, if it was made beforehand."""
    caching: bytes = NOT_STORED
    """The line that says who may store it."""


@dataclass(frozen=True, slots=True)
class ErrorReplies:
    """What a connection answers by itself, in the form that the process gives its errors."""

    malformed: Callable[[str], Reply]
    """To bytes that are no request; the argument says what is wrong with them."""
    fault: Reply
    """Where answering failed."""


def json(body: bytes, status: int = 200, headers: bytes = b"") -> Reply:
    return Reply(status, body, JSON + headers)


def raw(reply: Reply, request_id: str, headers: bytes, *, head: bool = False) -> tuple[bytes, bytes]:
    """The whole response on the wire: its first bytes, and a long body by itself.

    The `headers` are more whole lines. No body follows if the request was HEAD (`head`).
    """
    length = b"" if reply.status == 204 else b"Content-Length: %d\r\n" % len(reply.body)
    first = head_of(reply, request_id, headers, length)
    body = b"" if head else reply.body
    return (first, body) if len(body) > PIECE_BYTES else (first + body, b"")


def head_of(reply: Reply, request_id: str, headers: bytes, length: bytes = b"") -> bytes:
    """The head of a response. The `headers` are more whole lines; without a `length` the body follows in pieces."""
    return b"".join(
        (
            _STATUS_LINES[reply.status],
            reply.headers,
            headers,
            reply.caching,
            b"X-Request-Id: ",
            request_id.encode(),
            b"\r\n",
            length,
            _date(int(time.time())),
        )
    )


@functools.lru_cache(maxsize=1)
def _date(now: int) -> bytes:
    """The Date header and the end of the headers; the same for all responses within a second."""
    return time.strftime("Date: %a, %d %b %Y %H:%M:%S GMT\r\n\r\n", time.gmtime(now)).encode()
