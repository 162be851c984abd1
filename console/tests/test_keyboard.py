"""The keyboard: shortcuts that can be turned off, and the palette, in a real browser."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest
from playwright.async_api import Browser as Chromium
from playwright.async_api import BrowserContext, expect

from console.kit.navigation import KEYS, MENU
from testkit.patience import PATIENCE_SECONDS

from .browsing import Browser
from .stubs import Stubs
from .test_browser import Axe, _problems, chromium, tab
from .test_drafts import BODY, COMMENT

__all__ = ["chromium"]
OPTION = "#palette [role=option]"


@pytest.fixture
async def context(chromium: Chromium) -> AsyncIterator[BrowserContext]:
    context = await chromium.new_context(reduced_motion="reduce", viewport={"width": 1360, "height": 900})
    context.set_default_timeout(1000 * PATIENCE_SECONDS)
    yield context
    await context.close()


def test_each_key_leads_to_one_entry_of_the_menu() -> None:
    assert len(set(KEYS.values())) == len(KEYS) and set(KEYS) <= set(MENU)
    assert all(len(key) == 1 and key.isalpha() for key in KEYS.values())


@pytest.mark.browser
@pytest.mark.slow
async def test_pages_lists_and_forms_by_the_keyboard_alone(context: BrowserContext, console: str, stubs: Stubs) -> None:
    browser_tab = await tab(context, console)
    await browser_tab.sign_in("hanh@demo.example", "/account")
    page, press = browser_tab.page, browser_tab.page.keyboard.press
    await page.wait_for_selector("form[action='/sign-out']", state="attached")
    await press("g")
    await press("t")
    await page.wait_for_url("**/tickets*")
    await page.wait_for_selector("main tbody tr")
    focused = "document.activeElement.getAttribute('href')"
    await press("j")
    first = await page.evaluate(focused)
    await press("j")
    assert await page.evaluate(focused) != first
    await press("k")
    assert await page.evaluate(focused) == first and first.startswith("/tickets/")
    await press("Enter")
    await page.wait_for_url(f"**{first}")
    await browser_tab.open("/tickets/102")
    await press("/")
    assert await page.evaluate("document.activeElement.type") == "search"
    # What is typed is text, in the search and in a form; Ctrl+Enter sends it.
    await page.keyboard.type("gt?jc")
    assert await page.input_value("#q") == "gt?jc" and page.url.endswith("/tickets/102")
    await page.focus(BODY)
    await page.keyboard.type("Written with c and j")
    await press("Control+Enter")
    await page.wait_for_url("**/tickets/102#say")
    assert [request.body for request in stubs.called(COMMENT)] == ["Written with c and j"]
    await press("?")
    await expect(page.locator("#keys")).to_contain_text("Preventive maintenance")
    await press("Escape")
    await browser_tab.open("/tickets")
    await press("c")
    await page.wait_for_url("**/tickets/new*")


@pytest.mark.browser
@pytest.mark.slow
async def test_the_palette_has_pages_acts_and_records_that_the_person_may_open(
    context: BrowserContext, console: str, stubs: Stubs
) -> None:
    browser_tab = await tab(context, console)
    await browser_tab.sign_in("hanh@demo.example", "/tickets/102")
    page, press = browser_tab.page, browser_tab.page.keyboard.press
    await page.wait_for_selector("form[action='/sign-out']", state="attached")
    await press("Control+k")
    field = page.get_by_role("combobox", name="Search pages, actions and records")
    await expect(field).to_be_focused()
    await expect(page.locator(OPTION, has_text="Inspections")).to_have_count(1)
    await expect(page.locator(OPTION, has_text="API keys")).to_have_count(0)
    judged: dict[str, set[str]] = {"light": set(), "dark": set()}
    axe = await Axe.of(page)
    faults = [f"{look}: {fault}" for look in ("light", "dark", "phone") for fault in await _problems(axe, look, judged)]
    assert faults == []
    await page.set_viewport_size({"width": 1360, "height": 900})
    await field.fill("assign")
    await expect(page.locator(OPTION).first).to_contain_text("Assign")
    await field.fill("hot wat")
    await expect(page.locator(f"{OPTION}[aria-selected=true]")).to_contain_text("ot water")
    for _ in range(2):
        await press("ArrowDown")
    await press("ArrowUp")
    active = await field.get_attribute("aria-activedescendant")
    text = (await page.inner_text(f"#{active}")).split(" · ")[0]
    await press("Enter")
    await page.wait_for_selector("#palette", state="hidden")
    await expect(page.locator("main")).to_contain_text(text)
    await press("Control+k")
    await field.fill("no such thing <b>at all</b>")
    await expect(page.locator("#palette-status")).to_have_text("No matches")
    await press("Escape")
    await expect(page.locator("#palette")).to_be_hidden()
    await press("?")
    await expect(page.locator("#keys")).to_be_visible()
    await press("Escape")
    await press("Control+k")
    await field.fill("turn b")
    await press("Enter")
    await page.wait_for_url("**/board*")
    assert not [text for text in browser_tab.said if "Refused" in text or "Error" in text]


@pytest.mark.browser
@pytest.mark.slow
async def test_single_keys_can_be_turned_off(context: BrowserContext, console: str) -> None:
    browser_tab = await tab(context, console)
    await browser_tab.sign_in(path="/account")
    page = browser_tab.page
    await page.uncheck("[name=shortcuts]")
    await page.click("form[action='/account/shortcuts'] button")
    await expect(page.locator("main")).to_contain_text("Shortcuts are off.")
    for key in ("g", "t", "?", "c"):
        await page.keyboard.press(key)
    await expect(page.locator("#keys")).to_be_hidden()
    assert "/account" in page.url
    await page.keyboard.press("Control+k")
    await expect(page.locator("#palette")).to_be_visible()


async def test_the_choice_is_the_browser_s(administrator: Browser) -> None:
    await administrator.get("/account")
    await administrator.send("/account/shortcuts", shortcuts="")
    assert 'data-shortcuts="off"' in (await administrator.get("/account")).text
    await administrator.send("/account/shortcuts", shortcuts="1")
    assert "data-shortcuts" not in (await administrator.get("/tickets")).text


async def test_the_palette_lists_the_keys_of_the_menu(signed_in: Callable[..., Browser]) -> None:
    for email, has_keys in (("dana@demo.example", True), ("hanh@demo.example", False)):
        assert ('data-go="k"' in (await signed_in(email).get("/")).text) is has_keys
