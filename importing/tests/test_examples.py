"""The example mappings on the files that they are written for."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import pytest

from importing import mapping_file
from importing.kinds import KINDS
from importing.shapes import Mapped
from testkit.requirements import lacks

from .conftest import Rows

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("MAKEREADY_TEST_DATA") or ROOT.parent / "shared" / "data")
PLUMBING = DATA / "boston-311-housing" / "Plumbing.csv"


def here(path: Path) -> Path:
    """The file of public data. Skips the test without it."""
    if not path.exists():
        lacks("public-data", f"{path} is not here")
    return path


@pytest.fixture
def plumbing() -> Path:
    return here(PLUMBING)


needs_boston = pytest.mark.usefixtures("plumbing")


def mapped(kind: str, name: str, path: Path, rows: Rows) -> list[dict[str, str]]:
    shape = Mapped(mapping_file.load(ROOT / "examples" / "mappings" / name, KINDS[kind]))
    source_rows = rows(path)
    assert all(row.fault is None for row in source_rows)
    shape.check_columns(path.name, list(source_rows[0].values))
    return [json.loads(shape.row(row)[1]) for row in source_rows]


@needs_boston
def test_bostons_plumbing_cases_become_tickets(rows: Rows) -> None:
    tickets = mapped("tickets", "boston-cases.toml", PLUMBING, rows)
    assert len(tickets) == 473
    assert tickets[0] == {
        "external_id": "101001242597",
        "title": "Plumbing",
        "category": "Plumbing",
        "subcategory": "Plumbing",
        "description": "Case Closed :",
        "photo_url": "",
        "property": "Address 286744",
        "priority": "Medium",
        "status": "Completed",
        "created_at": "2015-01-05T21:07:12.000000Z",
        "completed_at": "2015-03-18T17:45:31.000000Z",
    }
    assert {(ticket["status"], ticket["completed_at"] != "") for ticket in tickets} == {
        ("Open", False),
        ("Completed", True),
    }


@needs_boston
def test_every_building_of_bostons_cases_becomes_one_property(rows: Rows) -> None:
    properties = mapped("properties", "boston-properties.toml", PLUMBING, rows)
    assert properties[0] == {
        "external_id": "Address 286744",
        "name": "121 Old Harbor St, South Boston / South Boston Waterfront",
        "address": "121 Old Harbor St",
        "city": "Boston",
        "state": "MA",
        "postal_code": "02127",
    }
    by_id = {record["external_id"]: record for record in properties}
    assert len(by_id) == 420
    assert all(record == by_id[record["external_id"]] for record in properties)
    tickets = mapped("tickets", "boston-cases.toml", PLUMBING, rows)
    assert {ticket["property"] for ticket in tickets} == set(by_id)


@needs_boston
def test_nothing_that_the_mapping_reads_is_lost(rows: Rows) -> None:
    tickets = mapped("tickets", "boston-cases.toml", PLUMBING, rows)
    with PLUMBING.open(newline="") as stream:
        cases = list(csv.DictReader(stream))
    for ticket, case in zip(tickets, cases, strict=True):
        assert ticket["external_id"] == case["CASE_ENQUIRY_ID"]
        assert ticket["description"] == " ".join(case["CLOSURE_REASON"].split())
        assert f"{ticket['property']}.0" == f"{case['Property_Type']} {case['Property_ID']}"


@pytest.mark.parametrize(("snapshot", "many"), [("2026-06-28", 3604), ("2026-08-22", 3611)])
def test_torontos_registrations_become_properties(rows: Rows, snapshot: str, many: int) -> None:
    path = here(DATA / "toronto-rentsafe" / f"registrations_{snapshot}.csv.gz")
    properties = mapped("properties", "toronto-registrations.toml", path, rows)
    assert len({record["external_id"] for record in properties}) == len(properties) == many
    (tower,) = (record for record in properties if record["external_id"] == "4154469")
    assert tower == {
        "external_id": "4154469",
        "name": "390 SENTINEL RD",
        "address": "390 SENTINEL RD",
        "city": "Toronto",
        "state": "ON",
        "postal_code": "M3J",
        "unit_count": "53",
        "year_built": "1970",
        "created_at": "2017-01-01",
        "building_type": "Private",
    }
    assert {record["building_type"] for record in properties} == {
        "",
        "Private",
        "Toronto Community Housing",
        "Social housing",
    }
    assert all(record["address"] and record["unit_count"] for record in properties)
