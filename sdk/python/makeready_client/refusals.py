"""What the API says when it refuses a request, as an error."""

from __future__ import annotations

from typing import TypedDict
from urllib.parse import urljoin

import httpx
import msgspec

from makeready_client.errors import BY_CODE, ApiError

# What a proxy answers while nothing behind it does: a release comes, or a machine has gone.
GATEWAY_FAULTS = frozenset({502, 503, 504})


class _Details(TypedDict):
    request_id: str | None
    retry_after: float | None
    param: str | None
    doc_url: str | None


class _Error(msgspec.Struct):
    code: str
    message: str


class _Body(msgspec.Struct):
    error: _Error


def error_of(response: httpx.Response, base_url: str) -> ApiError:
    """The error that a refusal stands for. response: with its body read. base_url: the address that was configured."""
    after = response.headers.get("Retry-After", "")
    details: _Details = {
        "request_id": response.headers.get("X-Request-Id"),
        "retry_after": float(after) if after.isdecimal() else None,
        "param": response.headers.get("Service-Error-Param"),
        "doc_url": _help_url(response, base_url),
    }
    try:
        error = msgspec.json.decode(response.content, type=_Body).error
    except (msgspec.DecodeError, UnicodeDecodeError):
        if response.status_code in GATEWAY_FAULTS:
            message = f"{response.reason_phrase}: a proxy did not reach the API at {base_url}"
            return ApiError(response.status_code, "", message, **details)
        to = f" to {response.headers['Location']}" if response.has_redirect_location else ""
        message = f"{response.reason_phrase}{to}, not from the API itself; is base_url right? It is {base_url}"
        return ApiError(response.status_code, "", message, **details)
    message = error.message
    if response.status_code == 404 and not base_url.endswith("/api/v1"):
        message += f" base_url is {base_url}; most end with /api/v1."
    return BY_CODE.get(error.code, ApiError)(response.status_code, error.code, message, **details)


def _help_url(response: httpx.Response, base_url: str) -> str | None:
    """The page that the header Link names, if it is an address."""
    try:
        link = response.links["help"]["url"]
        return urljoin(base_url, link)
    except (KeyError, ValueError):
        return None
