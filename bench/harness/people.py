"""`make bench-console`: what people on the console cost the API beside it, and what the console's pages cost.

On loopback and bounded in count. A system of its own with the demo company; 20 sessions that click through the pages of
the menu; GET /tickets?limit=50 at a steady rate, which the machine bears with ease: at its limit any other work makes
each request dearer, whoever does it. Prints, and writes
docs/performance-console.md unless `--no-page`.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import itertools
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import aiohttp

from console.kit.browser_session import ADMINISTRATOR
from console.pages import PAGES
from harness import report
from harness.cpu import Machine, spent, used
from harness.idle import IDLE_SECONDS, memory, verdict
from harness.load import Client
from testkit.demo_system import running_demo

PEOPLE, CLICKS = 20, 4  # clicks of each person a block
REQUESTS, CONNECTIONS, KEYS, PAIRS = 1200, 8, 120, 5
A_SECOND = 150
PAGE_REQUESTS = 40
LIVE_SECONDS = 10.0
GATEWAY, CONSOLE = "gateway", "console"
PAGE = Path(__file__).parents[2] / "docs" / "performance-console.md"
TEXT = Path(__file__).with_name("performance-console.md")
ACT = re.compile(r'action="([^"]+)"[^>]*>\s*<input type="hidden"\s+name="act"\s+value="([^"]+)"')
LIVE = re.compile(r'hx-sse:connect="([^"]+)"')
STATIC = re.compile(r'(?:href|src)="(/static/[^"#]+)')
MENU = [page.path for page in PAGES if page.menu and ADMINISTRATOR in page.kinds]


@dataclass(frozen=True)
class Cost:
    """Of one page: bytes as they are sent, rows of tables, milliseconds of CPU by process."""

    path: str
    bytes: int
    rows: int
    cpu: dict[str, float]


@dataclass(frozen=True)
class Pair:
    """Seconds of the gateway's CPU: requests alone, clicks alone, and both at once."""

    alone: float
    clicks: float
    both: float

    @property
    def ratio(self) -> float:
        """The CPU of a request beside people, over that of a request alone; the clicks' own share is taken out."""
        return (self.both - self.clicks) / self.alone


class Person:
    """A browser with a session: cookies, no cache, gzip as it comes."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.cookies: dict[str, str] = {}
        self.http = aiohttp.ClientSession(auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar())
        self.text = ""
        self.stream: asyncio.Task[None] | None = None

    async def send(self, method: str, path: str, data: dict[str, str] | None = None) -> tuple[int, bytes]:
        """The status and the body as it was sent; `text` is the page."""
        cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        headers = {"Cookie": cookie, "Accept-Encoding": "gzip", "Origin": self.origin}
        request = self.http.request(method, self.origin + path, data=data, headers=headers, allow_redirects=False)
        async with request as answer:
            body = await answer.read()
            for name, morsel in answer.cookies.items():
                self.cookies[name] = morsel.value
            packed = answer.headers.get("Content-Encoding") == "gzip"
            self.text = (gzip.decompress(body) if packed else body).decode()
            return answer.status, body

    async def sign_in(self, email: str, password: str) -> None:
        await self.send("GET", "/sign-in")
        values = {"act": self.act("/sign-in"), "next": "/", "email": email, "password": password}
        status, _ = await self.send("POST", "/sign-in", values)
        assert status == 303, self.text

    def act(self, path: str) -> str:
        return next(str(act) for action, act in ACT.findall(self.text) if action == path)

    async def click(self, path: str) -> None:
        """Opens a page."""
        status, _ = await self.send("GET", path)
        assert status == 200, (path, status)

    async def look(self) -> None:
        """Opens the first page and holds its live stream."""
        await self.click("/")
        if match := LIVE.search(self.text):
            self.stream = asyncio.create_task(self._listen(match[1].replace("&amp;", "&")))

    async def _listen(self, path: str) -> None:
        cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        async with self.http.get(self.origin + path, headers={"Cookie": cookie}) as answer:
            async for _ in answer.content:
                pass

    async def hang_up(self) -> None:
        """Ends the live stream."""
        if self.stream is not None:
            self.stream.cancel()
            await asyncio.wait([self.stream])
            self.stream = None

    async def leave(self) -> None:
        await self.hang_up()
        await self.http.close()


async def mint(person: Person, number: int) -> str:
    """A key to read with, minted in the console."""
    await person.send("GET", "/keys/new")
    values = {"act": person.act("/keys/new"), "name": f"bench {number}", "scope": "read", "expires_at": ""}
    status, _ = await person.send("POST", "/keys/new", values)
    match = re.search(r'id="minted-key">([^<]+)<', person.text)
    assert status == 200 and match, status
    return str(match[1])


class Blocks:
    """Blocks of requests and clicks before one system. roots: its processes by name."""

    def __init__(self, roots: dict[str, int], people: list[Person], client: Client) -> None:
        self.roots, self.people, self.client = roots, people, client
        self.keys: Iterator[str] = iter(())

    def _script(self) -> Any:
        while True:
            yield self.client.request("GET", "/tickets?limit=50", next(self.keys))

    async def _requests(self, many: int) -> None:
        clock = asyncio.get_running_loop().time
        began = clock()
        for done in range(0, many, CONNECTIONS):
            await asyncio.sleep(began + done / A_SECOND - clock())
            await self.client.run(self._script, CONNECTIONS, 200)

    async def _clicks(self, seconds: float) -> None:
        """Each person clicks CLICKS times; all clicks are spread over these seconds."""
        clock = asyncio.get_running_loop().time
        began = clock()

        async def work(place: int, person: Person) -> None:
            for click in range(CLICKS):
                share = (place + click * len(self.people)) / (CLICKS * len(self.people))
                await asyncio.sleep(began + share * seconds - clock())
                await person.click(MENU[(place + click) % len(MENU)])

        async with asyncio.TaskGroup() as group:
            for place, person in enumerate(self.people):
                group.create_task(work(place, person))

    async def _cost(self, *work: Any) -> float:
        before = used(self.roots)
        await asyncio.gather(*work)
        return spent(before, used(self.roots))[GATEWAY]

    async def live(self) -> float:
        """Seconds of the gateway's CPU a second while each person has a page open and does nothing."""
        for person in self.people:
            await person.look()
        watching = sum(person.stream is not None for person in self.people)
        cost = await self._cost(asyncio.sleep(LIVE_SECONDS))
        for person in self.people:
            await person.hang_up()
        return cost / LIVE_SECONDS if watching else 0.0

    async def pair(self, requests: int) -> Pair:
        alone = await self._cost(self._requests(requests))
        clicks = await self._cost(self._clicks(requests / A_SECOND))
        both = await self._cost(self._requests(requests), self._clicks(requests / A_SECOND))
        return Pair(alone, clicks, both)

    async def pages(self, person: Person, times: int) -> list[Cost]:
        costs = []
        for path in MENU:
            _, body = await person.send("GET", path)
            before = used(self.roots)
            for _ in range(times):
                await person.send("GET", path)
            cpu = {name: 1000 * value / times for name, value in spent(before, used(self.roots)).items()}
            costs.append(Cost(path, len(body), person.text.count("<tr"), cpu))
        return costs


async def first_visit(origin: str) -> int:
    """The bytes of the first page, with all that it loads from this host."""
    person = Person(origin)
    _, body = await person.send("GET", "/sign-in")
    files = set(STATIC.findall(person.text))
    size = len(body)
    for file in sorted(files):
        cookie = {"Accept-Encoding": "gzip"}
        async with person.http.get(origin + file, headers=cookie) as answer:
            assert answer.status == 200, file
            size += len(await answer.read())
    await person.leave()
    return size


@dataclass(frozen=True)
class Found:
    """megabytes: the console's process at rest; busy: the processors' share of other programs, 0 to 1."""

    megabytes: float
    first_visit: int
    pairs: list[Pair]
    requests: int
    pages: list[Cost]
    live: float
    busy: float


async def measure(state: Path, requests: int = REQUESTS, pairs: int = PAIRS, times: int = PAGE_REQUESTS) -> Found:
    """Raises LoadError for an answer that is not 200."""
    runtime, demo = (json.loads((state / name).read_text()) for name in ("runtime.json", "demo.json"))
    roots = {name: int(process["pid"]) for name, process in runtime["processes"].items()}
    await asyncio.sleep(IDLE_SECONDS)
    megabytes = memory(CONSOLE, roots[CONSOLE]).resident
    people = [Person(demo["admin_url"]) for _ in range(PEOPLE)]
    machine = Machine(list(roots.values()))
    try:
        for person in people:
            await person.sign_in(**demo["administrator"])
        async with Client(demo["base_url"], CONNECTIONS) as client:
            blocks = Blocks(roots, people, client)
            pages = await blocks.pages(people[0], times)  # before there are hundreds of keys
            blocks.keys = itertools.cycle([await mint(people[0], number) for number in range(KEYS)])
            await blocks.pair(requests // 10)  # warms up
            measured = [await blocks.pair(requests) for _ in range(pairs)]
            live = await blocks.live()
    finally:
        for person in people:
            await person.leave()
    size = await first_visit(demo["admin_url"])
    return Found(megabytes, size, measured, requests, pages, live, machine.share_of_others())


def text(findings: Found) -> str:
    """The page, in Markdown."""
    ratios = sorted(pair.ratio for pair in findings.pairs)
    clicks = PEOPLE * CLICKS
    lines = ["| path | bytes, compressed | rows | console, ms CPU | all servers, ms CPU |", "|---|---:|---:|---:|---:|"]
    for cost in sorted(findings.pages, key=lambda cost: -cost.cpu[CONSOLE]):
        whole = sum(cost.cpu.values())
        lines.append(f"| `{cost.path}` | {cost.bytes:,} | {cost.rows} | {cost.cpu[CONSOLE]:.1f} | {whole:.1f} |")
    per = {"alone": 1000 / findings.requests, "clicks": 1000 / clicks, "both": 1000 / findings.requests}
    cpu = {name: per[name] * median(getattr(pair, name) for pair in findings.pairs) for name in per}
    return TEXT.read_text().format(
        people=PEOPLE, clicks_each=CLICKS, requests=findings.requests, pairs=len(findings.pairs),
        connections=CONNECTIONS,
        each=findings.requests // clicks, ratio=median(ratios), least=ratios[0], most=ratios[-1],
        megabytes=findings.megabytes, verdict=verdict(findings.megabytes),
        first=findings.first_visit / 1000, largest=max(page.bytes for page in findings.pages) / 1000,
        pages="\n".join(lines), machine=report.machine(), others=report.others(findings.busy), times=PAGE_REQUESTS,
        live=1000 * findings.live, rate=A_SECOND,
        whole=median(pair.both / pair.alone for pair in findings.pairs), **cpu,
    )  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench-console", description=__doc__)
    parser.add_argument("--state", type=Path, help="the STATE_DIR of a system that runs, instead of one of its own")
    parser.add_argument("--no-page", action="store_true", help="print the figures, write nothing")
    options = parser.parse_args()
    with running_demo(options.state) as state:
        page = text(asyncio.run(measure(state)))
    sys.stdout.write(page)
    if not options.no_page:
        PAGE.write_text(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
