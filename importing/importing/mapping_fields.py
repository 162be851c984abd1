"""The rules of a mapping's fields: each becomes the function that makes the field's value from a row's columns."""

from __future__ import annotations

import datetime
import hashlib
import json
import zoneinfo
from collections.abc import Callable, Mapping, Sequence

from importing import conditions, values
from importing.conditions import Condition
from importing.errors import quoted
from importing.mapping import Field
from importing.mapping_tables import Table, Tables
from importing.numbers import DECIMALS, THOUSANDS, Number

PLUS_MINUTES_MAX = 60 * 24 * 366
_ORIGINS = ("column", "first", "template", "constant", "hash")
_READERS = ("values", "steps", "date", "digits", "pattern", "number")
_DATE = ("timezone", "plus_minutes", "plus_days")
_FIELD = (*_ORIGINS, *_READERS, *_DATE, "spaces", "empty", "default", "otherwise", "when")
_NUMBER = ("decimal", "thousands", "currency")


class FieldRules:
    """Reads the rules of fields from the mapping's tables."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def condition(self, spec: object) -> Callable[[str], bool]:
        try:
            return conditions.condition(spec)
        except ValueError as error:
            self._tables.refuse(str(error))

    def field(self, name: str, spec: object, top: Table) -> Field:
        self._tables.where = ("fields", name)
        rules = {"column": spec} if isinstance(spec, str) else spec
        if not isinstance(rules, dict):
            self._tables.refuse("must be a column's name or a table of rules")
        self._tables.known(rules, _FIELD)
        if len(origins := [key for key in _ORIGINS if key in rules]) != 1:
            self._tables.refuse(f"must have exactly one of {', '.join(_ORIGINS)}")
        if len([key for key in _READERS if key in rules]) > 1:
            self._tables.refuse(f"may have one of {', '.join(_READERS)} only")
        clean = self.cleaner({**top, **rules})
        columns, text = self._origin(origins[0], rules, clean)
        read = self._reader(rules)
        default = self._tables.scalar(rules, "default") if "default" in rules else ""
        others: tuple[str, ...] = ()

        if read is None and not default and "when" not in rules:
            return Field(name, columns, text)
        if "plus_days" in rules:
            read_field, others = self._dated(rules, text, clean), (self._tables.text(rules, "plus_days"),)
        else:
            read_field = _composed(read or str, text)
        if "when" in rules:
            when = self._when(rules, clean)
            read_field, others = _conditional(when, read_field), (*others, *(condition.column for condition in when))

        def value(row: values.Columns) -> str:
            return read_field(row) or default

        return Field(name, columns, value if default else read_field, others)

    def _when(self, rules: Table, clean: Callable[[str], str]) -> tuple[Condition, ...]:
        by_column = rules["when"]
        if not isinstance(by_column, dict) or not by_column:
            self._tables.refuse(f"when must be a table of columns and conditions; {conditions.ALLOWED}")
        return tuple(Condition(column, clean, self.condition(spec)) for column, spec in by_column.items())

    def _dated(self, rules: Table, text: values.Read, clean: Callable[[str], str]) -> values.Read:
        """The function that adds a column of days to a date."""
        column = self._tables.text(rules, "plus_days")
        dates = self._dates(rules)
        otherwise = self._tables.scalar(rules, "otherwise") if "otherwise" in rules else None

        def dated(row: values.Columns) -> str:
            days = clean(row[column])
            return _or_else(lambda date: date and dates.read(date, days), otherwise)(text(row))

        return dated

    def cleaner(self, rules: Table) -> Callable[[str], str]:
        spaces = values.SPACES[self._tables.one_of(rules, "spaces", tuple(values.SPACES), "strip")]
        empty = frozenset(self._tables.texts(rules, "empty"))
        if not empty:
            return spaces

        def clean(text: str) -> str:
            cleaned = spaces(text)
            return "" if cleaned in empty else cleaned

        return clean

    def _origin(self, origin: str, rules: Table, clean: Callable[[str], str]) -> tuple[tuple[str, ...], values.Read]:
        """The columns that a field uses, and the function that takes its text from them."""
        if origin == "constant":
            constant = self._tables.scalar(rules, "constant")
            return (), lambda _row: constant
        if origin == "column":
            column = self._tables.text(rules, "column")
            return (column,), lambda row: clean(row[column])
        if origin == "first":
            columns = self._tables.texts(rules, "first")
            if not columns:
                self._tables.refuse("first must name at least one column")
            return columns, lambda row: next((text for name in columns if (text := clean(row[name]))), "")
        if origin == "hash":
            hashed = self._tables.texts(rules, "hash")
            if not hashed:
                self._tables.refuse("hash must be a list of at least one column")
            return hashed, lambda row: _hash([clean(row[name]) for name in hashed])
        try:
            template = values.Template(self._tables.text(rules, "template"))
        except ValueError as error:
            self._tables.refuse(f"template {error}")
        columns = template.columns
        return columns, lambda row: clean(template.filled([clean(row[name]) for name in columns]))

    def _reader(self, rules: Table) -> Callable[[str], str] | None:
        """The function that turns the text into the value; None if the text is the value."""
        otherwise = self._tables.scalar(rules, "otherwise") if "otherwise" in rules else None
        for key in _DATE:
            if key in rules and "date" not in rules:
                self._tables.refuse(f"{key} belongs to date, which is missing")
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
                self._tables.refuse("digits must be a whole number from 1 to 30")
            return _or_else(lambda text: text and values.whole_number(text, digits), otherwise)
        if otherwise is not None:
            self._tables.refuse(f"otherwise belongs to one of {', '.join(_READERS)}; for a blank value write default")
        return None

    def _number(self, rules: object) -> Number:
        if not isinstance(rules, dict):
            self._tables.refuse(
                f'number must be a table with {", ".join(_NUMBER)}, such as {{ decimal = ",", thousands = "." }}'
            )
        self._tables.known(rules, _NUMBER)
        decimal = self._tables.one_of(rules, "decimal", DECIMALS, ".")
        thousands = self._tables.one_of(rules, "thousands", ("", *THOUSANDS), "")
        signs = rules.get("currency", [])
        currency = (signs,) if isinstance(signs, str) else self._tables.texts(rules, "currency")
        try:
            return Number(decimal, thousands, [sign for sign in currency if sign])
        except ValueError as error:
            self._tables.refuse(f"number {error}")

    def _table(self, rules: Table, key: str, keys: str) -> dict[str, str]:
        table = rules[key]
        if not isinstance(table, dict) or not table:
            self._tables.refuse(f"{key} must be a table of {keys} and what they stand for")
        return {key: self._tables.scalar(table, key) for key in table}

    def _steps_or_pattern(self, rules: Table) -> values.Steps | values.Pattern:
        key = "steps" if "steps" in rules else "pattern"
        try:
            if key == "steps":
                return values.Steps(self._table(rules, key, "numbers"))
            return values.Pattern(self._tables.text(rules, key))
        except ValueError as error:
            self._tables.refuse(f"{key} {error}")

    def _dates(self, rules: Table) -> values.Dates:
        formats = (rules["date"],) if isinstance(rules["date"], str) else self._tables.texts(rules, "date")
        timezone = self._zone(self._tables.text(rules, "timezone")) if "timezone" in rules else None
        if not formats:
            self._tables.refuse("date must name at least one format")
        for form in formats:
            if reason := _fault_of_format(form, timezone is not None):
                self._tables.refuse(f"date format {quoted(form)} {reason}")
        minutes = rules.get("plus_minutes", 0)
        if type(minutes) is not int or abs(minutes) > PLUS_MINUTES_MAX:
            self._tables.refuse(f"plus_minutes must be a whole number from -{PLUS_MINUTES_MAX} to {PLUS_MINUTES_MAX}")
        if minutes and timezone is None and not all("z" in values.directives(form) for form in formats):
            self._tables.refuse("plus_minutes belongs to instants; add timezone, or %z to the format")
        return values.Dates(formats, timezone, datetime.timedelta(minutes=minutes))

    def _zone(self, name: str) -> zoneinfo.ZoneInfo:
        try:
            return zoneinfo.ZoneInfo(name)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
            self._tables.refuse(f'timezone {quoted(name)} is not known; use a name such as "America/New_York"')


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
