"""Texts in cells of CSV files, which spreadsheets open."""

from __future__ import annotations

import re

# Spreadsheets run a cell that begins with = + - @ as a formula, some also in their full-width forms, and also after a
# tab or a carriage return, which they drop. After a line break some begin a new cell, although the cell is quoted.
_FORMULA = re.compile(r"(?:\A|(?<=[\n\r\v\f\x85\u2028\u2029]))(?=[=+\-@\t\r\uff1d\uff0b\uff0d\uff20])")


def defused(text: str) -> str:
    """The text with an apostrophe before each line that a spreadsheet would run as a formula."""
    return _FORMULA.sub("'", text)
