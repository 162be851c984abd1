"""What the log of requests stores of a body: what the contract knows of it and does not call sensitive.

The OpenAPI document says which keys an object may have and what their values may be; `x-sensitive` marks values that
may say who somebody is, and secrets. Such a value, and one that is not as the document says, is stored as its type
alone, a key that the document does not know as a hash. So nothing of a person is stored, wherever a caller has put it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from chassis.records.bodies import BODY_BYTES_MAX
from gateway.http.routes import Operation

BYTES_MAX = 16 * 1024
"""Of a body as it is stored, which is cut there."""
READ_BYTES_MAX = BODY_BYTES_MAX
"""Of a longer body nothing is stored: reading it would delay other requests."""
TOO_LONG, NO_JSON = "[longer than 256 KiB]", "[no JSON]"

_SENSITIVE = "x-sensitive"
_FORMATS = {
    "date": re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}"),
    "duration": re.compile(r"P[0-9WDTHMS.]{1,40}"),
    "date-time": re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{1,15}(?:Z|[-+][0-9]{2}:?[0-9]{2})", re.IGNORECASE),
}
_NAMES = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}

Schema = Mapping[str, Any]
Hash = Callable[[str], str]


@dataclass(slots=True)
class _Shape:
    """What a value may be, of all alternatives of its schema."""

    is_sensitive: bool = False
    types: set[str] = field(default_factory=set)
    texts: list[Callable[[str], object]] = field(default_factory=list)
    """Checks of a string, of which one has to hold."""
    properties: dict[str, _Shape] = field(default_factory=dict)
    others: _Shape | None = None
    """Of the values of all other keys, where the document lets them be of any name."""
    items: _Shape | None = None


_UNKNOWN = _Shape(is_sensitive=True)


class LoggedBodies:
    """The bodies of all operations. Nothing is read before the first body is stored."""

    def __init__(self, document: bytes, hash_of: Hash) -> None:
        """document: the OpenAPI document."""
        self._document = document
        self._hash = hash_of

    def request(self, operation: Operation, body: bytes) -> str | None:
        """What is stored of a request's body; None if there was none."""
        return self._stored(self._shapes[operation.route.method, operation.route.path][0], body)

    def answer(self, operation: Operation, status: int, body: bytes) -> str | None:
        """What is stored of the answer's body; None if it has none."""
        success, error = self._shapes[operation.route.method, operation.route.path][1:]
        return self._stored(success if status < 400 else error, body)

    def _stored(self, shape: _Shape, body: bytes) -> str | None:
        if not body:
            return None
        if len(body) > READ_BYTES_MAX:
            return TOO_LONG
        try:
            value = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return NO_JSON
        text = msgspec.json.encode(_Redaction(self._hash).of(shape, value))
        return text[:BYTES_MAX].decode(errors="ignore")

    @functools.cached_property
    def _shapes(self) -> Mapping[tuple[str, str], tuple[_Shape, _Shape, _Shape]]:
        """By method and path: of the request, of its success, and of an error."""
        document = msgspec.json.decode(self._document)
        schemas = _Schemas(document["components"]["schemas"])
        error = schemas.shape({"$ref": "#/components/schemas/Error"})
        shapes = {}
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                if "responses" not in operation:
                    continue
                (success,) = [answer for status, answer in operation["responses"].items() if status < "300"]
                request = schemas.shape_of_content(operation.get("requestBody", {}))
                shapes[method.upper(), path] = request, schemas.shape_of_content(success), error
        return shapes


class _Schemas:
    """Shapes of the document's schemas, each made once."""

    def __init__(self, schemas: Mapping[str, Schema]) -> None:
        self._schemas = schemas
        self._shapes: dict[str, _Shape] = {}

    def shape_of_content(self, part: Schema) -> _Shape:
        """Of a request's or an answer's body."""
        content = part.get("content", {}).get("application/json")
        return _UNKNOWN if content is None else self.shape(content["schema"])

    def shape(self, schema: Schema) -> _Shape:
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            if name not in self._shapes:
                self._shapes[name] = _Shape()  # a schema may contain itself
                _add(self._shapes[name], self.shape(self._schemas[name]))
            shape = self._shapes[name]
            return _merged(shape, _Shape(is_sensitive=True)) if schema.get(_SENSITIVE) else shape
        types = schema.get("type", ())
        shape = _Shape(bool(schema.get(_SENSITIVE)), {types} if isinstance(types, str) else set(types))
        if "string" in shape.types:
            shape.texts.append(_check_of(schema))
        shape.properties = {name: self.shape(inner) for name, inner in schema.get("properties", {}).items()}
        if isinstance(schema.get("additionalProperties"), dict):
            shape.others = self.shape(schema["additionalProperties"])
        if "items" in schema:
            shape.items = self.shape(schema["items"])
        for arm in schema.get("anyOf", ()):
            shape = _merged(shape, self.shape(arm))
        return shape


def _check_of(schema: Schema) -> Callable[[str], object]:
    """Whether a string may stand where the schema says so."""
    if "const" in schema:
        return frozenset((schema["const"],)).__contains__
    if "enum" in schema:
        return frozenset(schema["enum"]).__contains__
    form = _FORMATS.get(schema.get("format", ""))
    longest: int | None = schema.get("maxLength")
    if form is None and longest is not None:
        return lambda text: len(text) <= longest
    return form.fullmatch if form is not None else lambda _: True


def _merged(first: _Shape, second: _Shape) -> _Shape:
    shape = _Shape()
    _add(shape, first)
    _add(shape, second)
    return shape


def _add(shape: _Shape, other: _Shape) -> None:
    """Makes the other one an alternative. What one of them calls sensitive is."""
    shape.is_sensitive |= other.is_sensitive
    shape.types |= other.types
    shape.texts += other.texts
    for name, inner in other.properties.items():
        shape.properties[name] = _merged(shape.properties[name], inner) if name in shape.properties else inner
    if other.others is not None:
        shape.others = other.others if shape.others is None else _merged(shape.others, other.others)
    if other.items is not None:
        shape.items = other.items if shape.items is None else _merged(shape.items, other.items)


class _Redaction:
    """One body. It ends soon after BYTES_MAX, so that a long body costs no more."""

    def __init__(self, hash_of: Hash) -> None:
        self._hash = hash_of
        self._bytes_left = BYTES_MAX

    def of(self, shape: _Shape, value: Any) -> Any:
        """The value as it is stored."""
        self._bytes_left -= 4
        if value is None:
            return None
        name = _NAMES[type(value)]
        if shape.is_sensitive or not (name in shape.types or (name == "integer" and "number" in shape.types)):
            return f"[redacted {name}]"
        if name == "string":
            self._bytes_left -= len(value)
            return value if any(holds(value) for holds in shape.texts) else "[redacted string]"
        if name == "array":
            return self._array(shape.items or _UNKNOWN, value)
        return self._object(shape, value) if name == "object" else value

    def _array(self, items: _Shape, values: list[Any]) -> list[Any]:
        redacted = []
        for value in values:
            if self._bytes_left < 0:
                break
            redacted.append(self.of(items, value))
        return redacted

    def _object(self, of_object: _Shape, values: dict[str, Any]) -> dict[str, Any]:
        redacted = {}
        for key, value in values.items():
            if self._bytes_left < 0:
                break
            self._bytes_left -= len(key)
            shape = of_object.properties.get(key, of_object.others)
            redacted[key if shape is not None else self._hash(key)] = self.of(shape or _UNKNOWN, value)
        return redacted
