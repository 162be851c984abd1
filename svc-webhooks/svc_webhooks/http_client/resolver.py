"""Resolves names through the system's resolver, and decides whose fault a failure is.

A name whose servers hang delays no other: a lookup that lasts longer than SLOW_AFTER_SECONDS no longer counts and
continues, and no name is looked up twice at once. Parties share look-ups and threads: one that has a thousand dead
names looked up leaves some to the others.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from svc_webhooks.http_client.shares import Shares, Turns, total_where_one_party_gets

RESOLVE_SECONDS_MAX = 5.0
KEPT_SECONDS = 5.0
KEPT_MAX = 4096
LOOKUPS_MAX = 64  # of one party, without slow ones
SLOW_AFTER_SECONDS = 0.5
THREADS_MAX = 512  # of one party; `getaddrinfo` can hang for half a minute and can't be stopped

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]  # of a name, for a party
Read = TypeVar("Read")


class NoAddress(Exception):  # noqa: N818 - the receiver's fault
    """The name does not exist or has no address."""


class ResolverFault(Exception):  # noqa: N818 - names the party at fault
    """The resolver did not answer; nothing is known about the name."""


class Names(Generic[Read]):
    """The results of `read` for the addresses of names. All waiters share one lookup, and its result is cached for
    KEPT_SECONDS."""

    def __init__(self, resolve: Resolve, read: Callable[[Sequence[str]], Read]) -> None:
        self._resolve = resolve
        self._read = read
        self._lookups = Turns(total_where_one_party_gets(LOOKUPS_MAX))
        self._cache: dict[str, tuple[float, Read]] = {}
        self._asking: dict[str, asyncio.Task[Read]] = {}

    async def find(self, host: str, party: int = 0) -> Read:
        """party: the one that the lookup is made for, if another has not begun it. Raises NoAddress, ResolverFault, and
        the errors of `read`."""
        cached = self._cache.get(host)
        if cached is not None and cached[0] > time.monotonic():
            return cached[1]
        task = self._asking.get(host)
        if task is None:
            task = asyncio.create_task(self._look_up(host, party))
            self._asking[host] = task
            task.add_done_callback(lambda done: self._looked_up(host, done))
        return await asyncio.shield(task)

    def close(self) -> None:
        for task in self._asking.values():
            task.cancel()

    async def _look_up(self, host: str, party: int) -> Read:
        try:
            async with asyncio.timeout(RESOLVE_SECONDS_MAX):
                addresses = await self._addresses(host, party)
        except TimeoutError as error:
            raise ResolverFault from error
        if not addresses:
            raise NoAddress
        resolved = self._read(addresses)
        if len(self._cache) >= KEPT_MAX:
            self._cache.clear()
        self._cache[host] = (time.monotonic() + KEPT_SECONDS, resolved)
        return resolved

    async def _addresses(self, host: str, party: int) -> Sequence[str]:
        await self._lookups.enter(party)
        try:
            lookup = asyncio.ensure_future(self._resolve(host, party))
            try:
                await asyncio.wait({lookup}, timeout=SLOW_AFTER_SECONDS)
            except BaseException:
                lookup.cancel()
                raise
        finally:
            self._lookups.leave(party)
        return await lookup

    def _looked_up(self, host: str, task: asyncio.Task[Read]) -> None:
        self._asking.pop(host, None)
        if not task.cancelled():
            task.exception()  # retrieves the exception, even if all waiters have timed out


class SystemResolver:
    """The system's resolver, in a daemon thread for each name: an executor would delay the process's exit."""

    def __init__(self) -> None:
        self._asked: dict[str, asyncio.Future[Sequence[str]]] = {}
        self._threads = Shares(total_where_one_party_gets(THREADS_MAX))

    async def __call__(self, host: str, party: int = 0) -> Sequence[str]:
        """All addresses of `host`. Raises NoAddress or ResolverFault."""
        answer = self._asked.get(host)
        if answer is None:
            if self._threads.room(party) <= 0:
                raise ResolverFault
            loop = asyncio.get_running_loop()
            answer = loop.create_future()
            answer.add_done_callback(asyncio.Future.exception)  # retrieves the exception, even without waiters
            threading.Thread(target=self._look_up, args=(loop, host, party), name="resolve", daemon=True).start()
            self._asked[host] = answer
            self._threads.take(party)
        return await asyncio.shield(answer)

    def _look_up(self, loop: asyncio.AbstractEventLoop, host: str, party: int) -> None:
        result = _getaddrinfo(host)
        if not loop.is_closed():
            loop.call_soon_threadsafe(self._settle, host, party, result)

    def _settle(self, host: str, party: int, result: Sequence[str] | Exception) -> None:
        self._threads.give_back(party)
        answer = self._asked.pop(host)
        if isinstance(result, Exception):
            answer.set_exception(result)
        else:
            answer.set_result(result)


def _getaddrinfo(host: str) -> Sequence[str] | Exception:
    try:
        # The final dot disables the resolver's search list: the name is absolute. Names without a dot are local ones.
        name = f"{host}." if "." in host else host
        entries = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    except UnicodeError:
        return NoAddress()
    except socket.gaierror as error:
        passing = error.errno in (socket.EAI_AGAIN, socket.EAI_SYSTEM, socket.EAI_MEMORY)
        return ResolverFault() if passing else NoAddress()
    except OSError:
        return ResolverFault()
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))
