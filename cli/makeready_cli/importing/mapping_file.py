"""Reads a mapping from its TOML file and reports every mistake in it before the first row is read."""

from __future__ import annotations

import datetime
import tomllib
import zoneinfo
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from makeready_cli.errors import CommandError, quoted
from makeready_cli.importing import values
from makeready_cli.importing.kinds import Kind
from makeready_cli.importing.mapping import DUPLICATES, REJECT, Field, FileMapping, Only

PLUS_MINUTES_MAX = 60 * 24 * 366

_TOP = ("kind", "file_name", "ignore", "duplicates", "spaces", "empty", "only", "fields")
_ORIGINS = ("column", "first", "template", "constant")
_READERS = ("values", "steps", "date", "digits", "pattern")
_FIELD = (*_ORIGINS, *_READERS, "spaces", "empty", "default", "timezone", "plus_minutes", "otherwise")


def load(path: Path, kind: Kind) -> FileMapping:
    """Reads a mapping for a kind. Raises CommandError with the mistake."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise CommandError(f"{path} can't be read: {error.strerror or error}.") from None
    except UnicodeDecodeError:
        raise CommandError(f"{path} is not UTF-8 text.") from None
    except tomllib.TOMLDecodeError as error:
        raise CommandError(f"{path} is not TOML: {error}.") from None
    return _Loader(path, kind).mapping(found)


class _Loader:
    def __init__(self, path: Path, kind: Kind) -> None:
        self._path = path
        self._kind = kind
        self._where = ""

    def _refuse(self, reason: str) -> NoReturn:
        raise CommandError(f"{self._path}: {self._where}{reason}.")

    def mapping(self, top: dict[str, Any]) -> FileMapping:
        self._known(top, _TOP)
        if top.get("kind") != self._kind.name:
            self._refuse(f'kind must be "{self._kind.name}", the kind that is imported')
        ignore = self._texts(top, "ignore")
        duplicates = self._one_of(top, "duplicates", DUPLICATES, REJECT)
        fields = top.get("fields")
        if not isinstance(fields, dict) or not fields:
            self._refuse("[fields] is missing")
        if unknown := [name for name in fields if name not in self._kind.fields]:
            self._refuse(
                f"{self._kind.name} have no field {quoted(unknown[0])}; they have {', '.join(self._kind.fields)}"
            )
        if missing := [name for name in self._kind.required if name not in fields]:
            self._refuse(f"[fields] lacks {', '.join(missing)}, which every one of the {self._kind.name} needs")
        made = tuple(self._field(name, value, top) for name, value in fields.items())
        return FileMapping(made, ignore, duplicates, self._only(top), self._file_name(top))

    def _only(self, top: dict[str, Any]) -> tuple[Only, ...]:
        self._where = "only: "
        wanted = top.get("only", {})
        if not isinstance(wanted, dict):
            self._refuse("must be a table of columns and the values that are wanted of them")
        clean = self._cleaner(top)
        return tuple(Only(column, clean, frozenset(self._texts(wanted, column))) for column in wanted)

    def _file_name(self, top: dict[str, Any]) -> values.FileName | None:
        self._where = ""
        try:
            return values.FileName(self._text(top, "file_name")) if "file_name" in top else None
        except ValueError as error:
            self._refuse(f"file_name {error}")

    def _field(self, name: str, given: Any, top: dict[str, Any]) -> Field:
        self._where = f"fields.{name}: "
        rules = {"column": given} if isinstance(given, str) else given
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

        if read is None and not default:
            return Field(name, columns, text)
        make = read or str

        def value(row: values.Columns) -> str:
            return make(text(row)) or default

        return Field(name, columns, value)

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
        try:
            template = values.Template(self._text(rules, "template"))
        except ValueError as error:
            self._refuse(f"template {error}")
        columns = template.columns
        return columns, lambda row: clean(template.filled([clean(row[name]) for name in columns]))

    def _reader(self, rules: dict[str, Any]) -> Callable[[str], str] | None:
        """The function that turns the text into the value; None if the text is the value."""
        otherwise = self._scalar(rules, "otherwise") if "otherwise" in rules else None
        for key in ("timezone", "plus_minutes"):
            if key in rules and "date" not in rules:
                self._refuse(f"{key} belongs to date, which is missing")
        if "values" in rules:
            return _or_else(_listed(self._table(rules, "values", "texts")), otherwise)
        if "steps" in rules or "pattern" in rules:
            reader = self._steps_or_pattern(rules)
            return _or_else(lambda text: text and reader.read(text), otherwise)
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

    def _table(self, rules: dict[str, Any], key: str, keys: str) -> dict[str, str]:
        table = rules[key]
        if not isinstance(table, dict) or not table:
            self._refuse(f"{key} must be a table of {keys} and what they stand for")
        return {one: self._scalar(table, one) for one in table}

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

    def _known(self, table: dict[str, Any], known: Sequence[str]) -> None:
        if unknown := [key for key in table if key not in known]:
            self._refuse(f"{quoted(unknown[0])} is not known here; it may be one of {', '.join(known)}")

    def _text(self, table: dict[str, Any], key: str) -> str:
        if not isinstance(table[key], str):
            self._refuse(f"{key} must be a text")
        return str(table[key])

    def _texts(self, table: dict[str, Any], key: str) -> tuple[str, ...]:
        found = table.get(key, [])
        if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
            self._refuse(f"{key} must be a list of texts")
        return tuple(found)

    def _one_of(self, table: dict[str, Any], key: str, allowed: tuple[str, ...], default: str) -> str:
        found = table.get(key, default)
        if found not in allowed:
            self._refuse(f"{key} must be one of {', '.join(allowed)}")
        return str(found)

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
            raise values.Unreadable(f"{quoted(text)} {error}") from None

    return attempt


def _fault_of_format(form: str, has_timezone: bool) -> str:
    directives = values.directives(form)
    if unknown := [one for one in directives if one not in values.DIRECTIVES]:
        return f"has {quoted('%' + unknown[0])}; it may have %{', %'.join(values.DIRECTIVES)}"
    if len(set(directives)) < len(directives):
        return "has a directive twice"
    if "Y" not in directives and "y" not in directives:
        return "names no year"
    if values.TIMES & set(directives) and "z" not in directives and not has_timezone:
        return "has a time but no offset; add timezone, or %z to the format"
    return ""
