"""Panels: parts of pages that other areas own, such as the open tickets on a unit's page."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

import structlog
from aiohttp import web
from markupsafe import Markup
from multidict import MultiDict, MultiDictProxy

from chassis.auth.clients import ServiceUnavailable
from chassis.refusals import Refusal
from console.kit import calls, links
from console.kit.context import PageContext
from console.kit.texts import _

NOTHING = Markup()
log = structlog.stdlib.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Included:
    """A panel of another area: its HTML, empty for a person who may not open it. `{{ tickets }}` shows it.

    ok: whether it is the panel, and not the sentence that it is missing. location: where a search's only hit leads.
    """

    html: Markup = NOTHING
    ok: bool = True
    location: str = ""

    def __html__(self) -> Markup:
        return self.html

    def __bool__(self) -> bool:
        return bool(self.html)


async def include(context: PageContext, path: str, /, **values: object) -> Included:
    """The panel at a path, for this person: `await include(context, "/tickets/panel", unit_id=17)`.

    values: its query; those that are None or empty are left out. Several run at once with `together`. One that does not
    answer within 1.5 s, or fails, is the sentence that it is missing. One that pages.py does not have, or that this
    person may not open, is empty.
    """
    assert context.page is None or not context.page.panel, f"the panel {context.page.path} includes a panel"
    page = next((page for page in context.site.pages if page.path == path and page.method == "GET"), None)
    if page is None or context.session.kind not in page.kinds:
        return Included()
    assert page.panel, f"{path} is no panel in pages.py"
    query = {name: str(value) for name, value in values.items() if value not in (None, "")}
    # With separate cookies, which nobody reads: a panel says nothing for the page that includes it.
    part = replace(context, page=page, panel_query=query, form=MultiDictProxy(MultiDict()), cookies={})
    try:
        async with asyncio.timeout(calls.PANEL_SECONDS):
            response = await page.run(part)
    except Refusal as refusal:
        return Included(missing(part, refusal.message), ok=False)
    except (TimeoutError, ServiceUnavailable, web.HTTPException) as error:
        # Without its query, which may name a resident.
        log.warning("panel_missing", panel=path, reason=str(error) or type(error).__name__)
        return Included(missing(part), ok=False)
    except Exception:
        log.exception("fault", page=path)
        return Included(missing(part), ok=False)
    if response.status == web.HTTPSeeOther.status_code:
        return Included(location=links.own_path(response.headers["Location"]))
    assert isinstance(response, web.Response) and response.status == web.HTTPOk.status_code
    return Included(Markup((response.text or "").strip()))  # noqa: S704 - a template made it


def missing(context: PageContext, reason: str = "") -> Markup:
    """What stands in the place of this panel while it cannot be shown."""
    assert context.page is not None
    reason = reason or _("%(name)s: unavailable right now.") % {"name": context.page.panel}
    template = context.site.templates.get_template("missing.html")
    return Markup(template.render(context=context, name=context.page.panel, reason=reason))  # noqa: S704 - of a template
