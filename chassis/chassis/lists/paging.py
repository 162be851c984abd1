"""Keyset pages (spec 4.12): the next `limit` records after an id, one statement for each set of filters.

A single statement with `(:p IS NULL OR …)` would have one generic plan for all filters: 127 ms instead of 0.1.
"""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar

import msgspec
import sqlalchemy as sa
from asyncpg import Record
from google.protobuf.message import Message
from sqlalchemy.sql import operators, visitors
from sqlalchemy.sql.util import ClauseAdapter

from chassis.db.statements import Expression, NewValues, Runs, Selection, Statement, Values, param
from chassis.lists.updated_since import block_key, ids_changed, is_of, list_of, status_key, stretch
from chassis.refusals import invalid_request
from makeready.common.v1.documents_pb2 import Page

ROWS_MAX = 200
SINCE, SINCE_COLUMN = "updated_since", "updated_at"
STATUS = "status"
PAGING = ("after_id", "limit")  # request fields that are not filters

Clause = TypeVar("Clause", bound=sa.ClauseElement)

_encode = msgspec.json.Encoder().encode


class Limited(Protocol):
    """A request for so many records."""

    @property
    def limit(self) -> int: ...
    def HasField(self, field_name: Literal["limit"], /) -> bool: ...


def limit_of(request: Limited, default: int, most: int) -> int:
    """The request's `limit`. Raises Refusal 400 for one that is out of bounds."""
    limit = request.limit if request.HasField("limit") else default
    if not 1 <= limit <= most:
        raise invalid_request(f"limit must be from 1 to {most}.", "limit")
    return limit


@dataclass(frozen=True, slots=True)
class Inside:
    """Declares that every place of one kind lies in one place of another kind, permanently. With both filters set, the
    statement checks once whether the inner place lies in the outer one, and not for each record.

    The two filters are `inner` and `outer`. The `table` has the inner places, with company_id, id, and the outer
    place's id in a column named like the outer filter.
    """

    inner: str
    outer: str
    table: sa.Table


class Pages:
    """The pages of one list.

    The first column of the SELECT `rows` is the record's id, and each join finds exactly one row or null. Each of the
    `filters` is, by name, a condition on the record's own table with a parameter of the same name. The condition
    `visible`, in literals, selects the list's records. The `statuses` are every value that `status` may have, in the
    order of its enum. The `places` are filters for a record's place, each a column with the indexes of `page_indexes`;
    `inside` says for each two of them which one lies in the other. The fields of the message `request` are the list's
    filters.

    Raises TypeError for a filter that has no index, no condition or no field in the request. So such a list fails when
    the service starts and not at a request.

    The statement cuts the longest page from the record's table first, by a literal LIMIT, and only then joins. With a
    parameter the planner assumes that LIMIT takes a tenth of the table, plans each call anew (four joins: 2.1 ms
    instead of 0.4), and joins as many rows as it believes an average company to have.
    """

    def __init__(
        self,
        rows: Selection,
        entity_id: sa.Column[int],
        filters: Mapping[str, sa.ColumnElement[bool]],
        visible: sa.ColumnElement[bool] | None = None,
        statuses: Sequence[str] = (),
        *,
        places: Sequence[str] = (),
        inside: Sequence[Inside] = (),
        request: type[Message] | None = None,
    ) -> None:
        self._rows = rows
        self._entity_id = entity_id
        self.table: Any = entity_id.table
        self.filters: Values = filters
        self.visible = sa.true() if visible is None else visible
        self._statuses: list[sa.ColumnElement[str]] = [sa.literal_column(f"'{status}'") for status in statuses]
        self._words = dict(enumerate(statuses, start=1))
        self._places = tuple(places)
        self._inside = list(inside)
        self._statements: dict[frozenset[str], Statement] = {}
        self._check_filters()
        self._check_indexes()
        if request is not None:
            self._check_request(request)

    def statement(self, names: frozenset[str]) -> Statement:
        """The statement for a set of filters. Its parameters: the filters', company_id, after_id and rows."""
        statement = self._statements.get(names)
        if statement is None:
            longest, order = self._longest(names)
            named = [column if isinstance(column, sa.Column) else column.label("place") for column in order]
            longest = longest.add_columns(*(column for column in named if not isinstance(column, sa.Column)))
            cut = longest.order_by(*order).limit(sa.literal_column(str(ROWS_MAX + 1))).subquery("longest")
            # By the subquery's columns. Otherwise the planner does not know its order, and joins and sorts all 201.
            visible = on_rows(self._rows, cut).order_by(*(cut.c[column.name] for column in named))
            statement = self._statements[names] = Statement(visible.limit(param("rows", sa.Integer)))
        return statement

    def _longest(self, names: frozenset[str]) -> tuple[Selection, list[Expression]]:
        """The longest page, from the record's table alone, and its order."""
        entity_id, after_id = self._entity_id, param("after_id", sa.BigInteger)
        record = sa.select(self.table)
        company = [(self.table.c.company_id, param("company_id", sa.BigInteger))]
        if self._is_one(names):
            conditions = [*is_of(company), entity_id > after_id, *(self.filters[name] for name in names)]
            return record.where(self.visible, *conditions), [entity_id]
        lead, also = names - {SINCE}, self.visible
        for inside in self._inside:
            if {inside.inner, inside.outer} <= lead:
                lead, also = lead - {inside.outer}, sa.and_(also, _lies_inside(inside))
        if not lead <= {*self._places, STATUS}:
            raise TypeError(f"{self._name} cannot be filtered by {_listed(names)} alone: no index has these.")
        place, status = (
            [self._having(name) for name in names_of if name in lead] for names_of in (self._places, (STATUS,))
        )
        if SINCE not in names:
            having, checks = list_of(company, place, status)
            conditions, order = stretch(having, [(entity_id, after_id + sa.literal_column("1"))])
            return record.where(also, *checks, *conditions), order
        every = [[(self._having(STATUS)[0], status_value)] for status_value in self._statuses]
        ids = ids_changed(self.table, place, status, [status] if status else every or [[]], also)
        ((column, value),) = company
        changed = entity_id == sa.func.any(sa.func.array(ids.scalar_subquery()))
        return record.where(column == value, changed), [entity_id]

    def _having(self, name: str) -> tuple[Any, Any]:
        return self.filters[name].left, self.filters[name].right

    def _is_one(self, names: frozenset[str]) -> bool:
        """Whether these filters match at most one record."""
        return any(key <= names | {"company_id"} for key in self._keys())

    def _keys(self) -> list[set[str]]:
        unique = (constraint for constraint in self.table.constraints if isinstance(constraint, sa.UniqueConstraint))
        return [{column.name for column in key.columns} for key in unique]

    @property
    def _name(self) -> str:
        return f"The list of {self.table.name}"

    def _check_filters(self) -> None:
        """Checks that each filter is a condition on its own parameter, and that indexes answer it and combinations."""
        parameters = {*self.filters, "company_id"}
        of_keys = set[str]().union(*(key for key in self._keys() if key <= parameters))
        leading = [name for name in (*self._places, STATUS) if name in self.filters]
        for name, condition in self.filters.items():
            in_condition = {
                element.key for element in visitors.iterate(condition) if isinstance(element, sa.BindParameter)
            }
            if in_condition != {name}:
                raise TypeError(
                    f"{self._name} has the filter {name}, whose condition asks for {_listed(in_condition)}."
                )
            if name not in {*leading, *of_keys, SINCE}:
                raise TypeError(
                    f"{self._name} has the filter {name}, and no index for it: make it a place with `page_indexes`, or "
                    "part of a unique constraint whose columns are filters."
                )
        for name in leading:
            condition = self.filters[name]
            is_column = isinstance(condition, sa.BinaryExpression) and getattr(condition.left, "table", 0) is self.table
            if not is_column or condition.operator is not operators.eq:
                raise TypeError(f"{self._name} has the filter {name}, which is not a column of its own = a parameter.")
            is_id = name == STATUS or isinstance(condition.left.type, sa.Integer)
            if not is_id and {STATUS, SINCE} & self.filters.keys():
                raise TypeError(
                    f"{self._name} has the filter {name}, which is no id: with {STATUS} or {SINCE} a place must be one."
                )
        related = [{inside.inner, inside.outer} for inside in self._inside]
        for pair in itertools.combinations((name for name in self._places if name in self.filters), 2):
            if {*pair} not in related:
                raise TypeError(f"{self._name} has the filters {_listed(pair)}: say which one lies inside the other.")

    def _check_indexes(self) -> None:
        """Checks that the table has an index for every set of places and status, and those of `updated_since`."""
        c, entity_id = self.table.c, self._entity_id
        status = [self._having(STATUS)[0]] if STATUS in self.filters else []
        needed: list[tuple[list[str], list[Expression]]] = []
        for place in ([], *([name] for name in self._places if name in self.filters)):
            place_columns = [self._having(name)[0] for name in place]
            last = place_columns[0] if place_columns else c.company_id
            needed.append((place, [c.company_id, *place_columns, entity_id]))
            if status:
                needed.append(([*place, STATUS], [status_key(last, status[0]), entity_id]))
            if SINCE in self.filters:
                needed.append(([*place, SINCE], [block_key(last, entity_id), *status, c[SINCE_COLUMN]]))
        if SINCE in self.filters:
            needed.append(([SINCE], [c.company_id, c[SINCE_COLUMN]]))
            if status and not self._statuses:
                raise TypeError(f"{self._name} has the filters {STATUS} and {SINCE}: say which statuses there are.")
        for names, columns in needed:
            if not self._has_index([str(column) for column in columns]):
                by = f"for its filters {_listed(names)}" if names else "in the order of its ids"
                raise TypeError(f"{self._name} has no index {by}: see `page_indexes`.")

    def _has_index(self, columns: list[str]) -> bool:
        """Whether an index of all the list's records begins with these columns or expressions."""
        keys = (key for key in self.table.constraints if isinstance(key, sa.UniqueConstraint | sa.PrimaryKeyConstraint))
        indexes: list[list[Any]] = [list(key.columns) for key in keys]
        for index in self.table.indexes:
            where = index.dialect_options["postgresql"]["where"]
            if where is None or str(where) == str(self.visible):
                indexes.append(list(index.expressions))
        return any([str(column) for column in index[: len(columns)]] == columns for index in indexes)

    def _check_request(self, request: type[Message]) -> None:
        fields = {field.name: field for field in request.DESCRIPTOR.fields if field.name not in PAGING}
        name = request.DESCRIPTOR.name
        for missing in sorted(fields.keys() - self.filters.keys()):
            raise TypeError(f"{name} has the filter {missing}, and {self._name.lower()} has no condition for it.")
        for missing in sorted(self.filters.keys() - fields.keys()):
            raise TypeError(f"{self._name} has the filter {missing}, and {name} has no field for it.")
        for field in fields.values():
            if field.enum_type is not None and len(field.enum_type.values) != len(self._words) + 1:
                many = len(field.enum_type.values) - 1  # 0 means unset
                statuses_here = f"{self._name.lower()} has {len(self._words)}"
                raise TypeError(f"{name} has {many} values of {field.name}, and {statuses_here}.")

    def filters_of(self, request: Message) -> NewValues:
        """The filters that a request sets, by name, as values for their parameters."""
        values: NewValues = {}
        for name in self.filters:
            if request.HasField(name):
                value = getattr(request, name)
                if request.DESCRIPTOR.fields_by_name[name].enum_type is not None:
                    value = self._words[value]
                values[name] = value.ToDatetime(datetime.UTC) if name == SINCE else value
        return values

    async def rows(self, on: Runs, company_id: int, after_id: int, limit: int, filters: Values) -> list[Record]:
        """Up to limit + 1 rows; the extra row means that another page follows. They are read `on` a connection or
        the database."""
        return await on.rows(
            self.statement(frozenset(filters)),
            company_id=company_id,
            after_id=after_id,
            rows=min(limit, ROWS_MAX) + 1,
            **filters,
        )


def on_rows(clause: Clause, rows: sa.FromClause) -> Clause:
    """The clause with the columns of a subquery or an alias in place of those of its table."""
    return ClauseAdapter(rows).traverse(clause)


def _lies_inside(inside: Inside) -> sa.ColumnElement[bool]:
    """The condition that the place of the inner filter lies in that of the outer one."""
    named = {"company_id": "company_id", "id": inside.inner, inside.outer: inside.outer}
    having = [(inside.table.c[column], param(name, sa.BigInteger)) for column, name in named.items()]
    # Only the key is searched. With statistics of few places, the company's index looks as good to the planner.
    conditions = (column == value if column.primary_key else is_of([(column, value)])[0] for column, value in having)
    return sa.select(inside.table.c.id).where(*conditions).correlate(None).exists()


def _listed(names: Iterable[str]) -> str:
    return " and ".join(sorted(names)) or "nothing"


def page_indexes(
    table: sa.Table,
    status: str = STATUS,
    visible: sa.ColumnElement[bool] | None = None,
    *,
    places: Sequence[str] = (),
) -> None:
    """Adds an index for each set of filters, ending in the id that orders every list, and the indexes of
    `updated_since` if the table has updated_at. The column of the status is `status`. For `visible` and `places`
    see `Pages`."""
    c = table.c
    if visible is not None:
        sa.Index(f"{table.name}_page", c.company_id, c.id, postgresql_where=visible)
    for place in ([], *([name] for name in places)):
        place_column = c[place[0]] if place else c.company_id
        if place:
            sa.Index(_named(table, "page", place), c.company_id, place_column, c.id, postgresql_where=visible)
        if status in c:
            name = _named(table, "page", [*place, "status"])
            sa.Index(name, status_key(place_column, c[status]), c.id, postgresql_where=visible)
        if SINCE_COLUMN in c:
            statuses = [c[status]] if status in c else []
            sa.Index(_named(table, "changes", place), block_key(place_column, c.id), *statuses, c[SINCE_COLUMN])
    if SINCE_COLUMN in c:
        sa.Index(f"{table.name}_updated", c.company_id, c[SINCE_COLUMN])


def _named(table: sa.Table, purpose: str, columns: Sequence[str]) -> str:
    place_names = "_and_".join(name.removesuffix("_id") for name in columns)
    return f"{table.name}_{purpose}_of_{place_names}" if place_names else f"{table.name}_{purpose}"


def page(rows: Sequence[Record], limit: int, render: Callable[[Record], msgspec.Struct]) -> Page:
    """The page of the rows that `Pages.rows` returned; a row's first column is the record's id."""
    limit = min(limit, ROWS_MAX)
    visible = rows[:limit]
    answer = Page(data=_encode([render(row) for row in visible]))
    if len(rows) > limit:
        answer.next_after_id = visible[-1][0]
    return answer
