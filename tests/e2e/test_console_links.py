"""Every `url` of a record opens a page for a person: for administrators and for staff (spec 2.1)."""

from __future__ import annotations

import html
import os
import re
import signal
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from testkit.patience import until

from .console_browser import MISSING, Browser, Page
from .system import Company, System

LISTS = ("tickets", "properties", "units", "assets", "vendors", "meters", "inspections", "turns")
OF_A_KIND = 8
# Records that have no list in the API: their links stand in lists of the console, and in events.
ELSEWHERE = {"/notices": r"/notices/\d+", "/pm-tasks": r"/pm-tasks/\d+", "/turn-tasks": r"/turn-tasks/\d+"}
GONE = "999999999"


@pytest.fixture(scope="module")
def demo(system: System) -> Company:
    system.makeready("wait")
    printed = system.demo
    key = system.mint(printed["company_id"], "read", printed["administrator"]["email"])
    return Company(system, printed["company_id"], printed["administrator"]["email"], {"read": key})


@pytest.fixture(scope="module", params=["administrator", "staff"])
def person(request: pytest.FixtureRequest, system: System) -> Browser:
    account = {"administrator": system.demo["administrator"], "staff": system.demo["staff"][0]}[request.param]
    browser = Browser(system)
    browser.get("/sign-in")
    assert browser.send("/sign-in", email=account["email"], password=account["password"]).status == 200
    return browser


@pytest.fixture(scope="module")
def records(demo: Company) -> dict[str, list[dict[str, Any]]]:
    """Some of each kind, from all over its list."""
    by_kind = {kind: list(demo.walk(f"/{kind}")) for kind in LISTS}
    return {kind: rows[:: max(1, len(rows) // OF_A_KIND)] for kind, rows in by_kind.items()}


def paths(person: Browser, records: dict[str, list[dict[str, Any]]]) -> Iterator[tuple[str, str]]:
    """The path of each link, with the record's name."""
    for rows in records.values():
        for row in rows:
            yield urlsplit(row["url"]).path, row.get("name") or row.get("title") or ""
    for unit in records["units"]:
        yield f"/units/{unit['entity_id']}/transitions", unit["name"]
    for path, shape in ELSEWHERE.items():
        links = sorted(set(re.findall(f'href="({shape})"', person.get(path).text)))
        assert links, path
        yield from ((link, "") for link in links[:OF_A_KIND])


def test_every_link_opens_with_all_its_parts(person: Browser, records: dict[str, list[dict[str, Any]]]) -> None:
    wrong, opened = [], 0
    for path, name in paths(person, records):
        page = person.get(path)
        heading = re.search(r"<h1[^>]*>(.*?)</h1>", page.text, re.DOTALL)
        title = html.unescape(re.sub(r"<[^>]+>", "", heading[1])) if heading else ""
        opened += 1
        if page.status != 200 or name not in title or MISSING in page.text:
            wrong.append((path, page.status, title, name))
    assert not wrong and opened > 10 * len(LISTS) // 2


TILE = re.compile(r'<a class="(?:red|amber|none|)"\s+href="([^"]+)"><span class="v">([\d,]+)</span>')
NEXT = re.compile(r'<a href="([^"]+)"\s+rel="next"')
PARKED = re.compile(r'state=parked#deliveries"><span\s+class="in-red b">([\d,]+)<')


def rows_of(page: Page) -> int:
    """The records of a list. That of endpoints counts their parked deliveries."""
    if "/webhooks?view=retry" in page.text and "Endpoints" in page.words:
        return sum(int(number.replace(",", "")) for number in PARKED.findall(page.text))
    bodies = re.findall(r"<tbody>(.*?)</tbody>", page.text, re.DOTALL)
    return sum(len(re.findall(r"<tr(?! class=\"group\")[ >]", body)) for body in bodies)


def test_each_tile_of_the_first_page_counts_the_rows_of_its_list(person: Browser, demo: Company) -> None:
    tiles = {html.unescape(path): int(count.replace(",", "")) for path, count in TILE.findall(person.get("/").text)}
    rows: dict[str, int] = {}
    for path in tiles:
        page, rows[path] = person.get(path), 0
        while True:
            rows[path] += rows_of(page)
            following = NEXT.search(page.text)
            if following is None:
                break
            page = person.get(html.unescape(following[1]))
    assert rows == tiles and len(tiles) >= (7 if "/webhooks" not in "".join(tiles) else 8)
    assert sum(map(bool, tiles.values())) >= 6


def test_a_record_of_nobody_and_one_of_another_company_are_the_same_404(
    person: Browser, system: System, records: dict[str, list[dict[str, Any]]]
) -> None:
    stranger = Browser(system).sign_in(system.company("Other Links").email)
    for rows in records.values():
        path = urlsplit(rows[0]["url"]).path
        gone = stranger.get(re.sub(r"\d+$", GONE, path))
        page = stranger.get(path)
        assert (page.status, gone.status) == (404, 404)
        assert page.words.split("request")[0] == gone.words.split("request")[0]
        assert person.get(re.sub(r"\d+$", GONE, path)).status == 404


# By the service that is stopped: a page of another one, which shows a part of it, and a page of its own.
WITHOUT = {
    "svc-tickets": ("units", "/tickets"),
    "svc-occupancy": ("units", "/board"),
    "svc-catalog": ("tickets", "/vendors"),
    "svc-webhooks": ("tickets", ""),
}


@pytest.mark.parametrize("service", WITHOUT)
def test_pages_stand_without_a_service(service: str, system: System, demo: Company) -> None:
    """Stopped, not ended: its callers wait for answers that do not come."""
    browser = Browser(system)
    browser.get("/sign-in")
    account = system.demo["administrator"]
    assert browser.send("/sign-in", email=account["email"], password=account["password"]).status == 200
    kind, refused_pages = WITHOUT[service]
    # Only the page of a ticket with a vendor has a part of svc-catalog.
    row = next(record for record in demo.walk(f"/{kind}") if kind == "units" or record["assigned_vendor"])
    path = urlsplit(row["url"]).path
    pid = system.runtime["processes"][service]["pid"]
    assert MISSING not in browser.get(path).text
    os.kill(pid, signal.SIGSTOP)
    try:
        for page_path in ("/", path):
            page = browser.get(page_path, whole=False)
            assert page.status == 200 and page.words.count(MISSING) >= 1, page_path
        assert (row.get("name") or row["title"]) in page.words
        if refused_pages:
            assert browser.get(refused_pages, whole=False).status == 503
    finally:
        os.kill(pid, signal.SIGCONT)
    until(lambda: MISSING not in browser.get(path, whole=False).text)
