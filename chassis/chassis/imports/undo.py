"""Undoes imports, a bounded part in each call.

A record that an import created leaves its table: with all that was stored of it, it goes to `withdrawn_record`. So no
read needs to know of it: fetches, lists, searches, counts and copies have nothing to leave out, and the feeds alone
name it, as gone. It stays where it is if it was changed since, or if a row of any context refers to it.

Foreign keys find what refers to a record here. Other contexts have copies of records. So the owner first reserves what
it will withdraw, and gives it to nobody any more; the others delete their copies, unless something refers to them; and
then the owner withdraws what all have released. Whoever refers to it meanwhile is refused, by a foreign key at last.
"""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa
from asyncpg import IntegrityConstraintViolationError, Record

from chassis.auth import identity
from chassis.changes.tables import CHANGE_COLUMNS, COLUMN, WITHDRAWN, Xid8
from chassis.db.database import Connection, Database, DatabaseUnavailable
from chassis.db.statements import TIME, Expression, NewValues, Statement, Values, param
from chassis.imports.importer import TICK, ImportTable, lock_company_imports
from chassis.imports.tables import IMPORT_BATCH
from chassis.messaging.outbox import Outbox
from chassis.refusals import invalid_request
from chassis.runtime.failpoints import failpoint
from chassis.schedule.clocks import CompanyClocks
from chassis.writes.audit import Audit
from chassis.writes.idempotency import Claim, Ledger, check_key
from makeready.common.v1 import import_undo_pb2 as pb
from makeready.events.v1.events_pb2 import References

PAGE_ROWS = 250
KEPT = datetime.timedelta(days=30)
_LAST = 2**63 - 1
_IDS = sa.ARRAY(sa.BigInteger)
_company_id, _ids = param("company_id", sa.BigInteger), param("ids", _IDS)
_import_key, _kind = param("import_key", sa.Text), param("kind", sa.Text)
_ONE = sa.literal_column("1", sa.Integer)
IN_CONFLICT = "conflict"
"""KeptRecord.used_by of a record whose values of before another one has taken."""
OF_A_COPY = "copy"
"""KeptRecord.used_by of a record that another context has not released."""


class Part(NamedTuple):
    """Rows that go with a record, and are no records: its id is in `column`, if no foreign key says so."""

    table: sa.Table
    column: str = ""
    kind: str = ""
    """The value of the table's column `kind`, if it has rows of several."""


class Done(NamedTuple):
    """What a batch of an import did, as far as it is not undone. The versions and the values of before are by id."""

    id: int
    versions: dict[int, int]
    before: dict[int, dict[str, Any]]
    beside: dict[str, Any]
    xid: int


@dataclass(slots=True)
class Step:
    """What a step of an undo does. restored: the row of each record that gets its values of before, now and
    afterwards."""

    company_id: int
    at: datetime.datetime
    call: identity.Call
    done: Done
    withdrawn: Sequence[Record] = ()
    restored: Sequence[tuple[Record, NewValues]] = ()
    references: References = field(default_factory=References)


class _Users:
    """What refers to the rows of a table, by foreign keys."""

    def __init__(self, table: sa.Table, parts: Collection[sa.Table]) -> None:
        self._columns = [pair for pair in _references_to(table) if pair[0] not in parts]
        self._statements: list[tuple[str, Statement]] = []

    def has_kinds(self, kinds: Mapping[sa.Table, str]) -> None:
        """`kinds` has the kinds of the tables of the context whose imports can be undone."""
        for child, column in self._columns:
            conditions = [column == sa.func.any(_ids)]
            if "company_id" in child.c:
                conditions.append(child.c.company_id == _company_id)
            if child in kinds:
                batch = child.metadata.tables[IMPORT_BATCH].c
                is_of_import = sa.exists().where(
                    batch.company_id == _company_id,
                    batch.import_key == _import_key,
                    batch.kind == sa.literal_column(f"'{kinds[child]}'", sa.Text),
                    child.c.id == sa.func.any(batch.ids),
                )
                conditions.append(~is_of_import)
            self._statements.append(
                (child.name, Statement(sa.select(column.label("id")).where(*conditions).distinct()))
            )

    async def find(self, connection: Connection, company_id: int, ids: Iterable[int], besides: str) -> dict[int, str]:
        """The rows to which others refer, with the name of a table that does. besides: an import whose records do not
        count."""
        used: dict[int, str] = {}
        for name, statement in self._statements:
            values: NewValues = {"ids": [row_id for row_id in ids if row_id not in used]}
            if not values["ids"]:
                break
            values |= {"company_id": company_id, "import_key": besides}
            rows = await connection.rows(statement, **{name: values[name] for name in statement.parameters})
            used |= {row["id"]: name for row in rows}
        return used


def _references_to(table: sa.Table) -> list[tuple[sa.Table, sa.Column[Any]]]:
    """The columns of all tables that have the ids of the table's rows."""
    return [
        (child, element.parent)
        for child in table.metadata.sorted_tables
        for constraint in sorted(child.foreign_key_constraints, key=lambda constraint: str(constraint.name))
        if constraint.referred_table is table
        for element in constraint.elements
        if element.column.name == "id"
    ]


def _deletes(table: sa.Table, part: Part) -> Statement:
    """Deletes the rows of a part that belong to rows of the table."""
    c = part.table.c
    column = c[part.column] if part.column else next(key for child, key in _references_to(table) if child is part.table)
    conditions = [column == sa.func.any(_ids)]
    if "company_id" in c:
        conditions.append(c.company_id == _company_id)
    if part.kind:
        conditions.append(c.kind == sa.literal_column(f"'{part.kind}'", sa.Text))
    return Statement(sa.delete(part.table).where(*conditions))


async def _delete_parts(connection: Connection, parts: Iterable[Statement], company_id: int, ids: list[int]) -> None:
    for part in parts:
        values = {"ids": ids, "company_id": company_id}
        await connection.execute(part, **{name: values[name] for name in part.parameters})


class Undoable:
    """A kind of record whose imports can be undone. Subclasses say what belongs to it besides its own columns."""

    reference = ""
    """The field of References, if other contexts have copies of the records."""
    ends_beside = True
    """Whether a batch's `beside` is done with its last step."""

    def __init__(self, kind: str, noun: str, stored: ImportTable, *parts: Part) -> None:
        """kind: as files have it. noun: as hints and the audit log have it."""
        self.kind, self.noun, self.stored = kind, noun, stored
        table = stored.table
        c = table.c
        self.has_version = "version" in c
        these = [c.company_id == _company_id, c.id == sa.func.any(_ids)]
        if not self.has_version:  # a row that was changed has another place in the order of changes
            these.append(c[COLUMN] == param("xid", Xid8()))
        columns = [column for column in c if column.name not in CHANGE_COLUMNS]
        self._rows = Statement(sa.select(*columns).where(*these).order_by(c.id).with_for_update())
        gone = sa.delete(table).where(*these).returning(*columns).cte("gone")
        version: Expression = gone.c.version + _ONE if self.has_version else _ONE
        values = {
            "company_id": gone.c.company_id,
            "kind": sa.literal_column(f"'{table.name}'"),
            "id": gone.c.id,
            "version": version,
            "external_id": gone.c.external_id,
            "record": sa.func.to_jsonb(sa.literal_column("gone")),
        }
        withdrawn = sa.insert(table.metadata.tables[WITHDRAWN])
        self._withdraw = Statement(
            withdrawn.from_select(list(values), sa.select(*values.values()), include_defaults=False)
        )
        self._parts = [_deletes(table, part) for part in parts]
        self.users = _Users(table, {part.table for part in parts})

    async def rows(self, connection: Connection, company_id: int, done: Done, ids: Sequence[int]) -> list[Record]:
        """The rows of these records that are there, and without versions those that nobody has changed since."""
        return await connection.rows(self._rows, **self._these(company_id, done, ids))

    def changed(self, done: Done, ids: Sequence[int], rows: Mapping[int, Record]) -> list[int]:
        """The records that were changed since the batch. rows: see `rows`."""
        if not self.has_version:
            return [record_id for record_id in ids if record_id not in rows]
        return [record_id for record_id, row in rows.items() if row["version"] != done.versions[record_id]]

    def _these(self, company_id: int, done: Done, ids: Sequence[int]) -> NewValues:
        values: NewValues = {"company_id": company_id, "ids": list(ids)}
        return values if self.has_version else values | {"xid": done.xid}

    async def kept(
        self, _connection: Connection, _company_id: int, _done: Done, _rows: Sequence[Record]
    ) -> Mapping[int, str]:
        """Which records stay for a reason of their kind: KeptRecord.used_by by id."""
        return {}

    async def apply(self, connection: Connection, step: Step) -> None:
        """Does the step. Raises IntegrityConstraintViolationError if a record must stay as it is."""
        if ids := [row["id"] for row in step.withdrawn]:
            await _delete_parts(connection, self._parts, step.company_id, ids)
            await connection.execute(self._withdraw, **self._these(step.company_id, step.done, ids))
        await self.stored.update(connection, [after for _, after in step.restored])
        await self.complete(connection, step)
        for row in step.withdrawn if self.reference else ():
            step.references.withdrawn.add(
                kind=self.reference, id=row["id"], version=row["version"] + 1, company_id=step.company_id
            )

    async def complete(self, connection: Connection, step: Step) -> None:
        """What belongs to a step besides the records' own rows."""
        await self.publish(connection, step, [row["id"] for row, _ in step.restored])

    async def publish(self, _connection: Connection, _step: Step, _ids: Sequence[int]) -> None:
        """Adds these records to the step's references."""

    async def end(self, connection: Connection, done: Done) -> None:
        """The last step of a batch: what it changed besides its records."""

    def before(self, row: Record, values: Values, at: datetime.datetime) -> NewValues:
        """The row of a record with its values of before. Those of people who were forgotten since are not there."""
        after: NewValues = dict(row)
        for name in [name for name in self.stored.changeable if name in values]:
            kind: Any = self.stored.table.c[name].type.python_type
            after[name] = msgspec.convert(values[name], kind | None)
        if self.has_version:
            after["version"] = row["version"] + 1
        if "updated_at" in after:
            after["updated_at"] = max(at, row["updated_at"] + TICK, after.get("created_at") or at)
        return after


class Beside:
    """Columns of another table that a batch sets."""

    def __init__(self, table: sa.Table, *names: str) -> None:
        c = table.c
        self._key, self._names = [column.name for column in table.primary_key], names
        is_same = [c[name].is_not_distinct_from(param(f"after_{name}", c[name].type)) for name in names]
        self._update = Statement(
            sa.update(table)
            .where(*(c[name] == param(f"key_{name}", c[name].type) for name in self._key), *is_same)
            .values({name: param(f"before_{name}", c[name].type) for name in names})
        )

    def change(self, before: Values, after: Values) -> dict[str, Any]:
        """A row that the batch changes, for its `beside`: with the key and these columns."""
        sides = {"before": before, "after": after}
        values = {f"{side}_{name}": row[name] for side, row in sides.items() for name in self._names}
        return {f"key_{name}": before[name] for name in self._key} | values

    async def restore(self, connection: Connection, changes: Iterable[Mapping[str, Any]]) -> None:
        """Sets the rows that nobody has changed since."""
        for change in changes:
            await connection.execute(self._update, **change)


class Copies:
    """Copies of another context's records of one kind, to which records of this one refer."""

    def __init__(self, kind: str, table: sa.Table, *parts: Part) -> None:
        """parts: rows that are no records, and go with a copy."""
        self.kind = kind
        self.users = _Users(table, {part.table for part in parts})
        c = table.c
        these = (c.id == sa.func.any(_ids), c.company_id == _company_id)
        self.rows = Statement(sa.select(c.id, c.external_id).where(*these).order_by(c.id).with_for_update())
        self._delete = Statement(sa.delete(table).where(*these))
        self._parts = [_deletes(table, part) for part in parts]

    async def used(self, connection: Connection, company_id: int, ids: Sequence[int], besides: str) -> dict[int, str]:
        """Those to which records of this context refer: see `_Users.find`."""
        return await self.users.find(connection, company_id, ids, besides)

    async def forget(self, connection: Connection, company_id: int, ids: list[int]) -> None:
        """Raises IntegrityConstraintViolationError if a request has just begun to refer to one."""
        await _delete_parts(connection, self._parts, company_id, ids)
        await connection.execute(self._delete, ids=ids, company_id=company_id)


@dataclass(slots=True)
class _Part:
    """Records of a batch, the newest first. rows: those that are there. kept: KeptRecord.used_by of those that stay.
    reserved: those that other contexts were asked to release."""

    done: Done
    ids: Sequence[int]
    rows: Mapping[int, Record]
    kept: dict[int, str]
    reserved: Sequence[int]
    is_last: bool
    """Whether the batch has no other records."""

    @property
    def leaving(self) -> list[int]:
        """Those that can be withdrawn."""
        return [
            record_id
            for record_id in self.ids
            if record_id in self.rows and record_id not in self.done.before and record_id not in self.kept
        ]

    @property
    def next(self) -> pb.UndoPlace:
        if self.is_last:
            return pb.UndoPlace(batch=self.done.id - 1, id=_LAST)
        return pb.UndoPlace(batch=self.done.id, id=self.ids[-1])

    def step(self, undoable: Undoable, company_id: int, at: datetime.datetime, call: identity.Call) -> Step:
        """Withdraws and restores all but those that stay."""
        restored = [
            (row, undoable.before(row, self.done.before[record_id], at))
            for record_id, row in self.rows.items()
            if record_id in self.done.before and record_id not in self.kept
        ]
        withdrawn = [self.rows[record_id] for record_id in self.leaving]
        return Step(company_id, at, call, self.done, withdrawn, restored)


class ImportUndo:
    """Undoes the imports of one context (ImportUndoService)."""

    def __init__(
        self,
        database: Database,
        outbox: Outbox,
        audit: Audit,
        claims: sa.Table,
        clocks: CompanyClocks,
        undoables: Sequence[Undoable],
        copies: Sequence[Copies] = (),
        catch_up: Callable[[str], Awaitable[object]] | None = None,
    ) -> None:
        """catch_up: takes in what the owner of a kind has recorded; needed with copies."""
        self._catch_up = catch_up
        self._database, self._outbox, self._audit, self._clocks = database, outbox, audit, clocks
        self._ledger = Ledger(claims)
        self._undoables = {undoable.kind: undoable for undoable in undoables}
        self._copies = {copies_of_kind.kind: copies_of_kind for copies_of_kind in copies}
        kinds = {undoable.stored.table: undoable.kind for undoable in undoables}
        for users in [undoable.users for undoable in undoables] + [copy.users for copy in copies]:
            users.has_kinds(kinds)
        batch = claims.metadata.tables[IMPORT_BATCH]
        b = batch.c
        texts = [sa.cast(b[name], sa.Text).label(name) for name in ("before", "beside")]
        of_import = (b.company_id == _company_id, b.import_key == _import_key, b.kind == _kind)
        as_sent = sa.types.NullType()  # an array, as asyncpg returns it
        arrays = [sa.type_coerce(b[name], as_sent).label(name) for name in ("ids", "versions", "leaving")]
        newest = sa.select(b.id, *arrays, *texts, b.xid).where(*of_import, b.id <= param("batch", sa.BigInteger))
        self._newest = Statement(newest.order_by(b.id.desc()).limit(_ONE).with_for_update())
        this = b.id == param("batch", sa.BigInteger)
        remaining = {name: param(name, b[name].type) for name in ("ids", "versions", "before", "beside")}
        self._left = Statement(sa.update(batch).where(this).values({**remaining, "leaving": sa.null()}))
        self._reserve = Statement(sa.update(batch).where(this).values(leaving=_ids))
        self._nothing_left = Statement(sa.delete(batch).where(this))
        old = sa.select(b.id).where(b.recorded_at < param("until", TIME)).limit(sa.literal_column("500"))
        self._old = Statement(sa.delete(batch).where(b.id.in_(old)))

    async def drop_old(self, now: datetime.datetime) -> int:
        """Forgets what imports did before KEPT: they cannot be undone any more. Returns 0: no whole day is dropped."""
        while not (await self._database.execute(self._old, until=now - KEPT)).endswith(" 0"):
            pass
        return 0

    async def UndoImport(self, request: pb.UndoImportRequest, call: identity.Call) -> pb.UndoImportResponse:
        company_id, undoable = identity.company_id(call), self._undoables.get(request.kind)
        if undoable is None:
            raise invalid_request(f"kind must be one of: {', '.join(self._undoables)}.", "kind")
        claim = _claim(request, company_id)
        async with self._database.transaction() as connection:
            if claim is not None and (stored := await self._ledger.stored_in(connection, claim)) is not None:
                return pb.UndoImportResponse.FromString(stored.body)
            await lock_company_imports(connection, company_id)
            response = await self._undo(connection, request, call, undoable)
            if claim is not None and not request.reserve:
                await self._ledger.keep(connection, claim, response.SerializeToString())
            if response.withdrawn or response.restored:
                failpoint("import-before-commit")
        if response.withdrawn or response.restored:
            failpoint("import-after-commit")
        self._outbox.wake()
        return response

    async def _undo(
        self, connection: Connection, request: pb.UndoImportRequest, call: identity.Call, undoable: Undoable
    ) -> pb.UndoImportResponse:
        company_id, response = identity.company_id(call), pb.UndoImportResponse()
        part = await self._part(connection, request, company_id, undoable)
        if part is None:
            return response
        response.next.CopyFrom(part.next)
        leaving, kept = part.leaving, part.kept
        if request.dry_run or request.reserve:
            response.ids.extend(leaving)
        if request.reserve and not request.dry_run:
            if leaving:
                await connection.execute(self._reserve, batch=part.done.id, ids=leaving)
            return response
        if undoable.reference and not request.dry_run:
            released = set(request.released)
            kept |= {record_id: OF_A_COPY for record_id in leaving if record_id not in released}
        clock = await self._clocks.of(call, connection)
        step = part.step(undoable, company_id, clock(), call)
        if not request.dry_run:
            # Other contexts may have given up their copies of those that stay.
            await undoable.publish(connection, step, [record_id for record_id in part.reserved if record_id in kept])
            kept |= await self._apply(connection, undoable, step)
            await self._finish(connection, undoable, step, part)
        response.withdrawn = sum(row["id"] not in kept for row in step.withdrawn)
        response.restored = sum(row["id"] not in kept for row, _ in step.restored)
        for record_id in sorted(kept):
            external_id = part.rows[record_id]["external_id"] if record_id in part.rows else ""
            response.kept.add(id=record_id, external_id=external_id or "", used_by=kept[record_id])
        return response

    async def _part(
        self, connection: Connection, request: pb.UndoImportRequest, company_id: int, undoable: Undoable
    ) -> _Part | None:
        """The records at the request's place, and which of them stay; None if no batch is left."""
        place = (request.place.batch, request.place.id) if request.HasField("place") else (_LAST, _LAST)
        batch = await connection.row(
            self._newest, company_id=company_id, import_key=request.import_key, kind=request.kind, batch=place[0]
        )
        if batch is None:
            return None
        done = _done(batch)
        below = place[1] if batch["id"] == place[0] else _LAST
        waiting = [record_id for record_id in sorted(done.versions, reverse=True) if record_id < below]
        ids = waiting[:PAGE_ROWS]
        rows = {row["id"]: row for row in await undoable.rows(connection, company_id, done, ids)}
        kept = dict.fromkeys(undoable.changed(done, ids, rows), "")
        unchanged = [row for record_id, row in rows.items() if record_id not in kept]
        kept |= await undoable.kept(connection, company_id, done, unchanged)
        part = _Part(done, ids, rows, kept, batch["leaving"] or (), is_last=len(waiting) == len(ids))
        besides = request.import_key if request.dry_run else ""
        kept |= await undoable.users.find(connection, company_id, part.leaving, besides)
        return part

    async def _apply(self, connection: Connection, undoable: Undoable, step: Step) -> dict[int, str]:
        """Does the step, and if a record must stay as it is, each of its records by itself. Returns those that stay."""
        if await _tried(connection, undoable, step):
            return {}
        kept = {}
        for row in step.withdrawn:
            if not await _tried(connection, undoable, _alone(step, withdrawn=[row])):
                kept[row["id"]] = IN_CONFLICT
        for pair in step.restored:
            if not await _tried(connection, undoable, _alone(step, restored=[pair])):
                kept[pair[0]["id"]] = IN_CONFLICT
        return kept

    async def _finish(self, connection: Connection, undoable: Undoable, step: Step, part: _Part) -> None:
        """Takes what is undone out of the batch, and tells of it."""
        done, company_id, kept = step.done, step.company_id, part.kept
        undone = {record_id for record_id in part.ids if record_id not in kept}
        versions = {record_id: version for record_id, version in done.versions.items() if record_id not in undone}
        if part.is_last:
            await undoable.end(connection, done)
        if versions:
            before = {str(record_id): done.before[record_id] for record_id in versions if record_id in done.before}
            beside = {} if part.is_last and undoable.ends_beside else done.beside
            await connection.execute(
                self._left, batch=done.id, ids=list(versions), versions=list(versions.values()), before=before,
                beside=beside,
            )  # fmt: skip
        else:
            await connection.execute(self._nothing_left, batch=done.id)
        withdrawn = sorted(row["id"] for row in step.withdrawn if row["id"] not in kept)
        restored = sorted(row["id"] for row, _ in step.restored if row["id"] not in kept)
        if withdrawn or restored:
            sides = {"withdrawn": withdrawn, "restored": restored}
            after = {name: record_ids for name, record_ids in sides.items() if record_ids}
            await self._audit.add(connection, step.call, company_id, "import.undone", undoable.noun, 0, {}, after)
            connection.changed.update((company_id, undoable.noun, record_id) for record_id in (*withdrawn, *restored))
        if step.references.ListFields():
            event = self._outbox.references(
                step.references, company_id=company_id, occurred_at=step.at, request_id=step.call.request_id
            )
            await self._outbox.add(connection, event)

    async def ReleaseRecords(self, request: pb.ReleaseRecordsRequest, call: identity.Call) -> pb.ReleaseRecordsResponse:
        company_id, copies = identity.company_id(call), self._copies.get(request.kind)
        response = pb.ReleaseRecordsResponse()
        if copies is None:
            return response
        if len(request.ids) > PAGE_ROWS:
            raise invalid_request(f"ids must be {PAGE_ROWS} at most.", "ids")
        if self._catch_up is not None and not request.dry_run:
            await self._catch_up(request.kind)  # or a copy that is still on its way would arrive afterwards
        try:
            async with self._database.transaction() as connection:
                rows = await connection.rows(copies.rows, company_id=company_id, ids=list(request.ids))
                names = {row["id"]: row["external_id"] or "" for row in rows}
                besides = request.import_key if request.dry_run else ""
                used = await copies.used(connection, company_id, list(names), besides)
                if not request.dry_run and (free := [row_id for row_id in names if row_id not in used]):
                    await copies.forget(connection, company_id, free)
        except IntegrityConstraintViolationError as fault:
            raise DatabaseUnavailable("a request has just begun to refer to one of the records") from fault
        for record_id in sorted(used):
            response.used.add(id=record_id, external_id=names[record_id], used_by=used[record_id])
        return response


def _done(row: Record) -> Done:
    return Done(
        row["id"],
        dict(zip(row["ids"], row["versions"], strict=True)),
        {int(record_id): values for record_id, values in json.loads(row["before"]).items()},
        json.loads(row["beside"]),
        row["xid"],
    )


def _claim(request: pb.UndoImportRequest, company_id: int) -> Claim | None:
    """The claim of a step; None without a key, and for what changes no record."""
    if not request.idempotency_key or request.dry_run:
        return None
    check_key(request.idempotency_key)
    # Whoever goes on may find that other contexts have released other records meanwhile.
    part = f"{request.import_key} {request.kind} {request.place.batch} {request.place.id}"
    digest = hashlib.blake2b(part.encode(), digest_size=32).digest()
    # Not of one actor, as for batches of an import.
    return Claim(company_id, 0, f"undo {request.idempotency_key}", digest)


def _alone(step: Step, **records: Any) -> Step:
    return Step(step.company_id, step.at, step.call, step.done, references=step.references, **records)


async def _tried(connection: Connection, undoable: Undoable, step: Step) -> bool:
    """Whether the step could be done."""
    before = References()
    before.CopyFrom(step.references)
    await connection.raw.execute("SAVEPOINT step")
    try:
        await undoable.apply(connection, step)
    except IntegrityConstraintViolationError:
        await connection.raw.execute("ROLLBACK TO SAVEPOINT step")
        step.references.CopyFrom(before)
        return False
    await connection.raw.execute("RELEASE SAVEPOINT step")
    return True
