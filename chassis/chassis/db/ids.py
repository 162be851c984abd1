"""Ids known before the row is written: blocks taken from the table's own sequence (gaps are possible)."""

from __future__ import annotations

import asyncio
from collections import deque

import sqlalchemy as sa

from chassis.db.database import Database
from chassis.db.statements import Statement


class Ids:
    """Hands out ids of one sequence, `block` at a time."""

    def __init__(self, database: Database, sequence: sa.Sequence, block: int = 50) -> None:
        self._database = database
        self._block = block
        self._free: deque[int] = deque()
        self._lock = asyncio.Lock()
        series = sa.func.generate_series(1, sa.bindparam("many", type_=sa.Integer)).table_valued("n").render_derived()
        self._take = Statement(sa.select(sequence.next_value().cast(sa.BigInteger)).select_from(series))

    async def next(self) -> int:
        return (await self.take(1))[0]

    async def take(self, many: int) -> list[int]:
        """Returns `many` ids, ascending."""
        async with self._lock:
            missing = many - len(self._free)
            if missing > 0:
                rows = await self._database.rows(self._take, many=max(missing, self._block))
                self._free.extend(row[0] for row in rows)
            return [self._free.popleft() for _ in range(many)]
