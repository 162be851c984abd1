"""Encodings, delimiters and workbooks: files as people have them, and what is said about how they are read."""

from __future__ import annotations

import datetime
import io
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import openpyxl
import pytest

from importing import workbook
from importing.errors import ImportFault
from importing.opening import opened
from importing.rejects import Rejects
from importing.rows import Fault, Reading

from .conftest import Write

GERMAN = "id;name;rent\n1;Müllerstraße 12;1.234,50\n2;Café Größe;7,00\n"
SHEET = "xl/worksheets/sheet1.xml"


def read(path: Path, reading: Reading = Reading()) -> tuple[str, list[dict[str, str]]]:  # noqa: B008 - a constant
    """How a file is read, and its rows."""
    with opened(path, reading) as open_file:
        return open_file.description, [dict(row.values) for row in open_file.source.rows()]


@pytest.mark.parametrize(
    ("encoding", "description"),
    [
        ("cp1252", "read as Windows-1252, separated by semicolons"),
        ("utf-8", "read as UTF-8, separated by semicolons"),
        ("utf-8-sig", "read as UTF-8, separated by semicolons"),
        ("utf-16", "read as UTF-16, separated by semicolons"),
        ("utf-32", "read as UTF-32, separated by semicolons"),
        ("utf-16-le", "read as UTF-16, separated by semicolons"),
    ],
)
@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_the_same_rows_come_of_every_encoding(write: Write, encoding: str, description: str, name: str) -> None:
    assert read(write(name, GERMAN.encode(encoding))) == (
        description,
        [
            {"id": "1", "name": "Müllerstraße 12", "rent": "1.234,50"},
            {"id": "2", "name": "Café Größe", "rent": "7,00"},
        ],
    )


def test_utf_8_with_commas_needs_no_word(write: Write) -> None:
    assert read(write("a.csv", "a,b\n1,é\n")) == ("", [{"a": "1", "b": "é"}])
    assert read(write("a.jsonl", '{"a": "é"}\n')) == ("", [{"a": "é"}])


@pytest.mark.parametrize(
    ("text", "delimiter", "description"),
    [
        ("a,b\n1,2\n", ",", ""),
        ("a;b\n1,5;2\n", ";", "separated by semicolons"),
        ("a\tb, c\n1\t2\n", "\t", "separated by tabs"),
        ("a|b\n1|2\n", "|", "separated by vertical bars"),
        ('a;"b,c,d";e\n1;"x;y";"z,z"\n', ";", "separated by semicolons"),
        ("name\nElm\nOak\n", ",", ""),
        ("a;b,c,d,e\n1;2,3,4,5\n", ",", ""),
    ],
)
def test_the_delimiter_is_the_one_under_which_header_and_rows_agree(
    write: Write, text: str, delimiter: str, description: str
) -> None:
    with opened(write("a.csv", text)) as open_file:
        assert open_file.source.delimiter == delimiter
        assert description in open_file.description
        assert all(row.fault is None for row in open_file.source.rows())


def test_a_byte_late_in_a_big_file_decides_its_encoding(write: Write) -> None:
    many = 60_000
    path = write("a.csv", b"a,b\n" + b"1,plain text without any accent\n" * many + b"2,caf\xe9\n")
    description, rows = read(path)
    assert description == "read as Windows-1252, separated by commas"
    assert (len(rows), rows[-1]["b"]) == (many + 1, "café")


def test_a_utf_8_file_is_utf_8_whatever_else_is_in_it(write: Write) -> None:
    with opened(write("a.csv", "a,b\n1,é\n".encode() + b"2,caf\xe9\n" * 100)) as open_file:
        assert open_file.source.encoding == "utf-8"
        rows = list(open_file.source.rows())
    assert [row.fault is None for row in rows] == [True, *[False] * 100]
    assert rows[1].fault is not None and rows[1].fault.reason == "is not UTF-8 text (byte 0xE9)"


def test_a_file_of_any_encoding_is_read_right_or_refused(write: Write) -> None:
    samples = {
        "cp1252": [
            "Café à l'Hôtel de Ville; élève",
            "Müllerstraße 12",
            "señor Núñez",
            "tenant’s door – broken",
            "12 €",
        ],
        "cp1250": ["Łódź, ulica Święty Jan; żółty", "Příliš žluťoučký kůň; Plzeň"],
        "iso8859_2": ["Łódź, ulica Święty Jan; żółty"],
        "cp1251": ["Москва, улица Ленина; протечка воды"],
        "koi8_r": ["Москва, улица Ленина; протечка воды"],
        "cp1253": ["Αθήνα; διαρροή νερού"],
        "cp1254": ["İstanbul, çeşme sızıntısı ığ"],
        "mac_roman": ["Café à l'Hôtel de Ville; élève", "tenant’s door – broken", "Reparación; señor Núñez"],
        "cp850": ["Café à l'Hôtel de Ville; élève", "Müllerstraße 12"],
        "shift_jis": ["東京都 水漏れ 修理"],
        "euc_jp": ["東京都 水漏れ 修理"],
    }
    right = refused = 0
    for encoding, texts in samples.items():
        for text in texts:
            for many in (1, 20):
                path = write("a.csv", ("a|b\n" + f"1|{text}\n" * many).encode(encoding))
                try:
                    _, rows = read(path)
                except ImportFault as failed:
                    refused += 1
                    assert "line 2, byte 0x" in str(failed) and "in doubt" in str(failed), encoding
                else:
                    right += 1
                    assert rows == [{"a": "1", "b": text}] * many, encoding
                assert read(path, Reading(encoding=encoding))[1] == [{"a": "1", "b": text}] * many
    assert right > refused
    assert refused > 0


def test_settings_outweigh_what_is_found_and_a_mark_outweighs_settings(write: Write) -> None:
    path = write("a.csv", "a,b;c\n1,é;2\n".encode("cp1252"))
    assert read(path, Reading("cp1250", ";"))[1] == [{"a,b": "1,é", "c": "2"}]
    assert read(path, Reading("cp1251"))[1] == [{"a": "1", "b;c": "й;2"}]
    assert read(write("b.csv", "a,b\n1,é\n".encode("utf-8-sig")), Reading("cp1252"))[1] == [{"a": "1", "b": "é"}]


def test_a_byte_that_the_encoding_lacks_costs_its_row(write: Write) -> None:
    with opened(write("a.csv", b"a,b\n1,caf\xe9\n2,\x81\n"), Reading("cp1252")) as open_file:
        faults = [row.fault for row in open_file.source.rows()]
    assert faults == [None, Fault("b", "is not Windows-1252 text (byte 0x81)", "is not Windows-1252 text", "\udc81")]


def test_rejects_of_any_encoding_are_read_by_the_same_command(write: Write, tmp_path: Path) -> None:
    path = write("a.csv", GERMAN.encode("cp1252"))
    reading = Reading("cp1252", ";")
    with opened(path, reading) as open_file:
        rejects = Rejects(path, open_file.source, None, tmp_path)
        for row in open_file.source.rows():
            rejects.add(row, Fault("name", "Łódź; is wrong"))
        rejects.close()
    assert rejects.file is not None
    assert read(rejects.file, reading)[1] == read(path, reading)[1]
    with opened(rejects.file, reading) as open_file:
        assert [(row.line, row.number) for row in open_file.source.rows()] == [(2, 2), (3, 3)]


def book(path: Path, **sheets: list[list[object]]) -> Path:
    """Writes a workbook. A cell may be a pair of a value and its format."""
    workbook = openpyxl.Workbook()
    workbook.remove(workbook.worksheets[0])
    for name, rows in sheets.items():
        sheet = workbook.create_sheet(name)
        for row, cells in enumerate(rows, 1):
            for column, value in enumerate(cells, 1):
                cell = sheet.cell(row, column)
                cell.value, form = value if isinstance(value, tuple) else (value, None)
                if form:
                    cell.number_format = form
    workbook.save(path)
    return path


def test_a_sheets_cells_are_texts_as_a_person_reads_them(tmp_path: Path) -> None:
    moment = datetime.datetime(2024, 1, 31, 14, 30)
    cells: list[tuple[object, str]] = [
        ("Café", "Café"),
        (7, "7"),
        (7.0, "7"),
        (0.1 + 0.2, "0.3"),
        (1e-7, "0.0000001"),
        (123456789012345, "123456789012345"),
        ((2127, "00000"), "02127"),
        ((1234.5, "#,##0.00 €"), "1234.5"),
        (datetime.date(2024, 1, 31), "2024-01-31"),
        ((moment, "dd/mm/yyyy hh:mm"), "2024-01-31T14:30:00"),
        ((moment, "dd/mm/yyyy"), "2024-01-31"),
        (datetime.time(9, 5), "09:05:00"),
        (datetime.timedelta(hours=30), "30:00:00"),
        (True, "true"),
        ("#N/A", "#N/A"),
        (None, ""),
        ("last", "last"),
    ]
    header: list[object] = [f"c{number}" for number in range(len(cells))]
    path = book(tmp_path / "a.xlsx", Units=[header, [], [value for value, _ in cells], ["short"]])
    with opened(path) as open_file:
        assert open_file.description == 'read the sheet "Units"'
        rows = list(open_file.source.rows())
    assert list(rows[0].values.values()) == [text for _, text in cells]
    assert [row.line for row in rows] == [3, 4]
    assert list(rows[1].values.values()) == ["short", *[""] * (len(cells) - 1)]


def test_a_sheet_is_chosen_by_name_where_there_are_several(tmp_path: Path) -> None:
    path = book(tmp_path / "a.xlsx", One=[["a"], [1]], Two=[["b"], [2]], Empty=[])
    assert read(path, Reading(sheet="Two")) == ('read the sheet "Two"', [{"b": "2"}])
    for sheet, reason in (
        ("", 'has 3 sheets ("One", "Two", "Empty")'),
        ("Three", 'no sheet "Three"'),
        ("Empty", "empty"),
    ):
        with pytest.raises(ImportFault) as caught:
            read(path, Reading(sheet=sheet))
        assert reason in str(caught.value)


def test_a_rejected_row_of_a_workbook_is_imported_again_from_csv(tmp_path: Path) -> None:
    path = book(tmp_path / "a.xlsx", Units=[["a", "b"], [1, "x, y"], [2, "z", "behind"]])
    with opened(path) as open_file:
        rejects = Rejects(path, open_file.source, None, tmp_path)
        faults = []
        for row in open_file.source.rows():
            faults.append(row.fault)
            rejects.add(row, row.fault or Fault("a", "wrong"))
        rejects.close()
    assert [fault and fault.reason for fault in faults] == [None, "has 3 values where the header has 2 columns"]
    assert rejects.file == tmp_path / "a.rejects.csv"
    assert rejects.file.read_text().splitlines()[1] == '2,a,wrong,1,"x, y"'


def replaced(path: Path, part: str, content: bytes) -> Path:
    """The workbook with another content of one part."""
    changed = path.with_name(f"{path.stem}-changed.xlsx")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(changed, "w", zipfile.ZIP_DEFLATED) as new:
        for member in old.infolist():
            new.writestr(member.filename, content if member.filename == part else old.read(member.filename))
    return changed


def sheet_of(rows: bytes) -> bytes:
    space = b"http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    return b'<worksheet xmlns="%s"><sheetData>%s</sheetData></worksheet>' % (space, rows)


@pytest.mark.parametrize(
    ("part", "content", "reason"),
    [
        (SHEET, lambda: sheet_of(b'<row r="1">' + b"<c/>" * 3_000_000 + b"</row>"), "one row of a sheet takes 8 MB"),
        (SHEET, lambda: sheet_of(b"<row/>" * (workbook.ROWS_MAX + 1)), "more than 1048576 rows"),
        (SHEET, lambda: b'<!DOCTYPE x [<!ENTITY a "aa">]>' + sheet_of(b"<row/>"), "holds comments"),
        (SHEET, lambda: sheet_of(b"<row/>").decode().encode("utf-16"), "comments or NUL"),
        (SHEET, lambda: b'<?xml version="1.0" encoding="cp037"?>' + sheet_of(b"<row/>"), "not UTF-8"),
        ("xl/styles.xml", lambda: b"<a>" + b"<b/>" * (workbook.OTHERS_TAGS_MAX + 1), "more than 5000000 parts"),
        ("xl/styles.xml", lambda: b" " * (workbook.OTHERS_BYTES_MAX + 1), "unpack to more than 128 MB"),
        (SHEET, lambda: b"<worksheet><broken", "damaged"),
        ("xl/workbook.xml", lambda: b"nothing", "damaged"),
    ],
    ids=["row", "rows", "entities", "utf-16", "ebcdic", "tags", "bytes", "cut xml", "no xml"],
)
def test_a_workbook_that_unpacks_to_too_much_is_refused(
    tmp_path: Path, part: str, content: Callable[[], bytes], reason: str
) -> None:
    path = replaced(book(tmp_path / "a.xlsx", Units=[["a"], [1]]), part, content())
    assert path.stat().st_size < 2 * 1024 * 1024
    with pytest.raises(ImportFault) as caught:
        read(path)
    assert reason in str(caught.value)


def memory_of(path: Path) -> tuple[int, int]:
    """The rows of a file, and the most memory in bytes that a process takes to read them."""
    program = """
import resource, sys
from pathlib import Path
from importing.opening import opened
with opened(Path(sys.argv[1])) as found:
    print(sum(1 for _ in found.source.rows()), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""
    words = [sys.executable, "-P", "-c", program, str(path)]
    rows, memory = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    return int(rows), int(memory)


def test_a_row_far_down_a_sheet_costs_no_memory_and_one_past_its_end_no_time(tmp_path: Path) -> None:
    header = b'<row r="1"><c t="inlineStr"><is><t>a</t></is></c></row>'
    far = header + b'<row r="900000"><c><v>7</v></c></row>'
    past = far + b'<row r="99999999999"><c><v>8</v></c></row>'
    small = memory_of(replaced(book(tmp_path / "a.xlsx", Units=[["a"]]), SHEET, sheet_of(header)))
    large = memory_of(replaced(book(tmp_path / "b.xlsx", Units=[["a"]]), SHEET, sheet_of(past)))
    assert (small[0], large[0]) == (0, 1)
    assert large[1] - small[1] < 16 * 1024 * 1024


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.xlsx", b"a,b\n1,2\n", "no workbook"),
        ("a.xlsx", workbook.OLE + b"\0" * 600, "password"),
        ("a.xls", workbook.OLE, "must be named"),
        ("a.csv", b"PK\x03\x04" + b"\0" * 30, "name a workbook .xlsx"),
        ("a.xlsx", b"", "no workbook"),
    ],
)
def test_files_that_are_no_workbooks_are_refused(write: Write, name: str, content: bytes, reason: str) -> None:
    with pytest.raises(ImportFault) as caught:
        read(write(name, content))
    assert reason in str(caught.value)


def test_a_cut_workbook_is_refused(tmp_path: Path) -> None:
    whole = book(tmp_path / "a.xlsx", Units=[["a"], [1]]).read_bytes()
    for size in range(10, len(whole), 400):
        (tmp_path / "cut.xlsx").write_bytes(whole[:size])
        with pytest.raises(ImportFault):
            read(tmp_path / "cut.xlsx")


def test_reading_a_big_file_takes_little_memory(write: Write) -> None:
    row = "1;Größe und Länge einer Wohnung mit Ausblick\n"
    small = memory_of(write("small.csv", ("a;b\n" + row * 10).encode("cp1252")))
    path = write("large.csv", ("a;b\n" + row * 200_000).encode("cp1252"))
    large = memory_of(path)
    assert (small[0], large[0]) == (10, 200_000)
    assert large[1] - small[1] < path.stat().st_size * 0.7


def test_the_libraries_for_other_files_are_loaded_only_when_they_are_needed(write: Write) -> None:
    plain, foreign = write("plain.csv", "a,b\n1,é\n"), write("foreign.csv", "a;b\n1;протечка\n".encode("cp1251"))
    program = """
import sys
from pathlib import Path
import makeready_cli.program
from importing.errors import ImportFault
from importing.opening import opened
heavy = lambda: [name for name in ("openpyxl", "charset_normalizer") if name in sys.modules]
with opened(Path(sys.argv[1])) as found:
    list(found.source.rows())
print(heavy())
try:
    opened(Path(sys.argv[2])).__enter__()
except ImportFault:
    pass
print(heavy())
"""
    words = [sys.executable, "-P", "-c", program, str(plain), str(foreign)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "['charset_normalizer']"]


def test_nothing_is_printed_and_no_warning_raised_by_a_broken_stream() -> None:
    with pytest.raises(ImportFault):
        workbook.check("a.xlsx", io.BytesIO(b"PK\x03\x04"))
