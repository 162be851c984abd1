"""Imports: the first look at a file, the form that matches its columns, and the names of files."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import openpyxl
import pytest

from console.areas.imports import matching
from console.areas.imports.pages import NAME_BYTES_MAX, _file_name, _rejects_name
from console.imports.looking import COLUMNS_MAX, SAMPLE_CHARACTERS, Facts, Seen, guessed, look, matched
from importing import mapping_file
from importing.errors import ImportFault
from importing.kinds import KINDS
from importing.rows import Reading

from .browsing import Browser

TICKETS, PROPERTIES, UNITS = KINDS["tickets"], KINDS["properties"], KINDS["units"]
ZONE = "America/New_York"


def looked(tmp_path: Path, name: str, content: bytes, **reading: str) -> Facts:
    """The facts of a file, as the page reads them from the job."""
    path = tmp_path / name
    path.write_bytes(content)
    return msgspec.json.decode(msgspec.json.encode(look(path, Reading(**reading))), type=Facts)


def names(facts: Facts) -> list[str]:
    return [column.name for column in facts.columns]


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("sites.csv", "sites.csv"),
        ("SITES.CSV.GZ", "SITES.csv.gz"),
        ("..csv", "file.csv"),
        (".csv", "file.csv"),
        ("...hidden.xlsx", "hidden.xlsx"),
        ("sites.csv.exe", ""),
        ("sites", ""),
        ("", ""),
        ("a\udcff.jsonl", "a?.jsonl"),
    ],
)
def test_a_file_has_a_name_that_can_be_read(name: str, stored: str) -> None:
    assert _file_name(name) == stored


def test_a_long_name_keeps_its_ending() -> None:
    name = _file_name("ö" * 500 + ".jsonl.gz")
    assert name.endswith("ö.jsonl.gz") and len(name.encode()) <= NAME_BYTES_MAX + len(".jsonl.gz")
    assert _rejects_name("Größe.xlsx", "units") == "Größe.rejects-units.csv"


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path: Path) -> None:
    for encoding in ("utf-8-sig", "utf-16"):
        facts = looked(tmp_path, "a.csv", "external_id,name,address\nP1,Größe,Elm St\n".encode(encoding))
        assert names(facts) == ["external_id", "name", "address"]
        assert (facts.kind, facts.is_plain, facts.rows) == ("properties", True, 1)


def test_an_encoding_is_found_and_a_wrong_one_is_refused(tmp_path: Path) -> None:
    text = "id;straße;größe\nA;Müllerstraße 1;1.234,50\nB;Größe-Allee 2;98,00\n"
    facts = looked(tmp_path, "a.csv", text.encode("cp1252"))
    assert names(facts) == ["id", "straße", "größe"]
    assert facts.description == "read as Windows-1252, separated by semicolons"
    with pytest.raises(ImportFault, match="is not UTF-8"):
        looked(tmp_path, "a.csv", text.encode("cp1252"), encoding="utf-8", delimiter=";")


def test_a_file_without_rows_is_refused_or_has_its_columns(tmp_path: Path) -> None:
    for content in (b"", b"\n\n", b"\xef\xbb\xbf"):
        for name in ("a.csv", "a.jsonl", "a.xlsx"):
            with pytest.raises(ImportFault):
                looked(tmp_path, name, content)
    facts = looked(tmp_path, "one.csv", b"Site Code,Site Name,Street")
    assert (names(facts), facts.rows, facts.kind) == (["Site Code", "Site Name", "Street"], 0, "properties")
    assert all(not column.samples for column in facts.columns)


def test_a_workbook_shows_its_cells_as_the_import_reads_them(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    assert book.active is not None
    for row in (["external_id", "property", "name", "square_feet"], ["U1", "P1", "Flat 1", 1234.5]):
        book.active.append(row)
    book.save(tmp_path / "made.xlsx")
    facts = looked(tmp_path, "a.xlsx", (tmp_path / "made.xlsx").read_bytes())
    assert (facts.kind, facts.is_plain) == ("units", True)
    assert facts.columns[-1] == Seen("square_feet", ("1234.5",))


def test_many_columns_are_matched_and_too_many_are_cut(tmp_path: Path) -> None:
    wide = [f"c{n}" for n in range(497)] + ["id", "name", "address"]
    row = ",".join("x" * 200 for _ in wide)
    facts = looked(tmp_path, "a.csv", f"{','.join(wide)}\n{row}\n".encode())
    assert (len(facts.columns), facts.more, facts.kind) == (500, 0, "properties")
    assert {len(text) for column in facts.columns for text in column.samples} == {SAMPLE_CHARACTERS}
    many = ",".join(f"c{n}" for n in range(COLUMNS_MAX + 3)).encode()
    assert looked(tmp_path, "a.csv", many + b"\n").more == 3
    lines = b"".join(b'{"c%d": 1}\n' % n for n in range(400)) + b'{"d": 1}\n' * 200
    assert len(looked(tmp_path, "a.jsonl", lines).columns) == 401


def test_hostile_texts_of_a_file_are_stored_as_text(tmp_path: Path) -> None:
    lines = (
        b'{"<script>": "\\udcff"}',
        b'{"\\ud800": "x"}',
        b'{"id": "\\u0000"}',
        b'{"id": {"a": [1]}}',
        b'{"id": "1"}',
    )
    facts = looked(tmp_path, "a.jsonl", b"\n".join(lines))
    assert {"<script>", "id"} >= set(names(facts)) and facts.rows == len(lines)


def test_names_are_matched_by_their_last_words() -> None:
    columns = ["LOCATION_ZIPCODE", "Property_ID", "CASE_ENQUIRY_ID", "OPEN_DT", "CASE_TITLE", "TYPE", "caseStatus"]
    assert matched(TICKETS, columns) == {
        "external_id": "CASE_ENQUIRY_ID",
        "property": "Property_ID",
        "title": "CASE_TITLE",
        "category": "TYPE",
        "status": "caseStatus",
        "created_at": "OPEN_DT",
    }


HOSTILE_COLUMNS = ['Na"me', "Line\nbreak", "{brace}", "a = b", "\\", "Opened"]
HOSTILE_FACTS = Facts(tuple(Seen(name, ("1", "2")) for name in HOSTILE_COLUMNS))


def test_a_form_becomes_a_mapping_and_the_form_again() -> None:
    sent = {
        "from.external_id": 'column:Na"me',
        "from.property": "column:Line\r\nbreak",  # as a browser sends it
        "from.title": "template",
        "text.title": 'At {a = b}\r\n"now"',
        "from.category": "column:a = b",
        "rule.category": "values",
        "detail.category": "x=y = Plumbing\r\n\\ = HVAC",
        "from.created_at": "column:Opened",
        "rule.created_at": "date",
        "detail.created_at": "%d.%m.%Y %H:%M",
        "from.source": "constant",
        "text.source": "Legacy \x7f",
        "duplicates": "keep-first",
    }
    choices = matching.read(TICKETS, HOSTILE_FACTS, sent)
    assert not choices.has_errors
    toml = matching.written(choices, ZONE)
    mapping_file.parsed(toml, "The mapping", TICKETS)
    fields: dict[str, Any] = tomllib.loads(toml)["fields"]
    assert fields["property"] == "Line\nbreak"
    assert fields["category"]["values"] == {"x=y": "Plumbing", "\\": "HVAC"}
    assert fields["created_at"] == {"column": "Opened", "date": "%d.%m.%Y %H:%M", "timezone": ZONE}
    again = matching.from_toml(TICKETS, HOSTILE_FACTS, toml, ZONE)
    assert again is not None and matching.written(again, ZONE) == toml


@pytest.mark.parametrize(
    "more",
    [
        'title = { column = "Opened", empty = ["N/A"] }',
        'title = { column = "another file\'s" }',
        'created_at = { column = "Opened", date = "%d.%m.%Y", timezone = "Asia/Tokyo" }',
        'title = { column = "Opened", values = { "a\\nb" = "c" } }',
        'title = { column = "Opened", values = { a = "b=c" } }',
    ],
)
def test_a_mapping_that_says_more_than_the_form_stays_toml(more: str) -> None:
    toml = f'kind = "tickets"\nignore = ["*"]\n[fields]\n{more}\n'
    assert matching.from_toml(TICKETS, HOSTILE_FACTS, toml, ZONE) is None


def test_what_a_form_lacks_is_said_beside_its_field() -> None:
    sent = {
        "from.external_id": "column:gone",
        "from.name": "constant",
        "from.year_built": "script",
        "from.city": "column:Opened",
        "rule.city": "values",
        "detail.city": "no sign",
        "from.created_at": "column:Opened",
        "rule.created_at": "date",
    }
    answer = matching.read(PROPERTIES, HOSTILE_FACTS, sent)
    assert {choice.column.name: choice.error for choice in answer.choices if choice.error} == {
        "external_id": "That column is not in the file.",
        "name": "Enter the text.",
        "address": "Required: choose a column.",
        "city": "Each line must be: file value = Makeready value.",
        "created_at": "Enter the date format.",
    }


def test_proposals_read_the_dates_and_list_the_values() -> None:
    columns = (
        Seen("TYPE", ("Heat", "x" * SAMPLE_CHARACTERS, "two\nlines")),
        Seen("OPEN_DT", ("31/01/2015", "02/02/2015")),
    )
    proposal = {choice.column.name: choice for choice in matching.proposed(TICKETS, Facts(columns)).choices}
    assert (proposal["category"].rule, proposal["category"].detail) == ("values", "Heat = ")
    assert (proposal["created_at"].rule, proposal["created_at"].detail) == ("date", "%d/%m/%Y")


async def test_accepted_rows_in_an_unusual_order_of_dates_are_shown_before_the_import(administrator: Browser) -> None:
    page = await administrator.get("/imports/13")
    warning = page.words[page.words.index("Check these rows") :]
    assert "accepted, but their dates are in an unusual order" in warning
    assert "2 turns: move_out_date : is before the move_in_date column MoveOut" in warning
    assert (
        "17 move_out_date is before the move_in_date, 2026-02-01 2026-01-31" in warning and "Import 120 rows" in warning
    )
    assert "Check these rows" not in (await administrator.get("/imports/5")).words


@pytest.mark.parametrize(
    "columns",
    [
        ["Work Order #", "Property", "Unit", "Problem", "Trade", "Priority", "Status", "Reported", "Completed"],
        ["WO#", "Property", "Unit", "Brief Desc", "Category", "Priority", "Status", "Call Date", "Completed Date"],
        ["Work Order Number", "Property", "Unit", "Status", "Work Order Type", "Job Description", "Created On"],
        ["SR #", "Community", "Apt", "Issue", "Issue Type", "Date Reported", "Date Completed", "Technician"],
        ["Task ID", "Subject", "Category", "Priority", "Status", "Property", "Unit", "Assigned to", "Created", "Due"],
    ],
)
def test_work_orders_of_other_programs_are_tickets_with_all_that_they_need(columns: list[str]) -> None:
    assert guessed(columns) is TICKETS
    sources = matched(TICKETS, columns)
    assert set(TICKETS.required) <= sources.keys() and sources["property"] in ("Property", "Community")


def test_dates_of_a_workbook_have_the_companys_timezone_also_without_a_time() -> None:
    seen = [Seen("Id", ("1",)), Seen("Opened", ("2026-06-01T14:30:00", "2026-06-02")), Seen("Property", ("P",))]
    match = matching.proposed(TICKETS, Facts(tuple(seen), reading=Reading(sheet="Orders")))
    fields = tomllib.loads(matching.written(match, ZONE))["fields"]
    assert fields["created_at"] == {
        "column": "Opened", "date": ["%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S.%f", "%Y-%m-%d"], "timezone": ZONE,
    }  # fmt: skip
    again = matching.from_toml(TICKETS, Facts(tuple(seen)), matching.written(match, ZONE), ZONE)
    assert again is not None and again.choices == match.choices


async def test_an_undo_and_an_import_say_beforehand_what_they_do(administrator: Browser) -> None:
    page = await administrator.get("/imports/15")
    assert "Nothing has been changed yet" in page.words and "units stay, because tickets refer to them" in page.words
    page = await administrator.get("/imports/14")
    assert "All 569 rows have the name “Main Campus”." in page.words
    assert "Import 569 rows" in page.words


async def test_an_undo_asks_its_person_to_confirm_who_they_are(signed_in: Callable[..., Browser]) -> None:
    dana = signed_in("dana@demo.example", confirmed=False)
    await dana.get("/imports/15")
    page = await dana.send("/imports/15/undo")
    assert page.status == 403 and "Confirm" in page.words
    assert "Undo checked, not done" in (await dana.get("/imports/15")).words
