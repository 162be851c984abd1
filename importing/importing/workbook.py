"""Whether an Excel workbook is safe to read: a small file may unpack to gigabytes, or to a row of millions of cells.

openpyxl reads a sheet row by row, and the other parts (texts, styles) as a whole. So the rows of the sheets are
measured before it opens the file, and the other parts are limited together.
"""

from __future__ import annotations

import itertools
import re
import zipfile
import zlib
from typing import BinaryIO

from importing.errors import ImportFault

ROWS_MAX = 1_048_576  # Excel's own limit
SHEETS_BYTES_MAX = 1024 * 1024 * 1024
OTHERS_BYTES_MAX = 128 * 1024 * 1024
OTHERS_TAGS_MAX = 5_000_000  # a tag takes some 100 bytes of memory while it is parsed
ROW_BYTES_MAX = 8 * 1024 * 1024  # as XML; a row of 100 values takes 5 kB
PARTS_MAX = 10_000
ZIP = b"PK\x03\x04"
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # .xls, and a workbook with a password
_BLOCK_BYTES = 256 * 1024
_ROW = re.compile(rb"<(?:[A-Za-z_][\w.-]{0,40}:)?row[\s/>]")
_ENCODING = re.compile(rb"""^(?:\xef\xbb\xbf)?<\?xml[^>]*encoding=["']([^"']*)["']""")


def check(name: str, stream: BinaryIO) -> None:
    """Reads the whole workbook once. Raises ImportFault if it can't be read within the limits."""
    start = stream.read(8)
    stream.seek(0)
    if start == OLE:
        raise ImportFault(
            f"{name} is protected by a password, or in Excel's old format; save it as .xlsx without a password."
        )
    try:
        with zipfile.ZipFile(stream) as archive:
            parts = archive.infolist()
            if len(parts) > PARTS_MAX:
                raise ImportFault(f"{name} has {len(parts)} parts; a workbook may have {PARTS_MAX}.")
            sheets = [part for part in parts if part.filename.startswith("xl/worksheets/") and part.file_size]
            others = [part for part in parts if not part.filename.startswith("xl/worksheets/")]
            _limit(name, "its sheets", sheets, SHEETS_BYTES_MAX)
            _limit(name, "its texts and styles", others, OTHERS_BYTES_MAX)
            if sum(_tags(archive, part) for part in others) > OTHERS_TAGS_MAX:
                raise ImportFault(f"{name} is too large: its texts and styles have more than {OTHERS_TAGS_MAX} parts.")
            for part in sheets:
                _check_sheet(name, archive, part)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise ImportFault(f"{name} is damaged or no workbook: {error}.") from None
    finally:
        stream.seek(0)


def _limit(name: str, subject: str, parts: list[zipfile.ZipInfo], bytes_max: int) -> None:
    # zipfile reads no more of a part than the size in its entry.
    if sum(part.file_size for part in parts) > bytes_max:
        raise ImportFault(
            f"{name} is too large: {subject} unpack to more than {bytes_max // 1024**2} MB. Save it as CSV."
        )


def _tags(archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> int:
    with archive.open(part) as stream:
        return sum(block.count(b"<") for block in iter(lambda: stream.read(_BLOCK_BYTES), b""))


def _check_sheet(name: str, archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> None:
    """Counts a sheet's rows and measures the longest."""
    rows, since, tail = 0, 0, b""
    with archive.open(part) as stream:
        for block in iter(lambda: stream.read(_BLOCK_BYTES), b""):
            if not rows and not since:
                encoding = _ENCODING.match(block[:200])
                if encoding is not None and encoding[1].lower() not in (b"utf-8", b"us-ascii"):
                    raise ImportFault(f"{name} can't be read: its sheets are not UTF-8. Save it again with Excel.")
            # Neither occurs in a sheet of a spreadsheet program; both would hide rows from this measurement.
            if b"\0" in block or b"<!" in tail[-1:] + block:
                raise ImportFault(f"{name} can't be read: a sheet holds comments or NUL. Save it again with Excel.")
            seen = tail + block
            # Tags that end within the tail were counted with the block before.
            starts = [match.start() for match in _ROW.finditer(seen) if match.end() > len(tail)]
            rows += len(starts)
            since = len(seen) - starts[-1] if starts else since + len(block)
            gap = max((after - before for before, after in itertools.pairwise(starts)), default=0)
            if max(since, gap) > ROW_BYTES_MAX:
                raise ImportFault(
                    f"{name} is too large: one row of a sheet takes {ROW_BYTES_MAX // 1024**2} MB or more."
                )
            if rows > ROWS_MAX:
                raise ImportFault(f"{name} is too large: a sheet has more than {ROWS_MAX} rows. Save it as CSV.")
            tail = block[-50:]
