"""A copy of a company's records, equal to the API's to the byte (docs/sync of the API says why)."""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import msgspec

from makeready_client import errors
from makeready_client.core import Core
from makeready_client.models import KINDS, PAGE_RECORDS_MAX
from makeready_client.paging import FeedPage
from makeready_client.pauses import OnRetry, Pauses
from makeready_client.requests import Request
from makeready_client.snapshots import Snapshot

WAIT_SECONDS = 25
# Where everything changes all the time: nine kinds every 5 seconds are 108 of the key's 120 requests a minute.
PAUSE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Change:
    """A record at its latest state."""

    entity_id: int
    record: bytes | None
    """JSON as its fetch returns it, to the byte; None where it can no longer be seen: delete it."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What a store keeps in one transaction."""

    kind: str
    """tickets, units, …"""
    changes: Iterable[Change]
    """To be read once. A snapshot's come from the network while they are read."""
    cursor: str
    """Where the next batch begins: keep it in the same transaction."""
    is_whole: bool
    """Whether these are all records of the kind: delete the others."""


Store = Callable[[Batch], None]


class _Change(msgspec.Struct):
    entity_id: int
    gone: bool
    record: msgspec.Raw


class _Id(msgspec.Struct):
    entity_id: int


class Mirror:
    """Brings a store in step with the API, from a snapshot of each kind and the changes since.

    store: a SqliteStore, or any function of a Batch; one batch at a time. cursors: where each kind's copy stands, by
    kind; those of `store.cursors()` if it has that, else every kind begins with a snapshot. A function must take a
    batch whole or raise: what it raises ends the run.
    """

    def __init__(
        self,
        client: Core,
        store: Store,
        *,
        kinds: Iterable[str] = KINDS,
        cursors: Mapping[str, str] | None = None,
    ) -> None:
        if not isinstance(client, Core):
            raise TypeError("a Mirror needs a Makeready; in a coroutine: await asyncio.to_thread(mirror.run)")
        self.kinds = tuple(kinds)
        if unknown := set(self.kinds).difference(KINDS):
            raise ValueError(f"no such kinds: {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
        self.cursors: dict[str, str] = dict(getattr(store, "cursors", dict)() if cursors is None else cursors)
        """Where the copy of each kind stands."""
        self.counts = dict.fromkeys(self.kinds, 0)
        """How many records have come, by kind."""
        self._client = client
        self._store = store
        self._storing = threading.Lock()

    def run(self) -> dict[str, int]:
        """Brings every kind up to now. Returns how many records came, by kind: none if nothing has changed."""
        before = dict(self.counts)
        for kind in self.kinds:
            while self.step(kind):
                pass
        return {kind: self.counts[kind] - before[kind] for kind in self.kinds}

    def follow(self, *, on_retry: OnRetry | None = None) -> None:
        """Keeps every kind in step until an error that repeating would not change, which it raises; outlasts outages.

        Each kind has a thread. on_retry: is told of each failure, in that thread, and in how many seconds follows the
        next request.
        """
        failed: queue.SimpleQueue[BaseException] = queue.SimpleQueue()
        stopping = threading.Event()

        def work(kind: str) -> None:
            pauses = Pauses(WAIT_SECONDS, on_retry)
            while not stopping.is_set():
                pauses.ask()
                try:
                    page = self._advance(kind, WAIT_SECONDS)
                except errors.MakereadyError as error:
                    pause = pauses.after_failure(error)
                else:
                    pause = pauses.after_page(page) if page else 0.0
                    if page and page.next_cursor is None and self._client.settings.allowance.is_short():
                        pause = max(pause, PAUSE_SECONDS)  # others need the key, too
                stopping.wait(pause)

        def guarded(kind: str) -> None:
            try:
                work(kind)
            except BaseException as error:  # raised again by the thread that waits
                failed.put(error)

        for kind in self.kinds:
            threading.Thread(target=guarded, args=[kind], daemon=True).start()
        try:
            raise failed.get()
        finally:
            stopping.set()

    def step(self, kind: str, *, wait: int = 0) -> bool:
        """Brings one kind a page forward, or stores its snapshot. Returns whether more waits."""
        page = self._advance(kind, wait)
        return page is None or page.next_cursor is not None

    def _advance(self, kind: str, wait: int) -> FeedPage[_Change] | None:
        """The page by which one kind went forward; None after a snapshot, and where one has to follow."""
        cursor = self.cursors.get(kind)
        if cursor is None:
            self._keep(self._snapshot(kind))
            return None
        query = {"cursor": cursor, "limit": PAGE_RECORDS_MAX, "wait": wait}
        try:
            page = self._client.call(Request("GET", f"/changes/{kind}", query=query), FeedPage[_Change])
        except errors.CursorExpired:  # the API's database was restored: the copy may hold what that lost
            del self.cursors[kind]
            return None
        changes = [Change(record.entity_id, None if record.gone else bytes(record.record)) for record in page.data]
        if changes or page.resume_cursor != cursor:
            self._keep(Batch(kind, changes, page.resume_cursor, is_whole=False))
        return page

    def _snapshot(self, kind: str) -> Batch:
        snapshot: Snapshot[_Id] = Snapshot(self._client, Request("GET", f"/snapshots/{kind}"), _Id)
        lines = snapshot.lines()
        first = list(itertools.islice(lines, 1))  # the cursor comes before the first record
        decode = msgspec.json.Decoder(_Id).decode
        changes = (Change(decode(line).entity_id, line) for line in itertools.chain(first, lines))
        return Batch(kind, changes, snapshot.resume_cursor, is_whole=True)

    def _keep(self, batch: Batch) -> None:
        count = 0

        def counted() -> Iterator[Change]:
            nonlocal count
            for count, change in enumerate(batch.changes, 1):  # noqa: B007 - its last value is the result
                yield change

        with self._storing:
            self._store(Batch(batch.kind, counted(), batch.cursor, batch.is_whole))
        self.cursors[batch.kind] = batch.cursor
        self.counts[batch.kind] += count
