"""Opens any file of rows, and says how it is read."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from importing import delimiters, encodings
from importing.csv_source import CsvSource
from importing.errors import ImportFault, quoted
from importing.json_source import JsonSource
from importing.lines import UTF_8, RowTooLong, lines_of, stream_of
from importing.rows import Reading, Source
from importing.workbook import OLE, ZIP
from importing.xlsx_source import XlsxSource

FOUND = Reading()
CSV, JSON_LINES, WORKBOOK = (".csv",), (".jsonl", ".ndjson"), (".xlsx",)


@dataclass(frozen=True, slots=True)
class Opened:
    """A file that is open. `reading` says how it is read; opening the file with it again finds nothing anew."""

    source: Source
    reading: Reading

    @property
    def description(self) -> str:
        """`read as Windows-1252, separated by semicolons`; empty for UTF-8 with commas, which needs no word."""
        if isinstance(self.source, XlsxSource):
            return f"read the sheet {quoted(self.source.sheet)}"
        encoding, delimiter = self.source.encoding, self.source.delimiter
        if encoding == UTF_8 and delimiter == ",":
            return ""
        separated = "" if self.source.columns is None else f", separated by {delimiters.label(delimiter)}"
        return f"read as {encodings.label(encoding)}{separated}"


@contextmanager
def opened(path: Path, reading: Reading = FOUND) -> Iterator[Opened]:
    """The rows of a file, by the ending of its name. Raises ImportFault."""
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    if suffix in WORKBOOK and not path.name.endswith(".gz"):
        with stream_of(path) as (_, stream):
            source = XlsxSource(path.name, stream, reading.sheet)
            try:
                yield Opened(source, Reading(sheet=source.sheet))
            finally:
                source.close()
        return
    if suffix not in (*CSV, *JSON_LINES):
        raise ImportFault(f"{path} must be named .csv or .jsonl, or so with .gz behind, or .xlsx.")
    encoding, delimiter = _found(path, reading, suffix in CSV)
    with lines_of(path, encoding) as lines:
        rows: Source = CsvSource(lines, delimiter) if suffix in CSV else JsonSource(lines)
        yield Opened(rows, Reading(encoding, delimiter))


def _found(path: Path, reading: Reading, is_csv: bool) -> tuple[str, str]:
    """The encoding and the delimiter of a file: a mark, the settings, or what the file shows. Raises ImportFault."""
    if is_pipe(path):
        return reading.encoding or UTF_8, reading.delimiter or ","
    with stream_of(path) as (_, stream):
        try:
            start = stream.read(8)
        except (EOFError, OSError, zlib.error):
            start = b""  # the import reports it, with what was stored before
    if start.startswith((ZIP, OLE)):
        raise ImportFault(f"{path} is an Excel workbook or an archive; name a workbook .xlsx.")
    encoding = encodings.marked(start) or reading.encoding
    if not encoding:
        with stream_of(path) as (_, stream):
            encoding = encodings.detected(path.name, stream)
    if not is_csv or reading.delimiter:
        return encoding, reading.delimiter or ","
    sample = ""
    with lines_of(path, encoding) as lines, contextlib.suppress(ImportFault, RowTooLong):  # as above
        for line in lines:
            sample += line
            lines.begin()
            if len(sample) > delimiters.SAMPLE_CHARACTERS:
                break
    return encoding, delimiters.detected(sample[: delimiters.SAMPLE_CHARACTERS])


def is_pipe(path: Path) -> bool:
    """Whether a file can be read once only, so that nothing can be found in it beforehand."""
    return path.exists() and not path.is_file() and not path.is_dir()
