"""A sandbox and its live company in the console of a running system: nothing of one is seen or done in the other."""

from __future__ import annotations

import re
from urllib.parse import urlencode, urlsplit

import pytest

from testkit.patience import until

from .console_browser import Browser, Page
from .system import Company, System
from .test_console_links import LISTS, OF_A_KIND, demo

__all__ = ["demo"]

SANDBOXES, NAME = "/settings/sandboxes", "Trial of the sync"


@pytest.fixture(scope="module")
def person(system: System) -> Browser:
    account = system.demo["administrator"]
    browser = Browser(system)
    browser.get("/sign-in")
    assert browser.send("/sign-in", email=account["email"], password=account["password"]).status == 200
    return browser


@pytest.fixture(scope="module")
def sandbox_id(person: Browser) -> int:
    """A sandbox that the person has made."""
    person.get(SANDBOXES)
    page = person.send(SANDBOXES, name=NAME, content="empty")
    assert f"{NAME} created." in page.words
    row = re.search(rf'name="company_id" value="(\d+)">\s*<button[^>]*>Open<span class="out">: {NAME}<', page.text)
    assert row is not None, page.text
    return int(row[1])


def go(person: Browser, company_id: int) -> Page:
    """Goes to the live company or to a sandbox."""
    person.get(SANDBOXES)
    act = next(field for field in person.form("/switch") if field[0] == "act")
    page = person.post("/switch", [act, ("company_id", str(company_id))])
    assert page.status == 200 and "You are now in" in page.words
    assert (f">{NAME}</bdi>" in page.text.partition('<div class="app">')[0]) == (company_id != person_company(person))
    return page


def person_company(person: Browser) -> int:
    company_id: int = person.system.demo["company_id"]
    return company_id


def test_no_record_of_the_live_company_is_in_the_sandbox(person: Browser, demo: Company, sandbox_id: int) -> None:
    records = {kind: list(demo.walk(f"/{kind}")) for kind in LISTS}
    opened = [urlsplit(row["url"]).path for rows in records.values() for row in rows[:: max(1, len(rows) // OF_A_KIND)]]
    go(person, demo.company_id)
    assert {person.get(path).status for path in opened} == {200} and len(opened) > 20
    go(person, sandbox_id)
    assert {path: status for path in opened if (status := person.get(path).status) != 404} == {}
    for path in (
        "/properties",
        "/units",
        "/assets",
        "/vendors",
        "/tickets",
        "/turns",
        "/inspections",
        "/audit",
        "/board",
    ):
        page = person.get(path)
        assert page.status == 200, path
        for kind in ("properties", "units", "assets", "vendors", "tickets"):
            assert not any(f">{row.get('name') or row['title']}<" in page.text for row in records[kind]), (path, kind)
    for row in (records["properties"][0], records["vendors"][0]):
        assert "No results for" in person.get(f"/search?{urlencode({'q': row['name']})}").words
    go(person, demo.company_id)
    assert {person.get(path).status for path in opened[:5]} == {200}


def test_what_is_made_in_the_sandbox_stays_there(person: Browser, demo: Company, sandbox_id: int) -> None:
    go(person, sandbox_id)
    person.get("/keys/new")
    person.send("/keys/new", name="Trial", scope="write")
    assert person.page is not None
    key = person.page.element("minted-key").strip()
    assert key.startswith("mk_test_")
    company = person.system.get("/whoami", key).json["company"]
    assert (company["mode"], company["name"]) == ("sandbox", NAME)
    person.get("/vendors/new")
    page = person.send("/vendors/new", name="Sandbox Plumbing")
    assert "Sandbox Plumbing" in page.words and page.status == 200
    trial = Company(person.system, sandbox_id, "", {"read": key})
    (vendor,) = trial.walk("/vendors")
    assert vendor["name"] == "Sandbox Plumbing"
    path = urlsplit(vendor["url"]).path
    assert person.get(path).status == 200
    audit = person.get("/audit").words
    assert "vendor.added" in audit and "company.created" in audit and "key.minted" in audit
    live_key = demo.keys["read"]
    assert person.system.get(path, live_key).status == 404
    assert "Sandbox Plumbing" not in str(list(demo.walk("/vendors")))
    live_vendor = next(iter(demo.walk("/vendors")))
    assert person.system.get(urlsplit(live_vendor["url"]).path, key).status == 404

    go(person, demo.company_id)
    assert person.get(path).status == 404 and "Sandbox Plumbing" not in person.get("/vendors").words
    assert "sandbox.created" in person.get("/audit?subject=company").words


def test_a_form_of_the_other_company_does_nothing(person: Browser, demo: Company, sandbox_id: int) -> None:
    for here, there in ((demo.company_id, sandbox_id), (sandbox_id, demo.company_id)):
        go(person, here)
        person.get("/vendors/new")
        form = person.form("/vendors/new", name="Sent Elsewhere")
        go(person, there)
        page = person.post("/vendors/new", form)
        assert page.status == 403 and "This form has expired No changes were made." in page.words
    for company_id in (demo.company_id, sandbox_id):
        go(person, company_id)
        assert "Sent Elsewhere" not in person.get("/vendors").words
    go(person, demo.company_id)


def test_a_sandbox_that_is_ended_leads_its_people_back(person: Browser, demo: Company, sandbox_id: int) -> None:
    go(person, sandbox_id)
    person.get("/keys/new")
    person.send("/keys/new", name="Last", scope="read")
    assert person.page is not None
    key = person.page.element("minted-key").strip()
    assert person.system.get("/whoami", key).status == 200
    inside = Browser(person.system, dict(person.cookies))
    inside.get("/vendors/new")
    form = inside.form("/vendors/new", name="Too Late")
    go(person, demo.company_id)
    path = f"{SANDBOXES}/{sandbox_id}/end"
    person.get(path)
    assert f"{NAME} deleted." in person.send(path).words
    assert NAME not in person.get(SANDBOXES).words
    until(lambda: person.system.get("/whoami", key).status == 401)
    until(lambda: inside.post("/vendors/new", form).status == 409)
    assert inside.page is not None and "You are now in Makeready Demo ." in inside.page.words
    assert inside.post("/vendors/new", form).status == 403, "the form of then is none of the live company"
    inside.cookies["__Host-makeready"] += f".{sandbox_id}"
    assert "That sandbox was deleted or is closed. You are in the live company." in inside.get("/vendors").words
    assert "Too Late" not in inside.get("/vendors").words
