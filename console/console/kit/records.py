"""Records as the services' documents have them: JSON, by field."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from makeready.common.v1 import documents_pb2

Record = Mapping[str, Any]


def record_of(document: documents_pb2.Document) -> Record:
    """The record of a fetch."""
    record: Record = json.loads(document.json)
    return record
