"""The pages below /docs in a real browser, as a real gateway serves them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import axe_playwright_python
import pytest
from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect

from gateway.http.reference import Reference
from testkit.chromium import OPTIONS, program
from testkit.gateways import Gateway

pytestmark = [pytest.mark.browser, pytest.mark.slow]

AXE = next(Path(axe_playwright_python.__file__).parent.rglob("axe.min.js"))
PATHS = sorted(path for path, page in Reference("http://x/api/v1").pages.items() if b"text/html" in page.headers)
PHONE = 390
LENGTH_MAX = 29_000  # pixels, of a phone's width: the longest has 28,600; with a fold for nothing one had 49,000


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        started = await playwright.chromium.launch(executable_path=program(), args=list(OPTIONS))
        yield started
        await started.close()


@pytest.fixture
async def context(browser: Browser, gateway: Gateway) -> AsyncIterator[BrowserContext]:
    opened = await browser.new_context(
        base_url=f"http://127.0.0.1:{gateway.api_port}",
        viewport={"width": PHONE, "height": 844},
        permissions=["clipboard-read", "clipboard-write"],
    )
    yield opened
    await opened.close()


@pytest.fixture
async def page(context: BrowserContext) -> Page:
    """A page that fails the test for anything in its console, such as what its policy refuses."""
    opened = await context.new_page()
    messages: list[str] = []
    opened.on("console", lambda message: messages.append(message.text))
    opened.on("pageerror", lambda error: messages.append(str(error)))
    opened.said = messages  # type: ignore[attr-defined]
    return opened


def said(page: Page) -> list[str]:
    messages: list[str] = page.said  # type: ignore[attr-defined]
    return messages


async def violations(page: Page, options: dict[str, Any] | None = None, place: str = "html") -> list[str]:
    """What axe finds below the element at `place`."""
    await page.evaluate(AXE.read_text())
    script = """async ([place, options]) => {
        const found = await axe.run(place, {...options, resultTypes: ['violations'], preload: false});
        return found.violations.map((one) => [one.id, one.nodes[0].html]);
    }"""
    lines: list[str] = await page.evaluate(script, [place, options or {}])
    return lines


async def test_no_page_is_wider_or_longer_than_a_phone_bears_or_refused_by_its_policy(page: Page) -> None:
    assert len(PATHS) > 15
    for path in PATHS:
        await page.goto(path)
        assert await page.evaluate("document.documentElement.scrollHeight") < LENGTH_MAX, path
        wide = "[document.documentElement, ...document.querySelectorAll('main table')].map((one) => one.scrollWidth)"
        assert max(await page.evaluate(wide)) <= PHONE, path
        if await page.locator("pre").count():
            await expect(page.get_by_role("button", name="Copy").first).to_be_visible()
    assert said(page) == []


@pytest.mark.parametrize("path", ["/docs", "/docs/api/tickets", "/docs/webhooks"])
async def test_a_page_is_accessible(page: Page, path: str) -> None:
    await page.goto(path)
    assert await violations(page) == []
    await page.emulate_media(color_scheme="dark")
    await page.set_viewport_size({"width": 1280, "height": 900})
    colours = {"runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}}
    assert await violations(page, colours) == []
    await page.set_viewport_size({"width": PHONE, "height": 844})
    await page.fill("#search", "ticket")
    await expect(page.get_by_role("option").first).to_be_visible()
    assert await violations(page, place="search") == []
    assert said(page) == []


async def test_the_search_finds_an_operation_by_the_keyboard_alone(page: Page) -> None:
    await page.goto("/docs/webhooks")
    await page.keyboard.press("/")
    await page.keyboard.type("create tick")
    first = page.get_by_role("option").first
    await expect(first).to_contain_text("Create a ticket")
    await expect(first).to_contain_text("POST /tickets")
    await expect(first).to_have_attribute("aria-selected", "true")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/docs/api/tickets#createTicket")
    await page.fill("#search", "permission enter")
    await expect(page.get_by_role("option").first).to_contain_text("permission_to_enter")
    await page.fill("#search", "idempotency_mismatch")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/docs/api/errors#idempotency_mismatch")
    for word, title in (
        ("pagination", "Pages"),
        ("429", "rate_limited"),
        ("restored backup", "Changes"),
    ):
        await page.fill("#search", word)
        await expect(page.get_by_role("option").first).to_contain_text(title)
    await page.fill("#search", "no such thing")
    await expect(page.get_by_text("Nothing found")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("listbox")).to_be_hidden()
    assert said(page) == []


async def test_a_copied_example_is_the_one_that_is_shown_and_its_language_is_remembered(page: Page) -> None:
    await page.goto("/docs/api/tickets#createTicket")
    article = page.locator("#createTicket")
    await article.get_by_text("Python", exact=True).click()
    sample = article.locator(".sample pre:visible")
    await expect(sample).to_have_count(1)
    await article.get_by_role("button", name="Copy").and_(page.locator(":visible")).first.click()
    await expect(article.get_by_role("button", name="Copied")).to_be_visible()
    copied = await page.evaluate("navigator.clipboard.readText()")
    assert copied == await sample.text_content() and "client.tickets.create(" in copied
    await page.goto("/docs/api/units")
    sample = page.locator("#recordNotice .sample pre:visible")
    await expect(sample).to_contain_text("client.units.record_notice(")
    assert said(page) == []


async def test_a_link_opens_what_is_folded_because_it_says_the_same_of_other_records(page: Page) -> None:
    await page.goto("/docs/api/changes")
    await expect(page.locator("#listTicketChanges")).to_be_visible()
    await expect(page.locator("#listUnitChanges")).to_be_hidden()
    await page.locator(".operations").get_by_role("link", name="Follow units").click()
    await expect(page.locator("#listUnitChanges")).to_be_in_viewport()
    await page.goto("/docs/api/units")
    await page.goto("/docs/api/changes#schema-VendorChangePage")
    await expect(page.locator("#schema-VendorChangePage")).to_be_in_viewport()
    assert said(page) == []


async def test_without_scripts_everything_is_there_but_the_search(browser: Browser, gateway: Gateway) -> None:
    context = await browser.new_context(
        base_url=f"http://127.0.0.1:{gateway.api_port}",
        viewport={"width": PHONE, "height": 844},
        java_script_enabled=False,
    )
    try:
        page = await context.new_page()
        await page.goto("/docs/api/tickets")
        await expect(page.locator("search")).to_be_hidden()
        article = page.locator("#createTicket")
        await expect(article.locator(".sample pre:visible")).to_contain_text("curl -X POST")
        await article.get_by_text("TypeScript", exact=True).click()
        await expect(article.locator(".sample pre:visible")).to_contain_text("await client.tickets.create(")
        await page.get_by_role("link", name="Contents").click()
        await page.get_by_role("navigation").get_by_role("link", name="Units").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Units")
    finally:
        await context.close()
