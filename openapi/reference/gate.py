"""The additive-only gate: the new document must keep every promise of the released one.

A response may gain fields, and a field of it may stop being nullable; a request may gain optional fields. Every change
that could break a working integration is a problem; `docs/changes.md` says how to make such a change.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reference.events import Schema

# Lower and upper bounds of a request's values.
_LOWER = ("minimum", "minLength", "minItems")
_UPPER = ("maximum", "maxLength", "maxItems")
_WORDS = ("description", "summary", "example", "examples", "x-sensitive")


def bare(node: Any) -> Any:
    """The document without its words, marks and examples, as a release stores it."""
    if isinstance(node, list):
        return [bare(item) for item in node]
    if not isinstance(node, dict):
        return node
    # A field may also have such a name; its value is then a schema.
    return {name: bare(item) for name, item in node.items() if name not in _WORDS or _is_schema(item)}


def _is_schema(node: object) -> bool:
    return isinstance(node, dict) and bool({"type", "$ref", "anyOf"} & set(node))


def problems(released: Schema, current: Schema) -> list[str]:
    """The changes that break clients of the released document, one sentence each."""
    return list(_Gate(released, current).problems())


class _Gate:
    def __init__(self, released: Schema, current: Schema) -> None:
        self._released = released
        self._current = current
        self._seen: set[tuple[str, str, str]] = set()

    def problems(self) -> Iterator[str]:
        for name in self._released["components"]["schemas"]:
            if name not in self._current["components"]["schemas"]:
                yield f"{name}: removed; generated clients bear its name"
        for path, item in self._released["paths"].items():
            for verb, old in item.items():
                where = f"{verb.upper()} {path}"
                new = self._current["paths"].get(path, {}).get(verb)
                if new is None:
                    yield f"{where}: removed"
                else:
                    yield from self._operation(where, old, new)
        for key, item in self._released["webhooks"].items():
            if key not in self._current["webhooks"]:
                yield f"event {key}: removed"
                continue
            old, new = (_body(webhook["post"]["requestBody"]) for webhook in (item, self._current["webhooks"][key]))
            yield from self._answered(f"event {key}", old, new)

    def _operation(self, where: str, old: Schema, new: Schema) -> Iterator[str]:
        if old["operationId"] != new["operationId"]:
            yield f"{where}: its operationId changed; generated clients bear it"
        if old.get("security") != new.get("security"):
            yield f"{where}: another key opens it"
        yield from self._parameters(where, old.get("parameters", []), new.get("parameters", []))
        if "requestBody" in new:
            if "requestBody" not in old:
                yield f"{where}: it asks for a body"
            else:
                yield from self._asked(f"{where} body", _body(old["requestBody"]), _body(new["requestBody"]))
        elif "requestBody" in old:
            yield f"{where}: it takes no body any more"
        for status, response in old["responses"].items():
            if status.startswith("2"):
                if status not in new["responses"]:
                    yield f"{where}: {status} removed"
                else:
                    yield from self._response(f"{where} {status}", response, new["responses"][status])

    def _parameters(self, where: str, old: list[Schema], new: list[Schema]) -> Iterator[str]:
        old_by_place = {(parameter["in"], parameter["name"]): parameter for parameter in old}
        now = {(parameter["in"], parameter["name"]): parameter for parameter in new}
        for place, old_parameter in old_by_place.items():
            if place not in now:
                yield f"{where}: parameter {place[1]} removed"
            else:
                yield from self._asked(f"{where} {place[1]}", old_parameter["schema"], now[place]["schema"])
        for place, new_parameter in now.items():
            if new_parameter.get("required") and not old_by_place.get(place, {}).get("required"):
                yield f"{where}: parameter {place[1]} is newly required"

    def _response(self, where: str, old: Schema, new: Schema) -> Iterator[str]:
        for name in old["headers"]:
            if name not in new["headers"]:
                yield f"{where}: header {name} removed"
        if ("content" in old) != ("content" in new):
            yield f"{where}: it has a body now, or none any more"
        elif old.get("content", {}).keys() != new.get("content", {}).keys():
            yield f"{where}: its body has another media type"
        elif "content" in old:
            yield from self._answered(where, _body(old), _body(new))

    def _answered(self, where: str, old: Schema, new: Schema) -> Iterator[str]:
        """Compares a schema that callers receive."""
        if self._is_known("answered", old, new):
            return
        before, now = self._arms(self._released, old), self._arms(self._current, new)
        if "null" in _types(now) - _types(before):
            yield f"{where}: newly nullable"
        remaining = _types(now) - {"null"}
        if not remaining <= _types(before) or not (remaining or _types(before) == {"null"}):
            yield f"{where}: retyped from {_listed(before)} to {_listed(now)}"
            return
        for word in ("format", "const"):
            # A text with one value may get others: callers ignore values that they do not know (docs/changes.md).
            was = _word(before, word)
            is_among = word == "const" and isinstance(was, str) and any(was in arm.get("enum", ()) for arm in now)
            if was != _word(now, word) and not is_among:
                yield f"{where}: retyped, another {word}"
        fields, required = _fields(before)
        fields_now, required_now = _fields(now)
        for name, schema in fields.items():
            if name not in fields_now:
                yield f"{where}.{name}: removed"
                continue
            if name in required and name not in required_now:
                yield f"{where}.{name}: may be absent now"
            yield from self._answered(f"{where}.{name}", schema, fields_now[name])
        for item_before, other in zip(_items(before), _items(now), strict=True):
            yield from self._answered(f"{where}[]", item_before, other)

    def _asked(self, where: str, old: Schema, new: Schema) -> Iterator[str]:
        """Compares a schema that callers send."""
        if self._is_known("asked", old, new):
            return
        before, now = self._arms(self._released, old), self._arms(self._current, new)
        if not _types(before) <= _types(now):
            yield f"{where}: retyped from {_listed(before)} to {_listed(now)}"
            return
        for word in ("format", "pattern", "const"):
            if _word(now, word) not in (None, _word(before, word)):
                yield f"{where}: another {word}"
        values, values_now = _word(before, "enum"), _word(now, "enum")
        if values_now is not None and (values is None or not set(values) <= set(values_now)):
            yield f"{where}: values of its enum removed"
        for word in (*_LOWER, *_UPPER):
            bound, bound_now = _word(before, word), _word(now, word)
            if bound_now is not None and (
                bound is None or (bound_now > bound if word in _LOWER else bound_now < bound)
            ):
                yield f"{where}: a tighter {word}"
        fields, required = _fields(before)
        fields_now, required_now = _fields(now)
        for name, schema in fields.items():
            if name not in fields_now:
                yield f"{where}.{name}: removed"
            else:
                yield from self._asked(f"{where}.{name}", schema, fields_now[name])
        for name in sorted(required_now - required):
            yield f"{where}.{name}: newly required"
        for item_before, other in zip(_items(before), _items(now), strict=True):
            yield from self._asked(f"{where}[]", item_before, other)

    def _is_known(self, direction: str, old: Schema, new: Schema) -> bool:
        """Whether the same two named schemas were compared before: each is reported once, and may contain itself."""
        if "$ref" not in old or "$ref" not in new:
            return False
        pair = (direction, old["$ref"], new["$ref"])
        is_seen = pair in self._seen
        self._seen.add(pair)
        return is_seen

    def _arms(self, document: Schema, schema: Schema) -> list[Schema]:
        """The alternatives of a schema, of which a value must match one, with references resolved."""
        if "anyOf" in schema:
            return [arm for option in schema["anyOf"] for arm in self._arms(document, option)]
        if "$ref" in schema:
            return self._arms(document, document["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
        return [schema]


def _body(body: Schema) -> Schema:
    (content,) = body["content"].values()
    schema: Schema = content["schema"]
    return schema


def _types(arms: list[Schema]) -> set[str]:
    return {
        type_name for arm in arms for type_name in (arm["type"] if isinstance(arm["type"], list) else [arm["type"]])
    }


def _listed(arms: list[Schema]) -> str:
    return " or ".join(sorted(_types(arms)))


def _word(arms: list[Schema], word: str) -> Any:
    """The keyword's value in the only alternative that is not null; None if that lacks it or there are several."""
    values = [arm.get(word) for arm in arms if arm["type"] != "null"]
    return values[0] if len(values) == 1 else None


def _fields(arms: list[Schema]) -> tuple[Schema, set[str]]:
    """Properties and which of them are required."""
    for arm in arms:
        if "properties" in arm:
            return arm["properties"], set(arm.get("required", ()))
    return {}, set()


def _items(arms: list[Schema]) -> list[Schema]:
    return [arm["items"] for arm in arms if "items" in arm][:1]
