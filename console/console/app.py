"""The application: middlewares around the pages.

From the outside in: the security headers, the session, errors as pages, the same origin and the permission, the form
and its token, the page. So nothing of a form is read for somebody who may not send it.
"""

from __future__ import annotations

import asyncio
import datetime
import gzip
import logging
import re
from collections.abc import Awaitable, Callable
from urllib.parse import quote, urlsplit

import structlog
from aiohttp import web
from markupsafe import Markup
from multidict import MultiDictProxy
from prometheus_client import Counter, Histogram

from chassis.auth.clients import ServiceClient, ServiceUnavailable
from chassis.auth.identity import TokenSigner
from chassis.db.database import Database
from chassis.db.revisions import head_of
from chassis.refusals import Refusal, Unavailable
from chassis.runtime import traces
from console import config, files, pages
from console.act_addresses import ActAddresses
from console.bulk_acts import BulkActs
from console.first_steps import FirstSteps
from console.imports.jobs import Jobs
from console.imports.keeper import KEEPER, Keeper
from console.kit import (
    confirming,
    device,
    form_tokens,
    links,
    photos,
    returning,
    streaming,
    templating,
    viewing,
)
from console.kit.browser_session import NOBODY, BrowserSession
from console.kit.calls import Calls
from console.kit.context import Page, PageContext, Render, Site
from console.kit.live import Live
from console.kit.panels import missing
from console.kit.sending import needs_confirmation
from console.kit.serving import REQUEST
from console.kit.sessions import Sessions, secret_of
from console.kit.signing_in import SESSION_COOKIE, end, go_on, remember
from console.kit.statics import PREFIX, Statics, accepts_gzip
from console.kit.texts import _
from console.kit.turns import Turns
from console.kit.uploads import (
    FIELDS_BYTES_MAX,
    STRANGERS_BYTES_MAX,
    FormError,
    UploadCapacity,
    UploadError,
    begin,
    fields,
    leading_fields,
)
from console.purging import PeoplePurge, SandboxPurge
from console.saved_views import SavedViews

COMPRESSED_FROM = 1024
CSP = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; manifest-src 'self'; worker-src 'self'"
)
HEADERS = {
    "Content-Security-Policy": CSP,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    # Not no-referrer: browsers then send `Origin: null` with forms.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Robots-Tag": "noindex",
}
ADDRESS_SECONDS = 0.5
STRICT_TRANSPORT = "max-age=31536000"
HEALTH = ("/healthz", "/readyz")
FREE = (PREFIX, photos.PREFIX, *device.FREE)
"""What is served without a session, as it is: no cookie is read."""
LEFT_SANDBOX = _("That sandbox was deleted or is closed. You are in the live company.")
COMPANY_HEADER = "X-Company"
"""Of what the scripts of a page ask for: the id of the company that the page shows."""
IDENTITY = ("", "identity")
_FAULTS: dict[type[Exception], tuple[int, int, str]] = {
    Unavailable: (logging.WARNING, 503, "unavailable"),
    UploadError: (logging.INFO, 400, "upload"),
    FormError: (logging.INFO, 415, "encoding"),
}
_REASONS = {404: "not_found", 405: "method", 413: "large"}

log = structlog.stdlib.get_logger(__name__)
ANSWERS = Counter("makeready_console_pages_total", "Pages answered", ["page", "status"])
BUCKETS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
SECONDS = Histogram("makeready_console_page_seconds", "Time to answer a page", ["page"], buckets=BUCKETS)
CONTEXT: web.RequestKey[PageContext] = web.RequestKey("context", PageContext)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Console:
    """The parts of the process."""

    def __init__(self, settings: config.Config, now: Callable[[], datetime.datetime] | None = None) -> None:
        signer = TokenSigner(settings.identity_key_file)
        self._clients = {name: ServiceClient(name, target, signer) for name, target in settings.addresses.items()}
        sessions = Sessions(self._clients[config.GATEWAY])
        store = files.at(settings.files_url)
        database = _database(settings)
        self.keeper = Keeper(Jobs(database), store, settings.import_tasks)
        statics = Statics()
        self.site = Site(
            url=settings.url,
            api_url=settings.api_url,
            sessions=sessions,
            calls=Calls(self._clients, sessions),
            templates=templating.environment(statics),
            statics=statics,
            pages=pages.PAGES,
            now=now or (lambda: datetime.datetime.now(datetime.UTC)),
            live=Live(settings.nats_url, settings.nats_tls),
            files=store,
            saved_views=SavedViews(self.keeper.open_database),
            bulk_acts=BulkActs(self.keeper.open_database),
            first_steps=FirstSteps(self.keeper.open_database),
            act_addresses=ActAddresses(self.keeper.open_database),
            key=signer.secret("console"),
        )
        self._purges = (
            SandboxPurge(self._clients[config.GATEWAY], database, store),
            PeoplePurge(self._clients[config.GATEWAY], self.site.saved_views),
        )
        self.is_ready = False
        """Whether the start is over and the stop has not begun."""
        self._uploads, self._turns = UploadCapacity(), Turns()
        self._background: set[asyncio.Task[None]] = set()
        self._secure = settings.url.startswith("https")
        self._origin = settings.url
        self._host = urlsplit(settings.url).hostname or ""

    def application(self) -> web.Application:
        app = web.Application(
            middlewares=[self._identified, self._sessions, self._errors, self._permitted, self._forms]
        )
        app[KEEPER] = self.keeper
        for path in HEALTH:
            app.router.add_get(path, self._health)
        app.router.add_get(PREFIX + "{name:.+}", self.site.statics.answer)
        app.router.add_get(photos.PREFIX + "{name}", self._photo)
        app.router.add_get(streaming.PATH, self._live, allow_head=False)
        for path, answer in device.answers(self.site.statics, pages.PAGES).items():
            app.router.add_get(path, _answering(answer))
        for page in pages.PAGES:
            add = app.router.add_get if page.method == "GET" else app.router.add_post
            add(pattern(page.path), _runner(page), expect_handler=_not_yet)
        app.on_startup.append(self._listen)
        app.on_cleanup.append(self._close)
        return app

    async def open(self) -> None:
        """Waits for the console's own database, and for its migrations. Pages that do without are served meanwhile.

        Raises SettingsError, and DatabaseRefused."""
        await self.keeper.open(head_of("console"))
        self._background.add(asyncio.create_task(self.keeper.run()))
        self._background.update(asyncio.create_task(purge.run()) for purge in self._purges)
        self._background.add(asyncio.create_task(self.site.act_addresses.keep_deleting()))
        self.is_ready = True

    async def _listen(self, _app: web.Application) -> None:
        self._background.add(asyncio.create_task(self.site.live.run()))

    async def _photo(self, request: web.Request) -> web.StreamResponse:
        try:
            return await photos.answer(request, self.site.files)
        except ServiceUnavailable as error:
            log.warning("unavailable", page=photos.PREFIX, reason=str(error))
            raise web.HTTPServiceUnavailable from None

    async def _live(self, request: web.Request) -> web.StreamResponse:
        return await streaming.stream(request[CONTEXT])

    async def _close(self, _app: web.Application) -> None:
        for task in self._background:
            task.cancel()
        await asyncio.wait(self._background)
        for client in self._clients.values():
            await client.close()
        await self.keeper.close()

    async def _health(self, request: web.Request) -> web.Response:
        is_well = request.path == "/healthz" or self.is_ready
        return web.Response(text="ok\n" if is_well else "not ready\n", status=200 if is_well else 503)

    @web.middleware
    async def _identified(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Gives the request an id and the response its headers; compresses it."""
        if request.path in HEALTH:
            return await handler(request)
        if elsewhere := self._at_its_name(request):
            return elsewhere
        request_id = request[REQUEST].id
        structlog.contextvars.bind_contextvars(request_id=request_id)
        traces.enter(request.headers.getall(traces.HEADER, ()))
        page = _page_of(request)
        if page is not None:
            name = page.path
        else:
            name = next((prefix for prefix in FREE if request.path.startswith(prefix)), "none").rstrip("/")
        context = request[CONTEXT] = PageContext(request, self.site, page, request_id, BrowserSession(self.site.now))
        if request.path == streaming.PATH and request.method == "GET":
            name = streaming.PATH
        with SECONDS.labels(name).time():
            try:
                response = await handler(request)
            except web.HTTPException as error:
                if not request.path.startswith(FREE):
                    raise
                response = web.Response(status=error.status, text=f"{error.reason}\n")
        ANSWERS.labels(name, str(response.status)).inc()
        headers_before = response.headers.copy()
        response.headers.update(HEADERS)
        if self._secure:
            response.headers["Strict-Transport-Security"] = STRICT_TRANSPORT
        if request.path.startswith(photos.PREFIX) and response.status == 200:
            response.headers.update(headers_before)
        elif not request.path.startswith(PREFIX):
            response.headers["Cache-Control"] = "no-store"
        for cookie, (value, age) in context.cookies.items():
            response.set_cookie(cookie, value, max_age=age, path="/", secure=True, httponly=True, samesite="Lax")
        if isinstance(response, web.Response):
            _compress(request, response)
        return response

    def _at_its_name(self, request: web.Request) -> web.Response | None:
        """Leads from an IP address to the console's name, which its forms and passkeys are bound to."""
        is_address = links.is_address(request.url.host or "")
        if request.method not in ("GET", "HEAD") or not is_address or links.is_address(self._host):
            return None
        return web.Response(status=307, headers={"Location": self._origin + request.rel_url.raw_path_qs})

    @web.middleware
    async def _sessions(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Finds who has the session of the request's cookie."""
        context: PageContext | None = request.get(CONTEXT)
        if context is None or request.path.startswith(FREE):
            return await handler(request)
        session, text = context.session, request.cookies.get(SESSION_COOKIE, "")
        fault: ServiceUnavailable | Refusal | None = None
        if text and len(text) <= 200 and text.isascii():
            try:
                # What an open page asks for by itself does not keep the session.
                watches = request.path == streaming.PATH or "X-Live" in request.headers
                session.who = await self.site.sessions.find(text, watches=watches)
                if session.who is None and text != (secret := secret_of(text)):
                    session.who = await self.site.sessions.find(secret, watches=watches)
                    session.has_left, text = session.who is not None, secret
            except (ServiceUnavailable, Refusal) as error:
                fault = error
        if session.who is not None:
            session.text = text
            request[REQUEST].is_known = True
        else:
            session.was_displaced = self.site.sessions.was_displaced(text)
        remember(context, is_known=fault is None)
        if fault is not None:
            log.warning("session_unknown", reason=str(fault))
        who = session.who
        client = request[REQUEST].address if who is None else f"{who.company_id} {who.actor}"
        await self._turns.turn(client, is_known=who is not None)
        if fault:
            return _error_page(context, 503, "unavailable")
        if session.has_left:
            return _left_sandbox(context)
        if request.headers.get(COMPANY_HEADER) not in (None, str(who.company_id) if who else ""):
            return _error_page(context, 409, "company")
        return await handler(request)

    @web.middleware
    async def _errors(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Turns every error into a page that says what happened and what to do."""
        context: PageContext | None = request.get(CONTEXT)
        if context is None or request.path.startswith(FREE):
            return await handler(request)
        try:
            return await handler(request)
        except Refusal as refusal:
            return _refused(context, refusal)
        except (Unavailable, UploadError, FormError) as error:
            level, status, reason = next(how for kind, how in _FAULTS.items() if isinstance(error, kind))
            log.log(level, reason, page=request.path, reason=str(error))
            return _error_page(context, status, reason)
        except web.HTTPException as error:
            if error.status < 400:
                raise
            page = _error_page(context, error.status, _REASONS.get(error.status, ""), _too_large(context, error))
            if "Allow" in error.headers:
                page.headers["Allow"] = error.headers["Allow"]
            return page
        except Exception:
            log.exception("fault", page=context.page.path if context.page else "")
            return _error_page(context, 500, "fault")

    @web.middleware
    async def _permitted(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Lets only those in whom the page's line in pages.py names, and forms of this site alone. Nothing of a form
        has been read."""
        context: PageContext | None = request.get(CONTEXT)
        if context is None or context.page is None:
            return await handler(request)
        if request.method == "POST" and not self._is_own(request):
            return _error_page(context, 403, "origin")
        if request.method == "POST" and context.session.who is None and NOBODY not in context.page.kinds:
            return await self._signed_out(context, request, handler)
        if context.session.kind not in context.page.kinds:
            return _not_for(context, context.page)
        return await self._open_to(context, handler)

    async def _signed_out(self, context: PageContext, request: web.Request, handler: Handler) -> web.StreamResponse:
        """The answer to a form of somebody who is not signed in any more."""
        assert context.page is not None
        if not returning.can_return(context):
            return _not_for(context, context.page)
        if not _is_form(request):
            return _error_page(context, 415, "encoding")
        bytes_max = max(context.page.uploads, STRANGERS_BYTES_MAX)
        context.form = MultiDictProxy(await leading_fields(request[REQUEST], STRANGERS_BYTES_MAX, bytes_max))
        if returning.SENT not in context.form:
            return returning.page(context)
        asks = await returning.sign_in(context)
        if asks is not None:
            return asks
        if context.session.kind not in context.page.kinds:
            return _not_for(context, context.page)
        return await self._open_to(context, handler)

    async def _open_to(self, context: PageContext, handler: Handler) -> web.StreamResponse:
        """Goes on for one whom the page's line names."""
        assert context.page is not None
        if context.session.who is not None and context.session.who.second_factor_due and not context.page.due:
            return context.redirect("/account") if not context.is_queued else _error_page(context, 401, "signed_out")
        return await handler(context.request)

    @web.middleware
    async def _forms(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Reads a form, and refuses one that is not of this session and of this path."""
        context: PageContext | None = request.get(CONTEXT)
        if request.method != "POST" or context is None or context.page is None:
            return await handler(request)
        if context.form:  # it was read before its person had signed in
            return await self._sent(context, request, handler)
        if not _is_form(request):
            return _error_page(context, 415, "encoding")
        if not context.page.uploads or request.content_type != "multipart/form-data":
            bytes_max = FIELDS_BYTES_MAX if context.session.who is not None else STRANGERS_BYTES_MAX
            context.form = MultiDictProxy(await fields(request[REQUEST], bytes_max))
            return await self._sent(context, request, handler)
        with self._uploads.reserve(context.session.person.actor) as has_room:
            if not has_room:
                return _error_page(context, 503, "busy")
            form_fields, context.uploads = await begin(request[REQUEST], context.page.uploads)
            context.form = MultiDictProxy(form_fields)
            return await self._sent(context, request, handler)

    async def _sent(self, context: PageContext, request: web.Request, handler: Handler) -> web.StreamResponse:
        """The answer to a form whose fields are read."""
        token = context.form.get(form_tokens.FIELD, "")
        if not form_tokens.is_valid(token, context.form_key, request.path, self.site.now()):
            return _error_page(context, 403, "form")
        refused = await confirming.confirm(context) if confirming.is_sent(context) else None
        if refused is None and context.session.who is not None:
            await self._keep_address(context)
        return refused or await handler(request)

    async def _keep_address(self, context: PageContext) -> None:
        """Before the act, so that no act lacks its address because this process was killed. An act does not wait for
        the console's own database."""
        address = context.request[REQUEST].address
        try:
            async with asyncio.timeout(ADDRESS_SECONDS):
                await self.site.act_addresses.add(context.session.person.company_id, context.request_id, address)
        except (Unavailable, TimeoutError) as error:
            log.warning("address_not_kept", reason=str(error) or type(error).__name__)

    def _is_own(self, request: web.Request) -> bool:
        """Whether a page of this site sent the form, as the browser says."""
        origin, fetch_site = request.headers.get("Origin"), request.headers.get("Sec-Fetch-Site")
        if origin is None and fetch_site is None:
            return False
        if origin is not None:
            return origin == self._origin and fetch_site in (None, "same-origin")
        return fetch_site == "same-origin"


def _database(settings: config.Config) -> Database:
    """The console's own database, which is not open yet."""
    return Database(
        settings.database.url,
        application="console",
        connections=settings.database.connections,
        pooler=settings.database.pooler,
        direct_url=settings.database.direct_url,
    )


def pattern(path: str) -> str:
    """The path of a page for the router: `{event_id}` takes a UUID, `{key_id}` digits; others take one segment."""
    path = path.replace("{event_id}", "{event_id:[0-9a-f-]{36}}")
    return re.sub(r"\{(\w+_id)\}", r"{\1:[0-9]{1,19}}", path)


def _runner(page: Page) -> Handler:
    async def run(request: web.Request) -> web.StreamResponse:
        context = request[CONTEXT]
        if page.views and not context.is_part and (opened := await viewing.load(context)):
            return opened
        response = await page.run(context)
        if page.panel and not context.is_part and isinstance(response, web.Response) and response.status == 200:
            return context.render("panel.html", panel=Markup(response.text), here="")  # noqa: S704 - a template made it
        return response

    run.page = page  # type: ignore[attr-defined]
    return run


def _answering(answer: Render) -> Handler:
    """The handler of what is no page of pages.py."""

    async def run(request: web.Request) -> web.StreamResponse:
        return await answer(request[CONTEXT])

    return run


def _page_of(request: web.Request) -> Page | None:
    page: Page | None = getattr(request.match_info.handler, "page", None)
    return page


def _too_large(context: PageContext, error: web.HTTPException) -> str:
    """How much a page takes, where that was too little; otherwise nothing."""
    if not isinstance(error, web.HTTPRequestEntityTooLarge) or context.page is None:
        return ""
    files = f", {context.page.uploads // 1_000_000} MB with its files" if context.page.uploads else ""
    fields_max = FIELDS_BYTES_MAX if context.session.who is not None else STRANGERS_BYTES_MAX
    return _("No changes were made. A form may have %(size)s KB of text%(files)s.") % {
        "size": fields_max // 1024,
        "files": files,
    }


def _not_for(context: PageContext, page: Page) -> web.Response:
    """The answer to somebody whom a page is not for."""
    if context.session.who is None:
        why = returning.DISPLACED if context.session.was_displaced else ""
        if page.method == "POST":
            return _error_page(context, 401, "signed_out", why)
        wanted_path = context.request.rel_url.raw_path_qs
        if context.session.was_displaced:
            context.cookies[SESSION_COOKIE] = "", 0  # it is told once
        query = f"?next={quote(wanted_path, safe='/')}" if wanted_path != "/" else ""
        return context.redirect(f"/sign-in{query}", why)
    if NOBODY in page.kinds:  # the sign-in, for one who is signed in
        return context.redirect("/")
    return _error_page(context, 403, "kind")


def _left_sandbox(context: PageContext) -> web.Response:
    """The answer to a person whose sandbox is over: nothing is done in the live company instead."""
    go_on(context, context.session.text, context.session.person)
    if context.request.method == "GET" and not context.is_part and context.request.path != streaming.PATH:
        return context.redirect("/", LEFT_SANDBOX)
    return _error_page(context, 409, "company", LEFT_SANDBOX)


def _is_form(request: web.Request) -> bool:
    """Whether the headers say that the body is a form, as browsers send one to these pages."""
    return (
        request.content_type in ("application/x-www-form-urlencoded", "multipart/form-data")
        and request.charset in (None, "utf-8", "UTF-8")
        # A compressed form may be a thousand times as long as it is on its way.
        and request.headers.get("Content-Encoding", "").strip().lower() in IDENTITY
    )


async def _not_yet(_request: web.Request) -> None:
    """No `100 Continue` before it is known who asks: it is sent when the body is read."""


def _refused(context: PageContext, refusal: Refusal) -> web.Response:
    if needs_confirmation(refusal) and context.session.who is not None and context.page is not None:
        return confirming.page(context)
    if refusal.code == "no_session":
        end(context)
        if context.form and returning.can_return(context):
            return returning.page(context)
        return _error_page(context, 401, "signed_out")
    return _error_page(context, refusal.status, "not_found" if refusal.status == 404 else "refused", refusal.message)


def _error_page(context: PageContext, status: int, reason: str, message: str = "") -> web.Response:
    try:
        if context.page is not None and context.page.panel and context.is_part:
            return web.Response(text=missing(context, message), content_type="text/html", status=status)
        return context.render("error.html", status, reason=reason, message=message, here="")
    except Exception:
        log.exception("fault", page="error")
        return web.Response(status=500, text=f"Something went wrong here. Request {context.request_id}\n")


def _compress(request: web.Request, response: web.Response) -> None:
    body = response.body
    packed = "Content-Encoding" in response.headers or response.content_type == "image/jpeg"
    if packed or not isinstance(body, bytes) or len(body) < COMPRESSED_FROM:
        return
    response.headers["Vary"] = "Accept-Encoding"
    if accepts_gzip(request):
        response.body = gzip.compress(body, 5, mtime=0)
        response.headers["Content-Encoding"] = "gzip"
