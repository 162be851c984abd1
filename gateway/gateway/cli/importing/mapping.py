"""A mapping: how the rows of any CSV export become rows under the public field names.

`mapping_file` reads one from TOML; docs/imports.md shows one in full.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gateway.cli.importing import values
from gateway.cli.importing.rows import Faulty

# What becomes of a later row with the same external_id: it is rejected; unless it makes the same record; or it
# counts as unchanged whatever it says.
REJECT, SKIP_IDENTICAL, KEEP_FIRST = DUPLICATES = ("reject", "skip-identical", "keep-first")


@dataclass(frozen=True, slots=True)
class Field:
    """How one public field is made."""

    name: str
    columns: tuple[str, ...]
    read: values.Read

    def value(self, row: values.Columns) -> str:
        """Raises Faulty with the field's name."""
        try:
            return self.read(row)
        except values.Unreadable as error:
            raise Faulty(self.name, str(error)) from None


@dataclass(frozen=True, slots=True)
class FileMapping:
    """A whole mapping. duplicates: one of DUPLICATES."""

    fields: tuple[Field, ...]
    ignore: tuple[str, ...]
    duplicates: str

    @property
    def columns(self) -> frozenset[str]:
        """The columns that are read."""
        return frozenset(column for field in self.fields for column in field.columns)

    def ignores(self, column: str) -> bool:
        return any(re.fullmatch(re.escape(name).replace(r"\*", ".*"), column, re.DOTALL) for name in self.ignore)

    def row(self, source: Mapping[str, Any]) -> dict[str, str]:
        """The row under its public names. Columns that it lacks are blank. Raises Faulty."""
        columns = _Texts(source)
        return {field.name: field.value(columns) for field in self.fields}


class _Texts(dict[str, str]):
    """The columns of a row as text; values of JSON lines as a CSV would have them."""

    def __init__(self, source: Mapping[str, Any]) -> None:
        super().__init__()
        self._source = source

    def __missing__(self, column: str) -> str:
        value = self._source.get(column)
        self[column] = text = value if isinstance(value, str) else _text(value, column)
        return text


def _text(value: Any, column: str) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    raise Faulty(column, "holds an array or an object, of which a mapping makes nothing")
