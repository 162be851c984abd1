"""A visit: one request of one person to one page. Page functions take a visit and return a response."""

from __future__ import annotations

import asyncio
import datetime
import functools
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jinja2
import structlog
from aiohttp import web
from markupsafe import Markup
from multidict import MultiDict, MultiDictProxy

from chassis.auth.clients import ServiceUnavailable
from chassis.refusals import Refusal
from console.files import Files
from console.kit import acts, calls, links, live
from console.kit.forms import Form
from console.kit.serving import REQUEST
from console.kit.sessions import Sessions
from console.kit.statics import Statics
from console.kit.times import Wall
from console.kit.uploads import Uploads
from makeready.common.v1 import options_pb2
from makeready.identity.v1 import sessions_pb2

SESSION_COOKIE = "__Host-makeready"
VISITOR_COOKIE = "__Host-makeready-visitor"
"""Before the sign-in, the secret that its forms are bound to."""
KNOWN_COOKIE = "__Host-makeready-known"
"""Who has signed in with this browser before, for the gateway: it then makes them wait for no failures of others."""
KNOWN_SECONDS, KNOWN_CHARACTERS_MAX = 90 * 86400, 600
FLASH_COOKIE = "__Host-makeready-said"
THEME_COOKIE = "__Host-makeready-theme"
THEMES = ("auto", "light", "dark")
COOKIE_FLAGS: dict[str, Any] = {"path": "/", "secure": True, "httponly": True, "samesite": "Lax"}
FLASH_SECONDS = 60
FLASH_CHARACTERS_MAX = 600
"""Browsers drop a cookie of more than 4,096 bytes, and proxies refuse it."""
AGAIN_SECONDS = 0.1
"""Between two tries of an act whose same form is being processed."""
COOKIE_YEAR = 365 * 86400

# The words of the menu in their order. An area's pages stand together in pages.py, and may be of several groups.
MENU = (
    "Home",
    *("Tickets", "Turn board", "Inspections", "Upkeep", "Notices"),
    *("Properties", "Units", "Assets", "Meters", "Vendors", "Staff"),
    *("API keys", "Webhooks", "Events", "Imports"),
    *("Settings", "Administrators", "Audit log"),
)
SHORTCUTS = ("/", "/tickets", "/board")
# Where one of them has a part of a member of staff's own: its words and its path.
STAFF_SHORTCUTS = {"/tickets": ("My work", "/tickets?view=mine")}
NOBODY, STAFF, ADMINISTRATOR = "nobody", "staff", "administrator"
PEOPLE = frozenset({STAFF, ADMINISTRATOR})
ADMINISTRATORS = frozenset({ADMINISTRATOR})
EVERYBODY = frozenset({NOBODY, STAFF, ADMINISTRATOR})
log = structlog.stdlib.get_logger(__name__)
NOTHING = Markup()
_KINDS = {options_pb2.KIND_STAFF: STAFF, options_pb2.KIND_ADMINISTRATOR: ADMINISTRATOR}

Render = Callable[["Visit"], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Page:
    """One line of pages.py.

    kinds: who may open it; rpcs: all that it may call, as `webhooks.DeliveriesService/ListDeliveries`; menu: its group
    and its word in the menu, with an icon; empty: it stands in none. due: it opens although a second factor is due.
    panel: the name of a part of other pages, "Tickets", that they show by `visit.include`; empty: it is a whole page.
    uploads: its form brings files, which the page reads from `visit.uploads`, and has so many bytes at most.
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


@dataclass(frozen=True, slots=True)
class Site:
    """What all visits share."""

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


@dataclass
class Visit:
    """See the module's text. `who` is None while nobody is signed in."""

    request: web.Request
    site: Site
    page: Page | None
    request_id: str
    session: str = ""
    who: sessions_pb2.Session | None = None
    visitor: str = ""
    was_displaced: bool = False
    """Whether the session of the browser has ended because its person began newer ones."""
    form: MultiDictProxy[str] = field(default_factory=lambda: MultiDictProxy(MultiDict()))
    uploads: Uploads = field(default_factory=Uploads)
    cookies: dict[str, tuple[str, int | None]] = field(default_factory=dict)
    """To set with the response: the value, "" to delete it, and its age in seconds, None until the browser closes."""
    confirm_error: str = ""
    values: Mapping[str, str] | None = None
    """The query of a panel that another page includes; None for the page that the browser asked for."""
    topics: set[str] = field(default_factory=set)
    """What the live regions of the page and of its panels are about."""
    began: float = field(default_factory=time.time)

    @property
    def kind(self) -> str:
        return NOBODY if self.who is None else _KINDS[self.who.kind]

    @property
    def secret(self) -> str:
        """What this visit's forms are bound to."""
        return self.session or self.visitor

    @property
    def query(self) -> Mapping[str, str]:
        return self.request.query if self.values is None else self.values

    @property
    def address(self) -> str:
        """The path of this page or panel with its query."""
        if self.values is None or self.page is None:
            return self.request.rel_url.raw_path_qs
        return links.with_query(self.page.path, self.values)

    @property
    def is_part(self) -> bool:
        """Whether the answer becomes a part of a page: another page includes this panel, or htmx fetches it anew."""
        return self.values is not None or self.request.headers.get("HX-Request-Type") == "partial"

    @property
    def act(self) -> str:
        """The idempotency key of the form that was sent."""
        return str(self.form["act"])

    def number(self, name: str) -> int:
        """A number in the path. Raises HTTPNotFound for one that no record can have."""
        value = int(self.request.match_info[name])
        if not 0 < value < 2**63:
            raise web.HTTPNotFound
        return value

    @functools.cached_property
    def wall(self) -> Wall:
        """The company's wall clock now."""
        return Wall(self.who.timezone if self.who else "UTC", self.site.now())

    @property
    def client(self) -> sessions_pb2.Client:
        """The browser, for the gateway's list of sessions and its delays."""
        known_browser = self.request.cookies.get(KNOWN_COOKIE, "")
        return sessions_pb2.Client(
            address=self.request[REQUEST].address,
            user_agent=self.request.headers.get("User-Agent", "")[:400],
            known=known_browser if len(known_browser) <= KNOWN_CHARACTERS_MAX and known_browser.isascii() else "",
        )

    async def call(self, rpc: str, request: Any, *, service: str = "", deadline_seconds: float = 0.0) -> Any:
        """An RPC as the person who is signed in: `await visit.call("webhooks.DeliveriesService/GetDelivery", pb.…)`.

        pages.py must list the RPC for this page. service: which one to ask for an RPC of `common`. Raises Refusal and
        ServiceUnavailable; a page that catches neither shows the error's page.
        """
        assert self.page is not None and rpc in self.page.rpcs, f"pages.py does not list {rpc} for this page"
        usual = calls.CALL_SECONDS if self.page.method == "GET" else calls.ACT_SECONDS
        seconds = deadline_seconds or (calls.PANEL_SECONDS if self.page.panel else usual)
        give_up = asyncio.get_running_loop().time() + seconds
        while True:
            try:
                return await self.site.calls(self.session, rpc, request, service=service, deadline_seconds=seconds)
            except Refusal as refusal:
                # Without script a browser shows the answer to the last click of a double click: that of the first.
                is_late = asyncio.get_running_loop().time() + AGAIN_SECONDS > give_up
                if refusal.code != "idempotency_in_progress" or is_late:
                    raise
            await asyncio.sleep(AGAIN_SECONDS)

    async def send(self, rpc: str, form: Form, part: str = "") -> Any:
        """Sends a form that was read, as its act. Returns the response; None if it is refused: the form says why.

        part: which one it is, where a page's form is several acts with a key each.
        """
        form.message.idempotency_key = f"{self.act}.{part}" if part else self.act
        try:
            return await self.call(rpc, form.message)
        except Refusal as refusal:
            if needs_confirmation(refusal):
                raise
            form.refuse(refusal)
            return None

    def panel(self, rpc: str, request: Any, *, service: str = "") -> Awaitable[calls.Panel[Any]]:
        """As `call`, for a part of the page that may be missing."""
        return calls.panel(self.call(rpc, request, service=service, deadline_seconds=calls.PANEL_SECONDS))

    def live(self, region: str, *topics: str) -> Markup:
        """The attributes of an element that fetches itself anew when a record changes. What a person types in it, and
        the focus, stay: `<section {{ visit.live("ticket", "ticket-41", "turn") }}>`.

        region: its id, once in a page. topics: `KIND-ID` for a record, `KIND` for all of a kind; the kinds are those of
        the audit log. A page that answers a form is not live: it has no address.
        """
        assert self.page is not None and self.who is not None
        attributes = Markup('id="{}"').format(region)
        if self.page.method != "GET":
            return attributes
        self.topics.update(topics)
        self.site.live.look(self.who.company_id)
        when = ", ".join(f"{event} from:body" for event in (*topics, "live-again"))
        select = "" if self.page.panel else Markup(' hx-select="#{}"').format(region)
        return attributes + Markup(
            ' hx-get="{}" hx-trigger="{}"{} hx-target="this" hx-swap="outerMorph" hx-status:4xx="swap:none"'
            ' hx-status:5xx="swap:none" hx-headers=\'{{"X-Live": "1"}}\''
        ).format(self.address, when, select)

    @property
    def live_address(self) -> str:
        """Where this page listens; empty for one without live regions."""
        return live.address(self.topics, self.began) if self.topics else ""

    async def include(self, path: str, /, **values: object) -> Included:
        """The panel at a path, for this person: `await visit.include("/tickets/panel", unit_id=17)`.

        values: its query; those that are None or empty are left out. Several run at once with `together`. One that does
        not answer within 1.5 s, or fails, is the sentence that it is missing. One that pages.py does not have, or that
        this person may not open, is empty.
        """
        assert self.page is None or not self.page.panel, f"the panel {self.page.path} includes a panel"
        page = next((page for page in self.site.pages if page.path == path and page.method == "GET"), None)
        if page is None or self.kind not in page.kinds:
            return Included()
        assert page.panel, f"{path} is no panel in pages.py"
        query = {name: str(value) for name, value in values.items() if value not in (None, "")}
        # With cookies of its own, which nobody reads: a panel says nothing for the page that includes it.
        part = replace(self, page=page, values=query, form=MultiDictProxy(MultiDict()), cookies={})
        try:
            async with asyncio.timeout(calls.PANEL_SECONDS):
                response = await page.run(part)
        except Refusal as refusal:
            return Included(part.missing(refusal.message), ok=False)
        except (TimeoutError, ServiceUnavailable, web.HTTPException) as error:
            log.warning("panel_missing", panel=part.address, reason=str(error) or type(error).__name__)
            return Included(part.missing(), ok=False)
        except Exception:
            log.exception("fault", page=part.address)
            return Included(part.missing(), ok=False)
        if response.status == web.HTTPSeeOther.status_code:
            return Included(location=links.own_path(response.headers["Location"]))
        assert isinstance(response, web.Response) and response.status == web.HTTPOk.status_code
        return Included(Markup((response.text or "").strip()))  # noqa: S704 - a template made it

    def missing(self, reason: str = "") -> Markup:
        """What stands in the place of this panel while it cannot be shown."""
        assert self.page is not None
        reason = reason or f"{self.page.panel} can't be shown right now."
        text = self.site.templates.get_template("missing.html").render(visit=self, name=self.page.panel, reason=reason)
        return Markup(text)  # noqa: S704 - a template made it

    def new_act(self, path: str) -> str:
        """The value of a form's field `act`."""
        return acts.new_act(self.secret, path.partition("?")[0])

    def render(self, template: str, status: int = 200, **values: Any) -> web.Response:
        """A page: `template` is `AREA/NAME.html`, from the folder `templates` of the area."""
        text = self.site.templates.get_template(template).render(
            visit=self, who=self.who, wall=self.wall, flash=self._flash(), site=self.site, status=status, **values
        )
        return web.Response(text=text, content_type="text/html", status=status)

    def redirect(self, path: str, message: str = "") -> web.Response:
        """To another page after an act (303). said: one sentence that the next page shows once."""
        if len(message) > FLASH_CHARACTERS_MAX:
            message = message[: FLASH_CHARACTERS_MAX - 2] + " …"
        if message:
            self.cookies[FLASH_COOKIE] = acts.sealed(message, self.secret), FLASH_SECONDS
        return web.Response(status=303, headers={"Location": path})

    def begin(self, new: sessions_pb2.NewSession) -> None:
        """The browser has this session from now on."""
        self.site.sessions.forget(self.session)
        self.session, self.who = new.text, new.session
        age = max(0, int(new.session.ends_at.seconds - self.site.now().timestamp()))
        self.cookies[SESSION_COOKIE] = new.text, age
        self.cookies[VISITOR_COOKIE] = "", 0
        if new.known:
            self.cookies[KNOWN_COOKIE] = new.known, KNOWN_SECONDS

    def end(self) -> None:
        """The browser has no session any more."""
        self.site.sessions.forget(self.session)
        self.session, self.who = "", None
        self.cookies[SESSION_COOKIE] = "", 0

    @property
    def theme(self) -> str:
        """How the person wants pages: one of THEMES."""
        theme = self.request.cookies.get(THEME_COOKIE, "")
        return theme if theme in THEMES else "auto"

    @property
    def idle_seconds(self) -> int:
        """How long the session lasts from now on if nothing is done with it."""
        assert self.who is not None
        end = min(self.who.idle_ends_at.seconds, self.who.ends_at.seconds or self.who.idle_ends_at.seconds)
        return max(0, int(end - self.site.now().timestamp()))

    @property
    def can_confirm(self) -> bool:
        """Whether the acts that ask for a confirmation are open now."""
        return self.who is not None and self.who.step_up_until.ToDatetime(datetime.UTC) > self.site.now()

    @property
    def next_path(self) -> str:
        """The page that the person wanted before the sign-in."""
        return links.own_path(self.form.get("next") or self.query.get("next") or "/")

    @property
    def menu(self) -> Mapping[str, Sequence[Page]]:
        """The pages of the menu that this person may open, by group, in the order of MENU."""
        groups: dict[str, list[Page]] = {}
        entries = [page for page in self.site.pages if page.menu and self.kind in page.kinds]
        for page in sorted(entries, key=_place):
            assert page.menu is not None
            groups.setdefault(page.menu[0], []).append(page)
        return groups

    @property
    def shortcuts(self) -> Sequence[tuple[Page, str, str]]:
        """The pages at the bottom of a phone, besides the search, each with its words and its path."""
        entries = [page for group in self.menu.values() for page in group if page.menu]
        pages = [page for page in entries if page.path in SHORTCUTS] or entries[:1]
        own_parts = STAFF_SHORTCUTS if self.kind == STAFF else {}
        return [(page, *own_parts.get(page.path, (page.menu[1] if page.menu else "", page.path))) for page in pages]

    def opens(self, path: str) -> bool:
        """Whether this person may open the page with this path, as pages.py spells it: a link elsewhere asks first."""
        return any(page.path == path and page.method == "GET" and self.kind in page.kinds for page in self.site.pages)

    def path_of(self, kind: str, record_id: int) -> str:
        """The path of a record's page that this person may open; empty if there is none."""
        paths = {page.path for page in self.site.pages if page.method == "GET" and self.kind in page.kinds}
        return links.of_record(kind, record_id, paths)

    def _flash(self) -> str:
        if FLASH_COOKIE not in self.request.cookies:
            return ""
        self.cookies.setdefault(FLASH_COOKIE, ("", 0))
        return acts.unsealed(self.request.cookies[FLASH_COOKIE], self.secret)


def _place(page: Page) -> int:
    assert page.menu is not None
    return MENU.index(page.menu[1])


def needs_confirmation(refusal: Refusal) -> bool:
    """Whether the act is refused only until its person confirms who they are."""
    return refusal.code == "step_up_required"


async def submit(
    visit: Visit, rpc: str, request: Any, path: str, message: str, redraw: Callable[..., Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Does what a form asks for, once however often it is sent, and leads to `path` with the message.

    redraw: makes the form's page again (visit, status, error=sentence) where the RPC refuses; a refusal that asks for a
    confirmation, or says that there is no such record, is raised.
    """
    request.idempotency_key = visit.act
    try:
        await visit.call(rpc, request)
    except Refusal as refusal:
        if needs_confirmation(refusal) or refusal.status == 404:
            raise
        return await redraw(visit, refusal.status, error=refusal.message)
    return visit.redirect(path, message)
