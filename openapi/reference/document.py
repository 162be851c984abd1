"""The whole document, made from the route table, the records next to the protos, and the words."""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path
from typing import Any

from gateway.http.filters import LIMIT_DEFAULT, LIMIT_MAX
from gateway.http.reference import BASE_URL
from gateway.http.routes import OPERATIONS
from reference import clients, deliveries, events, feeds, samples
from reference.errors import ERRORS
from reference.events import Schema
from reference.operations import path_item
from reference.records import CONTEXTS
from reference.responses import HEADERS
from reference.words import ENTITY_TYPES, INTRODUCTION, TAGS, TITLE

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "openapi" / "examples"
CHANGES = ROOT / "docs" / "changes.md"
_FOR_EXAMPLE = re.compile(r"\bfor example ([^;,]+?)(?:[;,]|\.?$)")


def records_file(context: str) -> Path:
    """The committed file of a context's records."""
    return ROOT / "proto" / "makeready" / context / "v1" / "records.json"


def made() -> Schema:
    """The document. Raises ValueError with the name of anything that is missing."""
    schemas = _schemas()
    record_of = _record_of(schemas)
    example = functools.partial(_example, schemas)
    paths: Schema = {}
    shared: Schema = {}
    for operation in OPERATIONS:
        item = paths.setdefault(operation.route.path, {})
        item[operation.route.method.lower()] = path_item(operation, record_of, example, shared)
    pages = {f"{record}Page": _page(record) for record in _listed(record_of)}
    schemas |= (
        pages
        | {"Error": _error()}
        | {deliveries.schema_name(event): deliveries.envelope(event) for event in events.EVENTS}
    )
    for name in schemas:
        if "entity_type" in schemas[name].get("properties", {}):
            schemas[name]["examples"] = [example(name)]
    schemas |= feeds.schemas(record_of, ENTITY_TYPES, example)
    schemas["EventPage"] = feeds.event_page()
    schemas["LoggedRequestPage"] = feeds.request_page()
    document: Schema = {
        "openapi": "3.1.0",
        "info": {"title": TITLE, "version": _version(), "description": _introduction(schemas)},
        "servers": [{"url": BASE_URL, "description": "This installation"}],
        "security": [{"bearer": []}],
        "tags": [{"name": name, "description": TAGS[name]} for name in TAGS if _is_used(name, paths)]
        + [
            {
                "name": "Events",
                "description": "Signed deliveries to the subscriptions.",
            }
        ],
        "paths": paths,
        "webhooks": {event.key: deliveries.webhook(event, example(event.data)) for event in events.EVENTS},
        "components": {
            "schemas": dict(sorted(schemas.items())),
            "responses": dict(sorted(shared.items())),
            "headers": HEADERS,
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An API key of the company. An operation's `security` names the scope that opens "
                    "it; `write` opens whatever the other two do.",
                }
            },
        },
    }
    samples.add(document, clients.described(document))
    return document


def _introduction(schemas: Schema) -> str:
    types = sorted({entity_type for schema in schemas.values() if (entity_type := _entity_type(schema))})
    return INTRODUCTION.replace("{entity_types}", ", ".join(f"`{entity_type}`" for entity_type in types))


def _entity_type(schema: Schema) -> str:
    """Of the record that a schema describes; empty if it describes none."""
    entity_type: str = schema.get("properties", {}).get("entity_type", {}).get("const", "")
    return entity_type


def _schemas() -> Schema:
    """Every public schema by name, of all contexts; two of the same name must be equal."""
    schemas: Schema = {}
    for context in CONTEXTS:
        file = records_file(context)
        shapes = json.loads(file.read_text().replace('"#/$defs/', f'"{events.REF}')) if file.exists() else {"$defs": {}}
        for name, shape in shapes["$defs"].items():
            if schemas.setdefault(name, shape) != shape:
                raise ValueError(f"{file.relative_to(ROOT)}: {name} differs from the one of another context")
    return schemas | events.INLINE


def _record_of(schemas: Schema) -> dict[str, str]:
    """The name of the record for each entity_type."""
    names: dict[str, str] = {}
    for name, schema in schemas.items():
        if entity_type := _entity_type(schema):
            names.setdefault(entity_type, name)
    return {noun: names[entity_type] for noun, entity_type in ENTITY_TYPES.items() if entity_type in names}


def _listed(record_of: dict[str, str]) -> list[str]:
    nouns = [operation.route.path.rpartition("/")[2] for operation in OPERATIONS if operation.kind == "list"]
    missing = [noun for noun in nouns if noun not in record_of]
    if missing:
        raise ValueError(f"no record's entity_type is a Literal that says what these lists hold: {', '.join(missing)}")
    return [record_of[noun] for noun in nouns]


def _page(record: str) -> Schema:
    return {
        "description": "One page of a list.",
        "type": "object",
        "properties": {
            "data": {
                "description": "The records, ascending by id; `[]` where there are none.",
                "type": "array",
                "items": {"$ref": events.REF + record},
                "maxItems": LIMIT_MAX,
            },
            "next_cursor": {
                "description": "The `cursor` of the next page; null at the end.",
                "type": ["string", "null"],
            },
            "limit": {
                "description": f"The limit that was applied: the one asked for, {LIMIT_MAX} at most; "
                f"{LIMIT_DEFAULT} if none was.",
                "type": "integer",
                "minimum": 1,
                "maximum": LIMIT_MAX,
            },
        },
        "required": ["data", "next_cursor", "limit"],
    }


def _error() -> Schema:
    return {
        # The name of the class in generated clients: one of the name of its field `error` does not type-check.
        "title": "ErrorAnswer",
        "description": "What every failure answers.",
        "type": "object",
        "properties": {
            "error": {
                "description": "What went wrong.",
                "type": "object",
                "properties": {
                    "code": {
                        "description": "Stable; branch on it.",
                        "type": "string",
                        "examples": list(ERRORS),
                    },
                    "message": {
                        "description": "One sentence that names cause and remedy. It may be reworded: do not parse it.",
                        "type": "string",
                    },
                },
                "required": ["code", "message"],
            }
        },
        "required": ["error"],
    }


def _example(schemas: Schema, record: str) -> Any:
    """The example of a record or body. A required field that its file lacks has the value that the field's description
    names: "for example Kitchen". Raises ValueError if there is none."""
    file = EXAMPLES / f"{record}.json"
    if not file.exists():
        raise ValueError(f"{file.relative_to(ROOT)} is missing: write an example that shows the record")
    written = json.loads(file.read_text())
    schema = schemas.get(record, {})
    lacking = [name for name in schema.get("required", ()) if name not in written]
    if not lacking:
        return written
    for name in lacking:
        field = schema["properties"][name]
        phrase = _FOR_EXAMPLE.search(field["description"])
        if phrase is None:
            raise ValueError(
                f"{file.relative_to(ROOT)} lacks {name}: add it, or let the string below the Struct's field name "
                'a value: "…, for example Kitchen."'
            )
        is_text = "string" in field.get("type", "string")
        written[name] = phrase[1] if is_text else json.loads(phrase[1])
    return {name: written[name] for name in schema["properties"] if name in written}


def _version() -> str:
    """The contract's version: the date of its last change."""
    version = re.search(r"^## (\d{4}-\d\d-\d\d)", CHANGES.read_text(), re.MULTILINE)
    if version is None:
        raise ValueError(f"{CHANGES.relative_to(ROOT)} names no date")
    return version[1]


def _is_used(tag: str, paths: Schema) -> bool:
    return any(tag in operation["tags"] for item in paths.values() for operation in item.values())
