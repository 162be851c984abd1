"""The rows of a file with their line numbers, and the faults of unusable rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Reading:
    """How a file is read. Each is empty if it is to be found in the file. The encoding is a codec, the delimiter one
    character, the sheet the name of a workbook's sheet."""

    encoding: str = ""
    delimiter: str = ""
    sheet: str = ""

    def or_else(self, other: Reading) -> Reading:
        """These settings, and the other's where these are empty."""
        return Reading(self.encoding or other.encoding, self.delimiter or other.delimiter, self.sheet or other.sheet)


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a row is rejected.

    field: the public field or the column; empty if the whole row is at fault. reason: for this row. cause: the reason
    without what differs from row to row, so that equal ones are counted together; empty if it is the reason itself.
    value: the text that was looked up or read. columns: the columns of the file that it came from.
    """

    field: str
    reason: str
    cause: str = ""
    value: str | None = None
    columns: tuple[str, ...] = ()


class Faulty(Exception):  # noqa: N818 - a row's fate, not an error of ours
    """Raised if a row is unusable."""

    def __init__(self, field: str, reason: str, cause: str = "", value: str | None = None) -> None:
        super().__init__(reason)
        self.fault = Fault(field, reason, cause, value)


@dataclass(slots=True)  # frozen would cost a microsecond a row
class SourceRow:
    """One row of the file.

    line: its first line in the file, from 1. kept: its text for the rejects file; bytes that are not UTF-8 are lone
    surrogates in it. values: column to value, empty if there is a fault. json: the original object, for JSON lines.
    has_reject_columns: `kept` still begins with the columns of the rejects file that it was read from. number: the
    row's line in the file that it was first imported from; 0 if that is `line`.
    """

    line: int
    kept: str
    values: Mapping[str, Any]
    fault: Fault | None = None
    json: str | None = None
    has_reject_columns: bool = False
    number: int = 0


# The rejects file puts these columns in front of a row. They are ignored when a file has them, so a corrected rejects
# file can be imported as it is.
REJECT_COLUMNS = ("reject_line", "reject_field", "reject_reason")


def first_number(text: object) -> int:
    """The value of `reject_line` in a rejects file, as a number of a row; 0 if it is none."""
    digits = str(text)
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 12 else 0


class Source(Protocol):
    """A file of rows."""

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The names in a CSV's header; None for JSON lines, where each row has its own."""

    @property
    def header(self) -> str:
        """The text of the header for the rejects file, without its line end."""

    @property
    def delimiter(self) -> str:
        """The character between the values of a row, here and in the rejects file."""

    @property
    def encoding(self) -> str:
        """The codec of the file's text; "utf-8" for a workbook."""

    @property
    def position(self) -> int:
        """How many bytes of the file on disk were read; for a compressed one, compressed bytes."""

    def rows(self) -> Iterator[SourceRow]:
        """All rows in the order of the file. Raises ImportFault if the file can't be read further."""
