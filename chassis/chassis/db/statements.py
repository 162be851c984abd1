"""SQLAlchemy Core statements, compiled once and run on asyncpg directly.

Core writes the SQL; a compiled statement then costs what asyncpg costs, while Core's own engine would add
some 300 µs a call. A service has up to 150 statements, and a fifth of its start was to compile them all, so each is
compiled at its first use.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, UUID
from sqlalchemy.dialects.postgresql.asyncpg import dialect as asyncpg_dialect
from sqlalchemy.sql import ClauseElement

TIME = sa.DateTime(timezone=True)
UUIDS = ARRAY(UUID(as_uuid=True))
TEXTS = ARRAY(sa.Text)
CLOCK = sa.text("clock_timestamp()")  # moves within a transaction, as now() does not

# A column or another expression, and a SELECT, whatever their SQL types are.
Expression = sa.ColumnElement[Any]
Selection = sa.Select[*tuple[Any, ...]]
TableColumn = sa.Column[Any]
Label = sa.Label[Any]
SqlType = sa.types.TypeEngine[Any] | type[sa.types.TypeEngine[Any]]
# The values of a row's columns, or of a statement's parameters, by name.
Values = Mapping[str, Any]
# As `Values`, while they are put together.
NewValues = dict[str, Any]

Row = TypeVar("Row")


class Runs(Protocol):
    """Runs statements: a connection or the database."""

    async def rows(self, statement: Statement, **values: object) -> list[Any]: ...
    async def row(self, statement: Statement, **values: object) -> Any: ...


def param(name: str, kind: SqlType) -> sa.BindParameter[Any]:
    """A parameter of a statement, by name and type."""
    return sa.bindparam(name, type_=kind)


def sql(text: str, **types: SqlType) -> sa.TextClause:
    """A statement that never varies, as SQL with parameters such as `:company_id`, each with its type.

    Raises TypeError if the parameters of the SQL are not those of `types`.
    """
    clause = sa.text(text)
    names = clause.compile().params.keys()
    if names != types.keys():
        raise TypeError(f"parameters {sorted(names ^ types.keys())} are missing or unknown")
    return clause.bindparams(*(param(name, type_) for name, type_ in types.items()))


NUMBERS = {sa.Float: 701, sa.Numeric: 1700}  # pg_type.oid; the narrower type first
_DIALECT = asyncpg_dialect()  # type: ignore[no-untyped-call]


class Statement:
    """One SQL statement with named parameters: `.sql` for asyncpg, `.arguments(name=…)` in its order.

    Its first use raises TypeError if its SQL would change between calls.
    """

    sql: str
    parameters: frozenset[str]
    _names: tuple[str, ...]
    _constants: dict[str, Any]
    _processors: dict[str, Callable[[Any], Any]]

    def __init__(self, clause: ClauseElement) -> None:
        self._clause: ClauseElement | None = clause

    if not TYPE_CHECKING:  # to a type checker, any name would be an attribute

        def __getattr__(self, name: str) -> Any:
            """Only what `_compile` sets is missing, and only until then."""
            if name not in Statement.__annotations__ or self._clause is None:
                raise AttributeError(f"a Statement has no {name}")
            self._compile(self._clause)
            self._clause = None
            return self.__dict__[name]

    def _compile(self, clause: ClauseElement) -> None:
        compiled: Any = clause.compile(dialect=_DIALECT)
        if compiled.post_compile_params or compiled.literal_execute_params:
            raise TypeError("an IN list or a literal that changes per call; use = ANY(array)")
        if compiled.insert_prefetch or compiled.update_prefetch:
            raise TypeError("a Python-side default, which nothing would fill in here; use a server default")
        for column in compiled._result_columns:  # noqa: SLF001 - see .ci/private_names.py, here and below
            # For numbers, the processor depends on the server's type; all floats here are float8.
            oid = next((oid for kind, oid in NUMBERS.items() if isinstance(column.type, kind)), None)
            if column.type._cached_result_processor(_DIALECT, oid) is not None:  # noqa: SLF001
                raise TypeError(f"{column.keyname}: its type changes values after asyncpg; choose another")
        self.sql = compiled.string
        self._names = tuple(compiled.positiontup or ())
        self._constants = {
            name: bind.effective_value
            for name, bind in compiled.binds.items()
            if name in self._names and not bind.required
        }
        self.parameters = frozenset(self._names) - self._constants.keys()
        processors: dict[str, Callable[[Any], Any]] = compiled._bind_processors  # noqa: SLF001
        self._processors = {
            name: process
            for name, process in processors.items()
            if name in self._names and not _is_sent_as_it_is(compiled.binds[name].type)
        }

    def arguments(self, values: Values) -> list[Any]:
        """The values in the order of `$1, $2, …`. Raises TypeError for a name too few or too many."""
        if values.keys() != self.parameters:
            raise TypeError(f"parameters {sorted(values.keys() ^ self.parameters)} are missing or unknown")
        all_values = {**self._constants, **values} if self._constants else values
        processors = self._processors
        if not processors:
            return [all_values[name] for name in self._names]
        return [processors[name](all_values[name]) if name in processors else all_values[name] for name in self._names]


def _is_sent_as_it_is(kind: Any) -> bool:
    """Whether it is an array whose items need no processing: SQLAlchemy would copy it item by item."""
    return isinstance(kind, ARRAY) and kind.item_type.dialect_impl(_DIALECT).bind_processor(_DIALECT) is None


class Query(Generic[Row]):
    """A statement whose rows are of one kind: a Struct, NamedTuple or dataclass with a field for each column.

    Raises TypeError if the columns' names are not the fields' names, in the same order.
    """

    def __init__(self, kind: Callable[..., Row], clause: Any) -> None:
        self.statement = Statement(clause)
        self._make = kind
        columns = list(clause.exported_columns.keys())  # of a SELECT or of RETURNING
        fields = list(inspect.signature(kind).parameters)
        if columns != fields:
            raise TypeError(f"the columns {columns} are not the fields {fields} of {kind}")

    async def rows(self, on: Runs, **values: object) -> list[Row]:
        """The rows, read `on` a connection or the database."""
        make = self._make
        return [make(*row) for row in await on.rows(self.statement, **values)]

    async def row(self, on: Runs, **values: object) -> Row | None:
        record = await on.row(self.statement, **values)
        return None if record is None else self._make(*record)
