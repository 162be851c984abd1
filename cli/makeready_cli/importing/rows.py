"""What a file gives: rows with their line, and what is wrong with those that can't be taken."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a row is rejected. field: the public field, or the column; empty where it is the whole row."""

    field: str
    reason: str


class Faulty(Exception):  # noqa: N818 - a row's fate, not an error of ours
    """Raised where a row turns out to be unusable."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(reason)
        self.fault = Fault(field, reason)


@dataclass(slots=True)  # frozen would cost a microsecond a row
class SourceRow:
    """One row of the file.

    line: of its first line in the file, from 1. kept: its text as the rejects file keeps it; bytes that are
    no UTF-8 stand in it as lone surrogates. values: column to value, empty where there is a fault. json: the
    object as it was written, of JSON lines. has_reject_columns: `kept` still begins with the columns of the
    rejects file that it came from.
    """

    line: int
    kept: str
    values: Mapping[str, Any]
    fault: Fault | None = None
    json: str | None = None
    has_reject_columns: bool = False


# What the rejects file adds to a row, in front. A file that bears them is read as if they were not there,
# so that a rejects file can be mended and imported as it is.
REJECT_COLUMNS = ("reject_line", "reject_field", "reject_reason")


class Source(Protocol):
    """A file of rows."""

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The names in a CSV's header; None for JSON lines, where every row has its own."""

    @property
    def header(self) -> str:
        """The text of the header as the rejects file repeats it, without its line end."""

    def rows(self) -> Iterator[SourceRow]:
        """All rows in the order of the file. Raises Failed where the file itself can't be read on."""
