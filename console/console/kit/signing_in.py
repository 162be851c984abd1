"""The cookies of sessions: what a sign-in and a sign-out tell the browser."""

from __future__ import annotations

from console.kit import browser_secret
from console.kit.context import PageContext
from console.kit.serving import REQUEST
from makeready.identity.v1 import sessions_pb2

SESSION_COOKIE = "__Host-makeready"
KNOWN_COOKIE = "__Host-makeready-known"
"""Who has signed in with this browser before, for the gateway: it then makes them wait for no failures of others."""
KNOWN_SECONDS, KNOWN_CHARACTERS_MAX = 90 * 86400, 600


def client_of(context: PageContext) -> sessions_pb2.Client:
    """The browser, for the gateway's list of sessions and its delays."""
    mark = context.request.cookies.get(KNOWN_COOKIE, "")
    return sessions_pb2.Client(
        address=context.request[REQUEST].address,
        user_agent=context.request.headers.get("User-Agent", "")[:400],
        known=mark if len(mark) <= KNOWN_CHARACTERS_MAX and mark.isascii() else "",
    )


def begin(context: PageContext, new: sessions_pb2.NewSession) -> None:
    """The browser has this session from now on."""
    context.site.sessions.forget(context.session.text)
    go_on(context, new.text, new.session)
    if new.known:
        context.cookies[KNOWN_COOKIE] = new.known, KNOWN_SECONDS


def go_on(context: PageContext, text: str, who: sessions_pb2.Session) -> None:
    """The browser goes on with this text: of a new session, or of the same one in another company."""
    context.session.text, context.session.who = text, who
    age = max(0, int(who.ends_at.seconds - context.site.now().timestamp()))
    context.cookies[SESSION_COOKIE] = text, age


def end(context: PageContext) -> None:
    """The browser has no session any more."""
    context.site.sessions.forget(context.session.text)
    context.session.text, context.session.who = "", None
    context.cookies[SESSION_COOKIE] = "", 0


def remember(context: PageContext, *, is_known: bool) -> None:
    """Reads the browser's secret, and has the browser keep it for as long as it should. is_known: whether the gateway
    has said whose session it is."""
    session, site = context.session, context.site
    now = site.now()
    stored = browser_secret.read(context.request.cookies.get(browser_secret.COOKIE, ""), site.key, now)
    session.is_known, session.was_here = is_known, stored is not None
    if stored is not None and not is_known:
        session.browser = stored
        return
    session.browser = browser_secret.renewed(stored, session.who, now)
    if session.browser != stored and context.page is not None and is_known:
        age = session.browser.ends_at - int(now.timestamp())
        context.cookies[browser_secret.COOKIE] = session.browser.sealed(site.key), age
