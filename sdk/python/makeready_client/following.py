"""Following events without an end."""

from __future__ import annotations

import asyncio
import datetime
import time
from collections.abc import AsyncIterator, Iterator

from makeready_client import models
from makeready_client.core import AsyncResource, Resource
from makeready_client.errors import MakereadyError
from makeready_client.paging import AsyncEventFeed, EventFeed, FeedPage
from makeready_client.pauses import OnRetry, Pauses
from makeready_client.requests import Request

WAIT_SECONDS = 25


class _Position:
    def __init__(self, cursor: str | None, wait: int, on_retry: OnRetry | None) -> None:
        self.cursor = cursor
        """Where to go on in a later run. Store it after you have handled an event."""
        self._pauses = Pauses(wait, on_retry)

    def _handed_out(self, page: FeedPage[models.Event]) -> Iterator[models.Event]:
        yield from page.data[:-1]
        # Within a page the cursor is that of its beginning, so a program that stops there gets its events again.
        self.cursor = page.resume_cursor
        yield from page.data[-1:]


class Events(_Position):
    """Events as they happen, for ever; each at least once over restarts from `cursor`."""

    def __init__(self, feed: EventFeed, cursor: str | None, wait: int, on_retry: OnRetry | None) -> None:
        super().__init__(cursor, wait, on_retry)
        self._feed = feed

    def __iter__(self) -> Iterator[models.Event]:
        while True:
            self._pauses.ask()
            try:
                page = self._feed.page(self.cursor)
            except MakereadyError as error:
                pause = self._pauses.after_failure(error)
            else:
                pause = self._pauses.after_page(page)
                yield from self._handed_out(page)
            time.sleep(pause)


class AsyncEvents(_Position):
    """As Events, with `async for`."""

    def __init__(self, feed: AsyncEventFeed, cursor: str | None, wait: int, on_retry: OnRetry | None) -> None:
        super().__init__(cursor, wait, on_retry)
        self._feed = feed

    async def __aiter__(self) -> AsyncIterator[models.Event]:
        while True:
            self._pauses.ask()
            try:
                page = await self._feed.page(self.cursor)
            except MakereadyError as error:
                pause = self._pauses.after_failure(error)
            else:
                pause = self._pauses.after_page(page)
                for event in self._handed_out(page):
                    yield event
            await asyncio.sleep(pause)


class Following(Resource):
    """What `client.events` has besides its operation."""

    def follow(
        self,
        cursor: str | None = None,
        *,
        wait: int = WAIT_SECONDS,
        event: models.EventKey | None = None,
        since: datetime.datetime | None = None,
        on_retry: OnRetry | None = None,
    ) -> Events:
        """Iterate over the result for all events behind `cursor`, and then for each new one within about a second.

        cursor: from an earlier `follow(…).cursor` with the same `event` and `since`; None: from `since` on, else the
        events of 30 days. errors.CursorExpired is raised if events behind it are no longer there. wait: how long one
        request waits, 0 to 25 seconds. Faults that may pass end nothing: the next request follows 1, 2, 4 … 30 seconds
        later, and on_retry is told of each. Other errors are raised.
        """
        return Events(EventFeed(self.client, _request(wait, event, since)), cursor, wait, on_retry)


class AsyncFollowing(AsyncResource):
    """What `client.events` has besides its operation."""

    def follow(
        self,
        cursor: str | None = None,
        *,
        wait: int = WAIT_SECONDS,
        event: models.EventKey | None = None,
        since: datetime.datetime | None = None,
        on_retry: OnRetry | None = None,
    ) -> AsyncEvents:
        """As Following.follow, for `async for`."""
        return AsyncEvents(AsyncEventFeed(self.client, _request(wait, event, since)), cursor, wait, on_retry)


def _request(wait: int, event: models.EventKey | None, since: datetime.datetime | None) -> Request:
    query: dict[str, object] = {"wait": wait, "event": event, "since": since}
    return Request("GET", "/events", query=query)
