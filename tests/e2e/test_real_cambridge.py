"""Two years of hourly electricity and gas of eight Cambridge buildings become properties, meters and readings.

`--hypothesis-profile=nightly` imports the hours of all buildings; else a quarter of those of one.
"""

from __future__ import annotations

import csv
import datetime
import math
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from testkit.examples import SHARE, is_whole

from .real_files import counts, imported, rows_of, some_of
from .system import System

BUILDINGS, METERS, HOURS_A_YEAR = 8, 16, 8760
HOURS = HOURS_A_YEAR if is_whole() else HOURS_A_YEAR // SHARE
"""Those of each year that are imported."""
YEARS = ("2018", "2019")
NAME = re.compile(r"UCam_Building_(?P<building>b\d+)_(?P<fuel>electricity|gas)_(?P<year>\d{4})\.csv\.gz")
COLUMNS = {"electricity": "equipment load [kWh]", "gas": "heating load [kWh]"}
HOUR = datetime.timedelta(hours=1)


@pytest.fixture(scope="module")
def files(data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    """The files of each meter, one a year, by the meter's external_id."""
    by_building: dict[str, list[Path]] = {}
    for file in sorted((data / "cambridge-meters").glob("UCam_*.csv.gz")):
        name = NAME.fullmatch(file.name)
        assert name is not None, file
        by_building.setdefault(f"{name['building']}-{name['fuel']}", []).append(file)
    assert len(by_building) == METERS and {len(years) for years in by_building.values()} == {len(YEARS)}
    buildings = sorted({meter.split("-")[0] for meter in by_building})
    chosen = buildings if is_whole() else buildings[:1]
    folder = tmp_path_factory.mktemp("hours")

    def imported_file(file: Path) -> Path:
        rows = rows_of(file)
        assert len(rows) == HOURS_A_YEAR
        return some_of(rows, file, folder, lambda _: False)[1]

    return {
        meter: [imported_file(file) for file in years]
        for meter, years in by_building.items()
        if meter.split("-")[0] in chosen
    }


def instant(hour: datetime.datetime) -> str:
    return hour.strftime("%Y-%m-%dT%H:%M:%S.000000Z")


def test_cambridges_hours_become_readings(system: System, data: Path, files: dict[str, list[Path]]) -> None:
    company = system.company("Cambridge")
    report = imported(
        company, "properties", data / "cambridge-meters" / "building_floor_roof_areas.csv", "cambridge-properties"
    )
    assert counts(report) == (BUILDINGS, 0, 0, 0)

    meters = system.state / "meters.csv"
    with meters.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["external_id", "property", "name", "utility_type", "unit_of_measure"])
        for external_id in files:
            building, fuel = external_id.split("-")
            utility_type = "electric" if fuel == "electricity" else fuel
            writer.writerow([external_id, building, f"Building {building} {fuel}", utility_type, "kWh"])
    report = system.makeready("import", str(company.company_id), "meters", str(meters))
    assert counts(report) == (len(files), 0, 0, 0)

    def readings(external_id: str) -> list[Any]:
        mapping = f"cambridge-{external_id.split('-')[1]}"
        return [imported(company, "readings", file, mapping) for file in files[external_id]]

    # Two meters in parallel, so that one program starts while the service imports the other's rows.
    with ThreadPoolExecutor(2) as pool:
        reports = [report for several in pool.map(readings, files) for report in several]
    assert {counts(report) for report in reports} == {(HOURS, 0, 0, 0)}
    assert len(reports) == len(files) * len(YEARS)

    again = readings("b0-gas")
    assert [counts(report) for report in again] == [(0, 0, HOURS, 0)] * 2

    properties = list(company.walk("/properties"))
    assert {record["external_id"] for record in properties} >= {external_id.split("-")[0] for external_id in files}
    assert len(properties) == BUILDINGS
    served = {meter["external_id"]: meter for meter in company.walk("/meters")}
    assert served.keys() == files.keys()
    for external_id, meter in served.items():
        assert meter["property"]["external_id"] == external_id.split("-")[0]
        column = COLUMNS[external_id.split("-")[1]]
        rows = [row for file in files[external_id] for row in rows_of(file)]
        listed = list(company.walk(f"/meters/{meter['entity_id']}/readings"))
        # Every reading and the sum are equal to the last digit; the oldest comes first.
        assert [reading["consumption"] for reading in listed] == [float(row[column]) for row in rows]
        assert math.fsum(reading["consumption"] for reading in listed) == math.fsum(float(row[column]) for row in rows)
        hours = [datetime.datetime.fromisoformat(row["datetime"]) for row in rows]
        assert [reading["period_start"] for reading in listed] == [instant(hour) for hour in hours]
        assert [reading["period_end"] for reading in listed] == [instant(hour + HOUR) for hour in hours]
        assert {(reading["meter_id"], reading["unit_of_measure"]) for reading in listed} == {
            (meter["entity_id"], "kWh")
        }


def test_a_file_of_another_name_is_refused_in_one_line(system: System, files: dict[str, list[Path]]) -> None:
    company = system.company("Nameless")
    other = system.state / "".join(("readings", *files["b0-gas"][0].suffixes))
    other.write_bytes(files["b0-gas"][0].read_bytes())
    mapping = Path(__file__).resolve().parents[2] / "examples" / "mappings" / "cambridge-gas.toml"
    done = system.run("import", str(company.company_id), "readings", str(other), "--mapping", str(mapping))
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(r"makeready: [^\n]*file_name[^\n]*\.\n", done.stderr), done.stderr
