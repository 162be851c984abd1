"""The feed of the guide, docs/feed/feed.py: run again, killed in the middle, refused by rows that are wrong."""

from __future__ import annotations

import csv
import datetime
import os
import subprocess
import sys
from pathlib import Path

import pytest

from testkit.patience import PATIENCE_SECONDS

from .system import Company, System

PROGRAM = Path(__file__).parents[2] / "docs" / "feed" / "feed.py"
COLUMNS = ("id", "kind", "unit", "date", "lease_start", "lease_end", "first_name", "last_name", "email", "phone")
UNITS = 5
KILLED_AFTER = (1, 4, 9)  # lines of output


@pytest.fixture(scope="module")
def company(system: System) -> Company:
    company = system.company("Feed")
    company.import_rows("properties", [{"external_id": "P", "name": "Elm Court", "address": "1 Elm St"}])
    company.import_rows(
        "units", [{"external_id": f"U{number}", "property": "P", "name": f"{number}"} for number in range(UNITS + 1)]
    )
    return company


def day(offset: int) -> str:
    """A day so many days from today: further away than timezones differ."""
    return (datetime.datetime.now(datetime.UTC).date() + datetime.timedelta(days=offset)).isoformat()


def rows() -> list[dict[str, str]]:
    """A resident of each unit, who leaves, and one who follows."""
    resident = {"first_name": "Ada", "last_name": "Lee", "email": "ada@example.test", "phone": "555-0100"}
    return [
        row
        for number in range(UNITS)
        for row in (
            {"id": f"L1-{number}", "kind": "move-in", "unit": f"U{number}", "date": day(-200)} | resident,
            {"id": f"N1-{number}", "kind": "notice", "unit": f"U{number}", "date": day(20)},
            {"id": f"L2-{number}", "kind": "move-in", "unit": f"U{number}", "date": day(40), "lease_end": day(400)}
            | resident,
        )
    ]


def started(company: Company, file: Path, rows: list[dict[str, str]]) -> subprocess.Popen[str]:
    with file.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, COLUMNS, restval="")
        writer.writeheader()
        writer.writerows(rows)
    key = company.system.mint(company.company_id, "write", company.email)  # a run has a minute's requests
    environment = os.environ | {"MAKEREADY_API_KEY": key, "MAKEREADY_BASE_URL": company.system.base_url}
    command = [sys.executable, "-P", str(PROGRAM), "PMS", str(file)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def outcomes(company: Company, file: Path, rows: list[dict[str, str]], status: int = 0) -> dict[str, str]:
    with started(company, file, rows) as process:
        out, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == status, err
    return dict(line.split(" ", 1) for line in out.splitlines())


def test_each_row_happens_once_however_often_it_runs_and_is_killed(company: Company, tmp_path: Path) -> None:
    file = tmp_path / "occupancy.csv"
    for lines in KILLED_AFTER:
        with started(company, file, rows()) as process:
            assert process.stdout
            for _ in range(lines):
                assert process.stdout.readline()
            process.kill()
    results = outcomes(company, file, rows())
    assert set(results) == {row["id"] for row in rows()}
    assert set(results.values()) == {"sent", "unchanged"}, "it was killed in the middle"
    assert set(outcomes(company, file, rows()).values()) == {"unchanged"}

    turns = sorted(
        (turn["unit"]["name"], turn["move_in_date"], turn["move_out_date"], turn["external_id"], turn["status"])
        for turn in company.walk("/turns")
    )
    assert turns == [
        turn
        for number in range(UNITS)
        for turn in (
            (f"{number}", day(-200), day(20), f"L1-{number}", "Active"),
            (f"{number}", day(40), None, f"L2-{number}", "Active"),
        )
    ]


def test_a_row_that_is_refused_is_reported_and_stops_no_other(company: Company, tmp_path: Path) -> None:
    empty = f"U{UNITS}"
    resident = {"first_name": "Bo", "last_name": "Ray"}
    wrong = [
        {"id": "nowhere", "kind": "notice", "unit": "U99", "date": day(5)},
        {"id": "nobody", "kind": "notice", "unit": empty, "date": day(-9)},
        {"id": "no-day", "kind": "notice", "unit": empty, "date": "soon"},
        {"id": "no-kind", "kind": "sale", "unit": empty, "date": day(6)},
        {"id": "no-name", "kind": "move-in", "unit": empty, "date": day(-3)},
        {"id": "good", "kind": "move-in", "unit": empty, "date": day(-2)} | resident,
        {"id": "too-early", "kind": "move-in", "unit": empty, "date": day(9)} | resident,
    ]
    results = outcomes(company, tmp_path / "wrong.csv", wrong, status=1)
    assert results.pop("good") == "sent"
    assert results.keys() == {row["id"] for row in wrong} - {"good"}
    assert all(result.startswith("refused: ") for result in results.values())
    assert "U99" in results["nowhere"]
    assert "active resident" in results["nobody"] and "already occupies" in results["too-early"]
