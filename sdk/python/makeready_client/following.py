"""Following events without an end."""

from __future__ import annotations

import datetime
from collections.abc import AsyncIterator, Iterator
from typing import Any

from makeready_client import models
from makeready_client.core import AsyncResource, Resource
from makeready_client.paging import AsyncEventFeed, EventFeed, FeedPage
from makeready_client.requests import Request

WAIT_SECONDS = 25


class _Position:
    def __init__(self, cursor: str | None) -> None:
        self.cursor = cursor
        """Where to go on in a later run. Store it after you have handled an event."""

    def _handed_out(self, page: FeedPage[models.Event]) -> Iterator[models.Event]:
        yield from page.data[:-1]
        # Within a page the cursor is that of its beginning, so a program that stops there gets its events again.
        self.cursor = page.resume_cursor
        yield from page.data[-1:]


class Events(_Position):
    """Events as they happen, for ever; each at least once over restarts from `cursor`."""

    def __init__(self, feed: EventFeed, cursor: str | None) -> None:
        super().__init__(cursor)
        self._feed = feed

    def __iter__(self) -> Iterator[models.Event]:
        while True:
            yield from self._handed_out(self._feed.page(self.cursor))


class AsyncEvents(_Position):
    """As Events, with `async for`."""

    def __init__(self, feed: AsyncEventFeed, cursor: str | None) -> None:
        super().__init__(cursor)
        self._feed = feed

    async def __aiter__(self) -> AsyncIterator[models.Event]:
        while True:
            for one in self._handed_out(await self._feed.page(self.cursor)):
                yield one


class Following(Resource):
    """What `client.events` has besides its operation."""

    def follow(
        self,
        cursor: str | None = None,
        *,
        wait: int = WAIT_SECONDS,
        event: models.EventKey | None = None,
        since: datetime.datetime | None = None,
    ) -> Events:
        """Iterate over the result for all events behind `cursor`, and then for each new one within about a second.

        cursor: from an earlier `follow(…).cursor` with the same `event` and `since`; None: from `since` on, else the
        events of 30 days. errors.CursorExpired is raised if events behind it are no longer there. wait: how long one
        request waits, 0 to 25 seconds.
        """
        return Events(EventFeed(self.client, _request(wait, event, since)), cursor)


class AsyncFollowing(AsyncResource):
    """What `client.events` has besides its operation."""

    def follow(
        self,
        cursor: str | None = None,
        *,
        wait: int = WAIT_SECONDS,
        event: models.EventKey | None = None,
        since: datetime.datetime | None = None,
    ) -> AsyncEvents:
        """As Following.follow, for `async for`."""
        return AsyncEvents(AsyncEventFeed(self.client, _request(wait, event, since)), cursor)


def _request(wait: int, event: models.EventKey | None, since: datetime.datetime | None) -> Request:
    query: dict[str, Any] = {"wait": wait, "event": event, "since": since}
    return Request("GET", "/events", query=query)
