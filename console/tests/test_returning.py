"""Forms that are sent after their session has ended: they ask for the sign-in, and are then carried out once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from console.kit.browser_secret import COOKIE
from console.kit.sessions import SESSION_SECONDS
from console.kit.signing_in import SESSION_COOKIE
from console.kit.uploads import STRANGERS_BYTES_MAX
from console.pages import PAGES

from .browsing import Browser, Reply
from .stubs import CODE, PASSWORD, Stubs
from .test_sandboxes import go
from .test_walks import path_of

COMMENT, PATH = "tickets.TicketCommandsService/CommentOnTicket", "/tickets/102/comment"
TYPED = 'Half a page <script>alert("typed")</script> of text'
ASKED = "Sign in to send it"


async def over(browser: Browser, stubs: Stubs) -> None:
    """The browser's session has ended elsewhere."""
    del stubs.sessions[browser.cookies[SESSION_COOKIE].partition(".")[0]]
    await asyncio.sleep(SESSION_SECONDS)  # what the console knows of the session is old by then


async def asked(browser: Browser, stubs: Stubs) -> Reply:
    """Sends a comment when the session is over."""
    form = {"act": await browser.token(PATH)}
    await over(browser, stubs)
    reply = await browser.post(PATH, {**form, "body": TYPED})
    assert (reply.status, reply.title) == (401, ASKED) and "nothing was changed yet" in reply.words
    assert not stubs.called(COMMENT)
    return reply


async def test_a_form_is_sent_after_the_sign_in_once(administrator: Browser, stubs: Stubs) -> None:
    reply = await asked(administrator, stubs)
    act = administrator.form(PATH)["act"]
    assert "<script>alert" not in reply.text and administrator.form(PATH)["body"] == TYPED
    wrong = await administrator.send(PATH, **{"return.email": "dana@demo.example", "return.password": "wrong"})
    assert wrong.status == 401 and "E-mail or password is wrong." in wrong.words and not stubs.called(COMMENT)
    assert 'wrong"' not in wrong.text and administrator.form(PATH)["return.email"] == "dana@demo.example"
    entered = {**administrator.form(PATH), "return.email": "dana@demo.example", "return.password": PASSWORD}
    done = await administrator.post(PATH, entered)
    assert (done.status, done.headers["Location"]) == (303, "/tickets/102#say")
    assert [(request.body, request.idempotency_key) for request in stubs.called(COMMENT)] == [(TYPED, act)]
    # Back, and sent again, is the same action.
    assert (await administrator.post(PATH, entered)).status == 303
    assert {request.idempotency_key for request in stubs.called(COMMENT)} == {act}


async def test_a_second_factor_and_a_confirmation_come_between(signed_in: Callable[..., Browser], stubs: Stubs) -> None:
    browser = signed_in("marguerite@demo.example")
    await browser.get("/keys/new")
    form = {**browser.form("/keys/new"), "name": "Leasing sync", "scope": "read"}
    await over(browser, stubs)
    stubs.confirms = False
    await browser.post("/keys/new", form)
    second = await browser.send("/keys/new", **{"return.email": "marguerite@demo.example", "return.password": PASSWORD})
    assert second.title == ASKED and "authenticator app" in second.words and SESSION_COOKIE in browser.cookies
    assert PASSWORD not in second.text and not stubs.called("identity.KeysService/MintKey")
    again = await browser.send("/keys/new", **{"return.code": "000000"})
    assert again.status == 401 and "The code is wrong." in again.words
    confirmation = await browser.send("/keys/new", **{"return.code": CODE})
    assert confirmation.title == "Confirm your identity" and "return." not in confirmation.text
    done = await browser.send("/keys/new", **{"confirm.password": PASSWORD})
    assert done.status == 200 and "mk_Tq4nY0vK" in done.text
    assert {request.idempotency_key for request in stubs.called("identity.KeysService/MintKey")} == {form["act"]}


@pytest.mark.parametrize("email", ["hanh@demo.example", "olga@other.example"])
async def test_another_person_s_sign_in_sends_nothing(administrator: Browser, stubs: Stubs, email: str) -> None:
    """A colleague, and a person of another company, on the same device."""
    await asked(administrator, stubs)
    refused = await administrator.send(PATH, **{"return.email": email, "return.password": PASSWORD})
    assert refused.status == 403 and "Half a page" not in refused.text
    assert not stubs.called(COMMENT)


async def test_a_form_from_before_the_sign_out_is_refused(administrator: Browser, stubs: Stubs) -> None:
    await administrator.get("/tickets/102")
    form = administrator.form(PATH)
    kept = administrator.cookies[COOKIE]
    out = await administrator.send("/sign-out")
    assert out.headers["Clear-Site-Data"] == '"storage"'
    assert COOKIE not in administrator.cookies
    # Nobody reads it, and the same person's next session does not take it.
    assert (await administrator.post(PATH, {**form, "body": TYPED})).title == "You have been signed out"
    await administrator.get("/sign-in")
    await administrator.send("/sign-in", email="dana@demo.example", password=PASSWORD)
    assert administrator.cookies[COOKIE] != kept
    assert (await administrator.post(PATH, {**form, "body": TYPED})).status == 403
    assert not stubs.called(COMMENT)


async def test_a_form_that_was_stolen_is_of_no_use_in_another_browser(
    administrator: Browser, signed_in: Callable[..., Browser], stubs: Stubs
) -> None:
    await administrator.get("/tickets/102")
    form = {**administrator.form(PATH), "body": TYPED}
    thief = signed_in("dana@demo.example")
    assert (await thief.post(PATH, form)).status == 403
    await thief.get("/tickets/102")
    assert (await thief.post(PATH, form)).status == 403
    # Another site gets no answer that has it, and a sign-in that another site plants does nothing.
    await over(administrator, stubs)
    for headers in ({"Origin": "https://evil.example"}, {"Origin": "", "Sec_Fetch_Site": "cross-site"}):
        crossed = await administrator.post(PATH, form, **headers)
        assert crossed.status == 403 and "Half a page" not in crossed.text
    planted = {**form, "return": "x", "return.email": "hanh@demo.example", "return.password": PASSWORD}
    assert (await administrator.post(PATH, planted)).title == ASKED
    assert not stubs.called(COMMENT) and SESSION_COOKIE in administrator.cookies
    assert administrator.cookies[SESSION_COOKIE] not in stubs.sessions


async def test_a_form_of_a_sandbox_goes_on_there(administrator: Browser, stubs: Stubs) -> None:
    await go(administrator, 101)
    await asked(administrator, stubs)
    stubs.calls.clear()
    done = await administrator.send(PATH, **{"return.email": "dana@demo.example", "return.password": PASSWORD})
    assert done.status == 303 and administrator.cookies[SESSION_COOKIE].endswith(".101")
    (call,) = [call for call in stubs.calls if call.rpc == COMMENT]
    assert call.identity.company_id == 101


async def test_a_sandbox_that_is_over_meanwhile_changes_nothing_in_the_live_company(
    administrator: Browser, stubs: Stubs
) -> None:
    await go(administrator, 101)
    await asked(administrator, stubs)
    del stubs.sandboxes[101]
    refused = await administrator.send(PATH, **{"return.email": "dana@demo.example", "return.password": PASSWORD})
    assert refused.status == 403 and not stubs.called(COMMENT)


async def test_no_password_is_kept_for_the_sign_in(administrator: Browser, stubs: Stubs) -> None:
    await administrator.get("/account")
    await over(administrator, stubs)
    secret = "my new and longer password"
    for page in PAGES:
        if page.method != "POST" or "administrator" not in page.kinds:
            continue
        path = path_of(page)
        sent = {
            "act": await administrator.token(path),
            "confirm": "1",
            "confirm.password": secret,
            "confirm.code": secret,
        }
        if page.is_secret:
            sent |= {"password": secret, "again": secret, "code": secret, "secret": secret}
        reply = await administrator.post(path, sent)
        assert secret not in reply.text, path
        assert reply.status == 401 or "nobody" in page.kinds, path
    assert any(page.is_secret for page in PAGES)


async def test_strangers_forms_are_not_read(nobody: Browser, administrator: Browser, stubs: Stubs) -> None:
    reply = await nobody.post(PATH, {"act": "x", "body": TYPED})
    assert reply.status == 401 and "Half a page" not in reply.text
    await administrator.get("/tickets/102")
    form = administrator.form(PATH)
    await over(administrator, stubs)
    assert (await administrator.post(PATH, {**form, "body": "x" * STRANGERS_BYTES_MAX})).status == 413


async def test_files_of_a_form_are_not_kept_and_it_says_so(administrator: Browser, stubs: Stubs) -> None:
    await administrator.get("/tickets/102/photos")
    form = administrator.form("/tickets/102/photos")
    await over(administrator, stubs)
    lead = "--b\r\nContent-Disposition: form-data; name="
    body = "".join(f'{lead}"{name}"\r\n\r\n{value}\r\n' for name, value in form.items())
    body += f'{lead}"photo"; filename="a.jpg"\r\n\r\n{"x" * 100_000}\r\n--b--\r\n'
    headers = {"Origin": administrator.url, "Content-Type": "multipart/form-data; boundary=b"}
    reply = await administrator.request("POST", "/tickets/102/photos", data=body.encode(), headers=headers)
    assert reply.title == ASKED and "Only the files did not arrive: add them afterwards." in reply.words
