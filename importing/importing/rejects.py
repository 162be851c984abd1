"""The rejects file: the rejected rows, each with its line, field and reason, ready to be corrected."""

from __future__ import annotations

import itertools
import json
import os
import re
from pathlib import Path
from typing import Protocol, TextIO

from importing.csv_source import written
from importing.errors import ImportFault
from importing.rows import REJECT_COLUMNS, Fault, Source, SourceRow
from importing.values import REJECTS_ENDING


class RejectsText:
    """The text of rejected rows. CSV: the header of the source after `reject_line,reject_field,reject_reason`. JSON
    lines: the same three as the first members. A row that is not valid CSV or JSON is as it was."""

    def __init__(self, source: Source) -> None:
        self._source = source

    @property
    def head(self) -> str:
        """The beginning of the file: a byte order mark if the source is not UTF-8, and a CSV's header."""
        # The mark outweighs an encoding in the mapping, which is that of the source.
        mark = "" if self._source.encoding == "utf-8" else "\ufeff"
        if self._source.columns is None:
            return mark
        delimiter = self._source.delimiter
        return f"{mark}{written(REJECT_COLUMNS, delimiter)}{delimiter}{self._source.header}\n"

    def line(self, row: SourceRow, fault: Fault) -> str:
        """One row, with its line end."""
        line = row.number or row.line
        reject_values = (str(line), fault.field, fault.reason)
        text = row.kept.rstrip("\r\n")
        if row.has_reject_columns:
            pass  # the row can't be parsed, and it already has the reason of its first rejection
        elif self._source.columns is not None:
            text = f"{written(reject_values, self._source.delimiter)}{self._source.delimiter}{text}"
        elif row.json is not None:
            members = dict(zip(REJECT_COLUMNS, (line, *reject_values[1:]), strict=True))
            comma = ", " if row.values else ""
            text = f"{json.dumps(members, ensure_ascii=False)[:-1]}{comma}{text[1:].lstrip()}"
        return f"{text}\n"


class RejectsSink(Protocol):
    """Where the rejected rows of one kind go."""

    @property
    def file(self) -> Path | None:
        """The file that has them, if there is one."""

    def add(self, row: SourceRow, fault: Fault) -> None:
        """Takes a rejected row. Raises ImportFault."""

    def flush(self) -> None:
        """The outcome of a batch is known."""

    def close(self) -> None:
        """No row follows."""


class Rejects:
    """A file of rejected rows. It is created with the first one; without one there is no file."""

    def __init__(self, source_file: Path, source: Source, chosen: Path | None, folder: Path, kind: str = "") -> None:
        """Writes the file `chosen`, and replaces it if it exists; without it, a new file in the folder. The kind goes
        into the file's name if an import makes several kinds of record. Raises ImportFault."""
        self._source_file = source_file
        self._text = RejectsText(source)
        self._ending = f"-{kind}" if kind else ""
        if kind and chosen is not None and (chosen.is_file() or not chosen.exists()):
            chosen = chosen.with_name(f"{chosen.stem}{self._ending}{chosen.suffix}")
        self._chosen = chosen
        self._folder = folder
        self._stream: TextIO | None = None
        self.file: Path | None = None
        if chosen is not None and chosen.exists() and chosen.samefile(source_file):
            raise ImportFault("The rejects file can't be the file that is imported; name another with --rejects.")
        # Checked now, not after half of the file has been imported.
        place = folder if chosen is None else chosen.parent
        written_to = (
            chosen if chosen is not None and chosen.exists() else place
        )  # /dev is closed to writing, /dev/null is not
        if not place.is_dir() or not os.access(written_to, os.W_OK):
            raise ImportFault(f"No rejects file can be written in {place.absolute()}; name another with --rejects.")

    def add(self, row: SourceRow, fault: Fault) -> None:
        stream = self._stream or self._open()
        stream.write(self._text.line(row, fault))

    def flush(self) -> None:
        if self._stream is not None:
            self._stream.flush()

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()

    def _open(self) -> TextIO:
        for path in [self._chosen] if self._chosen else names(self._source_file, self._folder, self._ending):
            try:
                stream = path.open("w" if self._chosen else "x", encoding="utf-8", errors="surrogateescape", newline="")
            except FileExistsError:
                continue
            except OSError as error:
                reason = error.strerror or error
                raise ImportFault(
                    f"The rejects file {path} can't be written: {reason}; name another with --rejects."
                ) from None
            self._stream, self.file = stream, path.absolute()
            stream.write(self._text.head)
            return stream
        raise AssertionError("names never end")


def names(source_file: Path, folder: Path, ending: str = "") -> itertools.chain[Path]:
    """NAME.rejects.csv, NAME.2.rejects.csv, …: the operator may still be correcting an older one. The ending is a
    kind's."""
    plain = source_file.name.removesuffix(".gz")
    stem, suffix = Path(plain).stem, Path(plain).suffix
    if suffix.lower() == ".xlsx":
        suffix = ".csv"
    stem = re.sub(REJECTS_ENDING, "", stem)
    numbered = (folder / f"{stem}.{number}.rejects{ending}{suffix}" for number in itertools.count(2))
    return itertools.chain([folder / f"{stem}.rejects{ending}{suffix}"], numbered)
