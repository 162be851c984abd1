"""The search: each area finds its own records, and this page shows what they found."""

from __future__ import annotations

import re

from aiohttp import web

from console.kit.calls import together
from console.kit.context import PageContext
from console.kit.links import with_query
from console.kit.panels import Included, include

HERE = "Search"
PATH = "/search"
TEXT_MAX = 200
# Seven digits, as written in a phone number.
_PHONE = re.compile(r"(?:\d[-\s()./+\u2010-\u2015]*){7}")
PANELS = ("/residents/found", "/tickets/found", "/places/found", "/vendors/found", "/people/found", "/events/found")


async def search(context: PageContext) -> web.StreamResponse:
    """Leads to the record if one is all that was meant: its number, its external id, an event's or a request's id."""
    return await _search(context, search_words(context.query.get("q", "")))


async def send(context: PageContext) -> web.StreamResponse:
    """The form of the search. Words become an address, which can be kept; phone numbers and e-mail addresses do not:
    browsers and the servers in front of this one remember addresses."""
    words = search_words(context.form.get("q", ""))
    return await _search(context, words) if is_contact(words) else context.redirect(with_query(PATH, {"q": words}))


async def _search(context: PageContext, words: str) -> web.StreamResponse:
    if not words:
        return context.render("search/search.html", here=HERE, words="", panels=[], exact=[], nothing=False)
    # What is fetched while one types shows no contacts.
    more = {} if "typing" in context.query else {"/residents/found": {"contacts": "1"}}
    panels: list[Included] = await together(*(include(context, path, q=words, **more.get(path, {})) for path in PANELS))
    exact = sorted({panel.location for panel in panels if panel.location})
    if len(exact) == 1:
        return context.redirect(exact[0])
    return context.render(
        "search/search.html", here=HERE, words=words, panels=[panel for panel in panels if panel], exact=exact,
        nothing=not exact and not any(panels),
    )  # fmt: skip


def is_contact(words: str) -> bool:
    """Whether the words may have a phone number or an e-mail address."""
    return "@" in words or bool(_PHONE.search(words))


def search_words(text: str) -> str:
    """The words as one line, without what nobody types."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text[:TEXT_MAX]).split())
