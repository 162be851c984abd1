"""`GET /live`: the stream on which an open page hears that something has changed. It bears no content: the page's
regions fetch themselves anew, with the permissions of their person.

Events: `state` with "live" or "away" (NATS is away: the page asks every 30 s), a topic for what has changed, AGAIN
where the page may have missed something, `ended` where the session has ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterable

from aiohttp import web

from chassis.auth.clients import ServiceUnavailable
from chassis.refusals import Refusal
from console.kit.live import Watch, topics_of
from console.kit.visit import Visit

CHECK_SECONDS = 1.0
GATHER_SECONDS = 0.4  # after news: what changes several times meanwhile is fetched once
OF_A_KIND_SECONDS = 5.0  # the same for lists, which every change of a busy company is about
BEAT_SECONDS = 15.0  # a comment, so that proxies and a closed browser are noticed
WRITE_SECONDS = 10.0
PATH = "/live"
AGAIN = "live-again"


async def stream(visit: Visit, headers: dict[str, str]) -> web.StreamResponse:
    """Answers until the browser or the session is gone. headers: those of every answer. Raises HTTPBadRequest,
    HTTPUnauthorized, HTTPTooManyRequests."""
    if visit.who is None or visit.who.second_factor_due:
        raise web.HTTPUnauthorized
    try:
        topics = topics_of(visit.query.get("topics", ""))
        since = float(int(visit.request.headers.get("Last-Event-ID") or visit.query.get("since", "0")[:16])) / 1000
    except ValueError:
        raise web.HTTPBadRequest from None
    with visit.site.live.watch(visit.session, visit.who.actor, visit.who.company_id, topics) as watch:
        if watch is None:
            raise web.HTTPTooManyRequests
        response = web.StreamResponse(headers={**headers, "Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        response.content_type = "text/event-stream"
        await response.prepare(visit.request)
        with contextlib.suppress(ConnectionError, TimeoutError):
            await _run(visit, response, watch, since)
        return response


async def _run(visit: Visit, response: web.StreamResponse, watch: Watch, since: float) -> None:
    live = visit.site.live
    was: tuple[bool, int] | None = None
    beat = time.monotonic()
    sent: dict[str, float] = {}
    while True:
        transport = visit.request.transport
        if transport is None or transport.is_closing() or watch.is_over:
            return
        if not await _has_session(visit):
            await _send(response, [("ended", "")])
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
            await _send(response, events)
        if events:
            await asyncio.sleep(GATHER_SECONDS)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(watch.woken.wait(), CHECK_SECONDS)


async def _has_session(visit: Visit) -> bool:
    """Whether the session is still there. One that the gateway cannot say anything about has none for this stream."""
    try:
        return await visit.site.sessions.find(visit.session, watches=True) is not None
    except (ServiceUnavailable, Refusal):
        raise ConnectionError from None


async def _send(response: web.StreamResponse, events: Iterable[tuple[str, str]]) -> None:
    """The events, each with the time as its id, which a browser that comes back sends. Without any, a comment."""
    at = int(time.time() * 1000)
    text = "".join(f"event: {event}\nid: {at}\ndata: {data}\n\n" for event, data in events) or ":\n\n"
    async with asyncio.timeout(WRITE_SECONDS):
        await response.write(text.encode())
