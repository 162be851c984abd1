"""What the first rows of a file become, and what about them suggests that columns are matched wrongly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from importing.kinds import Kind
from importing.rows import Faulty, Source
from importing.shapes import Shape

RECORDS_MAX = 10
ROWS_MAX = 5000
"""So many rows of the file are looked at."""
ROWS_MIN = 5
"""Fewer rows may well have the same values."""
TEXT_MAX = 120
# By kind, the fields that together distinguish a record for a person.
_DISTINCT = {"properties": ("name",), "units": ("property", "name"), "staff": ("name",), "vendors": ("name",)}


@dataclass(slots=True)
class Warning:  # noqa: A001 - what a person is warned of
    """Why the columns may be matched wrongly. Of the rows looked at, `rows` have this value of the field: all of them,
    or more than one although it should distinguish records."""

    field: str
    value: str
    rows: int
    is_all: bool


@dataclass(slots=True)
class Preview:
    """Of one kind: its first records, as their values in the order of `fields`."""

    kind: str
    fields: list[str] = field(default_factory=list)
    records: list[list[str]] = field(default_factory=list)
    warnings: list[Warning] = field(default_factory=list)
    rows: int = 0
    """How many were looked at."""


def preview(kind: Kind, shape: Shape, source: Source) -> Preview:
    """Reads the beginning of a file. Raises ImportFault."""
    first: list[dict[str, str]] = []
    looked = 0
    counts: dict[str, Counter[str]] = {name: Counter() for name in kind.required if name != "external_id"}
    distinct: Counter[tuple[str, ...]] = Counter()
    names = _DISTINCT.get(kind.name, ())
    for row in source.rows():
        if row.fault is not None:
            continue
        try:
            if not shape.takes(row):
                continue
            values = _texts(shape.row(row)[1])
        except Faulty:
            continue
        if len(first) < RECORDS_MAX:
            first.append(values)
        for name, counter in counts.items():
            counter[values.get(name, "")] += 1
        if names:
            distinct[tuple(values.get(name, "") for name in names)] += 1
        looked += 1
        if looked == ROWS_MAX:
            break
    fields = [name for name in kind.fields if any(values.get(name) for values in first)]
    records = [[values.get(name, "")[:TEXT_MAX] for name in fields] for values in first]
    return Preview(kind.name, fields, records, list(_warnings(counts, distinct, looked)), looked)


def _warnings(counts: dict[str, Counter[str]], distinct: Counter[tuple[str, ...]], rows: int) -> Iterable[Warning]:
    if rows < ROWS_MIN:
        return
    same = set()
    for name, counter in counts.items():
        ((value, most),) = counter.most_common(1)
        if most == rows and value:
            same.add(name)
            yield Warning(name, value[:TEXT_MAX], rows, is_all=True)
    for values, most in distinct.most_common(1):
        if most > 1 and "name" not in same and values[-1]:
            yield Warning("name", values[-1][:TEXT_MAX], most, is_all=False)


def _texts(sent: bytes) -> dict[str, str]:
    """The fields of a row as texts, without those that are blank."""
    values = msgspec.json.decode(sent)
    return {
        name: value if isinstance(value, str) else msgspec.json.encode(value).decode()
        for name, value in values.items()
        if value is not None and value != ""
    }
