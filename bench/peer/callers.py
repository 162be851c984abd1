"""Who calls, whether that key opens the route, and how often it may (spec 5, 8)."""

from __future__ import annotations

import hashlib
import time
from collections import defaultdict, deque
from dataclasses import dataclass

from peer import settings
from peer.refusals import ApiError

WINDOW_SECONDS = 60
READERS, WRITERS = ("read", "write"), ("write",)
_windows: defaultdict[int, deque[float]] = defaultdict(deque)


@dataclass(frozen=True)
class Caller:
    key_id: int
    company_id: int
    company_active: bool
    scope: str
    administrator_id: int | None
    revoked: bool


def bearer(authorization: str | None) -> str:
    """The key in the Authorization header. Raises ApiError."""
    scheme, _, key = (authorization or "").partition(" ")
    if scheme.lower() != "bearer" or not key:
        raise _unauthorized("unauthorized", "Send the API key as a bearer token in the Authorization header.")
    return key


def admit(caller: Caller | None) -> dict[str, str]:
    """Counts a request of the caller; returns the headers that say how many remain. Raises ApiError."""
    if caller is None:
        raise _unauthorized("unauthorized", "This API key is not known.")
    if caller.revoked:
        raise _unauthorized("key_revoked", "This API key was revoked.")
    if not caller.company_active:
        raise ApiError(403, "company_inactive", "The company account is inactive.")
    remaining, reset = _take(caller.key_id)
    return {
        "RateLimit-Policy": f'"default";q={settings.REQUESTS_PER_MINUTE};w={WINDOW_SECONDS}',
        "RateLimit": f'"default";r={remaining};t={reset}',
    }


def check_scope(caller: Caller, scopes: tuple[str, ...]) -> None:
    if caller.scope not in scopes:
        raise ApiError(403, "insufficient_scope", "This key's scope does not open this route.")


def administrator_of(caller: Caller) -> int:
    """The administrator who made the key. Raises ApiError."""
    if caller.administrator_id is None:
        raise ApiError(422, "created_by_missing", "This key has no minting administrator on record.")
    return caller.administrator_id


def lock_of(caller: Caller, key: str) -> int:
    """The number of the advisory lock of a key."""
    named = f"{caller.company_id}/{caller.key_id}/{key}".encode()
    return int.from_bytes(hashlib.blake2b(named, digest_size=8).digest(), "big", signed=True)


def _unauthorized(code: str, message: str) -> ApiError:
    return ApiError(401, code, message, {"WWW-Authenticate": "Bearer"})


def _take(key_id: int) -> tuple[int, int]:
    """Counts one request in the key's moving window; returns how many remain, and the seconds until one more does.

    These lines replace the `limits` library's storage in memory, which sweeps all keys every 10 ms: that costs more
    than the counting.
    """
    window, now = _windows[key_id], time.time()
    while window and window[0] <= now - WINDOW_SECONDS:
        window.popleft()
    reset = int(window[0] + WINDOW_SECONDS - now) + 1 if window else WINDOW_SECONDS
    if len(window) >= settings.REQUESTS_PER_MINUTE:
        raise ApiError(429, "rate_limited", "Too many requests; wait and try again.", {"Retry-After": str(reset)})
    window.append(now)
    return settings.REQUESTS_PER_MINUTE - len(window), reset
