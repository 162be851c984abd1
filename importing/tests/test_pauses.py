"""Rows that are not sent may be many: the other tasks of a process run meanwhile."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, NoReturn

from importing import mapping_file
from importing.kinds import KINDS
from importing.passes import Outcome, Passes
from importing.rejects import RejectsText
from importing.rows import Fault, Reading, Source, SourceRow
from importing.run import Record
from importing.sending import ROWS_MAX, Sender
from importing.shapes import Mapped

from .conftest import Write

MAPPING = """kind = "properties"
[skip]
A = ["x"]
[fields]
external_id = "A"
name = "A"
address = "A"
"""


class NoRejects:
    """Of a file whose rows are all skipped."""

    file: Path | None = None

    def __init__(self, source: Source, _kind: str) -> None:
        RejectsText(source)

    def add(self, row: SourceRow, fault: Fault) -> NoReturn:
        raise AssertionError((row, fault))

    def flush(self) -> None: ...

    def close(self) -> None: ...


async def test_skipped_rows_let_other_tasks_run(write: Write) -> None:
    path = write("a.csv", "A\n" + "x\n" * (5 * ROWS_MAX))
    kind = KINDS["properties"]
    shape = Mapped(mapping_file.load(write("m.toml", MAPPING), kind), path.name)
    rounds = 0

    async def ask(*_request: Any) -> NoReturn:
        raise AssertionError("nothing is to be sent")

    async def progress(_outcome: Outcome, _position: int) -> None: ...

    async def other() -> None:
        nonlocal rounds
        while True:
            rounds += 1
            await asyncio.sleep(0)

    passes = Passes(path, Reading(), [Record(kind, shape, Sender(ask, kind, False, False))], NoRejects)
    beside = asyncio.create_task(other())
    outcome = await passes.run(lambda _reason, _example: None, progress)
    beside.cancel()
    assert outcome.counts.skipped == 5 * ROWS_MAX
    assert rounds >= 5, "the reading of the rows held up everything else"
