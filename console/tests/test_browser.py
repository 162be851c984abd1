"""The console in a real browser: its policy, accessibility, scripts and passkeys."""

from __future__ import annotations

import io
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal
from weakref import WeakKeyDictionary

import axe_playwright_python
import pytest
from playwright.async_api import Browser as Chromium
from playwright.async_api import BrowserContext, CDPSession, Error, Page, ViewportSize, async_playwright, expect
from pypdf import PdfReader

from console.pages import PAGES
from makeready.identity.v1 import accounts_pb2, sessions_pb2
from makeready.tickets.v1 import ticket_views_pb2 as views
from testkit.chromium import OPTIONS, program
from testkit.patience import PATIENCE_SECONDS, eventually

from .samples_deliveries import EVENT
from .stubs import PASSWORD, Stubs, ago
from .test_bulk import Tickets
from .test_ticket_acts import becomes
from .test_walks import path_of

pytestmark = [pytest.mark.browser, pytest.mark.slow]

AXE = next(Path(axe_playwright_python.__file__).parent.rglob("axe.min.js"))
FILES = ("/imports/{import_id}/mapping", "/imports/{import_id}/rejects")  # downloads, not pages to look at
# Pages that show little without a choice.
CHOSEN = (
    "/my-work?staff_id=8", "/turn-tasks/bulk?task=32&task=33&do=assign", "/tickets/work-orders?ticket=102&ticket=103",
    "/tickets/bulk?ticket=102&ticket=103&do=assign",
)  # fmt: skip
WALKED = sorted(
    {
        path_of(page)
        for page in PAGES
        if page.method == "GET" and not page.path.startswith("/reset") and not page.path.endswith(("/pick", *FILES))
    }
    | {"/nonsense", *CHOSEN, *(f"/imports/{n}" for n in (4, 5, 7, *range(12, 17)))}
)
LOOKS: dict[str, tuple[Literal["light", "dark"], int]] = {
    "light": ("light", 1360),
    "dark": ("dark", 1360),
    "phone": ("light", 390),
}
ZOOMED = 680  # pixels: of a window of 1,360 at 200 %
STANDARDS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
ALL_RULES = {"runOnly": {"type": "tag", "values": STANDARDS}}
COLOURS = ["color-contrast", "link-in-text-block"]
ASK = """async (rules) => {
    const found = await axe.run(document, {...rules, resultTypes: ['violations'], preload: false});
    return found.violations.map(one => one.id + ': ' + one.nodes.map(node => node.html.slice(0, 160)).join(' | '));
}"""
# The looks of all texts, one of each. What is judged of a colour follows from the computed styles of an element and of
# those around it, so texts of one look need to be judged once.
LOOKS_OF_TEXTS = """() => {
    const looks = new Map(), around = new Map();
    const ground = (one) => {
        if (one === null) return '';
        if (!around.has(one)) {
            const {backgroundColor, backgroundImage, opacity, filter} = getComputedStyle(one);
            const own = [backgroundColor, backgroundImage, opacity, filter].join();
            around.set(one, ground(one.parentElement) + (own === 'rgba(0, 0, 0, 0),none,1,none' ? '' : own + ';'));
        }
        return around.get(one);
    };
    const ink = (one) => {
        const style = getComputedStyle(one);
        return [style.color, style.fontSize, style.fontWeight, style.textDecorationLine, style.textShadow].join();
    };
    for (const one of document.body.querySelectorAll('*')) {
        const isText = [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
        if (!isText && !one.matches('input, select, textarea')) continue;
        const above = one.parentElement, of = (each) => each.tagName + '.' + each.className;
        const look = [of(above), ink(above), of(one), ink(one), getComputedStyle(one).position, ground(one)].join(' ');
        if (one.checkVisibility({visibilityProperty: true}) && !looks.has(look)) looks.set(look, one);
    }
    globalThis.textsByLook = looks;
    return [...looks.keys()];
}"""
ASK_OF_LOOKS = """async ([rules, looks]) => {
    const texts = {include: looks.map((look) => textsByLook.get(look))};
    const found = await axe.run(texts, {...rules, resultTypes: ['violations'], preload: false});
    return found.violations.map(one => one.id + ': ' + one.nodes.map(node => node.html.slice(0, 160)).join(' | '));
}"""


_sessions: WeakKeyDictionary[Page, CDPSession] = WeakKeyDictionary()  # of each page in which axe is


@pytest.fixture(scope="session")
async def chromium() -> AsyncIterator[Chromium]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program(), args=OPTIONS)
        yield browser
        await browser.close()


class Tab:
    """A page, with what its console said."""

    def __init__(self, page: Page, origin: str) -> None:
        self.page, self.origin = page, origin
        self.said: list[str] = []
        page.on("console", lambda message: self.said.append(message.text))
        page.on("pageerror", lambda error: self.said.append(str(error)))

    async def open(self, path: str) -> None:
        await self.page.goto(self.origin + path)

    async def sign_in(self, email: str = "dana@demo.example", path: str = "/account") -> None:
        await self.open(f"/sign-in?next={path}")
        await self.page.fill("#email", email)
        await self.page.fill("#password", PASSWORD)
        await self.page.click("form[action='/sign-in'] button")
        await self.page.wait_for_url(f"**{path}")


async def tab(context: BrowserContext, origin: str) -> Tab:
    context.set_default_timeout(1000 * PATIENCE_SECONDS)
    return Tab(await context.new_page(), origin)


async def test_what_is_written_stays_while_the_page_is_live(chromium: Chromium, console: str, stubs: Stubs) -> None:
    """Words are counted as svc-tickets counts them: `svc_tickets.tickets.rules.words`."""
    context = await chromium.new_context()
    try:
        browser_tab = await tab(context, console)
        await browser_tab.sign_in("hanh@demo.example", "/tickets/102")
        page = browser_tab.page
        await page.click("#complete > summary")
        counts = {"one two three": 3, "热水恢复正常了": 7, "ซ่อมท่อน้ำเรียบร้อยแล้ว": 6, "a - b … !": 2, "ﾊﾞｯﾃﾘｰ": 5}
        for text, right in counts.items():
            await page.fill("#f-note", text)
            assert (await page.inner_text("#f-note-h")).startswith(f"{right} of 5 words")
        becomes(stubs, status="Cancelled")
        await page.evaluate("document.body.dispatchEvent(new CustomEvent('ticket-102'))")
        await page.locator(".sub", has_text="Cancelled").wait_for()
        assert await page.input_value("#f-note") == "ﾊﾞｯﾃﾘｰ" and await page.is_visible("#f-note")
        assert await page.get_attribute("#complete input[name=from_status]", "value") == "In Progress"
        await browser_tab.open("/tickets/100")
        becomes(stubs, status="Completed")
        await page.evaluate("document.body.dispatchEvent(new CustomEvent('ticket-100'))")
        await page.locator("#acts", has_text="Reopen").wait_for()
        await browser_tab.open("/tickets")
        await page.check("#tick-102")
        await page.evaluate("document.body.dispatchEvent(new CustomEvent('ticket_search'))")
        await page.click(".bulk >> text=Assign")
        assert page.url.endswith("/tickets/bulk?back=%2Ftickets&ticket=102&do=assign")
        assert browser_tab.said == []
    finally:
        await context.close()


async def test_ten_tickets_are_assigned_in_four_clicks_and_undone(
    chromium: Chromium, console: str, stubs: Stubs
) -> None:
    """What another person has changed before the undo stays as it is, and is named."""
    desk = Tickets(stubs)
    context = await chromium.new_context()
    try:
        browser_tab = await tab(context, console)
        await browser_tab.sign_in("hanh@demo.example", "/tickets")
        page = browser_tab.page
        assert await page.locator(".bulk").is_hidden(), "nothing is selected"
        await page.check("input[data-picks=ticket]")
        assert await page.locator(".bulk .selected").evaluate(
            "count => getComputedStyle(count, '::before').content !== 'none'"
        )
        before = {n: row.assignee_id for n, row in desk.rows.items()}
        ids = [
            int(value)
            for value in await page.locator("input[name=ticket]").evaluate_all("all => all.map(e => e.value)")
        ]
        assert len(ids) == 10
        box = await page.locator(".bulk").bounding_box()
        assert box is not None and box["y"] + box["height"] <= await page.evaluate("innerHeight"), "it sticks"
        await page.click(".bulk >> text=Assign")  # 1; the list of a select is the second click, its row the third
        await page.select_option("#f-assignee_id", "8")
        await page.click("button >> text=Assign 10 tickets")  # 4
        await page.locator("text=10 tickets: assignment changed.").wait_for()
        assert {desk.rows[n].assignee_id for n in ids} == {8}
        desk.rows[102].assignee_id = 10
        await page.click("button >> text=Undo")
        await page.locator("h2 >> text=Left as they are now").wait_for()
        remaining = await page.inner_text("ul.lines")
        assert (
            desk.rows[102].title in remaining and "It was changed meanwhile" in remaining and remaining.count("#") == 1
        )
        assert {n: desk.rows[n].assignee_id for n in ids if n != 102} == {n: before[n] for n in ids if n != 102}
        assert desk.rows[102].assignee_id == 10 and browser_tab.said == []
    finally:
        await context.close()


async def test_a_view_is_saved_shared_and_opens_from_the_menu(chromium: Chromium, console: str, stubs: Stubs) -> None:
    people = [await chromium.new_context() for _ in range(3)]
    try:
        saver, colleague, stranger = [await tab(context, console) for context in people]
        await saver.sign_in("hanh@demo.example", "/tickets?priority=Low")
        await saver.page.click("summary >> text=Save view")
        await saver.page.fill("#f-name", "Small things")
        await saver.page.check("text=Share with everyone")
        await saver.page.check("text=Open the list with this view")
        await saver.page.click("button >> text=Save view")
        await saver.page.locator(".chip.on >> text=Small things").wait_for()
        await saver.open("/")
        await saver.page.click("nav.nav >> text=Tickets")
        await saver.page.wait_for_url("**/tickets?priority=Low")
        await saver.page.click(".views >> text=Standard")
        await saver.page.wait_for_url("**/tickets")
        await colleague.sign_in("dana@demo.example", "/tickets")
        await colleague.page.click(".views >> text=Small things")
        await colleague.page.wait_for_url("**/tickets?priority=Low")
        await colleague.page.click("text=Edit view")
        await colleague.page.click("button >> text=Remove view")
        await colleague.page.locator("text=View “Small things” removed.").wait_for()
        await stranger.sign_in("olga@other.example", "/tickets")
        assert await stranger.page.locator(".views >> text=Small things").count() == 0
        assert await stranger.page.locator(".views >> text=Olga’s").count() == 1
        assert saver.said == colleague.said == stranger.said == []
    finally:
        for context in people:
            await context.close()


async def test_every_page_is_accessible_and_quiet(chromium: Chromium, console: str, stubs: Stubs) -> None:
    # A colour that is on its way to another one has no contrast to judge, so nothing moves.
    context = await chromium.new_context(bypass_csp=False, reduced_motion="reduce")
    problems: dict[str, list[str]] = {}
    judged: dict[str, set[str]] = {"light": set(), "dark": set()}
    try:
        browser_tab = await tab(context, console)
        for signed_in in (False, True):
            if signed_in:
                await browser_tab.sign_in()
            for path in WALKED:
                if signed_in == path.startswith(("/sign-in", "/invitations")):
                    continue
                browser_tab.said.clear()
                await browser_tab.open(path)
                axe = await Axe.of(browser_tab.page)
                faults = [f"{look}: {problem}" for look in LOOKS for problem in await _problems(axe, look, judged)]
                faults += [text for text in browser_tab.said if not (path == "/nonsense" and "404" in text)]
                if faults:
                    problems[path] = faults
    finally:
        await context.close()
    assert not problems, json.dumps(problems, indent=1)
    assert all(len(looks) > 100 for looks in judged.values())


# The highest blank in the left and in the right column of cards that stand beside others, where it has 300 pixels.
HOLES = """() => [...document.querySelectorAll(".two, .cols")].flatMap(grid => {
    const area = grid.getBoundingClientRect()
    const cells = [...grid.querySelectorAll(":scope > *, :scope > .after > *")]
      .map(cell => cell.getBoundingClientRect()).filter(box => box.height)
    const bottom = Math.max(...cells.map(box => box.bottom))
    return [.1, .9].map(share => {
      const x = area.left + area.width * share
      const column = cells.filter(box => box.left <= x && x <= box.right).sort((one, other) => one.top - other.top)
      let end = area.top, highest = 0
      for (const box of column) {
        highest = Math.max(highest, box.top - end)
        end = Math.max(end, box.bottom)
      }
      return Math.round(Math.max(highest, bottom - end))
    }).filter(pixels => pixels > 300)
  })"""
# Parts of a page whose content is wider than they are.
SCROLLERS = """() => [...document.querySelectorAll(".wide, .kan")].filter(part => part.scrollWidth > part.clientWidth)
  .map(part => part.className)"""


class Axe:
    """axe in a page that is open, until it opens another one. It runs in a world of its own, which the page's policy
    does not reach."""

    def __init__(self, page: Page, session: CDPSession, world: int) -> None:
        self.page, self._session, self._world = page, session, world

    @classmethod
    async def of(cls, page: Page) -> Axe:
        session = _sessions.get(page)
        if session is None:
            session = _sessions[page] = await page.context.new_cdp_session(page)
            await session.send("Page.enable")
            everywhere = {"source": AXE.read_text(), "worldName": "axe", "runImmediately": True}
            await session.send("Page.addScriptToEvaluateOnNewDocument", everywhere)
        tree = await session.send("Page.getFrameTree")
        # The world of that name, in which axe is.
        world = {"frameId": tree["frameTree"]["frame"]["id"], "worldName": "axe"}
        isolated = await session.send("Page.createIsolatedWorld", world)
        return cls(page, session, isolated["executionContextId"])

    async def ask(self, program: str, *arguments: Any) -> Any:
        """What a function of JavaScript returns."""
        call = f"({program})({', '.join(map(json.dumps, arguments))})"
        evaluation = {"expression": call, "awaitPromise": True, "returnByValue": True, "contextId": self._world}
        answer = await self._session.send("Runtime.evaluate", evaluation)
        assert "value" in answer["result"], answer
        return answer["result"]["value"]


async def _problems(axe: Axe, look: str, judged: Mapping[str, set[str]]) -> list[str]:
    """What is wrong with the open page in this look. judged: the looks of texts that have been judged, which grow."""
    scheme, width = LOOKS[look]
    page = axe.page
    await page.emulate_media(color_scheme=scheme)
    size: ViewportSize = {"width": width, "height": 900}
    if page.viewport_size != size:  # the page is laid out anew
        await page.set_viewport_size(size)
    faults: list[str] = []
    if look != "dark":  # it differs in colours alone, and a phone in all but these
        off = {rule: {"enabled": False} for rule in COLOURS}
        faults += await axe.ask(ASK, {**ALL_RULES, "rules": off})
    if look in judged:
        new = sorted(set(await axe.ask(LOOKS_OF_TEXTS)) - judged[look])
        if new:
            faults += await axe.ask(ASK_OF_LOOKS, [{"runOnly": {"type": "rule", "values": COLOURS}}, new])
        judged[look].update(new)
    if await page.evaluate("document.documentElement.scrollWidth") > width:
        faults.append("it scrolls sideways")
    if look == "light" and (holes := await page.evaluate(HOLES)):
        faults.append(f"blank pixels above or below cards that stand beside others: {holes}")
    if look == "phone":
        await page.set_viewport_size({"width": ZOOMED, "height": 450})
        if await page.evaluate("document.documentElement.scrollWidth") > ZOOMED:
            faults.append("it scrolls sideways at 200 %")
    return faults


async def _violations(page: Page) -> list[str]:
    """What axe finds by all rules."""
    return list(await (await Axe.of(page)).ask(ASK, ALL_RULES))


async def test_a_key_is_minted_by_the_keyboard_alone_and_copied(chromium: Chromium, console: str, stubs: Stubs) -> None:
    context = await chromium.new_context(permissions=["clipboard-read", "clipboard-write"])
    try:
        browser_tab = await tab(context, console)
        await browser_tab.sign_in(path="/keys/new")
        await browser_tab.page.focus("#f-name")
        await browser_tab.page.keyboard.type("Leasing sync")
        await browser_tab.page.keyboard.press("Enter")
        await browser_tab.page.wait_for_selector("#minted-key")
        await browser_tab.page.click("[data-copy=minted-key]")
        copied = await browser_tab.page.evaluate("navigator.clipboard.readText()")
        assert copied == await browser_tab.page.inner_text("#minted-key")
        assert [request.name for request in stubs.called("identity.KeysService/MintKey")] == ["Leasing sync"]
    finally:
        await context.close()


TICKET = "tickets.TicketViewsService/GetTicketDetails"
RESIDENCIES = "occupancy.ResidenciesService/ListResidencies"
BARS = ("Skip to content", "Menu", "Home", "Search", "Sign out", "Account", "Comment", "Print")


def changed(stubs: Stubs, rpc: str, change: Callable[[Any], None]) -> None:
    """The RPC's answers are changed from now on."""
    answer = stubs.answers[rpc]

    def answer_changed(request: Any, who: Any) -> Any:
        message = answer(request, who)
        change(message)
        return message

    stubs.answers[rpc] = answer_changed


async def printed(page: Page, paper: str) -> list[str]:
    """The texts of the sheets that a browser prints."""
    document = PdfReader(io.BytesIO(await page.pdf(format=paper, prefer_css_page_size=True)))
    return [" ".join(sheet.extract_text().split()).replace("- ", "-") for sheet in document.pages]


async def test_a_work_order_is_one_sheet_and_the_board_one_table(
    chromium: Chromium, console: str, stubs: Stubs
) -> None:
    photos = [views.TicketPhoto(photo_url=f"{console}/files/{n:022}.jpg", added_at=ago(hours=1)) for n in range(9)]
    changed(stubs, TICKET, lambda details: details.photos.extend(photos))
    changed(stubs, TICKET, lambda details: setattr(details, "description", "Water under the sink.\n" * 200))
    changed(stubs, TICKET, lambda details: setattr(details.ticket, "title", "No hot water since this morning " * 4))
    changed(stubs, RESIDENCIES, lambda page: page.residencies[0].ClearField("move_out_date"))
    context = await chromium.new_context(viewport={"width": 390, "height": 900})
    try:
        browser_tab = await tab(context, console)
        await browser_tab.sign_in("hanh@demo.example", path="/tickets/102")
        await browser_tab.page.click("text=Work order")
        await browser_tab.page.wait_for_url("**/tickets/102/work-order")
        assert len(stubs.called(RESIDENCIES)) == 1
        for paper in ("Letter", "A4"):
            (sheet,) = await printed(browser_tab.page, paper)
            texts = (
                "Work order #28", "No hot water since this morning", "Alder Court 102", "12 Elm St", "Date",
                "Permission to enter", "Marguerite Okafor-Lindqvist", "+1 207 555 0143", "Water under the sink.",
                "Water heater WH-102", "Name, signature", "Parts used", f"{console}/tickets/102",
            )  # fmt: skip
            assert not [words for words in texts if words not in sheet], sheet
            assert not [words for words in (*BARS, "guarantor", "555 0101") if words in sheet], sheet
        assert await browser_tab.page.locator(".order .qr svg").count() == 1
        assert await browser_tab.page.locator(".order img").count() == 4
        await browser_tab.open("/tickets/work-orders?ticket=102&ticket=999&ticket=86&ticket=x&back=/tickets")
        sheets = await printed(browser_tab.page, "Letter")
        assert ["Work order #28" in sheets[0], "Work order #12" in sheets[1], len(sheets)] == [True, True, 2]
        await browser_tab.open("/board")
        sheets = await printed(browser_tab.page, "Letter")
        assert "Townhome 4" in sheets[0] and not [words for words in BARS if words in " ".join(sheets)]
    finally:
        await context.close()


async def test_a_phone_has_the_acts_of_the_day_below_and_filters_folded(chromium: Chromium, console: str) -> None:
    context = await chromium.new_context(viewport={"width": 390, "height": 844})
    try:
        browser_tab = await tab(context, console)
        page = browser_tab.page
        await browser_tab.sign_in("hanh@demo.example", path="/tickets/102")
        for path, act in (("/tickets/102", "#complete > summary"), ("/tickets/100", "form[action$=take] button")):
            await browser_tab.open(path)
            box = await page.locator(f".day-acts {act}").bounding_box()
            assert box and 600 < box["y"] + box["height"] < 844, (path, box)
        await browser_tab.open("/tickets")
        assert await page.is_visible(".chips [name=q]") and await page.is_hidden("summary.chip >> nth=0")
        await page.click("label[for=fold]")
        assert await page.is_visible("summary.chip >> nth=0")
        await page.set_viewport_size({"width": ZOOMED, "height": 450})
        for path in ("/tickets", "/tickets?view=all", "/board"):
            await browser_tab.open(path)
            assert await page.evaluate(SCROLLERS) == [], path
    finally:
        await context.close()


async def test_a_double_click_sends_one_form(chromium: Chromium, console: str, stubs: Stubs) -> None:
    context = await chromium.new_context()
    try:
        browser_tab = await tab(context, console)
        await browser_tab.sign_in(path="/keys/new")
        await browser_tab.page.fill("#f-name", "Twice")
        await browser_tab.page.dblclick("form[action='/keys/new'] button")
        await browser_tab.page.wait_for_selector("#minted-key")
        assert len({request.idempotency_key for request in stubs.called("identity.KeysService/MintKey")}) == 1
    finally:
        await context.close()


async def test_every_page_works_without_javascript(chromium: Chromium, console: str, stubs: Stubs) -> None:
    context = await chromium.new_context(java_script_enabled=False)
    try:
        browser_tab = await tab(context, console)
        await browser_tab.sign_in(path="/keys/new")
        await browser_tab.page.fill("#f-name", "By hand")
        await browser_tab.page.click("form[action='/keys/new'] button")
        assert "created. Copy the key now" in await browser_tab.page.inner_text("main")
        assert not await browser_tab.page.is_visible("[data-copy]")
    finally:
        await context.close()


async def test_a_passkey_is_added_and_signs_in(chromium: Chromium, console: str, stubs: Stubs) -> None:
    """The ceremony is the browser's own; the gateway's part is in the stubs, which take any credential."""
    credentials: list[str] = []
    options = (
        '{"rp": {"id": "localhost", "name": "Makeready"}, '
        '"user": {"id": "AQID", "name": "dana", "displayName": "Dana"},'
        ' "challenge": "AAECAwQFBgcICQoLDA0ODw", "pubKeyCredParams": [{"type": "public-key", "alg": -7}],'
        ' "authenticatorSelection": {"residentKey": "required", "userVerification": "required"}}'
    )
    stubs.answers["identity.AccountsService/StartAddingPasskey"] = accounts_pb2.StartAddingPasskeyResponse(
        ceremony="c", options_json=options
    )

    def finish(request: Any, _who: Any) -> Any:
        credentials.append(request.credential_json)
        return accounts_pb2.FinishAddingPasskeyResponse()

    def sign_in(request: Any, _who: Any) -> Any:
        credentials.append(request.credential_json)
        new = stubs._new(stubs.people["dana@demo.example"])
        return sessions_pb2.FinishPasskeyResponse(session=new)

    stubs.answers["identity.AccountsService/FinishAddingPasskey"] = finish
    stubs.answers["identity.SessionsService/FinishPasskey"] = sign_in
    context = await chromium.new_context()
    try:
        browser_tab = await tab(context, console)
        session = await context.new_cdp_session(browser_tab.page)
        await session.send("WebAuthn.enable")
        authenticator = {
            "protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True,
            "isUserVerified": True, "automaticPresenceSimulation": True,
        }  # fmt: skip
        await browser_tab.sign_in()
        await session.send("WebAuthn.addVirtualAuthenticator", {"options": authenticator})
        await browser_tab.page.fill("#passkey-name", "Test phone")
        await browser_tab.page.click("[data-kind=create]")
        await browser_tab.page.wait_for_selector("text=Passkey added")
        await browser_tab.page.click("form[action='/sign-out'] button", no_wait_after=True)
        offer = browser_tab.page.locator("[data-offer]:visible")

        async def is_in_again() -> bool:
            with suppress(Error):  # a browser that offers the passkey by itself leaves the page meanwhile
                if await offer.count():
                    await offer.click(timeout=1000, no_wait_after=True)  # it is looked at again
            return len(credentials) >= 2

        await eventually(is_in_again)
        await browser_tab.page.wait_for_selector("text=Sign out")
        assert all('"type":"public-key"' in credential for credential in credentials)
        assert not re.search("Refused", " ".join(browser_tab.said))
    finally:
        await context.close()


@pytest.mark.parametrize("width", [1360, 390])
async def test_a_delivery_opens_in_its_row_and_closes(
    chromium: Chromium, console: str, stubs: Stubs, width: int
) -> None:
    context = await chromium.new_context(viewport={"width": width, "height": 900})
    try:
        browser_tab = await tab(context, console)
        await browser_tab.sign_in(path="/webhooks/7/deliveries")
        opener, row = f"[data-opens='d-{EVENT}']", f"#d-{EVENT}"
        for _ in range(2):
            await browser_tab.page.click(opener)
            await browser_tab.page.wait_for_selector(f"{row} .ladder")
            assert await browser_tab.page.get_attribute(opener, "aria-expanded") == "true"
            assert browser_tab.page.url.endswith("/webhooks/7/deliveries")
            assert not await _violations(browser_tab.page) and browser_tab.said == []
            assert await browser_tab.page.evaluate("document.documentElement.scrollWidth") <= width
            await browser_tab.page.focus(opener)
            await browser_tab.page.keyboard.press("Enter")
            assert await browser_tab.page.is_hidden(row)
    finally:
        await context.close()


async def test_the_preview_of_a_notice_follows_the_typing_and_sends_nothing(
    chromium: Chromium, console: str, stubs: Stubs
) -> None:
    context = await chromium.new_context(viewport={"width": 390, "height": 900})
    try:
        browser_tab = await tab(context, console)
        await browser_tab.sign_in("hanh@demo.example", path="/notices/2/edit")
        assert await browser_tab.page.is_hidden(".of-units")
        await browser_tab.page.check("#for-area")
        await browser_tab.page.fill("#f-area", "Garage")
        await browser_tab.page.fill("#f-body", "The gate stays open.")
        await browser_tab.page.locator("#preview", has_text="The gate stays open.").wait_for()
        await browser_tab.page.locator("#preview pre", has_text='"unit": "Garage"').wait_for()
        assert await browser_tab.page.input_value("#f-body") == "The gate stays open."
        assert await browser_tab.page.is_checked("#for-area") and not stubs.called(
            "catalog.NoticesService/UpdateNotice"
        )
        assert not await _violations(browser_tab.page) and browser_tab.said == []
        await browser_tab.page.click("button:has-text('Save draft')")
        await browser_tab.page.wait_for_url("**/notices/2")
        (request,) = stubs.called("catalog.NoticesService/UpdateNotice")
        assert (request.area, request.body) == ("Garage", "The gate stays open.")
        await browser_tab.open("/notices/2/publish")
        sentence = "Makeready does not contact residents. Print the notice and post it, or send it from your own system"
        assert sentence in " ".join((await browser_tab.page.inner_text("main")).split())
    finally:
        await context.close()


async def test_pickers_follow_each_other_and_what_is_typed_stays(chromium: Chromium, console: str) -> None:
    context = await chromium.new_context()
    browser_tab = await tab(context, console)
    page = browser_tab.page
    page.set_default_timeout(1000 * PATIENCE_SECONDS)
    try:
        await browser_tab.sign_in(path="/assets/new")
        unit, asset_name = page.locator("#f-unit_id"), page.locator("#f-name")
        await asset_name.fill("Half a na")
        assert await unit.locator("option").all_inner_texts() == ["Choose a property first"]
        await page.select_option("#f-property_id", "1")
        search = page.locator("#f-unit_id-q")
        await search.press_sequentially("20")
        await unit.locator("option", has_text="Alder Court 206").wait_for(state="attached")
        await unit.locator("option", has_text="Alder Court 101").wait_for(state="detached")
        await search.press_sequentially("1")
        await unit.locator("option", has_text="Alder Court 206").wait_for(state="detached")
        assert await search.input_value() == "201" and await search.evaluate("one => one === document.activeElement")
        await page.select_option("#f-unit_id", "17")
        assert await asset_name.input_value() == "Half a na"
        await page.select_option("#f-property_id", "2")
        await expect(unit).to_have_value("", timeout=1000 * PATIENCE_SECONDS)
        assert not browser_tab.said
    finally:
        await context.close()


async def test_a_sandbox_is_marked_and_pages_of_other_companies_say_that_they_were_left(
    chromium: Chromium, console: str, stubs: Stubs
) -> None:
    context = await chromium.new_context(reduced_motion="reduce")
    judged: dict[str, set[str]] = {"light": set(), "dark": set()}
    try:
        first, second = await tab(context, console), await tab(context, console)
        await first.sign_in(path="/keys/new")
        await second.open("/assets/new")
        await second.page.fill("#f-name", "Boiler")
        await first.open("/settings/sandboxes")
        await first.page.click("button:has-text('Trial of the new sync')")
        await expect(first.page.locator(".sandbox")).to_contain_text("Sandbox Trial of the new sync")
        # Else a long name of the company is cut without an ellipsis.
        await expect(first.page.locator(".sandbox .btn")).to_have_css("display", "block")
        # The other tab says so at once; it fetches nothing of the sandbox, and keeps what was typed.
        await expect(second.page.locator("#moved")).to_contain_text(
            "You switched to Trial of the new sync in another tab."
        )
        async with second.page.expect_response(lambda answer: "/pick" in answer.url) as picked:
            await second.page.select_option("#f-property_id", "1")
        assert (await picked.value).status == 409
        assert await second.page.input_value("#f-name") == "Boiler"
        assert await second.page.locator("#f-unit_id option").all_inner_texts() == ["Choose a property first"]
        stubs.calls.clear()
        await second.page.eval_on_selector("form[action='/assets/new']", "form => form.submit()")
        await expect(second.page.locator("h1")).to_have_text("This form has expired")
        await expect(second.page.locator("main")).to_contain_text("You are now in Trial of the new sync.")
        assert {call.rpc for call in stubs.calls} <= {"identity.SessionsService/GetSession"}
        for path in ("/", "/keys", "/webhooks", "/settings/sandboxes", "/nonsense"):
            await first.open(path)
            axe = await Axe.of(first.page)
            faults = [f"{look}: {fault}" for look in LOOKS for fault in await _problems(axe, look, judged)]
            assert faults == [], (path, faults)
        await first.page.click(".sandbox button")
        await expect(first.page.locator(".sandbox")).to_have_count(0)
        await expect(second.page.locator("#moved")).to_contain_text("You switched to Makeready Demo in another tab.")
        assert not [text for text in (*first.said, *second.said) if not re.search("403|404|409", text)]
    finally:
        await context.close()
