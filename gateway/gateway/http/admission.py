"""Who asks, and whether their key may: it exists, has not ended, and has requests left in this minute."""

from __future__ import annotations

import time

from chassis.app.rpc_server import RpcServer
from chassis.http.requests import Request
from chassis.refusals import Refusal, Unavailable
from gateway.http import bearer, replies
from gateway.http.bearer import Caller, Keys
from gateway.http.limits import REQUESTS_A_MINUTE, WINDOW_SECONDS, Limits
from gateway.http.replies import ApiError

# A request that comes while the process starts waits so long: a client that lost its connection to the process before
# would get 500 on every attempt until the database is open. Within the deadline of every operation.
OPENS_SECONDS_MAX = 4.0

_UNAUTHORIZED = (
    401,
    "unauthorized",
    "The request bears no API key that is known here; send the header Authorization: Bearer and an active key.",
    replies.CHALLENGE,
)
_REVOKED = (
    401,
    "key_revoked",
    "This API key was revoked; stop retrying and ask an administrator for a new one.",
    replies.CHALLENGE,
)
_EXPIRED = "This API key expired on {}; stop retrying and ask an administrator for a new one."
_INACTIVE = (
    403,
    "company_inactive",
    "The company account of this key is inactive; have it activated before you try again.",
)
_LIMIT_POLICY = f'RateLimit-Policy: "key";q={REQUESTS_A_MINUTE};w={WINDOW_SECONDS}\r\n'


class Admission:
    """Lets requests of active keys in, 120 a minute of each."""

    def __init__(self, keys: Keys, limits: Limits, rpcs: RpcServer) -> None:
        self._keys = keys
        self._limits = limits
        self._rpcs = rpcs

    async def active_caller(self, request: Request) -> Caller:
        """The authenticated caller. Raises Refusal for a missing or ended key, or an inactive company."""
        key = bearer.presented(request.headers.getall("Authorization", ()))
        if key is not None and not self._rpcs.is_open and not await self._rpcs.wait_until_open(OPENS_SECONDS_MAX):
            raise Unavailable("the database is not open yet")
        caller = None if key is None else await self._keys.find(key)
        if caller is None:
            raise ApiError(*_UNAUTHORIZED)
        request.caller = caller
        if caller.revoked:
            raise ApiError(*_REVOKED)
        if caller.expires_at <= time.time():
            ended = time.strftime("%Y-%m-%d at %H:%M:%S UTC", time.gmtime(caller.expires_at))
            raise ApiError(401, "key_revoked", _EXPIRED.format(ended), replies.CHALLENGE)
        if not caller.company_active:
            raise Refusal(*_INACTIVE)
        return caller

    async def counted_caller(self, request: Request) -> Caller:
        """The authenticated caller, whose request is counted. Raises as `active_caller`, and for too many requests."""
        caller = await self.active_caller(request)
        admitted, remaining, reset_seconds = await self._limits.take(caller.api_key_id)
        request.is_known = True
        request.limit_headers = f'RateLimit: "key";r={remaining};t={reset_seconds}\r\n{_LIMIT_POLICY}'.encode()
        if not admitted:
            raise ApiError(
                429,
                "rate_limited",
                f"This key's {REQUESTS_A_MINUTE} requests a minute are used up; wait for Retry-After seconds.",
                f"Retry-After: {reset_seconds}\r\n".encode(),
            )
        return caller
