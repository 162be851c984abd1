"""All records of one kind, a line each, in one answer: pages of the kind's list, each fetched once the client has taken
the one before."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec
from prometheus_client import Gauge

from chassis.refusals import Unavailable
from gateway.http.encoding import compressor
from gateway.http.places import Places
from gateway.http.replies import ApiError

SECONDS_MAX = 30 * 60.0
# A snapshot holds a page and the state of its compression.
SNAPSHOTS_MAX = 20
RETRY_SECONDS = 10

UNDER_WAY = Gauge("makeready_http_snapshots", "Snapshots under way")
_TAKEN = "A snapshot of these records is under way for this company; end it or wait for its end."
_records = msgspec.json.Decoder(list[msgspec.Raw]).decode


class SnapshotLate(Unavailable):
    """A snapshot took longer than it may."""


class Snapshots:
    """The snapshots under way in this process; their places are those of all gateways."""

    def __init__(self, shared: Places) -> None:
        self._shared = shared
        self._places: set[tuple[int, str]] = set()

    @contextlib.asynccontextmanager
    async def place(self, company_id: int, path: str) -> AsyncIterator[None]:
        """The place of a company's snapshot of one kind. Raises ApiError 429 if it is taken."""
        place = company_id, path
        if place in self._places:
            raise _too_many(_TAKEN)
        if len(self._places) >= SNAPSHOTS_MAX:
            raise _too_many("Too many snapshots are under way; wait for Retry-After seconds.")
        self._places.add(place)
        UNDER_WAY.inc()
        try:
            async with self._shared.held(f"snapshot:{company_id}:{path}") as was_free:
                if not was_free:
                    raise _too_many(_TAKEN)
                yield
        finally:
            UNDER_WAY.dec()
            self._places.remove(place)


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
        some = b"".join(part for record in _records(answer.page.data) for part in (record, b"\n"))
        yield some if packing is None else packing.compress(some)
        answer = await following(answer)
    if packing is not None:
        yield packing.flush()


def _too_many(message: str) -> ApiError:
    return ApiError(429, "rate_limited", message, b"Retry-After: %d\r\n" % RETRY_SECONDS)
