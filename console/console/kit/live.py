"""Hints of the services about records that have just changed, for the pages that are open. Best effort.

A hint has the subject `hints.<service>.<company>.<kind>.<id>` and no content. A page names its *topics*: `ticket-41`
for one record, `ticket` for any of the kind. The console listens to a company's hints while one of its people looks,
and for a minute after that, so that a page which is opened meanwhile misses none.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import ssl
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator

import structlog
from prometheus_client import Gauge

from chassis.messaging.transport import FAULTS, Transport

TOPIC = re.compile(r"[a-z][a-z_]{0,39}(-[1-9][0-9]{0,18})?")
TOPICS_MAX = 20
OF_A_SESSION_MAX = 8  # more than a browser opens to one host
OF_AN_ACCOUNT_MAX = 24
OF_A_COMPANY_MAX = 250
CONNECTIONS_MAX = 1000
LINGER_SECONDS = 60.0
REMEMBERED = 2000
AHEAD_SECONDS = 5.0
"""By how much a page may be ahead of this clock: another console made it. One further ahead was made before a clock was
set back, so nobody knows what it has missed."""

log = structlog.stdlib.get_logger(__name__)
WATCHED = Gauge("makeready_console_live", "Pages that are open and listen")


def topics_of(text: str) -> frozenset[str]:
    """The topics of a query, "ticket-41,turn". Raises ValueError."""
    topics = frozenset(text.split(","))
    if len(topics) > TOPICS_MAX or not all(map(TOPIC.fullmatch, topics)):
        raise ValueError("topics")
    return topics


def address(topics: Collection[str], since: float) -> str:
    """Where a page with these topics listens. since: the time when it was made. Too many records of a kind become the
    kind."""
    if len(topics) > TOPICS_MAX:
        topics = {topic.partition("-")[0] for topic in topics}
    return f"/live?topics={','.join(sorted(topics)[:TOPICS_MAX])}&since={int(since * 1000)}"


def matching(topics: Iterable[str], kind: str, entity_id: str) -> set[str]:
    """Those topics that a hint is about. Its id 0 means several records of the kind."""
    if entity_id == "0":
        return {topic for topic in topics if topic.partition("-")[0] == kind}
    return {topic for topic in topics if topic in (kind, f"{kind}-{entity_id}")}


class Watch:
    """One open page: which of its topics have news."""

    def __init__(self, session: str, account: str, company_id: int, topics: frozenset[str]) -> None:
        self.session, self.account, self.company_id, self.topics = session, account, company_id, topics
        self.news: set[str] = set()
        self.woken = asyncio.Event()
        self.is_over = False

    def hear(self, kind: str, entity_id: str) -> None:
        if topics := matching(self.topics, kind, entity_id):
            self.news |= topics
            self.woken.set()

    def end(self) -> None:
        """The page hangs up: another one takes its place, its browser has left, or the console stops."""
        self.is_over = True
        self.woken.set()


def _account(watch: Watch) -> tuple[int, str]:
    return watch.company_id, watch.account


class _Company:
    """The open pages of one company, and its last hints: when, kind, id."""

    def __init__(self) -> None:
        self.watches: set[Watch] = set()
        self.hints: deque[tuple[float, str, str]] = deque(maxlen=REMEMBERED)
        self.heard_since = float("inf")
        self.left_at = time.monotonic()
        self.stop: Callable[[], Awaitable[None]] | None = None


class Live:
    """The hints of all companies whose people look. Without a URL there are none, and open pages ask by the clock."""

    def __init__(self, url: str | None, tls: ssl.SSLContext | None = None) -> None:
        """url, tls: see `chassis.messaging.transport.Connection`."""
        self._transport = Transport(url, "console", tls, publishes=False) if url else None
        self._companies: dict[int, _Company] = {}
        self._watches: list[Watch] = []
        """The oldest first, without those that are over."""
        self._looked = asyncio.Event()
        self._reconnections = 0

    @property
    def is_connected(self) -> bool:
        return self._transport is not None and self._transport.is_connected

    @property
    def reconnections(self) -> int:
        """How often NATS was away for a while: pages have missed what was sent meanwhile."""
        return 0 if self._transport is None else self._transport.reconnections

    def look(self, company_id: int) -> None:
        """Somebody opens a page of this company: listens to its hints from now on."""
        if company_id not in self._companies:
            self._companies[company_id] = _Company()
            self._looked.set()
        self._companies[company_id].left_at = time.monotonic()

    def missed(self, watch: Watch, since: float) -> bool:
        """Notes what a page that was made at `since` has missed. Returns whether it may have missed more than that."""
        company = self._companies[watch.company_id]
        for at, kind, entity_id in company.hints:
            if at >= since:
                watch.hear(kind, entity_id)
        is_whole = len(company.hints) < REMEMBERED or company.hints[0][0] <= since
        is_ahead = since > time.time() + AHEAD_SECONDS
        return is_ahead or company.heard_since > since or not is_whole

    @contextlib.contextmanager
    def watch(self, session: str, account: str, company_id: int, topics: frozenset[str]) -> Iterator[Watch | None]:
        """One open page, until the block ends. None if there is no place for it.

        account: who looks, as `administrator:7`. The oldest page of a session, and that of an account, is evicted for a
        newer one. Where a company has all its places, or all are taken, the account with the most open pages loses its
        oldest one, if it has more than this account: so nobody keeps others out.
        """
        watch = Watch(session, account, company_id, topics)
        if not self._has_room(watch):
            yield None
            return
        self.look(company_id)
        self._watches.append(watch)
        self._companies[company_id].watches.add(watch)
        WATCHED.inc()
        try:
            yield watch
        finally:
            WATCHED.dec()
            self._hang_up(watch)
            company = self._companies[company_id]
            company.watches.discard(watch)
            company.left_at = time.monotonic()

    def _has_room(self, new: Watch) -> bool:
        """Whether the page has a place; others that are evicted for it are over."""
        of_session = [watch for watch in self._watches if watch.session == new.session]
        of_account = [watch for watch in self._watches if _account(watch) == _account(new)]
        if len(of_session) >= OF_A_SESSION_MAX:
            self._hang_up(of_session[0])
            return True
        if len(of_account) >= OF_AN_ACCOUNT_MAX:
            self._hang_up(of_account[0])
            return True
        of_company = [watch for watch in self._watches if watch.company_id == new.company_id]
        for watches, most in ((of_company, OF_A_COMPANY_MAX), (self._watches, CONNECTIONS_MAX)):
            if len(watches) >= most:
                account, number = Counter(map(_account, watches)).most_common(1)[0]
                if number <= len(of_account) + 1:
                    return False
                self._hang_up(next(watch for watch in watches if _account(watch) == account))
                return True
        return True

    def _hang_up(self, watch: Watch) -> None:
        watch.end()
        if watch in self._watches:
            self._watches.remove(watch)

    async def run(self) -> None:
        """Connects to NATS and listens, until cancelled."""
        if self._transport is None:
            return
        connecting = asyncio.create_task(self._transport.run())
        try:
            await self._transport.connected()
            while True:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._looked.wait(), 1.0)
                self._looked.clear()
                await self._listen(self._transport)
        finally:
            connecting.cancel()
            await self._transport.close()

    async def _listen(self, transport: Transport) -> None:
        """Begins with companies that somebody looks at now, ends with those that nobody has looked at for a while."""
        if transport.is_connected and transport.reconnections != self._reconnections:
            self._reconnections = transport.reconnections
            for company in self._companies.values():
                company.heard_since = time.time()
        for company_id, company in list(self._companies.items()):
            try:
                if not company.watches and time.monotonic() - company.left_at > LINGER_SECONDS:
                    del self._companies[company_id]
                    if company.stop is not None:
                        await company.stop()
                elif company.stop is None and transport.is_connected:
                    company.stop = await transport.listen(f"hints.*.{company_id}.>", self._hear)
                    company.heard_since = time.time()
            except FAULTS as error:
                log.info("hints_unheard", reason=str(error) or type(error).__name__)

    def _hear(self, subject: str) -> None:
        parts = subject.split(".")
        if len(parts) != 5 or not parts[2].isdigit():
            return
        company = self._companies.get(int(parts[2]))
        if company is not None:
            company.hints.append((time.time(), parts[3], parts[4]))
            for watch in company.watches:
                watch.hear(parts[3], parts[4])
