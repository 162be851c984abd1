"""Reads a mapping from its TOML file and reports every mistake in it before the first row is read."""

from __future__ import annotations

import datetime
import hashlib
import json
import tomllib
import zoneinfo
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from importing import conditions, delimiters, encodings, toml_lines, values
from importing.conditions import Condition
from importing.errors import ImportFault, quoted
from importing.kinds import KINDS, Kind
from importing.mapping import DUPLICATES, REJECT, Field, FileMapping
from importing.numbers import DECIMALS, THOUSANDS, Number
from importing.rows import Reading

PLUS_MINUTES_MAX = 60 * 24 * 366
RECORDS_MAX = 50

_RECORD = ("kind", "duplicates", "spaces", "empty", "only", "skip", "fields")
_FILE = ("file_name", "row_number", "encoding", "delimiter", "sheet", "ignore")
_ORIGINS = ("column", "first", "template", "constant", "hash")
_READERS = ("values", "steps", "date", "digits", "pattern", "number")
_DATE = ("timezone", "plus_minutes", "plus_days")
_FIELD = (*_ORIGINS, *_READERS, *_DATE, "spaces", "empty", "default", "otherwise", "when")
_NUMBER = ("decimal", "thousands", "currency")


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
    return _Loader(name, text, kind).mapping(top)


def load(path: Path, kind: Kind) -> FileMapping:
    """The mapping to a kind. Raises ImportFault with the mistake."""
    return read(path, kind).records[0][1]


class _Loader:
    def __init__(self, path: str, text: str, kind: Kind | None) -> None:
        self._path = path
        self._text_of_file = text
        self._kind_imported = kind
        self._record: tuple[str | int, ...] = ()
        self._where: tuple[str | int, ...] = ()

    def _refuse(self, reason: str) -> NoReturn:
        where = (*self._record, *self._where)
        line = toml_lines.line_of(self._text_of_file, where) if where else 0
        at = f"{self._path}:{line}: " if line else f"{self._path}: "
        raise ImportFault(f"{at}{toml_lines.named(where)}{': ' if where else ''}{reason}.")

    def mapping(self, top: dict[str, Any]) -> MappingFile:
        self._known(
            top,
            (*_FILE, "duplicates", "spaces", "empty", "only", "skip", "records")
            if "records" in top
            else (*_FILE, *_RECORD),
        )
        reading = self._reading(top)
        tables = self._tables(top)
        mappings = []
        for number, table in enumerate(tables, 1):
            self._record = ("records", number) if "records" in top else ()
            self._where = ()
            if mapping := self._mapping_of(table, top if "records" in top else {}):
                mappings.append(mapping)
        self._record = self._where = ()
        if not mappings:
            assert self._kind_imported is not None
            self._refuse(f'has no records of the kind "{self._kind_imported.name}", the kind that is imported')
        # KINDS names each kind after those that its rows may refer to.
        order = list(KINDS)
        mappings.sort(key=lambda mapping: order.index(mapping[0].name))
        columns = frozenset[str]().union(*(mapping.columns for _, mapping in mappings), self._columns_of_others(tables))
        return MappingFile(
            tuple((kind, replace(mapping, columns_of_others=columns)) for kind, mapping in mappings), reading
        )

    def _tables(self, top: dict[str, Any]) -> list[dict[str, Any]]:
        if "records" not in top:
            return [top]
        tables = top["records"]
        if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
            self._refuse("records must be tables, each under [[records]]")
        if len(tables) > RECORDS_MAX:
            self._refuse(f"has {len(tables)} tables of records; it may have {RECORDS_MAX}")
        for number, table in enumerate(tables, 1):
            self._record = ("records", number)
            self._known(table, _RECORD)
        self._record = ()
        return tables

    def _reading(self, top: dict[str, Any]) -> Reading:
        settings = {key: self._text(top, key) for key in ("encoding", "delimiter", "sheet") if key in top}
        for key, check in (("encoding", encodings.codec), ("delimiter", delimiters.checked)):
            if key in settings:
                try:
                    settings[key] = check(settings[key])
                except ValueError as error:
                    self._where = (key,)
                    self._refuse(f"{quoted(settings[key])} {error}")
        return Reading(**settings)

    def _mapping_of(self, table: dict[str, Any], top: dict[str, Any]) -> tuple[Kind, FileMapping] | None:
        """One kind of record; None if another kind is imported. `top` has the defaults of all kinds."""
        name = table.get("kind") if isinstance(table.get("kind"), str) else ""
        if top and self._kind_imported is not None and name in KINDS and name != self._kind_imported.name:
            return None
        if not top and self._kind_imported is not None and name != self._kind_imported.name:
            self._refuse(f'kind must be "{self._kind_imported.name}", the kind that is imported')
        if name not in KINDS:
            self._refuse(f"kind must be one of {', '.join(KINDS)}")
        kind = KINDS[name]
        rules = {key: top[key] for key in ("duplicates", "spaces", "empty") if key in top} | table
        whole = top or table
        ignore = self._texts(whole, "ignore")
        duplicates = self._one_of(rules, "duplicates", DUPLICATES, REJECT)
        fields = table.get("fields")
        if not isinstance(fields, dict) or not fields:
            self._refuse("[fields] is missing")
        if unknown := [field for field in fields if field not in kind.fields]:
            self._where = ("fields", unknown[0])
            self._refuse(f"{kind.name} have no field {quoted(unknown[0])}; they have {', '.join(kind.fields)}")
        if missing := [field for field in kind.required if field not in fields]:
            self._refuse(f"[fields] lacks {', '.join(missing)}, which every one of the {kind.name} needs")
        field_rules = tuple(self._field(field, value, rules) for field, value in fields.items())
        only, skip = (
            (*self._conditions(top, key, rules, top=True), *self._conditions(table, key, rules))
            for key in ("only", "skip")
        )
        self._where = ()
        file_name = self._file_name(whole)
        row_number = self._text(whole, "row_number") if "row_number" in whole else ""
        return kind, FileMapping(field_rules, ignore, duplicates, only, file_name, skip, row_number)

    def _columns_of_others(self, tables: list[dict[str, Any]]) -> frozenset[str]:
        """The columns that the kinds read that are left out: the file may have them."""
        if self._kind_imported is None or len(tables) == 1:
            return frozenset()
        whole = parsed(self._text_of_file, self._path)
        return frozenset[str]().union(*(mapping.columns for _, mapping in whole.records))

    def _conditions(
        self, table: dict[str, Any], key: str, rules: dict[str, Any], *, top: bool = False
    ) -> tuple[Condition, ...]:
        record, self._record = self._record, () if top else self._record
        self._where = (key,)
        by_column = table.get(key, {})
        if not isinstance(by_column, dict):
            self._refuse(f"must be a table of columns and conditions; {conditions.ALLOWED}")
        clean = self._cleaner(rules)
        column_conditions = []
        for column, spec in by_column.items():
            self._where = (key, column)
            column_conditions.append(Condition(column, clean, self._condition(spec)))
        self._record = record
        return tuple(column_conditions)

    def _condition(self, spec: Any) -> Callable[[str], bool]:
        try:
            return conditions.condition(spec)
        except ValueError as error:
            self._refuse(str(error))

    def _file_name(self, top: dict[str, Any]) -> values.FileName | None:
        try:
            return values.FileName(self._text(top, "file_name")) if "file_name" in top else None
        except ValueError as error:
            self._refuse(f"file_name {error}")

    def _field(self, name: str, spec: Any, top: dict[str, Any]) -> Field:
        self._where = ("fields", name)
        rules = {"column": spec} if isinstance(spec, str) else spec
        if not isinstance(rules, dict):
            self._refuse("must be a column's name or a table of rules")
        self._known(rules, _FIELD)
        if len(origins := [key for key in _ORIGINS if key in rules]) != 1:
            self._refuse(f"must have exactly one of {', '.join(_ORIGINS)}")
        if len([key for key in _READERS if key in rules]) > 1:
            self._refuse(f"may have one of {', '.join(_READERS)} only")
        clean = self._cleaner({**top, **rules})
        columns, text = self._origin(origins[0], rules, clean)
        read = self._reader(rules)
        default = self._scalar(rules, "default") if "default" in rules else ""
        others: tuple[str, ...] = ()

        if read is None and not default and "when" not in rules:
            return Field(name, columns, text)
        if "plus_days" in rules:
            read_field, others = self._dated(rules, text, clean), (self._text(rules, "plus_days"),)
        else:
            read_field = _composed(read or str, text)
        if "when" in rules:
            when = self._when(rules, clean)
            read_field, others = _conditional(when, read_field), (*others, *(condition.column for condition in when))

        def value(row: values.Columns) -> str:
            return read_field(row) or default

        return Field(name, columns, value if default else read_field, others)

    def _when(self, rules: dict[str, Any], clean: Callable[[str], str]) -> tuple[Condition, ...]:
        by_column = rules["when"]
        if not isinstance(by_column, dict) or not by_column:
            self._refuse(f"when must be a table of columns and conditions; {conditions.ALLOWED}")
        return tuple(Condition(column, clean, self._condition(spec)) for column, spec in by_column.items())

    def _dated(self, rules: dict[str, Any], text: values.Read, clean: Callable[[str], str]) -> values.Read:
        """The function that adds a column of days to a date."""
        column = self._text(rules, "plus_days")
        dates = self._dates(rules)
        otherwise = self._scalar(rules, "otherwise") if "otherwise" in rules else None

        def dated(row: values.Columns) -> str:
            days = clean(row[column])
            return _or_else(lambda date: date and dates.read(date, days), otherwise)(text(row))

        return dated

    def _cleaner(self, rules: dict[str, Any]) -> Callable[[str], str]:
        spaces = values.SPACES[self._one_of(rules, "spaces", tuple(values.SPACES), "strip")]
        empty = frozenset(self._texts(rules, "empty"))
        if not empty:
            return spaces

        def clean(text: str) -> str:
            cleaned = spaces(text)
            return "" if cleaned in empty else cleaned

        return clean

    def _origin(
        self, origin: str, rules: dict[str, Any], clean: Callable[[str], str]
    ) -> tuple[tuple[str, ...], values.Read]:
        """The columns that a field uses, and the function that takes its text from them."""
        if origin == "constant":
            constant = self._scalar(rules, "constant")
            return (), lambda _row: constant
        if origin == "column":
            column = self._text(rules, "column")
            return (column,), lambda row: clean(row[column])
        if origin == "first":
            columns = self._texts(rules, "first")
            if not columns:
                self._refuse("first must name at least one column")
            return columns, lambda row: next((text for name in columns if (text := clean(row[name]))), "")
        if origin == "hash":
            hashed = self._texts(rules, "hash")
            if not hashed:
                self._refuse("hash must be a list of at least one column")
            return hashed, lambda row: _hash([clean(row[name]) for name in hashed])
        try:
            template = values.Template(self._text(rules, "template"))
        except ValueError as error:
            self._refuse(f"template {error}")
        columns = template.columns
        return columns, lambda row: clean(template.filled([clean(row[name]) for name in columns]))

    def _reader(self, rules: dict[str, Any]) -> Callable[[str], str] | None:
        """The function that turns the text into the value; None if the text is the value."""
        otherwise = self._scalar(rules, "otherwise") if "otherwise" in rules else None
        for key in _DATE:
            if key in rules and "date" not in rules:
                self._refuse(f"{key} belongs to date, which is missing")
        if "values" in rules:
            return _or_else(_listed(self._table(rules, "values", "texts")), otherwise)
        if "steps" in rules or "pattern" in rules:
            reader = self._steps_or_pattern(rules)
            return _or_else(lambda text: text and reader.read(text), otherwise)
        if "number" in rules:
            number = self._number(rules["number"])
            return _or_else(lambda text: text and number.read(text), otherwise)
        if "date" in rules:
            dates = self._dates(rules)
            return _or_else(lambda text: text and dates.read(text), otherwise)
        if "digits" in rules:
            digits = rules["digits"]
            if type(digits) is not int or not 1 <= digits <= 30:
                self._refuse("digits must be a whole number from 1 to 30")
            return _or_else(lambda text: text and values.whole_number(text, digits), otherwise)
        if otherwise is not None:
            self._refuse(f"otherwise belongs to one of {', '.join(_READERS)}; for a blank value write default")
        return None

    def _number(self, rules: Any) -> Number:
        if not isinstance(rules, dict):
            self._refuse(
                f'number must be a table with {", ".join(_NUMBER)}, such as {{ decimal = ",", thousands = "." }}'
            )
        self._known(rules, _NUMBER)
        decimal = self._one_of(rules, "decimal", DECIMALS, ".")
        thousands = self._one_of(rules, "thousands", ("", *THOUSANDS), "")
        signs = rules.get("currency", [])
        currency = (signs,) if isinstance(signs, str) else self._texts(rules, "currency")
        try:
            return Number(decimal, thousands, [sign for sign in currency if sign])
        except ValueError as error:
            self._refuse(f"number {error}")

    def _table(self, rules: dict[str, Any], key: str, keys: str) -> dict[str, str]:
        table = rules[key]
        if not isinstance(table, dict) or not table:
            self._refuse(f"{key} must be a table of {keys} and what they stand for")
        return {key: self._scalar(table, key) for key in table}

    def _steps_or_pattern(self, rules: dict[str, Any]) -> values.Steps | values.Pattern:
        key = "steps" if "steps" in rules else "pattern"
        try:
            if key == "steps":
                return values.Steps(self._table(rules, key, "numbers"))
            return values.Pattern(self._text(rules, key))
        except ValueError as error:
            self._refuse(f"{key} {error}")

    def _dates(self, rules: dict[str, Any]) -> values.Dates:
        formats = (rules["date"],) if isinstance(rules["date"], str) else self._texts(rules, "date")
        timezone = self._zone(self._text(rules, "timezone")) if "timezone" in rules else None
        if not formats:
            self._refuse("date must name at least one format")
        for form in formats:
            if reason := _fault_of_format(form, timezone is not None):
                self._refuse(f"date format {quoted(form)} {reason}")
        minutes = rules.get("plus_minutes", 0)
        if type(minutes) is not int or abs(minutes) > PLUS_MINUTES_MAX:
            self._refuse(f"plus_minutes must be a whole number from -{PLUS_MINUTES_MAX} to {PLUS_MINUTES_MAX}")
        if minutes and timezone is None and not all("z" in values.directives(form) for form in formats):
            self._refuse("plus_minutes belongs to instants; add timezone, or %z to the format")
        return values.Dates(formats, timezone, datetime.timedelta(minutes=minutes))

    def _zone(self, name: str) -> zoneinfo.ZoneInfo:
        try:
            return zoneinfo.ZoneInfo(name)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
            self._refuse(f'timezone {quoted(name)} is not known; use a name such as "America/New_York"')

    def _known(self, table: dict[str, Any], allowed: Sequence[str]) -> None:
        if unknown := [key for key in table if key not in allowed]:
            self._refuse(f"{quoted(unknown[0])} is not known here; it may be one of {', '.join(allowed)}")

    def _text(self, table: dict[str, Any], key: str) -> str:
        if not isinstance(table[key], str):
            self._refuse(f"{key} must be a text")
        return str(table[key])

    def _texts(self, table: dict[str, Any], key: str) -> tuple[str, ...]:
        texts = table.get(key, [])
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            self._refuse(f"{key} must be a list of texts")
        return tuple(texts)

    def _one_of(self, table: dict[str, Any], key: str, allowed: tuple[str, ...], default: str) -> str:
        choice = table.get(key, default)
        if choice not in allowed:
            self._refuse(f"{key} must be one of {', '.join(map(_listed_value, allowed))}")
        return str(choice)

    def _scalar(self, table: dict[str, Any], key: str) -> str:
        """A TOML value as CSV text."""
        value = table[key]
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, datetime.date | datetime.datetime):
            return value.isoformat()
        if not isinstance(value, str | int | float):
            self._refuse(f"{key} must be a text, a number, a date, true or false")
        return str(value)


def _listed_value(allowed: str) -> str:
    return allowed if allowed.replace("-", "").isalpha() else quoted(allowed)


def _composed(make: Callable[[str], str], text: values.Read) -> values.Read:
    return lambda row: make(text(row))


def _conditional(when: Sequence[Condition], read: values.Read) -> values.Read:
    return lambda row: read(row) if all(condition.holds(row) for condition in when) else ""


def _hash(texts: Sequence[str]) -> str:
    """32 hexadecimal digits; blank if all texts are. They are joined as JSON: ["ab", "c"] differs from ["a", "bc"]."""
    if not any(texts):
        return ""
    return hashlib.sha256(json.dumps(list(texts)).encode()).hexdigest()[:32]


def _listed(table: Mapping[str, str]) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text in table:
            return table[text]
        if text:
            raise values.Unreadable("is not among the values of the mapping")
        return ""

    return read


def _or_else(read: Callable[[str], str], otherwise: str | None) -> Callable[[str], str]:
    """Adds the unreadable text to the error, or returns `otherwise` instead."""

    def attempt(text: str) -> str:
        try:
            return read(text)
        except values.Unreadable as error:
            if otherwise is not None:
                return otherwise
            raise values.Unreadable(f"{quoted(text)} {error}", error.cause, text) from None

    return attempt


def _fault_of_format(form: str, has_timezone: bool) -> str:
    directives = values.directives(form)
    if unknown := [letter for letter in directives if letter not in values.DIRECTIVES]:
        return f"has {quoted('%' + unknown[0])}; it may have %{', %'.join(values.DIRECTIVES)}"
    if len(set(directives)) < len(directives):
        return "has a directive twice"
    if "Y" not in directives and "y" not in directives:
        return "names no year"
    if values.TIMES & set(directives) and "z" not in directives and not has_timezone:
        return "has a time but no offset; add timezone, or %z to the format"
    return ""
