"""Files that repeat a record, imported with each policy for duplicates."""

from __future__ import annotations

import pytest

from .real_files import counts, rejects
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
        one["external_id"]: (one["name"], one["address"], one["unit_count"]) for one in company.walk("/properties")
    }
    assert served == {"A": ("1 Elm St", "1 Elm St", 1), "B": ("3 Oak St (rear)", "3 Oak St", 50)}
    assert counts(company.system.makeready(*words)) == (0, 0, 4, 0)
