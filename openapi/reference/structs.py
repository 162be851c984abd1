"""msgspec Structs as JSON Schemas. The string below a field describes it; a field without one is refused.

A record's enums are open (a client must accept values that it does not know), a request's are closed.
"""

from __future__ import annotations

import ast
import datetime
import inspect
import re
import textwrap
import types
import typing
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec

from chassis.records.bodies import Between, Id, Text
from reference.events import Schema
from reference.words import AMENDED, PUBLIC_NAMES

REF = "#/$defs/"
# Instants cross the services as printed text, so their type alone does not identify them.
_INSTANT = re.compile(r"_at$|^period_(start|end)$")
# The descriptions of spec 2.1's fields, which every record has; a Struct's own words take precedence.
CONVENTIONS = {
    "schema_version": "Version of the shape: 1. New fields do not change it.",
    "entity_type": "What kind of record this is.",
    "entity_id": "The record's id, stable for its life; where the record can be fetched, the id in the path.",
    "external_id": "Your own identifier of the record, where it was synced from your system; else null.",
    "created_at": "When the record was created.",
    "updated_at": "When the record last changed.",
    "url": "Link that opens the record for a person.",
}


class Undescribed(Exception):  # noqa: N818 - says what is the matter
    """A Struct or field without words for its reader, or a type without a schema here."""


class Structs:
    """Schemas of Structs and of all Structs in them, by name."""

    def __init__(self) -> None:
        self.schemas: dict[str, Schema] = {}

    def record(self, kind: type[msgspec.Struct]) -> None:
        """Adds the schema of a response."""
        self._add(kind, closed=False)

    def body(self, kind: type[msgspec.Struct]) -> None:
        """Adds the schema of a request."""
        self._add(kind, closed=True)

    def _add(self, kind: type[msgspec.Struct], *, closed: bool) -> None:
        name = _public(kind.__name__)
        existing = self.schemas.get(name)
        self.schemas.setdefault(name, {})  # takes its place before its inner Structs; a Struct may contain itself
        words = words_of(kind)
        hints = typing.get_type_hints(kind, include_extras=True)
        schema: Schema = {"description": _described(kind), "type": "object", "properties": {}, "required": []}
        for field in msgspec.structs.fields(kind):
            hint = hints[field.name]
            optional = msgspec.UnsetType in typing.get_args(hint)
            if field.name not in words and field.name not in CONVENTIONS:
                raise Undescribed(f"{kind.__module__}.{name}.{field.name} has no string below it that says what it is")
            described = words.get(field.name) or CONVENTIONS[field.name]
            shape = self._schema(hint, field.encode_name, f"{kind.__name__}{_pascal(field.encode_name)}", closed=closed)
            amended = AMENDED.get(f"{name}.{field.encode_name}")
            schema["properties"][field.encode_name] = {"description": described, **(amended or shape)}
            # A record has every field, with null for no value; a body may omit a field that has a default, but not one
            # whose amended schema has no null: its default only lets the service refuse it with a code of its own.
            is_needed = amended is not None and "null" not in amended["type"]
            if not optional and (field.required or is_needed or not closed):
                schema["required"].append(field.encode_name)
        if closed:
            schema["additionalProperties"] = False
        if existing and existing != schema:
            raise Undescribed(f"two Structs named {name} differ: give both the same fields and words, or other names")
        self.schemas[name] = schema

    def _schema(self, hint: Any, field: str, name: str, *, closed: bool) -> Schema:
        origin, arms = typing.get_origin(hint), typing.get_args(hint)
        if origin in (typing.Union, types.UnionType):
            inner = [arm for arm in arms if arm not in (type(None), msgspec.UnsetType)]
            if len(inner) != 1:
                raise Undescribed(f"{name}: a union of several types has no schema here")
            schema = self._schema(inner[0], field, name, closed=closed)
            return _nullable(schema) if type(None) in arms else schema
        if origin is Annotated:
            schema = self._schema(arms[0], field, name, closed=closed)
            for marker in arms[1:]:
                schema |= _bounds(marker, is_array=schema.get("type") == "array")
            return schema
        if origin is Literal:
            return self._enum(arms, name, closed=closed)
        if origin in (list, Sequence, dict):
            inside = self._schema(arms[-1], field, name, closed=closed)
            is_map = origin is dict
            return {"type": "object", "additionalProperties": inside} if is_map else {"type": "array", "items": inside}
        if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
            self._add(hint, closed=closed)
            return {"$ref": REF + _public(hint.__name__)}
        plain: dict[object, Schema] = {
            int: {"type": "integer", "format": "int64"},
            float: {"type": "number", "format": "double"},
            bool: {"type": "boolean"},
            datetime.date: {"type": "string", "format": "date"},
            datetime.datetime: {"type": "string", "format": "date-time"},
            str: {"type": "string"} | _format(field),
        }
        if hint not in plain:
            raise Undescribed(f"{name}: {hint} has no schema here")
        return plain[hint]

    def _enum(self, values: tuple[object, ...], name: str, *, closed: bool) -> Schema:
        if len(values) == 1:
            return {"type": "integer" if isinstance(values[0], int) else "string", "const": values[0]}
        same_enums = [
            name_of_enum for name_of_enum, schema in self.schemas.items() if schema.get("enum") == list(values)
        ]
        name = same_enums[0] if same_enums else _public(name)
        self.schemas[name] = {"type": "string", "enum": list(values)}
        return {"$ref": REF + name} if closed else {"anyOf": [{"$ref": REF + name}, {"type": "string"}]}


def words_of(kind: type[msgspec.Struct]) -> dict[str, str]:
    """The string below each field, including those of its base classes."""
    words: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if base is msgspec.Struct or not issubclass(base, msgspec.Struct):
            continue
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        assert isinstance(tree, ast.ClassDef)
        for field, below in zip(tree.body, tree.body[1:], strict=False):
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(below, ast.Expr)
                and isinstance(below.value, ast.Constant)
                and isinstance(below.value.value, str)
            ):
                words[field.target.id] = " ".join(below.value.value.split())
    return words


def _described(kind: type[msgspec.Struct]) -> str:
    first = (inspect.getdoc(kind) or "").partition("\n\n")[0]
    if not first or kind.__doc__ == msgspec.Struct.__doc__:
        raise Undescribed(f"{kind.__module__}.{kind.__name__} has no docstring")
    if re.search(r"\bspec\b", first):
        raise Undescribed(f"{kind.__module__}.{kind.__name__}: its docstring is published, and readers have no spec")
    return " ".join(first.split())


def _public(name: str) -> str:
    return PUBLIC_NAMES.get(name, name)


def _pascal(field: str) -> str:
    return "".join(word.title() for word in field.split("_"))


def _format(field: str) -> Schema:
    if _INSTANT.search(field):
        return {"format": "date-time"}
    return {"format": "uri"} if field == "url" else {}


def _nullable(schema: Schema) -> Schema:
    if "anyOf" in schema:
        return {"anyOf": [*schema["anyOf"], {"type": "null"}]}
    if "$ref" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    return schema | {"type": [schema["type"], "null"]}


def _bounds(marker: object, *, is_array: bool) -> Schema:
    if isinstance(marker, Text):
        # A text that must not be blank has a character that is not white space.
        return {"maxLength": marker.longest} | ({} if marker.blank else {"minLength": 1, "pattern": r"\S"})
    if isinstance(marker, Between):
        if is_array:
            return {"minItems": marker.lowest, "maxItems": marker.highest}
        return {"minimum": marker.lowest, "maximum": marker.highest}
    if isinstance(marker, Id):
        return {"minimum": 1}
    if isinstance(marker, msgspec.Meta):
        return dict(marker.extra_json_schema or {})
    return {}
