"""The lines of a file, plain or gzipped, numbered. Memory never holds more of them than one row."""

from __future__ import annotations

import gzip
import io
import zlib
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from makeready_cli.errors import CommandError

ROW_BYTES_MAX = 1024 * 1024  # text fields end at 20,000 characters, so a longer row is an unclosed quote
BOM = b"\xef\xbb\xbf"
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
GZIP = b"\x1f\x8b"


class RowTooLong(Exception):  # noqa: N818
    """A row is longer than ROW_BYTES_MAX."""


class Lines:
    """Iterates over the lines of the current row; `begin` starts the next row.

    Bytes that are not UTF-8 become lone surrogates and set `is_damaged`.
    """

    def __init__(self, name: str, raw: BinaryIO, stream: BinaryIO) -> None:
        self.name = name
        self._raw = raw
        self._stream = stream
        self._ahead: deque[str] = deque()
        self._row: list[str] = []
        self._row_length = 0
        self._at_start = True
        self.line = 1
        """The number of the row's first line, from 1."""

    @property
    def position(self) -> int:
        """How many bytes of the file on disk were read; for a gzipped one, compressed bytes."""
        return self._raw.tell()

    def begin(self) -> None:
        self.line += len(self._row)
        self._row, self._row_length = [], 0

    @property
    def text(self) -> str:
        """The row's text in the file."""
        return "".join(self._row)

    @property
    def is_damaged(self) -> bool:
        text = self.text
        return not text.isascii() and _has_surrogate(text)

    def give_back(self) -> None:
        """Ends the row after its first line; the row's other lines are read again as rows of their own."""
        self._ahead.extendleft(reversed(self._row[1:]))
        del self._row[1:]

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._ahead.popleft() if self._ahead else self._read()
        self._row.append(line)
        self._row_length += len(line)
        if self._row_length > ROW_BYTES_MAX:
            raise RowTooLong
        return line

    def _read(self) -> str:
        line = self._readline(ROW_BYTES_MAX + 1)
        if not line:
            raise StopIteration
        if self._at_start:
            self._at_start = False
            if line.startswith(UTF_16):
                raise CommandError(f"{self.name} is encoded in UTF-16; save it as UTF-8.")
            line = line.removeprefix(BOM)
        if len(line) > ROW_BYTES_MAX and not line.endswith(b"\n"):
            # The rest of an endless line is skipped; its start is enough for a person to find it.
            while (rest := self._readline(ROW_BYTES_MAX)) and not rest.endswith(b"\n"):
                pass
            line += b"\n"
        return line.decode("utf-8", "surrogateescape")

    def _readline(self, size: int) -> bytes:
        try:
            return self._stream.readline(size)
        except EOFError:
            raise CommandError(f"{self.name} ends too early: the gzip file is cut short.") from None
        except (gzip.BadGzipFile, zlib.error):
            raise CommandError(f"{self.name} is damaged: it can't be unzipped past line {self.line}.") from None
        except OSError as error:
            raise CommandError(f"{self.name} can't be read: {error.strerror or error}.") from None


def _has_surrogate(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


@contextmanager
def lines_of(path: Path) -> Iterator[Lines]:
    """Opens a file; its first bytes show whether it is gzipped. Raises CommandError."""
    try:
        raw = path.open("rb")
    except OSError as error:
        raise CommandError(f"{path} can't be read: {error.strerror or error}.") from None
    with raw:
        zipped = raw.peek(2)[:2] == GZIP
        if path.suffix == ".gz" and not zipped and raw.peek(1):
            raise CommandError(f"{path} is named .gz but is not a gzip file.")
        if zipped:
            with gzip.open(raw, "rb") as stream:
                yield Lines(path.name, raw, cast(BinaryIO, io.BufferedReader(stream)))
        else:
            yield Lines(path.name, raw, raw)
