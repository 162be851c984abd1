"""Imports interrupted by kill -9 of the command line or of the service: run again, they end as if run once."""

from __future__ import annotations

import csv
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testkit.prepared import prepare_state

from .system import Company, System

pytestmark = pytest.mark.chaos

BATCH = 2000  # rows that the command line sends at once
PROPERTIES, BATCHES = 600, 4
BAD = 7  # the index of a bad row in every batch; its line on stderr says that the batch is done
# Fields that differ between two companies with the same imports: ids, and times that the rows do not contain.
OF_THE_RUN = ("entity_id", "url", "created_at", "updated_at", "completed_at", "id")


@pytest.fixture(scope="module")
def house(states: Path) -> Iterator[System]:
    """A separate system, as one of its services is killed."""
    prepare_state(states / "interrupted")
    system = System(states / "interrupted", MAKEREADY_DEMO="0")
    try:
        system.start()
        yield system
    finally:
        system.stop()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A file of each kind; each refers to records of the kinds before it."""
    folder = tmp_path_factory.mktemp("files")
    statuses = ("Active", "Needs Service", "Out of Service", "Retired", "")
    many = range(BATCH * BATCHES)

    def category(number: int, good: str) -> str:
        return "" if number % BATCH == BAD else good

    written = {
        "properties": [
            {"external_id": f"P{n}", "name": f"House {n}", "address": f"{n} Elm St", "year_built": str(1900 + n % 99)}
            for n in range(PROPERTIES)
        ],
        "assets": [
            {
                "external_id": f"A{n}",
                "property": f"P{n % PROPERTIES}",
                "name": f"Lift {n}",
                "category": category(n, "Elevator"),
                "make": "Otis",
                "model": f"M{n % 7}",
                "status": statuses[n % 5],
                "location": f"Room {n % 3}",
                "location_type": "mechanical_room",
            }
            for n in many
        ],
        "tickets": [
            {
                "external_id": f"T{n}",
                "property": f"P{n % PROPERTIES}",
                "asset": "" if n % BATCH == BAD else f"A{n}",
                "title": f"Ticket {n}",
                "category": category(n, "Elevator"),
                "status": ("Open", "Completed")[n % 2],
                "description": "x" * (n % 50),
            }
            for n in many
        ],
    }
    found = {}
    for kind, rows in written.items():
        found[kind] = folder / f"{kind}.csv"
        with found[kind].open("w", newline="") as stream:
            writer = csv.DictWriter(stream, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    return found


def founded(house: System, name: str) -> Company:
    """A company with a read key."""
    company_id = house.makeready("company", "create", name)["company_id"]
    return Company(house, company_id, "", {"read": house.mint(company_id, "read")})


def begun(company: Company, kind: str, file: Path, *more: str) -> subprocess.Popen[str]:
    """Starts an import."""
    program = Path(sys.executable).with_name("makeready")
    return subprocess.Popen(
        [str(program), "import", str(company.company_id), kind, str(file), "--rejects", os.devnull, *more],
        env=company.system.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        cwd=company.system.state,
    )


def after_batches(process: subprocess.Popen[str], batches: int) -> None:
    """Returns when this number of batches is done."""
    assert process.stderr is not None
    for _ in range(batches):
        message = process.stderr.readline()
        assert "category" in message, message


def whole(company: Company, kind: str, file: Path) -> Any:
    """Runs an import to its end. Except for properties, every batch has one bad row."""
    words = ("import", str(company.company_id), kind, str(file))
    report = company.system.makeready(*words, status=0 if kind == "properties" else 3)
    assert report["rejected"] == (0 if kind == "properties" else BATCHES)
    return report


def state(company: Company) -> dict[str, list[Any]]:
    """All served records, without the fields that differ between runs."""
    return {kind: [stripped(one) for one in company.walk(f"/{kind}")] for kind in ("properties", "assets", "tickets")}


def stripped(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: stripped(one) for name, one in value.items() if name not in OF_THE_RUN}
    return value


@pytest.mark.slow
def test_an_import_that_was_killed_anywhere_ends_as_if_it_had_run_once(house: System, files: dict[str, Path]) -> None:
    once = founded(house, "Once")
    for kind, file in files.items():
        assert whole(once, kind, file)["created"] > 0
    twice = founded(house, "Twice")
    whole(twice, "properties", files["properties"])
    chance = random.Random()
    cut = chance.randint(1, BATCHES - 2), chance.randint(1, BATCHES - 2)

    process = begun(twice, "assets", files["assets"])
    after_batches(process, cut[0])
    process.kill()
    assert process.wait(10) == -signal.SIGKILL
    report = whole(twice, "assets", files["assets"])
    assert report["created"] > 0 and report["unchanged"] >= cut[0] * (BATCH - 1), cut
    assert report["changed"] == 0 and report["created"] + report["unchanged"] == BATCHES * (BATCH - 1), cut

    process = begun(twice, "tickets", files["tickets"])
    after_batches(process, cut[1])
    os.kill(house.runtime["processes"]["svc-tickets"]["pid"], signal.SIGKILL)
    assert house.process is not None and house.process.wait(60) == 1  # the runner stops the others and says so
    process.kill()  # it would wait for the service for a while
    process.wait(10)
    house.start()
    report = whole(twice, "tickets", files["tickets"])
    assert report["changed"] == 0 and report["created"] + report["unchanged"] == BATCHES * (BATCH - 1), cut
    assert report["unchanged"] >= cut[1] * (BATCH - 1), cut

    first, second = state(once), state(twice)
    for kind in first:
        assert len(first[kind]) == len(second[kind]) and first[kind] == second[kind], (kind, cut)


SEVERAL = """
duplicates = "keep-first"

[[records]]
kind = "assets"
[records.fields]
external_id = "lift"
property = "house"
name = "lift"
category = "category"
make = { constant = "Otis" }
model = { constant = "Gen2" }

[[records]]
kind = "properties"
[records.fields]
external_id = "house"
name = "house"
address = { column = "category", values = { Elevator = "1 Elm St", "" = "" } }
"""


def test_an_import_of_several_kinds_that_was_killed_in_each_ends_as_if_it_had_run_once(
    house: System, tmp_path: Path
) -> None:
    file, mapping = tmp_path / "lifts.csv", tmp_path / "lifts.toml"
    mapping.write_text(SEVERAL)
    # Every batch has one row that is bad for both kinds, and names a house of its own.
    with file.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["lift", "house", "category"])
        for n in range(BATCH * BATCHES):
            is_bad = n % BATCH == BAD
            writer.writerow([f"L{n}", f"bad {n}" if is_bad else f"H{n % PROPERTIES}", "" if is_bad else "Elevator"])
    words = ("all", "--mapping", str(mapping))

    def outcome(company: Company) -> dict[str, tuple[int, int, int, int]]:
        number, kind, *more = str(company.company_id), *words
        report = house.makeready("import", number, kind, str(file), *more, status=3)
        return {
            one["kind"]: (one["created"] + one["unchanged"], one["changed"], one["rejected"], one["created"])
            for one in report["kinds"]
        }

    good = BATCHES * (BATCH - 1)
    once = founded(house, "Several once")
    assert outcome(once) == {
        "properties": (good, 0, BATCHES, PROPERTIES),
        "assets": (good, 0, BATCHES, good),
    }
    twice = founded(house, "Several twice")
    # Bad rows are reported with their batches: the properties' first, then the assets'.
    for batches in (2, BATCHES + 2):
        process = begun(twice, "all", file, *words[1:])
        assert process.stderr is not None
        for _ in range(batches):
            line = process.stderr.readline()
            while "Rejected" in line:
                line = process.stderr.readline()
            assert "address" in line or "category" in line, line
        process.kill()
        assert process.wait(10) == -signal.SIGKILL
    found = outcome(twice)
    assert found["properties"] == (good, 0, BATCHES, 0)
    assert found["assets"][:3] == (good, 0, BATCHES)
    assert 0 < found["assets"][3] <= good - 2 * (BATCH - 1)
    first, second = state(once), state(twice)
    for kind in first:
        assert len(first[kind]) == len(second[kind]) and first[kind] == second[kind], kind
