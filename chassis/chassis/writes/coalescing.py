"""Writes of concurrent callers that share a statement and its commit (`chassis.db.coalescing`)."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import sqlalchemy as sa
from asyncpg import Record, UniqueViolationError
from sqlalchemy.dialects.postgresql import insert

from chassis.db.coalescing import Coalescer
from chassis.db.database import Change, Database, DatabaseUnavailable
from chassis.db.rows import Arrays, array_rows, columns_of
from chassis.db.statements import Expression, Label, Selection, Statement, TableColumn, Values, param
from chassis.refusals import Refusal
from chassis.runtime.failpoints import failpoint
from chassis.writes.idempotency import (
    CLAIM_COLUMNS,
    KEY,
    NOTHING,
    Claim,
    Decision,
    IdempotentInsert,
    IdempotentWrite,
)
from makeready.common.v1.documents_pb2 import WriteReply

_ONE: Expression = sa.literal_column("1")
LINGER_SECONDS = 0.002  # a fifth less CPU a create (docs/decisions/write-cost.md)


class _Write(NamedTuple):
    database: Database
    claim: Claim
    status: int
    reply: bytes
    rows: Mapping[sa.Table, Values]
    changed: Iterable[Change]
    named: Mapping[str, int]


class CoalescingInsert(IdempotentInsert):
    """`IdempotentInsert` for concurrent callers: those that arrive while a statement runs share the next one and its
    commit.

    The guard is the same: only inserted claims get their rows. A caller whose claim is taken is answered alone, with
    the reply of the earlier request. No table may have a column of arrays. Of a parameter of `only_if`, the least value
    counts for all.
    """

    def __init__(
        self,
        claims: sa.Table,
        *tables: sa.Table,
        only_if: Mapping[TableColumn, sa.ColumnElement[bool]] | None = None,
    ) -> None:
        super().__init__(claims, *tables, only_if=only_if)
        self._together: Coalescer[_Write, WriteReply] = Coalescer(
            self._write_several, self._write_alone, LINGER_SECONDS
        )
        kinds = {name: claims.c[name].type for name in CLAIM_COLUMNS}
        given_claims = array_rows("given_claim", {**kinds, "lock": sa.BigInteger()}, prefix="claim_", numbered=True)
        ok = sa.func.pg_try_advisory_xact_lock(given_claims.c.lock, type_=sa.Boolean).label("ok")
        requests = sa.select(*given_claims.c, ok).cte("asked").prefix_with("MATERIALIZED")
        free = sa.select(*(requests.c[name] for name in CLAIM_COLUMNS)).where(requests.c.ok).order_by(requests.c.n)
        claim = insert(claims).from_select(CLAIM_COLUMNS, free, include_defaults=False).on_conflict_do_nothing()
        claimed = claim.returning(*(claims.c[name] for name in KEY)).cte("claimed")
        # If a key occurs twice in one statement, the claim belongs to the first occurrence that got the lock: another
        # session may release the lock between the two tries.
        same = sa.and_(requests.c.ok, *(claimed.c[name] == requests.c[name] for name in KEY))
        first = sa.select(sa.func.min(requests.c.n).label("n")).select_from(requests.join(claimed, same))
        mine = first.group_by(*(claimed.c[name] for name in KEY)).cte("mine")
        effects = []
        for table, columns in self._columns.items():
            types = {column.name: column.type for column in columns}
            rows = array_rows(f"given_{table.name}", types, prefix=f"{table.name}_", numbered=True)
            names = [column.name for column in columns]
            new_values = (self._value(column, rows.c[column.name]) for column in columns)
            values = sa.select(*new_values).select_from(rows.join(mine, mine.c.n == rows.c.n))
            effects.append(insert(table).from_select(names, values, include_defaults=False).cte(f"new_{table.name}"))
        self._several = Statement(sa.select(mine.c.n).add_cte(*effects))

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
        try:
            await database.check_clock()  # after the values were stamped
        except DatabaseUnavailable as fault:
            return await self._reply_if_committed(database, claim, fault)
        return await self._together.ask(_Write(database, claim, status, reply, rows, changed, named))

    async def _write_alone(self, write: _Write) -> WriteReply:
        return await super().write(*write)

    async def _write_several(self, writes: Sequence[_Write]) -> list[WriteReply | None]:
        ledger_rows = [
            write.claim.whole(write.status, write.reply) | {"claim_lock": write.claim.lock} for write in writes
        ]
        values = _columns(ledger_rows)
        for table, columns in self._columns.items():
            for column in columns:
                values[f"{table.name}_{column.name}"] = [write.rows[table][column.name] for write in writes]
        least = {name: min(write.named[name] for write in writes) for name in writes[0].named}
        failpoint("write-before-statement")
        done = {row["n"] for row in await writes[0].database.rows(self._several, **values, **least)}
        failpoint("write-after-commit")
        for n, write in enumerate(writes, start=1):
            if n in done:
                write.database.committed(write.changed)
        return [
            WriteReply(status=write.status, body=write.reply, replayed=False) if n in done else None
            for n, write in enumerate(writes, start=1)
        ]


class _DecideAlone(enum.Enum):
    ALONE = "alone"


DECIDE_ALONE = _DecideAlone.ALONE


class ConditionSeen(NamedTuple):
    """A column of what a decision was made from, and the condition that its value must meet when the change is
    written."""

    label: Label
    holds: Callable[[Expression], sa.ColumnElement[bool]]


NO_CONDITIONS: Mapping[str, ConditionSeen] = {}


class _Change(NamedTuple):
    database: Database
    claim: Claim
    row_id: int
    decide: Callable[[Record | None], Decision]


class _Decided(NamedTuple):
    n: int
    change: _Change
    decision: Decision
    row: Record


class CoalescingWrite(IdempotentWrite):
    """`IdempotentWrite` for concurrent callers that change rows of their own: they share one statement that reads, and
    one that writes if no row has changed meanwhile.

    Nothing is locked while Python decides. The second statement locks the claims and the rows, and waits for neither.
    It changes the rows that still have the version and the other values that the decision was made from. Every other
    request goes on alone, as an `IdempotentWrite`: one whose row or claim is locked or has changed, one that is
    refused, and the second one of a row.
    """

    def __init__(
        self,
        claims: sa.Table,
        locked: sa.Table,
        look: Selection,
        sets: Sequence[str],
        guards: Sequence[Label] = (),
        inserts: Sequence[sa.Table] = (),
        only_if: Mapping[str, ConditionSeen] = NO_CONDITIONS,
    ) -> None:
        """The table `locked` has a version. `look` is the SELECT of its rows without a condition, each joined with one
        row or none. A change `sets` these columns, the version among them; `values` of a Decision has them as new_NAME,
        and the old version where nothing changes. A decision depends on `guards`, columns of `look`, though another
        version need not change them. A column of `only_if` is set if its condition holds when the statement writes;
        else it is null, and a lock on the row makes up for it.
        """
        c, version = locked.c, locked.c.version
        mine = (c.company_id == param("company_id", sa.BigInteger), c.id == param("id", sa.BigInteger))
        new = {name: param(f"new_{name}", c[name].type) for name in sets}
        change = sa.update(locked).where(*mine, version < new["version"]).values(new)
        super().__init__(claims, locked, look.where(*mine), inserts=inserts, updates=[change])
        carried = [*guards, *(condition.label for condition in only_if.values())]
        self._sets, self._seen = sets, [label.name for label in carried]
        self._together: Coalescer[_Change, WriteReply | _DecideAlone] = Coalescer(
            self._several, self._one, LINGER_SECONDS
        )
        self._read_many = Statement(_reads(claims, locked, look))
        self._hold_many = Statement(_holds(claims))
        written = _Written(claims, locked, sets, carried)
        self._write_many = Statement(written.statement(guards, only_if, self._columns))

    async def change(
        self, database: Database, claim: Claim, row_id: int, decide: Callable[[Record | None], Decision]
    ) -> WriteReply:
        """As `write`; `decide` may be called twice."""
        done = await self._together.ask(_Change(database, claim, row_id, decide))
        if isinstance(done, WriteReply):
            return done
        # In the task of the caller, so that it ends if the caller leaves while it waits for the row.
        return await self.write(database, claim, row_id, decide, company_id=claim.company_id, id=row_id)

    async def _one(self, change: _Change) -> WriteReply | _DecideAlone:
        try:
            return (await self._several([change]))[0]
        except (DatabaseUnavailable, UniqueViolationError):
            return DECIDE_ALONE

    async def _several(self, changes_asked: Sequence[_Change]) -> Sequence[WriteReply | _DecideAlone]:
        answers: list[WriteReply | _DecideAlone] = [DECIDE_ALONE] * len(changes_asked)
        database = changes_asked[0].database
        # Only the first change of a row, and the first with a key.
        of_rows = {(change.claim.company_id, change.row_id): n for n, change in reversed([*enumerate(changes_asked)])}
        of_keys = {tuple(change.claim.key().values()): n for n, change in reversed([*enumerate(changes_asked)])}
        numbers = sorted(set(of_rows.values()) & set(of_keys.values()))
        failpoint("write-before-statement")
        await database.check_clock()
        keys = [changes_asked[n].claim.key() | {"row_id": changes_asked[n].row_id} for n in numbers]
        decided: list[_Decided] = []
        replays: list[Values] = []
        for row in await database.rows(self._read_many, **_columns(keys)):
            n = numbers[row["n"] - 1]
            change = changes_asked[n]
            if row["kept_fingerprint"] is not None:
                if row["kept_fingerprint"] == change.claim.fingerprint:
                    answers[n] = WriteReply(status=row["kept_status"], body=row["kept_reply"], replayed=True)
                    replays.append(change.claim.key())
            elif row["of_n"] is not None:
                with contextlib.suppress(Refusal):  # it is decided again, under the locks
                    decided.append(_Decided(n, change, change.decide(row), row))
        if replays:  # one commit for all of them: each waits for the standby
            await database.execute(self._hold_many, **_columns(replays))
        if not decided:
            return answers
        failpoint("write-decided")
        await database.check_clock()
        done = [decided[row["n"] - 1] for row in await database.rows(self._write_many, **self._values(decided))]
        if done:
            failpoint("write-after-commit")
        for n, change, decision, _ in done:
            answers[n] = WriteReply(status=decision.status, body=decision.reply, replayed=False)
            database.committed(self._changed(change.claim, change.row_id, decision))
        return answers

    def _values(self, decided: Sequence[_Decided]) -> Arrays:
        """The parameters of the statement that writes."""
        whole = []
        for _, change, decision, row in decided:
            seen = {f"seen_{name}": row[name] for name in self._seen} | {"seen_version": row["seen_version"]}
            new = {f"new_{name}": decision.values[f"new_{name}"] for name in self._sets}
            key = change.claim.whole(decision.status, decision.reply) | {
                "lock": change.claim.lock,
                "row_id": change.row_id,
            }
            whole.append(key | seen | new)
        values = _columns(whole)
        for table, names in self._columns.items():
            made_rows = [
                (n, row) for n, (_, _, decision, _) in enumerate(decided, 1) for row in decision.rows_of(table)
            ]
            values[f"{table.name}_of_n"] = [n for n, _ in made_rows]
            values |= columns_of([row for _, row in made_rows], names, f"{table.name}_")
        return values


def _reads(claims: sa.Table, locked: sa.Table, look: Selection) -> Selection:
    """The rows and the stored replies for arrays of keys and row ids."""
    c = locked.c
    keys = {f"claim_{name}": claims.c[name].type for name in KEY} | {"row_id": sa.BigInteger()}
    requests = array_rows("asked", keys, numbered=True)
    rows = look.add_columns(c.version.label("seen_version"), requests.c.n.label("of_n")).where(
        c.company_id == requests.c.claim_company_id, c.id == requests.c.row_id
    )
    rows_read = rows.subquery("found")
    stored = [claims.c[name].label(f"kept_{name}") for name in CLAIM_COLUMNS[3:]]
    both = requests.outerjoin(claims, _same_key(claims, requests)).outerjoin(
        rows_read, rows_read.c.of_n == requests.c.n
    )
    return sa.select(*rows_read.c, requests.c.n, *stored).select_from(both)


def _holds(claims: sa.Table) -> Selection:
    """Locks the claims of replies that are sent again: see `Ledger`."""
    replayed = array_rows("replayed", {f"claim_{name}": claims.c[name].type for name in KEY})
    hold: Selection = sa.select(_ONE).select_from(replayed.join(claims, _same_key(claims, replayed)))
    return hold.with_for_update(read=True, key_share=True, skip_locked=True, of=claims)


class _Written:
    """The statement that writes several changes: claims and rows that can be locked at once and are as they were read
    get their effects; it returns the numbers of these changes."""

    def __init__(self, claims: sa.Table, locked: sa.Table, sets: Sequence[str], carried: Sequence[Label]) -> None:
        self._claims, self._locked, self._sets = claims, locked, sets
        types = {f"claim_{name}": claims.c[name].type for name in CLAIM_COLUMNS}
        types |= {"lock": sa.BigInteger(), "row_id": sa.BigInteger(), "seen_version": locked.c.version.type}
        types |= {f"seen_{label.name}": label.type for label in carried}
        parameters = array_rows("given", types | {f"new_{name}": locked.c[name].type for name in sets}, numbered=True)
        ok = sa.func.pg_try_advisory_xact_lock(parameters.c.lock, type_=sa.Boolean).label("ok")
        self._asked = sa.select(*parameters.c, ok).cte("asked").prefix_with("MATERIALIZED")
        requests = self._asked.c
        self._of_row = (locked.c.company_id == requests.claim_company_id, locked.c.id == requests.row_id)

    def statement(
        self,
        guards: Sequence[Label],
        only_if: Mapping[str, ConditionSeen],
        inserts: Mapping[sa.Table, Sequence[str]],
    ) -> Selection:
        mine = self._claimed(self._held(guards))
        effects = [self._changed(mine, only_if)]
        for table, names in inserts.items():
            types = {"of_n": sa.BigInteger()} | {name: table.c[name].type for name in names}
            rows = array_rows(f"given_{table.name}", types, prefix=f"{table.name}_")
            new = sa.select(*(rows.c[name] for name in names)).join(mine, mine.c.n == rows.c.of_n)
            effects.append(insert(table).from_select(names, new, include_defaults=False).cte(f"new_{table.name}"))
        return sa.select(mine.c.n).add_cte(*effects)

    def _held(self, guards: Sequence[Label]) -> sa.CTE:
        """The changes whose rows are locked now, as they were read."""
        requests, locked = self._asked, self._locked
        as_seen = [
            locked.c.version == requests.c.seen_version,
            *(guard.element == requests.c[f"seen_{guard.name}"] for guard in guards),
        ]
        rows = requests.join(locked, sa.and_(*self._of_row))
        as_was = sa.select(requests.c.n).select_from(rows).where(requests.c.ok, *as_seen)
        lock = as_was.with_for_update(key_share=True, skip_locked=True, of=locked)
        return lock.cte("held").prefix_with("MATERIALIZED")

    def _claimed(self, held: sa.CTE) -> sa.CTE:
        """The changes whose keys are claimed now."""
        requests, claims = self._asked, self._claims
        free = sa.select(*(requests.c[f"claim_{name}"] for name in CLAIM_COLUMNS)).join(held, held.c.n == requests.c.n)
        claim = insert(claims).from_select(CLAIM_COLUMNS, free, include_defaults=False).on_conflict_do_nothing()
        claimed = claim.returning(*(claims.c[name] for name in KEY)).cte("claimed")
        done = requests.join(claimed, _same_key(claimed, requests))
        return sa.select(requests.c.n).select_from(done).cte("mine").prefix_with("MATERIALIZED")

    def _changed(self, mine: sa.CTE, only_if: Mapping[str, ConditionSeen]) -> sa.CTE:
        requests, version = self._asked.c, self._locked.c.version
        values: dict[str, Expression] = {name: requests[f"new_{name}"] for name in self._sets}
        for name, condition in only_if.items():
            seen = requests[f"seen_{condition.label.name}"]
            values[name] = sa.case((condition.holds(seen), values[name]))
        changed = sa.update(self._locked).where(*self._of_row, requests.n == mine.c.n, version < requests.new_version)
        return changed.values(values).returning(_ONE).cte("changed")


def _same_key(claims: sa.FromClause, rows: sa.FromClause) -> sa.ColumnElement[bool]:
    """Whether a row, whose columns are named `claim_…`, has the key of a claim."""
    return sa.and_(*(claims.c[name] == rows.c[f"claim_{name}"] for name in KEY))


def _columns(rows: Sequence[Values]) -> Arrays:
    """One or more rows of the same names as arrays, for the parameters of `array_rows`."""
    return {name: [row[name] for row in rows] for name in rows[0]}
