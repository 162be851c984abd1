"""Reads a mapping from its TOML file and reports every mistake in it before the first row is read."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from pathlib import Path

from importing import conditions, delimiters, encodings, values
from importing.conditions import Condition
from importing.errors import ImportFault, quoted
from importing.kinds import KINDS, Kind
from importing.mapping import DUPLICATES, REJECT, FileMapping
from importing.mapping_fields import FieldRules
from importing.mapping_tables import Table, Tables
from importing.rows import Reading

RECORDS_MAX = 50

_RECORD = ("kind", "duplicates", "spaces", "empty", "only", "skip", "fields")
_FILE = ("file_name", "row_number", "encoding", "delimiter", "sheet", "ignore")


@dataclass(frozen=True, slots=True)
class MappingFile:
    """A mapping's file. `records` has the kinds that it makes of a file, each after those that it may refer to;
    `reading` its settings of how the file is read."""

    records: tuple[tuple[Kind, FileMapping], ...]
    reading: Reading


def read(path: Path, kind: Kind | None = None) -> MappingFile:
    """Reads a mapping; kind: leaves out its other kinds. Raises ImportFault with the mistake."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ImportFault(f"{path} can't be read: {error.strerror or error}.") from None
    except UnicodeDecodeError:
        raise ImportFault(f"{path} is not UTF-8 text.") from None
    return parsed(text, str(path), kind)


def parsed(text: str, name: str, kind: Kind | None = None) -> MappingFile:
    """As `read`, of the mapping's text. Messages name the mapping as `name`."""
    try:
        top = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ImportFault(f"{name} is not TOML: {error}.") from None
    return _Loader(Tables(name, text), kind).mapping(top)


def load(path: Path, kind: Kind) -> FileMapping:
    """The mapping to a kind. Raises ImportFault with the mistake."""
    return read(path, kind).records[0][1]


class _Loader:
    """Reads a whole mapping. kind: the only one to read; None: all."""

    def __init__(self, tables: Tables, kind: Kind | None) -> None:
        self._tables, self._fields = tables, FieldRules(tables)
        self._kind_imported = kind

    def mapping(self, top: Table) -> MappingFile:
        self._tables.known(
            top,
            (*_FILE, "duplicates", "spaces", "empty", "only", "skip", "records")
            if "records" in top
            else (*_FILE, *_RECORD),
        )
        reading = self._reading(top)
        tables = self._tables_of(top)
        mappings = []
        for number, table in enumerate(tables, 1):
            self._tables.record = ("records", number) if "records" in top else ()
            self._tables.where = ()
            if mapping := self._mapping_of(table, top if "records" in top else {}):
                mappings.append(mapping)
        self._tables.record = self._tables.where = ()
        if not mappings:
            assert self._kind_imported is not None
            self._tables.refuse(f'has no records of the kind "{self._kind_imported.name}", the kind that is imported')
        # KINDS names each kind after those that its rows may refer to.
        order = list(KINDS)
        mappings.sort(key=lambda mapping: order.index(mapping[0].name))
        columns = frozenset[str]().union(*(mapping.columns for _, mapping in mappings), self._columns_of_others(tables))
        return MappingFile(
            tuple((kind, replace(mapping, columns_of_others=columns)) for kind, mapping in mappings), reading
        )

    def _tables_of(self, top: Table) -> list[Table]:
        if "records" not in top:
            return [top]
        tables = top["records"]
        if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
            self._tables.refuse("records must be tables, each under [[records]]")
        if len(tables) > RECORDS_MAX:
            self._tables.refuse(f"has {len(tables)} tables of records; it may have {RECORDS_MAX}")
        for number, table in enumerate(tables, 1):
            self._tables.record = ("records", number)
            self._tables.known(table, _RECORD)
        self._tables.record = ()
        return tables

    def _reading(self, top: Table) -> Reading:
        settings = {key: self._tables.text(top, key) for key in ("encoding", "delimiter", "sheet") if key in top}
        for key, check in (("encoding", encodings.codec), ("delimiter", delimiters.checked)):
            if key in settings:
                try:
                    settings[key] = check(settings[key])
                except ValueError as error:
                    self._tables.where = (key,)
                    self._tables.refuse(f"{quoted(settings[key])} {error}")
        return Reading(**settings)

    def _mapping_of(self, table: Table, top: Table) -> tuple[Kind, FileMapping] | None:
        """One kind of record; None if another kind is imported. `top` has the defaults of all kinds."""
        name = table.get("kind") if isinstance(table.get("kind"), str) else ""
        if top and self._kind_imported is not None and name in KINDS and name != self._kind_imported.name:
            return None
        if not top and self._kind_imported is not None and name != self._kind_imported.name:
            self._tables.refuse(f'kind must be "{self._kind_imported.name}", the kind that is imported')
        if name not in KINDS:
            self._tables.refuse(f"kind must be one of {', '.join(KINDS)}")
        kind = KINDS[name]
        rules = {key: top[key] for key in ("duplicates", "spaces", "empty") if key in top} | table
        whole = top or table
        ignore = self._tables.texts(whole, "ignore")
        duplicates = self._tables.one_of(rules, "duplicates", DUPLICATES, REJECT)
        fields = table.get("fields")
        if not isinstance(fields, dict) or not fields:
            self._tables.refuse("[fields] is missing")
        if unknown := [field for field in fields if field not in kind.fields]:
            self._tables.where = ("fields", unknown[0])
            self._tables.refuse(f"{kind.name} have no field {quoted(unknown[0])}; they have {', '.join(kind.fields)}")
        if missing := [field for field in kind.required if field not in fields]:
            self._tables.refuse(f"[fields] lacks {', '.join(missing)}, which every one of the {kind.name} needs")
        field_rules = tuple(self._fields.field(field, value, rules) for field, value in fields.items())
        only, skip = (
            (*self._conditions(top, key, rules, top=True), *self._conditions(table, key, rules))
            for key in ("only", "skip")
        )
        self._tables.where = ()
        file_name = self._file_name(whole)
        row_number = self._tables.text(whole, "row_number") if "row_number" in whole else ""
        return kind, FileMapping(field_rules, ignore, duplicates, only, file_name, skip, row_number)

    def _columns_of_others(self, tables: list[Table]) -> frozenset[str]:
        """The columns that the kinds read that are left out: the file may have them."""
        if self._kind_imported is None or len(tables) == 1:
            return frozenset()
        whole = parsed(self._tables.text_of_file, self._tables.path)
        return frozenset[str]().union(*(mapping.columns for _, mapping in whole.records))

    def _conditions(self, table: Table, key: str, rules: Table, *, top: bool = False) -> tuple[Condition, ...]:
        record, self._tables.record = self._tables.record, () if top else self._tables.record
        self._tables.where = (key,)
        by_column = table.get(key, {})
        if not isinstance(by_column, dict):
            self._tables.refuse(f"must be a table of columns and conditions; {conditions.ALLOWED}")
        clean = self._fields.cleaner(rules)
        column_conditions = []
        for column, spec in by_column.items():
            self._tables.where = (key, column)
            column_conditions.append(Condition(column, clean, self._fields.condition(spec)))
        self._tables.record = record
        return tuple(column_conditions)

    def _file_name(self, top: Table) -> values.FileName | None:
        try:
            return values.FileName(self._tables.text(top, "file_name")) if "file_name" in top else None
        except ValueError as error:
            self._tables.refuse(f"file_name {error}")
