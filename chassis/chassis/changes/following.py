"""Rows that are derived from records, beside them: the write of a record pays nothing for them.

After its commit, a write of this process names the records that it changed; what is derived from them is made within a
fraction of a second. A process that is killed between a commit and these rows loses the names. So each process compares
all rows with their records when it starts, and every hour, and makes those that differ. The same comparison makes all
rows after an upgrade. Killed in the middle, it goes on with what is missing.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import structlog

from chassis.db.database import Change, Database
from chassis.db.statements import Statement

WAITING_MAX = 50_000  # further records wait for a comparison
COMPARE_SECONDS = 3600
STRETCH_ROWS = 2000
PAUSE_SECONDS = 0.02  # between two stretches, so that a comparison takes little of a service's time

log = structlog.stdlib.get_logger(__name__)


class Stretch(NamedTuple):
    """Some records of a company, from an id downwards. differing: those whose row is missing or outdated."""

    reached: int | None
    met: int
    differing: list[int] | None
    missing: int


class RecordFollower(ABC):
    """Makes what is derived from records of a kind."""

    linger_seconds = 0.05
    """A record that changes several times meanwhile is read once."""
    at_once = 200

    def __init__(self, database: Database, kind: str, compare: Sequence[Statement], next_company: Statement) -> None:
        """compare: statements that return a `Stretch` of at most STRETCH_ROWS records, for company_id and below, an id;
        together they meet all records. next_company: the company with the lowest id above company_id that has some."""
        self._comparing, self._kind = database, kind
        self._compare, self._next_company = compare, next_company
        self._waiting: set[tuple[int, int]] = set()
        self._woken = asyncio.Event()
        self._overflowed = False
        self.is_filling = False
        """Whether a comparison has met records that have no row, and has not ended yet."""

    def add(self, changed: Iterable[Change]) -> None:
        """Records whose change has committed. It neither waits nor raises."""
        # Id 0 stands for several records, which are named one by one too.
        self._name((company_id, entity_id) for company_id, kind, entity_id in changed if kind == self._kind)

    def _name(self, keys: Iterable[tuple[int, int]]) -> None:
        self._waiting.update(key for key in keys if key[1])
        if len(self._waiting) > WAITING_MAX:
            self._waiting.clear()
            self._overflowed = True
        if self._waiting or self._overflowed:
            self._woken.set()

    async def run(self) -> None:
        """Makes the rows of the records that `add` names, until cancelled."""
        while True:
            await self._woken.wait()
            await asyncio.sleep(self.linger_seconds)
            self._woken.clear()
            await self.look_up()
            if self._overflowed:
                self._overflowed = False
                await self.compare()
            keys = sorted(self._waiting)[: self.at_once]
            self._waiting.difference_update(keys)
            try:
                for company_id in sorted({company_id for company_id, _ in keys}):
                    await self.fill(company_id, [entity_id for owner, entity_id in keys if owner == company_id])
            except BaseException:
                self._waiting.update(keys)
                self._woken.set()
                raise
            if self._waiting:
                self._woken.set()

    async def look_up(self) -> None:  # noqa: B027 - most follow their own kind alone
        """Names the records that other changed records belong to."""

    async def keep_comparing(self) -> None:
        """Compares at the start and every COMPARE_SECONDS, until cancelled."""
        while True:
            await self.compare()
            await asyncio.sleep(COMPARE_SECONDS)

    async def compare(self) -> int:
        """Makes the rows of all records whose row is missing or outdated; returns how many."""
        count, company_id = 0, 0
        while (next_id := await self._comparing.value(self._next_company, company_id=company_id)) is not None:
            company_id = next_id
            count += await self.compare_company(company_id)
        if count:
            log.info("derived_rows_made", made_by=type(self).__name__, rows=count)
        return count

    async def compare_company(self, company_id: int) -> int:
        """As `compare`, of one company."""
        try:
            return sum([await self._compare_by(statement, company_id) for statement in self._compare])
        finally:
            self.is_filling = False

    async def _compare_by(self, statement: Statement, company_id: int) -> int:
        count, below = 0, 2**63 - 1
        while True:
            began = time.monotonic()
            row = await self._comparing.row(statement, company_id=company_id, below=below)
            assert row is not None
            stretch = Stretch(*row)
            self.is_filling = self.is_filling or stretch.missing > self.at_once
            differing = stretch.differing or []
            for place in range(0, len(differing), self.at_once):
                await self.fill(company_id, differing[place : place + self.at_once])
            count += len(differing)
            if stretch.met < STRETCH_ROWS or stretch.reached is None:
                return count
            below = stretch.reached
            # At most half of a core's time.
            await asyncio.sleep(max(PAUSE_SECONDS, time.monotonic() - began if differing else 0.0))

    @abstractmethod
    async def fill(self, company_id: int, ids: Sequence[int]) -> None:
        """Makes the rows of these records as they are now."""
