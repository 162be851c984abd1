"""Work without a network, in a real browser: pages that open, acts that wait and are sent once, nothing that stays."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser as Chromium
from playwright.async_api import BrowserContext, Error, FilePayload, Page, async_playwright, expect

from chassis.refusals import Refusal
from testkit.chromium import OPTIONS, program
from testkit.patience import PATIENCE_SECONDS, eventually

from .stubs import Stubs
from .test_browser import Tab, chromium, tab
from .test_drafts import BODY, COMMENT, SEND, over, rows, stored

__all__ = ["chromium"]
pytestmark = [pytest.mark.browser, pytest.mark.slow]

PASS = "catalog.InspectionCommandsService/PassInspectionRow"
STATUS = "tickets.TicketCommandsService/SetTicketStatus"
PHONE: Any = {
    "viewport": {"width": 390, "height": 844},
    "has_touch": True,
    "is_mobile": True,
    "reduced_motion": "reduce",
}


@pytest.fixture
async def context(chromium: Chromium) -> AsyncIterator[BrowserContext]:
    context = await chromium.new_context(**PHONE)
    context.set_default_timeout(1000 * PATIENCE_SECONDS)
    yield context
    await context.close()


async def ready(browser_tab: Tab, *paths: str, email: str = "hanh@demo.example") -> Page:
    """A phone with somebody's work: the pages are kept, and the network may go away."""
    page = browser_tab.page
    await browser_tab.sign_in(email, "/tickets/102")
    await page.wait_for_selector("form[action='/sign-out']", state="attached")
    await page.wait_for_function("() => navigator.serviceWorker.controller !== null")
    for path in paths or ("/tickets/102",):
        await browser_tab.open(path)
    await page.wait_for_function(
        """async (paths) => {
          const me = await store.me();
          if (!me) return false;
          const cache = await caches.open(`pages-${me.owner}`);
          return (await Promise.all(paths.map((path) => cache.match(path)))).every(Boolean);
        }""",
        arg=list(paths or ("/tickets/102",)),
    )
    return page


async def waiting(page: Page, number: int) -> None:
    async def is_so() -> bool:
        with suppress(Error):  # the page changes meanwhile
            return await rows(page, "acts") == number
        return False

    await eventually(is_so)


async def comment(page: Page, text: str, number: int) -> None:
    """A comment without a network, which is the so-many-th act that waits."""
    await page.fill(BODY, text)
    await page.click(SEND)
    waits = "change waits" if number == 1 else "changes wait"
    await expect(page.locator("#waiting")).to_contain_text(f"{number} {waits} to be sent.")
    await waiting(page, number)


async def test_an_act_without_a_network_waits_and_is_sent_once(
    context: BrowserContext, console: str, stubs: Stubs
) -> None:
    page = await ready(await tab(context, console))
    act = await page.input_value("form[action='/tickets/102/comment'] [name=act]")
    await context.set_offline(True)
    # Two comments of one page that is kept: two acts.
    await comment(page, "Shut-off valve found behind the dryer", 1)
    await expect(page.locator("#waiting")).to_contain_text("No network.")
    await comment(page, "Second of the basement", 2)
    assert await rows(page) == 0 and "Shut-off" not in re.sub(r"https?://\S+", "", await stored(page))
    assert not stubs.called(COMMENT)
    await context.set_offline(False)
    await waiting(page, 0)
    sent = stubs.called(COMMENT)
    assert [request.body for request in sent] == ["Shut-off valve found behind the dryer", "Second of the basement"]
    assert sent[0].idempotency_key == act and sent[1].idempotency_key.startswith(f"{act}~")
    await expect(page.locator("#waiting")).to_be_hidden()


async def test_a_connection_that_breaks_in_the_middle_of_an_act_does_it_once(
    context: BrowserContext, console: str, stubs: Stubs
) -> None:
    """The service has done it, and the answer does not arrive: what is sent again has the same key."""
    page = await ready(await tab(context, console))
    await context.route("**/tickets/102/comment", _do_and_break)
    await page.fill(BODY, "Done, but who knows")
    await page.click(SEND)
    await page.wait_for_url("**/tickets/102")
    await waiting(page, 1)
    await context.unroute("**/tickets/102/comment")
    await page.evaluate("navigator.serviceWorker.controller.postMessage('send')")
    await waiting(page, 0)
    keys = [request.idempotency_key for request in stubs.called(COMMENT)]
    assert len(keys) >= 2 and len(set(keys)) == 1


async def _do_and_break(route: Any) -> None:
    with suppress(Error):  # the route is taken away meanwhile
        await route.fetch(max_redirects=0)
        await route.abort()


async def test_an_inspection_is_walked_without_a_network(context: BrowserContext, console: str, stubs: Stubs) -> None:
    page = await ready(await tab(context, console), "/inspections/1", "/inspections/1/walk?row=4")
    await context.set_offline(True)
    await page.goto(console + "/inspections/1/walk?row=4")
    later = page.locator("a[rel=next]")
    after = await later.get_attribute("href") if await later.count() else None
    await page.click("form[action='/inspections/1/rows/4/pass'] button")
    await page.wait_for_url(f"**{after}" if after else "**/inspections/1")
    await waiting(page, 1)
    await context.set_offline(False)
    await waiting(page, 0)
    assert [request.row_id for request in stubs.called(PASS)] == [4]


async def test_what_is_refused_stays_with_both_versions_and_the_rest_goes_on(
    context: BrowserContext, console: str, stubs: Stubs
) -> None:
    browser_tab = await tab(context, console)
    page = await ready(browser_tab)
    await context.set_offline(True)
    await comment(page, "Mine <img src=x onerror=alert(1)>", 1)
    await comment(page, "After it, of the same ticket", 2)

    def refuse(_request: Any, _who: Any) -> Any:
        raise Refusal(409, "conflict", "Meanwhile DeShawn has cancelled this ticket.")

    stubs.answers[COMMENT] = refuse
    await context.set_offline(False)
    await expect(page.locator("#waiting")).to_contain_text("1 change was refused.")
    await page.click("#waiting a")
    refused = page.locator("#offline li").first
    await expect(refused).to_contain_text("Meanwhile DeShawn has cancelled this ticket.")
    await expect(refused.locator("[data-at=mine]")).to_contain_text("Mine <img src=x onerror=alert(1)>")
    await expect(refused.locator("[data-at=now]")).to_contain_text("No hot water")
    assert await page.locator("#offline li").count() == 2 and len(stubs.called(COMMENT)) == 1
    # Opened with the text as a draft; what waited behind it goes on.
    del stubs.answers[COMMENT]
    await refused.get_by_role("button", name="Open, with mine as a draft").click()
    await page.wait_for_url("**/tickets/102")
    await expect(page.locator(BODY)).to_have_value("Mine <img src=x onerror=alert(1)>")
    await waiting(page, 0)
    assert [request.body for request in stubs.called(COMMENT)][-1] == "After it, of the same ticket"


async def test_what_the_service_still_works_on_is_sent_again(
    context: BrowserContext, console: str, stubs: Stubs
) -> None:
    """An act whose first try is not over yet goes on waiting: it is no refused one."""
    page = await ready(await tab(context, console))
    await context.set_offline(True)
    await comment(page, "Sent twice", 1)

    def in_progress(_request: Any, _who: Any) -> Any:
        raise Refusal(409, "idempotency_in_progress", "It is still being processed.")

    async def has_tried(tries: int) -> bool:
        await page.evaluate("navigator.serviceWorker.controller.postMessage('send')")
        return len(stubs.called(COMMENT)) >= tries

    stubs.answers[COMMENT] = in_progress
    await context.set_offline(False)
    await eventually(lambda: has_tried(2))
    await expect(page.locator("#waiting")).to_contain_text("1 change waits to be sent.")
    del stubs.answers[COMMENT]
    await waiting(page, 0)
    assert len({request.idempotency_key for request in stubs.called(COMMENT)}) == 1


async def test_the_session_ends_meanwhile_and_another_person_comes(
    context: BrowserContext, console: str, stubs: Stubs
) -> None:
    browser_tab = await tab(context, console)
    page = await ready(browser_tab)
    await context.set_offline(True)
    await page.fill(BODY, "Typed in the basement")
    await page.click(SEND)
    await page.wait_for_url("**/tickets/102")
    await waiting(page, 1)
    over(stubs)
    await page.wait_for_timeout(1100)
    await context.set_offline(False)
    await page.wait_for_function("async () => (await store.me()) === null")
    # What was kept of the company is gone; the act is sealed, and waits for its person.
    assert not stubs.called(COMMENT) and await rows(page, "acts") == 1

    async def is_sealed() -> bool:
        text = await stored(page)
        return not any(word in text for word in ("basement", "No hot water", "key false"))

    await eventually(is_sealed)
    await browser_tab.sign_in("dana@demo.example", "/account")
    await page.wait_for_selector("form[action='/sign-out']", state="attached")
    await browser_tab.open("/offline")
    await expect(page.locator("#others")).to_contain_text("1 change of another person or company was not sent.")
    assert "basement" not in await page.inner_text("body") and not stubs.called(COMMENT)
    # That one's sign-out leaves what is sealed, and nothing of their own.
    await browser_tab.open("/account")
    await page.evaluate("document.querySelector(\"form[action='/sign-out']\").requestSubmit()")
    await page.wait_for_url("**/sign-in")
    assert await rows(page, "acts") == 1 and await rows(page, "me") == 0
    over(stubs)
    await browser_tab.sign_in("hanh@demo.example", "/tickets/102")
    await page.wait_for_selector("form[action='/sign-out']", state="attached")


async def test_the_same_person_sends_it_after_a_new_sign_in(
    context: BrowserContext, console: str, stubs: Stubs
) -> None:
    browser_tab = await tab(context, console)
    page = await ready(browser_tab)
    await context.set_offline(True)
    await page.fill(BODY, "Typed in the basement")
    await page.click(SEND)
    await waiting(page, 1)
    over(stubs)
    await page.wait_for_timeout(1100)
    await context.set_offline(False)
    await page.wait_for_function("async () => (await store.me()) === null")
    await browser_tab.sign_in("hanh@demo.example", "/tickets/102")
    await waiting(page, 0)
    assert [request.body for request in stubs.called(COMMENT)] == ["Typed in the basement"]


async def test_a_sign_out_asks_first_and_then_leaves_nothing(
    context: BrowserContext, console: str, stubs: Stubs
) -> None:
    browser_tab = await tab(context, console)
    page = await ready(browser_tab)
    await context.route("**/tickets/102/comment", lambda route: route.abort())
    await page.fill(BODY, "Never sent")
    await page.click(SEND)
    await waiting(page, 1)
    sign_out = "document.querySelector(\"form[action='/sign-out']\").requestSubmit()"
    await page.evaluate(sign_out)
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("1 change waits to be sent.")
    await dialog.get_by_role("button", name="Stay signed in").click()
    await expect(dialog).to_be_hidden()
    await page.evaluate(sign_out)
    await dialog.get_by_role("button", name="Sign out and delete").click()
    await page.wait_for_url("**/sign-in")

    async def is_empty() -> bool:
        return "Never sent" not in (text := await stored(page)) and "102" not in text and await rows(page, "acts") == 0

    await eventually(is_empty)


async def test_the_browser_is_closed_with_200_acts_and_two_hundred_are_sent_in_order(
    console: str, stubs: Stubs, tmp_path: Path
) -> None:
    async def start(playwright: Any) -> BrowserContext:
        return await playwright.chromium.launch_persistent_context(  # type: ignore[no-any-return]
            tmp_path, executable_path=program(), args=OPTIONS, **PHONE
        )

    async with async_playwright() as playwright:
        context = await start(playwright)
        page = await ready(await tab(context, console))
        await context.set_offline(True)
        await page.fill(BODY, "Number 0")
        await page.click(SEND)
        await page.wait_for_url("**/tickets/102")
        await waiting(page, 1)
        # The others as the worker adds them.
        await page.evaluate(
            """async () => {
              const [{ id }] = await store.acts.rows(), first = await store.acts.get(id);
              for (let number = 1; number < 200; number += 1) {
                const token = `${first.token}~${String(number).padStart(4, '0')}`;
                const entries = [['body', `Number ${number}`], ['by', 'staff']];
                await store.acts.add({ ...first, id: undefined, token, entries });
              }
            }"""
        )
        await waiting(page, 200)
        await context.close()
        assert not stubs.called(COMMENT)
        context = await start(playwright)
        browser_tab = await tab(context, console)
        await browser_tab.open("/tickets/102")
        await waiting(browser_tab.page, 0)
        assert [request.body for request in stubs.called(COMMENT)] == [f"Number {number}" for number in range(200)]
        assert len({request.idempotency_key for request in stubs.called(COMMENT)}) == 200
        await context.close()


async def test_two_devices_of_one_person_keep_their_own(
    context: BrowserContext, chromium: Chromium, console: str, stubs: Stubs
) -> None:
    other = await chromium.new_context(**PHONE)
    other.set_default_timeout(1000 * PATIENCE_SECONDS)
    try:
        first, second = await ready(await tab(context, console)), await ready(await tab(other, console))
        for each, page, text in ((context, first, "Of the phone"), (other, second, "Of the tablet")):
            await each.set_offline(True)
            await comment(page, text, 1)
        # The tablet signs out, and what waits on the phone is not its own.
        await other.set_offline(False)
        await waiting(second, 0)
        await second.evaluate("document.querySelector(\"form[action='/sign-out']\").requestSubmit()")
        await second.wait_for_url("**/sign-in")
        assert [request.body for request in stubs.called(COMMENT)] == ["Of the tablet"]
        await context.set_offline(False)
        await waiting(first, 0)
        assert [request.body for request in stubs.called(COMMENT)] == ["Of the tablet", "Of the phone"]
        assert len({request.idempotency_key for request in stubs.called(COMMENT)}) == 2
    finally:
        await other.close()


async def test_what_waits_in_a_sandbox_is_not_sent_to_the_live_company(
    context: BrowserContext, console: str, stubs: Stubs
) -> None:
    browser_tab = await tab(context, console)
    page = await ready(browser_tab, email="dana@demo.example")
    await context.route("**/tickets/102/comment", lambda route: route.abort())
    await page.fill(BODY, "Of the live company")
    await page.click(SEND)
    await waiting(page, 1)
    await browser_tab.open("/settings/sandboxes")
    await page.click("button:has-text('Trial of the new sync')")
    await expect(page.locator(".sandbox")).to_be_visible()
    await context.unroute("**/tickets/102/comment")
    await browser_tab.open("/offline")
    await expect(page.locator("#others")).to_contain_text("1 change of another person or company was not sent.")
    assert await page.locator("#offline li").count() == 0 and "Of the live" not in await page.inner_text("body")
    await browser_tab.open("/")
    await page.evaluate("navigator.serviceWorker.controller.postMessage('send')")
    await page.click(".sandbox button")
    await waiting(page, 0)
    (call,) = [call for call in stubs.calls if call.rpc == COMMENT]
    assert call.identity.company_id == 1


async def test_photos_wait_too(context: BrowserContext, console: str, stubs: Stubs) -> None:
    page = await ready(await tab(context, console), "/tickets/102")
    picture = (Path(__file__).parent.parent / "console/static/mark-192.png").read_bytes()
    await context.set_offline(True)
    await page.click("details.photos summary")
    await page.set_input_files(
        "input[name=photos]", [FilePayload(name="leak.png", mimeType="image/png", buffer=picture)]
    )
    await page.click("form[action='/tickets/102/photos'] button:not([type=button])")
    await waiting(page, 1)
    await context.set_offline(False)
    await waiting(page, 0)
    (request,) = stubs.called("tickets.TicketCommandsService/AddTicketPhoto")
    assert "/files/" in request.photo_url


async def test_a_form_that_cannot_wait_shows_no_error_of_the_browser(
    context: BrowserContext, console: str, stubs: Stubs
) -> None:
    browser_tab = await tab(context, console)
    page = await ready(browser_tab)
    await browser_tab.open("/tickets/new?unit_id=15")
    await page.fill("#f-title", "Typed on the stairs")
    await page.wait_for_function("async () => (await store.me()) !== null")

    async def is_kept() -> bool:
        return await rows(page) == 1

    await eventually(is_kept)
    await context.set_offline(True)
    await page.evaluate("document.querySelector(\"form[action='/tickets/new']\").submit()")
    await expect(page.locator("h1")).to_have_text("Changes on this device")
    await context.set_offline(False)
    await browser_tab.open("/tickets/new?unit_id=15")
    await expect(page.locator("#f-title")).to_have_value("Typed on the stairs")
