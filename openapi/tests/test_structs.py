"""Structs become schemas, and no field may lack words."""

from __future__ import annotations

import datetime
from typing import Annotated, Any, Literal

import msgspec
import pytest

from chassis.records.bodies import Between, RecordId, Text
from reference.structs import Structs, Undescribed


class Room(msgspec.Struct):
    """A room."""

    name: str
    """What it is called."""


class Home(msgspec.Struct):
    """A home.

    Not published.
    """

    entity_id: int
    size: Annotated[int, Between(1, 9)]
    """How many rooms."""
    rooms: list[Room]
    """The rooms, the largest
    first."""
    kitchen: Room | None
    """The kitchen."""
    kind: Literal["flat", "house"]
    """What it is."""
    was: Literal["flat", "house"] | None
    """What it was."""
    built_at: str | None
    """When it was built."""
    sold_on: datetime.date
    """When it was sold."""
    secret: str | msgspec.UnsetType = msgspec.UNSET
    """Shown once."""


class Wish(msgspec.Struct):
    """What is wished for."""

    home_id: RecordId
    """Which one."""
    kind: Literal["flat", "house"]
    """What kind."""
    note: Annotated[str, Text(longest=9, blank=False)] | None = None
    """Why."""


class Party(msgspec.Struct):
    """A party."""

    guests: Annotated[list[Wish], Between(1, 20)]
    """Who comes."""
    host: Wish
    """Who asks."""


class Mute(msgspec.Struct):
    """Says nothing of its field."""

    count: int


class Cites(msgspec.Struct):
    """As spec 2.3 has it."""


def made(kind: type[msgspec.Struct], *, closed: bool = False) -> dict[str, Any]:
    structs = Structs()
    (structs.body if closed else structs.record)(kind)
    return structs.schemas


def test_a_record_has_every_key_and_open_enums() -> None:
    schemas = made(Home)
    home = schemas["Home"]
    assert home["description"] == "A home." and "additionalProperties" not in home
    assert home["required"] == [name for name in home["properties"] if name != "secret"]
    shapes = {
        name: {k: v for k, v in field.items() if k != "description"} for name, field in home["properties"].items()
    }
    assert shapes == {
        "entity_id": {"type": "integer", "format": "int64"},
        "size": {"type": "integer", "format": "int64", "minimum": 1, "maximum": 9},
        "rooms": {"type": "array", "items": {"$ref": "#/$defs/Room"}},
        "kitchen": {"anyOf": [{"$ref": "#/$defs/Room"}, {"type": "null"}]},
        "kind": {"anyOf": [{"$ref": "#/$defs/HomeKind"}, {"type": "string"}]},
        "was": {"anyOf": [{"$ref": "#/$defs/HomeKind"}, {"type": "string"}, {"type": "null"}]},
        "built_at": {"type": ["string", "null"], "format": "date-time"},
        "sold_on": {"type": "string", "format": "date"},
        "secret": {"type": "string"},
    }
    assert schemas["HomeKind"]["enum"] == ["flat", "house"]
    assert home["properties"]["rooms"]["description"] == "The rooms, the largest first."


def test_a_body_is_closed_and_may_leave_out_what_has_a_default() -> None:
    wish = made(Wish, closed=True)["Wish"]
    assert wish["additionalProperties"] is False and wish["required"] == ["home_id", "kind"]
    assert wish["properties"]["home_id"]["minimum"] == 1
    assert wish["properties"]["kind"]["$ref"] == "#/$defs/WishKind"
    note = wish["properties"]["note"]
    assert (note["type"], note["maxLength"], note["pattern"]) == (["string", "null"], 9, r"\S")


def test_a_body_may_hold_objects_and_bounded_arrays_that_are_closed_too() -> None:
    schemas = made(Party, closed=True)
    guests, host = schemas["Party"]["properties"].values()
    del guests["description"], host["description"]
    assert guests == {"type": "array", "items": {"$ref": "#/$defs/Wish"}, "minItems": 1, "maxItems": 20}
    assert host == {"$ref": "#/$defs/Wish"} and schemas["Wish"]["additionalProperties"] is False


def test_a_field_without_words_is_refused() -> None:
    with pytest.raises(Undescribed, match=r"Mute\.count has no string below it"):
        made(Mute)


def test_words_for_the_builders_are_not_published() -> None:
    with pytest.raises(Undescribed, match="readers have no spec"):
        made(Cites)
