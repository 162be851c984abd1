"""Rows of a CSV file: RFC 4180 with LF or CRLF, any delimiter of one character."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence

from importing.encodings import not_text
from importing.errors import ImportFault, quoted
from importing.lines import ROW_BYTES_MAX, Lines, RowTooLong
from importing.rows import REJECT_COLUMNS, Fault, SourceRow, first_number

# The csv module's messages, and the reasons that this program gives for them.
_REASONS = {
    "new-line character seen in unquoted field": "holds a carriage return that ends no line; quote the value",
    "unexpected end of data": "opens a quote that nothing closes",
    " expected after '\"'": "goes on after a closing quote; a quote inside a quoted value is written twice",
    "field larger than field limit": f"is longer than {ROW_BYTES_MAX} bytes; is a quote left open?",
}
REREAD_CHARACTERS_MAX = 256 * 1024 * 1024
"""Of lines that are read again. Each stray quote may cost the lines of a megabyte, so a file of nothing else would take
days."""
TOO_LONG = Fault("", f"is longer than {ROW_BYTES_MAX} bytes; is a quote left open?")


class CsvSource:
    """A CSV file whose first row names the columns."""

    def __init__(self, lines: Lines, delimiter: str = ",") -> None:
        """Reads the header. Raises ImportFault."""
        csv.field_size_limit(ROW_BYTES_MAX)  # the csv module has one limit for the process; it is always this one
        self._lines = lines
        self._reread_characters = 0
        self.delimiter = delimiter
        self._reader = csv.reader(lines, strict=True, delimiter=delimiter)
        header = self._header()
        # A rejects file: its first columns are about the row, not part of it.
        self._is_rejects = header[: len(REJECT_COLUMNS)] == list(REJECT_COLUMNS)
        self._width = len(header)
        self.columns = tuple(header[len(REJECT_COLUMNS) :] if self._is_rejects else header)
        self.header = written(self.columns, delimiter) if self._is_rejects else lines.text.rstrip("\r\n")

    @property
    def encoding(self) -> str:
        return self._lines.encoding

    @property
    def position(self) -> int:
        return self._lines.position

    def _header(self) -> list[str]:
        while True:
            self._lines.begin()
            try:
                header = next(self._reader)
            except StopIteration:
                raise ImportFault(f"{self._lines.name} is empty; a CSV begins with a row of column names.") from None
            except (csv.Error, RowTooLong) as error:
                reason = _fault_of(error).reason
                raise ImportFault(f"{self._lines.name}: the row of column names {reason}.") from None
            if any(header):
                break
        if self._lines.is_damaged:
            raise ImportFault(f"{self._lines.name}: the row of column names {not_text(self._lines).reason}.")
        return header

    def rows(self) -> Iterator[SourceRow]:
        lines, columns, width = self._lines, self.columns, self._width
        while True:
            lines.begin()
            try:
                fields = next(self._reader)
            except StopIteration:
                return
            except (csv.Error, RowTooLong) as error:
                # The lines that a stray quote swallowed are read again, so one bad line costs one row.
                self._reread_characters += self._lines.give_back()
                yield SourceRow(
                    self._lines.line,
                    self._lines.text,
                    {},
                    _fault_of(error),
                    has_reject_columns=self._is_rejects,
                )
                if self._reread_characters > REREAD_CHARACTERS_MAX:
                    raise ImportFault(
                        f"{self._lines.name}: line {self._lines.line} is one of many that open a quote which nothing "
                        "closes; correct them first."
                    ) from None
                continue
            if not any(fields):
                continue
            text = lines.text
            if len(fields) == width and text.isascii() and "\0" not in text and not self._is_rejects:
                yield SourceRow(lines.line, text, dict(zip(columns, fields)))  # noqa: B905 - compared above
            else:
                yield self._row(fields)

    def _row(self, fields: list[str]) -> SourceRow:
        text = self._lines.text
        fault = self._fault(fields, text)
        number = 0
        if self._is_rejects:
            number = first_number(fields[0])
            fields = fields[len(REJECT_COLUMNS) :]
            text = written(fields, self.delimiter)
        values = dict(zip(self.columns, fields, strict=True)) if fault is None else {}
        return SourceRow(self._lines.line, text, values, fault, number=number)

    def _fault(self, fields: list[str], text: str) -> Fault | None:
        if len(fields) != self._width:
            return Fault("", f"has {len(fields)} values where the header has {self._width} columns")
        if self._lines.is_damaged:
            value = next((field for field in fields if _is_damaged(field)), None)
            return not_text(self._lines, self._named(fields, _is_damaged), value)
        if "\0" in text:
            return Fault(self._named(fields, lambda value: "\0" in value), "holds the character NUL")
        return None

    def _named(self, fields: list[str], is_at_fault: Callable[[str], bool]) -> str:
        names = [*REJECT_COLUMNS, *self.columns] if self._is_rejects else self.columns
        return next((name for name, value in zip(names, fields, strict=True) if is_at_fault(value)), "")


def written(fields: Sequence[str], delimiter: str = ",") -> str:
    """The fields as a line of CSV, without its line end."""
    stream = io.StringIO()
    # The writer quotes only the characters of its own line end: with "\n" alone, a carriage return in a field would
    # stay unquoted.
    csv.writer(stream, lineterminator="\r\n", delimiter=delimiter).writerow(fields)
    return stream.getvalue().removesuffix("\r\n")


def duplicates(columns: Sequence[str]) -> list[str]:
    """Column names that the header has more than once."""
    return sorted({name for name in columns if columns.count(name) > 1})


def named(columns: Sequence[str], shown_max: int = 8) -> str:
    """Column names for a sentence, in quotes."""
    omitted = len(columns) - shown_max
    return ", ".join(quoted(name) for name in columns[:shown_max]) + (f" and {omitted} more" if omitted > 0 else "")


def _is_damaged(value: str) -> bool:
    return any("\udc80" <= character <= "\udcff" for character in value)


def _fault_of(error: Exception) -> Fault:
    if isinstance(error, RowTooLong):
        return TOO_LONG
    return Fault("", next((ours for theirs, ours in _REASONS.items() if theirs in str(error)), "can't be read as CSV"))
