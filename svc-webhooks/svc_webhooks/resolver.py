"""All addresses of a name, as the system knows them, and whose fault it is where there are none."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Sequence

PORT = 443

Resolve = Callable[[str], Awaitable[Sequence[str]]]


class NoAddress(Exception):  # noqa: N818 - the receiver's fault
    """The name does not exist or has no address."""


class ResolverFault(Exception):  # noqa: N818 - says whose fault it is
    """The resolver did not answer; nothing is known about the name."""


async def system_resolve(host: str) -> Sequence[str]:
    """All addresses of `host`. Raises NoAddress or ResolverFault.

    In a daemon thread: `getaddrinfo` can hang for half a minute, and an executor would make the
    process wait for it at exit.
    """
    loop = asyncio.get_running_loop()
    found: asyncio.Future[Sequence[str]] = loop.create_future()

    def settle(result: Sequence[str] | Exception) -> None:
        if found.done():
            return
        if isinstance(result, Exception):
            found.set_exception(result)
        else:
            found.set_result(result)

    def look_up() -> None:
        result = _getaddrinfo(host)
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, result)

    threading.Thread(target=look_up, name="resolve", daemon=True).start()
    return await found


def _getaddrinfo(host: str) -> Sequence[str] | Exception:
    try:
        # The final dot keeps the resolver's search list out: the name is meant as it is written.
        found = socket.getaddrinfo(host + ".", PORT, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    except UnicodeError:
        return NoAddress()
    except socket.gaierror as error:
        passing = error.errno in (socket.EAI_AGAIN, socket.EAI_SYSTEM, socket.EAI_MEMORY)
        return ResolverFault() if passing else NoAddress()
    except OSError:
        return ResolverFault()
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))
