"""A day's work in the console, in a browser on a running system: on a phone, by keyboard alone, without script, by two
people at once, and a unit from the notice to the next move-in."""

from __future__ import annotations

import datetime
import io
import itertools
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest
from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from testkit.chromium import OPTIONS, program
from testkit.clocks import today
from testkit.event_contract import check_same_as_get
from testkit.patience import until

from .console_browser import PASSWORD
from .receiver import Receiver
from .system import Company, System
from .test_console_story import Person
from .test_first_light import subscribe

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
TABS_MAX = 120
REFUSED = "main .note.red[role=alert]"
# What is wider than the screen, and what is too small for a finger. Links within a sentence may be small (WCAG 2.5.8).
MISFITS = """() => {
    const all = document.documentElement.scrollWidth, wide = all > innerWidth ? [`the page is ${all} px wide`] : [];
    const inSentence = (one) => one.tagName === 'A' && getComputedStyle(one).display === 'inline'
        && [...one.parentNode.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    return wide.concat([...document.querySelectorAll('a, button, input, select, textarea, summary')].filter((one) => {
        const target = one.closest('label') || one, box = target.getBoundingClientRect();
        const isSeen = one.checkVisibility({visibilityProperty: true}) && !target.closest('.out, .skip');
        if (!isSeen || inSentence(one)) return false;
        return box.width > 2 && (box.height < 24 || box.width < 24);
    }).map((one) => one.outerHTML.slice(0, 150)));
}"""  # fmt: skip
# The focus as a person sees it.
FOCUS = """() => {
    const one = document.activeElement, around = one.closest('.say:focus-within') || one;
    const drawn = (style) => style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2;
    return {seen: drawn(getComputedStyle(one)) || drawn(getComputedStyle(around)),
            words: (one.innerText || one.getAttribute('aria-label') || '').trim(), id: one.id, tag: one.tagName,
            role: one.getAttribute('role'), y: one.getBoundingClientRect().y};
}"""
TURN_EVENTS = ["turn.status_changed", "turn.schedule_changed", "turn.task.stale"]
DONE = "Changed the cartridge and dried the cupboard."
_numbers = itertools.count(1)


class Worker(Person):
    """A person at work. `words`, `open`, `fill` and `send` are those of `Person`."""

    def go(self, words: str) -> None:
        """Presses a link or a button of the page's main part, and waits for the next page."""
        with self.page.expect_navigation():
            self.page.click(f"main :is(a, button):visible:has-text('{words}')")
        self.page.wait_for_load_state()

    def send(self, action: str, clicks: int = 1) -> None:
        """As `Person.send`; pickers have hidden buttons."""
        with self.page.expect_navigation():
            self.page.click(f"form[action='{action}'] button:not(.out, [type=button], [name])", click_count=clicks)
        self.page.wait_for_load_state()

    def fits(self) -> None:
        """Fails if the page is wider than the screen, or has a target under 24 px."""
        assert self.page.evaluate(MISFITS) == [], self.path

    def to(self, selector: str) -> None:
        """Presses Tab until the focus is there. Fails where the focus can't be seen, or does not come."""
        target = self.page.locator(selector).first
        target.wait_for()
        for _ in range(TABS_MAX):
            self.page.keyboard.press("Tab")
            focus = self.page.evaluate(FOCUS)
            assert focus["seen"] or focus["tag"] == "BODY", f"{self.path}: the focus on {focus} is not visible"
            if target.evaluate("one => one === document.activeElement"):
                return
        raise AssertionError(f"{self.path}: Tab does not come to {selector}")

    def press(self, key: str) -> None:
        """Presses a key that leads to another page."""
        with self.page.expect_navigation():
            self.page.keyboard.press(key)
        self.page.wait_for_load_state()

    def type(self, selector: str, text: str) -> None:
        self.to(selector)
        self.page.keyboard.type(text)


@dataclass
class Work:
    """A company with an administrator and a technician, who sign in once each."""

    system: System
    chromium: Browser
    company: Company
    ada: str
    staff: dict[str, str]
    units: dict[str, int]
    origin: str
    sessions: dict[str, Any] = field(default_factory=dict)
    people: list[Worker] = field(default_factory=list)

    def person(self, email: str, password: str = PASSWORD, **options: Any) -> Worker:
        context = self.chromium.new_context(storage_state=self.sessions.get(email), **options)
        worker = Worker(context, self.origin)
        self.people.append(worker)
        if email not in self.sessions:
            worker.sign_in(email, password)
            self.sessions[email] = context.storage_state()
        return worker

    def ticket(self, title: str, company: Company | None = None, unit_id: int = 0) -> str:
        """The path of a ticket that an integration opens."""
        employer = company or self.company
        answer = employer.create_ticket(unit_id or self.units["U1"], title, f"work {next(_numbers)}")
        assert answer.status == 201, answer
        return urlsplit(str(answer.json["url"])).path

    def record(self, path: str) -> dict[str, Any]:
        record: dict[str, Any] = self.system.get(path, self.company.key_for(scope="read")).json
        return record


@pytest.fixture(scope="module")
def work(system: System) -> Iterator[Work]:
    executable = program()
    company = system.company("Console Work")
    number, email = str(company.company_id), f"ada@{company.company_id}.test"
    company.import_rows("staff", [{"external_id": "S1", "name": "Ada Okoro", "email": email}])
    company.import_rows("staff", [{"external_id": "S2", "name": "Ben Roe"}])
    company.import_rows("properties", [{"external_id": "P1", "name": "Elm Court", "address": "1 Elm St"}])
    names = ("U1", "U2", "U3")
    company.import_rows("units", [{"external_id": name, "property": "P1", "name": f"Unit {name}"} for name in names])
    turns = [{"external_id": f"T{number}", "unit": number, "move_in_date": "2025-02-01"} for number in ("U2", "U3")]
    company.import_rows("turns", turns)
    staff = {member["name"]: str(member["staff_id"]) for member in system.makeready("staff", "list", number)["staff"]}
    staff_id = staff["Ada Okoro"]
    system.makeready("staff", "invite", number, staff_id, "--as", company.email)
    as_staff = ("--as", f"staff:{staff_id}")
    system.makeready("account", "change-password", number, *as_staff, stdin=PASSWORD)
    system.makeready("wait")
    units = {unit["external_id"]: unit["entity_id"] for unit in company.walk("/units")}
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=executable, args=OPTIONS)
        origin = f"http://localhost:{system.ports['MAKEREADY_ADMIN_PORT']}"
        yield Work(system, chromium, company, email, staff, units, origin)
        chromium.close()


@pytest.fixture(autouse=True)
def quiet(work: Work) -> Iterator[None]:
    """Closes the browsers of a story. Fails if a page put anything into its browser's console, but for the statuses of
    acts that were refused on purpose."""
    yield
    errors = [text for worker in work.people for text in worker.said if "status of 4" not in text]
    for worker in work.people:
        worker.context.close()
    work.people.clear()
    assert not errors


def photo() -> bytes:
    """A picture as a phone takes it: lying, with its place in EXIF."""
    buffer = io.BytesIO()
    exif = Image.Exif()
    exif[0x0112] = 6
    exif[0x010E] = "At home"
    Image.new("RGB", (1200, 900), "teal").save(buffer, "JPEG", exif=exif)
    return buffer.getvalue()


def test_a_technicians_day_on_a_phone(work: Work) -> None:
    demo = work.system.demo
    company = Company(work.system, demo["company_id"], demo["administrator"]["email"], demo["keys"])
    (unit, *_) = work.system.get("/units", demo["keys"]["read"], limit=1).json["data"]
    path = work.ticket("The tap of the guest bath drips", company, unit["entity_id"])
    who = demo["staff"][0]
    person = work.person(who["email"], who["password"], **PHONE)
    person.fits()
    person.page.tap("nav.tabs-mobile >> text=My work")
    person.page.wait_for_url("**/my-work")
    person.fits()
    assert "guest bath" not in person.words
    person.open("/tickets?assignee=none")
    person.fits()
    person.go("The tap of the guest bath drips")
    assert person.path == path
    person.fits()
    person.go("Assign to me")
    assert "Assigned to you" in person.words
    person.fill(**{"f-body": "On my way with a new cartridge."})
    person.send(f"{path}/comment")
    assert f"{who['name']} · staff" in person.words and "On my way with a new cartridge." in person.words
    person.fits()
    person.open("/my-work")
    person.go("The tap of the guest bath drips")
    person.page.tap("#complete > summary")
    person.fill(**{"f-note": "Changed it"})
    assert person.page.inner_text("#f-note-h").startswith("2 of 5 words")
    person.go("Complete ticket")
    assert "must have 5 or more words" in person.words and person.page.input_value("#f-note") == "Changed it"
    assert person.page.evaluate(FOCUS)["role"] == "alert"
    person.fits()
    person.fill(**{"f-note": DONE})
    person.go("Complete ticket")
    assert "Ticket completed" in person.words
    record = work.system.get(path, demo["keys"]["read"]).json
    assert (record["status"], record["assignee"]["name"]) == ("Completed", who["name"])
    for other in ("/board", "/inspections", "/pm-tasks", "/tickets/new", urlsplit(unit["url"]).path):
        person.open(other)
        person.fits()


def test_a_ticket_of_a_company_that_wants_photos_gets_one_on_a_phone(work: Work) -> None:
    number = str(work.company.company_id)
    work.system.makeready("company", "update", number, "--photo-required")
    path = work.ticket("Dark stain below the sink")
    person = work.person(work.ada, **PHONE)
    person.open(path)
    person.page.tap("#complete > summary")
    person.fill(**{"f-note": DONE})
    person.go("Complete ticket")
    assert "photo" in person.page.inner_text(REFUSED) and person.page.input_value("#f-note") == DONE
    person.page.tap("details.photos > summary")
    person.fits()
    person.page.set_input_files("#p-photos", {"name": "IMG_1.jpg", "mimeType": "image/jpeg", "buffer": photo()})
    person.send(f"{path}/photos")
    person.fits()
    person.open(path)
    person.page.locator(".restored").first.wait_for()
    assert person.page.input_value("#f-note") == DONE  # a draft since the refusal
    person.go("Complete ticket")
    record = work.record(path)
    assert record["status"] == "Completed"
    # An integration has no session.
    with urllib.request.urlopen(record["photo_url"], timeout=60) as served, Image.open(served) as image:
        assert (image.format, image.size, dict(image.getexif())) == ("JPEG", (900, 1200), {})
    work.system.makeready("company", "update", number, "--no-photo-required")


def test_an_inspection_has_a_template_and_photos_of_a_phone_which_its_ticket_has(work: Work) -> None:
    boss, person = work.person(work.company.email), work.person(work.ada, **PHONE)
    boss.open("/inspection-templates/new")
    boss.fill(**{"f-name": "Winter", "f-rows": "Windows close\nSmoke alarm beeps"})
    boss.go("Save")
    person.open("/inspections/new")
    person.fill(**{"f-title": "Winter walk"})
    person.page.select_option("#f-property_id", label="Elm Court")
    person.fill(**{"f-scheduled_date": "2999-01-10"})
    (template,) = (
        words for words in person.page.locator("#f-template_id option").all_inner_texts() if "Winter" in words
    )
    person.page.select_option("#f-template_id", label=template)
    person.fits()
    person.go("Schedule inspection")
    inspection = person.path
    person.fits()
    person.go("Start inspection")
    person.fits()
    person.go("Pass")
    assert "“Windows close” passed" in person.words and person.page.inner_text("h1") == "Smoke alarm beeps"
    assert person.page.get_attribute("#photo", "capture") == "environment"
    person.page.set_input_files("#photo", {"name": "IMG_2.jpg", "mimeType": "image/jpeg", "buffer": photo()})
    person.go("Add photo")
    person.page.tap("#fail > summary")
    person.fill(**{"f-note": "Its battery is flat"})
    person.fits()
    person.go("Fail item and open ticket")
    assert "A ticket was opened" in person.words and "1 item failed" in person.words
    person.fits()
    person.go("Complete inspection")
    assert work.record(inspection)["status"] == "Completed"
    work.system.makeready("wait")  # svc-tickets opens it when it hears of the row
    person.open(inspection)
    (opened,) = (ticket for ticket in work.company.walk("/tickets") if ticket["source"] == "inspection")
    assert opened["title"] in person.words and "Smoke alarm beeps" in opened["title"]
    path = urlsplit(opened["url"]).path
    with urllib.request.urlopen(work.record(path)["photo_url"], timeout=60) as served, Image.open(served) as image:
        assert image.size == (900, 1200)


def test_a_resident_who_calls_is_found_and_the_ticket_is_about_the_unit(work: Work) -> None:
    work.company.import_rows("units", [{"external_id": "U9", "property": "P1", "name": "Unit 9", "unit_number": "9"}])
    work.system.makeready("wait")
    (unit_id,) = (unit["entity_id"] for unit in work.company.walk("/units") if unit["external_id"] == "U9")
    marisol = {"first_name": "Marisol", "last_name": "Quintana", "role": "leaseholder", "phone": "+1 (503) 555-0142"}
    body = {"move_in_date": "2026-01-01", "lease_start_date": "2026-01-01", "provider": "feed", "parties": [marisol]}
    key = {"Idempotency-Key": "calls"}
    moved_in = work.system.call("POST", f"/units/{unit_id}/move-in", work.company.key_for(scope="write"), body, key)
    assert moved_in.status == 201
    leaky = work.ticket("The tap drips", unit_id=unit_id)
    person = work.person(work.ada, **PHONE)

    def search(words: str) -> str:
        person.open("/search")
        person.fill(words=words)
        with person.page.expect_navigation():
            person.page.press("#words", "Enter")
        return str(person.words)

    until(lambda: "Marisol Quintana" in search("503.555.0142"))
    # No address has the number: browsers and proxies remember addresses.
    assert person.page.url == f"{work.origin}/search" and "Current resident" in person.words
    assert person.page.get_attribute("main a[href^='tel:']", "href") == "tel:+15035550142"
    person.fits()
    assert "These are close" in search("quintnaa") and person.page.url.endswith("/search?q=quintnaa")
    assert "Unit 9" in search("#9 elm")

    person.open("/tickets/new")
    person.fill(**{"f-title": "No heat", "caller": "marisol"})
    person.go("Find")
    assert person.page.input_value("#f-title") == "No heat"
    person.fits()
    person.go("Marisol Quintana")
    chosen = [person.page.input_value(f"#f-{name}") for name in ("title", "unit_id")]
    assert chosen == ["No heat", str(unit_id)] and person.page.is_checked("input[name=by][value=resident]")
    assert person.page.is_visible("main a[href='tel:+15035550142']") and "The tap drips" in person.words
    person.fits()
    person.page.check("input[name=permission_to_enter]")
    person.page.select_option("#f-category", "HVAC")
    person.go("Open ticket")
    record = work.record(person.path)
    assert (record["unit"]["id"], record["permission_to_enter"], record["source"]) == (unit_id, True, "staff")
    assert "opened by staff, a resident asked" in person.words
    number = str(record["ticket_number"])
    path = person.path
    for words in (f"work order {number}", f"ticket #{number}"):
        search(words)
        assert person.path == path != leaky
    # Each look at contacts is on record, and none of what was typed.
    entries = work.system.makeready("audit", "list", str(work.company.company_id))["entries"]
    looks = [entry for entry in entries if entry["action"] == "unit.contacts_viewed"]
    assert {(entry["actor"], entry["subject_id"]) for entry in looks} == {(f"staff:{work.staff['Ada Okoro']}", unit_id)}
    assert len(looks) >= 3 and "555" not in str(looks) and "uint" not in str(looks).lower()


def test_a_ticket_by_keyboard_alone(work: Work) -> None:
    person = work.person(work.ada)
    person.open("/tickets")
    person.to("main a[href^='/tickets/new']")
    person.press("Enter")
    person.type("#f-property_id", "Elm")
    person.page.wait_for_selector("#f-unit_id option:nth-child(2)", state="attached")
    person.type("#f-unit_id", "Unit U1")
    person.type("#f-title", "Keyboard tap")
    person.type("#f-category", "Plumbing")
    person.to("input[name=by]:checked")
    person.page.keyboard.press("ArrowUp")
    assert person.page.is_checked("input[name=by][value=resident]")
    person.to("main form.new-ticket .does button")
    person.press("Enter")
    assert "Ticket opened" in person.words
    path = person.path
    assert (work.record(path)["unit"]["id"], work.record(path)["source"]) == (work.units["U1"], "staff")
    person.to(f"main a[href='{path}/assign']")
    person.press("Enter")
    person.type("#f-assignee_id", "Ada")
    person.to(f"form[action='{path}/assign'] .does button")
    person.press("Enter")
    assert work.record(path)["assignee"]["name"] == "Ada Okoro"
    person.to("#complete > summary")
    person.page.keyboard.press("Enter")
    person.type("#f-note", "Too short")
    person.to("#complete-form .btn.go")
    person.press("Enter")
    focus = person.page.evaluate(FOCUS)
    assert focus["role"] == "alert" and focus["seen"] and "5 or more words" in focus["words"]
    assert 0 <= focus["y"] < 720
    person.to(f"{REFUSED} a")
    person.page.keyboard.press("Enter")
    person.page.keyboard.press("Tab")  # from the address's target, as from a click on it
    person.page.keyboard.press("Shift+Tab")
    if person.page.evaluate(FOCUS)["id"] != "f-note":
        person.to("#f-note")
    person.page.keyboard.press("End")
    person.page.keyboard.type(" before, and now long enough")
    person.to("#complete-form .btn.go")
    person.press("Enter")
    assert "Ticket completed" in person.words and work.record(path)["status"] == "Completed"


def changes(receiver: Receiver, path: str, unit_id: int) -> list[tuple[Any, ...]]:
    """The events of a unit: their key, change and shape."""
    events = [delivery.json for delivery in receiver.at(path) if delivery.json["data"]["unit"]["id"] == unit_id]
    events.sort(key=lambda event: str(event["occurred_at"]))
    return [(event["event"], event["change"], shape_of(event)) for event in events]


def shape_of(value: Any) -> Any:
    """The keys in their order, and the values' kinds. Who manages a turn, and its ids elsewhere, may be null."""
    if isinstance(value, dict):
        may_be_null = ("occupancy_source", "occupancy_fed_at", "external_id")
        return [(name, None if name in may_be_null else shape_of(member)) for name, member in value.items()]
    return [shape_of(member) for member in value] if isinstance(value, list) else type(value).__name__


def handed_on_by_staff(work: Work, unit_id: int, day: str) -> None:
    """A member of staff records the notice, makes the unit ready and records the move-in, on the console's pages, all
    for one day."""
    person = work.person(work.ada)
    person.open(urlsplit(work.record(f"/units/{unit_id}")["url"]).path)
    person.go("Record notice")
    person.fill(**{"f-move_out_date": day, "f-notes": "By phone"})
    person.go("Save notice")
    assert "Notice recorded" in person.words
    work.company.shows(unit_id, "Notice")
    person.open("/board")
    card = person.page.locator("li.unit-card", has_text="Unit U2")
    card.locator("summary").click()
    card.locator("[name=projected_ready_on]").fill(day)
    card.locator("[name=task_type]").fill("Paint")
    card.locator("[name=scheduled_date]").fill(day)
    with person.page.expect_navigation():
        card.locator("button.go").click()
    assert "task “Paint” added" in person.words and "ready date set to" in person.words
    card.locator("summary").click()
    card.locator("[name=unit_status]").select_option("Vacant Not Ready")
    with person.page.expect_navigation():
        card.locator("button").click()
    card.locator("summary").click()
    card.locator("input[name=done]").check()
    card.locator("[name=unit_status]").select_option("Vacant Ready")
    with person.page.expect_navigation():
        card.locator("button").click()
    assert "task “Paint” completed" in person.words and "status set to Vacant Ready" in person.words
    card.locator("summary").click()
    with person.page.expect_navigation():
        card.locator("text=Move-in").click()
    person.fill(**{"f-move_in_date": day, "f-lease_start_date": day})
    person.page.wait_for_selector("#effect >> text=The move-in takes effect now.")
    person.fill(**{"p0-f-first_name": "Ana", "p0-f-last_name": "Ortiz", "p0-f-email": "ana@residents.example"})
    person.go("Save move-in")


def handed_on_by_the_api(work: Work, unit_id: int, day: str) -> None:
    """The same by the API, and by the command line where the API has no operation."""
    system, number = work.system, str(work.company.company_id)
    (turn,) = work.company.walk("/turns", unit_id=unit_id)
    turn_id, by = str(turn["entity_id"]), ("--as", work.company.email)
    key, notice = work.company.key_for(2), {"move_out_date": day, "provider": "appfolio"}
    assert system.post(f"/units/{unit_id}/notice", key, notice, "same notice").status == 201
    system.makeready("turn", "schedule", number, turn_id, "--projected-ready-on", day, *by)
    for status in ("Vacant Not Ready", "Vacant Ready"):
        system.makeready("turn", "unit-status", number, str(unit_id), "--unit-status", status, *by)
    party = {"first_name": "Ben", "last_name": "Ortiz", "role": "leaseholder"}
    body = {"move_in_date": day, "lease_start_date": day, "provider": "appfolio", "parties": [party]}
    body["predecessor_transition_id"] = turn["entity_id"]
    assert system.post(f"/units/{unit_id}/move-in", key, body, "same move-in").status == 201


def test_from_the_notice_to_the_next_move_in_by_staff_alone(work: Work, receiver: Receiver) -> None:
    system, unit_id, other = work.system, work.units["U2"], work.units["U3"]
    subscribe(work.company, "/by-staff", TURN_EVENTS)
    (first,) = work.company.walk("/turns", unit_id=unit_id)
    day = today().isoformat()
    handed_on_by_staff(work, unit_id, day)
    ended, opened = work.company.walk("/turns", unit_id=unit_id)
    assert (ended["entity_id"], ended["status"]) == (first["entity_id"], "Completed")
    assert (opened["status"], opened["source"], opened["occupancy_source"]) == ("Active", "staff", None)
    assert ended["occupancy_source"] is None
    work.company.shows(unit_id, "Occupied")
    handed_on_by_the_api(work, other, day)
    system.makeready("wait")
    system.makeready("sweep", "webhooks")
    by_staff, by_api = (changes(receiver, "/by-staff", unit) for unit in (unit_id, other))
    assert by_staff == by_api
    assert [(name, change["from"], change["to"]) for name, change, _ in by_staff] == [
        ("turn.status_changed", "Occupied", "Notice"),
        ("turn.schedule_changed", None, day),
        ("turn.status_changed", "Notice", "Vacant Not Ready"),
        ("turn.status_changed", "Vacant Not Ready", "Vacant Ready"),
        ("turn.status_changed", "Vacant Ready", "Occupied"),
    ]
    of_unit = [delivery for delivery in receiver.at("/by-staff") if delivery.json["data"]["unit"]["id"] == unit_id]
    last = max(of_unit, key=lambda delivery: str(delivery.json["occurred_at"]))
    got = system.get(f"/turns/{opened['entity_id']}", work.company.key_for(scope="read"))
    check_same_as_get(last.body, got.body)
    assert b"ana@residents.example" not in last.body


def test_a_standard_turn_takes_two_clicks_and_is_somebodys_work_by_day(work: Work) -> None:
    """A manager adds the tasks of a template, each with who does it; a technician's phone has all their work."""
    company, day = work.company, today()
    company.import_rows("vendors", [{"external_id": "V1", "name": "Bright Paint"}])
    company.import_rows("units", [{"external_id": "U8", "property": "P1", "name": "Unit U8"}])
    dates = {"move_in_date": "2025-02-01", "move_out_date": (day - datetime.timedelta(days=1)).isoformat()}
    company.import_rows("turns", [{"external_id": "T8", "unit": "U8", "unit_status": "Vacant Not Ready", **dates}])
    hers = {"property": "P1", "assignee": "S1"}
    far = {"external_id": "W1", "title": "Winter windows", "scheduled_date": "2999-01-10"}
    company.import_rows("inspections", [far | hers])
    due = (day + datetime.timedelta(days=1)).isoformat()
    company.import_rows("pm-tasks", [{"external_id": "F1", "task_name": "Furnace filters", "due_date": due} | hers])
    company.import_rows("tickets", [{"external_id": "K1", "title": "Gas smell", "category": "HVAC", **hers}])
    work.system.makeready("wait")
    (turn,) = (turn for turn in company.walk("/turns") if turn["external_id"] == "T8")

    boss = work.person(company.email)
    boss.open("/turn-templates/new")
    boss.fill(**{"f-name": "Standard turn", "lines": "Trash-out, 1\nPaint, 2\nKeys"})
    boss.go("Add template")
    for task, who, name in (("Trash-out", "assignee", "Ada Okoro"), ("Paint", "vendor", "Bright Paint")):
        boss.page.click(f"main .what a:has-text('{task}')")
        boss.page.wait_for_url("**/tasks/*")
        boss.page.select_option(f"#f-{who}_id", label=name)
        boss.go("Save")
        assert name in boss.words
    boss.open("/board")
    card = boss.page.locator("li.unit-card", has_text="Unit U8")
    card.locator("summary").click()  # 1
    with boss.page.expect_navigation():
        card.locator("button", has_text="Standard turn").click()  # 2
    boss.open(f"/turns/{turn['entity_id']}")
    rows = [" ".join(row.split()) for row in boss.page.locator("#tasks tbody tr").all_inner_texts()]
    expected = (("Trash-out", "Ada Okoro"), ("Paint", "Bright Paint"), ("Keys", "Unassigned"))
    assert len(rows) == 3 and all(name in row and who in row for row, (name, who) in zip(rows, expected, strict=True))
    boss.page.check("#tasks tr:has-text('Keys') input[name=task]")
    boss.go("Assign")
    boss.page.select_option("#f-assignee_id", label="Ada Okoro")
    boss.go("Assign 1 task")
    assert "Ada Okoro" in boss.page.inner_text("#tasks tr:has-text('Keys')")

    ada = work.person(work.ada, **PHONE)
    ada.open("/")
    ada.page.tap("nav.tabs-mobile >> text=My work")
    ada.page.wait_for_url("**/my-work")
    ada.fits()
    stretches = {
        section.locator("h2").inner_text(): section.locator("li a.t").all_inner_texts()
        for section in ada.page.locator("main section.card").all()
    }
    assert stretches["Today"] == ["Trash-out"] and stretches["Tomorrow"] == ["Furnace filters"]
    assert "Keys" in stretches["No date"] and stretches["Later"] == ["Winter windows"]
    assert "Gas smell" in [title for titles in stretches.values() for title in titles]
    with ada.page.expect_navigation():
        ada.page.locator("li.work-row", has_text="Trash-out").locator("button").tap()
    assert ada.path == "/my-work" and "Trash-out" not in ada.page.locator("li a.t").all_inner_texts()


def test_the_later_of_two_people_is_refused_with_what_is_true_now(work: Work) -> None:
    path = work.ticket("Two at once")
    ada, boss = work.person(work.ada), work.person(work.company.email)
    for person in (ada, boss):
        person.open(path)
    boss.page.click("#complete > summary")
    boss.fill(**{"f-note": DONE})
    ada.go("Put on hold")
    boss.page.locator(".sub", has_text="On Hold").wait_for()  # live; what is typed stays
    assert boss.page.input_value("#f-note") == DONE
    boss.go("Complete ticket")
    assert "On Hold" in boss.page.inner_text(REFUSED) and work.record(path)["status"] == "On Hold"
    assert boss.page.input_value("#f-note") == DONE
    boss.go("Complete ticket")
    assert "Ticket completed" in boss.words and work.record(path)["status"] == "Completed"

    path = work.ticket("Two hands")
    for person in (ada, boss):
        person.open(f"{path}/assign")
        person.page.select_option("#f-assignee_id", work.staff["Ada Okoro" if person is ada else "Ben Roe"])
    ada.send(f"{path}/assign")
    boss.send(f"{path}/assign")
    assert (
        "Meanwhile this was assigned to Ada Okoro" in boss.words
        and work.record(path)["assignee"]["name"] == "Ada Okoro"
    )
    boss.send(f"{path}/assign")
    assert work.record(path)["assignee"]["name"] == "Ben Roe"

    ada.open(f"{path}/edit")
    boss.open(f"{path}/edit")
    ada.fill(**{"f-title": "Two hands, by Ada"})
    ada.send(f"{path}/edit")
    boss.fill(**{"f-title": "Two hands, by the boss", "f-description": "Written meanwhile"})
    boss.send(f"{path}/edit")
    assert "Two hands, by Ada" in boss.page.inner_text("main .error")
    values = [boss.page.input_value(f"#f-{name}") for name in ("title", "description")]
    assert values == ["Two hands, by the boss", "Written meanwhile"]
    assert work.record(path)["title"] == "Two hands, by Ada"
    boss.send(f"{path}/edit")
    record = work.record(path)
    assert [record["title"], record["description"]] == values


def test_without_script_the_same_is_done(work: Work) -> None:
    path = work.ticket("Plain forms")
    person = work.person(work.ada, java_script_enabled=False)
    person.open(path)
    person.fill(**{"f-body": "Without script"})
    person.send(f"{path}/comment")
    assert "Comment added" in person.words and "Without script" in person.words
    person.open(f"{path}/assign")
    person.page.select_option("#f-assignee_id", work.staff["Ada Okoro"])
    person.send(f"{path}/assign")
    assert work.record(path)["assignee"]["name"] == "Ada Okoro"
    person.page.click("#complete > summary")
    person.fill(**{"f-note": "Too short"})
    person.go("Complete ticket")
    assert "5 or more words" in person.words and person.page.input_value("#f-note") == "Too short"
    person.fill(**{"f-note": DONE})
    person.go("Complete ticket")
    assert "Ticket completed" in person.words and work.record(path)["status"] == "Completed"
