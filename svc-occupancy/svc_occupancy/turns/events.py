"""Parts of the public events about turns."""

from __future__ import annotations

from typing import Any

from chassis.records.shapes import encode


def change(field: str, before: Any, after: Any) -> bytes:
    """The `change` of an event (spec 6.1)."""
    return encode({"field": field, "from": before, "to": after})
