"""What a browser gets to store on a device, and how acts that have waited there are answered."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable

from chassis.refusals import Refusal
from console.app import CSP
from console.kit import flash
from console.pages import PAGES

from .browsing import Browser
from .stubs import Stubs
from .test_returning import COMMENT, PATH, TYPED, over
from .test_sandboxes import go


async def key(browser: Browser) -> tuple[str, str]:
    reply = await browser.get("/device-key")
    assert reply.status == 200 and reply.headers["Cache-Control"] == "no-store"
    assert reply.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert len(base64.b64decode(reply.text)) == 32
    return reply.text, reply.headers["X-Owner"]


async def test_a_key_is_of_one_person_in_one_company_and_browser(
    nobody: Browser, administrator: Browser, signed_in: Callable[..., Browser], stubs: Stubs
) -> None:
    await administrator.get("/")
    mine = await key(administrator)
    assert mine == await key(administrator)
    assert f'data-owner="{mine[1]}"' in (await administrator.get("/tickets/102")).text
    await go(administrator, 101)
    in_sandbox = await key(administrator)
    elsewhere, colleague = signed_in("dana@demo.example"), signed_in("hanh@demo.example")
    await elsewhere.get("/")
    colleague.cookies |= {name: value for name, value in administrator.cookies.items() if "forms" in name}
    keys = [mine, in_sandbox, await key(elsewhere), await key(colleague)]
    assert len({text for text, _ in keys}) == len({owner for _, owner in keys}) == 4
    assert (await nobody.get("/device-key")).status == 401
    # The same person has it again after the session, and no more after a sign-out.
    await over(administrator, stubs)
    assert (await administrator.get("/device-key")).status == 401
    administrator.sign_in(stubs.begin(stubs.people["dana@demo.example"]))
    assert await key(administrator) == mine
    await administrator.get("/account")
    await administrator.send("/sign-out")
    administrator.sign_in(stubs.begin(stubs.people["dana@demo.example"]))
    await administrator.get("/")
    assert await key(administrator) != mine


async def test_an_act_that_waited_is_answered_without_a_page(administrator: Browser, stubs: Stubs) -> None:
    form = {"act": await administrator.token(PATH), "body": TYPED}
    done = await administrator.post(PATH, form, X_Queued="1")
    assert (done.status, done.text) == (204, "") and flash.COOKIE not in administrator.cookies
    assert [request.idempotency_key for request in stubs.called(COMMENT)] == [form["act"]]

    def refuse(_request: object, _who: object) -> None:
        raise Refusal(409, "conflict", "Meanwhile it was cancelled.")

    stubs.answers[COMMENT] = refuse
    refused = await administrator.post(PATH, form, X_Queued="1")
    assert refused.status == 422 and "Meanwhile it was cancelled." in refused.words
    stubs.people["dana@demo.example"].second_factor_due = True
    administrator.sign_in(stubs.begin(stubs.people["dana@demo.example"]))
    assert (await administrator.post(PATH, form, X_Queued="1")).status == 401
    await over(administrator, stubs)
    assert (await administrator.post(PATH, form, X_Queued="1")).status == 401


async def test_what_works_without_a_network_has_nothing_of_anybody(administrator: Browser, nobody: Browser) -> None:
    for browser in (administrator, nobody):
        offline = await browser.get("/offline")
        assert offline.status == 200 and offline.headers["Content-Security-Policy"] == CSP
        assert "Dana" not in offline.text and "data-nobody" not in offline.text and "Demo" not in offline.text
    worker = await nobody.get("/worker.js")
    assert worker.headers["Content-Type"].startswith("text/javascript") and "eval(" not in worker.text
    lists = {name: json.loads(text) for name, text in re.findall(r"^const ([A-Z]+) = (\[.*\]);$", worker.text, re.M)}
    for path in lists["SHELL"]:
        assert (await nobody.get(path)).status == 200, path
    manifest = json.loads((await nobody.get("/manifest.webmanifest")).text)
    for icon in manifest["icons"]:
        async with nobody.http.get(nobody.url + icon["src"]) as answer:
            assert answer.status == 200, icon
    assert "/tickets/[0-9]{1,19}/comment" in lists["WAITING"]
    assert "manifest-src 'self'; worker-src 'self'" in CSP


def test_no_secret_waits_on_a_device() -> None:
    waiting = [page for page in PAGES if page.on_device]
    assert waiting and not any(page.is_secret or page.panel or "nobody" in page.kinds for page in waiting)
