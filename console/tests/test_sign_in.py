"""Signing in and out, over HTTP and without script."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import jwt
import pytest

from chassis.auth.identity import ADMINISTRATOR, REUSE_SECONDS, Identity
from console.kit.calls import CALL_SECONDS
from console.kit.sessions import SESSION_SECONDS, TOKEN_SECONDS
from console.kit.signing_in import KNOWN_COOKIE, SESSION_COOKIE

from .browsing import Browser
from .stubs import CODE, PASSWORD, Stubs


async def test_a_page_leads_to_the_sign_in_and_back(nobody: Browser) -> None:
    reply = await nobody.get("/keys?over")
    assert (reply.status, reply.headers["Location"]) == (303, "/sign-in?next=/keys%3Fover")
    await nobody.follow(reply)
    done = await nobody.send("/sign-in", email="dana@demo.example", password=PASSWORD)
    assert (done.status, done.headers["Location"]) == (303, "/keys?over")
    assert (await nobody.follow(done)).title == "API keys"


async def test_a_wrong_password_says_so_and_keeps_the_email(nobody: Browser) -> None:
    await nobody.get("/sign-in")
    reply = await nobody.send("/sign-in", email="dana@demo.example", password="wrong")
    assert reply.status == 401
    assert "E-mail or password is wrong." in reply.words
    assert 'value="dana@demo.example"' in reply.text
    assert 'wrong"' not in reply.text
    assert SESSION_COOKIE not in nobody.cookies


async def test_the_browser_keeps_who_has_signed_in_with_it(nobody: Browser, stubs: Stubs) -> None:
    await nobody.get("/sign-in")
    await nobody.send("/sign-in", email="dana@demo.example", password="wrong")
    assert stubs.clients[-1].known == "" and KNOWN_COOKIE not in nobody.cookies
    await nobody.get("/sign-in")
    done = await nobody.send("/sign-in", email="dana@demo.example", password=PASSWORD)
    (cookie,) = [header for header in done.headers.getall("Set-Cookie") if header.startswith(KNOWN_COOKIE)]
    assert "HttpOnly" in cookie and "Secure" in cookie and "SameSite=Lax" in cookie and "Max-Age=7776000" in cookie
    browser_mark = nobody.cookies[KNOWN_COOKIE]
    await nobody.get("/account")
    await nobody.send("/sign-out")
    assert nobody.cookies[KNOWN_COOKIE] == browser_mark
    await nobody.get("/sign-in")
    await nobody.send("/sign-in", email="dana@demo.example", password="wrong")
    assert stubs.clients[-1].known == browser_mark
    for strange in ("x" * 601, "é"):
        nobody.cookies[KNOWN_COOKIE] = strange
        await nobody.get("/sign-in")
        await nobody.send("/sign-in", email="dana@demo.example", password="wrong")
        assert stubs.clients[-1].known == ""


async def test_a_second_factor_comes_before_the_session(nobody: Browser) -> None:
    await nobody.get("/sign-in?next=/keys/2")
    reply = await nobody.send("/sign-in", email="marguerite@demo.example", password=PASSWORD)
    assert reply.title == "Two-factor authentication" and SESSION_COOKIE not in nobody.cookies
    again = await nobody.send("/sign-in/code", code="000000")
    assert again.status == 401 and SESSION_COOKIE not in nobody.cookies
    done = await nobody.send("/sign-in/code", code=CODE)
    assert done.headers["Location"] == "/keys/2"
    assert (await nobody.follow(done)).title == "Leasing sync"


@pytest.mark.parametrize(
    "address",
    [
        "//evil.example",
        "/\\evil.example",
        "https://evil.example",
        "javascript:alert(1)",
        "/\t/evil",
        "\\\\evil",
        "",
        "/ x",
    ],
)
async def test_next_never_leads_to_another_site(nobody: Browser, address: str) -> None:
    await nobody.request("GET", "/sign-in", params={"next": address})
    done = await nobody.send("/sign-in", email="dana@demo.example", password=PASSWORD, next=address)
    assert done.headers["Location"] == "/"


async def test_the_session_is_new_at_the_sign_in(nobody: Browser, stubs: Stubs) -> None:
    await nobody.get("/sign-in")
    nobody.cookies[SESSION_COOKIE] = "planted"
    await nobody.get("/sign-in")
    await nobody.send("/sign-in", email="dana@demo.example", password=PASSWORD)
    assert nobody.cookies[SESSION_COOKIE] != "planted"
    assert nobody.cookies[SESSION_COOKIE] in stubs.sessions


async def test_who_was_displaced_by_newer_sessions_is_told_once(administrator: Browser, stubs: Stubs) -> None:
    await administrator.get("/account")
    session = administrator.cookies[SESSION_COOKIE]
    del stubs.sessions[session]
    stubs.displaced.add(session)
    await asyncio.sleep(SESSION_SECONDS)  # what the console knows of the session is old by then
    act = await administrator.post("/account/theme", {"theme": "dark"})
    assert act.status == 401 and "nothing was changed yet" in act.words and "many other browsers" in act.words
    reply = await administrator.get("/keys?over")
    assert (reply.status, reply.headers["Location"]) == (303, "/sign-in?next=/keys%3Fover")
    assert SESSION_COOKIE not in administrator.cookies
    told = await administrator.follow(reply)
    assert "You were signed out here, because you have signed in on many other browsers since." in told.words
    assert "signed out here" not in (await administrator.get("/sign-in")).words
    # One that ended otherwise says nothing of the kind.
    administrator.cookies[SESSION_COOKIE] = "x" * 43
    assert "signed out here" not in (await administrator.follow(await administrator.get("/keys"))).words


async def test_signing_out_ends_the_session(administrator: Browser, stubs: Stubs) -> None:
    await administrator.get("/keys")
    done = await administrator.send("/sign-out")
    assert done.headers["Location"] == "/sign-in"
    assert not stubs.sessions and SESSION_COOKIE not in administrator.cookies


async def test_a_session_that_is_ended_elsewhere_is_ended_here(administrator: Browser, stubs: Stubs) -> None:
    assert (await administrator.get("/keys")).status == 200
    stubs.sessions.clear()
    for _ in range(600):
        if (await administrator.get("/keys")).status == 303:
            return
        await asyncio.sleep(0.1)
    raise AssertionError("the session is still open")


async def test_the_console_calls_sessions_alone_as_itself(administrator: Browser, stubs: Stubs) -> None:
    await administrator.get("/keys")
    for called in stubs.calls:
        is_of_sessions = called.rpc.startswith("identity.SessionsService/")
        assert called.identity.kind == ("service" if is_of_sessions else "administrator"), called.rpc
        if not is_of_sessions:
            assert (called.identity.company_id, called.identity.administrator_id) == (1, 1)


async def test_an_act_that_wants_a_confirmation_goes_on_after_it(
    signed_in: Callable[..., Browser], stubs: Stubs
) -> None:
    browser = signed_in("dana@demo.example", confirmed=False)
    await browser.get("/keys/new")
    act = browser.form("/keys/new")["act"]
    confirmation = await browser.send("/keys/new", name="Leasing sync", scope="read")
    assert confirmation.status == 403 and confirmation.title == "Confirm your identity"
    wrong = await browser.send("/keys/new", **{"confirm.password": "wrong"})
    assert wrong.status == 403 and "The password is wrong." in wrong.words
    done = await browser.send("/keys/new", **{"confirm.password": PASSWORD})
    assert done.status == 200 and "mk_Tq4nY0vK" in done.text
    requests = stubs.called("identity.KeysService/MintKey")
    assert [request.idempotency_key for request in requests if request.name] == [act]
    assert PASSWORD not in confirmation.text + wrong.text + done.text


def test_a_token_is_used_only_while_it_is_valid(stubs: Stubs, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gateway returns a token that it has signed up to 40 seconds before."""
    last = 1000 * REUSE_SECONDS - 0.001
    monkeypatch.setattr("chassis.auth.identity.time.time", lambda: last)
    token = stubs.signer.token("svc-tickets", Identity(ADMINISTRATOR, "gateway", company_id=7, administrator_id=1))
    monkeypatch.undo()
    ends = jwt.decode(token, options={"verify_signature": False})["exp"]
    assert ends - last > TOKEN_SECONDS + CALL_SECONDS
