"""What somebody does elsewhere shows on an open page of the console, and what is typed there stays."""

from __future__ import annotations

import os
import shutil

import pytest
from playwright.sync_api import sync_playwright

from testkit.requirements import lacks

from .system import System

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_a_comment_of_the_command_line_shows_on_an_open_page(system: System) -> None:
    program = os.environ.get("MAKEREADY_CHROMIUM") or shutil.which("chromium")
    if not program:
        lacks("chromium", "neither MAKEREADY_CHROMIUM nor a program `chromium` names one")
    demo = system.demo
    company, administrator = str(demo["company_id"]), demo["administrator"]
    ticket = str(system.get("/tickets", demo["keys"]["read"], limit=1).json["data"][0]["entity_id"])
    staff = system.makeready("staff", "list", company)["staff"][0]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            page = browser.new_page()
            page.goto(f"{system.runtime['admin_url']}/sign-in")
            page.fill("#email", administrator["email"])
            page.fill("#password", administrator["password"])
            page.click("form[action='/sign-in'] button")
            page.wait_for_selector("#live-state:text-is('Live')")
            assert page.title() == "Home · Makeready"
            page.goto(f"{system.runtime['admin_url']}/tickets/{ticket}")
            page.wait_for_selector("#live-state:text-is('Live')")
            page.focus("#q")
            page.keyboard.type("Half a wo")
            comment = "On my way with the part"
            assert comment not in page.inner_text("main")
            as_staff = ("--as", f"staff:{staff['staff_id']}")
            system.makeready("ticket", "comment", company, ticket, "--body", comment, *as_staff)
            page.wait_for_selector(f"main :text('{comment}')", timeout=60_000)
            page.keyboard.type("rd")
            assert page.input_value("#q") == "Half a word"
            assert page.evaluate("document.activeElement.id") == "q"
        finally:
            browser.close()
