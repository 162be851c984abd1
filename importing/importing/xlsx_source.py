"""Rows of a sheet of an Excel workbook, each cell as a text: what a person reads in it, with dates in ISO form."""

from __future__ import annotations

import datetime
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


class XlsxSource:
    """A sheet whose first row that is not blank names the columns."""

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
        self.sheet = self._chosen(sheet)
        self._rows = self._read()
        header = next(self._rows, None)
        if header is None:
            raise ImportFault(f"{name}: the sheet {quoted(self.sheet)} is empty; it begins with a row of column names.")
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

    def _chosen(self, sheet: str) -> str:
        sheets = {worksheet.title: worksheet.sheet_state == "visible" for worksheet in self._book.worksheets}
        visible = [name for name, is_visible in sheets.items() if is_visible]
        listed = ", ".join(quoted(name) for name in (visible or sheets))
        if sheet and sheet not in sheets:
            raise ImportFault(f"{self._name} has no sheet {quoted(sheet)}; it has {listed or 'none'}.")
        if sheet:
            return sheet
        if len(visible) != 1:
            raise ImportFault(
                f"{self._name} has {len(visible)} sheets ({listed or 'none'}); name one with --sheet, "
                "or as sheet in the mapping."
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
