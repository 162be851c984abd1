"""Turns a row of the file into the row to send: unchanged, or through a mapping."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from importing import values
from importing.csv_source import duplicates, named
from importing.errors import ImportFault
from importing.kinds import Kind
from importing.mapping import REJECT, FileMapping, Texts
from importing.rows import Faulty, SourceRow
from importing.values import Unreadable


class Shape(Protocol):
    """Turns a row of the file into the row to send."""

    def check_columns(self, file: str, columns: Sequence[str]) -> None:
        """Compares a CSV's header with the expected columns. Raises ImportFault."""

    def takes(self, source: SourceRow) -> bool:
        """Whether the row is to be imported. Raises Faulty."""

    def row(self, source: SourceRow) -> tuple[Any, bytes]:
        """The row's external_id, of whatever type, and its JSON object. Raises Faulty."""

    def value_of(self, source: SourceRow) -> Callable[[str], Any]:
        """Gives the values of single fields, None for one that is not made or can't be. Raises Faulty, then as now."""

    def origin(self, field: str) -> tuple[str, ...]:
        """The columns that a field's value comes from, if they have other names."""

    @property
    def duplicates(self) -> str:
        """One of `mapping.DUPLICATES`."""


class Plain:
    """A file whose columns have the public field names."""

    duplicates = REJECT

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self._fields = frozenset(kind.fields)

    def check_columns(self, file: str, columns: Sequence[str]) -> None:
        kind = self._kind.name
        if missing := [name for name in self._kind.required if name not in columns]:
            raise ImportFault(f"{file} lacks the column {named(missing)}, which every one of the {kind} needs.")
        if unknown := [name for name in columns if name not in self._fields]:
            raise ImportFault(
                f"{file} has the column {named(unknown)}, which {kind} don't have; rename it, take it out, or give a "
                f"--mapping that ignores it. Known are {', '.join(self._kind.fields)}."
            )
        if twice := duplicates(columns):
            raise ImportFault(f"{file} has the column {named(twice)} more than once.")

    def origin(self, field: str) -> tuple[str, ...]:
        return ()

    def takes(self, source: SourceRow) -> bool:
        return True

    def value_of(self, source: SourceRow) -> Callable[[str], Any]:
        return source.values.get

    def row(self, source: SourceRow) -> tuple[Any, bytes]:
        if not source.values.keys() <= self._fields:
            name = next(name for name in source.values if name not in self._fields)
            raise Faulty(name, f"is no field of {self._kind.name}")
        sent = source.json.encode() if source.json is not None else as_json(source.values)
        return source.values.get("external_id"), sent


class Mapped:
    """A file with any columns, and its mapping."""

    def __init__(self, mapping: FileMapping, file: str = "") -> None:
        """`file` is the name of the file. Raises ImportFault if the mapping requires another form of name."""
        self._mapping = mapping
        self._parts: Mapping[str, str] = {}
        if mapping.file_name is not None:
            parts = mapping.file_name.read(file)
            if parts is None:
                raise ImportFault(f"{file} is no name of the form that the mapping's file_name has.")
            self._parts = parts
        self._made = {*self._parts, *filter(None, [mapping.row_number])}
        self._known = {*mapping.columns, *mapping.columns_of_others}
        self._readers = {field.name: field.read for field in mapping.fields}

    @property
    def duplicates(self) -> str:
        return self._mapping.duplicates

    def check_columns(self, file: str, columns: Sequence[str]) -> None:
        read = self._mapping.columns
        if both := sorted(self._parts.keys() & set(columns)):
            raise ImportFault(f"{file} has the column {named(both)}, which is a part of the mapping's file_name too.")
        if self._mapping.row_number in columns and self._mapping.row_number:
            raise ImportFault(
                f"{file} has the column {named([self._mapping.row_number])}, the mapping's row_number too."
            )
        if missing := sorted(read - set(columns)):
            raise ImportFault(f"{file} lacks the column {named(missing)}, which the mapping reads.")
        if unknown := [name for name in columns if not self._is_known(name)]:
            raise ImportFault(
                f"{file} has the column {named(unknown)}, which the mapping neither reads nor ignores; "
                "add it to ignore."
            )
        if twice := [name for name in duplicates(columns) if name in read]:
            raise ImportFault(f"{file} has the column {named(twice)}, which the mapping reads, more than once.")

    def _is_known(self, column: str) -> bool:
        if column not in self._known and self._mapping.ignores(column):
            self._known.add(column)
        return column in self._known

    def _columns(self, source: SourceRow) -> values.Columns:
        """The row's columns, and the parts of the file's name. Raises Faulty."""
        parts = self._parts
        if self._mapping.row_number:
            parts = {**parts, self._mapping.row_number: str(source.number or source.line)}
        if source.json is None:  # a CSV's header was checked: no column is missing
            return {**parts, **source.values} if parts else source.values
        for column in source.values:
            if column not in self._known and not self._is_known(column):
                raise Faulty(column, "is neither read nor ignored by the mapping")
        return Texts(source.values, parts)

    def origin(self, field: str) -> tuple[str, ...]:
        return tuple(column for column in self._mapping.origin(field) if column not in self._made)

    def takes(self, source: SourceRow) -> bool:
        return not (self._mapping.only or self._mapping.skip) or self._mapping.takes(self._columns(source))

    def value_of(self, source: SourceRow) -> Callable[[str], Any]:
        columns, readers = self._columns(source), self._readers

        def value(name: str) -> str | None:
            read = readers.get(name)
            try:
                return read and read(columns)
            except Unreadable:
                return None

        return value

    def row(self, source: SourceRow) -> tuple[Any, bytes]:
        texts = self._mapping.row(self._columns(source))
        return texts["external_id"], as_json(texts)


as_json: Callable[[Mapping[str, Any]], bytes] = msgspec.json.Encoder().encode
