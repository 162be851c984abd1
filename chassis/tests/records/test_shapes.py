"""Records declared once: how rows are rendered, and which declarations are refused."""

from __future__ import annotations

import datetime
import decimal
from typing import Any, Literal

import msgspec
import pytest
import sqlalchemy as sa

from chassis.records.shapes import Computed, Either, Link, Nested, Shape

METADATA = sa.MetaData()
OWNER = sa.Table("owner", METADATA, sa.Column("id", sa.BigInteger, primary_key=True), sa.Column("name", sa.Text))
PLACE = sa.Table(
    "place",
    METADATA,
    sa.Column("id", sa.BigInteger, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
)
BOAT = sa.Table(
    "boat",
    METADATA,
    sa.Column("id", sa.BigInteger, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("length", sa.Double),
    sa.Column("built_on", sa.Date),
    sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
    sa.Column("sold_at", sa.DateTime(timezone=True)),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("version", sa.BigInteger, nullable=False),
)
# As a decimal, so that no record may have the price: JSON would have it as a text.
SALE = sa.Table("sale", METADATA, sa.Column("price", sa.Numeric(10, 2)))
NOON = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)


class Owner(msgspec.Struct, frozen=True):
    id: int
    name: str | None


class Berth(msgspec.Struct, frozen=True):
    id: int
    name: str
    kind: str


class Boat(msgspec.Struct, frozen=True):
    schema_version: Literal[1]
    entity_type: Literal["boat"]
    entity_id: int
    name: str
    length: float | None
    owner: Owner | None
    berth: Berth | None
    built_on: datetime.date | None
    created_at: str
    sold_at: str | None
    url: str
    state: Literal["Afloat", "Ashore"]


MARINA, YARD = PLACE.alias("marina"), PLACE.alias("yard")
SHAPE = Shape(
    Boat,
    BOAT,
    owner=Nested(Owner, OWNER, optional=True),
    berth=Either(Nested(Berth, MARINA, optional=True, kind="marina"), Nested(Berth, YARD, optional=True)),
    url=Link("/owners/{owner.id}/boats/{entity_id}"),
    state=Computed(str.title, BOAT.c.state),
    version=BOAT.c.version,
)


def row(**values: Any) -> list[Any]:
    """A row of SHAPE; values by the column's table and name."""
    by_name = {
        "boat.id": 7, "boat.name": "Ida", "boat.length": 9.5, "boat.built_on": datetime.date(1999, 5, 1),
        "boat.created_at": NOON, "boat.sold_at": None, "boat.state": "afloat", "boat.version": 3,
        "owner.id": 4, "owner.name": "Ada", "marina.id": None, "marina.name": None,
        "yard.id": None, "yard.name": None, "yard.kind": None,
    }  # fmt: skip
    by_name |= {name.replace("_", ".", 1): value for name, value in values.items()}
    return [by_name[f"{getattr(column, 'table', BOAT).name}.{column.name}"] for column in SHAPE.columns]


def test_a_row_becomes_the_record_with_its_parts_and_link() -> None:
    render = SHAPE.renderer("https://links.test")
    assert render.record(row()) == Boat(
        1, "boat", 7, "Ida", 9.5, Owner(4, "Ada"), None, datetime.date(1999, 5, 1),
        "2026-03-01T12:00:00.000000Z", None, "https://links.test/owners/4/boats/7", "Afloat",
    )  # fmt: skip


def test_an_optional_part_is_null_where_its_key_is() -> None:
    assert SHAPE.renderer().record(row(owner_id=None, owner_name=None)).owner is None


@pytest.mark.parametrize(
    ("values", "berth"),
    [
        ({"marina_id": 1, "marina_name": "M"}, Berth(1, "M", "marina")),
        ({"yard_id": 2, "yard_name": "Y", "yard_kind": "dry"}, Berth(2, "Y", "dry")),
        (
            {"marina_id": 1, "marina_name": "M", "yard_id": 2, "yard_name": "Y", "yard_kind": "dry"},
            Berth(1, "M", "marina"),
        ),
        ({}, None),
    ],
)
def test_the_first_of_several_parts_that_is_there_counts(values: dict[str, Any], berth: Berth | None) -> None:
    assert SHAPE.renderer().record(row(**values)).berth == berth


def test_the_id_comes_first_and_the_version_last_and_each_column_once() -> None:
    assert SHAPE.columns[0] is BOAT.c.id and SHAPE.columns[-1] is BOAT.c.version
    assert len(set(map(id, SHAPE.columns))) == len(SHAPE.columns)


def test_a_document_has_the_records_bytes_id_and_version() -> None:
    render = SHAPE.renderer("https://links.test")
    document = render.document(row())
    assert (document.json, document.entity_id, document.version) == (render.json(row()), 7, 3)
    assert list(msgspec.json.decode(document.json)) == list(Boat.__struct_fields__)


def test_a_row_that_goes_on_behind_the_shape_is_cut() -> None:
    render = SHAPE.renderer()
    assert render.record_of_wider_row([*row(), "more", "columns"]) == render.record(row())


def test_values_of_a_row_to_be_inserted_are_rendered_without_a_select() -> None:
    values = {column: value for column, value in zip(SHAPE.columns, row(), strict=True) if value is not None}
    render = SHAPE.renderer("https://links.test")
    assert render.of_values(values) == render.record(row())


def test_another_source_of_a_field_is_another_number() -> None:
    name, other = BOAT.c.name, BOAT.c.state
    sources: list[Any] = [
        name,
        other,
        sa.func.coalesce(name, other, type_=sa.Text),
        sa.func.coalesce(other, name, type_=sa.Text),
        Computed(str.title, name),
        Computed(str.upper, name),
        Computed(lambda text: text, name),
    ]
    assert len({Shape(Keyworded, BOAT, name=source).number for source in sources}) == len(sources)
    assert Shape(Keyworded, BOAT).number == Shape(Keyworded, BOAT, version=BOAT.c.version).number


def test_positions_name_fields_and_fields_of_parts() -> None:
    assert SHAPE.columns[SHAPE.positions["owner.name"]] is OWNER.c.name
    assert SHAPE.columns[SHAPE.positions["sold_at"]] is BOAT.c.sold_at


def test_the_select_has_the_shapes_columns_in_their_order() -> None:
    assert [column.name for column in SHAPE.select(BOAT).selected_columns] == [
        f"c{n}" for n in range(len(SHAPE.columns))
    ]


class Keyworded(msgspec.Struct, kw_only=True):
    name: str
    length: float | None = None


def test_a_struct_of_keywords_is_made_by_name() -> None:
    assert Shape(Keyworded, BOAT).renderer().record(["Ida", 1.0]) == Keyworded(name="Ida", length=1.0)


class Linked(msgspec.Struct):
    name: str
    url: str


def test_a_link_may_name_a_column_that_no_field_holds() -> None:
    shape = Shape(Linked, BOAT, url=Link("/owners/{owner}/boats", owner=OWNER.c.id))
    assert shape.columns == (BOAT.c.name, OWNER.c.id)
    assert shape.renderer("https://links.test").record(["Ida", 4]) == Linked("Ida", "https://links.test/owners/4/boats")


class Misnamed(msgspec.Struct):
    naem: str


class Mistyped(msgspec.Struct):
    name: int


class Priced(msgspec.Struct):
    price: float | None


class Decimals(msgspec.Struct):
    price: decimal.Decimal | None


class NeverNull(msgspec.Struct):
    length: float


@pytest.mark.parametrize(
    ("declare", "sentence"),
    [
        (lambda: Shape(Misnamed, BOAT), r"Misnamed\.naem has no source: boat has no column naem"),
        (lambda: Shape(Mistyped, BOAT), r"Mistyped\.name is int, and its column is Text"),
        (lambda: Shape(Priced, SALE), r"Priced\.price is NoneType, float, and its column is Numeric"),
        (lambda: Shape(Decimals, SALE), r"Decimals\.price is Decimal, NoneType, and its column is Numeric"),
        (lambda: Shape(NeverNull, BOAT), r"NeverNull\.length is never null, and its column may be"),
        (lambda: Shape(Keyworded, BOAT, nmae=BOAT.c.name), r"Keyworded has no fields \['nmae'\]"),
        (lambda: Shape(Keyworded, BOAT, name=Link("/{other}")), r"link of Keyworded names other, which has no column"),
        (lambda: Shape(Keyworded, BOAT, name=object()), r"Keyworded\.name cannot come from <object"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused_when_it_is_declared(declare: Any, sentence: str) -> None:
    with pytest.raises(TypeError, match=sentence):
        declare()
