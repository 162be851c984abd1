"""Responses as bytes: the error envelope (spec 7), and the headers that every response has."""

from __future__ import annotations

import functools
import time
from http import HTTPStatus
from typing import NamedTuple

import msgspec

from chassis.refusals import Refusal

_STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}
# Longer bodies are sent in pieces of this size, as the client reads them, and are never copied.
PIECE_BYTES = 32 * 1024
_JSON = b"Content-Type: application/json\r\n"
_ALWAYS = b"Cache-Control: no-store\r\nX-Request-Id: "
# A 401 says where a key goes, for a missing and for a revoked one (RFC 9110 requires it of every 401).
CHALLENGE = b"WWW-Authenticate: Bearer\r\n"


class Reply(NamedTuple):
    """A response. headers: whole lines, without those that every response has."""

    status: int
    body: bytes
    headers: bytes = _JSON
    is_shared: bool = False
    """The body stays in memory for all requests: none becomes free when a client has read it."""
    is_read: bool = False
    """It answers a read, so it is compressed for callers that accept it: see `encoding`."""
    compressed: bytes = b""
    """The compressed body, if it was made beforehand."""


NO_CONTENT = Reply(204, b"", b"")


def json(body: bytes, status: int = 200, headers: bytes = b"") -> Reply:
    return Reply(status, body, _JSON + headers)


def read(body: bytes) -> Reply:
    """The answer to a read of records."""
    return Reply(200, body, _JSON, is_read=True)


@functools.lru_cache(maxsize=512)  # sentences hold no value of a caller's, and one instant at most
def error(status: int, code: str, message: str, headers: bytes = b"") -> Reply:
    """The error envelope."""
    return Reply(status, msgspec.json.encode({"error": {"code": code, "message": message}}), _JSON + headers)


class ApiError(Refusal):
    """A refusal by the edge itself, with headers in addition to the envelope."""

    def __init__(self, status: int, code: str, message: str, headers: bytes = b"") -> None:
        super().__init__(status, code, message)
        self.headers = headers


def of_refusal(refusal: Refusal) -> Reply:
    headers = refusal.headers if isinstance(refusal, ApiError) else b""
    if refusal.status == 429 and not headers:  # a service's own limit, of a minute
        headers = b"Retry-After: 60\r\n"
    return error(refusal.status, refusal.code, refusal.message, headers)


FAULT = error(500, "internal_error", "Something failed on our side; retry once with backoff.")


def malformed(reason: str) -> Reply:
    return error(400, "invalid_request", f"The request is not well-formed HTTP/1.1: {reason}.")


def raw(reply: Reply, request_id: str, headers: bytes, *, head: bool = False) -> tuple[bytes, bytes]:
    """The whole response on the wire: its first bytes, and a long body by itself.

    headers: more whole lines; head: the request was HEAD, so no body follows.
    """
    length = b"" if reply.status == 204 else b"Content-Length: %d\r\n" % len(reply.body)
    first = head_of(reply, request_id, headers, length)
    body = b"" if head else reply.body
    return (first, body) if len(body) > PIECE_BYTES else (first + body, b"")


def head_of(reply: Reply, request_id: str, headers: bytes, length: bytes = b"") -> bytes:
    """The head of a response. headers, length: more whole lines; without length the body follows in pieces."""
    return b"".join(
        (
            _STATUS_LINES[reply.status],
            reply.headers,
            headers,
            _ALWAYS,
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
