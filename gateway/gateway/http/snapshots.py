"""All records of one kind, a line each, in one answer: pages of the kind's list, each fetched once the client has taken
the one before."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec
from prometheus_client import Gauge

from chassis.http.replies import Reply
from chassis.http.requests import Request
from chassis.refusals import Unavailable
from gateway.http.encoding import compressor
from gateway.http.replies import ApiError
from gateway.http.shared_limits import SharedLimits

SECONDS_MAX = 30 * 60.0
# A snapshot holds a page and the state of its compression.
SNAPSHOTS_MAX = 20
# While others wait, a client that has taken nothing for so long is evicted.
STALLED_SECONDS = 10.0
RETRY_SECONDS = 10

UNDER_WAY = Gauge("makeready_http_snapshots", "Snapshots under way")
_TAKEN = "A snapshot of these records is under way for this company; end it or wait for its end."
_records = msgspec.json.Decoder(list[msgspec.Raw]).decode


class SnapshotLate(Unavailable):
    """A snapshot took longer than it may."""


class SnapshotEvicted(ConnectionError):  # noqa: N818 - says what is the matter
    """A snapshot was ended for another company's."""


class Snapshot:
    """One snapshot under way."""

    def __init__(self, company_id: int) -> None:
        self.company_id = company_id
        self.unread_since = math.inf
        """Since when its client has not taken the page that it is sent, by the clock of `monotonic`; infinite while
        none is sent."""
        self._scope: asyncio.Timeout | None = None
        """While its answer is streamed."""

    @property
    def is_streamed(self) -> bool:
        return self._scope is not None

    async def stream(self, request: Request, reply: Reply, pieces: AsyncIterator[bytes]) -> None:
        """See `Request.stream`. Raises SnapshotEvicted, too."""
        try:
            async with asyncio.timeout(None) as self._scope:
                await request.stream(reply, self._noting(pieces))
        except TimeoutError:
            if self._scope is None or not self._scope.expired():
                raise
            raise SnapshotEvicted("another company had fewer snapshots") from None
        finally:
            self._scope = None

    async def _noting(self, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for piece in pieces:
            self.unread_since = time.monotonic()
            yield piece
            self.unread_since = math.inf

    def evict(self) -> None:
        """Breaks its answer off."""
        if self._scope is not None:
            self._scope.reschedule(asyncio.get_running_loop().time())


class Snapshots:
    """The snapshots under way in this process."""

    def __init__(self, shared: SharedLimits) -> None:
        self._shared = shared
        self._under_way: dict[tuple[int, str], Snapshot] = {}
        """By company and path, in the order of their beginning."""
        UNDER_WAY.set_function(lambda: len(self._under_way))

    @contextlib.asynccontextmanager
    async def begin(self, company_id: int, path: str) -> AsyncIterator[Snapshot]:
        """Begins a company's snapshot of one kind. Raises ApiError 429 if it may not."""
        key = company_id, path
        if key in self._under_way:
            raise _too_many(_TAKEN)
        if len(self._under_way) >= SNAPSHOTS_MAX and not self._makes_room(company_id):
            raise _too_many("Too many snapshots are under way; wait for Retry-After seconds.")
        snapshot = self._under_way[key] = Snapshot(company_id)
        try:
            async with self._shared.held(f"snapshot:{company_id}:{path}") as was_free:
                if not was_free:
                    raise _too_many(_TAKEN)
                yield snapshot
        finally:
            if self._under_way.get(key) is snapshot:
                del self._under_way[key]

    def _makes_room(self, company_id: int) -> bool:
        """Whether another snapshot was evicted for one of this company.

        One whose client has taken nothing for STALLED_SECONDS is; else the company with the most loses one to a company
        that has at least two fewer, the one whose client is slowest. So no company keeps others out.
        """
        streamed = {key: snapshot for key, snapshot in self._under_way.items() if snapshot.is_streamed}
        stalled_since = time.monotonic() - STALLED_SECONDS
        candidates = [key for key, snapshot in streamed.items() if snapshot.unread_since < stalled_since]
        if not candidates:
            counts = Counter(holder for holder, _ in self._under_way)
            most = max(counts.values(), default=0)
            if counts[company_id] > most - 2:
                return False
            candidates = [key for key in streamed if counts[key[0]] == most]
        if not candidates:
            return False
        evicted = min(candidates, key=lambda key: streamed[key].unread_since)
        self._under_way.pop(evicted).evict()
        return True


async def lines(
    answer: Any, following: Callable[[Any], Awaitable[Any]], *, is_compressed: bool
) -> AsyncIterator[bytes]:
    """The records of an answer's page and of all that follow, each on a line.

    following: the answer after this one, None after the last. Raises SnapshotLate, and whatever `following` raises.
    """
    until = time.monotonic() + SECONDS_MAX
    packing = compressor() if is_compressed else None
    while answer is not None:
        if time.monotonic() > until:
            raise SnapshotLate(f"a snapshot took longer than {SECONDS_MAX / 60:.0f} minutes")
        piece = b"".join(part for record in _records(answer.page.data) for part in (record, b"\n"))
        yield piece if packing is None else packing.compress(piece)
        answer = await following(answer)
    if packing is not None:
        yield packing.flush()


def _too_many(message: str) -> ApiError:
    return ApiError(429, "rate_limited", message, b"Retry-After: %d\r\n" % RETRY_SECONDS)
