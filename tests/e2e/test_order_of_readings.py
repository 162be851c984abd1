"""Readings of one file are listed oldest first, whatever the order of the file (spec 4.10)."""

from __future__ import annotations

import datetime
import gzip
import json
from typing import Any

from .system import System

HOURS = 4500  # more than two batches
BEGIN = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def reading(meter: str, hour: int) -> dict[str, Any]:
    start, end = (BEGIN + datetime.timedelta(hours=at) for at in (hour, hour + 1))
    times = {"period_start": start.isoformat(), "period_end": end.isoformat()}
    return {"external_id": f"{meter} {hour}", "meter": meter, "consumption": abs(hour), **times}


def test_a_file_with_the_newest_first_is_listed_oldest_first_and_a_back_fill_behind_it(system: System) -> None:
    company = system.company("Metered by hours")
    company.import_rows("properties", [{"external_id": "P1", "name": "Elm Court", "address": "1 Elm St"}])
    meter = {"property": "P1", "utility_type": "electric", "unit_of_measure": "kWh"}
    company.import_rows("meters", [meter | {"external_id": name, "name": name} for name in ("M1", "M2")])
    rows = [reading(name, hour) for hour in range(HOURS) for name in ("M1", "M2")][::-1]
    rows[7] |= {"consumption": "much"}
    file = system.state / "newest-first.jsonl.gz"
    file.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    done = system.run("--json", "import", str(company.company_id), "readings", str(file))
    report = json.loads(done.stdout)
    assert (done.returncode, report["read"], report["created"], report["rejected"]) == (3, 2 * HOURS, 2 * HOURS - 1, 1)
    company.import_rows("readings", [reading("M1", hour) for hour in (-1, -2)])
    for record in company.walk("/meters"):
        name = record["external_id"]
        external_ids = [reading["external_id"] for reading in company.walk(f"/meters/{record['entity_id']}/readings")]
        expected = [f"{name} {hour}" for hour in range(HOURS) if f"{name} {hour}" != rows[7]["external_id"]]
        assert external_ids == expected + ([f"{name} -2", f"{name} -1"] if name == "M1" else [])
