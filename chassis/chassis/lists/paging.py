"""Keyset pages (spec 4.12): the next `limit` records after an id, one statement for each set of filters.

One statement with `(:p IS NULL OR …)` would get one generic plan for all: 127 ms where the right one takes 0.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa
from asyncpg import Record
from sqlalchemy.sql.util import ClauseAdapter

from chassis.db.database import Database
from chassis.db.statements import Statement, param
from chassis.lists.updated_since import block_key, ids_changed, is_of, list_of, status_key, stretch
from makeready.common.v1.documents_pb2 import Page

ROWS_MAX = 200
SINCE, SINCE_COLUMN = "updated_since", "updated_at"
PLACES = ("property_id", "unit_id")

_encode = msgspec.json.Encoder().encode


class Pages:
    """The pages of one list.

    rows: its first column is the record's id, and each join finds exactly one row or null. filters: a condition on
    the record's own table with a parameter of the same name, for each filter; `updated_since` and a list's statuses
    need the indexes of `page_indexes`. shown: which records are in the list at all, in literals. statuses: every value
    that `status` may have.

    The longest page is cut from the record's table first, by a literal, and only then joined. Otherwise the planner
    takes a parameter of LIMIT for a tenth of the table, plans each call anew to do better (four joins: 2.1 ms where
    this takes 0.4), and joins all that it believes an average company to have.
    """

    def __init__(
        self,
        rows: sa.Select[Any],
        company: sa.Column[int],
        entity_id: sa.Column[int],
        filters: Mapping[str, sa.ColumnElement[bool]],
        shown: sa.ColumnElement[bool] | None = None,
        statuses: Sequence[str] = (),
    ) -> None:
        self._rows = rows
        self._entity_id = entity_id
        self.table: Any = entity_id.table
        self.filters: Mapping[str, Any] = filters
        self.shown = sa.true() if shown is None else shown
        self._statuses: list[sa.ColumnElement[str]] = [sa.literal_column(f"'{status}'") for status in statuses]
        self._statements: dict[frozenset[str], Statement] = {}

    def statement(self, names: frozenset[str]) -> Statement:
        """The statement of one set of filters. Its parameters: theirs, company_id, after_id and rows."""
        found = self._statements.get(names)
        if found is None:
            longest, order = self._longest(names)
            named = [one if isinstance(one, sa.Column) else one.label("place") for one in order]
            longest = longest.add_columns(*(one for one in named if not isinstance(one, sa.Column)))
            cut = longest.order_by(*order).limit(sa.literal_column(str(ROWS_MAX + 1))).subquery("longest")
            # By its own columns, or the planner would not know that it is in order, and join and sort all 201.
            shown = ClauseAdapter(cut).traverse(self._rows).order_by(*(cut.c[one.name] for one in named))
            found = self._statements[names] = Statement(shown.limit(param("rows", sa.Integer)))
        return found

    def _longest(self, names: frozenset[str]) -> tuple[sa.Select[Any], list[Any]]:
        """The longest page of the record's table alone, and its order."""
        entity_id, after_id = self._entity_id, param("after_id", sa.BigInteger)
        own = sa.select(self.table)
        company = [(self.table.c.company_id, param("company_id", sa.BigInteger))]
        if self._is_one(names):
            conditions = [*is_of(company), entity_id > after_id, *(self.filters[name] for name in names)]
            return own.where(*conditions), [entity_id]
        lead, also = names - {SINCE}, self.shown
        if {"property_id", "unit_id"} <= lead:
            lead, also = lead - {"property_id"}, sa.and_(also, self._unit_in_property())
        assert lead <= set(PLACES) | {"status"}, f"{sorted(lead)} are not all filters that have indexes"
        place, status = ([self._having(name) for name in some if name in lead] for some in (PLACES, ("status",)))
        if SINCE not in names:
            having, checks = list_of(company, place, status)
            conditions, order = stretch(having, [(entity_id, after_id + sa.literal_column("1"))])
            return own.where(also, *checks, *conditions), order
        every = [[(self._having("status")[0], one)] for one in self._statuses]
        ids = ids_changed(self.table, place, status, [status] if status else every or [[]], also)
        ((column, value),) = company
        return own.where(column == value, entity_id == sa.func.any(sa.func.array(ids.scalar_subquery()))), [entity_id]

    def _having(self, name: str) -> tuple[Any, Any]:
        return self.filters[name].left, self.filters[name].right

    def _is_one(self, names: frozenset[str]) -> bool:
        """Whether at most one record has these."""
        keys = (one for one in self.table.constraints if isinstance(one, sa.UniqueConstraint))
        return any({column.name for column in key.columns} <= names | {"company_id"} for key in keys)

    def _unit_in_property(self) -> sa.ColumnElement[bool]:
        """A unit stays in its property: whether it lies in this one is asked once, not of each of its records."""
        unit = next(iter(self.table.c.unit_id.foreign_keys)).column.table
        named = {"company_id": "company_id", "id": "unit_id", "property_id": "property_id"}
        having = [(unit.c[column], param(name, sa.BigInteger)) for column, name in named.items()]
        # By its key alone: to a planner that knows few units, the company's index looks as good.
        said = (column == value if column.primary_key else is_of([(column, value)])[0] for column, value in having)
        return sa.select(unit.c.id).where(*said).correlate(None).exists()

    async def rows(
        self, database: Database, company_id: int, after_id: int, limit: int, filters: Mapping[str, Any]
    ) -> list[Record]:
        """Up to limit + 1 rows: one more than the page tells whether another follows."""
        return await database.rows(
            self.statement(frozenset(filters)),
            company_id=company_id,
            after_id=after_id,
            rows=min(limit, ROWS_MAX) + 1,
            **filters,
        )


def page_indexes(table: sa.Table, status: str = "status", shown: sa.ColumnElement[bool] | None = None) -> None:
    """An index for each set of filters, ending in the id that orders every list; and those of `changes` where the
    table has updated_at. status: the column that is filtered by. shown: see `Pages`."""
    c = table.c
    if shown is not None:
        sa.Index(f"{table.name}_page", c.company_id, c.id, postgresql_where=shown)
    for place in ([], *([name] for name in PLACES)):
        of = c[place[0]] if place else c.company_id
        if place:
            sa.Index(_named(table, "page", place), c.company_id, of, c.id, postgresql_where=shown)
        if status in c:
            name = _named(table, "page", [*place, "status"])
            sa.Index(name, status_key(of, c[status]), c.id, postgresql_where=shown)
        if SINCE_COLUMN in c:
            statuses = [c[status]] if status in c else []
            sa.Index(_named(table, "changes", place), block_key(of, c.id), *statuses, c[SINCE_COLUMN])
    if SINCE_COLUMN in c:
        sa.Index(f"{table.name}_updated", c.company_id, c[SINCE_COLUMN])


def _named(table: sa.Table, what: str, columns: Sequence[str]) -> str:
    of = "_and_".join(name.removesuffix("_id") for name in columns)
    return f"{table.name}_{what}_of_{of}" if of else f"{table.name}_{what}"


def page(rows: Sequence[Record], limit: int, render: Callable[[Record], msgspec.Struct]) -> Page:
    """The page of what `Pages.rows` returned; the row's first column is the record's id."""
    limit = min(limit, ROWS_MAX)
    shown = rows[:limit]
    found = Page(data=_encode([render(row) for row in shown]))
    if len(rows) > limit:
        found.next_after_id = shown[-1][0]
    return found
