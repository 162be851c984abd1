"""Records as rows of a CSV file."""

from __future__ import annotations

import csv
import io
import re
import types
import typing
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from makeready_client.answers import Model

# Spreadsheets run a cell that begins so as a formula, some also in the full-width forms, and some what follows a line
# break in a cell.
_FORMULA = re.compile(r"(?:\A|(?<=[\n\r\v\f\x85\u2028\u2029]))(?=[=+\-@\t\r\uff1d\uff0b\uff0d\uff20])")


class Table:
    """The columns of a kind of records: a field each, and for an object in it a column for each of its fields, named as
    `property.id`. They are those of this version of the library, in the order of the record, whatever else comes.
    """

    def __init__(self, model: type[Model]) -> None:
        self._columns = list(_columns(model))

    def header(self) -> str:
        """The names of the columns, as a line without its end."""
        return _line(".".join(path) for path in self._columns)

    def row(self, record: bytes) -> str:
        """A record, which is JSON, as a line without its end."""
        fields = msgspec.json.decode(record)
        return _line(_cell(_at(fields, path)) for path in self._columns)


def _columns(model: type[msgspec.Struct]) -> Iterator[tuple[str, ...]]:
    for field in msgspec.structs.fields(model):
        options = typing.get_args(field.type) if isinstance(field.type, types.UnionType) else (field.type,)
        nested = [option for option in options if isinstance(option, type) and issubclass(option, msgspec.Struct)]
        for part in nested:
            yield from ((field.encode_name, *path) for path in _columns(part))
        if not nested:
            yield (field.encode_name,)


def _at(fields: dict[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = fields
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _cell(value: Any) -> str:
    """Empty for null; lists as JSON. Text is never a formula."""
    if value is None:
        return ""
    if isinstance(value, str):
        return _FORMULA.sub("'", value)
    return msgspec.json.encode(value).decode()


def _line(cells: Iterable[str]) -> str:
    text = io.StringIO(newline="")
    csv.writer(text).writerow(cells)  # it quotes the letters of its line's end, and no other line breaks
    return text.getvalue().removesuffix("\r\n")
