"""The kinds of imports: the services' Structs, the command line's file and the table have the same columns."""

from __future__ import annotations

import datetime
from typing import Annotated, Any, Literal

import msgspec
import pytest

from chassis.records.bodies import Between, Text
from importing.kinds import KINDS
from reference import imports
from reference.structs import Undescribed


class ThingRow(msgspec.Struct, kw_only=True):
    """A row of nothing that is imported."""

    external_id: Annotated[str, Text(longest=200, blank=False)]
    state: Literal["new", "old"] | None = None
    size: Annotated[int, Between(1, 9)] | None = None
    weight: float | None = None
    is_round: bool | None = None
    made_on: datetime.date | None = None
    property: Annotated[str, Text(longest=20)]
    seen_at: datetime.datetime | None = None


class BadRow(msgspec.Struct):
    """A row that no file can hold."""

    parts: list[str]


def columns(monkeypatch: pytest.MonkeyPatch, struct: type[msgspec.Struct]) -> list[dict[str, Any]]:
    monkeypatch.setattr(imports, "_struct", lambda _one: struct)
    listed: list[dict[str, Any]] = imports.document()["kinds"][0]["columns"]
    return listed


def test_a_column_has_its_type_its_bounds_and_what_it_refers_to_the_required_ones_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert columns(monkeypatch, ThingRow) == [
        {"name": "external_id", "required": True, "longest": 200, "type": "text"},
        {"name": "property", "required": True, "longest": 20, "type": "text", "refers_to": "properties"},
        {"name": "state", "required": False, "type": "text", "values": ["new", "old"]},
        {"name": "size", "required": False, "type": "integer", "lowest": 1, "highest": 9},
        {"name": "weight", "required": False, "type": "number"},
        {"name": "is_round", "required": False, "type": "boolean"},
        {"name": "made_on", "required": False, "type": "date"},
        {"name": "seen_at", "required": False, "type": "date-time"},
    ]


def test_each_cap_names_the_columns_that_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    things = columns(monkeypatch, ThingRow)
    kinds = [{"name": "things", "columns": things}, {"name": "others", "columns": things[:1] + things[3:4]}]
    assert list(imports._caps(kinds)) == [
        ("20 code points", "property of things"),
        ("200 code points", "every other text without a rule of its own"),
        ("1 to 9", "size of things, size of others"),
    ]


def test_a_column_of_a_type_that_no_file_can_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Undescribed, match="parts"):
        columns(monkeypatch, BadRow)


def test_a_struct_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = imports.Import("staff", "gateway", "GoneRow", "identity.v1.staff_pb2", "StaffService.ImportStaff")
    monkeypatch.setattr(imports, "IMPORTS", (gone,))
    with pytest.raises(Undescribed, match="GoneRow"):
        imports.document()


def test_the_command_line_has_every_kind_with_an_rpc_that_takes_rows() -> None:
    assert list(KINDS) == [kind.kind for kind in imports.IMPORTS]
    for kind in KINDS.values():
        assert "external_id" in kind.required and len(set(kind.fields)) == len(kind.fields)
        assert {"rows", "dry_run"} <= set(kind.rpc.input_type.fields_by_name), kind.name
        assert set(kind.rpc.output_type.fields_by_name) == {"results"}, kind.name


def test_every_column_that_refers_to_another_kind_names_one() -> None:
    assert set(imports.REFERENCES.values()) <= KINDS.keys()
    assert imports.REFERENCES.keys() <= {name for kind in KINDS.values() for name in kind.fields}


def test_the_table_is_made_between_its_markers_alone() -> None:
    page = f"before\n{imports.BEGIN}\nstale\n{imports.END}\nafter\n"
    new_page = imports.with_table(page)
    assert new_page.startswith(f"before\n{imports.BEGIN}\n| kind | columns |\n")
    assert new_page.endswith(f"|\n{imports.END}\nafter\n") and "stale" not in new_page
    assert "| staff | **external_id**, **name**, email, title, created_at |" in new_page
    assert imports.with_table(new_page) == new_page


def test_the_words_below_a_column_are_in_the_page() -> None:
    page = imports.with_table(f"{imports.BEGIN}\n{imports.END}\n")
    assert "\n| unit_of_measure of readings | The meter's, unless the row has one. |\n" in page


@pytest.mark.parametrize("page", ["", imports.BEGIN, imports.END])
def test_a_page_without_its_markers_is_refused(page: str) -> None:
    with pytest.raises(ValueError, match=r"docs/imports\.md"):
        imports.with_table(page)
