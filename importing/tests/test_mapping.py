"""The values that a mapping makes of a row, and the reasons for values that it can't read."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importing import mapping_file, values
from importing.errors import ImportFault
from importing.kinds import KINDS, Kind
from importing.mapping import FileMapping, Texts
from importing.rows import Faulty

from .conftest import Write

TICKETS = KINDS["tickets"]
REST = """
external_id = "ID"
property = "ID"
category = { constant = "Plumbing" }
"""

Load = Callable[..., FileMapping]


@pytest.fixture
def load(write: Write) -> Load:
    """A mapping of tickets with these rules for the title."""

    def loading(title: str, top: str = "", kind: Kind = TICKETS) -> FileMapping:
        text = f'kind = "tickets"\n{top}\n[fields]\n{REST}title = {title}\n'
        return mapping_file.load(write("mapping.toml", text), kind)

    return loading


def made(mapping: FileMapping, **columns: str) -> str:
    return mapping.row(Texts({"ID": "1", **columns}, {}))["title"]


def fault(mapping: FileMapping, **columns: str) -> str:
    with pytest.raises(Faulty) as caught:
        mapping.row(Texts({"ID": "1", **columns}, {}))
    assert caught.value.fault.field == "title"
    return caught.value.fault.reason


def test_a_field_is_a_column_a_constant_a_template_or_the_first_of_several(load: Load) -> None:
    assert made(load('"A"'), A=" x ") == "x"
    assert made(load('{ column = "A" }'), A="x") == "x"
    assert made(load('{ constant = "fixed" }')) == "fixed"
    assert made(load('{ template = "{A} {{{B B}}}" }'), A="521", **{"B B": "E 68 ST"}) == "521 {E 68 ST}"
    assert made(load('{ first = ["A", "B"] }'), A=" ", B="y") == "y"
    assert made(load('{ first = ["A", "B"] }'), A="x", B="y") == "x"
    assert made(load('{ first = ["A", "B"] }'), A="", B="") == ""


def test_constants_of_toml_become_text(load: Load) -> None:
    assert made(load("{ constant = true }")) == "true"
    assert made(load("{ constant = 7 }")) == "7"
    assert made(load("{ constant = 2024-01-31 }")) == "2024-01-31"


def test_a_template_of_blank_columns_is_blank(load: Load) -> None:
    assert made(load('{ template = "Closed: {A}" }'), A=" ") == ""
    assert made(load('{ template = "{A}, {B}", spaces = "collapse" }'), A="a", B="") == "a,"


def test_spaces_are_stripped_collapsed_or_kept(load: Load) -> None:
    text = "  181-183   GERRARD\n ST E "
    assert made(load('"A"'), A=text) == text.strip()
    assert made(load('{ column = "A", spaces = "collapse" }'), A=text) == "181-183 GERRARD ST E"
    assert made(load('{ column = "A", spaces = "keep" }'), A=text) == text
    assert made(load('"A"', top='spaces = "collapse"'), A=text) == "181-183 GERRARD ST E"
    assert made(load('{ template = "{A}  {B}", spaces = "collapse" }'), A="521", B="E   68 ST") == "521 E 68 ST"


def test_texts_that_mean_nothing_are_blank(load: Load) -> None:
    assert made(load('{ column = "A", empty = ["********", "N/A"] }'), A=" ******** ") == ""
    assert made(load('{ first = ["A", "B"] }', top='empty = ["NA"]'), A="NA", B="y") == "y"
    assert made(load('{ column = "A", empty = [] }', top='empty = ["NA"]'), A="NA") == "NA"


def test_a_default_stands_for_what_is_blank(load: Load) -> None:
    assert made(load('{ column = "A", default = "none" }'), A="") == "none"
    assert made(load('{ column = "A", default = "none" }'), A="x") == "x"
    assert made(load('{ column = "A", date = "%Y%m%d", default = "2000-01-01" }'), A="") == "2000-01-01"


def test_a_table_of_values_names_what_it_does_not_list(load: Load) -> None:
    table = '{ column = "A", values = { Closed = "Completed", Open = "Open" } }'
    assert made(load(table), A="Closed") == "Completed"
    assert made(load(table), A="") == ""
    assert fault(load(table), A="closed") == '"closed" is not among the values of the mapping'
    assert made(load('{ column = "A", values = { Y = true }, otherwise = false }'), A="N") == "false"
    assert made(load('{ column = "A", values = { "" = "Open" } }'), A=" ") == "Open"


def test_dates_become_dates_and_local_times_instants(load: Load) -> None:
    assert made(load('{ column = "A", date = "%b %d, %Y" }'), A="JUL 15, 2017") == "2017-07-15"
    local = '{ column = "A", date = "%m/%d/%Y %I:%M:%S %p", timezone = "America/New_York" }'
    assert made(load(local), A="01/05/2015 04:07:12 PM") == "2015-01-05T21:07:12.000000Z"
    assert made(load(local), A="07/05/2015 04:07:12 AM") == "2015-07-05T08:07:12.000000Z"
    assert made(load('{ column = "A", date = "%Y-%m-%d %H:%M:%S%z" }'), A="2018-01-01 00:00:00+0100") == (
        "2017-12-31T23:00:00.000000Z"
    )
    day = '{ column = "A", date = "%Y-%m-%d", timezone = "America/Toronto" }'
    assert made(load(day), A="2024-06-27") == "2024-06-27T04:00:00.000000Z"


def test_several_date_formats_are_tried_in_order(load: Load) -> None:
    mapping = load('{ column = "A", date = ["%Y%m%d", "%m/%d/%Y"] }')
    assert made(mapping, A="19961119") == "1996-11-19"
    assert made(mapping, A="1/5/2015") == "2015-01-05"
    assert fault(mapping, A="9O0719") == '"9O0719" matches no date format of the mapping'


def test_a_date_that_lacks_a_digit_is_no_date(load: Load) -> None:
    mapping = load('{ column = "A", date = "%y%m%d", empty = ["********"], otherwise = "" }')
    assert made(mapping, A="060409") == "2006-04-09"
    assert made(mapping, A="60409") == ""
    assert made(mapping, A="********") == ""


def test_a_skipped_local_time_is_refused_and_a_repeated_one_is_the_first(load: Load) -> None:
    mapping = load('{ column = "A", date = "%Y-%m-%d %H:%M", timezone = "Europe/London" }')
    assert "never was" in fault(mapping, A="2018-03-25 01:30")
    assert made(mapping, A="2018-10-28 01:30") == "2018-10-28T00:30:00.000000Z"
    assert "out of range" in fault(load('{ column = "A", date = "%Y", timezone = "Asia/Tokyo" }'), A="0001")


def test_digits_undo_what_a_float_did_to_a_number(load: Load) -> None:
    mapping = load('{ column = "A", digits = 5 }')
    assert made(mapping, A="2127.0") == "02127"
    assert made(mapping, A="02127") == "02127"
    assert made(mapping, A="286744.0") == "286744"
    assert made(mapping, A="0") == "00000"
    for text in ("2127.5", "-1", "1e5", "٢", "x"):
        assert fault(mapping, A=text).endswith("is not a whole number")


def test_a_value_of_json_lines_is_read_as_a_csv_would_have_it(load: Load) -> None:
    mapping = load('"A"')
    for value, text in ((None, ""), (True, "true"), (7, "7"), (1.5, "1.5")):
        assert mapping.row(Texts({"ID": "1", "A": value}, {}))["title"] == text
    assert mapping.row(Texts({"ID": "1"}, {}))["title"] == ""
    with pytest.raises(Faulty, match="array or an object"):
        mapping.row(Texts({"ID": "1", "A": [1]}, {}))


@pytest.mark.parametrize(
    ("title", "reason"),
    [
        ("7", "a column's name or a table"),
        ("{}", "exactly one of column"),
        ('{ column = "A", constant = "x" }', "exactly one of column"),
        (
            '{ column = "A", values = { a = "b" }, digits = 1 }',
            "one of values, steps, date, digits, pattern, number only",
        ),
        ('{ column = "A", colour = "red" }', '"colour" is not known here'),
        ("{ column = 7 }", "column must be a text"),
        ("{ first = [] }", "at least one column"),
        ('{ first = "A" }', "first must be a list"),
        ('{ template = "plain" }', "names no {COLUMN}"),
        ('{ template = "{A" }', "a brace that belongs to no"),
        ('{ column = "A", values = {} }', "values must be a table"),
        ('{ column = "A", values = { a = ["b"] } }', "a must be a text, a number"),
        ('{ column = "A", date = [] }', "at least one format"),
        ('{ column = "A", date = "%Q" }', 'has "%Q"'),
        ('{ column = "A", date = "%Y-%" }', 'has "%"'),
        ('{ column = "A", date = "%Y %Y" }', "directive twice"),
        ('{ column = "A", date = "%d.%m." }', "names no year"),
        ('{ column = "A", date = "%Y %H" }', "a time but no offset"),
        ('{ column = "A", timezone = "UTC" }', "timezone belongs to date"),
        ('{ column = "A", date = "%Y", timezone = "Mars/Olympus" }', "is not known"),
        ('{ column = "A", date = "%Y", timezone = "../../etc/passwd" }', "is not known"),
        ('{ column = "A", digits = 0 }', "from 1 to 30"),
        ('{ column = "A", digits = true }', "from 1 to 30"),
        ('{ column = "A", otherwise = "x" }', "otherwise belongs to"),
        ('{ column = "A", spaces = "trim" }', "spaces must be one of"),
    ],
)
def test_an_invalid_rule_is_reported_before_a_row_is_read(load: Load, title: str, reason: str) -> None:
    with pytest.raises(ImportFault) as caught:
        load(title)
    assert "fields.title: " in str(caught.value)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("kind = ", "is not TOML"),
        ('kind = "units"\n[fields]\nname = "A"', 'kind must be "tickets"'),
        ('kind = "tickets"', "[fields] is missing"),
        ('kind = "tickets"\n[fields]\ntitel = "A"', 'have no field "titel"'),
        ('kind = "tickets"\n[fields]\ntitle = "A"', "lacks external_id, property, category"),
        ('kind = "tickets"\nignored = ["A"]\n[fields]\ntitle = "A"', '"ignored" is not known here'),
        ('kind = "tickets"\nduplicates = "yes"\n[fields]\ntitle = "A"', "duplicates must be one of"),
        ('kind = "tickets"\nignore = "A"\n[fields]\ntitle = "A"', "ignore must be a list"),
    ],
)
def test_a_mapping_that_is_wrong_as_a_whole_is_reported(write: Write, text: str, reason: str) -> None:
    with pytest.raises(ImportFault) as caught:
        mapping_file.load(write("mapping.toml", text), TICKETS)
    assert reason in str(caught.value)


def test_a_mapping_that_is_missing_or_no_text_is_reported(write: Write) -> None:
    with pytest.raises(ImportFault, match="No such file"):
        mapping_file.load(write("x.toml", "").with_name("none.toml"), TICKETS)
    with pytest.raises(ImportFault, match="not UTF-8"):
        mapping_file.load(write("x.toml", b'kind = "caf\xe9"'), TICKETS)


def test_a_star_ignores_columns_by_their_pattern(load: Load) -> None:
    mapping = load('"A"', top='ignore = ["", "ward", "*_district", "load [kWh]"]')
    assert all(map(mapping.ignores, ("", "ward", "fire_district", "load [kWh]")))
    assert not any(map(mapping.ignores, ("wards", "district", "load k")))


anything = st.text(max_size=30)
RULES = st.sampled_from(
    [
        '"A"',
        '{ first = ["A", "B"] }',
        '{ template = "x{A}{{{B}", spaces = "collapse" }',
        '{ column = "A", values = { "0" = "zero" } }',
        '{ column = "A", date = ["%Y-%m-%d", "%y%m%d", "%d %b %Y %H:%M:%S.%f%z"], timezone = "America/Toronto" }',
        '{ column = "A", digits = 3 }',
    ]
)


@given(rules=RULES, a=anything | st.text("0123456789-.: ", max_size=12), b=anything)
def test_any_text_becomes_a_value_or_a_fault_of_its_field(rules: str, a: str, b: str) -> None:
    mapping = _loaded(rules)
    try:
        row = mapping.row(Texts({"ID": "1", "A": a, "B": b}, {}))
    except Faulty as faulty:
        assert faulty.fault.field == "title"
        assert faulty.fault.reason.isprintable()
    else:
        assert all(isinstance(value, str) for value in row.values())
        json.dumps(row)


@given(st.text(max_size=40))
def test_collapsing_twice_is_collapsing_once(text: str) -> None:
    mapping = _loaded('{ column = "A", spaces = "collapse" }')
    once = made(mapping, A=text)
    assert made(mapping, A=once) == once
    assert "  " not in once


@given(
    st.lists(st.sampled_from(["{A}", "{B}", "{{", "}}", "x", " "]), min_size=1), st.text("abc", min_size=1), anything
)
def test_a_template_keeps_its_text_and_puts_its_columns_in(parts: list[str], a: str, b: str) -> None:
    if "{A}" not in parts:
        parts = [*parts, "{A}"]
    mapping = _loaded(f'{{ template = {json.dumps("".join(parts))}, spaces = "keep" }}')
    expected = "".join({"{A}": a, "{B}": b, "{{": "{", "}}": "}"}.get(part, part) for part in parts)
    assert made(mapping, A=a, B=b) == expected


@given(
    st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2100, 1, 1)),
    st.sampled_from(["America/New_York", "Europe/London", "Asia/Kolkata", "UTC"]),
)
def test_a_local_time_comes_back_from_its_instant(local: datetime.datetime, zone: str) -> None:
    mapping = _loaded(f'{{ column = "A", date = "%Y-%m-%d %H:%M:%S.%f", timezone = "{zone}" }}')
    try:
        text = made(mapping, A=local.strftime("%Y-%m-%d %H:%M:%S.%f"))
    except Faulty as faulty:
        assert "never was" in faulty.fault.reason
        return
    instant = datetime.datetime.fromisoformat(text)
    assert instant.astimezone(ZoneInfo(zone)).replace(tzinfo=None) == local


@given(st.integers(0, 10**12), st.integers(1, 15), st.sampled_from(["", ".", ".0", ".000"]))
def test_a_whole_number_keeps_its_value(number: int, digits: int, tail: str) -> None:
    text = made(_loaded(f'{{ column = "A", digits = {digits} }}'), A=f"{number}{tail}")
    assert int(text) == number
    assert len(text) == max(digits, len(str(number)))


def test_steps_give_each_number_the_value_of_the_last_step_that_it_reached(load: Load) -> None:
    mapping = load('{ column = "A", steps = { 51 = "passed", 0 = "failed", "85.5" = "excellent" } }')
    for text, value in (
        ("0", "failed"),
        ("50.9", "failed"),
        ("51", "passed"),
        ("85.5", "excellent"),
        ("+99", "excellent"),
    ):
        assert made(mapping, A=text) == value
    assert made(mapping, A=" ") == ""
    assert "below" in fault(mapping, A="-1")
    for text in ("N/A", "5 1", "1e3", "nan", "\uff15\uff11", "5_1"):
        assert "is not a number" in fault(mapping, A=text)
    assert made(load('{ column = "A", steps = { 0 = "x" }, otherwise = "?" }'), A="N/A") == "?"


@given(starts=st.lists(st.integers(-1000, 1000), min_size=1, unique=True), number=st.integers(-2000, 2000))
def test_a_number_takes_the_nearest_step_below_it(starts: list[int], number: int) -> None:
    table = ", ".join(f'"{start}" = {start}' for start in starts)
    mapping = _loaded(f'{{ column = "A", steps = {{ {table} }}, otherwise = "none" }}')
    reached = [start for start in starts if start <= number]
    assert made(mapping, A=str(number)) == (str(max(reached)) if reached else "none")


def test_a_pattern_gives_what_its_groups_hold_of_the_whole_text(load: Load) -> None:
    mapping = load("{ column = \"A\", pattern = '([0-9]{5})(?:0000)?' }")
    assert made(mapping, A="100130000") == made(mapping, A="10013") == "10013"
    assert made(mapping, A="") == ""
    for text in ("0", "10013000", "1001300001"):
        assert "pattern" in fault(mapping, A=text)
    joined = load("{ template = \"{A} {B}\", pattern = '(.*?)(?:\\.0)?' }")
    assert made(joined, A="Address", B="286744.0") == "Address 286744"
    assert made(load("{ column = \"A\", pattern = '(x)?y(z)?' }"), A="y") == ""


@pytest.mark.parametrize(
    ("rules", "about"),
    [
        ("{ column = \"A\", pattern = '(' }", "regular expression"),
        ("{ column = \"A\", pattern = 'abc' }", "no group"),
        ('{ column = "A", pattern = 5 }', "must be a text"),
        ('{ column = "A", steps = {} }', "table of numbers"),
        ('{ column = "A", steps = { low = "x" } }', "numbers"),
        ('{ column = "A", steps = { 1 = [] } }', "must be a text, a number"),
        ('{ column = "A", steps = { 1 = "x" }, pattern = \'(.)\' }', "one of"),
    ],
)
def test_invalid_steps_and_patterns_are_reported(load: Load, rules: str, about: str) -> None:
    with pytest.raises(ImportFault) as refused:
        load(rules)
    assert about in str(refused.value) and "title" in str(refused.value)


def _loaded(title: str) -> FileMapping:
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mapping.toml"
        path.write_text(f'kind = "tickets"\n[fields]\n{REST}title = {title}\n')
        return mapping_file.load(path, TICKETS)


def test_every_kind_can_be_mapped(write: Write) -> None:
    for kind in KINDS.values():
        fields: dict[str, Any] = {name: name.upper() for name in kind.fields}
        text = f'kind = "{kind.name}"\n[fields]\n' + "".join(f'{k} = "{v}"\n' for k, v in fields.items())
        mapping = mapping_file.load(write("m.toml", text), kind)
        assert mapping.columns == set(fields.values())


READINGS = KINDS["readings"]
HOURLY = """
external_id = { template = "{building}-{At}" }
meter = "building"
consumption = "kWh"
period_start = { column = "At", date = "%Y-%m-%d %H:%M", timezone = "UTC" }
period_end = { column = "At", date = "%Y-%m-%d %H:%M", timezone = "UTC", plus_minutes = 60 }
"""


def hourly(write: Write, top: str = "") -> FileMapping:
    return mapping_file.load(write("hourly.toml", f'kind = "readings"\n{top}\n[fields]\n{HOURLY}'), READINGS)


@pytest.mark.parametrize(
    ("form", "name", "parts"),
    [
        ("UCam_{building}_{fuel}", "UCam_b0_gas.csv.gz", {"building": "b0", "fuel": "gas"}),
        ("UCam_{building}_{fuel}", "UCam_b0_gas.rejects.csv", {"building": "b0", "fuel": "gas"}),
        ("UCam_{building}_{fuel}", "UCam_b0_gas.12.rejects.jsonl", {"building": "b0", "fuel": "gas"}),
        ("UCam_{building}_{fuel}", "UCam_b0_gas_2018.csv", {"building": "b0", "fuel": "gas_2018"}),
        ("{building}", "b.0", {"building": "b.0"}),
        ("[{building}] {{1}}", "[b0] {1}.CSV", {"building": "b0"}),
        ("UCam_{building}_{fuel}", "UCam_b0.csv", None),
        ("UCam_{building}_{fuel}", "UCam__gas.csv", None),
        ("UCam_{building}", "ucam_b0.csv", None),
    ],
)
def test_the_parts_of_a_files_name_are_columns(
    write: Write, form: str, name: str, parts: dict[str, str] | None
) -> None:
    mapping = hourly(write, f"file_name = '{form}'")
    assert mapping.file_name is not None
    assert mapping.file_name.read(name) == parts


def test_a_row_is_made_of_its_columns_and_the_parts_of_the_name(write: Write) -> None:
    mapping = hourly(write, 'file_name = "meter {building}"')
    assert mapping.columns == {"At", "kWh"}
    assert mapping.row({"building": "b0", "At": "2018-12-31 23:00", "kWh": "1.5"}) == {
        "external_id": "b0-2018-12-31 23:00",
        "meter": "b0",
        "consumption": "1.5",
        "period_start": "2018-12-31T23:00:00.000000Z",
        "period_end": "2019-01-01T00:00:00.000000Z",
    }


@pytest.mark.parametrize("top", ['file_name = "hourly"', 'file_name = "{a}{a}"', "file_name = 5", 'file_name = "{a"'])
def test_a_file_name_without_usable_parts_is_refused(write: Write, top: str) -> None:
    with pytest.raises(ImportFault, match="file_name"):
        hourly(write, top)


def test_rows_with_other_values_are_left_out(write: Write) -> None:
    only = '[only]\nkWh = ["1", "2"]\nAt = ["x"]'
    mapping = mapping_file.load(write("only.toml", f'kind = "readings"\n[fields]\n{HOURLY}{only}'), READINGS)
    assert mapping.columns == {"building", "At", "kWh"}
    assert mapping.takes({"At": "x", "kWh": " 2 ", "building": ""})
    assert not mapping.takes({"At": "x", "kWh": "3", "building": ""})
    assert not mapping.takes({"At": "", "kWh": "1", "building": ""})


@pytest.mark.parametrize("only", ["only = 5", "only = { kWh = 5 }", 'only = { kWh = "1" }'])
def test_what_is_wanted_must_be_lists_of_texts(write: Write, only: str) -> None:
    with pytest.raises(ImportFault, match="only"):
        hourly(write, only)


@pytest.mark.parametrize(
    ("title", "reason"),
    [
        ('{ column = "A", plus_minutes = 5 }', "belongs to date"),
        ('{ column = "A", date = "%Y-%m-%d", plus_minutes = 5 }', "belongs to instants"),
        ('{ column = "A", date = "%Y-%m-%d", timezone = "UTC", plus_minutes = "5" }', "whole number"),
        ('{ column = "A", date = "%Y-%m-%d", timezone = "UTC", plus_minutes = 1.5 }', "whole number"),
        ('{ column = "A", date = "%Y-%m-%d", timezone = "UTC", plus_minutes = 99999999 }', "whole number"),
    ],
)
def test_minutes_are_added_to_instants_alone(load: Load, title: str, reason: str) -> None:
    with pytest.raises(ImportFault, match=reason):
        load(title)


def test_minutes_are_added_to_the_instant_and_not_to_the_clock(load: Load) -> None:
    form = 'column = "A", date = "%Y-%m-%d %H:%M", timezone = "America/New_York"'
    # The clocks went from 2 to 3 that night.
    assert made(load(f"{{ {form}, plus_minutes = 60 }}"), A="2024-03-10 01:30") == "2024-03-10T07:30:00.000000Z"
    assert made(load(f"{{ {form}, plus_minutes = -90 }}"), A="2024-03-10 03:30") == "2024-03-10T06:00:00.000000Z"


@given(
    st.datetimes(datetime.datetime(1000, 1, 1)),  # strftime pads no year
    st.sampled_from(["%Y-%m-%d %H:%M:%S", "%d/%m/%Y", "%Y%m%d", "%m-%Y-%d", "%H.%M %Y %d%m", "%Y-%m-%dT%H"]),
    st.sampled_from([None, (-1, ""), (0, "0"), (5, " "), (2, "9"), (3, "\u0663"), (9, "x")]),
)
def test_the_quick_way_to_read_a_date_is_the_slow_one(
    moment: datetime.datetime, form: str, edit: tuple[int, str] | None
) -> None:
    text = moment.strftime(form)
    if edit is not None:
        place, character = edit
        text = text[:place] + character + text[place + 1 :]
    quick = values._usual(form, text)
    if quick is not None:
        assert quick == datetime.datetime.strptime(text, form)
    if edit is None:
        assert quick is not None
