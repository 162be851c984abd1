"""`GET /live`: the stream on which an open page hears that something has changed. It bears no content: the page's
regions fetch themselves anew, with the permissions of their person.

Events: `state` with "live" or "away" (NATS is away: the page asks every 30 s), a topic for what has changed, AGAIN
where the page may have missed something, `ended` where the session has ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterable

from aiohttp import web

from chassis.auth.clients import ServiceUnavailable
from chassis.http.requests import Request
from chassis.refusals import Refusal
from console.kit.context import PageContext
from console.kit.live import Watch, topics_of
from console.kit.serving import REQUEST, Streamed

CHECK_SECONDS = 1.0
LINGER_SECONDS = 0.4  # after news: what changes several times meanwhile is fetched once
OF_A_KIND_SECONDS = 5.0  # the same for lists, which every change of a busy company is about
BEAT_SECONDS = 15.0  # a comment, so that proxies and a closed browser are noticed
PATH = "/live"
AGAIN = "live-again"
HEADERS = {"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}


async def stream(context: PageContext) -> Streamed:
    """Answers until the browser or the session is gone. Raises HTTPBadRequest, HTTPUnauthorized,
    HTTPTooManyRequests."""
    if context.session.who is None or context.session.person.second_factor_due:
        raise web.HTTPUnauthorized
    try:
        topics = topics_of(context.query.get("topics", ""))
        since = float(int(context.request.headers.get("Last-Event-ID") or context.query.get("since", "0")[:16])) / 1000
    except ValueError:
        raise web.HTTPBadRequest from None
    events = _events(context, context.request[REQUEST], topics, since)
    if await anext(events, None) is None:
        raise web.HTTPTooManyRequests
    return Streamed(events, HEADERS)


async def _events(
    context: PageContext, request: Request, topics: frozenset[str], since: float
) -> AsyncGenerator[bytes]:
    """The events as they are written. The first piece is empty, and says that there is a place."""
    with context.site.live.watch(
        context.session.text, context.session.person.actor, context.session.person.company_id, topics
    ) as watch:
        if watch is None:
            return
        request.on_abort(watch.end)
        yield b""
        with contextlib.suppress(ServiceUnavailable, Refusal):  # what cannot be said of the session ends the stream
            async for events in _news(context, watch, since):
                yield events


async def _news(context: PageContext, watch: Watch, since: float) -> AsyncIterator[bytes]:
    live = context.site.live
    was: tuple[bool, int] | None = None
    beat = time.monotonic()
    sent: dict[str, float] = {}
    while not watch.is_over:
        if await context.site.sessions.find(context.session.text, watches=True) is None:
            yield _written([("ended", "")])
            return
        events = []
        if was != (live.is_connected, live.reconnections):
            events.append(("state", "live" if live.is_connected else "away"))
            if live.is_connected and (was is not None or live.missed(watch, since)):
                events.append((AGAIN, ""))
            was = live.is_connected, live.reconnections
        now = time.monotonic()
        due = {topic for topic in watch.news if "-" in topic or now - sent.get(topic, 0.0) >= OF_A_KIND_SECONDS}
        sent.update(dict.fromkeys(due, now))
        events += [(topic, "") for topic in sorted(due)]
        watch.news -= due
        watch.woken.clear()
        if events or now - beat >= BEAT_SECONDS:
            beat = now
            yield _written(events)
        if events:
            await asyncio.sleep(LINGER_SECONDS)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(watch.woken.wait(), CHECK_SECONDS)


def _written(events: Iterable[tuple[str, str]]) -> bytes:
    """The events, each with the time as its id, which a browser that comes back sends. Without any, a comment."""
    at = int(time.time() * 1000)
    text = "".join(f"event: {event}\nid: {at}\ndata: {data}\n\n" for event, data in events) or ":\n\n"
    return text.encode()
