"""`list` and `show` of the command line, against the demo company."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from .system import Company, System

# By noun: the list's rows and the id of one; a record of the demo, and the API's path of its kind.
NOUNS = {
    "ticket": ("tickets", "ticket_id", "T-0009", "/tickets"),
    "property": ("properties", "property_id", "P-500", "/properties"),
    "unit": ("units", "unit_id", "P-100-102", "/units"),
    "asset": ("assets", "asset_id", "A-027", "/assets"),
    "meter": ("meters", "meter_id", "M-100-W", "/meters"),
    "vendor": ("vendors", "vendor_id", "V-09", ""),
    "inspection": ("inspections", "inspection_id", "I-101", ""),
}


@pytest.fixture(scope="module")
def demo(system: System) -> Company:
    system.makeready("wait")
    printed = system.demo
    keys = printed["keys"] | {"read": system.mint(printed["company_id"], "read", printed["administrator"]["email"])}
    return Company(system, printed["company_id"], printed["administrator"]["email"], keys)


def listed(demo: Company, noun: str, *words: str) -> Any:
    return demo.system.makeready(noun, "list", str(demo.company_id), *words)


@pytest.mark.parametrize("noun", NOUNS)
def test_a_record_is_shown_by_its_id_and_by_its_external_id_as_its_list_has_it(demo: Company, noun: str) -> None:
    rows, id_name, external_id, path = NOUNS[noun]
    everything = listed(demo, noun, "--limit", "1000")
    assert everything["next"] is None
    (row,) = (record for record in everything[rows] if record["external_id"] == external_id)
    outputs = [
        demo.system.makeready(noun, "show", str(demo.company_id), *ref, "--as", who)
        for ref in ((str(row[id_name]),), (external_id,))
        for who in (demo.email, "staff:2")
    ]
    assert all(output == outputs[0] for output in outputs)
    if path:
        assert outputs[0] == demo.system.get(f"{path}/{row[id_name]}", demo.keys["read"]).json
    else:
        assert outputs[0][id_name] == row[id_name]
    missing = demo.system.run(noun, "show", str(demo.company_id), "nobody's id")
    assert (missing.returncode, missing.stdout) == (1, "")
    assert missing.stderr == f"makeready: The company has no {noun} with that external_id.\n"


@pytest.mark.parametrize("noun", NOUNS)
def test_pages_and_csv_have_the_rows_of_the_whole_list(demo: Company, noun: str) -> None:
    rows, id_name, _, _ = NOUNS[noun]
    whole = [record[id_name] for record in listed(demo, noun, "--limit", "1000")[rows]]
    assert len(whole) == len(set(whole)) > 7
    first = listed(demo, noun, "--limit", "7")
    second = listed(demo, noun, "--limit", "1000", "--after", str(first["next"]))
    assert [record[id_name] for record in (*first[rows], *second[rows])] == whole
    text = demo.system.run(noun, "list", str(demo.company_id), "--limit", "1000", "--csv").stdout
    assert [int(record[id_name]) for record in csv.DictReader(io.StringIO(text))] == whole


def test_filters_narrow_a_list(demo: Company) -> None:
    (alder_court,) = (record for record in listed(demo, "property")["properties"] if record["external_id"] == "P-100")
    of_property = ("--property-id", str(alder_court["property_id"]), "--limit", "1000")
    tickets = listed(demo, "ticket", *of_property, "--status", "Open", "--status", "On Hold")["tickets"]
    assert {ticket["status"] for ticket in tickets} == {"Open", "On Hold"}
    assert {ticket["property_name"] for ticket in tickets} == {"Alder Court"}
    assert {unit["property"]["name"] for unit in listed(demo, "unit", *of_property)["units"]} == {"Alder Court"}
    ready = listed(demo, "unit", "--unit-status", "Vacant Ready")["units"]
    assert ready and {ready_unit["unit_status"] for ready_unit in ready} == {"Vacant Ready"}
    tickets_by_words = listed(demo, "ticket", "--words", "thermocouple pilot")["tickets"]
    assert [ticket["external_id"] for ticket in tickets_by_words] == ["T-0002"], "by the words of a comment"
    assert listed(demo, "ticket", "--external-id", "T-0002")["tickets"] == tickets_by_words
    assert {vendor["name"] for vendor in listed(demo, "vendor", "--on-hold")["vendors"]} == {
        "Kessler site GC",
        "Tidewater Pest Control",
    }
    failed = listed(demo, "inspection", "--result", "failed", "--status", "Completed")["inspections"]
    assert "I-101" in {inspection["external_id"] for inspection in failed}
    table = demo.system.run("ticket", "list", str(demo.company_id), "--stale", "--limit", "3").stdout.splitlines()
    assert table[0].split()[:4] == ["ID", "STATUS", "PRIORITY", "TITLE"] and len(table) == 5
    assert table[-1].startswith("There are more: --limit for a longer list, --after ")
