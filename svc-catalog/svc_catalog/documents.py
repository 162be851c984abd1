"""Records as the public API serves them: JSON, with the record's id and version beside it."""

from __future__ import annotations

from typing import Any

import msgspec
from asyncpg import Record

from makeready.common.v1.documents_pb2 import Document

encode = msgspec.json.Encoder().encode

Row = Record | tuple[Any, ...]


def document(record: Any, row: Record) -> Document:
    """Every served row ends with the record's version."""
    return Document(json=encode(record), entity_id=record.entity_id, version=row[-1])
