"""Ids known before the row is written, taken from the table's own sequence (gaps are possible).

If a process kept ids in reserve, a record could get a lower id than records that readers of a list have passed already,
and they would miss it. So a process at rest reserves only the ids that are asked for at that moment, and a busy one a
small block. It drops the rest of a block that is a second old.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

import sqlalchemy as sa

from chassis.db.database import Database
from chassis.db.statements import Statement

BLOCK = 10
LIFE_SECONDS = 1.0


class Ids:
    """Hands out ids of one sequence. Callers that ask while a statement runs share the next one."""

    def __init__(
        self, database: Database, sequence: sa.Sequence, block: int = BLOCK, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Within LIFE_SECONDS of the last reservation, by a clock in seconds, a `block` of ids at least is reserved."""
        self._database = database
        self._block = block
        self._clock = clock
        self._asked = 0
        self._reserved_at = -LIFE_SECONDS
        self._free: deque[int] = deque()
        self._lock = asyncio.Lock()
        series = sa.func.generate_series(1, sa.bindparam("many", type_=sa.Integer)).table_valued("n").render_derived()
        self._take = Statement(sa.select(sequence.next_value().cast(sa.BigInteger)).select_from(series))

    async def next(self) -> int:
        return (await self.take(1))[0]

    async def take(self, many: int) -> list[int]:
        """Returns `many` ids, ascending."""
        self._asked += many
        try:
            async with self._lock:
                is_busy = self._clock() - self._reserved_at < LIFE_SECONDS
                if not is_busy:
                    self._free.clear()
                if len(self._free) < many:
                    await asyncio.sleep(0)  # callers that are ready now share the statement
                    reserved = max(self._asked - len(self._free), self._block if is_busy else 1)
                    self._reserved_at = self._clock()
                    rows = await self._database.rows(self._take, many=reserved)
                    self._free.extend(row[0] for row in rows)
                return [self._free.popleft() for _ in range(many)]
        finally:
            self._asked -= many
