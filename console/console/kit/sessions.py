"""Sessions, as the gateway knows them. The console stores none: a browser holds the text, the gateway its digest."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from google.protobuf.message import Message

from chassis.auth.clients import Response, ServiceClient
from makeready.identity.v1 import sessions_pb2 as pb

SESSION_SECONDS = 1.0
"""A session that was ended elsewhere is ended here after this time at the latest."""
TOKEN_SECONDS = 10.0
"""The gateway signs a token anew after 40 of its 60 seconds, so it returns one that is valid for 20 s or more: for 10 s
here, and 10 s for the call that bears it."""
CACHED_MAX = 4096


def secret_of(text: str) -> str:
    """The text of the same session in the company of its account."""
    return text.partition(".")[0]


def in_sandbox(text: str, sandbox_id: int) -> str:
    """The text of the same session in a sandbox. A text means one company for good: what was made for one company, a
    form or a token, cannot be used in another."""
    return f"{secret_of(text)}.{sandbox_id}"


Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class _Cache(Generic[Key, Value]):
    """Values that are read again after a while."""

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._seconds, self._clock = seconds, clock
        self._values: dict[Key, tuple[float, Value]] = {}

    def get(self, key: Key) -> Value | None:
        """The value; None if there is none, or an old one."""
        at, value = self._values.get(key, (float("-inf"), None))
        return value if self._clock() - at < self._seconds else None

    def put(self, key: Key, value: Value, at: float) -> None:
        """at: when the value was asked for, so that a slow answer is not taken for a new one."""
        if len(self._values) >= CACHED_MAX:
            now = self._clock()
            fresh = {cached_key: pair for cached_key, pair in self._values.items() if now - pair[0] < self._seconds}
            self._values = {} if len(fresh) >= CACHED_MAX else fresh
        self._values[key] = at, value

    def drop(self, match: Callable[[Key], bool]) -> None:
        self._values = {key: pair for key, pair in self._values.items() if not match(key)}


class Sessions:
    """The gateway's SessionsService. Each method raises Refusal and ServiceUnavailable."""

    def __init__(self, gateway: ServiceClient, clock: Callable[[], float] = time.monotonic) -> None:
        self._gateway, self._clock = gateway, clock
        self._found: _Cache[str, pb.Session] = _Cache(SESSION_SECONDS, clock)
        self._watched: _Cache[str, pb.Session] = _Cache(SESSION_SECONDS, clock)
        self._tokens: _Cache[tuple[str, str], str] = _Cache(TOKEN_SECONDS, clock)
        self._displaced: _Cache[str, bool] = _Cache(SESSION_SECONDS, clock)
        self._asked: dict[tuple[str, str], asyncio.Task[str]] = {}

    async def call(self, request: Message, response: type[Response]) -> Response:
        """An RPC of SessionsService, as the service `console`."""
        return await self._gateway.call(request, response)

    async def find(self, text: str, *, watches: bool = False) -> pb.Session | None:
        """The session with this text; None if there is none, or if it has ended.

        watches: an open page asks by itself, which does not keep the session from becoming idle.
        """
        session: pb.Session | None = self._found.get(text) or (self._watched.get(text) if watches else None)
        if session is None:
            asked_at = self._clock()
            answer = await self.call(pb.GetSessionRequest(session=text, watches=watches), pb.GetSessionResponse)
            if not answer.HasField("session"):
                self.forget(text)
                if answer.displaced:
                    self._displaced.put(text, True, asked_at)
                return None
            session = answer.session
            (self._watched if watches else self._found).put(text, session, asked_at)
        return session

    def was_displaced(self, text: str) -> bool:
        """Whether the session that was not found just now has ended because its person began newer ones."""
        return self._displaced.get(text) is not None

    async def token(self, text: str, audience: str) -> str:
        """A token with which the session's person calls the service `audience`. Several panels that want it at once
        share one call."""
        key = text, audience
        token: str | None = self._tokens.get(key)
        if token is None:
            task = self._asked.get(key)
            if task is None:
                task = self._asked[key] = asyncio.create_task(self._issue(key))
                task.add_done_callback(functools.partial(self._answered, key))
            token = await asyncio.shield(task)  # a panel whose time is up leaves the call to the others
        return token

    async def _issue(self, key: tuple[str, str]) -> str:
        asked_at = self._clock()
        request = pb.IssueTokenRequest(session=key[0], audience=key[1])
        token = (await self.call(request, pb.IssueTokenResponse)).token
        self._tokens.put(key, token, asked_at)
        return token

    def _answered(self, key: tuple[str, str], task: asyncio.Task[str]) -> None:
        del self._asked[key]
        if not task.cancelled():
            task.exception()  # seen, also where every panel that waited for it has given up

    def forget(self, text: str) -> None:
        """Asks the gateway again at the session's next request, in whichever company."""
        secret = secret_of(text)
        for cache in (self._found, self._watched):
            cache.drop(lambda key: secret_of(key) == secret)
        self._tokens.drop(lambda key: secret_of(key[0]) == secret)
