"""What the API says when it refuses a request, as an error."""

from __future__ import annotations

import httpx
import msgspec

from makeready_client.errors import BY_CODE, ApiError


class _Error(msgspec.Struct):
    code: str
    message: str


class _Body(msgspec.Struct):
    error: _Error


def error_of(response: httpx.Response) -> ApiError:
    """The error that a refusal stands for. response: with its body read."""
    after = response.headers.get("Retry-After", "")
    details = {
        "request_id": response.headers.get("X-Request-Id"),
        "retry_after": float(after) if after.isdecimal() else None,
    }
    try:
        found = msgspec.json.decode(response.content, type=_Body).error
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ApiError(response.status_code, "", f"{response.reason_phrase}, not from the API itself", **details)
    return BY_CODE.get(found.code, ApiError)(response.status_code, found.code, found.message, **details)
