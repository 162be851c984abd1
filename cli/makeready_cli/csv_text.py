"""Rows as CSV, for spreadsheets and scripts."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence

from chassis.records.spreadsheets import defused
from makeready_cli.output import Record


def csv_of(columns: Sequence[str], rows: Iterable[Record]) -> str:
    """A header and a line for each row, without the last line's end. A part of a record, `{id, name}`, has two columns:
    `NAME_id` and `NAME`; all other values that are no scalars are JSON."""
    flat = [_flat(row) for row in rows]
    names = list(columns) if not flat else list(dict.fromkeys(name for row in flat for name in row))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_cell(row.get(name)) for name in names] for row in flat)
    return text.getvalue().removesuffix("\n")


def _flat(row: Record) -> Record:
    cells: Record = {}
    for name, value in row.items():
        if isinstance(value, Mapping) and set(value) == {"id", "name"}:
            cells |= {f"{name}_id": value["id"] or None, name: value["name"] or None}
        else:
            cells[name] = value
    return cells


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    return defused(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
