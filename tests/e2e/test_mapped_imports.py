"""Files that repeat a record, imported with each policy for duplicates."""

from __future__ import annotations

import json

import pytest

from .real_files import EXAMPLES, counts, rejects
from .system import Company, System

MAPPING = """
kind = "properties"
duplicates = "{duplicates}"

[fields]
external_id = "house"
name = "street"
address = {{ column = "street", pattern = '(.*?)(?: \\(rear\\))?' }}
unit_count = {{ column = "flats", steps = {{ 1 = 1, 5 = 50 }} }}
"""
# The second row maps to the same values as the first, the third to others; the fourth is another record.
FILE = "house,street,flats\nA,1 Elm St,4\nA, 1 Elm St,3\nA,2 Ash St,9\nB,3 Oak St (rear),7\n"


@pytest.fixture(scope="module")
def company(system: System) -> Company:
    return system.company("Mapped")


@pytest.mark.parametrize(
    ("duplicates", "created", "unchanged", "lines"),
    [
        ("reject", 2, 0, {"3": "line 2 of the file already", "4": "line 2 of the file already"}),
        ("skip-identical", 2, 1, {"4": "line 2 of the file already, with other values"}),
        ("keep-first", 2, 2, {}),
    ],
)
def test_a_later_row_of_a_record_is_rejected_or_passed_over_as_the_mapping_says(
    company: Company, duplicates: str, created: int, unchanged: int, lines: dict[str, str]
) -> None:
    file, mapping = (company.system.state / f"{duplicates}.{suffix}" for suffix in ("csv", "toml"))
    file.write_text(FILE)
    mapping.write_text(MAPPING.format(duplicates=duplicates))
    words = ("import", str(company.company_id), "properties", str(file), "--mapping", str(mapping), "--dry-run")
    report = company.system.makeready(*words, status=3 if lines else 0)
    assert counts(report) == (created, 0, unchanged, len(lines))
    reasons = {row["reject_line"]: row["reject_reason"] for row in rejects(report)}
    assert reasons.keys() == lines.keys() and all(words in reasons[line] for line, words in lines.items())


def test_the_first_of_several_rows_of_a_record_is_what_is_served(company: Company) -> None:
    file, mapping = (company.system.state / f"kept.{suffix}" for suffix in ("csv", "toml"))
    file.write_text(FILE)
    mapping.write_text(MAPPING.format(duplicates="keep-first"))
    words = ("import", str(company.company_id), "properties", str(file), "--mapping", str(mapping))
    assert counts(company.system.makeready(*words)) == (2, 0, 2, 0)
    served = {
        record["external_id"]: (record["name"], record["address"], record["unit_count"])
        for record in company.walk("/properties")
    }
    assert served == {"A": ("1 Elm St", "1 Elm St", 1), "B": ("3 Oak St (rear)", "3 Oak St", 50)}
    assert counts(company.system.makeready(*words)) == (0, 0, 4, 0)


SEVERAL = """
encoding = "windows-1252"
delimiter = ";"
duplicates = "keep-first"

[[records]]
kind = "tickets"
[records.skip]
fault = "blank"
[records.fields]
external_id = { hash = ["house", "flat", "fault"] }
property = "house"
unit = { template = "{house}/{flat}" }
title = "fault"
category = { constant = "General" }
status = { constant = "Completed", when = { days = { not = "blank" } }, default = "Open" }
created_at = { column = "opened", date = "%d.%m.%Y", timezone = "Europe/Berlin" }
completed_at = { column = "opened", date = "%d.%m.%Y", timezone = "Europe/Berlin", plus_days = "days" }

[[records]]
kind = "units"
[records.fields]
external_id = { template = "{house}/{flat}" }
property = "house"
name = { template = "Flat {flat}" }
square_feet = { column = "area", number = { decimal = ",", thousands = "." } }
floorplan = { template = "Plan of {house}/{flat}" }

[[records]]
kind = "properties"
[records.fields]
external_id = "house"
name = "street"
address = "street"
"""
HOUSES = """house;street;flat;area;fault;opened;days
H1;Müllerstraße 1;1;1.200;Tür klemmt;31.01.2024;1.5
H1;Müllerstraße 1;2;800;;;
H1;Müllerstraße 1;2;800;Licht flackert;01.02.2024;
H2;Größe-Allee 2;1;viel;Wasser tropft;01.02.2024;
"""


def test_one_file_makes_several_kinds_of_record_in_one_run(system: System) -> None:
    company = system.company("Several kinds")
    file, mapping = system.state / "several.csv", system.state / "several.toml"
    file.write_bytes(HOUSES.encode("cp1252"))
    mapping.write_text(SEVERAL)
    words = ("import", str(company.company_id), "all", str(file), "--mapping", str(mapping))
    expected = [("properties", 2, 2, 0), ("units", 2, 1, 1), ("tickets", 2, 0, 1)]
    for options in (["--dry-run"], []):
        done = system.run("--json", *words, *options)
        assert done.returncode == 3, done.stderr
        report = json.loads(done.stdout)
        kind_counts = [(kind["kind"], kind["created"], kind["unchanged"], kind["rejected"]) for kind in report["kinds"]]
        assert kind_counts == expected, (options, done.stderr)
        assert counts(report) == (6, 0, 3, 2)
        assert done.stderr.splitlines()[0] == "several.csv: read as Windows-1252, separated by semicolons."
    units, tickets = (report["kinds"][place]["rejects_file"] for place in (1, 2))
    assert units.endswith("several.2.rejects-units.csv") and tickets.endswith("several.2.rejects-tickets.csv")
    assert 'square_feet: "viel" is not a number in the format of the mapping (column "area")' in done.stderr
    assert '(the value is "H2/1"; column "house", "flat")' in done.stderr

    again = json.loads(system.run("--json", *words).stdout)
    assert counts(again) == (0, 0, 9, 2)
    for place, kind in ((1, "units"), (2, "tickets")):
        rejected = system.state / report["kinds"][place]["rejects_file"]
        rejected.write_bytes(rejected.read_bytes().replace(b"viel", b"900"))
        mended = system.makeready("import", str(company.company_id), kind, str(rejected), "--mapping", str(mapping))
        assert counts(mended) == (1, 0, 0, 0)
    served = {ticket["title"]: ticket for ticket in company.walk("/tickets")}
    assert {title: ticket["status"] for title, ticket in served.items()} == {
        "Tür klemmt": "Completed",
        "Licht flackert": "Open",
        "Wasser tropft": "Open",
    }
    assert served["Tür klemmt"]["created_at"].startswith("2024-01-30T23:00:00")
    assert served["Tür klemmt"]["completed_at"].startswith("2024-02-01T11:00:00")
    assert {record["name"] for record in company.walk("/properties")} == {"Müllerstraße 1", "Größe-Allee 2"}


def test_equal_reasons_are_counted_and_ten_of_their_rows_reported(company: Company) -> None:
    file, mapping = company.system.state / "heat.csv", company.system.state / "heat.toml"
    many = 2_500
    file.write_text("id,place,title\n" + "".join(f"{n},Address {n},Heat\n" for n in range(many)) + "x,,\n")
    mapping.write_text(
        'kind = "tickets"\n[fields]\nexternal_id = "id"\nproperty = "place"\ntitle = "title"\n'
        'category = { constant = "HVAC" }\n'
    )
    words = ("import", str(company.company_id), "tickets", str(file), "--mapping", str(mapping))
    done = company.system.run("--json", *words)
    report = json.loads(done.stdout)
    assert (done.returncode, counts(report)) == (3, (0, 0, 0, many + 1))
    lines = done.stderr.splitlines()
    reason = "property: No property with that external_id is known."
    assert lines[:10] == [f'heat.csv:{n + 2}: {reason} (the value is "Address {n}"; column "place")' for n in range(10)]
    assert lines[-1] == f'Rejected {many} rows: {reason} (column "place")'
    assert len(lines) == 12
    assert len(rejects(report)) == many + 1


def test_the_example_of_a_german_export_is_imported_whole(system: System) -> None:
    company = system.company("Ablesung")
    file, mapping = EXAMPLES.parent / "files" / "ablesung.csv", EXAMPLES / "ablesung.toml"
    report = system.makeready("import", str(company.company_id), "all", str(file), "--mapping", str(mapping))
    assert [(kind["kind"], *counts(kind)) for kind in report["kinds"]] == [
        ("properties", 2, 0, 2, 0),
        ("meters", 2, 0, 2, 0),
        ("readings", 3, 0, 0, 0),
    ]
    (gas, other) = company.walk("/meters")
    readings = [reading for meter in (gas, other) for reading in company.walk(f"/meters/{meter['entity_id']}/readings")]
    assert [(reading["consumption"], reading["cost"]) for reading in readings] == [
        (1234.5, 148.14),
        (1100, 132),
        (987.25, 118.47),
    ]
    assert readings[0]["period_end"].startswith("2026-01-31T23:00:00")
