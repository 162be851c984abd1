"""Rules of a mapping: rows to skip, formats of numbers, conditions, days to add, ids, several kinds of record."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importing import mapping_file
from importing.errors import ImportFault
from importing.kinds import KINDS, REFERENCES
from importing.numbers import Number
from importing.opening import opened
from importing.reasons import FULL_MAX, REASONS_MAX, Reasons
from importing.rows import Fault, Faulty, Reading
from importing.shapes import Mapped
from importing.values import Unreadable

from .conftest import Write

FIELDS = 'external_id = "id"\nproperty = "id"\ncategory = { constant = "General" }\n'


def made(write: Write, title: str, content: str, top: str = "", tables: str = "") -> list[dict[str, Any] | str]:
    """The tickets that a mapping makes of a file; a reason in place of a faulty row. Skipped rows are left out."""
    text = f'kind = "tickets"\n{top}\n[fields]\n{FIELDS}title = {title}\n{tables}'
    shape = Mapped(mapping_file.load(write("m.toml", text), KINDS["tickets"]))
    outcomes: list[dict[str, Any] | str] = []
    with opened(write("rows.csv", content)) as file:
        shape.check_columns("rows.csv", file.source.columns or ())
        for row in file.source.rows():
            try:
                if shape.takes(row):
                    outcomes.append(json.loads(shape.row(row)[1]))
            except Faulty as faulty:
                outcomes.append(faulty.fault.reason)
    return outcomes


def titles(*words: Any, **more: Any) -> list[str]:
    return [ticket if isinstance(ticket, str) else ticket["title"] for ticket in made(*words, **more)]


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ('"blank"', ["0", "0,00", "Void", "x"]),
        ('"zero"', ["", "Void", "x"]),
        ('["Void", "x"]', ["", "0", "0,00"]),
        ("{ pattern = 'V.*|0' }", ["", "0,00", "x"]),
        ('{ not = ["Void"] }', ["Void"]),
        ('{ not = "blank" }', [""]),
        ("{ not = { not = { pattern = '0.*' } } }", ["", "Void", "x"]),
    ],
)
def test_rows_are_skipped_by_a_condition_on_a_column(write: Write, condition: str, kept: list[str]) -> None:
    rows = 'id,a\n1,\n2,0\n3,"0,00"\n4, Void \n5,x\n'
    assert titles(write, '"a"', rows, tables=f"[skip]\na = {condition}") == kept
    everything = ["", "0", "0,00", "Void", "x"]
    assert titles(write, '"a"', rows, tables=f"[only]\na = {condition}") == [
        text for text in everything if text not in kept
    ]


def test_a_row_is_skipped_if_any_condition_holds_and_taken_if_all_of_only_do(write: Write) -> None:
    rows = "id,a,b\n1,x,y\n2,,y\n3,x,\n4,,\n"
    assert titles(write, '"id"', rows, tables='[skip]\na = "blank"\nb = "blank"') == ["1"]
    assert titles(write, '"id"', rows, tables='[only]\na = "blank"\nb = "blank"') == ["4"]


@pytest.mark.parametrize(
    ("form", "text", "number"),
    [
        ('{ decimal = ",", thousands = "." }', "1.234.567,89", "1234567.89"),
        ('{ decimal = ",", thousands = " " }', "1\u202f234,5", "1234.5"),
        ('{ thousands = "," }', "12,34,567.80", "1234567.80"),
        ('{ thousands = "\'" }', "1'234", "1234"),
        ('{ currency = "$", thousands = "," }', "$1,234.50", "1234.50"),
        ('{ currency = "$" }', "-$12", "-12"),
        ('{ currency = ["€", "EUR"], decimal = "," }', "12,5 EUR", "12.5"),
        ('{ currency = "$" }', "($12.00)", "-12.00"),
        ("{}", "12-", "-12"),
        ("{}", "+7", "7"),
        ("{}", ".5", "0.5"),
        ("{}", "", ""),
    ],
)
def test_a_number_is_read_in_its_format(write: Write, form: str, text: str, number: str) -> None:
    rows = f'id,a\n1,"{text}"\n'
    assert titles(write, f'{{ column = "a", number = {form} }}', rows) == [number]


@pytest.mark.parametrize(
    "text", ["1,23,4", "1.5", "12,345.6", "1 234", "€", "--1", "(1", "1e3", "1.2345,6", "-(1)", "."]
)
def test_a_number_in_another_format_is_a_fault(write: Write, text: str) -> None:
    (reason,) = titles(write, '{ column = "a", number = { decimal = ",", thousands = "." } }', f'id,a\n1,"{text}"\n')
    assert reason.startswith(f'"{text}" ')


@given(
    st.integers(-(10**12), 10**12), st.integers(0, 99), st.sampled_from([(",", "."), (".", ","), (".", " "), (",", "")])
)
def test_a_number_comes_back_from_its_format(whole: int, cents: int, separators: tuple[str, str]) -> None:
    decimal, thousands = separators
    text = f"{whole:,}".replace(",", thousands) + f"{decimal}{cents:02}"
    assert Number(decimal, thousands, ["€"]).read(f"{text} €") == f"{whole}.{cents:02}"
    with pytest.raises(Unreadable):
        Number(decimal, thousands, []).read(f"{text} €")


def test_a_field_has_a_value_only_when_another_column_has_one(write: Write) -> None:
    rule = '{ column = "a", when = { state = ["Closed"], b = { not = "blank" } }, default = "none" }'
    rows = "id,a,b,state\n1,x,1,Closed\n2,x,,Closed\n3,x,1,Open\n4,,1,Closed\n"
    assert titles(write, rule, rows) == ["x", "none", "none", "none"]


def test_a_column_of_days_is_added_to_an_instant_or_a_date(write: Write) -> None:
    noon = "2024-01-31 12:00"
    rows = f"id,opened,days\n1,{noon},30\n2,{noon},1.5\n3,{noon},\n4,,3\n5,{noon},-1\n"
    rule = '{ column = "opened", date = "%Y-%m-%d %H:%M", timezone = "America/New_York", plus_days = "days" }'
    assert titles(write, rule, rows) == [
        "2024-03-01T17:00:00.000000Z",
        "2024-02-02T05:00:00.000000Z",
        "",
        "",
        "2024-01-30T17:00:00.000000Z",
    ]
    rule = '{ column = "opened", date = "%Y-%m-%d", plus_days = "days" }'
    rows = "id,opened,days\n1,2024-02-28,2\n2,2024-02-28,1.5\n3,2024-02-28,soon\n4,2024-02-28,9999999\n"
    texts = titles(write, rule, rows)
    assert texts[0] == "2024-03-01"
    assert [part in text for part, text in zip(("whole days", '"soon" days', "9999999"), texts[1:], strict=True)] == [
        True
    ] * 3


def test_the_rows_number_and_a_hash_of_columns_name_a_record(write: Write) -> None:
    content = 'id,a,b\n1,"x\ny",z\n2,x,yz\n3,xy,z\n4,,\n'
    top = 'row_number = "n"\nignore = ["a", "b"]'
    rule = '{ template = "row-{n}" }'
    assert titles(write, rule, content, top=top) == ["row-2", "row-4", "row-5", "row-6"]
    hashes = titles(write, '{ hash = ["a", "b"] }', content)
    assert len(set(hashes)) == 4 and hashes[3] == "" and all(len(digest) == 32 for digest in hashes[:3])
    assert titles(write, '{ hash = ["a", "b"] }', content) == hashes
    # A corrected row of a rejects file is the record that it was in the first file.
    rejected = "reject_line,reject_field,reject_reason,id,a,b\n5,a,x,3,xy,z\n"
    assert titles(write, rule, rejected, top=top) == ["row-5"]


RECORDS = """
encoding = "windows-1252"
delimiter = ";"
ignore = ["x"]
duplicates = "keep-first"

[skip]
unit = "zero"

[[records]]
kind = "units"
duplicates = "reject"
[records.fields]
external_id = "unit"
property = "house"
name = "unit"

[[records]]
kind = "properties"
[records.only]
street = { not = "blank" }
[records.fields]
external_id = "house"
name = "street"
address = "street"
"""


def test_several_kinds_of_record_come_in_the_order_in_which_they_refer_to_each_other(write: Write) -> None:
    path = write("m.toml", RECORDS)
    file_mapping = mapping_file.read(path)
    assert [kind.name for kind, _ in file_mapping.records] == ["properties", "units"]
    assert [mapping.duplicates for _, mapping in file_mapping.records] == ["keep-first", "reject"]
    assert file_mapping.reading == Reading("cp1252", ";")
    assert [
        [condition.column for condition in (*mapping.only, *mapping.skip)] for _, mapping in file_mapping.records
    ] == [
        ["street", "unit"],
        ["unit"],
    ]
    for kind in ("properties", "units"):
        mapping = mapping_file.load(path, KINDS[kind])
        Mapped(mapping).check_columns("a.csv", ["house", "street", "unit", "x"])
        with pytest.raises(ImportFault, match='"y", which the mapping neither reads nor ignores'):
            Mapped(mapping).check_columns("a.csv", ["house", "street", "unit", "y"])
    with pytest.raises(ImportFault, match='no records of the kind "tickets"'):
        mapping_file.load(path, KINDS["tickets"])


def test_every_kind_is_named_after_those_that_it_refers_to() -> None:
    order = list(KINDS)
    for kind in KINDS.values():
        for field in kind.fields:
            if field in REFERENCES:
                assert order.index(REFERENCES[field]) < order.index(kind.name), (kind.name, field)


@pytest.mark.parametrize(
    ("old", "new", "line", "reason"),
    [
        (
            '"zero"',
            '"nought"',
            8,
            'skip.unit: "nought" is no condition; a condition is "blank", "zero", a list of texts',
        ),
        ('"zero"', "{ pattern = '(' }", 8, "skip.unit: pattern is no regular expression"),
        ('"zero"', "{ not = 7 }", 8, "skip.unit: a condition is"),
        (
            'name = "unit"',
            'nom = "unit"',
            16,
            'records[1].fields.nom: units have no field "nom"; they have external_id',
        ),
        ('name = "street"', "name = { colum = 1 }", 24, '"colum" is not known here; it may be one of column, first'),
        ('"street"\naddress', "{ hash = [] }\naddress", 24, "hash must be a list of at least one column"),
        ('"street"\naddress', '{ column = "a", number = 1 }\naddress', 24, "number must be a table with decimal"),
        (
            '"street"\naddress',
            '{ column = "a", number = { decimal = ";" } }\naddress',
            24,
            'decimal must be one of ".", ","',
        ),
        ('"street"\naddress', '{ column = "a", when = {} }\naddress', 24, "when must be a table"),
        ('"street"\naddress', '{ column = "a", plus_days = "b" }\naddress', 24, "plus_days belongs to date"),
        ('kind = "units"', 'kind = "flats"', 10, "records[1]: kind must be one of staff, properties"),
        ('"windows-1252"', '"windows-125"', 2, 'encoding: "windows-125" is no known encoding'),
        ('"windows-1252"', '"cp037"', 2, "can't be the encoding of a CSV file"),
        ('";"', '";;"', 3, 'delimiter: ";;" must be one character'),
        ('[[records]]\nkind = "units"', '[[records]]\nignore = []\nkind = "units"', 10, '"ignore" is not known here'),
    ],
)
def test_a_mistake_is_reported_with_its_place_and_what_is_allowed_there(
    write: Write, old: str, new: str, line: int, reason: str
) -> None:
    path = write("m.toml", RECORDS.replace(old, new, 1))
    with pytest.raises(ImportFault) as caught:
        mapping_file.read(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert reason in str(caught.value)


def test_reasons_are_counted_with_their_first_rows_and_memory_holds_no_more() -> None:
    reasons = Reasons()
    for line in range(7644):
        reasons.add("tickets", line, Fault("property", "is unknown", "", str(line), ("house",)))
        reasons.add("tickets", line, Fault("title", f'"{line}" is wrong', "is wrong", str(line)))
        reasons.add("tickets", line, Fault("", f"reason {line}"))
    counted = reasons.found
    assert [(reason.field, reason.text, reason.rows, reason.columns) for reason in counted if reason.field] == [
        ("property", "is unknown", 7644, ("house",)),
        ("title", "is wrong", 7644, ()),
    ]
    assert [(example.line, example.value) for example in counted[0].examples] == [
        (line, str(line)) for line in range(FULL_MAX)
    ]
    assert len(counted) <= REASONS_MAX + 1
    assert sum(reason.rows for reason in counted) == 3 * 7644
