"""Batches of an import: checked, resolved, compared with the stored records, and saved together.

A blank value clears its field. A column that the file lacks leaves its field unchanged.
"""

from __future__ import annotations

import asyncio
import datetime
import hashlib
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import msgspec
import sqlalchemy as sa
from asyncpg import Record, UniqueViolationError

from chassis.auth import identity
from chassis.changes.tables import WITHDRAWN
from chassis.db.database import Connection, Database, DatabaseUnavailable
from chassis.db.rows import InsertMany, UpdateMany
from chassis.db.statements import TEXTS, NewValues, Selection, Statement, Values, param
from chassis.imports.tables import IMPORT_BATCH
from chassis.messaging.outbox import Outbox
from chassis.records import bodies
from chassis.refusals import Refusal, invalid_request
from chassis.runtime.failpoints import failpoint
from chassis.schedule.clocks import CompanyClocks
from chassis.schedule.instants import Clock
from chassis.writes.idempotency import Claim, Ledger, check_key
from makeready.common.v1 import documents_pb2 as common
from makeready.events.v1.events_pb2 import References

CREATED, CHANGED = common.IMPORT_OUTCOME_CREATED, common.IMPORT_OUTCOME_CHANGED
UNCHANGED, REJECTED = common.IMPORT_OUTCOME_UNCHANGED, common.IMPORT_OUTCOME_REJECTED
ROWS_MAX = 2000
ROWS_AT_ONCE = 250  # parsed in 2 ms, during which the process answers no other call
TICK = datetime.timedelta(microseconds=1)
_LOCKED = Statement(sa.select(sa.func.pg_advisory_xact_lock(param("lock", sa.BigInteger)).label("locked")))
_KEPT = {"read": True, "key_share": True}

Row = TypeVar("Row", bound=msgspec.Struct)


class ExternalIds:
    """Finds records of a table by the external_ids in rows. By default it locks a context's own records against
    deletion and key changes until the commit. A replica's records count once they have arrived.

    It makes one look-up per external id, whatever the planner's statistics. With `= ANY` the planner reads all rows of
    the company for every batch while it takes the table for small, as during the first import into it: 175 µs a row and
    growing, instead of 5. OFFSET prevents other join methods.
    """

    def __init__(self, table: sa.Table, *columns: str, replica: bool = False, lock: Values = _KEPT) -> None:
        named: sa.FromClause = (
            sa.func.unnest(param("external_ids", TEXTS)).table_valued("external_id").render_derived("wanted")
        )
        if not replica:
            # Locked in the order of their ids, like all locks of many rows, so that transactions cannot deadlock.
            there = _each(table, named).lateral()
            ordered = sa.select(there.c.external_id).select_from(named.join(there, sa.true())).order_by(there.c.id)
            named = ordered.offset(sa.literal_column("0")).subquery("ordered")
        rows = _each(table, named, *columns)
        record = (rows.where(table.c.version > 0) if replica else rows.with_for_update(**lock)).lateral()
        self._statement = Statement(sa.select(*record.c).select_from(named.join(record, sa.true())))

    async def by_external_id(
        self, connection: Connection | Database, company_id: int, external_ids: Sequence[str]
    ) -> dict[str, Record]:
        """The records that exist, with `id` and the columns."""
        if not external_ids:
            return {}
        rows = await connection.rows(self._statement, company_id=company_id, external_ids=external_ids)
        return {row["external_id"]: row for row in rows}


def _each(table: sa.Table, named: sa.FromClause, *columns: str) -> Selection:
    rows = sa.select(*(table.c[name] for name in ("id", "external_id", *columns))).offset(sa.literal_column("0"))
    return rows.where(
        table.c.company_id == param("company_id", sa.BigInteger), table.c.external_id == named.c.external_id
    )


class ImportTable:
    """The records of one kind that an import reads and writes. Their table's key begins with company_id and ends with
    id. The table has external_id and source, and may have version, created_at and updated_at. A row may change the
    columns `changeable`."""

    def __init__(self, table: sa.Table, *changeable: str) -> None:
        self.table, self.changeable = table, changeable
        stamped = [name for name in ("version", "updated_at") if name in table.c]
        self.known = ExternalIds(table, *stamped, *changeable, lock={})
        fixed = ("company_id", "external_id", "source", *(name for name in stamped if name != "version"))
        fresh = tuple(dict.fromkeys((*fixed, *changeable)))
        self._insert = InsertMany(table, fresh, table.c.id, table.c.external_id)
        again = ("id", *(["version"] if "version" in table.c else []), *fresh)
        self._insert_again = InsertMany(table, again)
        self._withdrawn = _come_back(table)
        self._analyze = Statement(sa.text(f"ANALYZE (SKIP_LOCKED) {table.name}"))
        catalog = sa.table("pg_class", sa.column("oid"), sa.column("reltuples"))
        self._count = Statement(sa.select(catalog.c.reltuples).where(catalog.c.oid == sa.func.to_regclass(table.name)))
        self._counted = self._inserted = 0
        self._update = UpdateMany(table, (*stamped, *changeable))

    async def insert(self, connection: Connection, rows: Sequence[NewValues]) -> None:
        """Inserts the rows and sets each one's id. A record that was withdrawn has its id again, and its version goes
        on."""
        withdrawn: dict[str, Record] = {}
        if self._withdrawn and (names := [row["external_id"] for row in rows if row["external_id"] is not None]):
            company_id = rows[0]["company_id"]
            back = await connection.rows(self._withdrawn, company_id=company_id, external_ids=names)
            withdrawn = {row["external_id"]: row for row in back}
        for row in rows:
            if before := withdrawn.get(row["external_id"]):
                row |= {"id": before["id"], "version": before["version"] + 1}
        await self._insert_again.run(connection, [row for row in rows if row["external_id"] in withdrawn])
        fresh = [row for row in rows if row["external_id"] not in withdrawn]
        ids = {row["external_id"]: row["id"] for row in await self._insert.run(connection, fresh)}
        for row in fresh:
            row["id"] = ids[row["external_id"]]
        # The planner takes a table that was never analyzed for small, and connections reuse the plans made then: the
        # check of a foreign key read all of a company's properties for each asset. So the table is analyzed whenever
        # its rows may have doubled, long before autovacuum does. (For a large table this takes a third of a second.)
        self._inserted += len(rows)
        if self._inserted > self._counted:
            self._counted = await connection.value(self._count)
        if self._inserted > self._counted:
            await connection.execute(self._analyze)
            self._counted, self._inserted = await connection.value(self._count), 0

    async def update(self, connection: Connection, rows: Sequence[NewValues]) -> None:
        await self._update.run(connection, rows)


def _come_back(table: sa.Table) -> Statement | None:
    """Takes records out of those that were withdrawn; None if the context has none."""
    withdrawn = table.metadata.tables.get(WITHDRAWN)
    if withdrawn is None:
        return None
    w = withdrawn.c
    return Statement(
        sa.delete(withdrawn)
        .where(
            w.company_id == param("company_id", sa.BigInteger),
            w.kind == sa.literal_column(f"'{table.name}'", sa.Text),
            w.external_id == sa.func.any(param("external_ids", TEXTS)),
        )
        .returning(w.external_id, w.id, w.version)
    )


class ImportRow(Generic[Row]):
    """A row of the file, and the record that it creates or changes."""

    __slots__ = ("before", "before_beside", "given", "instants", "result", "row", "touched", "values")

    def __init__(self, row: Row, param: Iterable[str], result: common.ImportResult) -> None:
        self.row: Any = row
        self.given = frozenset(param)
        self.result = result
        # The stored record, if it exists.
        self.before: Record | None = None
        # What else its undo needs of the record before: values that are no columns of its own.
        self.before_beside: NewValues = {}
        # The row's values, by column.
        self.values: NewValues = {name: getattr(row, name) for name in self.given}
        # Whether the record changes through related records, although its own columns stay the same.
        self.touched = False
        # How many instants the change needs after the record's last one: one for each of its events.
        self.instants = 1

    def stored(self, column: str) -> Any:
        return None if self.before is None else self.before[column]

    def after(self, column: str) -> Any:
        """The column's value after the import; the stored value if the row lacks the column."""
        return self.values[column] if column in self.values else self.stored(column)

    def moves(self, column: str) -> bool:
        """Whether the record exists and the row changes this required column."""
        return self.before is not None and bool(self.before[column] != self.values[column])


class Batch(Generic[Row]):
    """The rows of one request. `good` shrinks as rows are rejected; `results` reports on all of them."""

    def __init__(self, kind: type[Row], company_id: int, clock: Clock) -> None:
        self.kind, self.clock = kind, clock
        """The clock is the company's."""
        self.company_id = company_id
        self.moment = datetime.datetime.min
        self.results: list[common.ImportResult] = []
        self.good: dict[str, ImportRow[Row]] = {}
        self.done: list[tuple[int, int, NewValues | None]] = []
        """What was saved: a record's id, its version, and its values before; None if it is new."""
        self.beside: NewValues = {}
        """What else the batch changed, for its undo."""

    def read(self, sent: Sequence[common.ImportRow]) -> None:
        """Adds the rows; rejects those that cannot be read."""
        for row in sent:
            self.results.append(result := common.ImportResult(line=row.line, outcome=UNCHANGED))
            try:
                line: ImportRow[Row] = ImportRow(*_read(self.kind, row.json, self.clock), result)
                if line.row.external_id in self.good:
                    raise invalid_request("external_id stands in the file twice.", "external_id")
                self.good[line.row.external_id] = line
            except Refusal as refusal:
                _reject(result, refusal)

    def each(self, examine: Callable[[ImportRow[Row]], None]) -> None:
        """Calls `examine` with every good row; rejects those for which it raises Refusal."""
        for external_id, line in list(self.good.items()):
            try:
                examine(line)
            except Refusal as refusal:
                del self.good[external_id]
                _reject(line.result, refusal)

    def named(self, field: str) -> list[str]:
        """The external ids in this field of the good rows, sorted."""
        return sorted({name for line in self.good.values() if (name := getattr(line.row, field)) is not None})

    def resolve(self, field: str, records: Mapping[str, Record], column: str = "") -> None:
        """Sets `column` (default: field + "_id") to the id of the record in the field; rejects unknown external ids."""

        def find(line: ImportRow[Row]) -> None:
            name = getattr(line.row, field)
            if name is not None and name not in records:
                raise invalid_request(f"No {field} with that external_id is known.", field)
            if field in line.given:
                line.values[column or f"{field}_id"] = None if name is None else records[name]["id"]

        self.each(find)

    async def lock_existing(self, connection: Connection, stored: ImportTable) -> None:
        """Finds and locks the records that exist already."""
        for external_id, row in (await stored.known.by_external_id(connection, self.company_id, [*self.good])).items():
            self.good[external_id].before = row
        self.has_locks()

    def has_locks(self) -> None:
        """The batch holds the locks that it needs: `moment` is from now on later than every event that other
        transactions published while it waited for them."""
        self.moment = max(self.moment, self.clock())

    async def save(self, connection: Connection, stored: ImportTable, defaults: Values) -> list[NewValues]:
        """Inserts new records and updates those that differ; returns both, with their ids and versions."""
        fresh, changed = [], []
        for line in self.good.values():
            after = self._after(line, stored, defaults)
            if line.before is None:
                line.result.outcome = CREATED
                fresh.append(after)
            elif line.touched or any(after[name] != line.before[name] for name in stored.changeable):
                line.result.outcome = CHANGED
                changed.append(after)
        await stored.insert(connection, fresh)
        await stored.update(connection, changed)
        self.has_saved(stored, fresh, changed)
        return fresh + changed

    def has_saved(self, stored: ImportTable, fresh: Sequence[NewValues], changed: Sequence[NewValues]) -> None:
        """Notes what an undo needs to know: rows that were inserted, and rows that were updated."""
        has_version = "version" in stored.table.c
        self.done += [(row["id"], row["version"] if has_version else 0, None) for row in fresh]
        for row in changed:
            line = self.good[row["external_id"]]
            before = {name: line.stored(name) for name in stored.changeable} | line.before_beside
            self.done.append((row["id"], row["version"] if has_version else 0, before))

    def _after(self, line: ImportRow[Row], stored: ImportTable, defaults: Values) -> NewValues:
        """The whole record after the import."""
        before = line.before
        values = {name: line.values[name] for name in stored.changeable if name in line.values}
        after: NewValues = dict.fromkeys(stored.changeable) if before is None else dict(before)
        after |= values
        for name, default in defaults.items():
            if after[name] is None:
                after[name] = default
        created_at = after.get("created_at") or (self.moment if before is None else before.get("created_at"))
        after |= {"company_id": self.company_id, "external_id": line.row.external_id, "source": "import"}
        after["created_at"] = created_at
        after["version"] = 1 if before is None else before.get("version", 0) + 1
        # A file may set updated_at of a new record; later changes take the clock's instant.
        updated_at = max((before is None and line.values.get("updated_at")) or self.moment, created_at or self.moment)
        if before is not None and "updated_at" in before:
            updated_at = max(updated_at, before["updated_at"] + line.instants * TICK)
        after["updated_at"] = updated_at
        return after


def _read(kind: type[Row], json: bytes, clock: Clock) -> tuple[Row, Iterable[str]]:
    """The checked row and the names of its fields. Raises Refusal."""
    try:
        fields = bodies.parse(json)
    except Refusal:
        raise invalid_request("The row must be one JSON object of Unicode text, without NUL.") from None
    for name in fields.keys() - kind.__struct_fields__:
        allowed = ", ".join(kind.__struct_fields__)
        raise invalid_request(f"A row may hold these fields only: {allowed}.", name)
    return bodies.check_row(kind, fields, clock), fields.keys()


def _noun(kind: type[Row]) -> str:
    """The kind of record that a row makes: `pm_task` for PmTaskRow."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__.removesuffix("Row")).lower()


def _reject(result: common.ImportResult, refusal: Refusal) -> None:
    result.outcome, result.field, result.reason = REJECTED, refusal.field, refusal.message


async def _results(ledger: Ledger, connection: Connection, claim: Claim) -> list[common.ImportResult] | None:
    """The stored outcomes of the batch; None if it is new. Raises Refusal 409 while it is under way."""
    stored = await ledger.stored_in(connection, claim)
    return None if stored is None else list(common.ImportReply.FromString(stored.body).results)


def _claim(request: Any, kind: type[msgspec.Struct], company_id: int) -> Claim | None:
    """The claim of a batch; None for one without a key, and for a dry run. Raises Refusal."""
    key = request.idempotency_key
    if not key or request.dry_run:
        return None
    check_key(key)
    fingerprint = hashlib.blake2b(f"{kind.__name__} {getattr(request, 'events', False)}".encode(), digest_size=32)
    for row in request.rows:
        fingerprint.update(row.SerializeToString(deterministic=True))
    # Not of one actor: another administrator may go on with an import.
    return Claim(company_id, 0, f"import {key}", fingerprint.digest())


class _DryRunDone(Exception):  # noqa: N818 - not an error
    """Rolls back the transaction of a dry run."""


class Importer:
    """Runs batches: each is one transaction, under the company's import lock."""

    def __init__(self, database: Database, outbox: Outbox, claims: sa.Table, clocks: CompanyClocks) -> None:
        """The context's ledger is `claims` (see `chassis.writes.idempotency`)."""
        self._database = database
        self._ledger = Ledger(claims)
        self._outbox = outbox
        self._clocks = clocks
        batches = claims.metadata.tables.get(IMPORT_BATCH)
        names = ("company_id", "import_key", "kind", "ids", "versions", "before", "beside")
        self._keep = (
            None
            if batches is None
            else Statement(sa.insert(batches).values({name: param(name, batches.c[name].type) for name in names}))
        )

    async def run(
        self,
        save: Callable[[Connection, Batch[Row]], Awaitable[References]],
        kind: type[Row],
        request: Any,
        call: identity.Call,
        prepare: Callable[[Batch[Row]], Awaitable[None]] | None = None,
    ) -> list[common.ImportResult]:
        """Imports the rows of a request and returns each one's result. A dry run does everything and rolls back.

        The context's `save` stores the batch and returns the references to publish. Before the transaction `prepare`
        fetches from other contexts the rows that a replica lacks.

        A request that is sent again with its idempotency_key gets the results of the first time. Raises Refusal 400 for
        a bad key, 409 (mismatch, in progress), DatabaseUnavailable.
        """
        company_id = identity.company_id(call)
        if call.identity.kind == identity.SERVICE:  # the gateway fills sandboxes, and imports nothing else
            await self._clocks.check_not_live(company_id)
        if getattr(request, "import_key", ""):
            check_key(request.import_key)
        if len(request.rows) > ROWS_MAX:
            raise invalid_request(f"A batch holds at most {ROWS_MAX} rows.")
        claim = _claim(request, kind, company_id)
        batch = Batch(kind, company_id, await self._clocks.of(call))
        for start in range(0, len(request.rows), ROWS_AT_ONCE):
            batch.read(request.rows[start : start + ROWS_AT_ONCE])
            await asyncio.sleep(0)
        if prepare is not None:
            await prepare(batch)
        if not batch.good:
            return batch.results
        try:
            return await self._saved(save, batch, request, claim, call)
        except _DryRunDone:
            return batch.results
        except UniqueViolationError as fault:  # a command made the same record; a retry finds it
            raise DatabaseUnavailable("another request has just made a record of the batch") from fault

    async def _saved(
        self,
        save: Callable[[Connection, Batch[Row]], Awaitable[References]],
        batch: Batch[Row],
        request: Any,
        claim: Claim | None,
        call: identity.Call,
    ) -> list[common.ImportResult]:
        """The results of the batch, which is stored, or was the first time. Raises _DryRunDone."""
        async with self._database.transaction() as connection:
            done = None if claim is None else await _results(self._ledger, connection, claim)
            if done is not None:
                return done
            await lock_company_imports(connection, batch.company_id)
            batch.clock = await self._clocks.of(call, connection)  # it may have moved while the batch waited
            batch.moment = batch.clock()
            references = await save(connection, batch)
            if request.dry_run:
                raise _DryRunDone
            await self._note(connection, batch, request)
            if any(result.outcome in (CREATED, CHANGED) for result in batch.results):
                connection.changed.add((batch.company_id, _noun(batch.kind), 0))
            if references.ListFields():
                event = self._outbox.references(
                    references, company_id=batch.company_id, occurred_at=batch.moment, request_id=call.request_id
                )
                await self._outbox.add(connection, event)
            if claim is not None:
                await self._ledger.keep(
                    connection, claim, common.ImportReply(results=batch.results).SerializeToString()
                )
            failpoint("import-before-commit")
        failpoint("import-after-commit")
        if references.ListFields():
            self._outbox.wake()
        return batch.results

    async def _note(self, connection: Connection, batch: Batch[Row], request: Any) -> None:
        """Stores what an undo of the import needs to know of the batch."""
        import_key = getattr(request, "import_key", "")
        if self._keep is None or not import_key or not batch.done:
            return
        before = {str(record_id): values for record_id, _, values in batch.done if values is not None}
        await connection.execute(
            self._keep,
            company_id=batch.company_id,
            import_key=import_key,
            kind=kind_of(request),
            ids=[record_id for record_id, _, _ in batch.done],
            versions=[version for _, version, _ in batch.done],
            before=msgspec.to_builtins(before),
            beside=msgspec.to_builtins(batch.beside),
        )


def kind_of(request: Any) -> str:
    """The kind of record that an Import RPC takes, as files have it: "turn-tasks" for ImportTurnTasksRequest."""
    name = type(request).__name__.removeprefix("Import").removesuffix("Request")
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()


async def lock_company_imports(connection: Connection, company_id: int) -> None:
    """Allows one batch of a company at a time: two batches with the same records would deadlock. Commands that make
    records which a batch may make too, such as a building that a unit is the first to name, take this lock as well."""
    named = hashlib.blake2b(f"import/{company_id}".encode(), digest_size=8).digest()
    await connection.execute(_LOCKED, lock=int.from_bytes(named, "big", signed=True))
