"""The records of one kind in the order of their last change: a page of a feed.

    PARCEL_CHANGES = Changes("parcel", PARCEL_DOCUMENTS)  # in queries.py, next to the list

    async def ListParcelChanges(self, request, call):  # in service.py; parcels: a `RecordReads`
        company_id = identity.caller(call).company_id
        return pb.ListParcelChangesResponse(feed=await self.parcels.feed(company_id, request))

    app.follows(PARCEL_CHANGES)  # in __main__.py: moves the records that show a renamed row

The request has the fields `bytes position`, `int32 limit` and `bool from_now`; the response has `feed`, a
makeready.common.v1.Feed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import msgspec
import sqlalchemy as sa
from asyncpg import Record
from sqlalchemy.dialects.postgresql import array
from sqlalchemy.sql import operators, visitors

from chassis.changes.documents import ONE_SNAPSHOT, Documents, has_all
from chassis.changes.positions import Position, expired, horizon_columns, unpacked
from chassis.changes.tables import BESIDE, COLUMN, INFO, SERVED, WITHDRAWN, XMIN, Follow, Xid8
from chassis.db.database import IN_ORDER, Connection, Database
from chassis.db.statements import Selection, Statement, param
from chassis.lists.paging import ROWS_MAX, on_rows
from chassis.records.shapes import Renderer
from chassis.refusals import Unavailable
from makeready.common.v1.documents_pb2 import Feed

# If rows are left out for their reader, the page reads the rows after them: with at most so many statements.
PASSES_MAX = 10

_encode = msgspec.json.Encoder().encode


class FeedRequest(Protocol):
    """The fields of a feed's request."""

    position: bytes
    """Empty for the beginning: all records."""
    limit: int
    from_now: bool
    """Asks for no documents, and for the position after all records that can be read now."""


class Changes:
    """The changes of one kind of records.

    The `kind` is the entity_type. The `records` are documents; or, for records that have none and show no other table,
    the SELECT of the list, whose first column is the record's id, with their table. The table is declared with
    `make_followable`; records that it does not call served are gone, and so are those that were withdrawn.

    Raises TypeError if the records show a row of another table that they do not follow: their copies would stay as they
    are for ever. So such a feed fails when the service starts.
    """

    def __init__(self, kind: str, records: Documents[Any] | Selection, table: sa.Table | None = None) -> None:
        self.kind = kind
        self.documents: Documents[Any] | None = None
        if isinstance(records, Documents):
            self.documents, joined, rows, table = records, records.joined, records.rows, records.table
        else:
            joined = rows = records
        assert table is not None, "a SELECT comes with its table"
        self.table = table
        if COLUMN not in table.c:
            raise TypeError(f"The table {table.name} has no {COLUMN}: see `make_followable`.")
        self.follows: tuple[Follow, ...] = table.info[INFO]
        if missing := unfollowed(joined, table, self.follows):
            names = ", ".join(missing)
            raise TypeError(f"The changes of {table.name} show {names}, and nothing follows it: see `make_followable`.")
        c, served = table.c, table.info[SERVED]
        read = {
            column.name
            for column in visitors.iterate(joined)
            if isinstance(column, sa.Column) and column.table is table
        }
        if hidden := read & table.info[BESIDE]:
            raise TypeError(f"The changes of {table.name} show {min(hidden)}, whose changes move no record.")
        company = sa.func.any(array([param("company_id", sa.BigInteger)]))
        after = sa.tuple_(param("xid", Xid8()), param("after_id", sa.BigInteger))
        # As in `Pages`: only the index with all of these has the order, and the page is cut before anything is joined.
        here = (c.company_id == company, sa.tuple_(c[COLUMN], c.id) > after)
        order = (c.company_id, c[COLUMN], c.id)
        changed = sa.select(table).where(*here, c[COLUMN] < param("horizon", Xid8())).order_by(*order)
        cut = changed.limit(sa.literal_column(str(ROWS_MAX + 1))).subquery("longest")
        with_place = rows.add_columns(c[COLUMN].label("xid"), (sa.true() if served is None else served).label("served"))
        page = on_rows(with_place, cut).order_by(cut.c.company_id, cut.c[COLUMN], cut.c.id)
        self.page = Statement(page.limit(param("rows", sa.Integer)))
        """Parameters: company_id, xid, after_id, horizon, rows."""
        withdrawn = _Withdrawn(table, company, after)
        self.withdrawn = withdrawn.page
        self.newest = Statement(withdrawn.newest_with(c.company_id == company, by=order))
        """The last record that can be read, in a transaction with IN_ORDER. Parameter: company_id."""
        epoch = table.metadata.tables["changes_epoch"]
        is_there = sa.select(c.id).where(*here, c[COLUMN] < XMIN).order_by(*order).limit(_ONE)
        self.look = Statement(
            sa.select(
                *horizon_columns(epoch),
                sa.or_(is_there.scalar_subquery().is_not(None), withdrawn.is_there).label("is_there"),
                withdrawn.is_there.label("has_withdrawn"),
            )
        )
        """Whether anything waits. Parameters: company_id, xid, after_id."""
        head = _encode({"schema_version": 1, "entity_type": kind, "entity_id": 0}).removesuffix(b"0}")
        self._here = head + b'%d,"gone":false,"record":%b}'
        self._gone = head + b'%d,"gone":true,"record":null}'

    async def feed(self, database: Database, company_id: int, request: FeedRequest, renderer: Renderer[Any]) -> Feed:
        """The page after the request's position. The renderer is of the records' shape.

        Raises Refusal 410 for a position from another history, and Unavailable while the stored order is that of
        another server: see `chassis.changes.tracking`.
        """
        after = unpacked(request.position) if request.position else None
        at = {"company_id": company_id, "xid": 0, "after_id": 0}
        if after is None:
            async with database.transaction(IN_ORDER, writes=False) as connection:
                look = await self._look_around(connection, after, at)
                end = await self._end(connection, company_id)
            begun = end[0]
            if request.from_now:
                return Feed(position=Position(look["epoch"], *end, begun).packed())
        else:
            at |= {"xid": after.xid, "after_id": after.entity_id}
            begun = after.begun
        start = (company_id, after, begun, at, request)
        async with database.connection() as connection:
            feed = await self._page(connection, renderer, *start)
        if feed is None:
            async with database.transaction(ONE_SNAPSHOT, writes=False) as connection:
                feed = await self._page(connection, renderer, *start, in_one_snapshot=True)
        assert feed is not None, "in one snapshot all is rendered"
        return feed

    async def _page(
        self,
        connection: Connection,
        renderer: Renderer[Any],
        company_id: int,
        after: Position | None,
        begun: int,
        at: dict[str, int],
        request: FeedRequest,
        *,
        in_one_snapshot: bool = False,
    ) -> Feed | None:
        """None if a document is missing, which must be rendered from the snapshot that the rows were read from."""
        look = await self._look_around(connection, after, at)
        if not look["is_there"] and after is not None:
            return Feed(position=request.position)
        limit = min(request.limit, ROWS_MAX)
        page_rows: list[Record] = []
        more, rows_max = look["is_there"], limit + 1
        xid, after_id = at["xid"], at["after_id"]
        for _ in range(PASSES_MAX):
            if not more or len(page_rows) == limit:
                break
            place = {"company_id": company_id, "xid": xid, "after_id": after_id}
            rows = await connection.rows(self.page, **place, horizon=look["xmin"], rows=rows_max)
            if look["has_withdrawn"]:
                rows += await connection.rows(self.withdrawn, **place, horizon=look["xmin"], rows=rows_max)
                rows = sorted(rows, key=lambda row: (row["xid"], row[0]))[:rows_max]
            more = len(rows) == rows_max
            for row in rows:
                if row["served"] or row["xid"] > begun:
                    if len(page_rows) == limit:
                        more = True
                        break
                    page_rows.append(row)
                xid, after_id = row["xid"], row[0]
            rows_max = ROWS_MAX + 1
        served = [row for row in page_rows if row["served"]]
        if self.documents is None:
            records = [renderer.json(tuple(row)[: len(renderer.shape.columns)]) for row in served]
        elif in_one_snapshot or has_all(served):
            documents = await self.documents.of_rows(connection, company_id, served)
            records = [renderer.served(document) for document in documents]
        else:
            return None
        following = iter(records)
        return Feed(
            documents=[
                self._here % (row[0], next(following)) if row["served"] else self._gone % row[0] for row in page_rows
            ],
            position=Position(look["epoch"], xid, after_id, begun).packed(),
            more=more,
        )

    async def _end(self, connection: Connection, company_id: int) -> tuple[int, int]:
        """The transaction and the id of the last record that can be read.

        Not the horizon: a crash takes back the numbers of transactions that left nothing on disk, such as refused ones
        (756, 500 refused ones, kill -9: the next was 849). A later transaction may get such a number again, and a
        reader at the horizon would miss it.
        """
        last = await connection.row(self.newest, company_id=company_id)
        return (0, 0) if last is None else (last["xid"], last["id"])

    async def _look_around(self, connection: Connection, after: Position | None, at: dict[str, int]) -> Record:
        look = await connection.row(self.look, **at)
        if look is None or not look["is_own"]:
            raise Unavailable("the records were restored to this server, and their order is not yet its own")
        if after is not None and (after.epoch != look["epoch"] or after.xid > look["xmax"]):
            raise expired()
        return look


_ONE = sa.literal_column("1", sa.Integer)


class _Withdrawn:
    """The records of a table that were withdrawn, in the order of changes."""

    def __init__(self, table: sa.Table, company: Any, after: sa.ColumnElement[Any]) -> None:
        """company, after: of a page of the records."""
        w = table.metadata.tables[WITHDRAWN].c
        self._mine = (w.company_id == company, w.kind == sa.literal_column(f"'{table.name}'", sa.Text))
        self._order = (w.company_id, w.kind, w[COLUMN], w.id)
        here = (*self._mine, sa.tuple_(w[COLUMN], w.id) > after)
        rows = sa.select(w.id, w[COLUMN].label("xid"), sa.false().label("served"))
        page = rows.where(*here, w[COLUMN] < param("horizon", Xid8())).order_by(*self._order)
        self.page = Statement(page.limit(param("rows", sa.Integer)))
        """Parameters: as for the page of records."""
        first = sa.select(w.id).where(*here, w[COLUMN] < XMIN).order_by(*self._order).limit(_ONE)
        self.is_there = first.scalar_subquery().is_not(None)

    def newest_with(self, *conditions: sa.ColumnElement[bool], by: tuple[Any, ...]) -> sa.Select[Any]:
        """The transaction and the id of the newest record, withdrawn or not. by: the order of the others."""
        parts = [_newest(conditions, by), _newest(self._mine, self._order)]
        both = sa.union_all(*parts).subquery("both_kinds")
        newest = sa.select(both.c.xid, both.c.id).order_by(both.c.xid.desc(), both.c.id.desc())
        return newest.limit(_ONE)


def _newest(conditions: tuple[sa.ColumnElement[bool], ...], by: tuple[Any, ...]) -> sa.Select[Any]:
    *_, xid, record_id = by
    rows = sa.select(xid.label("xid"), record_id.label("id")).where(*conditions, xid < XMIN)
    return sa.select(rows.order_by(*(column.desc() for column in by)).limit(_ONE).subquery())


def unfollowed(rows: Selection, table: sa.Table, follows: tuple[Follow, ...]) -> list[str]:
    """The columns of other tables in a SELECT that the records do not follow, as "property.name".

    Of several columns by which a table is joined, one suffices: it finds all records that show the row, and more. The
    columns of a key never change.
    """
    used: dict[Any, set[str]] = {}  # by table or alias
    equal: dict[Any, set[tuple[str, str]]] = {}  # its column, the record's column
    for element in visitors.iterate(rows):
        if (
            isinstance(element, sa.Column)
            and isinstance(element.table, sa.FromClause)
            and _base(element.table) is not table
        ):
            used.setdefault(element.table, set()).add(element.name)
        for column, own_column in _sides(element):
            is_join = _base(column.table) is not table and _base(own_column.table) is table
            if is_join and own_column.name != "company_id":
                equal.setdefault(column.table, set()).add((column.name, own_column.name))
    missing = []
    for other in sorted(used, key=lambda alias: str(alias.name)):
        base = _base(other)
        fixed = {"company_id", *base.primary_key.columns.keys()}
        joins = {}
        for key, refers_by in sorted(equal.get(other, {("", "")})):
            pair = (key, refers_by)
            matching = [follow for follow in follows if follow.table is base and (follow.key, follow.refers_by) == pair]
            seen = {*fixed, key}.union(*(follow.columns for follow in matching)) if matching else set()
            joins[refers_by] = used[other] - seen
        refers_by = min(joins, key=lambda name: len(joins[name]))
        missing += [f"{base.name}.{name} by {refers_by}" for name in sorted(joins[refers_by])]
    return missing


def _base(table: Any) -> Any:
    while isinstance(table, sa.Alias):
        table = table.element
    return table


def _sides(element: Any) -> Iterator[tuple[Any, Any]]:
    """The two columns of an equality of columns, in both orders."""
    if not isinstance(element, sa.BinaryExpression) or element.operator is not operators.eq:
        return
    if isinstance(element.left, sa.Column) and isinstance(element.right, sa.Column):
        yield element.left, element.right
        yield element.right, element.left
