"""Request bodies and import rows: strict JSON, checked against a msgspec Struct, refused by field name.

A body's Struct declares each field's type and caps; this module reports faults in the words of the API:

- wrong type, missing, blank or over-long: 400 (`Text(over=422)` where the contract says so);
- a string outside its enum (`Literal`): 422;
- a key that the Struct lacks: 400, or the Struct's `unknown_keys_status`;
- a key in the Struct's `refused_keys`: 422 with its sentence, checked first;
- a `PastInstant` that lies FUTURE or more ahead of the clock: 400.
"""

from __future__ import annotations

import datetime
import functools
import json
import math
import re
import types
import typing
import unicodedata
from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any, Literal, NoReturn, TypeVar

import msgspec

from chassis.db.statements import Values
from chassis.refusals import invalid_request
from chassis.schedule import instants
from chassis.schedule.instants import Clock

BODY_BYTES_MAX = 256 * 1024
TEXT_POINTS_MAX = 20_000
ID_MAX = 2**63 - 1
# A double holds each integer up to this one.
EXACT_MAX = 2**53
# An instant of a past event may lie this far ahead, because clocks differ.
FUTURE = datetime.timedelta(minutes=5)

Body = TypeVar("Body", bound=msgspec.Struct)


class Text(msgspec.Struct, frozen=True):
    """Rules of a text field: its maximum length in code points, the status above it, whether blank is allowed.

    A text is blank if nothing of it can be seen: it has only white space, control and format characters. has_own_rule:
    the caller refuses a text over the maximum, and a NUL, which a body may have in the fields of its `keys_with_nul`.
    """

    longest: int = TEXT_POINTS_MAX
    over: int = 400
    blank: bool = True
    has_own_rule: bool = False


class Between(msgspec.Struct, frozen=True):
    """Inclusive bounds of a number, or of an array's number of entries. Every integer needs them; otherwise it could
    overflow its column."""

    lowest: int
    highest: int


class Id(msgspec.Struct, frozen=True):
    """Marks an integer that is a record's id. A value outside the range of ids becomes 0, the id of no record."""


class Past(msgspec.Struct, frozen=True):
    """Marks the instant of something that has happened."""


RecordId = Annotated[int, Id()]
PastInstant = Annotated[datetime.datetime, Past()]
LongText = Annotated[str, Text()]
SENSITIVE = msgspec.Meta(extra_json_schema={"x-sensitive": True})
"""Marks a field of a public schema that is a secret, or that may say who a resident or a member of staff is: what
forgetting a person can remove. The log of requests never stores its value."""
PersonalText = Annotated[LongText, SENSITIVE]


def _refuse_json(reason: str) -> NoReturn:
    raise invalid_request(f"The body must be one JSON object in UTF-8: {reason}.")


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        _refuse_json("a key stands in it twice")
    return fields


def _constant(_name: str) -> NoReturn:
    _refuse_json("NaN and Infinity are not JSON")


def _whole_number(digits: str) -> int:
    # int() reads at most 4,300 digits. A number that long is out of every range here, even without its tail.
    return int(digits[:4000])


def _number_with_point(text: str) -> int | float:
    """1.0 and 1e2 are integers, as JSON Schema has it, and the same JSON as 1 and 100."""
    whole, _, fraction = text.partition(".")
    if fraction and not fraction.strip("0"):
        return _whole_number(whole)
    number = float(text)
    return int(number) if number.is_integer() and abs(number) <= EXACT_MAX else number


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_constant, parse_int=_whole_number)
_BODY_DECODER = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_constant=_constant, parse_int=_whole_number, parse_float=_number_with_point
)


def parse(raw: bytes, keys_with_nul: Collection[str] = (), decoder: json.JSONDecoder = _DECODER) -> dict[str, Any]:
    """The body's one JSON object. Raises Refusal 400 for anything else.

    The values of `keys_with_nul` may hold NUL, because the field's own rule refuses it.
    """
    if len(raw) > BODY_BYTES_MAX:
        raise invalid_request(f"The body must be at most {BODY_BYTES_MAX} bytes.")
    try:
        fields = decoder.decode(raw.decode())
        if b"\\u" in raw:
            _check_escapes(fields, keys_with_nul)
    except UnicodeError:
        _refuse_json("it holds bytes or escapes that are no Unicode text")
    except RecursionError:
        _refuse_json("it is nested too deeply")
    except ValueError:
        _refuse_json("it can't be parsed")
    if not isinstance(fields, dict):
        _refuse_json("it is of another type")
    return fields


# NUL as JSON spells it; an even number of backslashes before u0000 is text.
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


def _check_escapes(fields: object, keys_with_nul: Collection[str]) -> None:
    """Refuses NUL, which PostgreSQL can't store, and lone surrogates (UnicodeError), which UTF-8 can't."""
    text = json.dumps(fields, ensure_ascii=False)
    text.encode()
    if keys_with_nul and isinstance(fields, dict):
        text = json.dumps({key: value for key, value in fields.items() if key not in keys_with_nul}, ensure_ascii=False)
    if _NUL.search(text):
        _refuse_json("it holds the character NUL")


def canonical(fields: Values) -> bytes:
    """Bytes for fingerprints: the same for equal JSON, however it was written."""
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


Check = Callable[[Any, str], Any]
Plan = Mapping[str, tuple[bool, Check]]  # by field: whether it is required, and its check


def check(kind: type[Body], fields: Values, within: str = "", clock: Clock = instants.now) -> Body:
    """A Struct of `kind` from a parsed object. Raises Refusal with the first fault in the Struct's order.

    An object that is not the body itself is `within` it, for example at "parties[0]". Instants that must not lie in the
    future are compared with the `clock`.
    """
    refused: Mapping[str, str] = getattr(kind, "refused_keys", {})
    for key, sentence in refused.items():
        if key in fields:
            raise invalid_request(sentence, key, 422)
    plan = _plan(kind)
    if not fields.keys() <= plan.keys():
        status: int = getattr(kind, "unknown_keys_status", 400)
        raise invalid_request(f"{within or 'The body'} may hold these keys only: {', '.join(plan)}.", within, status)
    return _checked(kind, plan, fields, clock, f"{within}." if within else "")


def _checked(kind: type[Body], plan: Plan, fields: Values, clock: Clock, prefix: str = "") -> Body:
    values = {}
    for name, (required, examine) in plan.items():
        value = fields.get(name)
        if value is None:
            if required:
                raise invalid_request(f"{prefix}{name} is required.", f"{prefix}{name}")
            continue
        values[name] = examine(value, f"{prefix}{name}")
    if past := past_fields(kind):
        _refuse_future(past, values, clock, prefix)
    return kind(**values)


@functools.cache
def past_fields(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    """The fields of a Struct that are a `PastInstant`."""
    hints = typing.get_type_hints(kind, include_extras=True)
    return tuple(field.encode_name for field in msgspec.structs.fields(kind) if _is_past(hints[field.name]))


def _is_past(hint: object) -> bool:
    arms = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    return any(isinstance(marker, Past) for arm in arms for marker in getattr(arm, "__metadata__", ()))


def _refuse_future(names: tuple[str, ...], values: Values, clock: Clock, prefix: str) -> None:
    instants_given = [(name, values[name]) for name in names if name in values]
    if not instants_given:
        return
    now = clock()
    for name, value in instants_given:
        if value - now >= FUTURE:
            # The sentence repeats the value, unlike others: it is an instant, and no text of the caller's.
            raise invalid_request(
                f"{prefix}{name} {instants.printed(value)} lies in the future: it is {instants.printed(now)} now.",
                f"{prefix}{name}",
            )


def decode(kind: type[Body], raw: bytes) -> tuple[Body, bytes]:
    """The checked body and its canonical bytes. Raises Refusal 400 or 422."""
    fields = parse(raw, getattr(kind, "keys_with_nul", ()), _BODY_DECODER)
    return check(kind, fields), canonical(fields)


@functools.cache
def _plan(kind: type[msgspec.Struct]) -> Plan:
    hints = typing.get_type_hints(kind, include_extras=True)
    return {
        field.encode_name: (field.required, _check_for(hints[field.name])) for field in msgspec.structs.fields(kind)
    }


def _check_for(hint: object) -> Check:  # noqa: PLR0911 - one line a type
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        (inner,) = (arm for arm in typing.get_args(hint) if arm is not type(None))
        return _check_for(inner)
    if origin is Annotated:
        inner, marker = typing.get_args(hint)[:2]
        if isinstance(marker, Id):
            return _id
        if isinstance(marker, Text):
            return functools.partial(_text, marker)
        if isinstance(marker, Between):
            return functools.partial(_bounded, marker, _check_for(inner))
        return _check_for(inner)
    if origin is Literal:
        return functools.partial(_one_of, typing.get_args(hint))
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return functools.partial(_object, hint)
    if origin is list:
        return functools.partial(_list, _check_for(typing.get_args(hint)[0]))
    plain: dict[object, Check] = {
        str: functools.partial(_text, Text()),
        int: _integer,
        float: _number,
        bool: _boolean,
        datetime.date: _date,
        datetime.datetime: _date_time,
    }
    return plain[hint]


def _id(value: object, name: str) -> int:
    number = _integer(value, name)
    return number if 0 < number <= ID_MAX else 0


def _integer(value: object, name: str) -> int:
    if type(value) is float and value.is_integer():
        return int(value)
    if type(value) is not int:
        raise invalid_request(f"{name} must be an integer.", name)
    return value


def _number(value: object, name: str) -> float:
    if type(value) is not int and type(value) is not float:
        raise invalid_request(f"{name} must be a number.", name)
    try:
        number = float(value)
    except OverflowError:
        number = float("inf")
    if not math.isfinite(number):
        raise invalid_request(f"{name} is out of range.", name)
    return number


def _bounded(bounds: Between, examine: Check, value: object, name: str) -> Any:
    if type(value) is list and not bounds.lowest <= len(value) <= bounds.highest:
        raise invalid_request(f"{name} must have from {bounds.lowest} to {bounds.highest} entries.", name)
    number = examine(value, name)
    if type(value) is not list and not bounds.lowest <= number <= bounds.highest:
        raise invalid_request(f"{name} must be from {bounds.lowest} to {bounds.highest}.", name)
    return number


def _boolean(value: object, name: str) -> bool:
    if type(value) is not bool:
        raise invalid_request(f"{name} must be true or false.", name)
    return value


def _text(rules: Text, value: object, name: str) -> str:
    if type(value) is not str:
        raise invalid_request(f"{name} must be a string.", name)
    if rules.has_own_rule:
        return value
    if len(value) > rules.longest:
        raise invalid_request(f"{name} must be at most {rules.longest} characters.", name, rules.over)
    if "\0" in value:  # `parse` refuses it in JSON; a typed field may hold it
        raise invalid_request(f"{name} must not hold the character NUL.", name)
    if not rules.blank and is_blank(value):
        raise invalid_request(f"{name} must not be blank.", name)
    return value


# Besides white space, control and format characters: letters and marks that take no place or show nothing.
_UNSEEN_CATEGORIES = frozenset({"Cc", "Cf", "Zs", "Zl", "Zp"})
_UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0") | {
    chr(point) for first, last in ((0xFE00, 0xFE0F), (0xE0100, 0xE01EF)) for point in range(first, last + 1)
}


def is_blank(value: str) -> bool:
    """Whether nothing of a text can be seen."""
    return all(unicodedata.category(sign) in _UNSEEN_CATEGORIES or sign in _UNSEEN for sign in value)


def _one_of(allowed: tuple[str, ...], value: object, name: str) -> str:
    if type(value) is not str:
        raise invalid_request(f"{name} must be a string.", name)
    if value not in allowed:
        raise invalid_request(f"{name} must be one of: {', '.join(allowed)}.", name, 422)
    return value


def _list(item: Check, value: object, name: str) -> list[Any]:
    if type(value) is not list:
        raise invalid_request(f"{name} must be an array.", name)
    return [item(element, f"{name}[{index}]") for index, element in enumerate(value)]


def _object(kind: type[msgspec.Struct], value: object, name: str) -> msgspec.Struct:
    if type(value) is not dict:
        raise invalid_request(f"{name} must be an object.", name)
    return check(kind, value, name)


def _date(value: object, name: str) -> datetime.date:
    # fromisoformat alone also accepts 20260131 and week dates.
    if type(value) is str and len(value) == 10 and value.isascii() and value[4] == value[7] == "-":
        try:
            return datetime.date.fromisoformat(value)
        except ValueError:
            pass
    raise invalid_request(f"{name} must be a date as YYYY-MM-DD.", name)


def date_time(value: str) -> datetime.datetime | None:
    """An ISO 8601 instant with a UTC offset, in UTC; None for any other text.

    A leap second, 23:59:60 UTC at the end of a month (RFC 3339, 5.7), is the second after it, as in PostgreSQL.
    """
    # fromisoformat alone also accepts week dates, dates without dashes, and any separator, but no lower-case z.
    value = value.upper()
    if not value.isascii() or value[4:5] + value[7:8] + value[10:11] != "--T":
        return None
    is_leap = value[16:19] == ":60"
    try:
        instant = datetime.datetime.fromisoformat(f"{value[:17]}59{value[19:]}" if is_leap else value)
        if instant.tzinfo is None:
            return None
        instant = instant.astimezone(datetime.UTC)
        if is_leap:
            instant += datetime.timedelta(seconds=1)
            return instant if (instant.day, instant.hour, instant.minute, instant.second) == (1, 0, 0, 0) else None
        return instant
    except (ValueError, OverflowError):
        return None


def _date_time(value: object, name: str) -> datetime.datetime:
    instant = date_time(value) if type(value) is str else None
    if instant is None:
        raise invalid_request(f"{name} must be a date-time in ISO 8601 with a UTC offset.", name)
    # A later change gets a later instant, for which the last year leaves no room. The first instant of the first year
    # would be stored as -infinity and read without a timezone.
    if not datetime.MINYEAR < instant.year < datetime.MAXYEAR:
        raise invalid_request(f"{name} must lie in the years {datetime.MINYEAR + 1} to {datetime.MAXYEAR - 1}.", name)
    return instant


_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
# Python itself would also read 1_000, nan and the digits of other scripts.
_NUMBER = re.compile(r"[ ]*[+-]?[0-9]*\.?[0-9]*(?:[eE][+-]?[0-9]+)?[ ]*")


def _number_of(kind: type, text: str) -> Any:
    try:
        return kind(text) if _NUMBER.fullmatch(text) else text
    except ValueError:
        return text


# Convert a text to a value. A text that does not convert stays as it is, and the field's check refuses it.
_FROM_TEXT: dict[Any, Callable[[str], Any]] = {
    bool: lambda text: _BOOLEANS.get(text.lower(), text),
    int: functools.partial(_number_of, int),
    float: functools.partial(_number_of, float),
    datetime.datetime: lambda text: text + "T00:00:00Z" if len(text) == 10 else text,
}


def check_row(kind: type[Body], cells: Values, clock: Clock = instants.now) -> Body:
    """As `check`, for a parsed row of a file, where every value may be text: "" is absent, "12" is 12.

    A date in a date-time's place is midnight UTC. The caller refuses keys that the Struct lacks. Raises Refusal with
    the field at fault. For `clock` see `check`.
    """
    return _checked(kind, _row_plan(kind), {name: value for name, value in cells.items() if value != ""}, clock)


@functools.cache
def _row_plan(kind: type[msgspec.Struct]) -> Plan:
    plan: dict[str, tuple[bool, Check]] = {}
    hints = typing.get_type_hints(kind)
    for name, (required, examine) in _plan(kind).items():
        arms = [arm for arm in typing.get_args(hints[name]) if arm is not type(None)]
        read = _FROM_TEXT.get(arms[0] if arms else hints[name])
        plan[name] = (required, examine if read is None else functools.partial(_read_and_check, read, examine))
    return plan


def _read_and_check(read: Callable[[str], Any], examine: Check, value: object, name: str) -> Any:
    return examine(read(value) if type(value) is str else value, name)
