"""The columns that a file must and may have, and the rows that count as the same record."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from importing import mapping_file
from importing.errors import ImportFault
from importing.kinds import KINDS
from importing.rows import Faulty
from importing.seen import Earlier, Seen
from importing.shapes import Mapped, Plain

from .conftest import Rows, Write

PROPERTIES = KINDS["properties"]
HEADER = ("external_id", "name", "address")


FIELDS = 'external_id = "ID"\nname = "N"\naddress = "A"\n'


def mapped(write: Write, top: str = "") -> Mapped:
    text = f'kind = "properties"\n{top}\n[fields]\n{FIELDS}'
    return Mapped(mapping_file.load(write("m.toml", text), PROPERTIES))


def test_a_file_without_a_needed_column_is_refused(write: Write) -> None:
    with pytest.raises(ImportFault, match='lacks the column "name", "address"'):
        Plain(PROPERTIES).check_columns("a.csv", ["external_id", "city"])
    with pytest.raises(ImportFault, match='lacks the column "A", "N", which the mapping reads'):
        mapped(write).check_columns("a.csv", ["ID"])


def test_an_unknown_column_is_refused_by_name(write: Write) -> None:
    with pytest.raises(ImportFault, match='"cty", which properties don\'t have'):
        Plain(PROPERTIES).check_columns("a.csv", [*HEADER, "cty"])
    with pytest.raises(ImportFault, match='"WARD", "GRID", which the mapping neither reads nor ignores'):
        mapped(write).check_columns("a.csv", ["ID", "N", "A", "WARD", "GRID"])
    mapped(write, 'ignore = ["WARD", "GR*"]').check_columns("a.csv", ["ID", "N", "A", "WARD", "GRID"])
    mapped(write, 'ignore = ["*"]').check_columns("a.csv", ["ID", "N", "A", "", "GRID"])


def test_a_column_that_stands_twice_is_refused_unless_it_is_ignored(write: Write) -> None:
    with pytest.raises(ImportFault, match='"city" more than once'):
        Plain(PROPERTIES).check_columns("a.csv", [*HEADER, "city", "city"])
    with pytest.raises(ImportFault, match='"N", which the mapping reads, more than once'):
        mapped(write).check_columns("a.csv", ["ID", "N", "A", "N"])
    mapped(write, 'ignore = ["X"]').check_columns("a.csv", ["ID", "N", "A", "X", "X"])


def test_hostile_column_names_can_not_steer_a_terminal() -> None:
    with pytest.raises(ImportFault) as caught:
        Plain(PROPERTIES).check_columns("a.csv", [*HEADER, "\x1b[2J" + "x" * 500])
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 600


def test_a_blank_value_is_sent_as_blank_so_that_it_clears_the_field(write: Write, rows: Rows) -> None:
    (row,) = rows(write("a.csv", "external_id,name,address,city\nP1,N,A,\n"))
    external_id, sent = Plain(PROPERTIES).row(row)
    assert external_id == "P1"
    assert json.loads(sent) == {"external_id": "P1", "name": "N", "address": "A", "city": ""}


def test_json_goes_on_as_it_was_written_and_unknown_members_are_faults(write: Write, rows: Rows) -> None:
    good, bad = rows(write("a.jsonl", '{"external_id": "P1", "latitude": 43.70}\n{"external_id": "P2", "cty": 1}\n'))
    assert Plain(PROPERTIES).row(good) == ("P1", b'{"external_id": "P1", "latitude": 43.70}')
    with pytest.raises(Faulty) as caught:
        Plain(PROPERTIES).row(bad)
    assert (caught.value.fault.field, caught.value.fault.reason) == ("cty", "is no field of properties")


def test_json_lines_can_be_mapped_and_unknown_members_are_faults(write: Write, rows: Rows) -> None:
    good, bad = rows(write("a.jsonl", '{"ID": 7, "N": "n", "W": 1}\n{"ID": 8, "X": 1}\n'))
    shape = mapped(write, 'ignore = ["W"]')
    external_id, sent = shape.row(good)
    assert (external_id, json.loads(sent)) == ("7", {"external_id": "7", "name": "n", "address": ""})
    with pytest.raises(Faulty, match="neither read nor ignored"):
        shape.row(bad)


def test_a_repeated_external_id_is_known_by_its_first_line_and_its_values() -> None:
    seen = Seen()
    assert seen.repeated([("a", 2, b"x"), ("A", 3, b"x"), ("b", 4, b"y")]) == {}
    assert seen.repeated([("c", 5, b"x"), ("a", 6, b"x"), ("a", 7, b"y"), ("d", 8, b"z"), ("d", 9, b"z")]) == {
        1: Earlier(2, True),
        2: Earlier(2, False),
        4: Earlier(8, True),
    }
    assert seen.repeated([]) == {}
    seen.close()


def test_a_mapping_of_another_files_name_is_refused(write: Write) -> None:
    path = write("m.toml", f'kind = "properties"\nfile_name = "{{N}} x"\n[fields]\n{FIELDS}')
    mapping = mapping_file.load(path, PROPERTIES)
    with pytest.raises(ImportFault, match="file_name"):
        Mapped(mapping, "a.csv")
    with pytest.raises(ImportFault, match="part of the mapping's file_name"):
        Mapped(mapping, "a x.csv").check_columns("a x.csv", ["ID", "N", "A"])


def test_the_example_mappings_load() -> None:
    examples = Path(__file__).parents[2] / "examples" / "mappings"
    mappings = sorted(examples.glob("*.toml"))
    assert mappings
    for path in mappings:
        kind = next(kind for kind in KINDS.values() if f'kind = "{kind.name}"' in path.read_text())
        mapping_file.load(path, kind)
