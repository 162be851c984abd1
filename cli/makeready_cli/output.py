"""The result of a command: an object for programs and a few lines for people."""

from __future__ import annotations

import datetime
import functools
import json
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf.descriptor import EnumDescriptor
from google.protobuf.timestamp_pb2 import Timestamp

from chassis.schedule.instants import printed
from makeready.common.v1 import options_pb2
from makeready_cli.errors import printable

Record = dict[str, Any]
"""An object as `--json` prints it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """value: printed by `--json`. text: printed for people. status: the exit status."""

    value: Record
    text: str
    status: int = 0

    def as_json(self) -> str:
        # ASCII only: no locale and no terminal can change it.
        return json.dumps(self.value)


def table(headers: Sequence[str], rows: Iterable[Sequence[object]], when_empty: str) -> str:
    """Columns side by side, two spaces between them."""
    cells = [[printable("-" if cell is None else str(cell)) for cell in row] for row in rows]
    if not cells:
        return when_empty
    widths = [max(_columns(row[index]) for row in (headers, *cells)) for index in range(len(headers))]
    lines = (
        "  ".join(cell + " " * (width - _columns(cell)) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (headers, *cells)
    )
    return "\n".join(lines)


def records_table(records: Iterable[Record], columns: Mapping[str, str], when_empty: str) -> str:
    """A table of records. columns: the key of each column's values, by its header."""
    return table(list(columns), ([record[key] for key in columns.values()] for record in records), when_empty)


def _columns(text: str) -> int:
    """How many columns of a terminal the text takes: two for a wide sign of East Asia, none for an accent on a sign."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(sign) else 2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text
    )


def instant(timestamp: Timestamp) -> str:
    """The instant in the API's format."""
    return printed(timestamp.ToDatetime(datetime.UTC))


@functools.cache
def labels(enum: EnumDescriptor) -> Mapping[int, str]:
    """The public API's text for each value of an enum."""
    texts = {}
    for value in enum.values:
        label: str = value.GetOptions().Extensions[options_pb2.label]
        if label:
            texts[value.number] = label
    return texts
