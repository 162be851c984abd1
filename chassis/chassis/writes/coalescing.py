"""Coalesces concurrent requests: those that arrive while a statement runs share the next one.

A request that arrives alone is served at once; no request waits for others to arrive.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import sqlalchemy as sa
import structlog
from sqlalchemy.dialects.postgresql import insert

from chassis.db.database import Database, DatabaseUnavailable
from chassis.db.rows import array_rows
from chassis.db.statements import Statement
from chassis.runtime.failpoints import failpoint
from chassis.writes.idempotency import CLAIM_COLUMNS, Claim, InsertOnce, changes
from makeready.common.v1.documents_pb2 import WriteReply

AT_ONCE = 32
PATIENCE_SECONDS = 0.05  # a statement that waits longer for a lock does not delay the next one

log = structlog.stdlib.get_logger(__name__)
Asked = TypeVar("Asked")
Answer = TypeVar("Answer")


class Coalescer(Generic[Asked, Answer]):
    """Answers concurrent requests together.

    several: answers two or more, in their order, with None for a request that `alone` must answer. alone: answers one.
    If `several` fails, `alone` answers each request, so that a bad one fails by itself.
    """

    def __init__(
        self,
        several: Callable[[Sequence[Asked]], Awaitable[Sequence[Answer | None]]],
        alone: Callable[[Asked], Awaitable[Answer]],
    ) -> None:
        self._several = several
        self._alone = alone
        self._waiting: list[tuple[Asked, asyncio.Future[Answer]]] = []
        self._under_way: set[asyncio.Task[None]] = set()
        self._flushing = False

    async def ask(self, one: Asked) -> Answer:
        """Raises what `alone` raises."""
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((one, answer))
        if not self._flushing:
            self._flushing = True
            self._start(self._flush())
        return await answer

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return task

    async def _flush(self) -> None:
        try:
            while self._waiting:
                some, self._waiting = self._waiting[:AT_ONCE], self._waiting[AT_ONCE:]
                await asyncio.wait({self._start(self._answer(some))}, timeout=PATIENCE_SECONDS)
        finally:
            self._flushing = False

    async def _answer(self, some: Sequence[tuple[Asked, asyncio.Future[Answer]]]) -> None:
        answers: Sequence[Answer | None] = [None] * len(some)
        if len(some) > 1:
            try:
                answers = await self._several([one for one, _ in some])
            except Exception as error:
                # Only the error's type is logged: PostgreSQL's message may hold the row.
                log.warning("asked_one_by_one", many=len(some), reason=type(error).__name__)
        left = []
        for asked, answer in zip(some, answers, strict=True):
            if answer is None:
                left.append(self._answer_alone(*asked))
            elif not asked[1].done():
                asked[1].set_result(answer)
        await asyncio.gather(*left)

    async def _answer_alone(self, one: Asked, future: asyncio.Future[Answer]) -> None:
        try:
            answer = await self._alone(one)
        except Exception as error:
            if not future.done():
                future.set_exception(error)
        else:
            if not future.done():
                future.set_result(answer)


class _Write(NamedTuple):
    database: Database
    claim: Claim
    status: int
    reply: bytes
    rows: Mapping[sa.Table, Mapping[str, Any]]


class CoalescingInsert(InsertOnce):
    """`InsertOnce` for concurrent callers: those that arrive while a statement runs share the next one and its commit.

    The guard is the same: only inserted claims get their rows. A caller whose claim is taken is answered alone, with
    the reply of the earlier request. No table may have a column of arrays.
    """

    def __init__(self, claims: sa.Table, *tables: sa.Table) -> None:
        super().__init__(claims, *tables)
        self._together: Coalescer[_Write, WriteReply] = Coalescer(self._write_several, self._write_alone)
        key = CLAIM_COLUMNS[:3]
        kinds = {name: claims.c[name].type for name in CLAIM_COLUMNS}
        given_claims = array_rows("given_claim", {**kinds, "lock": sa.BigInteger()}, prefix="claim_", numbered=True)
        ok = sa.func.pg_try_advisory_xact_lock(given_claims.c.lock, type_=sa.Boolean).label("ok")
        asked = sa.select(given_claims.c, ok).cte("asked").prefix_with("MATERIALIZED")
        free = sa.select(*(asked.c[name] for name in CLAIM_COLUMNS)).where(asked.c.ok).order_by(asked.c.n)
        claim = insert(claims).from_select(CLAIM_COLUMNS, free, include_defaults=False).on_conflict_do_nothing()
        claimed = claim.returning(*(claims.c[name] for name in key)).cte("claimed")
        # If a key occurs twice in one statement, the claim belongs to the first occurrence that got the lock: another
        # session may release the lock between the two tries.
        same = sa.and_(asked.c.ok, *(claimed.c[name] == asked.c[name] for name in key))
        first = sa.select(sa.func.min(asked.c.n).label("n")).select_from(asked.join(claimed, same))
        mine = first.group_by(*(claimed.c[name] for name in key)).cte("mine")
        effects = []
        for table, columns in self._columns.items():
            types = {column.name: column.type for column in columns}
            rows = array_rows(f"given_{table.name}", types, prefix=f"{table.name}_", numbered=True)
            names = [column.name for column in columns]
            values = sa.select(*(rows.c[name] for name in names)).select_from(rows.join(mine, mine.c.n == rows.c.n))
            effects.append(insert(table).from_select(names, values, include_defaults=False).cte(f"new_{table.name}"))
        self._several = Statement(sa.select(mine.c.n).add_cte(*effects))

    async def write(
        self, database: Database, claim: Claim, status: int, reply: bytes, rows: Mapping[sa.Table, Mapping[str, Any]]
    ) -> WriteReply:
        try:
            await database.check_clock()  # after the values were stamped
        except DatabaseUnavailable as fault:
            return await self._after_all(database, claim, fault)
        return await self._together.ask(_Write(database, claim, status, reply, rows))

    async def _write_alone(self, one: _Write) -> WriteReply:
        return await super().write(*one)

    async def _write_several(self, some: Sequence[_Write]) -> list[WriteReply | None]:
        asked = [one.claim.whole(one.status, one.reply) | {"claim_lock": one.claim.lock} for one in some]
        values = {name: [row[name] for row in asked] for name in asked[0]}
        for table, columns in self._columns.items():
            for column in columns:
                values[f"{table.name}_{column.name}"] = [one.rows[table][column.name] for one in some]
        failpoint("write-before-statement")
        done = {row["n"] for row in await some[0].database.rows(self._several, **values)}
        failpoint("write-after-commit")
        for n, one in enumerate(some, start=1):
            if n in done:
                one.database.committed(changes(one.rows))
        return [
            WriteReply(status=one.status, body=one.reply, replayed=False) if n in done else None
            for n, one in enumerate(some, start=1)
        ]
