"""A mapping: turns the rows of any export into rows under the public field names.

`mapping_file` reads one from TOML; docs/imports.md has a complete example.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from importing import values
from importing.conditions import Condition
from importing.rows import Faulty

# What happens to a later row with the same external_id. reject: it is rejected. skip-identical: it is rejected unless
# it makes the same record. keep-first: it counts as unchanged, whatever its values.
REJECT, SKIP_IDENTICAL, KEEP_FIRST = DUPLICATES = ("reject", "skip-identical", "keep-first")


@dataclass(frozen=True, slots=True)
class Field:
    """The rule for making one public field. Its text comes from `columns`; it also looks at `others`."""

    name: str
    columns: tuple[str, ...]
    read: values.Read
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FileMapping:
    """A mapping to one kind of record. A row is imported if all conditions of `only` hold for it and none of `skip`.
    `duplicates` is one of DUPLICATES. The parts of `file_name`, the form of the file's name, become columns of every
    row; so does the row's number, as the column `row_number`. `columns_of_others` are the columns that other kinds of
    record of the same mapping read."""

    fields: tuple[Field, ...]
    ignore: tuple[str, ...]
    duplicates: str
    only: tuple[Condition, ...] = ()
    file_name: values.FileName | None = None
    skip: tuple[Condition, ...] = ()
    row_number: str = ""
    columns_of_others: frozenset[str] = frozenset()

    @property
    def columns(self) -> frozenset[str]:
        """The columns of the file that the mapping reads."""
        fields = frozenset(column for field in self.fields for column in (*field.columns, *field.others))
        parts = () if self.file_name is None else self.file_name.parts
        return fields.union(condition.column for condition in (*self.only, *self.skip)) - {*parts, self.row_number}

    def origin(self, field: str) -> tuple[str, ...]:
        """The columns that a field's text comes from."""
        return next((rule.columns for rule in self.fields if rule.name == field), ())

    def ignores(self, column: str) -> bool:
        return any(_is_like(name, column) for name in self.ignore)

    def takes(self, row: values.Columns) -> bool:
        """Whether the row is imported. Raises Faulty."""
        return all(condition.holds(row) for condition in self.only) and not any(
            condition.holds(row) for condition in self.skip
        )

    def row(self, row: values.Columns) -> dict[str, str]:
        """The row under its public names. Raises Faulty."""
        texts = {}
        for field in self.fields:
            try:
                texts[field.name] = field.read(row)
            except values.Unreadable as error:
                faulty = Faulty(field.name, str(error), error.cause, error.text)
                faulty.fault = replace(faulty.fault, columns=field.columns)
                raise faulty from None
        return texts


class Texts(dict[str, str]):
    """A JSON object's members as CSV texts; a missing member is blank. Raises Faulty."""

    def __init__(self, source: Mapping[str, object], parts: Mapping[str, str]) -> None:
        """`parts` are those of the file's name."""
        super().__init__(parts)
        self._source = source

    def __missing__(self, column: str) -> str:
        value = self._source.get(column)
        self[column] = text = value if isinstance(value, str) else _text(value, column)
        return text


def _is_like(form: str, name: str) -> bool:
    """Whether a name has the form, in which * stands for any text."""
    first, *pieces = form.split("*")
    if not pieces:
        return name == form
    place, end = len(first), len(name) - len(pieces[-1])
    if place > end or not name.startswith(first) or not name.endswith(pieces[-1]):
        return False
    for piece in pieces[:-1]:
        place = name.find(piece, place, end) + len(piece)
        if place < len(piece):
            return False
    return True


def _text(value: object, column: str) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    raise Faulty(column, "holds an array or an object, of which a mapping makes nothing")
