"""Renders and moves the records that show a changed row; renders those without a document; the age of the horizon; what
a restore needs.

A trigger has marked such records in the transaction of the change. Here each of them, a batch at a time, gets its new
document and the number of a later transaction, in one update: so readers get it again, and a list, a fetch and a feed
agree at every moment. Nothing else of it changes: not its version, not its updated_at. One whose document already has
the new name stays. A process that dies leaves the mark with the last id that has moved.

A transaction that was under way at the change may have read the old name, and no batch sees the record that it writes.
So a mark stays until all such transactions have ended, and their records are then compared once more.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
import structlog
from prometheus_client import Counter, Gauge
from sqlalchemy.dialects.postgresql import array

from chassis.changes.documents import Documents, Key, columns_of_keys
from chassis.changes.feed import Changes
from chassis.changes.positions import horizon_columns
from chassis.changes.tables import COLUMN, INFO, WITHDRAWN, XMAX, XMIN, Follow, Xid8, served_of
from chassis.db import revisions
from chassis.db.database import IN_ORDER, Connection, Database
from chassis.db.history import SERVER
from chassis.db.rows import array_rows
from chassis.db.statements import Expression, Statement, TableColumn, param
from chassis.records.shapes import DOCUMENT, DOCUMENT_SHAPE

BATCH_ROWS = 500
MARKS_MAX = 200
PAUSE = 0.5  # of the time of a batch, a third of which waits for the disk: so half of a core is taken at most
IDLE_SECONDS = 0.5
SAMPLE_SECONDS = 2.0
COUNT_SECONDS = 5.0
LOOK_PAUSES = 10  # a look for records without documents takes a tenth of a core at most
COUNTED_MAX = 100_000  # a million would take a quarter of a second

log = structlog.stdlib.get_logger(__name__)
WAITING = Gauge(
    "makeready_changes_touching_rows",
    "Records that show a changed row and have not moved to the end yet, for each such row; at most 100000 a reference",
)
MOVED = Counter("makeready_changes_touched_rows_total", "Records moved because they show a row that changed")
LAG = Gauge("makeready_changes_lag_seconds", "Age of the newest instant whose transactions have all ended")

Place = tuple[int, ...]
_IDS = sa.ARRAY(sa.BigInteger)
_ROWS = sa.literal_column(str(BATCH_ROWS), sa.Integer)
_ONE_ROW = sa.literal_column("1", sa.Integer)
_ONE: sa.ColumnElement[int] = sa.literal_column("1", sa.Integer).label("one")


# A transaction with a snapshot from before the change of the mark's row, though it has no number yet.
_OLDER = """EXISTS (SELECT FROM pg_stat_activity AS other
WHERE other.datname = current_database() AND other.usename = current_user AND other.pid <> pg_backend_pid()
AND age(other.backend_xmin) >= age(changes_to_touch.xid::xid))"""
_NEVER = sa.literal_column("'0'::xid8", Xid8())
_OWN = sa.literal_column("pg_current_xact_id()", Xid8())


class _MarkedRecords:
    """The statements for one thing that records show."""

    def __init__(self, table: sa.Table, follow: Follow, marks: sa.Table) -> None:
        m = marks.c
        mine = (m.record == _quoted(table.name), m.refers_by == _quoted(follow.refers_by))
        is_due = sa.or_(m.horizon.is_(None), sa.and_(m.horizon <= XMIN, ~sa.literal_column(_OLDER, sa.Boolean)))
        written_since = sa.case((m.horizon.is_(None), _NEVER), else_=m.since).label("since")
        due = sa.select(m.id, m.company_id, m.refers_to, m.after_id, written_since, m.xid, m.horizon).where(
            *mine, is_due
        )
        ordered = due.order_by(m.id).limit(sa.literal_column(str(MARKS_MAX)))
        self.marks = Statement(ordered.with_for_update(skip_locked=True, of=marks))
        kinds = {name: m[name].type for name in MARK_COLUMNS}
        due_marks = array_rows("given", kinds, numbered=True)
        c = table.c
        refers = c[follow.refers_by]

        def theirs(row: Any) -> list[Expression]:
            return [c.company_id == row.company_id, refers == row.refers_to, c.id > row.after_id, *served_of(table)]

        ordered = (
            sa.select(c.id)
            .where(*theirs(due_marks.c), c[COLUMN] >= due_marks.c.since)
            .order_by(c.company_id, refers, c.id)
        )
        dependant = ordered.limit(_ROWS).lateral("one")
        all_of = sa.select(due_marks.c.n, due_marks.c.company_id, dependant.c.id).select_from(
            due_marks.join(dependant, sa.true())
        )
        self.dependants = Statement(all_of.order_by(due_marks.c.n, dependant.c.id).limit(_ROWS))
        each = sa.select(_ONE).select_from(table).where(*theirs(m)).lateral("each")
        dependants = sa.select(_ONE).select_from(marks.join(each, sa.true())).where(*mine, m.horizon.is_(None))
        counted = dependants.limit(sa.literal_column(str(COUNTED_MAX))).subquery("counted")
        self.count = Statement(sa.select(sa.func.count()).select_from(counted))
        """How many records wait for all marks, without a lock."""


MARK_COLUMNS = ("company_id", "refers_to", "after_id", "since")


class _Missing:
    """Records of one kind without a document of its shape, of one range of the index of shapes.

    A batch begins behind the one before. The index keeps the entries of records that have been rendered since, as long
    as an older snapshot is open: a batch that began with the first entry would read all of them again.
    """

    def __init__(
        self, table: sa.Table, name: str, condition: sa.ColumnElement[bool], *columns: TableColumn, first: Place
    ) -> None:
        """In the range, `columns` of the index differ; `first` are values of theirs before all records."""
        c = table.c
        self._columns, self._first = columns, first
        self.after = first
        """The place of the last record of the batch before."""
        self._names = [f"{table.name}_{name}_{column.name}" for column in columns]
        place = (param(name, column.type) for name, column in zip(self._names, columns, strict=True))
        behind = sa.tuple_(*columns) > sa.tuple_(*place)
        # The order makes PostgreSQL take the index: its figures of a column that is being filled are old.
        in_order = (
            sa.select(c.company_id, c.id, c[DOCUMENT_SHAPE])
            .where(*served_of(table), condition, behind)
            .order_by(c[DOCUMENT_SHAPE], c.id)
        )
        self.any = in_order.with_only_columns(_ONE).limit(_ONE_ROW)
        self.lock = Statement(in_order.limit(_ROWS).with_for_update(key_share=True, skip_locked=True))

    @property
    def place(self) -> dict[str, int]:
        """The parameters of both statements."""
        return dict(zip(self._names, self.after, strict=True))

    def go_on(self, last: Any) -> None:
        """The next batch begins behind this record, the last one of a batch."""
        self.after = tuple(last[column.name] for column in self._columns)

    def start_over(self) -> bool:
        """The next batch begins with the first record. Returns whether it did not do so anyway."""
        before, self.after = self.after, self._first
        return before != self.after


class _Renders:
    """The statements that store documents of one kind."""

    def __init__(self, kind: str, documents: Documents[Any]) -> None:
        self.kind, self.documents = kind, documents
        table = documents.table
        c, missing = table.c, documents.is_missing
        shape, number = c[DOCUMENT_SHAPE], documents.shape.number
        self.missing = (
            _Missing(table, "null", shape.is_(None), c.id, first=(0,)),
            _Missing(table, "lower", shape < documents.number, shape, c.id, first=(-1, 0)),
            _Missing(table, "higher", shape > documents.number, shape, c.id, first=(number, 2**63 - 1)),
        )
        exist = (part.any.scalar_subquery().is_not(None) for part in self.missing)
        self.any_missing = sa.select(_quoted(table.name)).where(sa.or_(*exist))
        keys = array_rows("keys", {"company_ids": sa.BigInteger, "ids": sa.BigInteger})
        same_record = (c.company_id == keys.c.company_ids, c.id == keys.c.ids)
        held = sa.select(c.company_id, c.id).where(*same_record).order_by(c.company_id, c.id)
        self.lock = Statement(held.with_for_update(key_share=True, of=table))
        new = array_rows("new", {"company_ids": sa.BigInteger, "ids": sa.BigInteger, "documents": sa.LargeBinary})
        m = table.metadata.tables["changes_to_touch"].c
        shows = [
            sa.and_(m.refers_by == _quoted(follow.refers_by), m.refers_to == c[follow.refers_by])
            for follow in table.info[INFO]
        ]
        of_table = (m.record == _quoted(table.name), m.company_id == c.company_id, m.xid > c[COLUMN])
        later = sa.select(m.id).where(*of_table, sa.or_(sa.false(), *shows))
        stays = sa.and_(missing, ~later.exists())
        self.store = Statement(
            sa.update(table)
            .where(
                c.company_id == new.c.company_ids,
                c.id == new.c.ids,
                sa.or_(missing, c[DOCUMENT].is_distinct_from(new.c.documents)),
            )
            .values(
                {
                    DOCUMENT: new.c.documents,
                    DOCUMENT_SHAPE: documents.number,
                    COLUMN: sa.case((stays, c[COLUMN]), else_=_OWN),
                }
            )
            .returning(c.company_id)
        )
        """Stores what differs. A record that had a document moves. One that had none moves if a row that it shows
        has changed since its own last move, which readers may have seen: they get a record once all transactions up to
        its own have ended."""


def _quoted(text: str) -> sa.ColumnElement[str]:
    doubled = text.replace("'", "''")
    return sa.literal_column(f"'{doubled}'", sa.Text)


def _new_place(table: sa.Table) -> Statement:
    """Gives records a new place: by the arrays company_ids and ids."""
    keys = array_rows("keys", {"company_ids": sa.BigInteger, "ids": sa.BigInteger})
    same_record = (table.c.company_id == keys.c.company_ids, table.c.id == keys.c.ids)
    return Statement(sa.update(table).where(*same_record).values({COLUMN: _OWN}))


class ChangeTracking:
    """The background work of a context whose records can be followed."""

    def __init__(self, database: Database, changes: Sequence[Changes]) -> None:
        self._database = database
        self.head = ""
        """The newest migration of this release; "" if the database has none."""
        self._changes = changes
        metadata = changes[0].table.metadata
        marks, self._epoch = metadata.tables["changes_to_touch"], metadata.tables["changes_epoch"]
        self._marked_records = {
            (feed.table.name, follow.refers_by): _MarkedRecords(feed.table, follow, marks)
            for feed in changes
            for follow in feed.follows
        }
        self._new_places = {feed.table.name: _new_place(feed.table) for feed in changes}
        self._renders = {feed.table.name: _Renders(feed.kind, feed.documents) for feed in changes if feed.documents}
        self._marked = Statement(sa.select(marks.c.record, marks.c.refers_by).distinct())
        """The tables that have marks, with their columns."""
        self._unrendered = Statement(sa.union_all(*(renders.any_missing for renders in self._renders.values())))
        """The tables of which some records have no document, behind the batches before."""
        self._missing = [part for renders in self._renders.values() for part in renders.missing]
        self._look_at = 0.0
        of_ids = marks.c.id == sa.func.any(param("ids", _IDS))
        self._reached = Statement(
            sa.update(marks)
            .where(marks.c.id == param("id", sa.BigInteger))
            .values(after_id=param("after_id", sa.BigInteger))
        )
        self._moved = Statement(sa.update(marks).where(of_ids).values(after_id=sa.literal_column("0"), horizon=XMAX))
        self._settled = Statement(sa.delete(marks).where(of_ids))
        settled_xid = sa.func.greatest(self._epoch.c.settled_xid, param("xid", Xid8()))
        self._forgotten = Statement(sa.update(self._epoch).values(settled_xid=settled_xid))
        again = {"after_id": sa.literal_column("0"), "xid": _OWN, "since": _NEVER, "horizon": sa.null()}
        self._again = Statement(sa.update(marks).values(again))
        self._horizon = Statement(sa.select(*horizon_columns(self._epoch)))
        self._end = Statement(sa.update(self._epoch).values(epoch=sa.func.gen_random_uuid()))
        self._taken_over = Statement(
            sa.update(self._epoch).values(
                epoch=sa.func.gen_random_uuid(), system=sa.literal_column(SERVER), settled_xid=_NEVER
            )
        )
        # No position of before is valid then, so nobody needs to hear of them.
        self._withdrawn_before = Statement(sa.update(metadata.tables[WITHDRAWN]).values({COLUMN: _NEVER}))
        self._foreign = {feed.table: _foreign(feed.table) for feed in changes}
        self._counted_at = 0.0

    async def end_positions(self, connection: Connection) -> None:
        """Ends all positions: a backup was restored, and what readers have may be newer than it."""
        await connection.execute(self._end)

    async def run(self) -> None:
        """Moves marked records and renders those without a document, until cancelled."""
        while True:
            if not await self.run_batch():
                await asyncio.sleep(IDLE_SECONDS)

    async def run_batch(self) -> int:
        """Moves a batch of each kind of marked records, and renders a batch of each kind without a document. Returns
        how many records and marks it was busy with."""
        busy = 0
        marked = {(row[0], row[1]) for row in await self._database.rows(self._marked)} & self._marked_records.keys()
        await self._count(marked)
        for key in sorted(marked):
            began = time.monotonic()
            busy += await self._move(self._renders[key[0]], self._marked_records[key])
            await asyncio.sleep(PAUSE * (time.monotonic() - began))
        if self._renders and time.monotonic() >= self._look_at:
            busy += await self._render()
        return busy

    async def _render(self) -> int:
        """Renders a batch of each kind without a document. Returns how many records it was busy with."""
        began = time.monotonic()
        while not (tables := await self._database.rows(self._unrendered, **self._places())):
            started_over = [part.start_over() for part in self._missing]
            if not any(started_over):
                # Beside an older snapshot, the look has read the entries of all records that were rendered since.
                self._look_at = time.monotonic() + LOOK_PAUSES * (time.monotonic() - began)
                return 0
        # The release of the schema renders alone: two with other public fields would do so for ever.
        if not await revisions.is_newest(self._database, self.head):
            return 0
        busy = 0
        for (record,) in tables:
            began = time.monotonic()
            busy += await self._fill(self._renders[record])
            await asyncio.sleep(PAUSE * (time.monotonic() - began))
        return busy

    def _places(self) -> dict[str, int]:
        return {name: value for part in self._missing for name, value in part.place.items()}

    async def _move(self, renders: _Renders, marked: _MarkedRecords) -> int:
        async with self._database.transaction() as connection:
            marks = await connection.rows(marked.marks)
            if not marks:
                return 0
            due_marks = {name: [mark[name] for mark in marks] for name in MARK_COLUMNS}
            rows = await connection.rows(marked.dependants, **due_marks)
            keys = sorted({(row["company_id"], row["id"]) for row in rows})
            moved: list[int] = []
            if keys:
                await connection.rows(renders.lock, **columns_of_keys(keys))
                moved = await self._store(connection, renders, keys)
            if len(rows) == BATCH_ROWS:
                last = rows[-1]
                await connection.execute(self._reached, id=marks[last["n"] - 1]["id"], after_id=last["id"])
                marks = marks[: last["n"] - 1]
            await connection.execute(self._moved, ids=[mark["id"] for mark in marks if mark["horizon"] is None])
            if settled := [mark for mark in marks if mark["horizon"] is not None]:
                await connection.execute(self._forgotten, xid=max(mark["xid"] for mark in settled))
                await connection.execute(self._settled, ids=[mark["id"] for mark in settled])
            # Id 0 means several records.
            connection.changed.update((company_id, renders.kind, 0) for company_id in moved)
        MOVED.inc(len(moved))
        return len(keys) or len(marks)

    async def _fill(self, renders: _Renders) -> int:
        """Stores some of the documents that are missing."""
        async with self._database.transaction() as connection:
            for part in renders.missing:
                if rows := await connection.rows(part.lock, **part.place):
                    part.go_on(rows[-1])
                    return len(await self._store(connection, renders, [(row[0], row[1]) for row in rows]))
        return 0

    async def _store(self, connection: Connection, renders: _Renders, keys: Sequence[Key]) -> list[int]:
        """Renders locked records and stores the documents that are new; returns the company of each of those."""
        new = await renders.documents.rendered(connection, keys)
        rows = await connection.rows(
            renders.store,
            company_ids=[document.company_id for document in new],
            ids=[document.entity_id for document in new],
            documents=[document.document for document in new],
        )
        return [row[0] for row in rows]

    async def _count(self, kinds: set[tuple[str, str]]) -> None:
        """Now and then, how many records wait."""
        if not kinds:
            WAITING.set(0)
            return
        if time.monotonic() - self._counted_at < COUNT_SECONDS:
            return
        self._counted_at = time.monotonic()
        async with self._database.transaction(IN_ORDER, writes=False) as connection:
            WAITING.set(sum([await connection.value(self._marked_records[kind].count) for kind in sorted(kinds)]))

    async def watch_horizon(self) -> None:
        """Measures how far the horizon lags behind, until cancelled."""
        horizon = HorizonAge()
        while True:
            row = await self._database.row(self._horizon)
            assert row is not None, "changes_epoch has its row from the migration"
            LAG.set(horizon.age(row["xmin"], row["xmax"], time.monotonic()))
            if not row["is_own"]:
                await self.take_over()
            await asyncio.sleep(SAMPLE_SECONDS)

    async def take_over(self) -> None:
        """Renumbers rows that were restored here from a backup of another server.

        They may have numbers of transactions that this server has not given yet. Until it had, no feed would return
        them. So they get new numbers. Until that is done, feeds are unavailable.
        """
        moved = 0
        for table, (next_company, foreign) in self._foreign.items():
            company_id = 0
            while (next_id := await self._database.value(next_company, company_id=company_id)) is not None:
                company_id = next_id
                while rows := await self._database.rows(foreign, company_id=company_id):
                    ids = [row[0] for row in rows]
                    async with self._database.transaction() as connection:
                        await connection.execute(
                            self._new_places[table.name], company_ids=[company_id] * len(ids), ids=sorted(ids)
                        )
                    moved += len(ids)
        async with self._database.transaction() as connection:
            await connection.execute(self._again)
            await connection.execute(self._withdrawn_before)
            await connection.execute(self._taken_over)
        log.warning("changes_taken_over", rows=moved)


def _foreign(table: sa.Table) -> tuple[Statement, Statement]:
    """The next company with records; and some records of a company, at most BATCH_ROWS, with numbers that this server
    has not given."""
    c, company_id = table.c, param("company_id", sa.BigInteger)
    unknown = c[COLUMN] >= XMAX
    unknown_rows = sa.select(c.id).where(c.company_id == sa.any_(array([company_id])), unknown)
    return (
        Statement(sa.select(sa.func.min(c.company_id)).where(c.company_id > company_id)),
        Statement(unknown_rows.order_by(c.company_id, c[COLUMN], c.id).limit(_ROWS)),
    )


class HorizonAge:
    """The age of the horizon, from samples: PostgreSQL tells the number of the oldest transaction, and not its age."""

    def __init__(self) -> None:
        self._samples: deque[tuple[int, float]] = deque()  # the next transaction's number, and when it was that

    def age(self, xmin: int, xmax: int, now: float) -> float:
        """Seconds since the newest sampled instant whose transactions have all ended."""
        self._samples.append((xmax, now))
        while len(self._samples) > 1 and self._samples[1][0] <= xmin:
            self._samples.popleft()
        return now - self._samples[0][1]
