"""Boston's 311 cases of 2015: nineteen types of housing and building complaints become tickets.

`--hypothesis-profile=nightly` imports all cases; else a quarter of them.
"""

from __future__ import annotations

import csv
import datetime
import gzip
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from .real_files import collapsed, counts, imported, rejects, rows_of, some_of
from .system import System

BOSTON = ZoneInfo("America/New_York")
CASES, TYPES, WITHOUT_PLACE = 14_371, 19, 15


@pytest.fixture(scope="module")
def cases(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All files of cases with the same columns, joined into one."""
    file = tmp_path_factory.mktemp("boston") / "cases.csv"
    header = b""
    with file.open("wb") as stream:
        for part in sorted((data / "boston-311-housing").glob("*.csv*")):
            whole = gzip.decompress(part.read_bytes()) if part.suffix == ".gz" else part.read_bytes()
            first, _, later = whole.partition(b"\n")
            if header in (b"", first):  # the files of heating cases of later years have other columns
                stream.write(later if header else whole)
                header = first
    return file


def utc(text: str) -> str | None:
    """A local time of the file, as the API prints it."""
    if not text:
        return None
    local = datetime.datetime.strptime(text, "%m/%d/%Y %I:%M:%S %p").replace(tzinfo=BOSTON)
    return local.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def test_bostons_cases_become_tickets_with_their_dates_and_closing_reasons(
    system: System, cases: Path, tmp_path: Path
) -> None:
    every = rows_of(cases)
    assert len(every) == CASES and len({row["TYPE"] for row in every}) == TYPES
    rows, file = some_of(every, cases, tmp_path, lambda row: not row["Property_ID"])
    placed = {row["CASE_ENQUIRY_ID"]: row for row in rows if row["Property_ID"]}
    places = {(row["Property_Type"], row["Property_ID"]) for row in placed.values()}
    company = system.company("Boston")

    report = imported(company, "properties", file, "boston-properties", rejected=WITHOUT_PLACE)
    assert counts(report) == (len(places), 0, len(placed) - len(places), WITHOUT_PLACE)
    report = imported(company, "tickets", file, "boston-cases", rejected=WITHOUT_PLACE)
    assert counts(report) == (len(placed), 0, 0, WITHOUT_PLACE)
    # A case without a place has no property. Its row is rejected, as such a ticket would never be served.
    assert {(row["reject_field"], row["Property_ID"]) for row in rejects(report)} == {("property", "")}

    served = {ticket["external_id"]: ticket for ticket in company.walk("/tickets")}
    assert served.keys() == placed.keys()
    categories: dict[str, set[str]] = {}
    for case, row in placed.items():
        ticket = served[case]
        categories.setdefault(row["TYPE"], set()).add(ticket["category"])
        assert ticket["title"] == collapsed(row["CASE_TITLE"])
        assert ticket["subcategory"] == collapsed(row["TYPE"])
        assert ticket["description"] == (collapsed(row["CLOSURE_REASON"]) or None)
        assert ticket["status"] == {"Open": "Open", "Closed": "Completed"}[row["CASE_STATUS"]]
        assert ticket["created_at"] == utc(row["OPEN_DT"])
        assert ticket["completed_at"] == utc(row["CLOSED_DT"])
        assert ticket["photo_url"] == (row["SubmittedPhoto"] or None)
        assert ticket["property"]["external_id"] == f"{row['Property_Type']} {row['Property_ID'].removesuffix('.0')}"
        assert row["LOCATION_STREET_NAME"].split()[0] in ticket["property"]["name"]
    assert len(categories) == TYPES and all(len(reasons) == 1 for reasons in categories.values())
    assert len({reason for reasons in categories.values() for reason in reasons}) >= 10

    again = imported(company, "tickets", file, "boston-cases", rejected=WITHOUT_PLACE)
    assert counts(again) == (0, 0, len(placed), WITHOUT_PLACE)


def test_cases_without_their_close_dates_are_closed_at_an_unknown_time(
    system: System, data: Path, tmp_path: Path
) -> None:
    """The moment of the import is no close date; a later file that knows the dates sets them."""
    whole = data / "boston-311-housing" / "Plumbing.csv"
    rows = rows_of(whole)
    without = tmp_path / "Plumbing.csv"
    with without.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(row | {"CLOSED_DT": ""} for row in rows)
    nowhere = sum(not row["Property_ID"] for row in rows)
    closed = {row["CASE_ENQUIRY_ID"]: row for row in rows if row["Property_ID"] and row["CASE_STATUS"] == "Closed"}
    assert len(closed) > 400
    company = system.company("Boston without close dates")
    imported(company, "properties", whole, "boston-properties", rejected=nowhere)
    imported(company, "tickets", without, "boston-cases", rejected=nowhere)
    served = {ticket["external_id"]: ticket for ticket in company.walk("/tickets")}
    assert {(served[case]["status"], served[case]["completed_at"]) for case in closed} == {("Completed", None)}
    report = imported(company, "tickets", whole, "boston-cases", rejected=nowhere)
    assert counts(report) == (0, len(closed), len(served) - len(closed), nowhere)
    served = {ticket["external_id"]: ticket for ticket in company.walk("/tickets")}
    assert all(served[case]["completed_at"] == utc(row["CLOSED_DT"]) for case, row in closed.items())
