"""The page context: what a page's function is called with, for one request of one person to one page."""

from __future__ import annotations

import base64
import datetime
import functools
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

import jinja2
from aiohttp import web
from markupsafe import Markup
from multidict import MultiDict, MultiDictProxy

from console.act_addresses import ActAddresses
from console.bulk_acts import BulkActs
from console.files import Files
from console.first_steps import FirstSteps
from console.kit import calls, flash, form_tokens, links, live
from console.kit.browser_session import BrowserSession
from console.kit.flash import Flash, Undo
from console.kit.live_regions import LiveRegions
from console.kit.navigation import Navigation
from console.kit.rpcs import PageRpcs
from console.kit.sessions import Sessions
from console.kit.statics import Statics
from console.kit.times import Wall
from console.kit.uploads import Uploads
from console.kit.views import ListViews
from console.saved_views import SavedViews

COOKIE_YEAR = 365 * 86400
THEME_COOKIE = "__Host-makeready-theme"
SHORTCUTS_COOKIE = "__Host-makeready-shortcuts"
THEMES = ("auto", "light", "dark")

# What has the real clock in a sandbox too: sessions, keys, requests, imports, the audit log, settings.
REAL_CLOCK = re.compile(r"/(account|audit|imports|keys|requests|settings)\b")

Render = Callable[["PageContext"], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Page:
    """One line of pages.py.

    kinds: who may open it; rpcs: all that it may call, as `webhooks.DeliveriesService/ListDeliveries`; menu: its group
    and its word in the menu, with an icon; empty: it stands in none. due: it opens although a second factor is due.
    panel: the name of a part of other pages, "Tickets", that they show by `panels.include`; empty: it is a whole page.
    uploads: its form brings files, which the page reads from `context.uploads`, and has so many bytes at most.
    in_sandboxes: the menu of a live company leaves it out. is_secret: its form has a password, a code or a key, and is
    kept nowhere. views: it is a list whose filters people can save. on_device: a page that a phone keeps, to be opened
    without a network; an act that waits for one there. work: the panel is rows of one person's list (kit.work).
    """

    method: str
    path: str
    run: Render
    kinds: frozenset[str]
    rpcs: tuple[str, ...] = ()
    menu: tuple[str, str, str] | None = None
    due: bool = False
    panel: str = ""
    uploads: int = 0
    in_sandboxes: bool = False
    is_secret: bool = False
    views: bool = False
    on_device: bool = False
    work: bool = False


@dataclass(frozen=True, slots=True)
class Site:
    """What all pages share."""

    url: str
    api_url: str
    sessions: Sessions
    calls: calls.Calls
    templates: jinja2.Environment
    statics: Statics
    pages: Sequence[Page]
    now: Callable[[], datetime.datetime]
    live: live.Live
    files: Files
    saved_views: SavedViews
    bulk_acts: BulkActs
    first_steps: FirstSteps
    act_addresses: ActAddresses
    key: bytes
    """The console's own, which browsers' secrets are sealed with."""


@dataclass
class PageContext:
    """The request, what came with it, and what answers it. `page` is None for an address that no page has."""

    request: web.Request
    site: Site
    page: Page | None
    request_id: str
    session: BrowserSession
    form: MultiDictProxy[str] = field(default_factory=lambda: MultiDictProxy(MultiDict()))
    uploads: Uploads = field(default_factory=Uploads)
    cookies: dict[str, tuple[str, int | None]] = field(default_factory=dict)
    """To set with the response: the value, "" to delete it, and its age in seconds, None until the browser closes."""
    panel_query: Mapping[str, str] | None = None
    """The query of a panel that another page includes; None for the page that the browser asked for."""
    live_regions: LiveRegions = field(default_factory=LiveRegions)
    views: ListViews | None = None
    """The saved views of a list; None for another page, and while they cannot be read."""

    # The request

    @property
    def query(self) -> Mapping[str, str]:
        return self.request.query if self.panel_query is None else self.panel_query

    @property
    def address(self) -> str:
        """The path of this page or panel with its query."""
        if self.panel_query is None or self.page is None:
            return self.request.rel_url.raw_path_qs
        return links.with_query(self.page.path, self.panel_query)

    @property
    def is_part(self) -> bool:
        """Whether the answer becomes a part of a page: another page includes this panel, or htmx fetches it anew."""
        return self.panel_query is not None or self.request.headers.get("HX-Request-Type") == "partial"

    def number(self, name: str) -> int:
        """A number in the path. Raises HTTPNotFound for one that no record can have."""
        value = int(self.request.match_info[name])
        if not 0 < value < 2**63:
            raise web.HTTPNotFound
        return value

    @property
    def form_token(self) -> str:
        """The token of the form that was sent, which is the idempotency key of its action."""
        return str(self.form[form_tokens.FIELD])

    def next_path(self, default: str) -> str:
        """Where an action leads: the page that its form was on."""
        path = links.own_path(self.form.get("next") or self.query.get("next") or "")
        return default if path == "/" else path

    @property
    def is_queued(self) -> bool:
        """Whether the browser sends a form that has waited for a network: no page is shown after it."""
        return self.request.method == "POST" and "X-Queued" in self.request.headers

    @property
    def theme(self) -> str:
        """How the person wants pages: one of THEMES."""
        theme = self.request.cookies.get(THEME_COOKIE, "")
        return theme if theme in THEMES else "auto"

    @property
    def has_shortcuts(self) -> bool:
        """Whether single characters are shortcuts, unless the person has turned them off (WCAG 2.1.4)."""
        return self.request.cookies.get(SHORTCUTS_COOKIE) != "off"

    # What the page is made of

    @functools.cached_property
    def wall(self) -> Wall:
        """The company's wall clock now. Pages of what has the real clock have that one by the company's wall."""
        who, now = self.session.who, self.site.now()
        if who is None or self.page is None or REAL_CLOCK.match(self.page.path):
            return Wall(who.timezone if who else "UTC", now)
        return Wall(who.timezone, now, who.clock_offset.ToTimedelta())

    @property
    def rpcs(self) -> PageRpcs:
        assert self.page is not None
        usual = calls.CALL_SECONDS if self.page.method == "GET" else calls.ACTION_SECONDS
        seconds = calls.PANEL_SECONDS if self.page.panel else usual
        return PageRpcs(self.site.calls, self.session, self.page.rpcs, seconds, self.is_queued)

    @property
    def navigation(self) -> Navigation:
        is_sandbox = self.session.who is not None and self.session.who.is_sandbox
        return Navigation(self.site.pages, self.session.kind, is_sandbox)

    @property
    def owner(self) -> str:
        """Who this is, in this company and this browser, for what the browser stores. It says nothing of the person."""
        key = self.session.browser.key(self.site.key, "owner", self.session.who)
        return base64.urlsafe_b64encode(key[:12]).decode()

    @property
    def form_key(self) -> bytes:
        """What the forms of this person, in this company and this browser, are bound to."""
        return self.session.browser.key(self.site.key, "forms", self.session.who)

    def new_form_token(self, path: str) -> str:
        """The value of the hidden field of a form that is sent to this path."""
        return form_tokens.new_token(self.form_key, path.partition("?")[0], self.site.now())

    def live_region(self, region: str, *topics: str) -> Markup:
        """The attributes of an element that fetches itself anew when a record changes. What a person types in it, and
        the focus, stay: `<section {{ context.live_region("ticket", "ticket-41", "turn") }}>`.

        region: its id, once in a page. topics: `KIND-ID` for a record, `KIND` for all of a kind; the kinds are those of
        the audit log. A page that answers a form is not live: it has no address.
        """
        assert self.page is not None
        if self.page.method != "GET":
            return Markup('id="{}"').format(region)
        self.site.live.look(self.session.person.company_id)
        return self.live_regions.attributes(region, topics, self.address, is_panel=bool(self.page.panel))

    # The answer

    def render(self, template: str, status: int = 200, /, **values: object) -> web.Response:
        """A page: `template` is `AREA/NAME.html`, from the folder `templates` of the area."""
        text = self.site.templates.get_template(template).render(
            context=self, who=self.session.who, wall=self.wall, flash=self._flash(), site=self.site, status=status,
            sent_form=self._done(status), **values,
        )  # fmt: skip
        return web.Response(text=text, content_type="text/html", status=status)

    def redirect(self, path: str, message: str = "", undo: Undo | None = None) -> web.Response:
        """To another page after an action (303). message: one sentence that the next page shows once, with a button
        for the undo."""
        if self.is_queued:
            return web.Response(status=204)
        if message or form_tokens.FIELD in self.form:
            token = self.form.get(form_tokens.FIELD, "")[: form_tokens.CHARACTERS_MAX]
            sealed = flash.sealed(Flash(message, undo, token), self.session.secret)
            self.cookies[flash.COOKIE] = sealed, flash.SECONDS
        return web.Response(status=303, headers={"Location": path})

    def _done(self, status: int) -> str:
        """The token of the form whose act has succeeded: the browser drops its draft."""
        if self.request.method == "POST":
            return self.form.get(form_tokens.FIELD, "") if status < 400 else ""
        return self._flash().token

    def _flash(self) -> Flash:
        """What the page before left for this one. What an open page asks for by itself leaves it there."""
        if flash.COOKIE not in self.request.cookies or "X-Live" in self.request.headers:
            return Flash()
        self.cookies.setdefault(flash.COOKIE, ("", 0))
        return flash.unsealed(self.request.cookies[flash.COOKIE], self.session.secret)
