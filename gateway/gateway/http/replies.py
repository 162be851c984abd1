"""Replies of the API: documents, and the error envelope (spec 7)."""

from __future__ import annotations

import functools

import msgspec

from chassis.http.replies import JSON, ErrorReplies, Reply
from chassis.refusals import Refusal

# A 401 says where a key goes, for a missing and for a revoked one (RFC 9110 requires it of every 401).
CHALLENGE = b"WWW-Authenticate: Bearer\r\n"
NO_CONTENT = Reply(204, b"", b"")
ERRORS_PAGE = "/docs/api/errors"
"""The page of the reference that explains the errors by code."""


def read(body: bytes, headers: bytes = b"") -> Reply:
    """The answer to a read of records."""
    return Reply(200, body, JSON + headers, is_read=True)


@functools.lru_cache(maxsize=512)  # sentences hold no value of a caller's, and one instant at most
def error(status: int, code: str, message: str, headers: bytes = b"") -> Reply:
    """The error envelope, with a link to the page about its code."""
    body = msgspec.json.encode({"error": {"code": code, "message": message}})
    return Reply(status, body, JSON + f'Link: <{ERRORS_PAGE}#{code}>; rel="help"\r\n'.encode() + headers)


class ApiError(Refusal):
    """A refusal by the gateway itself, with headers in addition to the envelope."""

    def __init__(self, status: int, code: str, message: str, headers: bytes = b"") -> None:
        super().__init__(status, code, message)
        self.headers = headers


class PageMissing(Refusal):
    """There is no such page of the reference, which a person asked for in a browser."""


_NO_PAGE = Reply(
    404,
    b"<!doctype html><html lang=en><meta charset=utf-8><title>No such page</title><h1>No such page</h1>"
    b"<p>The reference has no page at this address. <a href=/docs>Go to the reference</a>.",
    b"Content-Type: text/html; charset=utf-8\r\n"
    b"Content-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\nX-Content-Type-Options: nosniff\r\n",
)


def verb_not_allowed(allow: str) -> ApiError:
    """allow: the verbs of the path, as the Allow header lists them."""
    return ApiError(
        405,
        "method_not_allowed",
        "This path does not support the request's verb; use one that the Allow header lists.",
        f"Allow: {allow}\r\n".encode(),
    )


def of_refusal(refusal: Refusal) -> Reply:
    if isinstance(refusal, PageMissing):
        return _NO_PAGE
    headers = refusal.headers if isinstance(refusal, ApiError) else b""
    if refusal.status == 429 and not headers:  # a service's own limit, of a minute
        headers = b"Retry-After: 60\r\n"
    if refusal.field:
        headers += f"Service-Error-Param: {refusal.field}\r\n".encode()
    return error(refusal.status, refusal.code, refusal.message, headers)


FAULT = error(500, "internal_error", "Something failed on our side; retry once with backoff.")


def malformed(reason: str) -> Reply:
    return error(400, "invalid_request", f"The request is not well-formed HTTP/1.1: {reason}.")


ERRORS = ErrorReplies(malformed, FAULT)
