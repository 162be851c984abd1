"""Reads the saved views of the list that a person opens."""

from __future__ import annotations

import asyncio

import structlog
from aiohttp import web

from chassis.refusals import Unavailable
from console.kit import views
from console.kit.context import Page, PageContext
from console.kit.links import DEFAULT

SECONDS = 0.5
"""How long a list waits for its views."""

log = structlog.stdlib.get_logger(__name__)


def page_of(context: PageContext, path: str) -> Page | None:
    """The list with this path in pages.py that has views and that the person may open."""
    return next(
        (
            page
            for page in context.site.pages
            if page.path == path and page.views and context.session.kind in page.kinds
        ),
        None,
    )


async def load(context: PageContext) -> web.Response | None:
    """Reads the views of the list that is opened. The answer leads to the person's default, if they come from the menu.

    A list whose views cannot be read within SECONDS is shown without them."""
    assert context.page is not None
    person = context.session.person
    try:
        async with asyncio.timeout(SECONDS):
            saved = await context.site.saved_views.of_list(person.company_id, person.actor, context.page.path)
    except (Unavailable, TimeoutError) as error:
        log.warning("views_missing", page=context.page.path, reason=str(error) or type(error).__name__)
        return None
    path, query = context.request.rel_url.raw_path, context.request.query
    context.views = views.ListViews(path, context.page.path, views.filters_of(query.items()), saved)
    if DEFAULT in query and (default := next((view for view in saved if view.is_default), None)):
        return context.redirect(context.views.address(default))
    return None
