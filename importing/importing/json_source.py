"""Rows of a file of JSON lines: one JSON object a line."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from chassis.records import bodies
from chassis.refusals import Refusal
from importing.csv_source import TOO_LONG
from importing.encodings import not_text
from importing.lines import Lines, RowTooLong
from importing.rows import REJECT_COLUMNS, Fault, SourceRow, first_number

_raw_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class JsonSource:
    """A file of JSON lines."""

    columns = None
    header = ""
    delimiter = ","

    def __init__(self, lines: Lines) -> None:
        self._lines = lines

    @property
    def encoding(self) -> str:
        return self._lines.encoding

    @property
    def position(self) -> int:
        return self._lines.position

    def rows(self) -> Iterator[SourceRow]:
        while True:
            self._lines.begin()
            try:
                text = next(self._lines).strip()
            except StopIteration:
                return
            except RowTooLong:
                yield SourceRow(self._lines.line, self._lines.text, {}, TOO_LONG)
                continue
            if text:
                yield self._row(text)

    def _row(self, text: str) -> SourceRow:
        if self._lines.is_damaged:
            return SourceRow(self._lines.line, text, {}, not_text(self._lines))
        try:
            values = bodies.parse(text.encode())
        except Refusal as refusal:
            reason = refusal.message.removeprefix("The body ").removesuffix(".")
            return SourceRow(self._lines.line, text, {}, Fault("", reason))
        number = 0
        if any(name in values for name in REJECT_COLUMNS):
            number = first_number(values.get(REJECT_COLUMNS[0]))
            members = _raw_members(text)
            text = joined({name: raw for name, raw in members.items() if name not in REJECT_COLUMNS})
            values = {name: value for name, value in values.items() if name not in REJECT_COLUMNS}
        return SourceRow(self._lines.line, text, values, json=text, number=number)


def joined(members: dict[str, msgspec.Raw]) -> str:
    """An object whose members keep their original text: 1.10 does not become 1.1."""
    return msgspec.json.encode(members).decode()
