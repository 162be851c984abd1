"""Keeps the figures of a context's reports: it follows the records, and moves the figures by what has changed.

A record's facts and the figures that they change are written in one transaction, under a lock that comes before the
reading. So the figures are those of the stored facts at every moment, whatever is killed and however many processes do
this at once; what is not stored yet follows within a second or two, or with the next comparison (see
`chassis.changes.following`).
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import sqlalchemy as sa
from asyncpg import Record
from sqlalchemy.dialects.postgresql import ARRAY, aggregate_order_by, insert

from chassis.auth.identity import Call
from chassis.changes.following import COMPARE_SECONDS, STRETCH_ROWS, RecordFollower
from chassis.db.database import Change, Connection, Database
from chassis.db.rows import array_rows_of, columns_of_tuples
from chassis.db.statements import Statement, param
from chassis.refusals import invalid_request
from chassis.reports import facts, histograms
from chassis.reports.tables import ReportTables
from makeready.common.v1 import reports_pb2 as pb

ZONES_SECONDS = 30.0  # how soon a company's new timezone is noticed
_IDS = ARRAY(sa.BigInteger)
_LOCK = int.from_bytes(hashlib.blake2b(b"report_fact", digest_size=8).digest(), signed=True)
_company_id = param("company_id", sa.BigInteger)


@dataclass(frozen=True, eq=False)
class FactSource:
    """The records of one kind, from which reports have their figures.

    records: selects company_id, id and state of all records; state is a text that differs whenever the facts may, and
    null for a record that is not served. read: for company_id and ids, the rows of served records, each with id and the
    same state. facts_of: the facts of such a row in the company's timezone. definitions: raised if `facts_of` changes,
    for then all facts are made anew. owners: other kinds of changed records, with the statement that returns the ids of
    the records to which they belong, for company_id and ids.
    """

    kind: str
    company: sa.Table
    records: sa.Select[tuple[int, int, str | None]]
    read: Statement
    facts_of: Callable[[Record, str], list[facts.RecordFacts]]
    definitions: int = 1
    owners: Mapping[str, Statement] = field(default_factory=dict)


class _FactRow(NamedTuple):
    """A row of `report_fact`."""

    company_id: int
    kind: str
    record_id: int
    state: str
    facts: str


def timezone_of(company: sa.Table, company_id: sa.ColumnElement[int]) -> sa.ColumnElement[str]:
    """The timezone of a company, by its replica; UTC if the company has not arrived."""
    zone = sa.select(company.c.timezone).where(company.c.id == company_id).scalar_subquery()
    return sa.func.coalesce(zone, sa.literal_column("'UTC'"))


class FigureKeeper(RecordFollower):
    """Keeps the facts and figures of one kind of records."""

    linger_seconds = 0.5
    at_once = 1000

    def __init__(self, database: Database, tables: ReportTables, source: FactSource) -> None:
        self.source = source
        self._database, self._tables = database, tables
        records = source.records.subquery("records")
        above = sa.select(sa.func.min(records.c.company_id)).where(records.c.company_id > _company_id)
        comparisons = [self._comparison(records), self._left_over(records)]
        super().__init__(database, source.kind, comparisons, Statement(above))
        fact, company = tables.fact, source.company
        of_kind = sa.and_(fact.c.company_id == _company_id, fact.c.kind == sa.literal_column(f"'{source.kind}'"))
        ids = fact.c.record_id == sa.func.any(param("ids", _IDS))
        self._stored = Statement(sa.select(fact.c.record_id, fact.c.facts).where(of_kind, ids))
        self._forget = Statement(sa.delete(fact).where(of_kind, ids))
        rows = array_rows_of(fact, [column.name for column in fact.c])
        adding = insert(fact).from_select([column.name for column in fact.c], sa.select(*rows.c))
        changed = {name: adding.excluded[name] for name in ("state", "facts")}
        self._save = Statement(adding.on_conflict_do_update(index_elements=list(fact.primary_key), set_=changed))
        self._figures = FigureRows(tables.figure)
        self._ended = Statement(sa.select(company.c.ended).where(company.c.id == _company_id))
        self._zone = Statement(sa.select(timezone_of(company, _company_id)))
        self._zones = Statement(sa.select(company.c.id, company.c.timezone).where(sa.not_(company.c.ended)))
        of_company = records.c.company_id == _company_id
        ids_above = sa.select(records.c.id).where(of_company, records.c.id > param("above", sa.BigInteger))
        self._above = Statement(ids_above.order_by(records.c.id).limit(sa.literal_column(str(STRETCH_ROWS))))
        self._belonging: set[Change] = set()

    def _state(self, records: sa.FromClause) -> sa.ColumnElement[str]:
        zone = timezone_of(self.source.company, records.c.company_id)
        definitions: sa.ColumnElement[str] = sa.literal_column(f"'{self.source.definitions} '")
        return definitions + zone + sa.literal_column("' '") + records.c.state

    def _comparison(self, records: sa.Subquery) -> Statement:
        """See `RecordFollower`. A record that is not served has no facts."""
        fact = self._tables.fact
        stretch = (
            sa.select(records.c.company_id, records.c.id, self._state(records).label("state"))
            .where(records.c.company_id == _company_id, records.c.id < param("below", sa.BigInteger))
            .order_by(records.c.id.desc())
            .limit(sa.literal_column(str(STRETCH_ROWS)))
            .subquery("stretch")
        )
        has_row = sa.and_(
            fact.c.company_id == stretch.c.company_id,
            fact.c.kind == sa.literal_column(f"'{self.source.kind}'"),
            fact.c.record_id == stretch.c.id,
        )
        differs = fact.c.state.is_distinct_from(stretch.c.state)
        differing = sa.func.array_agg(aggregate_order_by(stretch.c.id, stretch.c.id.desc()), type_=sa.types.NullType())
        missing = sa.and_(fact.c.state.is_(None), stretch.c.state.is_not(None))
        return Statement(
            sa.select(
                sa.func.min(stretch.c.id).label("reached"),
                sa.func.count().label("met"),
                differing.filter(differs).label("differing"),
                sa.func.count().filter(missing).label("missing"),
            ).select_from(stretch.outerjoin(fact, has_row))
        )

    def _left_over(self, records: sa.Subquery) -> Statement:
        """Facts whose record does not exist any more: see `RecordFollower`."""
        fact = self._tables.fact
        of_kind = sa.and_(fact.c.company_id == _company_id, fact.c.kind == sa.literal_column(f"'{self.source.kind}'"))
        stretch = (
            sa.select(fact.c.company_id, fact.c.record_id)
            .where(of_kind, fact.c.record_id < param("below", sa.BigInteger))
            .order_by(fact.c.record_id.desc())
            .limit(sa.literal_column(str(STRETCH_ROWS)))
            .subquery("stretch")
        )
        has_record = sa.and_(records.c.company_id == stretch.c.company_id, records.c.id == stretch.c.record_id)
        ids = sa.func.array_agg(stretch.c.record_id, type_=sa.types.NullType())
        return Statement(
            sa.select(
                sa.func.min(stretch.c.record_id).label("reached"),
                sa.func.count().label("met"),
                ids.filter(records.c.id.is_(None)).label("differing"),
                sa.literal_column("0").label("missing"),
            ).select_from(stretch.outerjoin(records, has_record))
        )

    def add(self, changed: Iterable[Change]) -> None:
        changed = list(changed)
        super().add(changed)
        self._belonging.update(change for change in changed if change[1] in self.source.owners and change[2])
        if self._belonging:
            self._woken.set()

    async def look_up(self) -> None:
        belonging, self._belonging = self._belonging, set()
        try:
            for (company_id, kind), ids in _by_kind(belonging).items():
                rows = await self._database.rows(self.source.owners[kind], company_id=company_id, ids=ids)
                self._name((company_id, row[0]) for row in rows)
        except BaseException:
            self._belonging.update(belonging)
            self._woken.set()
            raise

    async def keep_comparing(self) -> None:
        """Also makes the facts of a company anew as soon as its timezone changes."""
        zones = await self._zones_now()
        await self.compare()
        compared_at = time.monotonic()
        while True:
            await asyncio.sleep(ZONES_SECONDS)
            before, zones = zones, await self._zones_now()
            for company_id in sorted(
                company_id for company_id, zone in zones.items() if before.get(company_id) != zone
            ):
                await self.compare_company(company_id)
            if time.monotonic() - compared_at >= COMPARE_SECONDS:
                await self.compare()
                compared_at = time.monotonic()

    async def _zones_now(self) -> dict[int, str]:
        return {row["id"]: row["timezone"] for row in await self._database.rows(self._zones)}

    async def fill(self, company_id: int, ids: Sequence[int]) -> None:
        """Stores the facts of these records as they are now, and moves the figures by the difference."""
        async with self._database.transaction(f"SELECT pg_advisory_xact_lock({_LOCK})") as connection:
            # Nothing is kept of a company that has ended.
            if not await connection.value(self._ended, company_id=company_id):
                await self._fill(connection, company_id, ids)

    async def _fill(self, connection: Connection, company_id: int, ids: Sequence[int]) -> None:
        source, kind = self.source, self.source.kind
        stored = await connection.rows(self._stored, company_id=company_id, ids=list(ids))
        before = {row["record_id"]: row["facts"] for row in stored}
        zone = await connection.value(self._zone, company_id=company_id)
        figures: facts.Figures = defaultdict(facts.Figure)
        rows = []
        for record in await connection.rows(source.read, company_id=company_id, ids=list(ids)):
            after = source.facts_of(record, zone)
            text = facts.written(after)
            former = before.pop(record["id"], None)
            if former != text:
                facts.add_differences(figures, facts.read(former), after)
            state = f"{source.definitions} {zone} {record['state']}"
            rows.append(_FactRow(company_id, kind, record["id"], state, text))
        for former in before.values():
            facts.add_differences(figures, facts.read(former), ())
        await self._figures.move(connection, company_id, figures)
        if rows:
            await connection.execute(self._save, **columns_of_tuples(rows))
        if before:
            await connection.execute(self._forget, company_id=company_id, ids=list(before))
        if figures:
            connection.changed.add((company_id, "report", 0))

    async def refill(self, company_id: int, above: int) -> tuple[int, int]:
        """Makes the facts of the next records above an id. Returns how many records they were, and the last one's id;
        0 if no more follow."""
        ids = [row[0] for row in await self._database.rows(self._above, company_id=company_id, above=above)]
        await self.fill(company_id, ids)
        return len(ids), ids[-1] if len(ids) == STRETCH_ROWS else 0


class ReportRebuild:
    """Makes a company's figures anew from its records, for ReportsService."""

    def __init__(self, database: Database, tables: ReportTables, keepers: Sequence[FigureKeeper]) -> None:
        self._database, self._keepers = database, keepers
        self._wipe = [Statement(sa.delete(table).where(table.c.company_id == _company_id)) for table in tables]

    async def RebuildReports(self, request: pb.RebuildReportsRequest, _call: Call) -> pb.RebuildReportsResponse:
        if not 0 <= request.part <= len(self._keepers) - 1 or request.above < 0:
            raise invalid_request("part and above must be those of the answer before.", "part")
        company_id, part = request.company_id, request.part
        if not (part or request.above):
            async with self._database.transaction(f"SELECT pg_advisory_xact_lock({_LOCK})") as connection:
                for statement in self._wipe:
                    await connection.execute(statement, company_id=company_id)
        records, above = await self._keepers[part].refill(company_id, request.above)
        if not above:
            part += 1
        return pb.RebuildReportsResponse(records=records, part=part, above=above, done=part == len(self._keepers))


def _by_kind(changes: Iterable[Change]) -> dict[tuple[int, str], list[int]]:
    by_kind: dict[tuple[int, str], list[int]] = defaultdict(list)
    for company_id, kind, entity_id in changes:
        by_kind[company_id, kind].append(entity_id)
    return by_kind


class FigureRows:
    """The rows of `report_figure`."""

    def __init__(self, table: sa.Table) -> None:
        names, key = [column.name for column in table.c], [column.name for column in table.primary_key]
        keys = array_rows_of(table, key)
        is_row = sa.and_(*(table.c[name] == keys.c[name] for name in key))
        self._read = Statement(sa.select(*table.c).select_from(keys.join(table, is_row)))
        rows = array_rows_of(table, names)
        adding = insert(table).from_select(names, sa.select(*rows.c))
        changed = {name: adding.excluded[name] for name in ("amount", "histogram")}
        self._save = Statement(adding.on_conflict_do_update(index_elements=key, set_=changed))
        self._delete = Statement(sa.delete(table).where(is_row))

    async def move(self, connection: Connection, company_id: int, changes: facts.Figures) -> None:
        """Adds the changes. The caller holds the lock, so nobody else writes these rows."""
        keys = sorted(key for key, change in changes.items() if not change.is_nothing)
        if not keys:
            return
        key_columns = {"company_id": [company_id] * len(keys), **columns_of_tuples(keys)}
        for row in await connection.rows(self._read, **key_columns):
            change = changes[facts.FigureKey(*(row[name] for name in facts.FigureKey._fields))]
            change.add(row["amount"], histograms.read(row["histogram"]))
        kept = [key for key in keys if not changes[key].is_nothing]
        if kept:
            values = {
                "amount": [changes[key].amount for key in kept],
                "histogram": [histograms.written(changes[key].histogram) for key in kept],
            }
            await connection.execute(
                self._save, company_id=[company_id] * len(kept), **columns_of_tuples(kept), **values
            )
        gone = [key for key in keys if changes[key].is_nothing]
        if gone:
            await connection.execute(self._delete, company_id=[company_id] * len(gone), **columns_of_tuples(gone))
