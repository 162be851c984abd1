"""Checks responses and deliveries against the document that the running system serves, more strictly than a client.

Clients must accept new fields and new enum values. Here, fields and values that the document lacks are errors.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from email.message import Message
from typing import Any

import jsonschema_rs

Schema = dict[str, Any]
# Headers of HTTP itself, in responses of all operations.
TRANSPORT = {"content-type", "content-length", "content-encoding", "transfer-encoding", "vary", "date", "connection"}
# Texts to print when the tests have passed, by title.
SUMMARIES: dict[str, str] = {}


class Contract:
    """An OpenAPI document to check against."""

    def __init__(self, document: Schema) -> None:
        self.document = document
        self._components = _closed(document["components"])
        self._paths = {tuple(path.split("/")): item for path, item in document["paths"].items()}
        self._validators: dict[str, jsonschema_rs.Draft202012Validator] = {}

    def check(self, method: str, path: str, status: int, headers: Message, body: bytes) -> None:
        """Raises AssertionError if the response is not documented. path: below the base URL, without query."""
        where = f"{method} {path}: {status} {body[:300]!r}"
        response = self._documented(method, path, status)
        assert response is not None, f"{where}: not documented"
        self._check_headers(response["headers"], headers, where)
        if method == "HEAD" or "content" not in response:
            assert not body, where
            return
        ((media_type, content),) = response["content"].items()
        assert headers.get_content_type() == media_type, where
        if media_type == "application/x-ndjson":
            assert not body or body.endswith(b"\n"), where
            found, schema = [json.loads(line) for line in body.splitlines()], content["schema"]["contentSchema"]
        else:
            found, schema = json.loads(body), content["schema"]
        self._check_body(schema, found, where)

    def check_delivery(self, body: bytes) -> None:
        """Raises AssertionError if a delivery's body is not documented."""
        found = json.loads(body)
        assert found.get("event") in self.document["webhooks"], f"no event: {body[:300]!r}"
        post = self.document["webhooks"][found["event"]]["post"]
        schema = post["requestBody"]["content"]["application/json"]["schema"]
        self._check_body(schema, found, f"delivery {body[:300]!r}")

    def codes(self) -> Iterator[tuple[int, str]]:
        """Every status and code that an operation may return."""
        for item in self.document["paths"].values():
            for operation in item.values():
                for status, response in operation["responses"].items():
                    if not status.startswith("2"):
                        schema = self._resolved(response)["content"]["application/json"]["schema"]
                        for code in schema["properties"]["error"]["properties"]["code"]["enum"]:
                            yield int(status), code

    def _documented(self, method: str, path: str, status: int) -> Schema | None:
        item = self._item(path)
        responses = self.document["components"]["responses"]
        if item is None:
            return dict(responses["NotFound"]) | {"headers": _uncounted(responses)} if status == 404 else None
        operation = item.get(method.lower())
        if operation is None:
            return dict(responses["MethodNotAllowed"]) if status == 405 else None
        response = operation["responses"].get(str(status))
        return None if response is None else self._resolved(response)

    def _item(self, path: str) -> Schema | None:
        given = tuple(path.split("/"))
        if given in self._paths:
            return dict(self._paths[given])
        for known, item in self._paths.items():
            if len(known) == len(given) and all(
                one == other or (one.startswith("{") and other) for one, other in zip(known, given, strict=True)
            ):
                return dict(item)
        return None

    def _resolved(self, found: Schema) -> Schema:
        """The schema behind a reference; keys next to `$ref` are ignored."""
        while "$ref" in found:
            here: Any = self.document
            for part in found["$ref"].removeprefix("#/").split("/"):
                here = here[part]
            found = here
        return found

    def _check_headers(self, documented: Mapping[str, Schema], headers: Message, where: str) -> None:
        known = {name.lower() for name in documented} | TRANSPORT
        unknown = {name.lower() for name in headers} - known
        assert not unknown, f"{where}: undocumented headers {unknown}"
        for name, reference in documented.items():
            header = self._resolved(reference)
            values = headers.get_all(name, [])
            assert len(values) <= 1 and (values or not header.get("required")), f"{where}: {name} {values}"
            for value in values:
                found: Any = int(value) if header["schema"]["type"] == "integer" else value
                assert self._validator(header["schema"]).is_valid(found), f"{where}: {name}: {value}"

    def _check_body(self, schema: Schema, found: Any, where: str) -> None:
        errors = [
            f"{list(error.instance_path)}: {error.message}" for error in self._validator(schema).iter_errors(found)
        ]
        assert not errors, f"{where}: {errors[:5]}"
        misplaced = list(self._misplaced(schema, found))
        assert not misplaced, f"{where}: keys in another order: {misplaced[:2]}"

    def _validator(self, schema: Schema) -> jsonschema_rs.Draft202012Validator:
        key = json.dumps(schema, sort_keys=True)
        validator = self._validators.get(key)
        if validator is None:
            whole = {"components": self._components, **_closed(schema)}
            validator = jsonschema_rs.Draft202012Validator(whole, validate_formats=True)
            self._validators[key] = validator
        return validator

    def _misplaced(self, schema: Schema, found: Any) -> Iterator[list[str]]:
        """Objects whose keys are not in the order of their schema."""
        if isinstance(found, list):
            for one in found:
                yield from self._misplaced(self._resolved(schema)["items"], one)
        elif isinstance(found, dict):
            arms = [arm for arm in schema.get("anyOf", [schema]) if arm != {"type": "null"}]
            fitting = arms if len(arms) == 1 else [arm for arm in arms if self._validator(arm).is_valid(found)]
            properties = self._resolved(fitting[0]).get("properties", {})
            if properties and list(found) != [name for name in properties if name in found]:
                yield list(found)
            for name, value in found.items():
                if isinstance(value, dict | list) and name in properties:
                    yield from self._misplaced(properties[name], value)


def _uncounted(responses: Schema) -> Schema:
    """The headers of a response for an unknown path, without those of the rate limit: no key was checked."""
    return {name: one for name, one in responses["NotFound"]["headers"].items() if not name.startswith("RateLimit")}


def _closed(found: Any) -> Any:
    """The same schemas, closed: no other values of an enum, no other keys of an object."""
    if isinstance(found, list):
        return [_closed(one) for one in found]
    if not isinstance(found, dict):
        return found
    closed = {name: _closed(one) for name, one in found.items()}
    if found.get("type") == "object" and isinstance(found.get("properties"), dict):
        closed.setdefault("additionalProperties", False)
    if isinstance(found.get("anyOf"), list) and len(found["anyOf"]) > 1:
        closed["anyOf"] = [arm for arm in closed["anyOf"] if arm != {"type": "string"}]
    return closed
