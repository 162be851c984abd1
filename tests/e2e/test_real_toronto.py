"""Toronto's registry of apartment buildings: two snapshots two months apart become properties and their heating.

`--hypothesis-profile=nightly` imports all buildings; else those of every fourth number.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from testkit.examples import SHARE

from .real_files import EXAMPLES, chosen_or_all, collapsed, counts, imported, rejects, rows_of
from .system import Company, System

BEFORE, AFTER = "registrations_2026-06-28.csv.gz", "registrations_2026-08-22.csv.gz"
Row = dict[str, str]


@pytest.fixture(scope="module")
def files(data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The files that are imported, by the names of the whole ones."""
    folder, paths = tmp_path_factory.mktemp("toronto"), {}
    names = (BEFORE, AFTER, *(name for name, *_ in EVALUATIONS))
    whole = {name: rows_of(data / "toronto-rentsafe" / name) for name in names}
    before, after = ({row["RSN"] for row in whole[name]} for name in (BEFORE, AFTER))
    managers = {collapsed(row["PROP_MANAGEMENT_COMPANY_NAME"]) for row in whole[AFTER]} - {""}
    assert (len(after - before), len(after), len(managers)) == (7, 3611, 960)
    assert [len(whole[name]) for name, *_ in EVALUATIONS] == [many for *_, many in EVALUATIONS]
    for name, rows in whole.items():
        # Among those with this remainder are new buildings, changed ones, and an evaluation that comes twice.
        chosen = [row for row in rows if int(row["RSN"]) % SHARE == 2]
        paths[name] = chosen_or_all(chosen, rows, data / "toronto-rentsafe" / name, folder)[1]
    return paths


@pytest.fixture(scope="module")
def toronto(system: System) -> Company:
    return system.company("Toronto")


def by_rsn(file: Path) -> dict[str, Row]:
    rows = rows_of(file)
    by_number = {row["RSN"]: row for row in rows}
    assert len(by_number) == len(rows)
    return by_number


def expected(before: dict[str, Row], after: dict[str, Row], mapped: Callable[[Row], object]) -> tuple[int, int, int]:
    """The numbers of new rows, of rows whose mapped columns changed, and of unchanged rows."""
    kept = before.keys() & after.keys()
    changed = sum(mapped(before[rsn]) != mapped(after[rsn]) for rsn in kept)
    return len(after.keys() - before.keys()), changed, len(kept) - changed


def of_property(row: Row) -> object:
    columns = ("SITE_ADDRESS", "PCODE", "YEAR_BUILT", "PROPERTY_TYPE", "YEAR_REGISTERED")
    return [collapsed(row[name]) for name in columns], row["CONFIRMED_UNITS"] or row["NO_OF_UNITS"]


def of_heating(row: Row) -> object:
    return [collapsed(row[name]) for name in ("HEATING_TYPE", "HEATING_EQUIPMENT_YEAR_INSTALLED")]


def test_the_second_snapshot_reports_what_was_new_and_what_changed(files: dict[str, Path], toronto: Company) -> None:
    before, after = by_rsn(files[BEFORE]), by_rsn(files[AFTER])
    assert counts(imported(toronto, "properties", files[BEFORE], "toronto-registrations")) == (len(before), 0, 0, 0)
    new, changed, unchanged = expected(before, after, of_property)
    assert new > 0 and changed > 0
    report = imported(toronto, "properties", files[AFTER], "toronto-registrations")
    assert counts(report) == (new, changed, unchanged, 0)

    served = {record["external_id"]: record for record in toronto.walk("/properties")}
    assert served.keys() == before.keys() | after.keys()
    for rsn, row in after.items():
        record = served[rsn]
        assert record["address"] == record["name"] == collapsed(row["SITE_ADDRESS"])
        assert record["postal_code"] == (row["PCODE"].strip() or None)
        assert record["unit_count"] == (int(row["CONFIRMED_UNITS"]) if row["CONFIRMED_UNITS"] else record["unit_count"])
        assert record["year_built"] == (int(row["YEAR_BUILT"]) if row["YEAR_BUILT"] else None)
        if row["YEAR_REGISTERED"]:
            assert record["created_at"] == f"{row['YEAR_REGISTERED']}-01-01T00:00:00.000000Z"
        assert record["city"] == "Toronto" and record["source"] == "import"


def test_the_heating_of_the_second_snapshot_changes_as_the_files_do(files: dict[str, Path], toronto: Company) -> None:
    before, after = by_rsn(files[BEFORE]), by_rsn(files[AFTER])
    assert counts(imported(toronto, "assets", files[BEFORE], "toronto-heating")) == (len(before), 0, 0, 0)
    report = imported(toronto, "assets", files[AFTER], "toronto-heating")
    assert counts(report) == (*expected(before, after, of_heating), 0)
    assert report["changed"] > 0


def test_the_companies_that_manage_the_buildings_become_vendors(files: dict[str, Path], toronto: Company) -> None:
    named = [collapsed(row["PROP_MANAGEMENT_COMPANY_NAME"]) for row in rows_of(files[AFTER])]
    managers, nobody = set(named) - {""}, named.count("")
    report = imported(toronto, "vendors", files[AFTER], "toronto-managers", rejected=nobody)
    assert counts(report) == (len(managers), 0, len(named) - nobody - len(managers), nobody)
    assert {row["reject_field"] for row in rejects(report)} == {"external_id"}
    vendors = list(toronto.walk("/vendors"))
    assert {vendor["name"] for vendor in vendors} == managers and len(vendors) == len(managers)
    assert all(vendor["business"]["legal_name"] == vendor["name"] for vendor in vendors)


EVALUATIONS = (
    ("evaluations_pre2023.csv.gz", "toronto-evaluations-pre2023", "EVALUATION_COMPLETED_ON", "SCORE", 11_760),
    (
        *("evaluations_2026-08-22.csv.gz", "toronto-evaluations"),
        *("EVALUATION COMPLETED ON", "CURRENT BUILDING EVAL SCORE", 6_090),
    ),
)


def test_both_generations_of_evaluations_become_inspections(files: dict[str, Path], toronto: Company) -> None:
    imported(toronto, "properties", files[AFTER], "toronto-registrations")
    numbers = by_rsn(files[AFTER]).keys()
    taken: dict[str, tuple[str, str, str]] = {}
    bad: list[tuple[str, str]] = []
    for file, mapping, date, score, _ in EVALUATIONS:
        rows = rows_of(files[file])
        wrong: list[tuple[str, str]] = []
        good = 0
        seen: set[str] = set()
        for row in rows:
            external_id = f"{row['RSN']} {row[date]}"
            if external_id in seen:
                wrong.append((external_id, "external_id"))
            elif row["RSN"] not in numbers:
                wrong.append((external_id, "property"))
            else:
                good += 1
                taken[external_id] = row["RSN"], row[date], row[score]
            seen.add(external_id)
        report = imported(toronto, "inspections", files[file], mapping, rejected=len(wrong))
        assert counts(report) == (good, 0, 0, len(wrong))
        rejected = rejects(report)
        assert sorted((f"{row['RSN']} {row[date]}", row["reject_field"]) for row in rejected) == sorted(wrong)
        assert all(row["reject_reason"] for row in rejected)
        bad += wrong

    served = {inspection["external_id"]: inspection for inspection in toronto.walk("/inspections")}
    assert served.keys() == taken.keys()
    for external_id, (rsn, day, points) in taken.items():
        inspection = served[external_id]
        assert inspection["property"]["external_id"] == rsn
        assert (inspection["status"], inspection["completed_date"]) == ("Completed", day)
        assert inspection["title"] == f"Building evaluation: {points} of 100"
        assert inspection["result"] == ("passed" if float(points) >= 51 else "failed")
        assert inspection["is_compliance_inspection"] is True and inspection["compliance_type"] == "RentSafeTO"
    assert {inspection["result"] for inspection in served.values()} == {"passed", "failed"}
    assert {field for _, field in bad} == {"external_id", "property"}


def test_the_registry_becomes_vendors_buildings_and_heating_in_one_run(files: dict[str, Path], system: System) -> None:
    company = system.company("Toronto in one run")
    words = ("import", str(company.company_id), "all", str(files[AFTER]))
    mapping = ("--mapping", str(EXAMPLES / "toronto-registry.toml"))
    rows = rows_of(files[AFTER])
    managers = [name for row in rows if (name := collapsed(row["PROP_MANAGEMENT_COMPANY_NAME"]))]
    vendors, buildings = len(set(managers)), len(rows)
    once, twice = (company.system.makeready(*words, *mapping) for _ in range(2))
    assert [(kind["kind"], *counts(kind)) for kind in once["kinds"]] == [
        ("properties", buildings, 0, 0, 0),
        ("assets", buildings, 0, 0, 0),
        ("vendors", vendors, 0, len(managers) - vendors, 0),
    ]
    assert counts(twice) == (0, 0, 2 * buildings + len(managers), 0)
    assert len(list(company.walk("/vendors"))) == vendors
