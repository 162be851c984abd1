"""The search: each area finds its own records, and this page shows what they found."""

from __future__ import annotations

from aiohttp import web

from console.kit.calls import together
from console.kit.context import PageContext
from console.kit.panels import Included, include

HERE = "Search"
PATH = "/search"
TEXT_MAX = 200
PANELS = ("/tickets/found", "/places/found", "/vendors/found", "/people/found", "/events/found")


async def search(context: PageContext) -> web.StreamResponse:
    """Leads to the record if one is all that was meant: its number, its external id, an event's or a request's id."""
    words = search_words(context.query.get("q", ""))
    if not words:
        return context.render("search/search.html", here=HERE, words="", panels=[], exact=[], nothing=False)
    panels: list[Included] = await together(*(include(context, path, q=words) for path in PANELS))
    exact = sorted({panel.location for panel in panels if panel.location})
    if len(exact) == 1:
        return context.redirect(exact[0])
    return context.render(
        "search/search.html", here=HERE, words=words, panels=[panel for panel in panels if panel], exact=exact,
        nothing=not exact and not any(panels),
    )  # fmt: skip


def search_words(text: str) -> str:
    """The words as one line, without what nobody types."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text[:TEXT_MAX]).split())
