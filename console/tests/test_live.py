"""Live regions: real NATS, real streams over HTTP, a real browser."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import nats
import pytest
from aiohttp import web
from playwright.async_api import Browser as Chromium

from console import pages
from console.kit import live
from console.kit.browser_session import PEOPLE
from console.kit.context import Page, PageContext
from console.kit.signing_in import SESSION_COOKIE
from makeready_local.nats import Nats
from testkit.nats_users import nats_url_of
from testkit.plugin import embedded_nats

from .conftest import _reset, _started
from .stubs import Stubs
from .test_browser import Tab, chromium

__all__ = ["chromium"]
pytestmark = [pytest.mark.browser, pytest.mark.slow]
SECONDS = 60
TEMPLATE = """{% extends 'base.html' %}{% block title %}Ticket{% endblock %}{% block main %}<h1>Ticket</h1>
<section {{ context.live_region('ticket', 'ticket-41') }}><p id="comments">{{ comments|join(' / ') }}</p>
<details id="more"><summary>More</summary>hidden</details><form method="post" action="/account/theme">
<label for="said">Comment</label><textarea id="said" name="said"></textarea><button>Say</button></form></section>
{% endblock %}"""
COMMENTS: list[str] = []


async def _ticket(context: PageContext) -> Any:
    template = context.site.templates.from_string(TEMPLATE)
    text = template.render(
        context=context, who=context.session.who, wall=context.wall, flash=None, sent_form="", here="",
        comments=COMMENTS,
    )  # fmt: skip
    return web.Response(text=text, content_type="text/html")


class System:
    """The console with NATS, the services' stubs, and the operator of NATS who sends hints."""

    def __init__(self, stubs: Stubs, url: str, server: Nats) -> None:
        self.stubs, self.url, self.nats = stubs, url, server

    async def hint(self, subject: str) -> None:
        client = await nats.connect(self.nats.url)
        await client.publish(f"hints.{subject}")
        await client.flush()
        await client.close()

    def session(self, email: str = "dana@demo.example") -> str:
        return self.stubs.begin(self.stubs.people[email], confirmed=True)


@pytest.fixture(scope="module")
async def live_system(identity_keys: Path, database_url: str) -> AsyncIterator[System]:
    page = Page("GET", "/ticket", _ticket, PEOPLE)
    patch = pytest.MonkeyPatch()
    patch.setattr(pages, "PAGES", (*pages.PAGES, page))
    with embedded_nats() as server:
        async with _started(identity_keys, database_url, nats_url_of(server.url, "console")) as (stubs, url):
            _reset(stubs)
            yield System(stubs, url, server)
    patch.undo()


@contextlib.asynccontextmanager
async def listening(
    system: System, session: str, topics: str = "ticket-41", since: float | None = None
) -> AsyncIterator[aiohttp.ClientResponse]:
    """The stream of a page that was made at `since`, by default now."""
    at = int(1000 * (time.time() if since is None else since))
    async with aiohttp.ClientSession() as http:
        headers = {"Cookie": f"{SESSION_COOKIE}={session}"}
        async with http.get(f"{system.url}/live?topics={topics}&since={at}", headers=headers) as answer:
            assert answer.status == 200 and answer.content_type == "text/event-stream", answer.status
            assert answer.headers["Cache-Control"] == "no-store" and "Set-Cookie" not in answer.headers
            yield answer


async def events(answer: aiohttp.ClientResponse) -> AsyncIterator[str]:
    """The events of a stream, "state live" first."""
    name = ""
    async with asyncio.timeout(SECONDS):
        async for line in answer.content:
            text = line.decode().strip()
            if text.startswith("event: "):
                name = text.removeprefix("event: ")
            elif text.startswith("data:"):
                yield f"{name} {text.removeprefix('data:').strip()}".strip()


async def until(heard_events: AsyncIterator[str], last: str) -> list[str]:
    heard = []
    async for event in heard_events:
        heard.append(event)
        if event == last:
            return heard
    raise AssertionError(heard)


async def until_the_console_listens(system: System, stream: AsyncIterator[str]) -> None:
    """Hints at unit 6 until the stream has it: a console listens to a company from its first open page on."""

    async def hint() -> None:
        while True:
            await system.hint("svc-occupancy.1.unit.6")
            await asyncio.sleep(0.05)

    hinting = asyncio.create_task(hint())
    try:
        await until(stream, "unit-6")
    finally:
        hinting.cancel()


async def test_a_hint_arrives_at_pages_of_its_company_alone(live_system: System) -> None:
    async with (
        listening(live_system, live_system.session(), "ticket-41,unit", 0) as first,
        listening(live_system, live_system.session("olga@other.example"), "ticket-41,unit", 0) as other,
    ):
        mine, theirs = events(first), events(other)
        # What was hinted at before the console listened is unknown, so each asks once.
        assert await until(mine, "live-again") == ["state live", "live-again"]
        await until(theirs, "live-again")
        await live_system.hint("svc-tickets.1.ticket.42")
        await live_system.hint("svc-tickets.1.ticket.41")
        await live_system.hint("svc-tickets.2.unit.9")
        assert await until(mine, "ticket-41") == ["ticket-41"]
        assert await until(theirs, "unit") == ["unit"]
        await live_system.hint("svc-tickets.1.ticket.0")  # several
        await live_system.hint("svc-occupancy.1.unit.3")
        assert set(await until(mine, "unit")) <= {"ticket-41", "unit"}
        await live_system.hint("svc-tickets.2.ticket.41")
        assert await until(theirs, "ticket-41") == ["ticket-41"]


async def test_a_page_that_is_opened_while_the_console_listens_misses_nothing(live_system: System) -> None:
    session = live_system.session()
    async with listening(live_system, session, "unit-5,unit-6") as first:
        heard = events(first)
        await until_the_console_listens(live_system, heard)
        before = int(time.time() * 1000)
        await live_system.hint("svc-tickets.1.ticket.41")
        await live_system.hint("svc-occupancy.1.unit.5")
        await until(heard, "unit-5")  # so the console has heard both
        async with aiohttp.ClientSession() as http:
            headers = {"Cookie": f"{SESSION_COOKIE}={session}"}
            path = f"{live_system.url}/live?topics=ticket-41&since="
            async with http.get(f"{path}{before}", headers=headers) as late:
                assert await until(events(late), "ticket-41") == ["state live", "ticket-41"]
            again = {**headers, "Last-Event-ID": str(int(time.time() * 1000) + 1)}
            async with http.get(f"{path}{before}", headers=again) as later:
                assert await until(events(later), "state live") == ["state live"]
            # Its console's clock was set back by an hour since: it may have missed anything.
            async with listening(live_system, session, "ticket-41", time.time() + 3600) as ahead:
                assert await until(events(ahead), "live-again") == ["state live", "live-again"]


async def test_a_session_that_ends_ends_its_streams(live_system: System) -> None:
    session, other = live_system.session(), live_system.session()
    async with listening(live_system, session) as answer, listening(live_system, other) as lasting:
        stream = events(answer)
        await until(stream, "state live")
        del live_system.stubs.sessions[session]
        heard = await until(stream, "ended")
        assert set(heard) <= {"live-again", "ended"}
        with pytest.raises(StopAsyncIteration):
            await anext(stream)
        await live_system.hint("svc-tickets.1.ticket.41")
        await until(events(lasting), "ticket-41")
    # An open page asks for its session without keeping it from becoming idle.
    requests = [request for request in live_system.stubs.session_requests if request.session == other]
    assert requests and all(request.watches for request in requests)


async def test_streams_are_bounded_and_their_topics_checked(live_system: System) -> None:
    session = live_system.session()
    async with contextlib.AsyncExitStack() as stack:
        first = events(await stack.enter_async_context(listening(live_system, session)))
        await until(first, "state live")
        for _ in range(live.OF_A_SESSION_MAX):
            await stack.enter_async_context(listening(live_system, session))
        assert [event async for event in first if event not in ("live-again", "ticket-41")] == []  # it was evicted
    headers = {"Cookie": f"{SESSION_COOKIE}={session}"}
    async with aiohttp.ClientSession() as http:
        many = ",".join(f"ticket-{number}" for number in range(1, live.TOPICS_MAX + 2))
        for topics in ("", "x y", "ticket-0", "ticket-", "Ticket", "ticket-41,", many, "hints.>", "ticket-41%0A"):
            async with http.get(f"{live_system.url}/live?topics={topics}", headers=headers) as answer:
                assert answer.status == 400, topics
        async with http.get(f"{live_system.url}/live?topics=ticket") as answer:
            assert answer.status == 401
        async with http.get(f"{live_system.url}/live?topics=ticket&since=now", headers=headers) as answer:
            assert answer.status == 400


async def test_a_comment_shows_on_an_open_page_and_what_is_typed_stays(live_system: System, chromium: Chromium) -> None:
    context = await chromium.new_context()
    try:
        tab = Tab(await context.new_page(), live_system.url)
        page = tab.page
        await tab.sign_in(path="/account")
        await tab.open("/ticket")
        await page.wait_for_selector("#live-state:text-is('Live')")
        await page.click("summary")
        await page.focus("#said")
        await page.keyboard.type("Half a sen")
        COMMENTS.append("Water under the sink")
        await live_system.hint("svc-tickets.1.ticket.41")
        await page.wait_for_selector("text=Water under the sink", timeout=1000 * SECONDS)
        await page.keyboard.type("tence")
        assert await page.input_value("#said") == "Half a sentence"
        assert await page.evaluate("document.activeElement.id") == "said"
        assert await page.evaluate("document.getElementById('more').open")
        # A page that fails meanwhile leaves the region as it is.
        COMMENTS[0] = "Gone"
        session = next(cookie for cookie in await context.cookies() if cookie.get("name") == SESSION_COOKIE)
        ended = live_system.stubs.sessions.pop(str(session.get("value")))
        await page.wait_for_selector("#live-state:text-is('Signed out')")
        assert await page.input_value("#said") == "Half a sentence" and ended.name == "Dana Adler"
        assert await page.is_visible("text=Water under the sink")
        assert not [text for text in tab.said if "401" not in text]
    finally:
        COMMENTS.clear()
        await context.close()


async def test_without_nats_a_page_says_so_and_asks_by_the_clock(
    live_system: System, chromium: Chromium, identity_keys: Path
) -> None:
    context = await chromium.new_context()
    try:
        tab = Tab(await context.new_page(), live_system.url)
        page = tab.page
        await tab.sign_in(path="/account")
        await page.clock.install()
        await tab.open("/ticket")
        await page.wait_for_selector("#live-state:text-is('Live')")
        live_system.nats.kill()
        try:
            await page.wait_for_selector("#live-state:text-is('Not live')")
            COMMENTS.append("Said without NATS")
            await page.clock.fast_forward(31_000)
            await page.wait_for_selector("text=Said without NATS")
        finally:
            live_system.nats.start()
        COMMENTS.append("Said meanwhile")
        await page.clock.fast_forward(1_000)
        await page.wait_for_selector("#live-state:text-is('Live')")
        await page.wait_for_selector("text=Said meanwhile")
    finally:
        COMMENTS.clear()
        await context.close()
