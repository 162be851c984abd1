"""What the console takes of a request, and from whom, before it reads it; and whose page comes next."""

from __future__ import annotations

import asyncio
import gzip
import time
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest
from aiohttp import web

from chassis.http.port import GRACE_SECONDS
from console import pages
from console.kit import turns, uploads
from console.kit.browser_session import EVERYBODY, PEOPLE
from console.kit.context import Page, PageContext
from console.kit.signing_in import SESSION_COOKIE
from testkit.patience import comes_true

from .browsing import Browser
from .conftest import _reset, _started
from .stubs import Stubs

FORM = "application/x-www-form-urlencoded"
PHOTOS, COMMENT = "/tickets/102/photos", "/tickets/102/comment"
HOPS, STRANGERS, PAGES_OF_EACH = 10, 60, 40


class Raw:
    """One connection to a console."""

    def __init__(self, url: str) -> None:
        self._url = urlsplit(url)
        self.port = self._url.port

    async def open(self) -> Raw:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        return self

    def send(self, verb: str, path: str, body: bytes = b"", *, session: str = "", **headers: str) -> None:
        lines = {"Host": self._url.netloc, "Origin": self._url.geturl(), "Content-Type": FORM}
        lines |= {name.replace("_", "-"): value for name, value in headers.items()}
        lines |= {"Cookie": f"{SESSION_COOKIE}={session}"} if session else {}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        self.writer.write(f"{verb} {path} HTTP/1.1\r\n{head}\r\n".encode() + body)

    async def status(self) -> int:
        """The status of the next answer, whose body is skipped."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower()
        await self.reader.readexactly(int(head.partition("content-length: ")[2].partition("\r\n")[0] or 0))
        return int(head.split(" ")[1])


async def test_nobody_is_asked_for_a_body_that_only_people_may_send(console: str, stubs: Stubs) -> None:
    session = stubs.begin(stubs.people["hanh@demo.example"])
    for sent_by, statuses in (("", [401]), (session, [100, 403])):
        raw = await Raw(console).open()
        raw.send("POST", COMMENT, session=sent_by, Expect="100-continue", Content_Length="9")
        assert await raw.status() == statuses[0]
        if len(statuses) > 1:
            raw.writer.write(b"act=x&a=b")
            assert await raw.status() == statuses[1]
        raw.writer.close()


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "GZIP", "gzip, gzip"])
async def test_a_compressed_form_is_refused(staff: Browser, encoding: str) -> None:
    body = gzip.compress(b"act=x&body=" + b"x" * 1_000_000)
    headers = {"Origin": staff.url, "Content-Type": FORM, "Content-Encoding": encoding}
    reply = await staff.request("POST", COMMENT, data=body, headers=headers)
    assert (reply.status, reply.title) == (415, "This form cannot be read")


async def test_all_fields_of_a_form_have_one_limit(staff: Browser, nobody: Browser) -> None:
    longest = uploads.FIELDS_BYTES_MAX
    for browser, size, status in ((staff, longest - 10, 403), (staff, longest, 413)):
        reply = await browser.post(COMMENT, {"a": "x" * size})
        assert reply.status == status
    assert "256 KB of text" in reply.words and "No changes were made." in reply.words
    assert (await nobody.post("/sign-in", {"a": "x" * (uploads.STRANGERS_BYTES_MAX - 10)})).status == 403
    assert (await nobody.post("/sign-in", {"a": "x" * uploads.STRANGERS_BYTES_MAX})).status == 413
    # Also where files may come, and where it shows only as it arrives.
    form = aiohttp.FormData(default_to_multipart=True)
    for number in range(6):
        form.add_field(f"f{number}", "x" * 50_000)
    headers = {"Origin": staff.url}
    reply = await staff.request("POST", PHOTOS, data=form, headers=headers)
    assert reply.status == 413 and "201 MB with its files" in reply.words
    many = "&".join(f"f{number}=" for number in range(uploads.FIELDS_MAX + 1)).encode()
    assert (await staff.request("POST", COMMENT, data=many, headers={**headers, "Content-Type": FORM})).status == 415


async def test_a_file_on_a_page_that_takes_none_is_refused(staff: Browser) -> None:
    form = aiohttp.FormData({"act": "x"})
    form.add_field("file", b"x" * 1000, filename="a.csv")
    assert (await staff.request("POST", COMMENT, data=form, headers={"Origin": staff.url})).status == 415


async def test_a_form_that_breaks_off_is_told_so(console: str, stubs: Stubs) -> None:
    raw = await Raw(console).open()
    raw.send("POST", COMMENT, b"act=x", session=stubs.begin(stubs.people["hanh@demo.example"]), Content_Length="99")
    await asyncio.sleep(0.05)
    raw.writer.write_eof()
    assert await raw.status() == 400


async def test_a_person_has_a_few_uploads_at_a_time(console: str, stubs: Stubs) -> None:
    session = stubs.begin(stubs.people["hanh@demo.example"])
    other = stubs.begin(stubs.people["dana@demo.example"])
    begun = b'--b\r\nContent-Disposition: form-data; name="act"\r\n\r\n'
    headers = {"Content_Type": "multipart/form-data; boundary=b", "Content_Length": "1000000"}
    open_ones = [await Raw(console).open() for _ in range(uploads.UPLOADS_OF_A_PERSON_MAX)]
    for raw in open_ones:
        raw.send("POST", PHOTOS, begun, session=session, **headers)
    await asyncio.sleep(0.3)
    for sent_by, status in ((session, 503), (other, 403)):
        raw = await Raw(console).open()
        raw.send("POST", PHOTOS, begun + b"x\r\n--b--\r\n", session=sent_by, **{**headers, "Content_Length": "65"})
        assert await raw.status() == status
    for raw in open_ones:
        raw.writer.transport.abort()

    async def has_a_place() -> bool:
        raw = await Raw(console).open()
        raw.send("POST", PHOTOS, begun + b"x\r\n--b--\r\n", session=session, **{**headers, "Content_Length": "65"})
        return await raw.status() == 403

    async with asyncio.timeout(30):
        while not await has_a_place():  # noqa: ASYNC110 - over HTTP
            await asyncio.sleep(0.05)


async def test_open_pages_hang_up_when_the_console_stops(identity_keys: Path, database_url: str) -> None:
    async with _started(identity_keys, database_url) as (stubs, url):
        _reset(stubs)
        raw = await Raw(url).open()
        raw.send("GET", "/live?topics=ticket-41", session=stubs.begin(stubs.people["hanh@demo.example"]))
        assert b"text/event-stream" in await raw.reader.readuntil(b"\r\n\r\n")
        assert b"event: state" in await raw.reader.readuntil(b"\n\n")
        started = time.monotonic()
    assert (await raw.reader.read()).endswith(b"0\r\n\r\n")
    assert time.monotonic() - started < GRACE_SECONDS  # else it was cut off


class Made:
    """Counts the pages that are made for strangers, also while a person's page is."""

    def __init__(self) -> None:
        self.for_strangers = 0
        self.meanwhile: list[int] = []

    async def for_stranger(self, _context: PageContext) -> web.StreamResponse:
        self.for_strangers += 1
        return web.Response(text="made")

    async def for_person(self, _context: PageContext) -> web.StreamResponse:
        before = self.for_strangers
        for _ in range(HOPS):  # as a page that asks services
            await asyncio.sleep(0)
        self.meanwhile.append(self.for_strangers - before)
        return web.Response(text="made")


@pytest.fixture
async def busy(
    identity_keys: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Made, Stubs, str]]:
    counters = Made()
    more = (
        Page("GET", "/stranger", counters.for_stranger, EVERYBODY),
        Page("GET", "/person", counters.for_person, PEOPLE),
    )
    monkeypatch.setattr(pages, "PAGES", (*pages.PAGES, *more))
    async with _started(identity_keys, database_url) as (stubs, url):
        _reset(stubs)
        yield counters, stubs, url


async def test_a_person_waits_for_few_of_a_strangers_thousand_requests(busy: tuple[Made, Stubs, str]) -> None:
    counters, stubs, url = busy
    session = stubs.begin(stubs.people["hanh@demo.example"])
    person = await Raw(url).open()
    person.send("GET", "/person", session=session)
    assert await person.status() == 200
    strangers = [await Raw(url).open() for _ in range(STRANGERS)]
    for raw in strangers:
        for _ in range(PAGES_OF_EACH):
            raw.send("GET", "/stranger")
    await comes_true(lambda: counters.for_strangers >= STRANGERS)
    while counters.for_strangers < STRANGERS * PAGES_OF_EACH / 2:
        person.send("GET", "/person", session=session)
        assert await person.status() == 200
    assert len(counters.meanwhile) > 1
    assert max(counters.meanwhile) <= turns.AT_ONCE * (HOPS + 2), counters.meanwhile
    for raw in strangers:
        assert [await raw.status() for _ in range(PAGES_OF_EACH)] == [200] * PAGES_OF_EACH


async def test_turns_go_round_and_skip_who_has_left() -> None:
    queue = turns.Turns()
    order: list[str] = []

    async def take(client: str) -> None:
        await queue.turn(client, is_known=client.isupper())
        order.append(client)

    waiting = [asyncio.create_task(take(client)) for client in ("a", "a", "a", "a", "b", "b", "c")]
    await asyncio.sleep(0)
    waiting[1].cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert sorted(order) == ["a", "a", "a", "b", "b", "c"]
    assert order.index("c") < 4 and order.index("b") < 3
    await queue.turn("d", is_known=False)  # the turns had ended, and begin again


async def test_people_come_before_strangers_who_have_a_share_of_each_turn() -> None:
    queue = turns.Turns()
    order: list[str] = []

    async def take(client: str) -> None:
        await queue.turn(client, is_known=client.isupper())
        order.append(client)

    many = 3 * turns.AT_ONCE
    async with asyncio.TaskGroup() as group:
        for client in [*"s" * many, *"P" * many]:
            group.create_task(take(client))
    first, second = order[turns.AT_ONCE : 2 * turns.AT_ONCE], order[2 * turns.AT_ONCE : 3 * turns.AT_ONCE]
    assert first.count("s") == second.count("s") == turns.OF_STRANGERS
    assert len(order) == 2 * many
