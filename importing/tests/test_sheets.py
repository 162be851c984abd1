"""Workbooks as people make them: titles above the columns, merged and hidden parts, formulas, dates of both epochs."""

from __future__ import annotations

import datetime
from pathlib import Path

import openpyxl
import pytest
from openpyxl.utils.datetime import CALENDAR_MAC_1904

from importing.errors import ImportFault
from importing.kinds import KINDS
from importing.opening import opened
from importing.preview import preview
from importing.rows import Reading
from importing.shapes import Plain
from importing.xlsx_source import SheetNotNamed

OPENED = datetime.datetime(2026, 6, 1, 14, 30)


def saved(tmp_path: Path, book: openpyxl.Workbook) -> Path:
    path = tmp_path / "made.xlsx"
    book.save(path)
    return path


def rows(path: Path, sheet: str = "") -> list[dict[str, object]]:
    with opened(path, Reading(sheet=sheet)) as file:
        return [dict(row.values) for row in file.source.rows()]


@pytest.mark.parametrize("epoch_of_mac", [False, True])
def test_titles_above_the_columns_are_passed_over(tmp_path: Path, epoch_of_mac: bool) -> None:
    book = openpyxl.Workbook()
    if epoch_of_mac:
        book.epoch = CALENDAR_MAC_1904
    sheet = book.active
    assert sheet is not None
    for titles in ([], ["Work orders of June"], ["Printed 2026-07-01"], ["", "Place", "", "When"]):
        sheet.append(titles)
    sheet.merge_cells("A2:D2")
    sheet.merge_cells("B4:C4")
    values: tuple[list[object], ...] = (
        ["WO#", "Property", "Unit", "Opened"],
        ["1", "P", "=1+1", OPENED],
        ["2", "P", None, OPENED.date()],
    )
    for row in values:
        sheet.append(row)
    assert rows(saved(tmp_path, book)) == [
        {"WO#": "1", "Property": "P", "Unit": "", "Opened": "2026-06-01T14:30:00"},
        {"WO#": "2", "Property": "P", "Unit": "", "Opened": "2026-06-01"},
    ]


def test_a_header_is_no_title(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    assert book.active is not None
    for row in (["external_id"], ["P1"], ["P2"]):
        book.active.append(row)
    assert rows(saved(tmp_path, book)) == [{"external_id": "P1"}, {"external_id": "P2"}]
    book = openpyxl.Workbook()
    assert book.active is not None
    for row in (["id", "", "name"], ["1", "2", "Elm"], ["3", "4", "Oak"]):
        book.active.append(row)
    assert [row["name"] for row in rows(saved(tmp_path, book))] == ["Elm", "Oak"]


def test_a_hidden_sheet_is_read_if_it_is_named(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    assert book.active is not None
    book.active.append(["a"])
    for name in ("Hidden", "Other"):
        book.create_sheet(name).append([name])
    book["Hidden"].sheet_state = "hidden"
    path = saved(tmp_path, book)
    with pytest.raises(SheetNotNamed) as unclear:
        rows(path)
    assert unclear.value.sheets == ("Sheet", "Other") and isinstance(unclear.value, ImportFault)
    with opened(path, Reading(sheet="Hidden")) as file:
        assert file.source.columns == ("Hidden",)


def test_a_preview_shows_ten_records_and_warns_of_names_that_repeat(tmp_path: Path) -> None:
    lines = [f"P{n},{'Main Campus' if n % 2 else f'House {n}'},Elm St,{n}" for n in range(30)]
    path = tmp_path / "made.csv"
    path.write_text("\n".join(["external_id,name,address,unit_count", *lines]))
    with opened(path) as file:
        first_records = preview(KINDS["properties"], Plain(KINDS["properties"]), file.source)
    assert (len(first_records.records), first_records.fields) == (10, ["external_id", "name", "address", "unit_count"])
    assert first_records.records[1] == ["P1", "Main Campus", "Elm St", "1"]
    assert [(warning.field, warning.rows, warning.is_all) for warning in first_records.warnings] == [
        ("address", 30, True),
        ("name", 15, False),
    ]
