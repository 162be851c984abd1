"""The errors that are no single code's, and how a refusal becomes one. `errors` has a class for each code."""

from __future__ import annotations

import httpx
import msgspec


class MakereadyError(Exception):
    """Whatever this library raises on purpose, except ValueError for arguments that can't be sent."""


class ConnectionFailed(MakereadyError):
    """No answer came, after all retries. A write may have happened: call again with the same Idempotency-Key."""


class SignatureInvalid(MakereadyError):
    """A delivery that was not signed with the secret just now. Answer it with 401 and do nothing else."""


class ApiError(MakereadyError):
    """The API refused a request. code: "" where something before the API answered, such as a proxy."""

    def __init__(
        self, status: int, code: str, message: str, *, request_id: str | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(f"{status} {code or 'without a code'}: {message}" + (f" [{request_id}]" if request_id else ""))
        self.status = status
        self.code = code
        self.message = message
        """For people; it may be reworded."""
        self.request_id = request_id
        """Names the request in the logs of the API; quote it when you ask for help."""
        self.retry_after = retry_after
        """Seconds; None where the API named none."""


class _Error(msgspec.Struct):
    code: str
    message: str


class _Body(msgspec.Struct):
    error: _Error


def error_of(response: httpx.Response) -> ApiError:
    """The error that a refusal stands for. response: with its body read."""
    from makeready_client.errors import BY_CODE  # noqa: PLC0415 - errors are made of the classes above

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
