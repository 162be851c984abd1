"""Pages of filtered lists: a call looks through a bounded number of rows, so that it takes as long for every filter."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

ROWS_AT_ONCE = 500
LOOKS_MAX = 8


class HasEvent(Protocol):
    """A row about an event."""

    @property
    def event_id(self) -> uuid.UUID: ...


Row = TypeVar("Row", bound=HasEvent)


async def page(
    read: Callable[[uuid.UUID, int], Awaitable[Sequence[Row]]],
    passing: Callable[[Sequence[Row]], Awaitable[Sequence[Row]]] | None,
    before: uuid.UUID,
    limit: int,
) -> tuple[list[Row], uuid.UUID | None]:
    """Up to `limit` rows, newest first, and the event before which the next page begins; None if no page follows.

    `read` returns up to so many rows of events before one, newest first, each event once. `passing` returns those of
    them that the filters let through, in the same order; it is None if no filter is set.
    """
    rows_at_once = limit + 1 if passing is None else ROWS_AT_ONCE
    page_rows: list[Row] = []
    for _ in range(LOOKS_MAX):
        rows = await read(before, rows_at_once)
        page_rows += rows if passing is None else await passing(rows)
        if len(page_rows) > limit:
            return page_rows[:limit], page_rows[limit - 1].event_id
        if len(rows) < rows_at_once:
            return page_rows, None
        before = rows[-1].event_id
    return page_rows, before
