"""A record declared once: its Struct, the SQL columns that fill it, its nested parts, and the function that renders it.

    PARCEL = Shape(
        Parcel,
        parcel,
        label=func.coalesce(parcel.c.nickname, parcel.c.tracking_number),
        sender=Nested(Sender, sender),
        url=Link("/parcels/{entity_id}"),
        version=parcel.c.version,
    )

A field without a source comes from the table's column of the same name, `entity_id` from `id`. A field whose type is a
Literal with one value has that value. Rows are rendered by position: 50 rows of 33 columns cost 19 µs, by name 204.
This module generates the rendering function, so no two lists of columns have to agree.
"""

from __future__ import annotations

import datetime
import inspect
import types
import typing
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Literal, TypeVar

import msgspec
import sqlalchemy as sa
from asyncpg import Record as Row
from sqlalchemy.sql.elements import ColumnElement
from sqlalchemy.sql.selectable import NamedFromClause

from chassis.db.statements import Expression, NewValues, Selection, TableColumn, Values
from chassis.schedule.instants import printed
from makeready.common.v1.documents_pb2 import Document

Struct = TypeVar("Struct", bound=msgspec.Struct)
Columns = Row | Sequence[Any]
Source = Expression | TableColumn

encode = msgspec.json.Encoder().encode

DOCUMENT, DOCUMENT_SHAPE = "document", "document_shape"
"""The columns of a record's stored JSON, and of its shape's number while it is up to date."""

# The Python types that a column may fill; an instant is printed for a text field. The narrower type stands first.
_PYTHON: tuple[tuple[type[sa.types.TypeEngine[Any]], tuple[type, ...]], ...] = (
    (sa.Boolean, (bool,)),
    (sa.Integer, (int,)),
    (sa.Float, (float,)),
    (sa.Numeric, ()),  # PostgreSQL's decimals would be served as texts
    (sa.DateTime, (str, datetime.datetime)),
    (sa.Date, (datetime.date,)),
    (sa.Text, (str,)),
    (sa.String, (str,)),
    (sa.ARRAY, (list, tuple, typing.cast(type, Sequence))),
)


class Nested:
    """A nested record, from another table. Its fields have their sources as in a `Shape`.

    If `optional`, the part is null if its first column is, as after an outer join.
    """

    def __init__(
        self, struct: type[msgspec.Struct], table: NamedFromClause, optional: bool = False, **fields: object
    ) -> None:
        self.struct, self.table, self.optional, self.fields = struct, table, optional, fields


class Either:
    """The first of several optional parts that is not null; else null."""

    def __init__(self, *parts: Nested) -> None:
        self.parts = parts


class Link:
    """An absolute URL below the address passed to `Shape.renderer`, with a path such as `/parcels/{entity_id}` or
    `{sender.id}`.

    The `columns` in the path that no field of the record holds are by name.
    """

    def __init__(self, path: str, **columns: Source) -> None:
        self.path, self.columns = path, columns


class Computed:
    """The result of a pure function of columns."""

    def __init__(self, function: Callable[..., Any], *columns: Source) -> None:
        self.function, self.columns = function, columns


class Shape(Generic[Struct]):
    """How rows become records of one kind.

    Raises TypeError for a declaration that cannot work: a field without a source, a source without a field, a column
    whose type or nullability does not fit its field.
    """

    def __init__(
        self, struct: type[Struct], table: NamedFromClause, *, version: Source | None = None, **fields: object
    ) -> None:
        """The `version` is a column after all others, for `Renderer.document`."""
        self.struct = struct
        self._columns: list[Source] = []
        self._paths: dict[str, int] = {}
        self._names: NewValues = {"printed": printed}
        self._links: list[tuple[str, str]] = []
        self._fields: list[str] = []
        self._body = self._struct(struct, table, fields, "")
        self.number = self._number()
        """Another one after each change of the public fields: stored documents of another shape are rendered anew."""
        if version is not None:
            self._columns.append(version)
        self.columns: tuple[Source, ...] = tuple(self._columns)
        """In the order of a row that `Renderer` renders."""
        self.positions: Mapping[str, int] = self._paths
        """The position of each field's column, by field; a part's field is named `sender.id`."""

    def _number(self) -> int:
        """A hash over the names and sources of all fields, of functions the names; it fits a column of integers."""
        sources = [str(column) for column in self._columns]
        functions = [used.__name__ for name, used in self._names.items() if name[0] == "k" and inspect.isroutine(used)]
        links = [path for _, path in self._links]
        return zlib.crc32("\n".join([self._body, *self._fields, *sources, *functions, *links]).encode()) >> 1

    def row(self, values: Mapping[Source, Any]) -> list[Any]:
        """Values by column, of a row that is about to be inserted, as a row to render. An absent column is null."""
        return [values.get(column) for column in self.columns]

    def select(self, source: sa.FromClause) -> Selection:
        """All rows of a table or join, with these columns and no others."""
        labelled = (column.label(f"c{position}") for position, column in enumerate(self.columns))
        return sa.select(*labelled).select_from(source)

    def renderer(self, links_url: str = "") -> Renderer[Struct]:
        """Renders with links that start with `links_url`, which has no slash at its end."""
        return Renderer(self, links_url)

    def compiled(self, links_url: str) -> Callable[[Columns], Struct]:
        """The function that renders a row."""
        names = ", ".join(f"c{position}" for position in range(len(self.columns)))
        source = f"def render(row):\n    ({names},) = row\n    return {self._body}\n"
        scope = dict(self._names)
        for name, path in self._links:
            scope[name] = f"{links_url}{path}"
        exec(compile(source, f"<shape of {self.struct.__name__}>", "exec"), scope)  # noqa: S102 - from columns alone
        render: Callable[[Columns], Struct] = scope["render"]
        return render

    def _take(self, path: str, column: Source) -> int:
        """The position of a column. A column that fills several fields is selected once."""
        index = next((at for at, taken in enumerate(self._columns) if taken is column), None)
        if index is None:
            index = len(self._columns)
            self._columns.append(column)
        if path:
            self._paths[path] = index
        return index

    def _constant(self, value: object) -> str:
        name = f"k{len(self._names)}"
        self._names[name] = value
        return name

    def _struct(self, struct: type[msgspec.Struct], table: NamedFromClause, sources: Values, prefix: str) -> str:
        """The expression that makes the Struct."""
        unknown = sources.keys() - set(struct.__struct_fields__)
        if unknown:
            raise TypeError(f"{struct.__name__} has no fields {sorted(unknown)}")
        self._fields += struct.__struct_encode_fields__
        hints = typing.get_type_hints(struct)
        later: dict[str, Link] = {}
        values: dict[str, str] = {}
        for name in struct.__struct_fields__:
            source = sources.get(name)
            if isinstance(source, Link):
                later[name] = source  # after the fields that it names
            else:
                values[name] = self._value(struct, table, name, hints[name], source, f"{prefix}{name}")
        for name, link in later.items():
            values[name] = self._link(struct, link)
        keyword = any(
            parameter.kind is parameter.KEYWORD_ONLY for parameter in inspect.signature(struct).parameters.values()
        )
        words = (f"{name}={values[name]}" if keyword else values[name] for name in struct.__struct_fields__)
        return f"{self._constant(struct)}({', '.join(words)})"

    def _value(
        self, struct: type[msgspec.Struct], table: NamedFromClause, name: str, hint: object, source: object, path: str
    ) -> str:
        """The expression that gives a field its value."""
        if isinstance(source, Nested):
            return self._part(source, path)
        if isinstance(source, Either):
            expression = "None"
            for part in reversed(source.parts):
                expression = self._part(part, path, expression)
            return expression
        if isinstance(source, Computed):
            taken = ", ".join(f"c{self._take(path, column)}" for column in source.columns)
            return f"{self._constant(source.function)}({taken})"
        only = _only_value(hint)
        if source is None and only is not None:
            return repr(only)
        if source is None:
            column_name = "id" if name == "entity_id" else name
            if column_name not in table.c:
                raise TypeError(f"{struct.__name__}.{name} has no source: {table.name} has no column {column_name}")
            source = table.c[column_name]
        if not isinstance(source, ColumnElement):
            if isinstance(source, str | int | float):
                return repr(source)
            raise TypeError(f"{struct.__name__}.{name} cannot come from {source!r}")
        _check(struct, name, hint, source, is_own=getattr(source, "table", None) is table)
        at = self._take(path, source)
        prints = isinstance(source.type, sa.DateTime) and str in _plain(hint)
        return f"printed(c{at})" if prints else f"c{at}"

    def _part(self, part: Nested, path: str, otherwise: str = "None") -> str:
        expression = self._struct(part.struct, part.table, part.fields, f"{path}.")
        key = self._paths[f"{path}.{part.struct.__struct_fields__[0]}"]
        return f"({otherwise} if c{key} is None else {expression})" if part.optional else expression

    def _link(self, struct: type[msgspec.Struct], link: Link) -> str:
        """An f-string. Its beginning, the address, is known when the renderer is made."""
        parts, pattern = [], link.path
        while "{" in pattern:
            text, _, pattern = pattern.partition("{")
            path, _, pattern = pattern.partition("}")
            if path in link.columns:
                at = self._take("", link.columns[path])
            elif path in self._paths:
                at = self._paths[path]
            else:
                raise TypeError(f"the link of {struct.__name__} names {path}, which has no column")
            parts.append((text, f"{{c{at}}}"))
        name = f"l{len(self._links)}"
        self._links.append((name, parts[0][0]))
        inside = "".join((text if number else "") + value for number, (text, value) in enumerate(parts))
        return f'f"{{{name}}}{inside}{pattern}"'


class Renderer(Generic[Struct]):
    """Renders the rows of one shape; a row has the shape's columns, in their order."""

    def __init__(self, shape: Shape[Struct], links_url: str) -> None:
        self.shape = shape
        self.record: Callable[[Columns], Struct] = shape.compiled(links_url)
        """The record of a row."""
        self._without_base = shape.compiled("\0")
        self._base = encode(links_url)[1:-1]
        self._width = len(shape.columns)

    def stored(self, row: Columns) -> bytes:
        """The JSON of a row for its column `document`: the byte 0, which no JSON has, is where links have their base.

        Only a link has a NUL: PostgreSQL's texts have none.
        """
        return encode(self._without_base(row)).replace(b'"\\u0000', b'"\0')

    def served(self, documents: bytes) -> bytes:
        """The JSON of one or more documents that `stored` has made."""
        return documents.replace(b"\0", self._base)

    def json(self, row: Columns) -> bytes:
        return encode(self.record(row))

    def document(self, row: Columns) -> Document:
        """The record with its id and version, for a shape that has both."""
        return self.record_and_document(row)[1]

    def record_and_document(self, row: Columns) -> tuple[Struct, Document]:
        """The record and its document, rendered once."""
        record = self.record(row)
        return record, Document(json=encode(record), entity_id=row[0], version=row[self._width - 1])

    def record_of_wider_row(self, row: Columns) -> Struct:
        """The record of a row that has more columns after the shape's."""
        return self.record(tuple(row)[: self._width])

    def columns(self, row: Columns) -> NewValues:
        """The columns of a row's document, for the statement that writes the row."""
        return {DOCUMENT: self.stored(row), DOCUMENT_SHAPE: self.shape.number}

    def of_values(self, values: Mapping[Source, Any]) -> Struct:
        """The record of values by column: see `Shape.row`."""
        return self.record(self.shape.row(values))


def _only_value(hint: object) -> Any:
    """The value of a Literal with one value; else None."""
    if typing.get_origin(hint) is Literal and len(typing.get_args(hint)) == 1:
        return typing.get_args(hint)[0]
    return None


def _plain(hint: Any) -> frozenset[type]:
    """The types that a field may have, Literals as the types of their values."""
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return frozenset[type]().union(*(_plain(argument) for argument in typing.get_args(hint)))
    if origin is Literal:
        return frozenset(type(value) for value in typing.get_args(hint))
    if origin is typing.Annotated:
        return _plain(typing.get_args(hint)[0])
    return frozenset([origin or hint])


def _check(struct: type[msgspec.Struct], name: str, hint: object, column: Source, is_own: bool) -> None:
    """Raises TypeError if a column can't fill the field. It `is_own` if it is of the record's own table, never outer
    joined."""
    allowed = _plain(hint)
    fits = next((python for kind, python in _PYTHON if isinstance(column.type, kind)), None)
    if fits is not None and allowed.isdisjoint(fits):
        expected = ", ".join(sorted(python.__name__ for python in allowed))
        raise TypeError(f"{struct.__name__}.{name} is {expected}, and its column is {column.type!r}")
    nullable = is_own and isinstance(column, sa.Column) and column.nullable
    if nullable and type(None) not in allowed:
        raise TypeError(f"{struct.__name__}.{name} is never null, and its column may be")
