"""Prints a response for a command without an answer of its own: a record, or a table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from makeready.common.v1.documents_pb2 import Document
from makeready_cli.output import Record, instant, labels, table

_CELL_POINTS_MAX = 60
_NEXT = "next_"


def record_of(message: Message) -> Record:
    """A response as `--json` prints it. A response with a single message becomes that message, and a document its
    record. An absent field with presence is null."""
    fields: Mapping[str, Any] = message.DESCRIPTOR.fields_by_name
    if isinstance(message, Document):
        record: Record = json.loads(message.json)
        return record
    if len(fields) == 1:
        ((name, field),) = fields.items()
        if field.message_type is not None and not field.is_repeated and field.message_type is not Timestamp.DESCRIPTOR:
            return record_of(getattr(message, name))
    return {name: _field_value(field, message, getattr(message, name)) for name, field in fields.items()}


def picked(message: Message, columns: str) -> Record:
    """Fields of a message as `record_of` has them, in the order of columns, which a space separates: `name`,
    `name=field` for a field of another name, and `name?` where an empty text or 0 is null. An enum's value that this
    release does not know is "unknown"."""
    fields: Mapping[str, Any] = message.DESCRIPTOR.fields_by_name
    record: Record = {}
    for column in columns.split():
        name, _, field_name = column.rstrip("?").partition("=")
        field = fields[field_name or name]
        value = _field_value(field, message, getattr(message, field.name))
        if value is None and field.enum_type is not None:
            value = "unknown"
        record[name] = None if column.endswith("?") and value in ("", 0) else value
    return record


def _field_value(field: FieldDescriptor, message: Message, value: Any) -> Any:
    if field.is_repeated:
        return [_item_value(field, item) for item in value]
    return None if field.has_presence and not message.HasField(field.name) else _item_value(field, value)


def _item_value(field: FieldDescriptor, value: Any) -> Any:
    if field.enum_type is not None:
        return labels(field.enum_type).get(value)
    if isinstance(value, Timestamp):
        return instant(value)
    if isinstance(value, bytes):  # a JSON object
        return json.loads(value)
    return record_of(value) if isinstance(value, Message) else value


def text_of(value: Record) -> str:
    """Text for a person: the rows of a list and how to list the next ones, else one line for each field."""
    lists = [name for name, rows in value.items() if isinstance(rows, list)]
    others = {name: content for name, content in value.items() if name not in lists}
    if len(lists) == 1 and all(name.startswith(_NEXT) for name in others):
        ((name, rows),) = ((name, value[name]) for name in lists)
        headers = list(rows[0]) if rows else []
        lines = [[cell(row[header]) for header in headers] for row in rows]
        text = table([header.upper() for header in headers], lines, f"No {name.replace('_', ' ')}.")
        more = (
            f"More with --{name.removeprefix(_NEXT).replace('_', '-')} {content}."
            for name, content in others.items()
            if content
        )
        return "\n".join((text, *more))
    return table(("FIELD", "VALUE"), [(name, cell(content)) for name, content in value.items()], "Done.")


def cell(value: Any) -> object:
    """A value in a table."""
    if isinstance(value, Mapping) and "name" in value:
        return value["name"]
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = json.dumps(value) if isinstance(value, (list, dict)) else value
    if isinstance(text, str) and len(text) > _CELL_POINTS_MAX:
        return text[: _CELL_POINTS_MAX - 1] + "…"
    return text
