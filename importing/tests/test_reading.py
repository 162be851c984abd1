"""Reading files as rows: lines, encodings, quotes, and the faults of a row."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from importing import csv_source
from importing.errors import ImportFault
from importing.lines import ROW_BYTES_MAX

from .conftest import Rows, Write


def faults(source_rows: list[Any]) -> list[tuple[int, str, str]]:
    return [(row.line, row.fault.field, row.fault.reason) for row in source_rows if row.fault is not None]


def test_a_row_that_spans_lines_is_named_by_its_first_line(write: Write, rows: Rows) -> None:
    path = write("a.csv", 'a,b\n1,"x\ny\nz"\n2,w\n')
    assert [(row.line, dict(row.values)) for row in rows(path)] == [
        (2, {"a": "1", "b": "x\ny\nz"}),
        (5, {"a": "2", "b": "w"}),
    ]


@pytest.mark.parametrize(
    "content",
    [
        b"a,b\r\n1,\xc3\xa9\r\n",
        b"\xef\xbb\xbfa,b\n1,\xc3\xa9\n",
        b"a,b\n1,\xc3\xa9",
        b"\n\na,b\n\n1,\xc3\xa9\n,\n\n",
        gzip.compress(b"a,b\n1,\xc3\xa9\n"),
    ],
    ids=["crlf", "byte order mark", "no last line end", "blank lines", "gzip without .gz"],
)
def test_the_same_row_is_read_however_the_file_is_written(write: Write, rows: Rows, content: bytes) -> None:
    (row,) = rows(write("a.csv", content))
    assert dict(row.values) == {"a": "1", "b": "é"}
    assert row.fault is None


def test_gzipped_files_are_read_by_their_inner_name(write: Write, rows: Rows) -> None:
    assert dict(rows(write("a.csv.gz", "a\n1\n"))[0].values) == {"a": "1"}
    assert dict(rows(write("a.jsonl.gz", '{"a": 1}\n'))[0].values) == {"a": 1}


def test_bytes_that_are_no_text_cost_their_row_alone(write: Write, rows: Rows) -> None:
    source_rows = rows(write("a.csv", b"a,b\n1,caf\xc3\xa9\n2,caf\xe9\n3,ok\n"))
    assert faults(source_rows) == [(3, "b", "is not UTF-8 text (byte 0xE9)")]
    assert [row.line for row in source_rows] == [2, 3, 4]


def test_ragged_rows_and_nul_are_rejected_by_line(write: Write, rows: Rows) -> None:
    source_rows = rows(write("a.csv", "a,b\n1\n1,2,3\n1,x\0y\n1,2\n"))
    assert faults(source_rows) == [
        (2, "", "has 1 values where the header has 2 columns"),
        (3, "", "has 3 values where the header has 2 columns"),
        (4, "b", "holds the character NUL"),
    ]


def test_a_quote_left_open_costs_its_line_alone(write: Write, rows: Rows) -> None:
    source_rows = rows(write("a.csv", 'a,b\n1,"open\n2,x\n3,"fine"\n4,y\n'))
    assert [(row.line, row.fault is None) for row in source_rows] == [(2, False), (3, True), (4, True), (5, True)]
    source_rows = rows(write("b.csv", 'a,b\n1,"open\n2,x\n'))
    assert faults(source_rows) == [(2, "", "opens a quote that nothing closes")]
    assert dict(source_rows[1].values) == {"a": "2", "b": "x"}


def test_a_quote_left_open_in_a_big_file_does_not_swallow_it(write: Write, rows: Rows) -> None:
    line = f"2,{'x' * 997}\n"
    source_rows = rows(write("a.csv", 'a,b\n1,"open\n' + line * (3 * ROW_BYTES_MAX // len(line))))
    assert [row.line for row in source_rows if row.fault] == [2]
    assert len(source_rows) == 1 + 3 * ROW_BYTES_MAX // len(line)


def test_a_huge_field_is_read_and_an_endless_one_rejected(write: Write, rows: Rows) -> None:
    huge, endless = "x" * 500_000, "y" * (3 * ROW_BYTES_MAX)
    source_rows = rows(write("a.csv", f'a,b\n1,{huge}\n2,{endless}\n3,"{endless}"\n4,z\n'))
    assert [row.fault is None for row in source_rows] == [True, False, False, True]
    assert source_rows[0].values["b"] == huge
    assert [row.line for row in source_rows] == [2, 3, 4, 5]
    assert all(len(row.kept) <= ROW_BYTES_MAX + 2 for row in source_rows)


def test_a_misplaced_quote_and_a_lone_carriage_return_are_reported(write: Write, rows: Rows) -> None:
    source_rows = rows(write("a.csv", 'a,b\n1,"x"y\n2,x\ry\n3,5" pipe\n4,"x\ry"\n'))
    assert [line for line, _, _ in faults(source_rows)] == [2, 3]
    assert source_rows[2].values["b"] == '5" pipe'
    assert source_rows[3].values["b"] == "x\ry"


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.csv", b"", "is empty"),
        ("a.csv", b"\n\n", "is empty"),
        ("a.csv", "a,b\n1,2\n".encode("utf-16")[:-1], "not UTF-16 text: it ends in the middle of a character"),
        ("a.csv", b"caf\xe9,b\n1,\xc3\xa9\n", "not UTF-8"),
        ("a.csv", b'a,"b\n1,2\n', "opens a quote"),
        ("a.txt", b"a\n1\n", "must be named"),
        ("a.csv.gz.", b"a\n1\n", "must be named"),
    ],
)
def test_a_file_that_is_no_csv_is_refused(write: Write, rows: Rows, name: str, content: bytes, reason: str) -> None:
    with pytest.raises(ImportFault, match=reason):
        rows(write(name, content))


def test_files_that_are_missing_folders_or_damaged_are_refused(tmp_path: Path, rows: Rows) -> None:
    with pytest.raises(ImportFault, match="No such file"):
        rows(tmp_path / "none.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ImportFault, match="directory"):
        rows(tmp_path / "folder.csv")
    (tmp_path / "plain.csv.gz").write_text("a\n1\n")
    with pytest.raises(ImportFault, match="not a gzip file"):
        rows(tmp_path / "plain.csv.gz")
    whole = gzip.compress(b"a\n" + bytes(str(list(range(50_000))), "ascii").replace(b",", b"\n"))
    (tmp_path / "cut.csv.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ImportFault, match="cut short"):
        rows(tmp_path / "cut.csv.gz")
    (tmp_path / "bad.csv.gz").write_bytes(whole[:5000] + b"\xff" * 5000 + whole[10_000:])
    with pytest.raises(ImportFault, match="can't be unzipped"):
        rows(tmp_path / "bad.csv.gz")


def test_json_lines_that_are_no_objects_are_rejected_by_line(write: Write, rows: Rows) -> None:
    source_rows = rows(
        write(
            "a.jsonl",
            b'\xef\xbb\xbf{"a": 1.10}\r\n\n[1]\n{"a": 1, "a": 2}\n{"a": "\\u0000"}\n{"a": NaN}\nnope\n'
            b'{"a": "caf\xe9"}\n{"a": "\\ud800"}\n{"a": "last"}',
        )
    )
    assert [row.line for row in source_rows] == [1, 3, 4, 5, 6, 7, 8, 9, 10]
    assert [row.line for row in source_rows if row.fault] == [3, 4, 5, 6, 7, 8, 9]
    assert source_rows[0].json == '{"a": 1.10}'
    assert dict(source_rows[-1].values) == {"a": "last"}


def test_an_endless_json_line_is_rejected(write: Write, rows: Rows) -> None:
    source_rows = rows(write("a.jsonl", '{"a": "' + "x" * (2 * ROW_BYTES_MAX) + '"}\n{"a": 1}\n'))
    assert [(row.line, row.fault is None) for row in source_rows] == [(1, False), (2, True)]


def test_a_rejects_file_is_read_as_if_its_own_columns_were_not_there(write: Write, rows: Rows) -> None:
    path = write("a.rejects.csv", "reject_line,reject_field,reject_reason,a,b\n7,a,too long,1,2\n")
    (row,) = rows(path)
    assert (row.line, dict(row.values), row.kept) == (2, {"a": "1", "b": "2"}, "1,2")
    members = {"reject_line": 7, "reject_field": "a", "reject_reason": "x", "a": "1"}
    (row,) = rows(write("a.rejects.jsonl", json.dumps(members) + "\n"))
    assert dict(row.values) == {"a": "1"}
    assert json.loads(row.json or "") == {"a": "1"}


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
tables = st.lists(st.lists(texts, min_size=3, max_size=3).filter(any), max_size=8)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(table=tables, style=st.sampled_from([("\n", csv.QUOTE_ALL), ("\r\n", csv.QUOTE_MINIMAL)]))
def test_whatever_csv_writes_is_read_back_with_its_lines(
    write: Write, rows: Rows, table: list[list[str]], style: tuple[str, Literal[0, 1]]
) -> None:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator=style[0], quoting=style[1])
    writer.writerow(["a", "b", "c"])
    lines = []
    for fields in table:
        lines.append(stream.getvalue().count("\n") + 1)
        writer.writerow(fields)
    source_rows = rows(write("a.csv", stream.getvalue()))
    assert [list(row.values.values()) for row in source_rows] == table
    assert [row.line for row in source_rows] == lines


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(content=st.binary(max_size=200) | st.text('a,"\n\r\0é', max_size=60).map(str.encode))
def test_any_bytes_are_rows_or_one_clear_refusal(write: Write, rows: Rows, content: bytes) -> None:
    for name in ("a.csv", "a.jsonl"):
        try:
            source_rows = rows(write(name, content))
        except ImportFault as failed:
            assert str(failed).endswith(".")
        else:
            assert [row.line for row in source_rows] == sorted({row.line for row in source_rows})
            assert all(row.fault or row.values or row.json for row in source_rows)


def test_a_file_of_stray_quotes_is_not_read_for_days(write: Write, rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line begins a quoted value that goes on to the end of the file, and is read again for the line before."""
    monkeypatch.setattr(csv_source, "REREAD_CHARACTERS_MAX", 1_000_000)
    file = write("a.csv", "id,name\n" + 'x","y\n' * 4000)
    with pytest.raises(ImportFault, match=r"a\.csv: line 4\d is one of many that open a quote which nothing closes"):
        rows(file)
    few = write("b.csv", "id,name\n" + 'x","y\n' + "1,a\n" * 4000)
    assert [row.fault is None for row in rows(few)] == [False] + [True] * 4000
