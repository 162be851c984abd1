"""Lists with filters in the address: reading filters, links to neighbouring lists, files of whole lists."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from aiohttp import web

from chassis.refusals import Refusal

PAGE_ROWS, CSV_ROWS = 50, 200
CSV_ROWS_MAX = 5000
WORDS_MAX = 200

Row = TypeVar("Row")


class StatusCount(Protocol):
    """How many records have a status, as any contract counts them."""

    @property
    def status(self) -> str: ...
    @property
    def count(self) -> int: ...


def number(query: Mapping[str, str], name: str) -> int | None:
    """An id in the address; None without one, or for a text that is no id."""
    text = query.get(name, "")
    value = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0
    return value if 0 < value < 2**63 else None


def chosen(query: Mapping[str, str], name: str, allowed: Collection[str]) -> str:
    """A value in the address that is one of those allowed; else ""."""
    value = query.get(name, "")
    return value if value in allowed else ""


def words(query: Mapping[str, str]) -> str:
    """The words that the person looks for."""
    return query.get("q", "").strip()[:WORDS_MAX]


async def every(page: Callable[[int], Awaitable[tuple[Sequence[Row], int]]]) -> list[Row]:
    """All rows of a list, for a file; CSV_ROWS_MAX at most. page: the rows after an id, and the next page's, or 0."""
    rows: list[Row] = []
    after = 0
    while len(rows) < CSV_ROWS_MAX:
        more, after = await page(after)
        rows += more
        if not after:
            break
    return rows[:CSV_ROWS_MAX]


async def record(work: Awaitable[Row]) -> Row:
    """The record of a page. One that nobody has, and another company's, are the same page: 404."""
    try:
        return await work
    except Refusal as refusal:
        if refusal.status == 404:
            raise web.HTTPNotFound from None
        raise


def tally(counts: Iterable[StatusCount]) -> dict[str, int]:
    """Counts by status."""
    return {row.status: row.count for row in counts}
