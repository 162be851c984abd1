"""A unit is let ahead, in a browser, as a property manager does it: notice, planned move-in, another date, a clash, and
all of it taken back."""

from __future__ import annotations

import datetime
from urllib.parse import urlsplit

import pytest

from testkit.clocks import today

from .test_console_work import PHONE, Work, Worker, quiet, work  # noqa: F401 - fixtures

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def day(days: int) -> datetime.date:
    return today() + datetime.timedelta(days=days)


def short(date: datetime.date) -> str:
    """As cards have it: "10 Jan", and with the year if that is another one."""
    return f"{date.day} {date:%b}" + ("" if date.year == today().year else f" {date.year}")


def long(date: datetime.date) -> str:
    return f"{date.day} {date:%B} {date.year}"


def says(person: Worker, words: str) -> None:
    """Waits until the region that says what a form will do has these words."""
    person.page.wait_for_selector(f"#effect >> text={words}")


def card(person: Worker, name: str) -> str:
    """The words of a unit's card on the board."""
    person.open("/board")
    return " ".join(person.page.locator("li.unit-card", has_text=name).inner_text().split())


def notice(person: Worker, work: Work, path: str, leaves: datetime.date) -> None:  # noqa: F811
    """From the unit's address: its property's unit status view, at the unit."""
    person.open(path)
    assert "Units of Elm Court by status" in person.words
    assert person.page.locator(".flat[aria-current=page]").inner_text().startswith("Unit U2")
    person.go("Record notice")
    person.fill(**{"f-move_out_date": leaves.isoformat()})
    person.go("Save notice")
    work.company.shows(work.units["U2"], "Notice")
    assert "Not leased" in card(person, "Unit U2")


def planned_move_in(person: Worker, work: Work, comes: datetime.date) -> str:  # noqa: F811
    """The path of the planned turn. Nothing about the unit changes."""
    unit_id = work.units["U2"]
    person.page.locator("li.unit-card", has_text="Unit U2").locator("summary").click()
    person.go("Move-in …")
    person.fill(**{"f-move_in_date": comes.isoformat(), "f-lease_start_date": comes.isoformat()})
    says(person, f"The move-in is scheduled for {long(comes)}")
    person.fill(**{"p0-f-first_name": "Ana", "p0-f-last_name": "Ortiz"})
    person.go("Save move-in")
    assert "Until then the unit does not change." in person.words
    assert f"Moving in {long(comes)}" in person.words
    assert "current resident" not in person.words and "Moved in" not in person.words
    path = person.path
    assert [turn["status"] for turn in work.company.walk("/turns", unit_id=unit_id)] == ["Active", "Active"]
    assert work.record(f"/units/{unit_id}")["unit_status"] == "Notice"
    assert f"Moving in {short(comes)} Ana Ortiz" in card(person, "Unit U2")
    return path


def clash(person: Worker, work: Work, turn_path: str, comes: datetime.date, stays: datetime.date) -> None:  # noqa: F811
    """The resident stays longer: the form asks before it sends that, and then it is red on every page."""
    unit_id = work.units["U2"]
    person.open(f"/units/{unit_id}/notice")
    person.fill(**{"f-move_out_date": stays.isoformat()})
    says(person, "moves out")
    person.go("Save notice")
    assert "Not saved yet." in person.words
    person.page.check("input[name=sure]")
    person.go("Save notice")
    sentence = f"The current resident moves out {short(stays)}, and the next resident moves in {short(comes)}."
    assert sentence in card(person, "Unit U2")
    unit_path = urlsplit(work.record(f"/units/{unit_id}")["url"]).path
    for page in ("/", "/board?view=list&clashes=1", unit_path, turn_path):
        person.open(page)
        assert sentence in person.words or f"Moving out {long(stays)}" in person.words, page


def test_a_unit_is_let_ahead_and_taken_back(work: Work) -> None:  # noqa: F811
    unit_id, company, later = work.units["U2"], work.company, day(46)
    path = urlsplit(work.record(f"/units/{unit_id}")["url"]).path
    (first,) = company.walk("/turns", unit_id=unit_id)
    inspection = ("--title", "Walk before the move-out", "--inspection-type", "Pre-move-out", "--row", "Keys")
    where = ("--property-id", str(first["property"]["id"]), "--unit-id", str(unit_id), "--as", company.email)
    scheduled = work.system.makeready(
        "inspection", "schedule", str(company.company_id), *where, *inspection, "--scheduled-date", day(25).isoformat()
    )
    person = work.person(work.ada)
    notice(person, work, path, day(32))
    turn_path = planned_move_in(person, work, day(45))
    person.open(turn_path)
    person.go("Move-in date …")
    person.fill(**{"f-move_in_date": later.isoformat()})
    says(person, f"The move-in is scheduled for {long(later)}")
    person.go("Save")
    assert f"Moving in {long(later)}" in person.words
    clash(person, work, turn_path, later, day(50))

    # On a phone nothing is wider than the screen, and every target is large enough.
    phone = work.person(work.ada, **PHONE)
    pages = ("/board", "/board?view=list", path, turn_path, f"{turn_path}/move-in", f"{turn_path}/cancel",
             f"/units/{work.units['U3']}/move-in", f"/turns/{first['entity_id']}", f"/units/{unit_id}/notice",
             f"/units/{unit_id}/transitions")  # fmt: skip
    for page in pages:
        phone.open(page)
        phone.fits()

    # It is taken back: the planned move-in alone, then the notice, with the inspection that was for the departure.
    person.open(f"/turns/{first['entity_id']}")
    person.go("Cancel notice")
    assert f"A move-in is scheduled for {long(later)}. Cancel it first." in person.words
    assert "Walk before the move-out" in person.words
    person.go("Cancel scheduled move-in")
    person.go("Cancel move-in")
    assert "cancelled" in person.words
    assert [turn["status"] for turn in company.walk("/turns", unit_id=unit_id)] == ["Active", "Cancelled"]
    assert "Not leased" in card(person, "Unit U2") and work.record(f"/units/{unit_id}")["unit_status"] == "Notice"
    person.open(f"/turns/{first['entity_id']}")
    person.go("Cancel notice")
    person.page.check("input[name=inspection]")
    person.go("Cancel notice")
    assert "Inspection “Walk before the move-out” cancelled." in person.words
    company.shows(unit_id, "Occupied")
    record = f"/inspections/{scheduled['entity_id']}"
    assert work.system.get(record, company.key_for(scope="read")).status == 404


def test_a_move_in_of_an_empty_unit_waits_for_its_day_and_can_be_put_off(work: Work) -> None:  # noqa: F811
    """Staff put the date on today: it begins at the next sweep. Nobody comes: it is planned again."""
    unit_id, person = work.units["U1"], work.person(work.ada)
    comes, company = day(9), work.company
    person.open(f"/units/{unit_id}/move-in")
    person.fill(**{"f-move_in_date": comes.isoformat(), "f-lease_start_date": comes.isoformat()})
    says(person, "The move-in is scheduled")
    person.fill(**{"p0-f-first_name": "Bo", "p0-f-last_name": "Reed"})
    person.go("Save move-in")
    turn_path = person.path
    before = work.record(f"/units/{unit_id}")["unit_status"]
    assert before != "Occupied"
    person.open(f"{turn_path}/move-in")
    person.fill(**{"f-move_in_date": today().isoformat()})
    says(person, "The turn starts within 15 minutes")
    person.go("Save")
    work.system.makeready("sweep", "stale")
    company.shows(unit_id, "Occupied")
    person.open(turn_path)
    assert "Moved in" in person.words
    person.go("Did not move in")
    person.fill(**{"f-move_in_date": comes.isoformat()})
    says(person, "The move-in is rescheduled")
    person.go("Save")
    assert f"Moving in {long(comes)}" in person.words
    assert work.record(turn_path)["move_in_date"] == comes.isoformat()
    company.shows(unit_id, "Vacant Not Ready")
