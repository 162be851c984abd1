"""The longest possible page: 200 tickets with descriptions of the maximum length, 16 MB of JSON."""

from __future__ import annotations

import csv

from .system import System

PAGE, POINTS = 200, 20_000
WIDE = "🏠🛠🚿🪟𝔸𝕫𐍈🀄"  # four bytes each in UTF-8


def description(number: int) -> str:
    """20,000 characters, rotated by the ticket's number."""
    start = number % len(WIDE)
    return (WIDE[start:] + WIDE * (POINTS // len(WIDE) + 1))[:POINTS]


def test_a_page_of_the_longest_tickets_is_served_whole_and_in_order_as_the_second_of_a_walk(system: System) -> None:
    company = system.company("Long pages")
    company.import_rows("properties", [{"external_id": "P", "name": "Elm Court", "address": "1 Elm St"}])
    file = system.state / "long.csv"
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(("external_id", "property", "title", "category", "description"))
        for number in range(2 * PAGE):
            long = description(number) if number >= PAGE else ""
            writer.writerow((f"T{number:03}", "P", f"Ticket {number}", "General", long))
    report = system.makeready("import", str(company.company_id), "tickets", str(file))
    assert report["created"] == 2 * PAGE

    first = system.get("/tickets", company.keys["read"], limit=PAGE)
    second = system.get("/tickets", company.keys["read"], limit=PAGE, cursor=first.json["next_cursor"])
    assert second.status == 200
    assert len(second.body) > PAGE * POINTS * 4
    assert int(second.headers["Content-Length"]) == len(second.body)
    page = second.json
    assert page["next_cursor"] is None
    assert [ticket["external_id"] for ticket in page["data"]] == [f"T{number}" for number in range(PAGE, 2 * PAGE)]
    assert all(ticket["description"] == description(number) for number, ticket in enumerate(page["data"], PAGE))
    ids = [ticket["entity_id"] for ticket in first.json["data"] + page["data"]]
    assert ids == sorted(set(ids))


def test_a_longer_description_is_no_row_of_an_import(system: System) -> None:
    company = system.company("Too long")
    company.import_rows("properties", [{"external_id": "P", "name": "Elm Court", "address": "1 Elm St"}])
    ticket = {"property": "P", "title": "Tap drips", "category": "Plumbing"}
    rows = [
        {"external_id": "longest", **ticket, "description": "🏠" * POINTS},
        {"external_id": "longer", **ticket, "description": "🏠" * (POINTS + 1)},
    ]
    report = company.import_rows("tickets", rows, status=3)
    assert (report["created"], report["rejected"]) == (1, 1)
    assert [ticket["external_id"] for ticket in company.walk("/tickets")] == ["longest"]
