"""Texts in cells that a spreadsheet would run as formulas."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chassis.records.spreadsheets import defused

SIGNS = "=+-@\uff1d\uff0b\uff0d\uff20\t\r"
BREAKS = ("\n", "\r\n", "\r", "\n\n", "\v", "\f", "\x85", "\u2028", "\u2029")


@pytest.mark.parametrize("sign", SIGNS)
def test_a_cell_that_begins_as_a_formula_does_is_defused(sign: str) -> None:
    assert defused(f"{sign}1+1").startswith(f"'{sign}")
    assert defused(f"a{sign}1") == f"a{sign}1"


@pytest.mark.parametrize("line_break", BREAKS)
@pytest.mark.parametrize("sign", "=+-@\uff1d\uff0b\uff0d\uff20")
def test_a_line_of_a_cell_is_defused_too(sign: str, line_break: str) -> None:
    cell = defused(f"Hello{line_break}{sign}cmd|' /C calc'!A0")
    assert f"{line_break}'{sign}cmd" in cell and cell.startswith("Hello")
    assert defused(f"Hello{line_break}world{sign}") == f"Hello{line_break}world{sign}"


def test_other_texts_stay() -> None:
    for text in ("", "Tap drips", "2026-11-26", "a = b", "'=1", "Ärger", "5\u202f%", "{}", '["=1"]', "x\ny\nz"):
        assert defused(text) == text


@given(st.text(alphabet="=+-@a \t\r\n\uff1d'", max_size=12))
def test_no_line_of_what_is_defused_begins_as_a_formula_does(text: str) -> None:
    cell = defused(text)
    assert not any(line[:1] in set("=+-@\t\uff1d") - {""} for line in cell.splitlines())
    assert cell.replace("'", "") == text.replace("'", "")
    assert defused(cell) == cell
