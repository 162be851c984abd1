"""Real registrations and real cases, imported, then walked page by page and compared with their files."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import pytest
from system import System

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "mappings"


def test_torontos_registrations_become_properties(system: System, data: Path) -> None:
    file = data / "toronto-rentsafe" / "registrations_2026-08-22.csv.gz"
    with gzip.open(file, "rt", encoding="utf-8", newline="") as source:
        rows = {row["RSN"]: row for row in csv.DictReader(source)}
    company = system.company("Toronto")
    mapping = str(EXAMPLES / "toronto-registrations.toml")
    words = ("import", str(company.company_id), "properties", str(file), "--mapping", mapping)
    report = system.makeready(*words)
    assert (report["read"], report["created"], report["rejected"]) == (3611, 3611, 0)
    served = {record["external_id"]: record for record in company.walk("/properties")}
    assert served.keys() == rows.keys()
    for rsn, row in rows.items():
        record = served[rsn]
        assert " ".join(row["SITE_ADDRESS"].split()) == record["address"]
        assert record["postal_code"] == (row["PCODE"].strip() or None)
        assert record["unit_count"] == (int(row["CONFIRMED_UNITS"]) if row["CONFIRMED_UNITS"] else record["unit_count"])
        assert record["year_built"] == (int(row["YEAR_BUILT"]) if row["YEAR_BUILT"] else None)
        assert record["city"] == "Toronto" and record["source"] == "import"
    again = system.makeready(*words)
    assert (again["created"], again["changed"], again["unchanged"]) == (0, 0, 3611)


def test_bostons_plumbing_cases_become_tickets(system: System, data: Path) -> None:
    file = data / "boston-311-housing" / "Plumbing.csv"
    with file.open(encoding="utf-8", newline="") as source:
        rows = {row["CASE_ENQUIRY_ID"]: row for row in csv.DictReader(source)}
    company = system.company("Boston")
    for kind, mapping in (("properties", "boston-properties.toml"), ("tickets", "boston-plumbing.toml")):
        words = ("import", str(company.company_id), kind, str(file), "--mapping", str(EXAMPLES / mapping))
        report = system.makeready(*words)
        assert report["rejected"] == 0, report
    assert report["read"] == report["created"] == len(rows) == 473
    served = {record["external_id"]: record for record in company.walk("/tickets")}
    assert served.keys() == rows.keys()
    for case, row in rows.items():
        ticket = served[case]
        assert ticket["title"] == row["CASE_TITLE"] and ticket["category"] == "Plumbing"
        assert ticket["status"] == {"Open": "Open", "Closed": "Completed"}[row["CASE_STATUS"]]
        assert (ticket["completed_at"] is None) == (row["CASE_STATUS"] == "Open")
        assert row["CLOSURE_REASON"].strip() in (ticket["description"] or "")
    assert system.makeready(*words)["unchanged"] == 473


@pytest.mark.parametrize("limit", [1, 7, 50])
def test_every_page_size_walks_the_demo_company_alike(system: System, limit: int) -> None:
    from system import Company

    demo = system.demo
    company = Company(system, demo["company_id"], demo["administrator"]["email"], demo["keys"])
    company.keys["read"] = system.mint(company.company_id, "read", company.email)
    whole = [record["entity_id"] for record in company.walk("/assets")]
    company.keys["read"] = system.mint(company.company_id, "read", company.email)
    assert [record["entity_id"] for record in company.walk("/assets", limit)] == whole
