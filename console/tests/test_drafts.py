"""Nothing that a person types is lost, and nothing of it is another person's to read: drafts, in a real browser."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from playwright.async_api import Browser as Chromium
from playwright.async_api import BrowserContext, FilePayload, Page, expect

from testkit.patience import PATIENCE_SECONDS, eventually

from .stubs import PASSWORD, Stubs
from .test_browser import Tab, chromium, tab

__all__ = ["chromium"]
pytestmark = [pytest.mark.browser, pytest.mark.slow]

expect.set_options(timeout=1000 * PATIENCE_SECONDS)
COMMENT = "tickets.TicketCommandsService/CommentOnTicket"
TYPED = 'Leaks again <img src=x onerror="document.title=1"> “ñ” 水'
BODY, SEND = "#f-body", "form[action='/tickets/102/comment'] button:not([type=button])"
# All that the browser stores of its pages, as text.
STORED = """async () => {
  const texts = [], decode = (bytes) => new TextDecoder('latin1').decode(bytes);
  const walk = (value) => {
    if (value instanceof ArrayBuffer || ArrayBuffer.isView(value)) texts.push(decode(value));
    else if (value instanceof CryptoKey) texts.push(`key ${value.extractable}`);
    else if (value && typeof value === 'object') Object.values(value).forEach(walk);
    else texts.push(String(value));
  };
  for (const { name } of await indexedDB.databases()) {
    const asked = indexedDB.open(name);
    const db = await new Promise((done) => { asked.onsuccess = () => done(asked.result); });
    for (const store of db.objectStoreNames) {
      const rows = db.transaction(store).objectStore(store).getAll();
      walk(await new Promise((done) => { rows.onsuccess = () => done(rows.result); }));
    }
    db.close();
  }
  for (const name of await caches.keys()) {
    const cache = await caches.open(name);
    for (const request of await cache.keys()) texts.push(name, request.url, await (await cache.match(request)).text());
  }
  walk({ ...localStorage }); walk({ ...sessionStorage });
  return texts;
}"""


@pytest.fixture
async def context(chromium: Chromium) -> AsyncIterator[BrowserContext]:
    context = await chromium.new_context(reduced_motion="reduce")
    context.set_default_timeout(1000 * PATIENCE_SECONDS)
    yield context
    await context.close()


async def stored(page: Page) -> str:
    return "\n".join(await page.evaluate(STORED))


async def rows(page: Page, name: str = "drafts") -> int:
    count: int = await page.evaluate(
        """(name) => new Promise((done) => {
          const asked = indexedDB.open('makeready', 1);
          asked.onsuccess = () => {
            const db = asked.result;
            if (!db.objectStoreNames.contains(name)) { db.close(); done(0); return; }
            const counted = db.transaction(name).objectStore(name).count();
            counted.onsuccess = () => { db.close(); done(counted.result); };
          };
        })""",
        name,
    )
    return count


async def kept(page: Page, number: int) -> None:
    """Waits until the browser stores so many drafts."""

    async def is_so() -> bool:
        return await rows(page) == number

    await eventually(is_so)


async def typed(browser_tab: Tab, text: str = TYPED, email: str = "hanh@demo.example") -> Page:
    """A comment that is typed and not sent."""
    await browser_tab.sign_in(email, "/tickets/102")
    await browser_tab.page.fill(BODY, text)
    await kept(browser_tab.page, 1)
    return browser_tab.page


async def is_in(page: Page) -> None:
    """Waits until somebody is signed in, and the page has their key."""
    await page.wait_for_selector("form[action='/sign-out']", state="attached")
    await page.wait_for_function("async () => (await store.me()) !== null")


def over(stubs: Stubs) -> None:
    """All sessions have ended elsewhere."""
    stubs.sessions.clear()


async def sign_in_again(page: Page, email: str) -> None:
    await page.fill("#return-email", email)
    await page.fill("#return-password", PASSWORD)
    await page.click("#confirm button:has-text('Sign in and send')")


async def test_a_draft_is_there_again_and_goes_when_its_act_has_succeeded(
    context: BrowserContext, console: str, stubs: Stubs
) -> None:
    browser_tab = await tab(context, console)
    page = await typed(browser_tab)
    text = await stored(page)
    assert "Leaks again" not in text and "key false" in text
    await browser_tab.open("/tickets")
    await browser_tab.open("/tickets/102")
    line = page.locator(".restored")
    await expect(line).to_contain_text("Draft restored from")
    assert await page.input_value(BODY) == TYPED and await page.title() != "1"
    await line.get_by_role("button", name="Discard").click()
    assert await page.input_value(BODY) == ""
    await kept(page, 0)
    await browser_tab.open("/tickets/102")
    await expect(page.locator(BODY)).to_have_value("")
    # One that succeeds leaves nothing.
    await page.fill(BODY, TYPED)
    await kept(page, 1)
    await page.click(SEND)
    await page.wait_for_url("**/tickets/102#say")
    await kept(page, 0)
    assert [request.body for request in stubs.called(COMMENT)] == [TYPED]
    assert browser_tab.said == []


async def test_a_form_is_sent_once_after_a_new_sign_in(context: BrowserContext, console: str, stubs: Stubs) -> None:
    browser_tab = await tab(context, console)
    page = await typed(browser_tab)
    act = await page.input_value("form[action='/tickets/102/comment'] [name=act]")
    over(stubs)
    await page.wait_for_timeout(1100)  # what the console knows of the session is old by then
    await page.click(SEND)
    await expect(page.locator("h1")).to_have_text("Sign in to send it")
    assert not stubs.called(COMMENT)
    await sign_in_again(page, "hanh@demo.example")
    await page.wait_for_url("**/tickets/102#say")
    assert [(request.body, request.idempotency_key) for request in stubs.called(COMMENT)] == [(TYPED, act)]
    await kept(page, 0)


async def test_a_draft_outlives_the_session_for_its_person_alone(
    context: BrowserContext, console: str, stubs: Stubs
) -> None:
    browser_tab = await tab(context, console)
    page = await typed(browser_tab)
    over(stubs)
    await page.wait_for_timeout(1100)
    await browser_tab.open("/tickets/102")
    assert "/sign-in" in page.url
    # Nobody reads it: neither without a session, nor a colleague on the same device, nor another company's people.
    for email in ("", "dana@demo.example", "olga@other.example"):
        if email:
            await browser_tab.sign_in(email, "/account")
            await is_in(page)
            assert (
                await page.evaluate("async () => (await store.drafts.get('/tickets/102/comment body by')) ?? null")
                is None
            )
            over(stubs)
            await page.wait_for_timeout(1100)
            await browser_tab.open("/sign-in")
        await page.wait_for_function("async () => (await store.me()) === null")
        text = await stored(page)
        assert "Leaks again" not in text and "key" not in text.splitlines()
        assert await rows(page) == 1
    await browser_tab.sign_in("hanh@demo.example", "/tickets/102")
    await expect(page.locator(".restored")).to_be_visible()
    assert await page.input_value(BODY) == TYPED


async def test_a_draft_is_of_one_company(context: BrowserContext, console: str, stubs: Stubs) -> None:
    browser_tab = await tab(context, console)
    await browser_tab.sign_in(path="/assets/new")
    page = browser_tab.page
    await page.fill("#f-name", "Boiler of the live company")
    await kept(page, 1)
    await browser_tab.open("/settings/sandboxes")
    await page.click("button:has-text('Trial of the new sync')")
    await browser_tab.open("/assets/new")
    await is_in(page)
    await expect(page.locator("#f-name")).to_have_value("")
    assert await page.locator(".restored").count() == 0
    await page.click(".sandbox button")
    await browser_tab.open("/assets/new")
    await expect(page.locator("#f-name")).to_have_value("Boiler of the live company")


async def test_nothing_is_left_after_the_sign_out(context: BrowserContext, console: str, stubs: Stubs) -> None:
    browser_tab = await tab(context, console)
    page = await typed(browser_tab)
    await browser_tab.open("/account")
    await page.click("form[action='/sign-out'] button")
    await page.wait_for_url("**/sign-in")

    async def is_empty() -> bool:
        return (await stored(page)).strip() == ""

    await eventually(is_empty)
    await browser_tab.sign_in("hanh@demo.example", "/tickets/102")
    await is_in(page)
    assert await page.input_value(BODY) == ""


async def test_no_secret_is_kept(context: BrowserContext, console: str, stubs: Stubs) -> None:
    browser_tab = await tab(context, console)
    await browser_tab.sign_in(path="/account")
    page = browser_tab.page
    await is_in(page)
    puts: list[Any] = []
    await page.expose_function("noted", lambda text: puts.append(str(text)))
    await page.evaluate("store.drafts.put = async (form, value) => { await noted(JSON.stringify(value)); }")

    async def is_put() -> bool:
        return any("Blue key" in text for text in puts)

    await page.fill("#new-password", "my new and longer password")
    await page.fill("#passkey-name", "Blue key")
    await eventually(is_put)
    assert not any("longer password" in text for text in puts)


async def test_what_was_not_answered_stays_the_same_act(context: BrowserContext, console: str, stubs: Stubs) -> None:
    """Sent, and no answer came: sent again unchanged it is the same act, changed it is another one."""
    browser_tab = await tab(context, console)
    await browser_tab.sign_in("hanh@demo.example", "/tickets/new?unit_id=15")
    page = browser_tab.page
    await page.fill("#f-title", "The answer is lost")
    await kept(page, 1)
    act = await page.input_value("form[action='/tickets/new'] [name=act]")
    await context.route("**/tickets/new", lambda route: route.abort())
    await page.eval_on_selector(
        "form[action='/tickets/new']", "form => { form.noValidate = true; form.requestSubmit(); }"
    )
    await page.wait_for_selector("form[action='/tickets/new']", state="detached")
    await context.unroute("**/tickets/new")
    await browser_tab.open("/tickets/new?unit_id=15")
    await expect(page.locator(".restored")).to_be_visible()
    assert await page.input_value("form[action='/tickets/new'] [name=act]") == act
    await page.fill("#f-title", "The answer is lost, so I say more")
    assert await page.input_value("form[action='/tickets/new'] [name=act]") != act


async def test_photos_of_a_form_are_kept(context: BrowserContext, console: str, stubs: Stubs) -> None:
    browser_tab = await tab(context, console)
    await browser_tab.sign_in("hanh@demo.example", "/tickets/102/photos")
    page = browser_tab.page
    picture = FilePayload(name="leak.jpg", mimeType="image/jpeg", buffer=b"\xff\xd8 a picture \xff\xd9")
    await page.set_input_files("form[action='/tickets/102/photos'] input[type=file]", [picture])
    await kept(page, 1)
    assert "a picture" not in await stored(page)
    await browser_tab.open("/tickets/102/photos")
    await expect(page.locator(".restored")).to_be_visible()
    files = "input => Promise.all([...input.files].map(async file => [file.name, await file.text()]))"
    (file,) = await page.eval_on_selector("form[action='/tickets/102/photos'] input[type=file]", files)
    assert file[0] == "leak.jpg" and "a picture" in file[1]
