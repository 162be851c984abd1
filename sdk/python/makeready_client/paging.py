"""Lists and feeds, page by page or record by record."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec

from makeready_client.answers import Answer
from makeready_client.core import AsyncCore, Core
from makeready_client.events import decoded
from makeready_client.models import PAGE_RECORDS_MAX, Event
from makeready_client.requests import Request

T = TypeVar("T")


class Page(Answer, Generic[T], kw_only=True):
    """One page of a list, ascending by id."""

    data: list[T]
    next_cursor: str | None
    """The `cursor` of the next page; None at the end."""
    limit: int


class FeedPage(Page[T], Generic[T], kw_only=True):
    """One page of changes or events, in their order."""

    resume_cursor: str
    """The `cursor` of the next request, now or later. Store it together with what you made of the page."""

    @property
    def superseded(self) -> bool:
        """Whether the page came before its `wait` was over, as too many other programs wait with this key."""
        return self._header("Service-Wait") == "superseded"

    positions: list[int] = []  # noqa: RUF012 - msgspec copies it
    """The numbers of events: without filters each follows the one before. Changes have none."""


P = TypeVar("P", bound=Page[Any])


class _Listed(Generic[T, P]):
    def __init__(self, request: Request, kind: type[P]) -> None:
        self.request = request
        self._kind = kind

    def __repr__(self) -> str:
        return f"<{self.request.method} {self.request.path}: iterate over it, or take a page()>"

    def _at(self, cursor: str | None) -> Request:
        query = dict(self.request.query)
        if query.get("limit") is None:
            query["limit"] = PAGE_RECORDS_MAX
        return replace(self.request, query=query | ({"cursor": cursor} if cursor else {}))

    def _read(self, page: P) -> P:
        return page


class Walk(_Listed[T, P]):
    """All records of a list or feed, from the `cursor` on that was given. Each iteration asks anew."""

    def __init__(self, client: Core, request: Request, kind: type[P]) -> None:
        super().__init__(request, kind)
        self._client = client

    def page(self, cursor: str | None = None) -> P:
        """One page: that of the cursor, or else the first."""
        return self._read(self._client.call(self._at(cursor), self._kind))

    def pages(self) -> Iterator[P]:
        """All pages, until nothing more waits."""
        page = self.page()
        yield page
        while page.next_cursor is not None:
            page = self.page(page.next_cursor)
            yield page

    def __iter__(self) -> Iterator[T]:
        for page in self.pages():
            yield from page.data


class AsyncWalk(_Listed[T, P]):
    """As Walk, with `async for` and coroutines."""

    def __init__(self, client: AsyncCore, request: Request, kind: type[P]) -> None:
        super().__init__(request, kind)
        self._client = client

    async def page(self, cursor: str | None = None) -> P:
        """One page: that of the cursor, or else the first."""
        return self._read(await self._client.call(self._at(cursor), self._kind))

    async def pages(self) -> AsyncIterator[P]:
        """All pages, until nothing more waits."""
        page = await self.page()
        yield page
        while page.next_cursor is not None:
            page = await self.page(page.next_cursor)
            yield page

    async def __aiter__(self) -> AsyncIterator[T]:
        async for page in self.pages():
            for record in page.data:
                yield record


Pages: TypeAlias = Walk[T, Page[T]]
AsyncPages: TypeAlias = AsyncWalk[T, Page[T]]
Feed: TypeAlias = Walk[T, FeedPage[T]]
AsyncFeed: TypeAlias = AsyncWalk[T, FeedPage[T]]
# The envelopes, each as its own key's model.
_EVENTS: type[FeedPage[Event]] = FeedPage[msgspec.Raw]  # type: ignore[assignment]


class _Events(_Listed[Event, FeedPage[Event]]):
    def _read(self, page: FeedPage[Event]) -> FeedPage[Event]:
        page.data = [decoded(bytes(event)) for event in page.data]  # type: ignore[call-overload]
        return page


class EventFeed(_Events, Walk[Event, FeedPage[Event]]):
    """Events, in the order in which they were stored."""

    def __init__(self, client: Core, request: Request) -> None:
        super().__init__(client, request, _EVENTS)


class AsyncEventFeed(_Events, AsyncWalk[Event, FeedPage[Event]]):
    """As EventFeed, with `async for` and coroutines."""

    def __init__(self, client: AsyncCore, request: Request) -> None:
        super().__init__(client, request, _EVENTS)
