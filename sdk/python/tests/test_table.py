"""Records as rows: columns are those of the version, whatever comes, and no cell is a formula."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from makeready_client import models
from makeready_client.commands.table import Table

EXAMPLES = Path(__file__).resolve().parents[3] / "openapi" / "examples"


def cells(line: str) -> list[str]:
    (row,) = csv.reader(io.StringIO(line, newline=""))
    return row


@pytest.mark.parametrize("kind", ["Ticket", "Property", "Unit", "Asset", "Vendor", "Inspection", "Turn", "Meter"])
def test_each_field_of_a_record_has_a_cell(kind: str) -> None:
    table = Table(getattr(models, kind))
    record = json.loads((EXAMPLES / f"{kind}.json").read_text())
    row = dict(zip(cells(table.header()), cells(table.row(json.dumps(record).encode())), strict=True))
    for name, value in record.items():
        if isinstance(value, dict):
            assert {key.partition(".")[2] for key in row if key.startswith(f"{name}.")} >= set(value)
        elif value is not None:
            assert row[name] == (value if isinstance(value, str) else json.dumps(value))


def test_unknown_fields_change_no_column_and_null_objects_leave_theirs_empty() -> None:
    table = Table(models.Ticket)
    record = json.loads((EXAMPLES / "Ticket.json").read_text()) | {"unit": None, "new": {"a": 1}}
    row = dict(zip(cells(table.header()), cells(table.row(json.dumps(record).encode())), strict=True))
    assert row["unit.id"] == row["unit.name"] == "" and not [name for name in row if name.startswith("new")]


@pytest.mark.parametrize("begin", ["=", "+", "-", "@", "\t", "\r", "\uff1d", "first line\n="])
def test_no_text_is_a_formula(begin: str) -> None:
    table = Table(models.Ticket)
    record = {"title": f"{begin}1", "entity_id": -1}
    row = dict(zip(cells(table.header()), cells(table.row(json.dumps(record).encode())), strict=True))
    assert "'" in row["title"] and row["entity_id"] == "-1"
