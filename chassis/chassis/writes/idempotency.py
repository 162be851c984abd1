"""Writes that can be retried (spec 4.13): the claim is a row in the write's own transaction.

Its primary key is the guard, so a crash at any point leaves either everything or nothing. A concurrent duplicate
fails a try-lock and gets `idempotency_in_progress` instead of waiting.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from asyncpg import Record, UniqueViolationError
from sqlalchemy.dialects.postgresql import insert

from chassis.auth import identity
from chassis.auth.identity import Call, Identity
from chassis.db.database import Change, Connection, Database, DatabaseUnavailable
from chassis.db.rows import array_rows_of, columns_of
from chassis.db.statements import CLOCK, TIME, Expression, NewValues, Selection, Statement, TableColumn, Values, param
from chassis.messaging.outbox import OUTBOX, OutboxEvent
from chassis.refusals import Refusal, idempotency_in_progress, idempotency_mismatch, invalid_request
from chassis.runtime.failpoints import failpoint
from makeready.common.v1 import idempotency_pb2 as pb
from makeready.common.v1.documents_pb2 import WriteReply

LEDGER = "idempotency"
_ELSEWHERE = {pb.KEY_USE_IN_PROGRESS: idempotency_in_progress, pb.KEY_USE_USED: idempotency_mismatch}
IDEMPOTENCY_KEY, KEY_CHARACTERS_MAX = "idempotency_key", 64


def ledger(metadata: sa.MetaData) -> sa.Table:
    """The table of claims and replies, in each context that writes. Retained 30 days: see chassis.writes.retention."""
    return sa.Table(
        LEDGER,
        metadata,
        sa.Column("company_id", sa.BigInteger, nullable=False),
        sa.Column("api_key_id", sa.BigInteger, nullable=False),
        sa.Column("idempotency_key", sa.Text, nullable=False),
        sa.Column("fingerprint", sa.LargeBinary, nullable=False),
        sa.Column("status", sa.Integer, nullable=False),
        sa.Column("reply", sa.LargeBinary, nullable=False),
        sa.Column("recorded_at", TIME, nullable=False, server_default=CLOCK, index=True),
        sa.PrimaryKeyConstraint("company_id", "api_key_id", "idempotency_key", name="idempotency_claim"),
    )


@dataclass(frozen=True, slots=True)
class Claim:
    """One caller's key and the fingerprint of its request."""

    company_id: int
    api_key_id: int
    idempotency_key: str
    fingerprint: bytes

    @property
    def lock(self) -> int:
        """The advisory lock's number: 64 bits, because 32 would collide."""
        named = f"{self.company_id}/{self.api_key_id}/{self.idempotency_key}".encode()
        return int.from_bytes(hashlib.blake2b(named, digest_size=8).digest(), "big", signed=True)

    def key(self) -> NewValues:
        return {
            "claim_company_id": self.company_id,
            "claim_api_key_id": self.api_key_id,
            "claim_idempotency_key": self.idempotency_key,
        }

    def whole(self, status: int, reply: bytes) -> NewValues:
        """The row of the ledger with this reply."""
        stored = {"claim_fingerprint": self.fingerprint, "claim_status": status, "claim_reply": reply}
        return self.key() | stored


def claim(caller: Identity, idempotency_key: str, operation: str, canonical_body: bytes) -> Claim:
    """The claim of a request. The operation is its verb and path with its ids; with the body it defines "the same
    request"."""
    digest = hashlib.blake2b(operation.encode() + b"\0" + canonical_body, digest_size=32).digest()
    return Claim(caller.company_id, caller.api_key_id, idempotency_key, digest)


def claim_of(request: Any, caller: Identity, operation: str, canonical_body: bytes) -> Claim:
    """The claim of a write of the public API, whose body is checked: see `claim`.

    The RPC's request has `idempotency_key` and `used_elsewhere`. Raises Refusal 409 if another service has the key.
    """
    refusal = _ELSEWHERE.get(request.used_elsewhere)
    if refusal is not None:
        raise refusal()
    return claim(caller, request.idempotency_key, operation, canonical_body)


def check_key(key: str) -> None:
    """Raises Refusal 400 unless a request's `idempotency_key` may be one."""
    if len(key) > KEY_CHARACTERS_MAX or not (key.isascii() and key.isprintable()):
        message = f"idempotency_key must be 1 to {KEY_CHARACTERS_MAX} printable ASCII characters."
        raise invalid_request(message, IDEMPOTENCY_KEY)


CLAIM = "idempotency_claim"
KEY = ("company_id", "api_key_id", "idempotency_key")
CLAIM_COLUMNS = (*KEY, "fingerprint", "status", "reply")
_ONE: sa.ColumnElement[int] = sa.literal_column("1").label("one")
NOTHING: Mapping[str, int] = {}
SET_BY_WRITES = "set by writes"  # in the info of a column: inserts set it, though it has a server default


def _columns(table: sa.Table) -> list[TableColumn]:
    """The columns that an insert sets: those without a server default, those that say so in their info, and keys,
    because replies name rows by them, unless PostgreSQL alone numbers them."""
    return [
        column
        for column in table.c
        if (column.primary_key and column.identity is None)
        or column.server_default is None
        or SET_BY_WRITES in column.info
    ]


class Ledger:
    """The statements about claims that all kinds of writes share."""

    def __init__(self, claims: sa.Table) -> None:
        self._claimed = {name: param(f"claim_{name}", claims.c[name].type) for name in CLAIM_COLUMNS}
        self._claim = sa.select(*self._claimed.values())
        same = [claims.c[name] == self._claimed[name] for name in KEY]
        stored = sa.select(*(claims.c[name].label(f"kept_{name}") for name in CLAIM_COLUMNS[3:])).where(*same)
        self._stored = stored.subquery("kept")
        self._lock = sa.select(sa.func.pg_try_advisory_xact_lock(param("lock", sa.BigInteger)).label("ok")).cte("lock")
        self._found = self._lock.outerjoin(self._stored, sa.true())
        self._look = Statement(sa.select(self._lock.c.ok, *self._stored.c).select_from(self._found))
        # A commit that was interrupted while it waited for a synchronous standby is visible here, but is lost if this
        # server dies. So a replay locks the claim's row. That is a write too: its own commit waits until the standby
        # has all before it. Only retention's lock excludes it, and what retention deletes was on the standby for days.
        held = sa.select(_ONE).select_from(claims).where(*same)
        self._hold = Statement(held.with_for_update(read=True, key_share=True, skip_locked=True))
        self._keep = Statement(sa.insert(claims).from_select(CLAIM_COLUMNS, self._claim, include_defaults=False))

    async def stored(self, database: Database, claim: Claim) -> WriteReply | None:
        """The reply of an earlier request with the key; None if the key is free.

        Raises Refusal 409 for a mismatch and for a key in flight. A caller that would refuse a request before it claims
        the key calls this first: a replay, a mismatch and an in-progress win over other refusals.
        """
        async with database.connection() as connection:
            return await self.stored_in(connection, claim)

    async def stored_in(self, connection: Connection, claim: Claim) -> WriteReply | None:
        """As `stored`, with the claim locked until the end of the connection's transaction. The reply may be sent when
        that has committed."""
        row = await connection.row(self._look, lock=claim.lock, **claim.key())
        assert row is not None
        return await self._replay(connection, claim, row)

    async def _replay(self, connection: Connection | Database, claim: Claim, row: Record) -> WriteReply | None:
        """The reply of an earlier request, which `row` has; None if it has none. Raises Refusal 409.

        The reply may be sent when the connection's transaction has committed.
        """
        reply = _stored(row, claim)
        if reply is not None:
            await connection.execute(self._hold, **claim.key())
        return reply

    async def once(
        self,
        database: Database,
        claim: Claim,
        work: Callable[[Connection], Awaitable[bytes]],
        first: str = "",
        status: int = 200,
    ) -> WriteReply:
        """Does the work in one transaction and stores the body that it returns, or returns an earlier request's reply.

        A new reply has the HTTP `status`. The SQL `first` is sent together with BEGIN. If the work raises, everything
        is rolled back. Raises Refusal 409 (mismatch, in progress) and DatabaseUnavailable.
        """
        try:
            async with database.waiters, database.transaction(first) as connection:
                done = await self.stored_in(connection, claim)
                if done is None:
                    body = await work(connection)
                    failpoint("write-decided")
                    await self.keep(connection, claim, body, status)
                    failpoint("write-before-commit")
        except UniqueViolationError as fault:
            if fault.constraint_name != CLAIM:
                raise
            # The first request committed between this one's snapshot and its lock.
            return await self._reply_if_committed(database, claim, fault)
        return WriteReply(status=status, body=body) if done is None else done

    async def keep(self, connection: Connection, claim: Claim, body: bytes, status: int = 200) -> None:
        """Stores the reply of a new write, in the write's transaction."""
        await connection.execute(self._keep, **claim.whole(status, body))

    async def _reply_if_committed(self, database: Database, claim: Claim, fault: Exception) -> WriteReply:
        """The reply of a write that may have committed: its claim shows whether it did. Else raises the fault."""
        done = await self.stored(database, claim)
        if done is None:
            raise fault
        return done


class IdempotentInsert(Ledger):
    """A write that only inserts, as one statement (398 µs; a transaction of seven statements takes 661).

    The rows' values and the reply are known beforehand: ids come from reserved blocks. The statement's snapshot is
    older than its lock, so the primary key decides; it must run under READ COMMITTED. Columns with a server
    default take it, except keys: the reply names the row by its id.
    """

    def __init__(
        self,
        claims: sa.Table,
        *tables: sa.Table,
        only_if: Mapping[TableColumn, sa.ColumnElement[bool]] | None = None,
    ) -> None:
        """Columns of `only_if` are null where their condition is false; its parameters are `named` in a write."""
        super().__init__(claims)
        self._only_if = only_if or {}
        claim = insert(claims).from_select(CLAIM_COLUMNS, self._claim.select_from(self._lock).where(self._lock.c.ok))
        mine = sa.select(claim.on_conflict_do_nothing().returning(_ONE).cte("claimed").c.one).cte("mine")
        self._columns = {
            table: [*_columns(table), *(column for column in self._only_if if column.table is table)]
            for table in tables
        }
        effects = []
        for table, columns in self._columns.items():
            new_values = (self._value(c, param(f"{table.name}_{c.name}", c.type)) for c in columns)
            values = sa.select(*new_values).select_from(mine)
            effect = insert(table).from_select([c.name for c in columns], values)
            effects.append(effect.returning(_ONE).cte(f"new_{table.name}"))
        done = sa.select(sa.func.count()).select_from(mine).scalar_subquery().label("done")
        self._write = Statement(
            sa.select(self._lock.c.ok, done, *self._stored.c).select_from(self._found).add_cte(*effects)
        )

    def _value(self, column: TableColumn, value: Expression) -> Expression:
        condition = self._only_if.get(column)
        return value if condition is None else sa.case((condition, value))

    async def write(
        self,
        database: Database,
        claim: Claim,
        status: int,
        reply: bytes,
        rows: Mapping[sa.Table, Values],
        changed: Iterable[Change] = (),
        named: Mapping[str, int] = NOTHING,
    ) -> WriteReply:
        """Inserts one row per table and stores the reply, or returns an earlier request's reply.

        The rows are about the records `changed`; `named` are the parameters of `only_if`. Raises Refusal 409 (mismatch,
        in progress) and DatabaseUnavailable.
        """
        values = self._values(rows)
        failpoint("write-before-statement")
        try:
            await database.check_clock()  # after the values were stamped
            row = await database.row(self._write, lock=claim.lock, **claim.whole(status, reply), **values, **named)
        except DatabaseUnavailable as fault:
            return await self._reply_if_committed(database, claim, fault)
        return await self._written(database, claim, WriteReply(status=status, body=reply), row, changed)

    async def write_checked(
        self,
        database: Database,
        claim: Claim,
        status: int,
        reply: bytes,
        rows: Mapping[sa.Table, Values],
        changed: Iterable[Change] = (),
        *,
        lock: int,
        check: Callable[[Connection], Awaitable[None]],
    ) -> WriteReply:
        """`write`, after a check that no other write with this lock makes at the same time.

        The number of an advisory lock is `lock`. The refusal is raised by `check`. A replay is answered without it.
        """
        values = self._values(rows)
        failpoint("write-before-statement")
        try:
            async with database.waiters, database.transaction(f"SELECT pg_advisory_xact_lock({lock})") as connection:
                done = await self.stored_in(connection, claim)
                if done is not None:
                    return done
                await check(connection)
                row = await connection.row(self._write, lock=claim.lock, **claim.whole(status, reply), **values)
        except DatabaseUnavailable as fault:
            return await self._reply_if_committed(database, claim, fault)
        return await self._written(database, claim, WriteReply(status=status, body=reply), row, changed)

    def _values(self, rows: Mapping[sa.Table, Values]) -> NewValues:
        return {
            f"{table.name}_{column.name}": rows[table][column.name]
            for table, columns in self._columns.items()
            for column in columns
        }

    async def _written(
        self,
        database: Database,
        claim: Claim,
        reply: WriteReply,
        row: Record | None,
        changed: Iterable[Change],
    ) -> WriteReply:
        """The reply, if the statement that returned `row` has inserted; else that of the request that did."""
        assert row is not None
        if row["done"]:
            failpoint("write-after-commit")
            database.committed(changed)
            return reply
        # The first request may have committed between this statement's snapshot and its lock: look again.
        lost = DatabaseUnavailable("a claim was refused and is not there")
        return await self._replay(database, claim, row) or await self._reply_if_committed(database, claim, lost)


@dataclass(frozen=True, slots=True)
class Decision:
    """The outcome of a write, decided from the row. Its `reply` is JSON, stored for replays.

    The `rows` to insert are by table, besides those of the `events`; `values` are the parameters of the updates.
    Besides the locked record and those of the events, the records `changed` change: their kinds and ids.
    """

    status: int
    reply: bytes
    rows: Mapping[sa.Table, Sequence[Values]] = field(default_factory=dict)
    values: Values = field(default_factory=dict)
    events: Sequence[OutboxEvent] = ()
    changed: Sequence[tuple[str, int]] = ()

    def rows_of(self, table: sa.Table) -> Sequence[Values]:
        """The rows to insert into a table; into the outbox those of the events."""
        rows = self.rows.get(table, ())
        return [*rows, *(event.row for event in self.events)] if table.name == OUTBOX else rows


# Settings local to the transaction hold whether the claim is locked, and whether the row is.
_LOCK = "set_config('makeready.claim', pg_try_advisory_xact_lock({lock})::text, true)"
_IS_LOCKED = "current_setting('makeready.claim')::boolean"
_HOLD = "set_config('makeready.row', (SELECT count(*) = 1 FROM held)::text, true)"
_IS_HELD = "current_setting('makeready.row')::boolean"


class IdempotentWrite(Ledger):
    """A write that reads, decides and writes, in four round trips. It begins and locks the claim and one row; reads,
    under the locks, the stored reply and the rule's input; writes all effects and the claim; commits.
    """

    def __init__(
        self,
        claims: sa.Table,
        locked: sa.Table,
        look: Selection,
        inserts: Sequence[sa.Table] = (),
        updates: Sequence[sa.UpdateBase] = (),
        refusals: Mapping[str, Callable[[], Refusal]] | None = None,
    ) -> None:
        """Every writer locks the row of the table `locked`, by company_id and id, before it changes what `look` reads:
        one row at most. Columns of `inserts` with a server default take it, except keys. The `updates` are made before
        the inserts. The `refusals` are by the unique constraint that a concurrent change may violate.
        """
        super().__init__(claims)
        self._locked_kind = locked.name
        self._refusals = refusals or {}
        # Sent as text, because a statement with parameters can't be sent together with others; the values are integers.
        # A duplicate that finds the claim in flight locks no row, and is refused at once.
        # A company_id outside the key is compared in a form that no index matches.
        company = "(company_id = {company_id})" + ("" if locked.c.company_id.primary_key else " IS TRUE")
        lock_row = f"FROM {locked.name} WHERE {company} AND id = {{row_id}} AND {_IS_LOCKED}"
        held = f"WITH held AS MATERIALIZED (SELECT {lock_row} FOR NO KEY UPDATE)"
        self._begin = f"SELECT {_LOCK}; {held} SELECT {_HOLD}"
        # A row that comes between the lock and the look is not locked, and counts as not there.
        looked_at = look.add_columns(sa.literal_column(_IS_HELD).label("is_there")).subquery("found")
        ok: sa.ColumnElement[bool] = sa.literal_column(_IS_LOCKED).label("ok")
        single_row = sa.select(_ONE).subquery("one_row")
        both = single_row.outerjoin(self._stored, sa.true()).outerjoin(looked_at, sa.true())
        self._read = Statement(sa.select(*looked_at.c, ok, *self._stored.c).select_from(both))
        updated = [form.returning(_ONE).cte(f"update_{number}") for number, form in enumerate(updates)]
        counts = [sa.select(sa.func.count()).select_from(changed).scalar_subquery() >= 0 for changed in updated]
        self._columns = {table: [column.name for column in _columns(table)] for table in inserts}
        effects = []
        for table, names in self._columns.items():
            rows = sa.select(*array_rows_of(table, names, f"{table.name}_").c).where(*counts)
            effects.append(insert(table).from_select(names, rows, include_defaults=False).cte(f"new_{table.name}"))
        effects.append(insert(claims).from_select(CLAIM_COLUMNS, self._claim, include_defaults=False).cte("claimed"))
        self._write = Statement(sa.select(_ONE).add_cte(*updated, *effects))

    async def write(
        self, database: Database, claim: Claim, row_id: int, decide: Callable[[Record | None], Decision], **named: Any
    ) -> WriteReply:
        """Does what `decide` returns for the row (None if there is none), or returns an earlier request's reply.

        The parameters of `look` are `named`. Raises what `decide` raises, after a rollback; Refusal 409 (mismatch, in
        progress); DatabaseUnavailable.
        """
        failpoint("write-before-statement")
        begin = self._begin.format(lock=claim.lock, company_id=claim.company_id, row_id=row_id)
        try:
            async with database.waiters, database.transaction(begin) as connection:
                failpoint("write-locked")
                row = await connection.row(self._read, **{**claim.key(), **named})
                assert row is not None
                done = await self._replay(connection, claim, row)
                if done is not None:
                    return done
                decision = decide(row if row["is_there"] else None)
                assert decision.rows.keys() <= self._columns.keys()
                values = dict(decision.values)
                for table, names in self._columns.items():
                    values |= columns_of(decision.rows_of(table), names, f"{table.name}_")
                failpoint("write-decided")
                await connection.execute(self._write, **claim.whole(decision.status, decision.reply), **values)
                connection.changed |= self._changed(claim, row_id, decision)
                failpoint("write-before-commit")
        except DatabaseUnavailable as fault:
            return await self._reply_if_committed(database, claim, fault)
        except UniqueViolationError as fault:
            refusal = self._refusals.get(fault.constraint_name or "")
            if refusal is not None:
                raise refusal() from None
            if fault.constraint_name != CLAIM:
                raise
            return await self._reply_if_committed(database, claim, fault)
        failpoint("write-after-commit")
        if database.hand_over is not None:
            await database.hand_over(decision.events)
        return WriteReply(status=decision.status, body=decision.reply, replayed=False)

    def _changed(self, claim: Claim, row_id: int, decision: Decision) -> set[Change]:
        """The records that a write changes."""
        changed: set[Change] = {(claim.company_id, *record) for record in decision.changed}
        changed.add((claim.company_id, self._locked_kind, row_id))
        changed.update(*(event.changed for event in decision.events))
        return changed


def _stored(row: Record, claim: Claim) -> WriteReply | None:
    if row["kept_fingerprint"] is None:
        if not row["ok"]:
            raise idempotency_in_progress()
        return None
    if row["kept_fingerprint"] != claim.fingerprint:
        raise idempotency_mismatch()
    return WriteReply(status=row["kept_status"], body=row["kept_reply"], replayed=True)


class KeyUses(Ledger):
    """What API keys have used idempotency keys for, by this service's ledger."""

    def __init__(self, database: Database, claims: sa.Table) -> None:
        super().__init__(claims)
        self._database = database

    async def GetKeyUse(self, request: pb.GetKeyUseRequest, call: Call) -> pb.GetKeyUseResponse:
        who = identity.caller(call)
        claim = Claim(who.company_id, who.api_key_id, request.idempotency_key, b"")
        row = await self._database.row(self._look, lock=claim.lock, **claim.key())
        assert row is not None
        if row["kept_fingerprint"] is not None:
            return pb.GetKeyUseResponse(use=pb.KEY_USE_USED)
        return pb.GetKeyUseResponse(use=pb.KEY_USE_FREE if row["ok"] else pb.KEY_USE_IN_PROGRESS)
