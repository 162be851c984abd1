"""The query of a list: `limit`, `cursor`, and the filters that its RPC's request declares (spec 4.12)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.timestamp_pb2 import Timestamp

from chassis.records.bodies import ID_MAX, date_time
from chassis.refusals import Refusal, invalid_request
from makeready.common.v1 import options_pb2

LIMIT_DEFAULT, LIMIT_MAX = 50, 200
WAIT_SECONDS_MAX = 25
PAIRS_MAX = 50
TEXT_CHARACTERS_MAX = 100
ID_CHARACTERS_MAX = 64  # no id is longer, so a longer text stays the id of nothing

_INTEGER = re.compile("-?[0-9]+")
# A plus sign that was not percent-encoded arrives as a space.
_SPACE_FOR_PLUS = re.compile(r" (?=\d\d:?\d\d$)")


@dataclass(frozen=True, slots=True)
class Filter:
    """One filter of a list, under its public name."""

    name: str
    read: Callable[[str], Any]
    """The field's value from the query's text. Raises Refusal."""
    requires: str
    labels: tuple[str, ...]
    """The values that the filter allows; empty if it allows any."""
    is_instant: bool = False
    is_boolean: bool = False
    is_text: bool = False
    points_max: int = 0
    """Of a text that must be given: see the option `points_max`. 0: it may be left out."""


# Fields of a feed's request that are no filters.
_OF_FEEDS = ("position", "limit", "from_now")


def filters_of(request: Descriptor) -> tuple[Filter, ...]:
    """Every field of a list's request after `limit`, of a feed's after `from_now`, and of a search's."""
    limit = request.fields_by_name["limit"].number if "limit" in request.fields_by_name else 0
    return tuple(_filter(field) for field in request.fields if field.number > limit and field.name not in _OF_FEEDS)


def _filter(field: FieldDescriptor) -> Filter:
    name = field.name
    requires: str = field.GetOptions().Extensions[options_pb2.requires]
    if field.enum_type is not None:
        numbers = {
            value.GetOptions().Extensions[options_pb2.label]: value.number
            for value in field.enum_type.values
            if value.number
        }
        return Filter(name, lambda text: _one_of(name, numbers, text), requires, tuple(numbers))
    if field.message_type is not None:
        assert field.message_type.full_name == Timestamp.DESCRIPTOR.full_name, f"{name}: no such filter"
        return Filter(name, lambda text: _instant(name, text), requires, (), is_instant=True)
    if field.type == FieldDescriptor.TYPE_BOOL:
        return Filter(name, lambda text: _boolean(name, text), requires, (), is_boolean=True)
    points_max: int = field.GetOptions().Extensions[options_pb2.points_max]
    if points_max:
        return Filter(
            name, lambda text: _any_text(name, points_max, text), requires, (), is_text=True, points_max=points_max
        )
    if field.type == FieldDescriptor.TYPE_STRING:
        return Filter(name, lambda text: _text(name, text), requires, (), is_text=True)
    assert field.type == FieldDescriptor.TYPE_INT64, f"{name}: no such filter"
    return Filter(name, lambda text: _record_id(name, text), requires, ())


def entity_id(text: str) -> int:
    """The id in plain digits; 0, which no record has, for anything that is no positive 64-bit number."""
    digits = text.lstrip("0")
    if digits.isascii() and digits.isdigit() and len(digits) <= 19:
        number = int(digits)
        if number <= ID_MAX:
            return number
    return 0


def set_ids(message: Any, names: Sequence[str], texts: Sequence[str]) -> None:
    """Sets the ids of a path in a request: numbers, and texts such as an event's id."""
    for name, text in zip(names, texts, strict=True):
        is_text = message.DESCRIPTOR.fields_by_name[name].type == FieldDescriptor.TYPE_STRING
        setattr(message, name, text[:ID_CHARACTERS_MAX] if is_text else entity_id(text))


def _record_id(name: str, text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise invalid_request(f"{name} must be an integer.", name)
    return entity_id(text)


def _boolean(name: str, text: str) -> bool:
    if text not in ("true", "false"):
        raise invalid_request(f"{name} must be true or false.", name)
    return text == "true"


def _text(name: str, text: str) -> str:
    if len(text) > TEXT_CHARACTERS_MAX or not (text.isascii() and text.isprintable()):
        raise invalid_request(f"{name} must be at most {TEXT_CHARACTERS_MAX} printable ASCII characters.", name)
    return text


def _any_text(name: str, points_max: int, text: str) -> str:
    if len(text) > points_max or "\0" in text:
        raise invalid_request(f"{name} must be at most {points_max} characters, without the character NUL.", name)
    return text


def _one_of(name: str, numbers: dict[str, int], text: str) -> int:
    number = numbers.get(text)
    if number is None:
        raise invalid_request(f"{name} must be one of: {', '.join(numbers)}.", name, 422)
    return number


def _instant(name: str, text: str) -> Timestamp:
    parsed = date_time(_SPACE_FOR_PLUS.sub("+", text))
    if parsed is None:
        raise invalid_request(
            f"{name} must be a date-time in ISO 8601 with a UTC offset, such as 2026-01-31T08:00:00Z.", name
        )
    instant = Timestamp()
    instant.FromDatetime(parsed)
    return instant


def pairs(query: str, allowed: Sequence[str], may_be_empty: Collection[str] = ()) -> dict[str, str]:
    """The query's values by key. Raises Refusal for a key that is not allowed, a repeated key, an empty value.

    may_be_empty: keys whose own checks refuse an empty value, each with its own answer.
    """
    if not query:
        return {}
    try:
        decoded = parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=PAIRS_MAX)
    except ValueError:
        raise invalid_request(
            f"The query must be at most {PAIRS_MAX} key=value pairs in percent-encoded UTF-8."
        ) from None
    values: dict[str, str] = {}
    for name, text in decoded:
        if name not in allowed:
            if not allowed:
                raise invalid_request("This operation takes no query parameters; leave them out.")
            raise invalid_request(f"The query may hold these keys only: {', '.join(allowed)}.")
        if name in values:
            raise invalid_request(f"{name} is given more than once; give it once.", name)
        if not text and name not in may_be_empty:
            raise invalid_request(f"{name} is empty; give it a value or leave it out.", name)
        values[name] = text
    return values


def limit(text: str | None) -> int:
    """The page size. Raises Refusal."""
    if text is None:
        return LIMIT_DEFAULT
    digits = text.lstrip("0")
    if not (text.isascii() and text.isdigit() and digits):
        raise Refusal(
            400,
            "invalid_limit",
            f"limit must be a positive integer in plain digits; above {LIMIT_MAX} it counts as {LIMIT_MAX}.",
        )
    return LIMIT_MAX if len(digits) > 3 else min(int(digits), LIMIT_MAX)


def wait(text: str | None) -> int:
    """The seconds that a feed may wait for something to return. Raises Refusal."""
    if text is None:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) <= 2 and int(text) <= WAIT_SECONDS_MAX):
        raise invalid_request(f"wait must be a whole number of seconds from 0 to {WAIT_SECONDS_MAX}.", "wait", 422)
    return int(text)


def after_id(name: str, text: str) -> int:
    """The id after which a snapshot goes on. Raises Refusal."""
    if not (text.isascii() and text.isdigit() and len(text) <= 19 and int(text) <= ID_MAX):
        raise invalid_request(f"{name} must be the entity_id of the last record that you have.", name)
    return min(int(text), ID_MAX - 1)  # a statement adds 1 to it; no record has the last id


def read_filters(filters: Sequence[Filter], texts: dict[str, str]) -> dict[str, Any]:
    """The values of the filters in the query, by name, in the order of the list's contract. Raises Refusal."""
    values = {
        query_filter.name: query_filter.read(texts[query_filter.name])
        for query_filter in filters
        if query_filter.name in texts
    }
    for query_filter in filters:
        if query_filter.points_max and query_filter.name not in values:
            raise invalid_request(f"{query_filter.name} is required.", query_filter.name)
        if query_filter.requires and query_filter.name in values and query_filter.requires not in values:
            raise invalid_request(
                f"{query_filter.name} needs {query_filter.requires} beside it; give both.", query_filter.name
            )
    return values


def canonical(filters: Mapping[str, Any]) -> str:
    """The same text for the same filters, however the caller spelled them."""
    return "&".join(
        f"{name}={value.ToMicroseconds() if isinstance(value, Timestamp) else value}" for name, value in filters.items()
    )
