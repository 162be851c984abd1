"""The name of the record that an event is about, as the event's body has it. Pure."""

import json
from typing import Any

BODY_BYTES_MAX = 64 * 1024
"""A longer body is not read for a list."""
CHARACTERS_MAX = 200


def about(event: str, body: bytes) -> str:
    """For example "#28 No hot water"; empty if the body has no name. `event` is the event's key."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    data = document.get("data") if isinstance(document, dict) else None
    return _name(event, data)[:CHARACTERS_MAX] if isinstance(data, dict) else ""


def _name(event: str, data: dict[str, Any]) -> str:
    if event.startswith("ticket."):
        return _numbered(data.get("ticket_number"), data.get("title"))
    if event.startswith("inspection."):
        return _numbered(data.get("inspection_number"), data.get("title"))
    if event == "turn.task.stale":
        return ": ".join(part for part in (_text(data.get("unit")), _text(data.get("task_type"))) if part)
    if event.startswith("turn."):
        return _text(data.get("unit"))
    if event == "pm.stale":
        return _text(data.get("task_name"))
    return _text(data.get("subject") or data.get("name"))


def _numbered(number: object, title: object) -> str:
    """ "#28 No hot water"; the title alone of a record that has no number."""
    return f"#{number} {_text(title)}".strip() if isinstance(number, int) else _text(title)


def _text(value: object) -> str:
    """A text, or the name of an object that has one."""
    if isinstance(value, dict):
        value = value.get("name")
    return value if isinstance(value, str) else ""
