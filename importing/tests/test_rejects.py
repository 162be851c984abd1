"""The rejects file: the rejected rows with their reasons, ready to be corrected and imported again."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from importing.errors import ImportFault
from importing.opening import opened
from importing.rejects import Rejects
from importing.rows import Fault

from .conftest import Rows, Write


def reject_all(path: Path, folder: Path, chosen: Path | None = None) -> Path | None:
    """Refuses every row of the file."""
    with opened(path) as open_file:
        source = open_file.source
        rejects = Rejects(path, source, chosen, folder)
        for row in source.rows():
            rejects.add(row, row.fault or Fault("b", 'is "wrong", alas'))
        rejects.close()
    return rejects.file


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "here"
    path.mkdir()
    return path


def test_without_a_bad_row_there_is_no_file(write: Write, folder: Path) -> None:
    assert reject_all(write("a.csv", "a,b\n"), folder) is None
    assert list(folder.iterdir()) == []


def test_a_row_stands_behind_its_line_field_and_reason(write: Write, folder: Path) -> None:
    file = reject_all(write("a.csv", 'a,b\n1,"x, ""y""\nz"\n2,w\n'), folder)
    assert file == folder / "a.rejects.csv"
    with file.open(newline="") as stream:
        assert list(csv.reader(stream)) == [
            ["reject_line", "reject_field", "reject_reason", "a", "b"],
            ["2", "b", 'is "wrong", alas', "1", 'x, "y"\nz'],
            ["4", "b", 'is "wrong", alas', "2", "w"],
        ]


def test_rows_come_back_from_the_rejects_file_as_they_were(write: Write, rows: Rows, folder: Path) -> None:
    path = write("a.csv.gz", b'\xef\xbb\xbfa,b\r\n1,"x\r\ny"\r\n2,\xc3\xa9\r\n3,"say ""hi"""\r\n')
    file = reject_all(path, folder)
    assert file == folder / "a.rejects.csv"
    assert [dict(row.values) for row in rows(file)] == [dict(row.values) for row in rows(path)]
    again = reject_all(file, folder)
    assert again == folder / "a.2.rejects.csv"
    assert [dict(row.values) for row in rows(again)] == [dict(row.values) for row in rows(path)]
    assert again.read_text().count("reject_line") == 1


def test_rows_that_are_no_csv_are_kept_byte_for_byte(write: Write, rows: Rows, folder: Path) -> None:
    file = reject_all(write("a.csv", b'a,\xc3\xa9\n1,caf\xe9\n1,2,3\n1,"open\n2,x\n'), folder)
    assert file is not None
    kept = file.read_bytes().splitlines()
    assert kept[0] == b"reject_line,reject_field,reject_reason,a,\xc3\xa9"
    assert [line.split(b",")[0] for line in kept[1:]] == [b"2", b"3", b"4", b"5"]
    assert kept[1].endswith(b",1,caf\xe9")
    assert kept[2].endswith(b",1,2,3")
    assert kept[3].endswith(b',1,"open')
    # Corrected by hand, they are good rows.
    mended = file.read_bytes().replace(b"caf\xe9", b"cafe").replace(b",1,2,3", b",1,2").replace(b'"open', b"open")
    assert [row.fault for row in rows(write("mended.csv", mended))] == [None] * 4
    # Not corrected, they are rejected again and stay as they are.
    again = reject_all(file, folder)
    assert again is not None
    assert kept[3] in again.read_bytes().splitlines()
    assert any(line.endswith(b",1,caf\xe9") for line in again.read_bytes().splitlines())


def test_json_lines_keep_their_numbers_and_their_broken_lines(write: Write, rows: Rows, folder: Path) -> None:
    path = write("a.jsonl", '{"a": 1.10, "b": "é"}\n{}\n{"a": 1,\n')
    file = reject_all(path, folder)
    assert file == folder / "a.rejects.jsonl"
    lines = file.read_text().splitlines()
    assert lines[0] == (
        '{"reject_line": 1, "reject_field": "b", "reject_reason": "is \\"wrong\\", alas", "a": 1.10, "b": "é"}'
    )
    assert json.loads(lines[1])["reject_line"] == 2
    assert lines[2] == '{"a": 1,'
    source_rows = rows(file)
    assert json.loads(source_rows[0].json or "") == {"a": 1.10, "b": "é"}
    assert "1.10" in (source_rows[0].json or "")
    assert dict(source_rows[1].values) == {}


def test_an_older_rejects_file_is_never_written_over_unless_it_is_named(write: Write, folder: Path) -> None:
    path = write("a.csv", "a,b\n1,2\n")
    assert reject_all(path, folder) == folder / "a.rejects.csv"
    assert reject_all(path, folder) == folder / "a.2.rejects.csv"
    assert reject_all(path, folder) == folder / "a.3.rejects.csv"
    chosen = folder / "mine.csv"
    chosen.write_text("old\n" * 100)
    assert reject_all(path, folder, chosen) == chosen
    assert "old" not in chosen.read_text()


def test_an_impossible_rejects_file_is_reported(write: Write, folder: Path) -> None:
    path = write("a.csv", "a,b\n1,2\n")
    with pytest.raises(ImportFault, match="can't be the file that is imported"):
        reject_all(path, folder, path)
    with pytest.raises(ImportFault, match="No rejects file can be written in"):
        reject_all(path, folder / "none")
    (folder / "taken").mkdir()
    with pytest.raises(ImportFault, match="can't be written: Is a directory"):
        reject_all(path, folder, folder / "taken")
    assert path.read_text() == "a,b\n1,2\n"
