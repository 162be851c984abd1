"""Rows that are accepted, and that a person should look at: by the whole import, with its owner's answers."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from importing.kinds import KINDS, Kind
from importing.passes import Outcome, Passes
from importing.rejects import Rejects
from importing.rows import Reading
from importing.run import Record
from importing.sending import Sender
from importing.shapes import Plain
from importing.unusual import unusual
from makeready.common.v1 import documents_pb2 as common

from .conftest import Write


@pytest.mark.parametrize(
    ("kind", "row", "reason"),
    [
        ("turns", {"move_in_date": "2026-02-01", "move_out_date": "2026-01-31"},
         "is before the move_in_date, 2026-02-01"),
        ("turns", {"move_in_date": "2026-02-01", "move_out_date": "2026-02-01"}, ""),
        ("turns", {"move_in_date": "2026-02-01", "move_out_date": ""}, ""),
        ("turns", {"move_in_date": None, "move_out_date": "2026-01-31"}, ""),
        ("turns", {"move_out_date": "2026-01-31"}, ""),
        ("tickets", {"move_in_date": "2026-02-01", "move_out_date": "2026-01-31"}, ""),
    ],
)  # fmt: skip
def test_a_departure_before_the_arrival_is_unusual(kind: str, row: dict[str, Any], reason: str) -> None:
    fault = unusual(kind, json.dumps(row).encode())
    assert (fault.reason if fault else "") == reason


def test_unusual_rows_are_accepted_and_counted_by_what_is_unusual(write: Write, tmp_path: Path) -> None:
    dates = [("2026-02-01", "2026-01-31"), ("2026-02-01", "2026-03-01"), ("2026-05-01", "2026-04-30"),
             ("2026-09-01", "2026-08-01")]  # fmt: skip
    lines = [f"T{number},U{number},{moved_in},{moved_out}" for number, (moved_in, moved_out) in enumerate(dates)]
    path = write("turns.csv", "external_id,unit,move_in_date,move_out_date\n" + "\n".join(lines) + "\n")

    async def answer(_kind: Kind, request: Any) -> Any:
        """The last row is rejected; a rejected row is not unusual, too."""
        outcomes = [common.IMPORT_OUTCOME_CREATED, common.IMPORT_OUTCOME_CREATED, common.IMPORT_OUTCOME_UNCHANGED]
        *rows, last = request.rows
        results = [
            common.ImportResult(line=row.line, outcome=outcome) for row, outcome in zip(rows, outcomes, strict=True)
        ]
        results.append(common.ImportResult(line=last.line, field="unit", reason="is unknown"))
        return type("Answer", (), {"results": results})

    kind = KINDS["turns"]
    record = Record(kind, Plain(kind), Sender(answer, kind, False, False))
    passes = Passes(path, Reading(), [record], lambda source, _: Rejects(path, source, None, tmp_path))
    seen: list[Outcome] = []

    async def progress(outcome: Outcome, _position: int) -> None:
        seen.append(outcome)

    outcome = asyncio.run(passes.run(lambda *_: None, progress))
    assert (outcome.counts.created, outcome.counts.unchanged, outcome.counts.rejected) == (2, 1, 1)
    (reason,) = outcome.unusual
    assert (reason.kind, reason.field, reason.text, reason.rows) == (
        "turns", "move_out_date", "is before the move_in_date", 2)  # fmt: skip
    assert [(example.line, example.value) for example in reason.examples] == [(2, "2026-01-31"), (4, "2026-04-30")]
    assert seen[-1].unusual == outcome.unusual and [reason.field for reason in outcome.reasons] == ["unit"]
