"""The tables of a mapping's TOML file: their values by type, and refusals that name the line of a mistake."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import NoReturn

from importing import toml_lines
from importing.errors import ImportFault, quoted

Table = dict[str, object]


class Tables:
    """Checks values and refuses mistakes. record, where: the keys of the place that is being read, for messages."""

    def __init__(self, path: str, text: str) -> None:
        """path: of the mapping, for messages. text: of the file."""
        self.path = path
        self.text_of_file = text
        self.record: tuple[str | int, ...] = ()
        self.where: tuple[str | int, ...] = ()

    def refuse(self, reason: str) -> NoReturn:
        where = (*self.record, *self.where)
        line = toml_lines.line_of(self.text_of_file, where) if where else 0
        at = f"{self.path}:{line}: " if line else f"{self.path}: "
        raise ImportFault(f"{at}{toml_lines.named(where)}{': ' if where else ''}{reason}.")

    def known(self, table: Table, allowed: Sequence[str]) -> None:
        if unknown := [key for key in table if key not in allowed]:
            self.refuse(f"{quoted(unknown[0])} is not known here; it may be one of {', '.join(allowed)}")

    def text(self, table: Table, key: str) -> str:
        if not isinstance(table[key], str):
            self.refuse(f"{key} must be a text")
        return str(table[key])

    def texts(self, table: Table, key: str) -> tuple[str, ...]:
        texts = table.get(key, [])
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            self.refuse(f"{key} must be a list of texts")
        return tuple(texts)

    def one_of(self, table: Table, key: str, allowed: tuple[str, ...], default: str) -> str:
        choice = table.get(key, default)
        if choice not in allowed:
            self.refuse(f"{key} must be one of {', '.join(map(_listed_value, allowed))}")
        return str(choice)

    def scalar(self, table: Table, key: str) -> str:
        """A TOML value as CSV text."""
        value = table[key]
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, datetime.date | datetime.datetime):
            return value.isoformat()
        if not isinstance(value, str | int | float):
            self.refuse(f"{key} must be a text, a number, a date, true or false")
        return str(value)


def _listed_value(allowed: str) -> str:
    return allowed if allowed.replace("-", "").isalpha() else quoted(allowed)
