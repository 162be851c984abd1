"""Bodies of requests, checked as the API checks them."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from typing import Any

import msgspec

from makeready_client.testing.contract import Schema

_DESTINATION = re.compile(r"https://(?=[^/?#]*\.)(?!\d+\.\d+\.\d+\.\d+)[^/?#:@\s\[\]]+(:443)?([/?][^\s#]*)?")
_PRIVATE = re.compile(r"(^|\.)(localhost|local|internal|localdomain)$")


class Refused(Exception):
    """The API would refuse it."""

    def __init__(self, status: int, code: str, message: str, param: str = "", **headers: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message
        self.headers = headers
        if param:
            self.headers["Service-Error-Param"] = param


def invalid(message: str, param: str = "", status: int = 400, code: str = "invalid_request") -> Refused:
    """The refusal of a value."""
    return Refused(status, code, message, param)


def checked(schema: Schema, raw: bytes) -> dict[str, Any]:
    """The body of a request, without its nulls. Raises Refused."""
    try:
        body = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise invalid("The body must be one JSON object in UTF-8: it can't be parsed.") from None
    if not isinstance(body, dict):
        raise invalid("The body must be one JSON object in UTF-8: it is of another type.")
    _check_object(schema, body)
    for rule in schema.get("between", ()):
        _check_between(rule, body)
    first, last = schema.get("in_order", ("", ""))
    if body.get(first) and body.get(last) and body[last] < body[first]:
        raise invalid(f"{last} must not be before {first}.", last, 422)
    return {name: value for name, value in body.items() if value is not None}


def _check_object(schema: Schema, body: dict[str, Any], prefix: str = "") -> None:
    for name, sentence in schema.get("refused", {}).items():
        if name in body:
            raise invalid(sentence, name, 422)
    fields = schema["fields"]
    if not body.keys() <= fields.keys():
        within = prefix.rstrip(".")
        raise invalid(
            f"{within or 'The body'} may hold these keys only: {', '.join(fields)}.", within, schema["unknown"]
        )
    for name, field in fields.items():
        codes = field.get("codes", {})
        if body.get(name) is None:
            if field["required"]:
                raise invalid(f"{prefix}{name} is required.", f"{prefix}{name}")
            if "empty" in codes and not field.get("optional"):
                raise invalid(f"{name} names no event.", name, 422, codes["empty"])
        else:
            _check(field, body[name], f"{prefix}{name}")


def _check(field: Schema, value: Any, name: str) -> None:
    kind = field["type"]
    if not _FITS[kind](value):
        raise invalid(f"{name} must be {_NAMED[kind]}.", name)
    if kind in ("string", "date", "instant", "enum", "destination"):
        _check_text(field, value, name)
    if kind == "object":
        _check_object(field["object"], value, f"{name}.")
    if kind == "array":
        _check_entries(field, value, name)


def _check_text(field: Schema, value: str, name: str) -> None:
    if "values" in field and value not in field["values"]:
        raise invalid(f"{name} must be one of: {', '.join(field['values'])}.", name, 422)
    if field["type"] == "destination":
        host = re.split("[/:?]", value.removeprefix("https://"))[0]
        if len(value) > field["longest"] or not _DESTINATION.fullmatch(value) or _PRIVATE.search(host):
            message = "destination_url must be an https URL on port 443 with a public host."
            raise invalid(message, name, 422, field["codes"]["value"])
    elif len(value) > field.get("longest", len(value)):
        raise invalid(f"{name} must be at most {field['longest']} characters.", name, field.get("over", 400))
    if field.get("blank") is False and not value.strip():
        raise invalid(f"{name} must not be blank.", name)


def _check_entries(field: Schema, entries: list[Any], name: str) -> None:
    codes = field.get("codes", {})
    lowest, highest = field.get("lowest", 0), field.get("highest", len(entries))
    if not lowest <= len(entries) <= highest:
        if "empty" in codes:
            raise invalid(f"{name} names no event.", name, 422, codes["empty"])
        raise invalid(f"{name} must have from {lowest} to {highest} entries.", name)
    for index, entry in enumerate(entries):
        try:
            _check(field["items"], entry, f"{name}[{index}]")
        except Refused as refused:
            if refused.status == 422 and "value" in codes:
                raise invalid(refused.message, name, 422, codes["value"]) from None
            raise
    contained = field.get("contains")
    if contained and not any(_contains(contained, entry) for entry in entries):
        raise invalid(f"{name} must have an entry with {', '.join(contained['filled'])}.", name, 422)


def _contains(contained: Schema, entry: dict[str, Any]) -> bool:
    equal = all(entry.get(key) == value for key, value in contained["equal"].items())
    return equal and all((entry.get(key) or "").strip() for key in contained["filled"])


def _check_between(rule: Schema, body: dict[str, Any]) -> None:
    name, value, words = rule["field"], body.get(rule["field"]), rule["words"]
    condition = f"{rule['with']} {rule['value']}"
    if body.get(rule["with"]) != rule["value"]:
        if value is not None:
            raise invalid(f"{name} is accepted with {condition} alone; leave it out.", name, rule["status"])
    elif words and value is None:
        raise invalid(f"{name} is required with {condition}.", name, 422)
    elif words and len(str(value).split()) < words:
        raise invalid(f"{name} must have {words} or more words.", name, 422)


def is_date(value: object) -> bool:
    """Whether it is a day as YYYY-MM-DD."""
    try:
        return isinstance(value, str) and len(value) == 10 and bool(datetime.date.fromisoformat(value))
    except ValueError:
        return False


def instant(value: object) -> datetime.datetime | None:
    """The instant that a text with an offset from UTC names."""
    try:
        at = datetime.datetime.fromisoformat(value) if isinstance(value, str) and value[10:11] in "Tt " else None
    except ValueError:
        return None
    return at if at and at.tzinfo else None


_FITS: dict[str, Callable[[Any], bool]] = {
    "id": lambda value: type(value) is int,
    "integer": lambda value: type(value) is int,
    "number": lambda value: type(value) in (int, float),
    "boolean": lambda value: type(value) is bool,
    "string": lambda value: type(value) is str,
    "enum": lambda value: type(value) is str,
    "destination": lambda value: type(value) is str,
    "date": is_date,
    "instant": lambda value: instant(value) is not None,
    "array": lambda value: type(value) is list,
    "object": lambda value: type(value) is dict,
}
_NAMED = {
    "id": "an integer",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "string": "a string",
    "enum": "a string",
    "destination": "a string",
    "date": "a date as YYYY-MM-DD",
    "instant": "a date-time in ISO 8601 with a UTC offset",
    "array": "an array",
    "object": "an object",
}
