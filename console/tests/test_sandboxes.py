"""The switch between a company and its sandboxes: one company at a time, on every page and in every form."""

from __future__ import annotations

import asyncio
import datetime
import re
from typing import Any

import pytest

from chassis.auth.identity import ADMINISTRATOR as ADMINISTRATOR_KIND
from chassis.refusals import Refusal
from console.kit.browser_session import ADMINISTRATOR, NOBODY
from console.kit.sessions import SESSION_SECONDS
from console.kit.signing_in import SESSION_COOKIE
from console.kit.times import Wall
from makeready.identity.v1 import identity_pb2 as pb

from .browsing import Browser, Reply
from .stubs import NOW, PASSWORD, Person, Stubs, ago
from .test_walks import GETS, POSTS, path_of

TRIAL, SECOND = 101, 102
BAR = "Sandbox Trial of the new sync"


async def go(browser: Browser, company_id: int | str) -> Reply:
    """Sends the form of the switch, as the page of sandboxes has it."""
    return await browser.post("/switch", {"act": await browser.token("/switch"), "company_id": str(company_id)})


@pytest.fixture
async def in_sandbox(administrator: Browser) -> Browser:
    """Dana Adler, who has gone to a sandbox."""
    assert (await go(administrator, TRIAL)).status == 303
    return administrator


async def test_an_administrator_goes_to_a_sandbox_and_back(administrator: Browser) -> None:
    text = administrator.cookies[SESSION_COOKIE]
    listed = await administrator.get("/settings/sandboxes")
    assert BAR not in listed.words and "3 of 5" in listed.words and "current" in listed.words
    assert re.search(r'name="company_id" value="101"', listed.text) and 'value="103"' not in listed.text, "it is closed"
    reply = await go(administrator, TRIAL)
    assert (reply.status, reply.headers["Location"]) == (303, "/")
    assert administrator.cookies[SESSION_COOKIE] == f"{text}.{TRIAL}"
    cookie = next(value for value in reply.headers.getall("Set-Cookie") if value.startswith(f"{SESSION_COOKIE}={text}"))
    assert {"Secure", "HttpOnly", "SameSite=Lax", "Path=/"} <= set(cookie.split("; ")) and "Max-Age=" in cookie
    home = await administrator.get("/")
    assert BAR in home.words and "You are now in the sandbox Trial of the new sync." in home.words
    assert "<title>" in home.text and "Sandbox of Makeready</title>" in home.text
    assert (await go(administrator, SECOND)).status == 303 and "Second trial" in (await administrator.get("/")).words
    assert (await go(administrator, 1)).status == 303
    home = await administrator.get("/")
    assert administrator.cookies[SESSION_COOKIE] == text and 'class="sandbox"' not in home.text
    assert "You are now in the live company Makeready Demo." in home.words


async def test_every_page_of_a_sandbox_says_so_and_asks_as_the_sandbox(in_sandbox: Browser, stubs: Stubs) -> None:
    stubs.calls.clear()
    for page in GETS:
        if ADMINISTRATOR not in page.kinds or NOBODY in page.kinds:
            continue
        reply = await in_sandbox.get(path_of(page))
        assert reply.status in (200, 404), path_of(page)
        if "Content-Disposition" not in reply.headers:
            assert BAR in reply.words and "Back to Makeready Demo" in reply.words, path_of(page)
    for path in ("/nonsense", "/keys/404"):
        assert BAR in (await in_sandbox.get(path)).words
    assert BAR in (await in_sandbox.post("/keys/new", {"act": "x"})).words
    companies = {call.identity.company_id for call in stubs.calls if call.identity.kind == ADMINISTRATOR_KIND}
    assert companies == {TRIAL}
    assert all(call.identity.is_sandbox for call in stubs.calls if call.identity.kind == ADMINISTRATOR_KIND)


@pytest.mark.parametrize(("opened_in", "sent_in"), [(1, TRIAL), (TRIAL, 1), (TRIAL, SECOND)])
async def test_a_form_of_another_company_is_refused_and_nothing_is_done(
    opened_in: int, sent_in: int, administrator: Browser, stubs: Stubs
) -> None:
    await go(administrator, opened_in)
    forms = {path: await administrator.token(path) for path in map(path_of, POSTS)}
    await go(administrator, sent_in)
    here = {1: "Makeready Demo", TRIAL: "Trial of the new sync", SECOND: "Second trial"}[sent_in]
    cookie = administrator.cookies[SESSION_COOKIE]
    stubs.calls.clear()
    for page in POSTS:
        if ADMINISTRATOR not in page.kinds:
            continue
        path = path_of(page)
        reply = await administrator.post(path, {"act": forms[path], "company_id": "102", "confirm": "1"})
        assert (reply.status, reply.title) == (403, "This form has expired"), path
        assert (
            "No changes were made. Since this page was opened you signed in, confirmed your identity or switched"
            in reply.words
        )
        assert f"You are now in {here} ." in reply.words
        assert administrator.cookies[SESSION_COOKIE] == cookie
    assert {call.rpc for call in stubs.calls} <= {"identity.SessionsService/GetSession"}


async def test_a_page_of_another_company_fetches_nothing(administrator: Browser, stubs: Stubs) -> None:
    """What the scripts of an open page ask for names the company that the page shows."""
    assert (await administrator.get("/keys/home", HX_Request_Type="partial", X_Company="1")).status == 200
    await go(administrator, TRIAL)
    stubs.calls.clear()
    for path in (
        "/keys/home",
        "/tickets/102",
        "/places/pick?name=unit_id&property_id=1",
        "/live?topics=ticket&since=0",
    ):
        for company in ("1", "102", "", "x"):
            reply = await administrator.get(path, HX_Request_Type="partial", X_Live="1", X_Company=company)
            assert reply.status == 409 and "demo read" not in reply.text, (path, company)
    assert {call.rpc for call in stubs.calls} <= {"identity.SessionsService/GetSession"}
    reply = await administrator.get("/keys/home", HX_Request_Type="partial", X_Company=str(TRIAL))
    assert reply.status == 200
    home = (await administrator.get("/")).text
    assert f'data-company="{TRIAL}"' in home


async def test_a_sandbox_that_is_over_leads_back_and_does_nothing_instead(in_sandbox: Browser, stubs: Stubs) -> None:
    text = in_sandbox.cookies[SESSION_COOKIE]
    form = await in_sandbox.token("/keys/new")
    del stubs.sandboxes[TRIAL]
    await asyncio.sleep(SESSION_SECONDS)  # until the console asks the gateway about the session again
    stubs.calls.clear()
    reply = await in_sandbox.post("/keys/new", {"act": form, "name": "A key", "scope": "read"})
    assert reply.status == 409 and "No changes were made" in reply.words and "Makeready Demo" in reply.words
    assert in_sandbox.cookies[SESSION_COOKIE] == text.partition(".")[0]
    in_sandbox.cookies[SESSION_COOKIE] = text
    for path in ("/keys/home", "/live?topics=ticket&since=0"):
        assert (await in_sandbox.get(path, HX_Request_Type="partial")).status == 409
        in_sandbox.cookies[SESSION_COOKIE] = text
    assert not [call for call in stubs.calls if call.identity.kind == ADMINISTRATOR_KIND]
    reply = await in_sandbox.get("/tickets/102")
    assert (reply.status, reply.headers["Location"]) == (303, "/")
    assert "That sandbox was deleted or is closed. You are in the live company." in (await in_sandbox.get("/")).words
    # The form of then is no form of the live company.
    assert (await in_sandbox.post("/keys/new", {"act": form})).status == 403
    reply = await go(in_sandbox, TRIAL)
    assert reply.status == 404 and "no sandbox with that id" in reply.words


async def test_only_administrators_of_the_live_company_go_there(
    staff: Browser, stranger: Browser, administrator: Browser, stubs: Stubs, console: str, http: Any
) -> None:
    assert (await go(staff, TRIAL)).status == 403 and (await staff.get("/settings/sandboxes")).status == 403
    for company_id in (TRIAL, 1):
        assert (await go(stranger, company_id)).status == 404
    assert "Trial" not in (await stranger.get("/settings/sandboxes")).words
    for value in ("", "0", "-1", "x", "1.5", "9" * 19, "\u0661", "404", "2"):
        assert (await go(administrator, value)).status == 404, value
        assert "." not in administrator.cookies[SESSION_COOKIE]
    # A cookie that somebody has written: they are where they belong.
    for browser in (staff, stranger):
        text = browser.cookies[SESSION_COOKIE]
        browser.cookies[SESSION_COOKIE] = f"{text}.{TRIAL}"
        assert (await browser.get("/tickets")).status == 303 and browser.cookies[SESSION_COOKIE] == text
    insider = Person("administrator", 21, "Ada Alone", "ada@trial.example", company_id=TRIAL, company_name="Trial")
    text = stubs.begin(insider)
    stubs.sessions[text].is_sandbox = True
    alone = Browser(console, http).sign_in(text)
    page = await alone.get("/settings/sandboxes")
    assert "to this sandbox only" in page.words and "Makeready Demo" not in page.words
    assert "Sandbox Trial" in page.words and "Back to" not in page.words
    for company_id in (1, TRIAL, SECOND, 0):
        assert (await go(alone, company_id)).status == 404


async def test_a_sandbox_is_made_once(administrator: Browser, stubs: Stubs) -> None:
    await administrator.get("/settings/sandboxes")
    form = {**administrator.form("/settings/sandboxes"), "name": "Third"}
    assert form["timezone"] == "America/New_York"
    for _ in range(2):
        reply = await administrator.post("/settings/sandboxes", form)
        assert (reply.status, reply.headers["Location"]) == (303, "/settings/sandboxes")
    requests = stubs.called("identity.CompaniesService/CreateCompany")
    assert {request.idempotency_key for request in requests} == {form["act"]}
    assert {(request.name, request.is_sandbox, request.sandbox_of) for request in requests} == {("Third", True, 0)}
    assert {request.content for request in requests} == {pb.SANDBOX_CONTENT_EMPTY}
    assert "Third created. Open it" in (await administrator.get("/settings/sandboxes")).words
    await administrator.send("/settings/sandboxes", name="Twin", content="copy")
    assert stubs.called("identity.CompaniesService/CreateCompany").pop().content == pb.SANDBOX_CONTENT_COPY
    page = await administrator.get("/settings/sandboxes")
    assert "Twin created. Its records arrive within minutes" in page.words
    assert "Empty Demo records A copy of" in page.words
    await administrator.send("/settings/sandboxes", name="Tour", content="demo")
    assert stubs.called("identity.CompaniesService/CreateCompany").pop().content == pb.SANDBOX_CONTENT_DEMO
    assert "Tour created. Its records arrive within minutes" in (await administrator.get("/settings/sandboxes")).words
    for name in ("", "   "):
        await administrator.get("/settings/sandboxes")
        reply = await administrator.send("/settings/sandboxes", name=name)
        assert reply.status == 422 and len(stubs.called("identity.CompaniesService/CreateCompany")) == 4
    stubs.answers["identity.CompaniesService/CreateCompany"] = _full
    await administrator.get("/settings/sandboxes")
    reply = await administrator.send("/settings/sandboxes", name="Sixth")
    assert reply.status == 422 and "maximum of 5 sandboxes" in reply.words and 'value="Sixth"' in reply.text


def _full(_request: Any, _who: Any) -> Any:
    raise Refusal(422, "invalid_request", "A company has maximum of 5 sandboxes; end one of them first.", "sandbox_of")


async def test_five_sandboxes_are_all(administrator: Browser, stubs: Stubs) -> None:
    stubs.answers["identity.CompaniesService/ListSandboxes"] = pb.ListSandboxesResponse(
        sandboxes=[pb.Company(id=number, name=f"S{number}", active=True) for number in range(101, 106)], sandboxes_max=5
    )
    page = await administrator.get("/settings/sandboxes")
    assert "maximum of 5 sandboxes" in page.words and 'action="/settings/sandboxes"' not in page.text
    await go(administrator, TRIAL)
    page = await administrator.get("/settings/sandboxes")
    assert "Create sandboxes from the live company" in page.words
    assert 'action="/settings/sandboxes"' not in page.text


async def test_a_confirmation_stays_in_the_sandbox(administrator: Browser, stubs: Stubs) -> None:
    stubs.sessions[administrator.cookies[SESSION_COOKIE]].ClearField("step_up_until")
    await go(administrator, TRIAL)
    await administrator.get("/keys/new")
    confirmation = await administrator.send("/keys/new", name="Trial key", scope="read")
    assert confirmation.status == 403 and "Confirm" in confirmation.title and BAR in confirmation.words
    stubs.calls.clear()
    reply = await administrator.send("/keys/new", **{"confirm.password": PASSWORD})
    assert reply.status == 200 and "created. Copy the key now" in reply.words and BAR in reply.words
    assert administrator.cookies[SESSION_COOKIE].endswith(f".{TRIAL}")
    (call,) = [call for call in stubs.calls if call.rpc == "identity.KeysService/MintKey"]
    assert call.identity.company_id == call.request.company_id == TRIAL


async def test_imports_are_of_the_company_in_which_they_were_begun(administrator: Browser, stubs: Stubs) -> None:
    live = (await administrator.get("/imports")).words
    assert "leases.csv" in live or ".csv" in live
    await go(administrator, TRIAL)
    assert ".csv" not in (await administrator.get("/imports")).words.partition("Audit log")[2]
    assert (await administrator.get("/imports/1")).status == 404


async def test_signing_out_in_a_sandbox_ends_the_session(in_sandbox: Browser) -> None:
    text = in_sandbox.cookies[SESSION_COOKIE]
    assert (await in_sandbox.post("/sign-out", {"act": await in_sandbox.token("/sign-out")})).status == 303
    for value in (text, text.partition(".")[0]):
        in_sandbox.cookies[SESSION_COOKIE] = value
        assert (await in_sandbox.get("/keys")).headers.get("Location", "").startswith("/sign-in")


async def test_records_have_the_sandboxs_clock_and_keys_the_real_one(in_sandbox: Browser, stubs: Stubs) -> None:
    opened = ago(days=1)
    stubs.answers["identity.KeysService/ListKeys"] = pb.ListKeysResponse(
        keys=[pb.Key(id=9, name="Trial", company_id=TRIAL, created_at=opened, last_used_at=opened)]
    )
    real = await in_sandbox.get("/tickets")
    stubs.offset = datetime.timedelta(days=30)
    await asyncio.sleep(SESSION_SECONDS)
    moved = await in_sandbox.get("/tickets")
    assert (await in_sandbox.get("/")).words.count("Tuesday, 22 December") == 1, "30 days after Sunday, 22 November"
    assert (
        "1 day ago" in (await in_sandbox.get("/keys")).words
        and "data-ahead" not in (await in_sandbox.get("/keys")).text
    )
    assert real.status == moved.status == 200
    wall = Wall("America/New_York", NOW, stubs.offset)
    assert str(wall.ago(NOW)).endswith('class="ago" data-ahead="2592000">30 days ago</time>')


async def test_a_sandbox_is_ended_from_the_live_company_after_a_page_that_says_what_happens(
    administrator: Browser, stubs: Stubs
) -> None:
    stubs.sessions[administrator.cookies[SESSION_COOKIE]].ClearField("step_up_until")
    path = f"/settings/sandboxes/{TRIAL}/end"
    assert f'href="{path}"' in (await administrator.get("/settings/sandboxes")).text
    page = await administrator.get(path)
    assert page.title == "Delete Trial of the new sync?"
    for words in ("cannot be undone", "API keys stop working immediately", "within a day", "Backups"):
        assert words in page.words
    assert stubs.called("identity.CompaniesService/EndSandbox") == []
    confirmation = await administrator.send(path)
    assert confirmation.status == 403 and "Confirm" in confirmation.title
    reply = await administrator.send(path, **{"confirm.password": PASSWORD})
    assert (reply.status, reply.headers["Location"]) == (303, "/settings/sandboxes")
    (request,) = stubs.called("identity.CompaniesService/EndSandbox")
    assert request.company_id == TRIAL
    assert "Trial of the new sync deleted." in (await administrator.get("/settings/sandboxes")).words
    assert (await administrator.get("/settings/sandboxes/404/end")).status == 404
    await go(administrator, TRIAL)
    assert (await administrator.get(path)).status == 404, "not from inside"
    assert (await administrator.post(path, {"act": await administrator.token(path)})).status == 404
    assert f'href="{path}"' not in (await administrator.get("/settings/sandboxes")).text
    assert len(stubs.called("identity.CompaniesService/EndSandbox")) == 1
