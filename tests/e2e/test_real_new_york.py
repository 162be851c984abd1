"""Every fifth device of New York's register of elevators (2015): buildings become properties, devices assets.

`--hypothesis-profile=nightly` imports all rows; else a quarter of them.
"""

from __future__ import annotations

import datetime
from pathlib import Path

from .real_files import collapsed, counts, imported, rejects, rows_of, some_of
from .system import System

DEVICES, BUILDINGS, WITHOUT_BUILDING, UNREADABLE_DATES = 15_218, 11_909, 3, 8
STATUSES = {"A": "Active", "H": "Active", "J": "Active", "W": "Needs Service", "D": "Retired"}


def day(text: str) -> str | None:
    """The date as the API prints it; None for an invalid one."""
    try:
        return datetime.datetime.strptime(text, "%Y%m%d").date().isoformat() if len(text) == 8 else None
    except ValueError:
        return None


def is_odd(row: dict[str, str]) -> bool:
    """Without a building, or with a date that nobody can read."""
    return not row["BIN"] or bool(row["DV_APPROVAL_DATE"] and not day(row["DV_APPROVAL_DATE"]))


def test_new_yorks_elevators_become_assets_whatever_their_dates_say(system: System, data: Path, tmp_path: Path) -> None:
    whole = data / "nyc-elevators" / "elevators_raw_every5th.csv.gz"
    every = rows_of(whole)
    assert (len(every), len({row["BIN"] for row in every if row["BIN"]})) == (DEVICES, BUILDINGS)
    rows, file = some_of(every, whole, tmp_path, is_odd)
    placed = {row["DV_DEVICE_NUMBER"]: row for row in rows if row["BIN"]}
    assert len(placed) == len(rows) - WITHOUT_BUILDING
    company = system.company("New York")
    first: dict[str, dict[str, str]] = {}
    for row in placed.values():
        first.setdefault(row["BIN"], row)

    report = imported(company, "properties", file, "new-york-buildings", rejected=WITHOUT_BUILDING)
    assert counts(report) == (len(first), 0, len(placed) - len(first), WITHOUT_BUILDING)
    properties = {record["external_id"]: record for record in company.walk("/properties")}
    assert properties.keys() == first.keys()
    for bin_number, row in first.items():
        building = properties[bin_number]
        assert building["address"] == collapsed(f"{row['HOUSE_NUMBER']} {row['STREET_NAME']}")
        assert (building["postal_code"] or "0") == row["ZIP_CODE"][:5]
        assert abs(building["latitude"] - float(row["LATITUDE"])) < 1e-9

    report = imported(company, "assets", file, "new-york-elevators", rejected=WITHOUT_BUILDING)
    assert counts(report) == (len(placed), 0, 0, WITHOUT_BUILDING)
    assert {(row["reject_field"], row["BIN"]) for row in rejects(report)} == {("property", "")}
    assets = {asset["external_id"]: asset for asset in company.walk("/assets")}
    assert assets.keys() == placed.keys()
    for number, row in placed.items():
        asset = assets[number]
        kind, _, letter = row["Device Type"].rpartition(" ")
        assert letter in number.join("()") or letter[1] in number
        assert (asset["name"], asset["sub_category"], asset["asset_tag"]) == (f"{kind} {number}", kind, number)
        assert asset["status"] == STATUSES[row["Device Status"]]
        assert asset["property"]["external_id"] == row["BIN"]
        assert asset["installed_on"] == day(row["DV_APPROVAL_DATE"])
        assert asset["make"] == (row["DV_MANUFACTURER"].strip() if row["DV_MANUFACTURER"].strip("- ") else "Unknown")
    unreadable = [row for row in placed.values() if row["DV_APPROVAL_DATE"] and not day(row["DV_APPROVAL_DATE"])]
    assert len(unreadable) == UNREADABLE_DATES
    assert {row["DV_APPROVAL_DATE"] for row in unreadable} == {"********", "9O0719", "60409"}
