"""Deletes all rows of a company that has ended, and counts what is left.

The tables are found from the metadata: those with a column `company_id`, those whose foreign keys lead to one, and
those that say whose their rows are (`chassis.db.belonging`). A table that is none of these raises TypeError, so a new
one cannot be forgotten. Rows go in batches, children before parents. A process may be killed between any two batches.

Nothing brings rows back. A consumer applies no event of a company that has ended, and a replica stores no row of it.
What was under way when it ended, at most a request with its token, is found by the later rounds.
"""

from __future__ import annotations

import asyncio
import contextlib
import graphlib
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from typing import Any, Protocol

import asyncpg
import sqlalchemy as sa
import structlog
from prometheus_client import Counter

from chassis.auth.identity import Call
from chassis.db import belonging
from chassis.db.database import IN_ORDER, Connection, Database
from chassis.db.rows import array_rows_of, columns_of
from chassis.db.statements import UUIDS, Statement, param
from chassis.messaging.outbox import OUTBOX
from chassis.refusals import Unavailable
from chassis.runtime.failpoints import failpoint
from chassis.writes.audit import AUDIT, DELETE_ENTRIES
from makeready.common.v1 import company_purge_pb2 as pb
from makeready.events.v1.events_pb2 import Event

BATCH_MIN, BATCH_MAX = 16, 1024
SLOW_SECONDS = 0.5
"""A batch that takes longer is followed by a smaller one. To delete a row to which rows of another table refer by its
id alone, PostgreSQL reads that table, whosever its rows are."""
OUTBOX_PAGE = 5000
COUNTED_MAX = 100_000
"""Of each table: counting all rows of a large one would outlast a statement."""
LOOK_SECONDS = 30.0
AGAIN_SECONDS = 3600.0
"""How long a company of which nothing was left is not looked at; after each look that finds nothing, twice as long."""
_COMPANY_ID = param("company_id", sa.BigInteger)
_ROWS = param("rows", sa.Integer)

log = structlog.stdlib.get_logger(__name__)
PURGED = Counter("makeready_purged_rows_total", "Rows deleted with their ended sandbox")

Condition = sa.ColumnElement[bool]


class _Rows(Protocol):
    """The rows of companies in one table."""

    async def delete_some(self, connection: Connection, company_id: int, rows: int) -> int:
        """Deletes up to so many rows; returns how many."""

    async def count(self, connection: Connection, company_id: int) -> int:
        """How many there are."""


class CompanyRows:
    """The rows of companies in one database."""

    def __init__(self, database: Database, metadata: sa.MetaData) -> None:
        """Raises TypeError for a table that does not say whose its rows are."""
        self._database = database
        self._parts = {table.name: _rows_of(table) for table in _children_first(metadata)}
        self._batches = dict.fromkeys(self._parts, BATCH_MIN)

    @property
    def tables(self) -> Collection[str]:
        """The tables from which rows are deleted."""
        return self._parts.keys()

    async def delete(self, company_id: int) -> int:
        """Deletes all rows of a company; returns how many. Processes that call it at once take turns, batch by batch.

        Raises DatabaseUnavailable, and ForeignKeyViolationError if a write under way adds a row to one that is deleted.
        """
        gone = 0
        while deleted := await self._delete_once(company_id):
            gone += deleted
        return gone

    async def _delete_once(self, company_id: int) -> int:
        """One round. A deletion may add rows to another table, such as marks for readers of changes."""
        gone = 0
        for name in self._parts:
            while deleted := await self._delete_batch(name, company_id):
                gone += deleted
        return gone

    async def _delete_batch(self, name: str, company_id: int) -> int:
        began, rows = time.monotonic(), self._batches[name]
        self._batches[name] = max(rows // 2, BATCH_MIN)  # also for the next try, if the server gives this one up
        async with self._database.transaction(IN_ORDER) as connection:
            deleted = await self._parts[name].delete_some(connection, company_id, rows)
        took = time.monotonic() - began
        if took < SLOW_SECONDS:
            self._batches[name] = min(2 * rows, BATCH_MAX)
        failpoint("purge-batch")
        PURGED.inc(deleted)
        if deleted:  # the pause leaves the database to others
            await asyncio.sleep(took)
        return deleted

    async def count(self, company_id: int) -> dict[str, int]:
        """How many rows of a company there are by table, up to COUNTED_MAX; those without are left out."""
        async with self._database.transaction(IN_ORDER, writes=False) as connection:
            counts = {name: await part.count(connection, company_id) for name, part in self._parts.items()}
        return {name: rows for name, rows in counts.items() if rows}


class CompanyPurge:
    """Deletes the rows of the companies that have ended, in the background, and serves how many are left.

    Any number of processes may do so at once.
    """

    def __init__(self, rows: CompanyRows, ended: Callable[[], Awaitable[Sequence[int]]]) -> None:
        """`ended` returns the ids of all companies that have ended."""
        self._rows, self._ended = rows, ended
        self._asked = asyncio.Event()
        self._clean: dict[int, tuple[float, float]] = {}
        """When nothing was left of a company, and for how long it is not looked at from then on."""

    async def run(self) -> None:
        """Deletes until cancelled."""
        while True:
            self._asked.clear()
            try:
                await self.purge()
            except (Unavailable, asyncpg.IntegrityConstraintViolationError, asyncpg.DeadlockDetectedError) as error:
                log.warning("purge_waits", reason=str(error))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._asked.wait(), LOOK_SECONDS)

    async def purge(self) -> int:
        """Deletes what is left of the companies that have ended; returns how many rows. Raises as `CompanyRows.delete`
        does."""
        now, gone = time.monotonic(), 0
        for company_id in await self._ended():
            clean_at, seconds = self._clean.get(company_id, (float("-inf"), 0.0))
            if now - clean_at < seconds:
                continue
            deleted = await self._rows.delete(company_id)
            self._clean[company_id] = now, AGAIN_SECONDS if deleted else max(AGAIN_SECONDS, 2 * seconds)
            gone += deleted
            if deleted:
                log.info("company_purged", company_id=company_id, rows=deleted)
        return gone

    async def left(self, company_id: int) -> dict[str, int]:
        """How many rows of an ended company are left, by table. They are deleted soon after."""
        rows = await self._rows.count(company_id)
        if rows:
            self._clean.pop(company_id, None)
            self._asked.set()
        return rows

    async def CountCompanyRows(self, request: pb.CountCompanyRowsRequest, _call: Call) -> pb.CountCompanyRowsResponse:
        is_ended = request.company_id in await self._ended()
        return pb.CountCompanyRowsResponse(is_ended=is_ended, rows=await self.left(request.company_id))


def ended_companies(database: Database, company: sa.Table) -> Callable[[], Awaitable[Sequence[int]]]:
    """The ids of the companies that have ended, by the replica `company`."""
    ended = Statement(sa.select(company.c.id).where(company.c.ended).order_by(company.c.id))

    async def ids() -> Sequence[int]:
        return [row["id"] for row in await database.rows(ended)]

    return ids


class _TableRows:
    def __init__(self, table: sa.Table, children: Sequence[Condition]) -> None:
        """The rows of companies in the table. A row stays while one of the conditions `children` does."""
        self._key = [column.name for column in table.primary_key]
        batch = _keys_of(table).where(*(sa.not_(child) for child in children)).limit(_ROWS)
        if any(constraint.referred_table is table for constraint in table.foreign_key_constraints):
            # The newest first: a row refers to an older one, if to any. For other tables, an order might have
            # PostgreSQL read the rows of all companies in that order.
            batch = batch.order_by(*(column.desc() for column in table.primary_key))
        self._some = Statement(batch)
        keys = array_rows_of(table, self._key)
        self._delete = Statement(sa.delete(table).where(*(table.c[name] == keys.c[name] for name in self._key)))
        self._count = _counted(table)

    async def delete_some(self, connection: Connection, company_id: int, rows: int) -> int:
        keys = await connection.rows(self._some, company_id=company_id, rows=rows)
        keys.sort(key=tuple, reverse=True)  # two processes lock them in one order
        if keys:
            await connection.execute(self._delete, **columns_of(keys, self._key))
        return len(keys)

    async def count(self, connection: Connection, company_id: int) -> int:
        rows: int = await connection.value(self._count, company_id=company_id)
        return rows


def _keys_of(table: sa.Table) -> sa.Select[Any]:
    """The primary keys of a company's rows."""
    keys = sa.select(*table.primary_key)
    named = _named_by(table)
    if named is None:
        return keys.where(_of_company(table))
    # From the company's rows of the other table, whatever the statistics say: OFFSET prevents another way. From all
    # rows of this one it would take as long as all companies have.
    column, key = named
    parents = sa.select(key).where(_of_company(_table_of(key))).offset(sa.literal_column("0")).subquery()
    return keys.select_from(parents.join(table, column == parents.c[key.name]))


def _counted(table: sa.Table) -> Statement:
    rows = _keys_of(table).limit(sa.literal_column(str(COUNTED_MAX)))
    return Statement(sa.select(sa.func.count()).select_from(rows.subquery()))


class _AuditRows:
    """A service may not delete entries of the audit log. A function of the owner's deletes those of ended sandboxes."""

    def __init__(self, table: sa.Table) -> None:
        function = getattr(sa.func, DELETE_ENTRIES)
        self._delete = Statement(sa.select(function(_COMPANY_ID, _ROWS, type_=sa.BigInteger)))
        self._count = _counted(table)

    async def delete_some(self, connection: Connection, company_id: int, rows: int) -> int:
        deleted: int = await connection.value(self._delete, company_id=company_id, rows=rows)
        return deleted

    async def count(self, connection: Connection, company_id: int) -> int:
        rows: int = await connection.value(self._count, company_id=company_id)
        return rows


class _OutboxRows:
    """The company stands in the message. What an event says of the company itself stays: it says that it has ended."""

    def __init__(self, table: sa.Table) -> None:
        t = table.c
        # Few events of other companies hold these bytes by chance.
        has_bytes = sa.func.pg_catalog.position(t.message, param("company", sa.LargeBinary)) > sa.literal_column("0")
        rows = sa.select(t.event_id, sa.case((has_bytes, t.message), else_=sa.null()).label("message"))
        page = rows.where(t.event_id > param("after", t.event_id.type)).order_by(t.event_id)
        self._page = Statement(page.limit(_ROWS))
        self._delete = Statement(sa.delete(table).where(t.event_id == sa.func.any(param("ids", UUIDS))))

    async def _ids(self, connection: Connection, company_id: int) -> AsyncIterator[uuid.UUID]:
        company, after = Event(company_id=company_id).SerializeToString(), uuid.UUID(int=0)
        while rows := await connection.rows(self._page, company=company, after=after, rows=OUTBOX_PAGE):
            for row in rows:
                if row["message"] is not None and _is_purged(Event.FromString(row["message"]), company_id):
                    yield row["event_id"]
            after = rows[-1]["event_id"]

    async def delete_some(self, connection: Connection, company_id: int, rows: int) -> int:
        ids: list[uuid.UUID] = []
        async for event_id in self._ids(connection, company_id):
            ids.append(event_id)
            if len(ids) == rows:
                break
        if ids:
            await connection.execute(self._delete, ids=ids)
        return len(ids)

    async def count(self, connection: Connection, company_id: int) -> int:
        return len([event_id async for event_id in self._ids(connection, company_id)])


def _is_purged(event: Event, company_id: int) -> bool:
    is_the_companys_row = event.HasField("references") and bool(event.references.companies)
    return event.company_id == company_id and not is_the_companys_row


def _rows_of(table: sa.Table) -> _Rows:
    if table.name == AUDIT:
        return _AuditRows(table)
    if table.name == OUTBOX:
        return _OutboxRows(table)
    children = []
    for child in table.metadata.tables.values():
        if (named := _named_by(child)) is not None and named[1].table is table:
            column, key = named
            children.append(sa.exists().where(column == key))
    return _TableRows(table, children)


def _is_purged_from(table: sa.Table) -> bool:
    return belonging.NONE not in table.info


def _named_by(table: sa.Table) -> tuple[sa.Column[Any], sa.Column[Any]] | None:
    """The column that names the row to whose company a row belongs, and that row's column, without a foreign key."""
    if belonging.THROUGH not in table.info:
        return None
    column, parent = table.info[belonging.THROUGH]
    parent_table, _, key = parent.partition(".")
    return table.c[column], table.metadata.tables[parent_table].c[key]


def _table_of(column: sa.Column[Any]) -> sa.Table:
    assert isinstance(column.table, sa.Table)
    return column.table


def _of_company(table: sa.Table) -> Condition:
    """Whether a row of the table is the company's."""
    if (named := _named_by(table)) is not None:
        column, key = named
        return sa.exists(sa.select(key).where(key == column, _of_company(_table_of(key))))
    if "company_id" in table.c:
        return table.c.company_id == _COMPANY_ID
    for constraint in sorted(table.foreign_key_constraints, key=lambda constraint: str(constraint.name)):
        parent = constraint.referred_table
        if parent is not table and _is_purged_from(parent):
            pairs = [element.column == element.parent for element in constraint.elements]
            return sa.exists(sa.select(sa.literal_column("1")).select_from(parent).where(*pairs, _of_company(parent)))
    if table.name == OUTBOX:
        return sa.true()
    raise TypeError(
        f"{table.name}: whose its rows are is not said: give it a column company_id, a foreign key, or an info of "
        "chassis.db.belonging"
    )


def _children_first(metadata: sa.MetaData) -> Sequence[sa.Table]:
    """The tables from which rows are deleted, those before others whose rows they refer to."""
    purged = [table for table in metadata.sorted_tables if _is_purged_from(table)]
    order: graphlib.TopologicalSorter[sa.Table] = graphlib.TopologicalSorter()
    for table in purged:
        _of_company(table)
        order.add(table)
        parents = {constraint.referred_table for constraint in table.foreign_key_constraints} - {table}
        if (named := _named_by(table)) is not None:
            parents.add(table.metadata.tables[named[1].table.name])
        for parent in parents:
            if _is_purged_from(parent):
                order.add(parent, table)
    return list(order.static_order())
