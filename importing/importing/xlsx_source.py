"""Rows of a sheet of an Excel workbook, each cell as a text: what a person reads in it, with dates in ISO form."""

from __future__ import annotations

import datetime
import itertools
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any, BinaryIO

from importing import workbook
from importing.csv_source import written
from importing.errors import ImportFault, quoted
from importing.lines import ROW_BYTES_MAX
from importing.rows import Fault, SourceRow

_ZEROS = re.compile(r"0{2,30}")
_MIDNIGHT = datetime.time()
TITLES_MAX = 10
"""So many rows above the names of the columns are passed over."""


class SheetNotNamed(ImportFault):
    """Several sheets are visible, or none. `sheets` are those that may be meant."""

    def __init__(self, reason: str, sheets: tuple[str, ...]) -> None:
        super().__init__(reason)
        self.sheets = sheets


class XlsxSource:
    """A sheet whose first row that is not blank names the columns. Titles above that row are passed over."""

    delimiter = ","
    encoding = "utf-8"

    def __init__(self, name: str, stream: BinaryIO, sheet: str = "") -> None:
        """Reads the header. The name of the sheet may be left out if one sheet is visible. Raises ImportFault."""
        workbook.check(name, stream)
        self._name = name
        self._stream = stream
        # Loaded only here: it takes 15 MB, and most files are CSV.
        import openpyxl  # noqa: PLC0415 - only now, for the reason above

        try:
            self._book = openpyxl.load_workbook(stream, read_only=True, data_only=True, keep_links=False)
        except MemoryError:
            raise
        except Exception as error:  # a damaged workbook fails in openpyxl with whatever error comes first
            raise self._damaged(error) from None
        sheets = {worksheet.title: worksheet.sheet_state == "visible" for worksheet in self._book.worksheets}
        self.sheets = tuple(sorted(sheets, key=lambda name: not sheets[name]))
        """The names of all sheets, the visible ones first."""
        self.sheet = self._chosen(sheet, sheets)
        self._rows = self._read()
        first_rows = list(itertools.islice(self._rows, TITLES_MAX + 1))
        if not first_rows:
            raise ImportFault(f"{name}: the sheet {quoted(self.sheet)} is empty; it begins with a row of column names.")
        place = _header_place([cells for _, cells in first_rows])
        header = first_rows[place]
        self._rows = itertools.chain(first_rows[place + 1 :], self._rows)
        self.columns = tuple(header[1])
        self.header = written(self.columns)

    @property
    def position(self) -> int:
        return self._stream.tell()

    def close(self) -> None:
        self._book.close()

    def rows(self) -> Iterator[SourceRow]:
        for number, cells in self._rows:
            fields = [*cells, *[""] * (len(self.columns) - len(cells))]  # a row may end before the last column
            fault = _fault(fields, len(self.columns))
            values = {} if fault else dict(zip(self.columns, fields, strict=True))
            yield SourceRow(number, written(fields), values, fault)

    def _chosen(self, sheet: str, sheets: dict[str, bool]) -> str:
        visible = [name for name, is_visible in sheets.items() if is_visible]
        listed = ", ".join(quoted(name) for name in (visible or sheets))
        if sheet and sheet not in sheets:
            raise ImportFault(f"{self._name} has no sheet {quoted(sheet)}; it has {listed or 'none'}.")
        if sheet:
            return sheet
        if len(visible) != 1:
            raise SheetNotNamed(
                f"{self._name} has {len(visible)} sheets ({listed or 'none'}); name one with --sheet, "
                "or as sheet in the mapping.",
                tuple(visible or sheets),
            )
        return visible[0]

    def _read(self) -> Iterator[tuple[int, list[str]]]:
        """The rows that are not blank, with their numbers in the sheet, without blank cells at their ends."""
        sheet: Any = self._book[self.sheet]
        sheet.reset_dimensions()  # some programs write wrong ones, and openpyxl would then leave rows out
        try:
            for number, cells in enumerate(sheet.iter_rows(min_row=1, max_row=workbook.ROWS_MAX), 1):
                width = len(cells)
                while width and cells[width - 1].value in (None, ""):
                    width -= 1
                if width:
                    yield number, [_text(cell) for cell in cells[:width]]
        except (ImportFault, MemoryError):
            raise
        except Exception as error:  # as above
            raise self._damaged(error) from None

    def _damaged(self, error: Exception) -> ImportFault:
        return ImportFault(
            f"{self._name} is damaged: it can't be read as a workbook ({type(error).__name__}: {error})."
        )


def _header_place(rows: Sequence[Sequence[str]]) -> int:
    """Which of the first rows names the columns: the first behind titles. A title has one text, or few above a row of
    texts that has many more."""
    for place, (row, following) in enumerate(itertools.pairwise(rows)):
        texts = sum(1 for text in row if text)
        is_title = texts == 1 and max(map(len, rows[place + 1 :])) > 1
        is_group = len(row) > 1 and 2 * texts <= len(following) and all(map(_is_name, following))
        if not (is_title or is_group):
            return place
    return 0


def _is_name(text: str) -> bool:
    return bool(text) and not text[0].isdigit() and text not in ("true", "false")


def _fault(fields: Sequence[str], width: int) -> Fault | None:
    if len(fields) > width:
        return Fault("", f"has {len(fields)} values where the header has {width} columns")
    if sum(map(len, fields)) > ROW_BYTES_MAX:
        return Fault("", f"is longer than {ROW_BYTES_MAX} bytes")
    return None


def _text(cell: Any) -> str:
    """A cell as a text. A number has no separators, no sign of a currency and no rounding, but it has the zeros in
    front that its format shows. A formula has the value that was saved with it."""
    value = cell.value
    if value is None:
        return ""
    if isinstance(value, str):
        return value.replace("_x000D_", "\r")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return _number(value, cell.number_format)
    return _moment(value, cell.number_format)


def _moment(value: Any, form: str) -> str:
    """A date, a time, both or a span of time, as its format shows it."""
    from openpyxl.styles.numbers import is_datetime  # noqa: PLC0415 - loaded already, by XlsxSource

    if isinstance(value, datetime.datetime):
        if value.time() == _MIDNIGHT or is_datetime(form) == "date":
            return value.date().isoformat()
        return value.isoformat(timespec="milliseconds" if value.microsecond else "seconds")
    if isinstance(value, datetime.timedelta):
        seconds = round(value.total_seconds())
        return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return str(value.isoformat()) if isinstance(value, datetime.date | datetime.time) else str(value)


def _number(value: float, form: str) -> str:
    # Fifteen digits, as Excel shows and stores them: 0.1 + 0.2 is 0.3.
    text = f"{Decimal(f'{value:.15g}'):f}" if isinstance(value, float) else str(value)
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    if _ZEROS.fullmatch(form) and text.isdigit():
        return text.zfill(len(form))
    return "0" if text == "-0" else text
