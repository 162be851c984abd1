"""People get in, work and are kept out: the console in Chromium before a running system, in chapters."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pyotp
import pytest
from playwright.sync_api import Browser, BrowserContext, FilePayload, Page, sync_playwright

from testkit.chromium import OPTIONS, program
from testkit.patience import took, until

from .console_browser import PASSWORD
from .system import Company, System

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PAGE_MILLISECONDS = 60_000
CSP = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; manifest-src 'self'; worker-src 'self'"
)
NEW_PASSWORD = "a quieter horse battery"
AUTHENTICATOR = {
    "protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True,
    "isUserVerified": True, "automaticPresenceSimulation": True,
}  # fmt: skip


def button_of(action: str) -> str:
    """The button of the form for this path."""
    return f"form[action='{action}'] button:not([type=button])"


class Person:
    """A browser of its own with one tab, and what its console said."""

    def __init__(self, context: BrowserContext, origin: str) -> None:
        self.context, self.origin = context, origin
        self.said: list[str] = []
        context.set_default_timeout(PAGE_MILLISECONDS)
        self.page: Page = context.new_page()
        self.page.on("console", lambda message: self.says(message.text))
        self.page.on("pageerror", lambda error: self.says(str(error)))

    def says(self, text: str) -> None:
        """What the browser's console says; signing out empties the site's storage, and Chromium reports that."""
        if not text.startswith("Clear-Site-Data header"):
            self.said.append(text)

    @property
    def words(self) -> str:
        """The text of the page's main part."""
        return " ".join(self.page.inner_text("main").split())

    @property
    def path(self) -> str:
        return self.page.url.removeprefix(self.origin)

    def open(self, path: str) -> int:
        """Opens a page and returns its status; checks its headers."""
        answer = self.page.goto(path if path.startswith("http") else self.origin + path)
        assert answer is not None
        headers = answer.headers
        assert headers["content-security-policy"] == CSP and headers["cache-control"] == "no-store", headers
        return answer.status

    def sign_in(self, email: str, password: str = PASSWORD) -> Person:
        self.open("/sign-in")
        self.fill(email=email, password=password)
        self.send("/sign-in")
        return self

    def sign_out(self) -> None:
        self.send("/sign-out")
        self.page.wait_for_url("**/sign-in")

    def fill(self, **values: str) -> None:
        for element_id, value in values.items():
            self.page.fill(f"#{element_id}", value)

    def send(self, action: str) -> None:
        """Presses the button of the form for this path, and waits for the next page."""
        with self.page.expect_navigation():
            self.page.click(button_of(action))
        self.page.wait_for_load_state()

    def send_twice(self, action: str, shows: str) -> None:
        """Double-clicks the button, and waits for a page that has the element. The second click ends the first's
        navigation, so that none is waited for."""
        self.page.click(button_of(action), click_count=2, no_wait_after=True)
        self.page.wait_for_selector(shows)

    def menu(self) -> set[str]:
        """The paths of the menu's pages. Those of lists have a query for the default view."""
        links = self.page.locator("nav.nav a")
        return {str(links.nth(place).get_attribute("href")).partition("?")[0] for place in range(links.count())}


@dataclass
class Story:
    """A company, its administrator, and the browsers of its people."""

    system: System
    chromium: Browser
    company: Company
    staff_email: str
    origin: str
    people: list[Person] = field(default_factory=list)
    totp: pyotp.TOTP | None = None
    recovery_codes: list[str] = field(default_factory=list)

    def person(self, **options: Any) -> Person:
        person = Person(self.chromium.new_context(**options), self.origin)
        self.people.append(person)
        return person

    def audit(self, company_id: int, *words: str) -> list[dict[str, Any]]:
        """The audit log's entries, the first one first."""
        entries: list[dict[str, Any]] = self.system.makeready("audit", "list", str(company_id), *words)["entries"]
        return entries[::-1]

    def all_keys(self) -> list[dict[str, Any]]:
        keys: list[dict[str, Any]] = self.system.makeready("key", "list", str(self.company.company_id))["keys"]
        return keys


@pytest.fixture(scope="module")
def story(system: System) -> Iterator[Story]:
    executable = program()
    company = system.company("Console Story")
    staff_email = f"ada@{company.company_id}.test"
    company.import_rows("staff", [{"external_id": "S1", "name": "Ada Okoro", "email": staff_email}])
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=executable, args=OPTIONS)
        origin = f"http://localhost:{system.ports['MAKEREADY_ADMIN_PORT']}"
        yield Story(system, chromium, company, staff_email, origin)
        chromium.close()


@pytest.fixture(autouse=True)
def quiet(story: Story) -> Iterator[None]:
    """Closes the browsers of a chapter. Fails if a page put anything into its browser's console, but for the statuses
    of pages that were refused on purpose."""
    yield
    errors = [text for person in story.people for text in person.said if "status of 4" not in text]
    for person in story.people:
        person.context.close()
    story.people.clear()
    assert not errors


def test_with_demo_json_alone_a_key_is_minted_used_and_revoked(story: Story) -> None:
    demo = story.system.demo
    assert demo["admin_url"] == story.origin
    person = story.person()
    person.open(demo["admin_url"] + "/keys/new")
    assert person.path == "/sign-in?next=/keys/new"
    person.fill(email=demo["administrator"]["email"], password=demo["administrator"]["password"])
    person.send("/sign-in")
    assert person.path == "/keys/new"
    person.fill(**{"f-name": "Accounting export"})
    person.page.check("input[name=scope][value=read]")
    person.send("/keys/new")
    key = person.page.inner_text("#minted-key")
    assert f'curl -H "Authorization: Bearer {key}" {story.system.base_url}/whoami' in person.words
    whoami = story.system.get("/whoami", key)
    assert (whoami.status, whoami.json["company"]["id"]) == (200, demo["company_id"])
    person.page.click("text=Accounting export >> nth=-1")
    person.page.wait_for_url("**/keys/*")
    assert key not in person.page.content()
    path = person.path
    person.fill(name="Accounting")
    person.send(f"{path}/revoke")
    assert "Type the key's name" in person.words and story.system.get("/whoami", key).status == 200
    person.fill(name="Accounting export")
    person.send(f"{path}/revoke")
    assert "“Accounting export” revoked" in person.words
    took("a key revoked in the console is refused", until(lambda: story.system.get("/whoami", key).status == 401))
    assert story.system.get("/whoami", key).code == "key_revoked"
    key_id = path.rpartition("/")[2]
    entries = story.audit(demo["company_id"], "--subject", "key", "--subject-id", key_id)
    (actor,) = {entry["actor"] for entry in entries}
    assert [entry["action"] for entry in entries] == ["key.minted", "key.revoked"] and actor.startswith(
        "administrator:"
    )
    person.open(f"/audit?subject=key&id={key_id}")
    assert person.words.count("Demo Administrator") == 2
    # From where each was done: the browser's address, and the request.
    assert person.page.locator("td.where >> text=127.0.0.1").count() == 2


@pytest.mark.parametrize("script", [True, False], ids=["with script", "without"])
def test_a_double_click_mints_one_key_and_rotates_it_once(story: Story, script: bool) -> None:
    person, name = story.person(java_script_enabled=script).sign_in(story.company.email), f"Twice {script}"
    person.open("/keys/new")
    person.fill(**{"f-name": name})
    person.send_twice("/keys/new", "#minted-key")
    (minted,) = [key for key in story.all_keys() if key["name"] == name]
    key = person.page.inner_text("#minted-key")
    assert story.system.get("/whoami", key).status == 200
    path = f"/keys/{minted['key_id']}"
    person.open(path)
    person.send_twice(f"{path}/rotate", "#minted-key")
    old, new = sorted((key for key in story.all_keys() if key["name"] == name), key=lambda key: int(key["key_id"]))
    rotated = person.page.inner_text("#minted-key")
    assert old["key_id"] == minted["key_id"] and rotated.startswith(new["prefix"]) and rotated != key
    # The overlap: both work.
    assert [story.system.get("/whoami", api_key).status for api_key in (key, rotated)] == [200, 200]


def test_an_expired_key_is_refused_with_a_sentence_that_says_so(story: Story) -> None:
    words = ("key", "mint", str(story.company.company_id), "--scope", "read", "--name", "Short", "--expires-at")
    for seconds in (2, 8, 32):  # an end that has passed when the command arrives is refused
        ends = datetime.now(UTC) + timedelta(seconds=seconds)
        done = story.system.run("--json", *words, ends.isoformat())
        if done.returncode == 0:
            break
    minted = json.loads(done.stdout)
    time.sleep(max(0.0, (ends - datetime.now(UTC)).total_seconds()))
    until(lambda: story.system.get("/whoami", minted["key"]).status == 401)
    answer = story.system.get("/whoami", minted["key"])
    assert answer.code == "key_revoked" and "This API key expired on" in answer.json["error"]["message"]
    person = story.person().sign_in(story.company.email)
    person.open(f"/keys/{minted['key_id']}")
    assert "Expired" in person.words and person.page.locator("form[action$='/revoke']").count() == 0


def test_an_administrator_takes_the_first_steps_of_an_empty_company(story: Story) -> None:
    company = story.system.company("First Steps")
    administrator = story.person(viewport={"width": 1360, "height": 900}).sign_in(company.email)
    page = administrator.page
    steps = page.locator(".first-steps > li")
    done = page.locator(".first-steps > li.done b")

    def take(link: str, action: str, **values: str) -> None:
        """Goes from the first page to a step's form, sends it, and comes back."""
        with page.expect_navigation():
            page.click(f".first-steps a[href='{link}']")
        administrator.fill(**values)
        administrator.send(action)
        administrator.open("/")

    administrator.open("/")
    assert steps.count() == 6 and done.all_inner_texts() == ["API key"], "the company has come with keys"
    assert "1 of 6 done" in administrator.words and "All deliveries succeeded" not in administrator.words
    assert not page.locator("a[href='/units/new']").count(), "a unit is in a property"
    take("/properties/new", "/properties/new", **{"f-name": "Elm Court", "f-address": "1 Elm St"})
    assert done.all_inner_texts() == ["Properties", "API key"]
    with page.expect_navigation():
        page.click(".first-steps a[href='/units/new']")
    page.select_option("#f-property_id", label="Elm Court")
    administrator.fill(**{"f-name": "101"})
    with page.expect_navigation():  # the form's first button is the one that Enter presses
        page.click("form[action='/units/new'] .btn.go")
    administrator.open("/")
    take("/staff/new", "/staff/new", **{"f-name": "Ada Okoro"})
    assert done.all_inner_texts() == ["Properties", "Units", "Staff", "API key"]
    # A file of vendors is read as one of vendors.
    with page.expect_navigation():
        page.click(".first-steps a[href='/imports/new?kind=vendors']")
    vendors = FilePayload(name="vendors.csv", mimeType="text/csv", buffer=b"external_id,name\nV1,Elm Plumbing\n")
    page.set_input_files("#f-file", vendors)
    administrator.send("/imports/new")
    page.wait_for_selector("h1:has-text('Match the columns')")
    assert "kind=vendors" in administrator.path
    administrator.open("/")
    take("/vendors/new", "/vendors/new", **{"f-name": "Elm Plumbing"})
    assert "5 of 6 done" in administrator.words
    # What one administrator dismisses, no other browser shows either.
    administrator.send("/first-steps/dismiss")
    assert "First steps dismissed." in page.inner_text("body") and not steps.count()
    again = story.person().sign_in(company.email)
    again.open("/")
    assert "Good" in again.words and "First steps" not in again.words


def test_an_unknown_page_is_404_for_everybody(story: Story) -> None:
    person = story.person()
    assert person.open("/nonsense") == 404
    person.sign_in(story.company.email)
    assert person.open("/nonsense") == 404 and "Page or record not found" in person.words


def test_a_passkey_is_added_and_signs_in_by_itself(story: Story) -> None:
    person = story.person().sign_in(story.company.email)
    session = person.context.new_cdp_session(person.page)
    session.send("WebAuthn.enable")
    authenticator = session.send("WebAuthn.addVirtualAuthenticator", {"options": AUTHENTICATOR})
    person.open("/account")
    person.fill(**{"passkey-name": "A phone"})
    person.page.click("[data-kind=create]")
    person.page.wait_for_selector("text=Passkey added")
    held = session.send("WebAuthn.getCredentials", {"authenticatorId": authenticator["authenticatorId"]})
    (credential,) = held["credentials"]
    assert credential["rpId"] == "localhost"
    # The sign-in page offers the passkey, and this authenticator agrees at once.
    person.page.click("form[action='/sign-out'] button")
    person.page.wait_for_url(f"{story.origin}/")
    person.open("/account")
    row = person.page.locator("table tr", has_text="this session").inner_text()
    assert "passkey" in row
    actions = [entry["action"] for entry in story.audit(story.company.company_id)]
    assert "account.passkey_added" in actions


def test_an_authenticator_app_and_recovery_codes(story: Story) -> None:
    person = story.person().sign_in(story.company.email)
    person.open("/account")
    person.send("/account/totp")
    totp = story.totp = pyotp.TOTP(person.page.inner_text("#secret-text"))
    person.fill(code="000000" if totp.now() != "000000" else "000001")
    person.send("/account/totp/confirm")
    assert "Turn on" in person.words and person.page.locator(".note.red").count() == 1
    person.fill(code=totp.now())
    person.send("/account/totp/confirm")
    story.recovery_codes = person.page.inner_text("#codes-list").split()
    assert len(set(story.recovery_codes)) == 10
    person.sign_out()
    person.sign_in(story.company.email)
    assert "Two-factor authentication" in person.words
    # The next code, which the clock's tolerance allows already: each works once.
    code = totp.at(datetime.now(UTC) + timedelta(seconds=30))
    person.fill(code=code)
    person.send("/sign-in/code")
    assert person.path == "/"
    person.sign_out()
    person.sign_in(story.company.email)
    person.fill(code=code)
    person.send("/sign-in/code")
    assert "Two-factor authentication" in person.words
    person.fill(code=story.recovery_codes.pop())
    person.send("/sign-in/code")
    assert "You used a recovery code; 9 left" in person.words


def test_a_session_that_is_ended_elsewhere_is_over(story: Story) -> None:
    there, here = (story.person() for _ in range(2))
    for person in (there, here):
        person.sign_in(story.company.email)
        person.fill(code=story.recovery_codes.pop())
        person.send("/sign-in/code")
    here.open("/account")
    here.send("/account/sessions/end")

    def is_over() -> bool:
        there.open("/keys")
        return there.path == "/sign-in?next=/keys"

    took("a session ended elsewhere is over", until(is_over))
    assert here.open("/keys") == 200 and here.path == "/keys"


def test_a_forgotten_password_is_reset_by_the_operators_link(story: Story) -> None:
    signed_in = story.person().sign_in(story.company.email)
    signed_in.fill(code=story.recovery_codes.pop())
    signed_in.send("/sign-in/code")
    link = story.system.makeready("administrator", "link", story.company.email)["url"]
    person = story.person()
    assert person.open(link) == 200
    person.fill(password=NEW_PASSWORD, again=NEW_PASSWORD + "!")
    person.send(link.removeprefix(story.origin))
    assert "The passwords do not match" in person.words
    person.fill(password=NEW_PASSWORD, again=NEW_PASSWORD)
    person.send(link.removeprefix(story.origin))
    # The second factor stays.
    person.fill(code=story.recovery_codes.pop())
    person.send("/sign-in/code")
    assert person.path == "/"
    # A page asks for its session once a second at most, and the home page, which is open here, has asked all the time.
    until(lambda: signed_in.open("/keys") == 200 and signed_in.path == "/sign-in?next=/keys")
    assert person.open(link) >= 400 and "This link is no longer valid" in person.words
    old = story.person().sign_in(story.company.email)
    assert old.path == "/sign-in" and old.page.locator(".note.red").count() == 1


def test_invited_people_come_in_by_their_links_and_staff_see_no_page_of_administrators(story: Story) -> None:
    boss = story.person().sign_in(story.company.email, NEW_PASSWORD)
    boss.fill(code=story.recovery_codes.pop())
    boss.send("/sign-in/code")
    boss.open("/settings/administrators")
    email = f"bea@{story.company.company_id}.test"
    boss.fill(**{"f-name": "Bea Lindqvist", "f-email": email})
    boss.send("/settings/administrators")
    invitation = boss.page.inner_text("#link-text")
    menu = boss.menu()
    boss.open("/staff")
    boss.page.click("text=Ada Okoro")
    boss.page.wait_for_url("**/staff/*")
    boss.send(f"{boss.path}/invite")
    staff_invitation = boss.page.inner_text("#link-text")
    for link, greeting in ((invitation, "Welcome, Bea Lindqvist"), (staff_invitation, "Welcome, Ada Okoro")):
        person = story.person()
        person.open(link)
        assert person.page.inner_text("h1") == greeting
        person.fill(password=NEW_PASSWORD, again=NEW_PASSWORD)
        person.send(link.removeprefix(story.origin))
        assert person.path == "/"
    bea, ada = story.people[-2:]
    assert bea.menu() == menu and bea.open("/settings/administrators") == 200
    of_administrators = menu - ada.menu()
    assert {"/keys", "/webhooks", "/events", "/settings", "/settings/administrators", "/audit"} <= of_administrators
    for path in sorted({*of_administrators, "/keys/new", "/webhooks/new"}):
        assert ada.open(path) == 403 and "For administrators only" in ada.words, path
    assert ada.open("/account") == 200
    # Whom the audit log has.
    entries = story.audit(story.company.company_id)
    names = {entry["actor"]: entry["action"] for entry in entries}
    assert any(actor.startswith("staff:") for actor in names)
    boss.open("/audit")
    assert "Bea Lindqvist" in boss.words and "Ada Okoro" in boss.words
    # One who is deactivated is out.
    boss.open("/settings/administrators")
    boss.page.click("text=Bea Lindqvist")
    boss.page.wait_for_url("**/settings/administrators/*")
    boss.send(f"{boss.path}/deactivate")
    assert "deactivated and signed out everywhere" in boss.words

    def is_out() -> bool:
        bea.open("/keys")
        return bea.path.startswith("/sign-in")

    until(is_out)
