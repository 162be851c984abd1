"""The rows of a file with their line numbers, and the faults of unusable rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a row is rejected. field: the public field or the column; empty if the whole row is at fault."""

    field: str
    reason: str


class Faulty(Exception):  # noqa: N818 - a row's fate, not an error of ours
    """Raised if a row is unusable."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(reason)
        self.fault = Fault(field, reason)


@dataclass(slots=True)  # frozen would cost a microsecond a row
class SourceRow:
    """One row of the file.

    line: its first line in the file, from 1. kept: its text for the rejects file; bytes that are not UTF-8 are lone
    surrogates in it. values: column to value, empty if there is a fault. json: the original object, for JSON lines.
    has_reject_columns: `kept` still begins with the columns of the rejects file that it was read from.
    """

    line: int
    kept: str
    values: Mapping[str, Any]
    fault: Fault | None = None
    json: str | None = None
    has_reject_columns: bool = False


# The rejects file puts these columns in front of a row. They are ignored when a file has them, so a corrected rejects
# file can be imported as it is.
REJECT_COLUMNS = ("reject_line", "reject_field", "reject_reason")


class Source(Protocol):
    """A file of rows."""

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The names in a CSV's header; None for JSON lines, where each row has its own."""

    @property
    def header(self) -> str:
        """The text of the header for the rejects file, without its line end."""

    def rows(self) -> Iterator[SourceRow]:
        """All rows in the order of the file. Raises CommandError if the file can't be read further."""
