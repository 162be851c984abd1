"""Checks responses and deliveries against the document that the running system serves, more strictly than a client.

Clients must accept new fields and new enum values. Here, fields and values that the document lacks are errors.
"""

from __future__ import annotations

import hashlib
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
        self._sound: set[tuple[int, bytes]] = set()
        """The schema and the digest of each body that was checked: tests look at the same lists again and again."""

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
        if (checked := (id(content), hashlib.blake2b(body).digest())) in self._sound:
            return
        if media_type == "application/x-ndjson":
            assert not body or body.endswith(b"\n"), where
            document, schema = [json.loads(line) for line in body.splitlines()], content["schema"]["contentSchema"]
        else:
            document, schema = json.loads(body), content["schema"]
        self._check_body(schema, document, where)
        self._sound.add(checked)

    def check_delivery(self, body: bytes) -> None:
        """Raises AssertionError if a delivery's body is not documented."""
        document = json.loads(body)
        assert document.get("event") in self.document["webhooks"], f"no event: {body[:300]!r}"
        post = self.document["webhooks"][document["event"]]["post"]
        schema = post["requestBody"]["content"]["application/json"]["schema"]
        self._check_body(schema, document, f"delivery {body[:300]!r}")

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
        segments = tuple(path.split("/"))
        if segments in self._paths:
            return dict(self._paths[segments])
        for template, item in self._paths.items():
            if len(template) == len(segments) and all(
                expected == other or (expected.startswith("{") and other)
                for expected, other in zip(template, segments, strict=True)
            ):
                return dict(item)
        return None

    def _resolved(self, schema: Schema) -> Schema:
        """The schema behind a reference; keys next to `$ref` are ignored."""
        while "$ref" in schema:
            here: Any = self.document
            for part in schema["$ref"].removeprefix("#/").split("/"):
                here = here[part]
            schema = here
        return schema

    def _check_headers(self, documented: Mapping[str, Schema], headers: Message, where: str) -> None:
        documented_names = {name.lower() for name in documented} | TRANSPORT
        unknown = {name.lower() for name in headers} - documented_names
        assert not unknown, f"{where}: undocumented headers {unknown}"
        for name, reference in documented.items():
            header = self._resolved(reference)
            values = headers.get_all(name, [])
            assert len(values) <= 1 and (values or not header.get("required")), f"{where}: {name} {values}"
            for value in values:
                parsed: Any = int(value) if header["schema"]["type"] == "integer" else value
                assert self._validator(header["schema"]).is_valid(parsed), f"{where}: {name}: {value}"

    def _check_body(self, schema: Schema, value: Any, where: str) -> None:
        errors = [
            f"{list(error.instance_path)}: {error.message}" for error in self._validator(schema).iter_errors(value)
        ]
        assert not errors, f"{where}: {errors[:5]}"
        misplaced = list(self._misplaced(schema, value))
        assert not misplaced, f"{where}: keys in another order: {misplaced[:2]}"

    def _validator(self, schema: Schema) -> jsonschema_rs.Draft202012Validator:
        key = json.dumps(schema, sort_keys=True)
        validator = self._validators.get(key)
        if validator is None:
            whole = {"components": self._components, **_closed(schema)}
            validator = jsonschema_rs.Draft202012Validator(whole, validate_formats=True)
            self._validators[key] = validator
        return validator

    def _misplaced(self, schema: Schema, document: Any) -> Iterator[list[str]]:
        """Objects whose keys are not in the order of their schema."""
        if isinstance(document, list):
            for item in document:
                yield from self._misplaced(self._resolved(schema)["items"], item)
        elif isinstance(document, dict):
            arms = [arm for arm in schema.get("anyOf", [schema]) if arm != {"type": "null"}]
            fitting = arms if len(arms) == 1 else [arm for arm in arms if self._validator(arm).is_valid(document)]
            properties = self._resolved(fitting[0]).get("properties", {})
            if properties and list(document) != [name for name in properties if name in document]:
                yield list(document)
            for name, value in document.items():
                if isinstance(value, dict | list) and name in properties:
                    yield from self._misplaced(properties[name], value)


def _uncounted(responses: Schema) -> Schema:
    """The headers of a response for an unknown path, without those of the rate limit: no key was checked."""
    return {
        name: header for name, header in responses["NotFound"]["headers"].items() if not name.startswith("RateLimit")
    }


def _closed(schema: Any) -> Any:
    """The same schemas, closed: no other values of an enum, no other keys of an object."""
    if isinstance(schema, list):
        return [_closed(member) for member in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: _closed(member) for name, member in schema.items()}
    if schema.get("type") == "object" and isinstance(schema.get("properties"), dict):
        closed.setdefault("additionalProperties", False)
    if isinstance(schema.get("anyOf"), list) and len(schema["anyOf"]) > 1:
        closed["anyOf"] = [arm for arm in closed["anyOf"] if arm != {"type": "string"}]
    return closed
