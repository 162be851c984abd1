"""Imports interrupted by kill -9 of the command line or of the service: run again, they end as if run once."""

from __future__ import annotations

import csv
import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testkit.prepared import prepare_state
from testkit.processes import Process

from .system import Company, System

pytestmark = pytest.mark.chaos

# The command line sends up to 512 KiB at once: with the wide texts, a few rows more than BATCH.
BATCH, WIDE = 200, "屋" * 190  # 570 bytes, four times or more in a row
PROPERTIES, BATCHES, BEHIND = 120, 6, 3  # an import is killed with so many batches before it at least
BAD = 120  # the index of a bad row in every batch; its line on stderr says that the batch is done
LOOK_SECONDS = 0.005
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
                "model": f"M{n % 7}{WIDE}",
                **dict.fromkeys(("asset_tag", "serial_number", "sub_category"), WIDE),
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
                "description": WIDE * 4 + "x" * (n % 50),
            }
            for n in many
        ],
    }
    paths = {}
    for kind, rows in written.items():
        paths[kind] = folder / f"{kind}.csv"
        with paths[kind].open("w", newline="") as stream:
            writer = csv.DictWriter(stream, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    return paths


def founded(house: System, name: str) -> Company:
    """A company with a read key."""
    company_id = house.makeready("company", "create", name)["company_id"]
    return Company(house, company_id, "", {"read": house.mint(company_id, "read")})


class Import(Process):
    """An import under way."""

    def __init__(self, company: Company, kind: str, file: Path, *more: str) -> None:
        words = ["import", str(company.company_id), kind, str(file), "--rejects", os.devnull, *more]
        program = [sys.executable, "-P", "-m", "makeready_cli", *words]
        log = file.with_name(f"{file.stem} {time.monotonic_ns()}")
        super().__init__(program, log, company.system.environment, warm=True)
        self.launch()

    def after_batches(self, batches: int) -> None:
        """Returns when this number of batches is done."""
        while sum(map(is_of_a_bad_row, lines := self.log_tail().split("\n")[:-1])) < batches:
            assert self.is_running, lines
            time.sleep(LOOK_SECONDS)


def is_of_a_bad_row(line: str) -> bool:
    assert "Rejected" in line or "address" in line or "category" in line, line
    return "Rejected" not in line


def whole(company: Company, kind: str, file: Path) -> Any:
    """Runs an import to its end. Except for properties, every batch has one bad row."""
    words = ("import", str(company.company_id), kind, str(file))
    report = company.system.makeready(*words, status=0 if kind == "properties" else 3)
    assert report["rejected"] == (0 if kind == "properties" else BATCHES)
    return report


def state(company: Company) -> dict[str, list[Any]]:
    """All served records, without the fields that differ between runs."""
    return {
        kind: [stripped(record) for record in company.walk(f"/{kind}")] for kind in ("properties", "assets", "tickets")
    }


def stripped(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: stripped(member) for name, member in value.items() if name not in OF_THE_RUN}
    return value


@pytest.mark.slow
def test_an_import_that_was_killed_anywhere_ends_as_if_it_had_run_once(house: System, files: dict[str, Path]) -> None:
    once = founded(house, "Once")
    for kind, file in files.items():
        assert whole(once, kind, file)["created"] > 0
    twice = founded(house, "Twice")
    whole(twice, "properties", files["properties"])
    chance = random.Random()
    cut = chance.randint(1, BATCHES - BEHIND), chance.randint(1, BATCHES - BEHIND)

    process = Import(twice, "assets", files["assets"])
    process.after_batches(cut[0])
    process.kill()
    assert process.exit_status == -signal.SIGKILL
    report = whole(twice, "assets", files["assets"])
    assert report["created"] > 0 and report["unchanged"] >= cut[0] * (BATCH - 1), cut
    assert report["changed"] == 0 and report["created"] + report["unchanged"] == BATCHES * (BATCH - 1), cut

    process = Import(twice, "tickets", files["tickets"])
    process.after_batches(cut[1])
    os.kill(house.runtime["processes"]["svc-tickets"]["pid"], signal.SIGKILL)
    assert house.process is not None and house.process.wait(60) == 1  # the runner stops the others and says so
    process.kill()  # it would wait for the service for a while
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
make = "wide"
model = "wide"
sub_category = "wide"
asset_tag = "wide"

[[records]]
kind = "properties"
[records.fields]
external_id = "house"
name = "house"
building_type = "wide"
construction_type = "wide"
city = "wide"
state = "wide"
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
        writer.writerow(["lift", "house", "category", "wide"])
        for n in range(BATCH * BATCHES):
            is_bad = n % BATCH == BAD
            house_name = f"bad {n}" if is_bad else f"H{n % PROPERTIES}"
            writer.writerow([f"L{n}", house_name, "" if is_bad else "Elevator", WIDE])
    words = ("all", "--mapping", str(mapping))

    def outcome(company: Company) -> dict[str, tuple[int, int, int, int]]:
        number, kind, *more = str(company.company_id), *words
        report = house.makeready("import", number, kind, str(file), *more, status=3)
        return {
            kind["kind"]: (kind["created"] + kind["unchanged"], kind["changed"], kind["rejected"], kind["created"])
            for kind in report["kinds"]
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
        process = Import(twice, "all", file, *words[1:])
        process.after_batches(batches)
        process.kill()
        assert process.exit_status == -signal.SIGKILL
    ended = outcome(twice)
    assert ended["properties"] == (good, 0, BATCHES, 0)
    assert ended["assets"][:3] == (good, 0, BATCHES)
    assert 0 < ended["assets"][3] <= good - 2 * (BATCH - 1)
    first, second = state(once), state(twice)
    for kind in first:
        assert len(first[kind]) == len(second[kind]) and first[kind] == second[kind], kind
