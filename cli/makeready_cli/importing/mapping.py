"""A mapping: turns the rows of any CSV export into rows under the public field names.

`mapping_file` reads one from TOML; docs/imports.md has a complete example.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from makeready_cli.importing import values
from makeready_cli.importing.rows import Faulty

# What happens to a later row with the same external_id. reject: it is rejected. skip-identical: it is rejected unless
# it makes the same record. keep-first: it counts as unchanged, whatever its values.
REJECT, SKIP_IDENTICAL, KEEP_FIRST = DUPLICATES = ("reject", "skip-identical", "keep-first")


@dataclass(frozen=True, slots=True)
class Field:
    """The rule for making one public field."""

    name: str
    columns: tuple[str, ...]
    read: values.Read


@dataclass(frozen=True, slots=True)
class Only:
    """A filter on a column: rows whose value is not one of `values` are left out."""

    column: str
    clean: Callable[[str], str]
    values: frozenset[str]


@dataclass(frozen=True, slots=True)
class FileMapping:
    """A whole mapping. duplicates: one of DUPLICATES. file_name: the form of the file's name; its parts become columns
    of every row."""

    fields: tuple[Field, ...]
    ignore: tuple[str, ...]
    duplicates: str
    only: tuple[Only, ...] = ()
    file_name: values.FileName | None = None

    @property
    def columns(self) -> frozenset[str]:
        """The columns of the file that the mapping reads."""
        fields = frozenset(column for field in self.fields for column in field.columns)
        parts = () if self.file_name is None else self.file_name.parts
        return fields.union(one.column for one in self.only) - frozenset(parts)

    def ignores(self, column: str) -> bool:
        return any(re.fullmatch(re.escape(name).replace(r"\*", ".*"), column, re.DOTALL) for name in self.ignore)

    def takes(self, row: values.Columns) -> bool:
        """Whether the filters admit the row. Raises Faulty."""
        return all(one.clean(row[one.column]) in one.values for one in self.only)

    def row(self, row: values.Columns) -> dict[str, str]:
        """The row under its public names. Raises Faulty."""
        made = {}
        for field in self.fields:
            try:
                made[field.name] = field.read(row)
            except values.Unreadable as error:
                raise Faulty(field.name, str(error)) from None
        return made


class Texts(dict[str, str]):
    """A JSON object's members as CSV texts; a missing member is blank. Raises Faulty."""

    def __init__(self, source: Mapping[str, Any], parts: Mapping[str, str]) -> None:
        """parts: of the file's name."""
        super().__init__(parts)
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
