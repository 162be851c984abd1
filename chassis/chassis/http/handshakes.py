"""Whose TLS handshake begins next: one client's after the other's, a few in each turn of the event loop.

The key exchange takes a core for a millisecond as soon as the client's first message is there, and a handshake holds
memory until it ends. So a handshake begins only once that message has arrived whole, when it is its client's turn, and
while the budget has room: half a message costs a socket and nothing else.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections import Counter
from collections.abc import Callable

from chassis.http.connection_limits import HANDSHAKE_BYTES, ConnectionLimits

# A handshake that takes longer is evicted if others wait.
SLOW_SECONDS = 2.0
# How many begin before the requests of others go on: so many, and one more for each of these seconds of CPU that the
# process took since some began. So they have a share of a process that is busy with long requests, too.
BEGUN_AT_ONCE, BEGUN_AT_ONCE_MAX = 2, 16
CPU_SECONDS_OF_ONE = 0.004

# TLS puts a record's type, version and length before it (RFC 8446, 5.1).
_RECORD_HEAD_BYTES, _RECORD_BYTES_MAX = 5, 16 * 1024
_HANDSHAKE_RECORD = 0x16
_PEEKED_BYTES = 2048

_Waiting = dict[str, dict[socket.socket, None]]


class Handshakes:
    """The handshakes of one port: those under way, and who waits for one."""

    def __init__(self, limits: ConnectionLimits, begin: Callable[[socket.socket], asyncio.Task[None]]) -> None:
        """A connection's handshake is the task of `begin`."""
        self._limits = limits
        self._begin = begin
        # By client; the client whose turn is next comes first. Clients of whom a request was known take every second
        # turn, while any of them wait: however many strangers there are, they wait for each other alone.
        self._known: _Waiting = {}
        self._strangers: _Waiting = {}
        self._last_was_known = False
        self._under_way: dict[asyncio.Task[None], tuple[float, str]] = {}
        """When each began, in that order, and whose it is."""
        self._counts: Counter[str] = Counter()
        """How many of each client are under way."""
        self._is_scheduled = False
        self._cpu = time.thread_time()
        """When some began last, in seconds of CPU."""

    @property
    def waiting(self) -> int:
        return sum(len(sockets) for queue in (self._known, self._strangers) for sockets in queue.values())

    def wait(self, accepted: socket.socket, client: str) -> None:
        """A connection whose client has sent its first message: it begins when it is its turn."""
        queue = self._known if self._limits.is_known(client) else self._strangers
        queue.setdefault(client, {})[accepted] = None
        self._schedule()

    def forget(self, accepted: socket.socket, client: str) -> None:
        """A connection that waits no longer."""
        for queue in (self._known, self._strangers):
            sockets = queue.get(client, {})
            if sockets.pop(accepted, accepted) is None and not sockets:
                del queue[client]

    def evict_slow(self, now: float) -> None:
        """Ends slow handshakes for those that wait. To be called once a second, with the loop's clock."""
        slow = [task for task, (begun, _) in self._under_way.items() if begun <= now - SLOW_SECONDS]
        for task in slow[: self.waiting]:
            self._evict(task)

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._begin_some)  # behind what is ready now

    def _begin_some(self) -> None:
        self._is_scheduled = False
        cpu = time.thread_time()
        share, self._cpu = int((cpu - self._cpu) / CPU_SECONDS_OF_ONE), cpu
        for _ in range(min(BEGUN_AT_ONCE + share, BEGUN_AT_ONCE_MAX)):
            if not self._begin_next():
                return
        if self._known or self._strangers:
            self._schedule()

    def _begin_next(self) -> bool:
        """Begins the handshake whose turn it is; False if none may begin now."""
        queues = (self._known, self._strangers)
        for queue in reversed(queues) if self._last_was_known else queues:
            client = self._next_client(queue)
            if client is not None:
                self._last_was_known = queue is self._known
                sockets = queue.pop(client)
                accepted = next(iter(sockets))
                del sockets[accepted]
                if sockets:
                    queue[client] = sockets  # behind the others
                self._begin_now(accepted, client)
                return True
        return False

    def _next_client(self, queue: _Waiting) -> str | None:
        """The client whose turn it is, for whom there is room; None if there is none.

        Without room, the client with the most handshakes loses one, the oldest, to one that has at least two fewer. So
        nobody waits for handshakes that another one does not end.
        """
        if self._limits.handshakes.has_room(HANDSHAKE_BYTES):
            return next(iter(queue), None)
        busiest, most = max(self._counts.items(), key=lambda item: item[1], default=("", 0))
        for client in queue:
            if self._counts[client] <= most - 2:
                self._evict(next(task for task, (_, holder) in self._under_way.items() if holder == busiest))
                return client
        return None

    def _begin_now(self, accepted: socket.socket, client: str) -> None:
        task = self._begin(accepted)
        self._limits.handshakes.hold(task.cancel, HANDSHAKE_BYTES)
        self._under_way[task] = asyncio.get_running_loop().time(), client
        self._counts[client] += 1
        task.add_done_callback(self._ended)

    def _evict(self, task: asyncio.Task[None]) -> None:
        self._leave(task)
        self._limits.handshakes.evict(task.cancel)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._leave(task)
        self._limits.handshakes.release(task.cancel)
        if self._known or self._strangers:
            self._schedule()

    def _leave(self, task: asyncio.Task[None]) -> None:
        if task in self._under_way:
            _, client = self._under_way.pop(task)
            self._counts[client] -= 1
            if not self._counts[client]:
                del self._counts[client]


def hello_bytes(accepted: socket.socket) -> tuple[int, int]:
    """How many bytes of a connection's first message have arrived, and how many it has as far as can be seen.

    Whatever is no handshake of TLS has arrived whole: OpenSSL says what is wrong with it. (0, 0): the client has left.
    """
    try:
        peeked = accepted.recv(_PEEKED_BYTES, socket.MSG_PEEK)
        if len(peeked) < _RECORD_HEAD_BYTES:
            is_hello = peeked[:1] == bytes([_HANDSHAKE_RECORD])
            return len(peeked), _RECORD_HEAD_BYTES if is_hello else len(peeked)
        size = _RECORD_HEAD_BYTES + int.from_bytes(peeked[3:_RECORD_HEAD_BYTES], "big")
        if peeked[0] != _HANDSHAKE_RECORD or size > _RECORD_HEAD_BYTES + _RECORD_BYTES_MAX:
            return len(peeked), len(peeked)
        if len(peeked) == _PEEKED_BYTES and size > _PEEKED_BYTES:
            peeked = accepted.recv(size, socket.MSG_PEEK)
        return len(peeked), size
    except (BlockingIOError, InterruptedError):
        return 0, _RECORD_HEAD_BYTES
    except OSError:
        return 0, 0
