"""The schemas of feeds: an item of /changes/…, and a page of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gateway.http.filters import LIMIT_DEFAULT, LIMIT_MAX
from gateway.http.routes import CHANGES, OPERATIONS
from reference import deliveries, events
from reference.events import REF, Schema

Example = Callable[[str], Any]
EVENTS, REQUESTS = "/events", "/requests"
CURSOR = "1.AbCdEf0123456789_-AbCdEf0123456789_-AbCdEf0123456789_-"


def schemas(record_of: Mapping[str, str], entity_types: Mapping[str, str], example: Example) -> Schema:
    """All schemas of the routes below /changes, by name."""
    schemas_of_feeds: Schema = {}
    for operation in OPERATIONS:
        path = operation.route.path
        if operation.kind == "feed" and path.startswith(CHANGES):
            noun = path.removeprefix(CHANGES)
            record = record_of[noun]
            schemas_of_feeds[f"{record}Change"] = _change(record, entity_types[noun], example)
            schemas_of_feeds[f"{record}ChangePage"] = _page(f"{record}Change")
    return schemas_of_feeds


def change_example(record: str, entity_type: str, example: Example) -> Schema:
    """An item that has a record."""
    example_record = example(record)
    return {
        "schema_version": 1,
        "entity_type": entity_type,
        "entity_id": example_record["entity_id"],
        "gone": False,
        "record": example_record,
    }


def page_example(item: object) -> Schema:
    return {"data": [item], "next_cursor": None, "resume_cursor": CURSOR, "limit": LIMIT_DEFAULT}


def any_event() -> Schema:
    """An envelope."""
    return {"anyOf": [{"$ref": REF + deliveries.schema_name(event)} for event in events.EVENTS]}


def event_example(example: Example) -> Schema:
    first = events.EVENTS[0]
    return deliveries.example(first, example(first.data))


def event_page() -> Schema:
    """A page of events, with their numbers."""
    page = _page("")
    properties = page["properties"]
    data = {
        "description": "The envelopes, byte for byte as they are delivered, ascending by number; `[]` where there are "
        "none. Ignore events whose key you do not know.",
        "type": "array",
        "items": any_event(),
        "maxItems": LIMIT_MAX,
    }
    numbers = {
        "description": "The number of each event in `data`, in the same order.",
        "type": "array",
        "items": {"type": "integer", "format": "int64", "minimum": 1},
        "maxItems": LIMIT_MAX,
    }
    page["description"] = "One page of events."
    page["properties"] = {"data": data, "positions": numbers} | {
        name: property_schema for name, property_schema in properties.items() if name != "data"
    }
    page["required"] = list(page["properties"])
    return page


def request_page() -> Schema:
    page = _page("LoggedRequest")
    page["description"] = "One page of requests."
    page["properties"]["data"]["description"] = "In the order in which they were stored; `[]` where there are none."
    return page


def event_page_example(example: Example) -> Schema:
    page = page_example(event_example(example))
    return {"data": page["data"], "positions": [1042]} | page


def _change(record: str, entity_type: str, example: Example) -> Schema:
    properties: Schema = {
        "schema_version": {"description": "Always 1.", "type": "integer", "const": 1},
        "entity_type": {"description": "The kind of the record.", "type": "string", "const": entity_type},
        "entity_id": {"description": "The record's `entity_id`.", "type": "integer", "format": "int64"},
        "gone": {
            "description": "Whether the record can no longer be seen: its fetch answers 404. It comes again if it can "
            "be seen again.",
            "type": "boolean",
        },
        "record": {
            "description": "The record at its latest state, as its fetch returns it, to the byte; null if it is gone.",
            "anyOf": [{"$ref": REF + record}, {"type": "null"}],
        },
    }
    return {
        "description": "The latest state of a record that has changed.",
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "examples": [change_example(record, entity_type, example)],
    }


def _page(item: str) -> Schema:
    properties: Schema = {
        "data": {
            "description": "In the order of last change; `[]` where nothing has changed.",
            "type": "array",
            "items": {"$ref": REF + item},
            "maxItems": LIMIT_MAX,
        },
        "next_cursor": {
            "description": "The same as `resume_cursor` if more waits already; null if not.",
            "type": ["string", "null"],
        },
        "resume_cursor": {
            "description": "The `cursor` of the next request, now or later. Store it together with the page's data.",
            "type": "string",
        },
        "limit": {
            "description": f"The limit that was applied: the one asked for, {LIMIT_MAX} at most; {LIMIT_DEFAULT} if "
            "none was.",
            "type": "integer",
            "minimum": 1,
            "maximum": LIMIT_MAX,
        },
    }
    return {
        "description": "One page of changes.",
        "type": "object",
        "properties": properties,
        "required": list(properties),
    }
