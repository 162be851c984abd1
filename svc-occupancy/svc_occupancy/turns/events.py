"""Parts of the public events about turns."""

from __future__ import annotations

from chassis.records.shapes import encode


def change(field: str, before: object, after: object) -> bytes:
    """The `change` of an event (spec 6.1)."""
    return encode({"field": field, "from": before, "to": after})
