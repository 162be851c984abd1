"""The lines of a file, plain or gzipped, in any encoding, numbered. Memory never holds more of them than one row."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from importing.errors import ImportFault

ROW_BYTES_MAX = 1024 * 1024  # text fields end at 20,000 characters, so a longer row is an unclosed quote
BOM = b"\xef\xbb\xbf"
GZIP = b"\x1f\x8b"
UTF_8 = "utf-8"
# In these a line feed is more than one byte, so they become UTF-8 before they are cut into lines.
WIDE = ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be")
_BLOCK_BYTES = 64 * 1024


class RowTooLong(Exception):  # noqa: N818
    """A row is longer than ROW_BYTES_MAX."""


class Lines:
    """Iterates over the lines of the current row; `begin` starts the next row.

    Bytes that are not text in the file's encoding become lone surrogates and set `is_damaged`.
    """

    def __init__(self, name: str, raw: BinaryIO, stream: BinaryIO, encoding: str = UTF_8) -> None:
        """The encoding is the name of a codec, in the spelling of `codecs.lookup`."""
        self.name = name
        self.encoding = encoding
        self._raw = raw
        if encoding in WIDE:
            self._stream: BinaryIO = cast(BinaryIO, io.BufferedReader(_AsUtf8(name, stream, encoding)))
            self._codec = UTF_8
        else:
            self._stream, self._codec = stream, encoding
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
        row = self._row
        return row[0] if len(row) == 1 else "".join(row)

    @property
    def is_damaged(self) -> bool:
        text = self.text
        return not text.isascii() and _has_surrogate(text)

    @property
    def damage(self) -> str:
        """The first byte that is not text, for a sentence: `byte 0xE9`. Empty if the file's characters are wider."""
        if self.encoding in WIDE:
            return ""
        return next(
            (f"byte 0x{ord(character) - 0xDC00:02X}" for character in self.text if "\udc80" <= character <= "\udcff"),
            "",
        )

    def give_back(self) -> int:
        """Ends the row after its first line; the row's other lines are read again as rows of their own. Returns how
        many characters these have."""
        characters = sum(map(len, self._row[1:]))
        self._ahead.extendleft(reversed(self._row[1:]))
        del self._row[1:]
        return characters

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
        try:
            line = self._stream.readline(ROW_BYTES_MAX + 1)
        except (EOFError, OSError, zlib.error) as error:
            raise self._unreadable(error) from None
        if not line:
            raise StopIteration
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(BOM)
        if len(line) > ROW_BYTES_MAX and not line.endswith(b"\n"):
            # The rest of an endless line is skipped; its start is enough for a person to find it.
            while (skipped := self._readline(ROW_BYTES_MAX)) and not skipped.endswith(b"\n"):
                pass
            line += b"\n"
        try:
            return line.decode(self._codec, "surrogateescape")
        except UnicodeDecodeError:  # a codec of several bytes a character, cut short before an ASCII character
            return line.decode("ascii", "surrogateescape")

    def _readline(self, size: int) -> bytes:
        try:
            return self._stream.readline(size)
        except (EOFError, OSError, zlib.error) as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: Exception) -> ImportFault:
        if isinstance(error, EOFError):
            return ImportFault(f"{self.name} ends too early: the gzip file is cut short.")
        if isinstance(error, gzip.BadGzipFile | zlib.error):
            return ImportFault(f"{self.name} is damaged: it can't be unzipped past line {self.line}.")
        assert isinstance(error, OSError)
        return ImportFault(f"{self.name} can't be read: {error.strerror or error}.")


class _AsUtf8(io.RawIOBase):
    """A stream of wide characters as UTF-8. Halves of characters become bytes that are not UTF-8."""

    def __init__(self, name: str, stream: BinaryIO, encoding: str) -> None:
        self._name = name
        self._stream = stream
        self._label = encoding.upper()[:6]
        self._decoder = codecs.getincrementaldecoder(encoding)("surrogatepass")
        self._ready = b""
        self._has_ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready and not self._has_ended:
            block = self._stream.read(_BLOCK_BYTES)
            self._has_ended = not block
            try:
                self._ready = self._decoder.decode(block, final=not block).encode(UTF_8, "surrogatepass")
            except UnicodeDecodeError as error:
                reason = "it ends in the middle of a character" if self._has_ended else f"{error.reason}"
                raise ImportFault(f"{self._name} is not {self._label} text: {reason}.") from None
        size = min(len(buffer), len(self._ready))
        buffer[:size], self._ready = self._ready[:size], self._ready[size:]
        return size


def _has_surrogate(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


@contextmanager
def lines_of(path: Path, encoding: str = UTF_8) -> Iterator[Lines]:
    """The lines of a file. Raises ImportFault."""
    with stream_of(path) as (raw, stream):
        yield Lines(path.name, raw, stream, encoding)


@contextmanager
def stream_of(path: Path) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Opens a file, and what it holds: its first bytes show whether it is gzipped. Raises ImportFault."""
    try:
        raw = path.open("rb")
    except OSError as error:
        raise ImportFault(f"{path} can't be read: {error.strerror or error}.") from None
    with raw:
        zipped = raw.peek(2)[:2] == GZIP
        if path.suffix == ".gz" and not zipped and raw.peek(1):
            raise ImportFault(f"{path} is named .gz but is not a gzip file.")
        if zipped:
            with gzip.open(raw, "rb") as stream:
                yield raw, cast(BinaryIO, io.BufferedReader(stream))
        else:
            yield raw, raw
