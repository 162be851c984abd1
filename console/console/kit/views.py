"""Saved views above a list: its address with filters, under a name.

Which lists have them, pages.py says. The macro `ui.head` shows them below the heading. A view is an address: whatever
is stored in it, the list reads it as it reads any address.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

from console.kit.links import DEFAULT
from console.saved_views import QUERY_CHARACTERS_MAX, SavedView

PATH = "/views"
PAIRS_MAX = 100
# What an address says besides filters: where in the list one is, how it is written, and which rows are ticked.
_OTHERS = frozenset({"after", "before", "csv", "tick", DEFAULT})


@dataclass(frozen=True, slots=True)
class ListViews:
    """The views of one list. path: its address without filters; page: its path in pages.py; query: its filters now."""

    path: str
    page: str
    query: str
    views: Sequence[SavedView]

    def address(self, view: SavedView | None = None) -> str:
        """The list with a view's filters; without a view, the list as it is for everybody."""
        return with_filters(self.path, view.query if view else "")

    @property
    def current(self) -> SavedView | None:
        """The view whose filters the list has now."""
        now = _sorted(self.query)
        return next((view for view in self.views if _sorted(view.query) == now), None)

    @property
    def can_save(self) -> bool:
        """Whether there are filters that no view has."""
        return bool(self.query) and len(self.query) <= QUERY_CHARACTERS_MAX and self.current is None


def with_filters(path: str, query: str) -> str:
    """The address of a list with these filters."""
    return f"{path}?{query}" if query else path


def filters_of(pairs: Iterable[tuple[str, str]]) -> str:
    """The filters of an address as a view has them: in their order, without the empty ones."""
    kept = [(name, value.strip()) for name, value in pairs if name not in _OTHERS and value.strip()]
    return urlencode(kept[:PAIRS_MAX])


def read_query(text: str) -> str:
    """The filters in a query that a form brought back; empty if it is none that can be saved."""
    try:
        query = filters_of(parse_qsl(text, max_num_fields=PAIRS_MAX))
    except ValueError:
        return ""
    return query if len(query) <= QUERY_CHARACTERS_MAX else ""


def _sorted(query: str) -> list[tuple[str, str]]:
    return sorted(parse_qsl(query))
