"""A company's clock: a service asks it for each instant that records, events and due dates have.

A live company's clock is the real one, and costs nothing. A sandbox's is ahead of it by an offset, which only grows and
which the replica of the companies has. A write reads the offset after it has begun, so once an offset is stored, every
write that begins has at least that offset.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from asyncpg import Record
from sqlalchemy.dialects.postgresql import insert

from chassis.auth.identity import ADMINISTRATOR, INTEGRATION, STAFF, Call
from chassis.db.database import Connection, Database
from chassis.db.statements import Expression, Statement, param
from chassis.refusals import Refusal, invalid_request
from chassis.schedule import instants
from chassis.schedule.instants import Clock

OFFSET_MAX = datetime.timedelta(days=3650)
"""Ten years."""
_NONE = datetime.timedelta()
# Their tokens say whether the company is a sandbox.
_TOLD = frozenset({INTEGRATION, ADMINISTRATOR, STAFF})


@dataclass(frozen=True, slots=True)
class Companies:
    """Companies that share a clock: all live ones, or one sandbox."""

    clock: Clock = instants.now
    sandbox_id: int | None = None


LIVE = Companies()


def is_swept(company: sa.Table) -> tuple[sa.ColumnElement[bool], ...]:
    """Whether time does its work in a company: an active one that has arrived and has not ended."""
    return company.c.active, sa.not_(company.c.ended), company.c.version > sa.text("0")


def offset_of(company: sa.FromClause, company_id: Expression) -> sa.Label[datetime.timedelta]:
    """The offset of a company's clock, for statements that read other things of the company anyway; null while its row
    has not arrived. `company` is the replica."""
    offset: sa.Select[Any] = sa.select(company.c.clock_offset).where(company.c.id == company_id)
    return offset.scalar_subquery().label("clock_offset")


class CompanyClocks:
    """The clocks of a context's companies."""

    def __init__(self, database: Database, company: sa.Table | None = None, real: Clock = instants.now) -> None:
        """The replica is `company`; without one, all companies have the `real` clock."""
        self._database, self.real = database, real
        self._offset: Statement | None = None
        if company is None:
            return
        c, company_id = company.c, param("company_id", sa.BigInteger)
        self._offset = Statement(sa.select(c.clock_offset).where(c.id == company_id))
        self._kind = Statement(sa.select(c.is_sandbox, c.version).where(c.id == company_id))
        sandboxes = sa.select(c.id, c.clock_offset).where(c.is_sandbox, *is_swept(company))
        self._sandboxes = Statement(sandboxes.order_by(c.id))
        self._sandbox = Statement(sandboxes.where(c.id == company_id))
        new = insert(company).values(
            id=company_id, is_sandbox=sa.true(), clock_offset=param("clock_offset", sa.Interval)
        )
        moved = new.on_conflict_do_update(
            index_elements=["id"],
            set_={"is_sandbox": sa.true(), "clock_offset": sa.func.greatest(c.clock_offset, new.excluded.clock_offset)},
            # The row of a company that has not arrived says nothing of it.
            where=sa.or_(c.is_sandbox, c.version == sa.text("0")),
        )
        self._set = Statement(moved.returning(c.id))

    async def of(self, call: Call, connection: Connection | None = None, company_id: int = 0) -> Clock:
        """The clock of the company that the call is about, or of `company_id`, for the call's own work.

        The tokens of people and integrations say whether it is a sandbox; for other callers the replica does.
        """
        who = call.identity
        if self._offset is None or (who.kind in _TOLD and not who.is_sandbox):
            return self.real
        return await self.of_company(company_id or who.company_id, connection)

    async def now(self, call: Call, connection: Connection | None = None) -> datetime.datetime:
        """The present instant of the company that the call is about."""
        return (await self.of(call, connection))()

    async def real_before(self, call: Call, at: datetime.datetime, company_id: int = 0) -> datetime.datetime:
        """An instant of the real clock at or before the moment when the clock of the call's company, or of
        `company_id`, was at `at`."""
        clock = await self.of(call, company_id=company_id)
        if clock is self.real:
            return at
        real = self.real()
        return at - (clock() - real)

    async def of_company(self, company_id: int, connection: Connection | None = None) -> Clock:
        """A company's clock, by the replica."""
        if self._offset is None:
            return self.real
        return self.ahead_by(await (connection or self._database).value(self._offset, company_id=company_id))

    async def is_sandbox(self, call: Call, company_id: int = 0) -> bool:
        """Whether the company that the call is about, or `company_id`, is a sandbox. For who says so see `of`."""
        who = call.identity
        if who.kind in _TOLD:
            return who.is_sandbox
        row = None if self._offset is None else await self._kind_of(company_id or who.company_id)
        return row is not None and row["is_sandbox"]

    async def check_not_live(self, company_id: int) -> None:
        """Raises Refusal 404 for a live company. One that has not arrived may be a sandbox, and so may any company
        where there is no replica."""
        if self._offset is None:
            return
        row = await self._kind_of(company_id)
        if row is not None and not row["is_sandbox"] and row["version"]:
            raise _no_sandbox()

    async def _kind_of(self, company_id: int) -> Record | None:
        return await self._database.row(self._kind, company_id=company_id)

    def ahead_by(self, offset: datetime.timedelta | None) -> Clock:
        """The clock of a company with this offset: see `offset_of`."""
        return (lambda: self.real() + offset) if offset else self.real

    async def sandboxes(self) -> Sequence[Companies]:
        """The sandboxes that are swept: see `is_swept`."""
        if self._offset is None:
            return ()
        rows = await self._database.rows(self._sandboxes)
        return [Companies(self.ahead_by(row["clock_offset"]), row["id"]) for row in rows]

    async def sandbox(self, company_id: int) -> Companies:
        """One of `sandboxes`. Raises Refusal 404."""
        row = None if self._offset is None else await self._database.row(self._sandbox, company_id=company_id)
        if row is None:
            raise _no_sandbox()
        return Companies(self.ahead_by(row["clock_offset"]), company_id)

    async def advance(self, company_id: int, offset: datetime.timedelta) -> None:
        """Stores the offset of a sandbox, unless it has a greater one. Raises Refusal 400 for an offset out of range,
        404 for a live company."""
        if not _NONE <= offset <= OFFSET_MAX:
            raise invalid_request("The offset of a clock must be from 0 to 10 years.", "offset")
        assert self._offset is not None
        if await self._database.value(self._set, company_id=company_id, clock_offset=offset) is None:
            raise _no_sandbox()


def _no_sandbox() -> Refusal:
    return Refusal(404, "not_found", "No sandbox has that id; only a sandbox's clock can be moved.", "company_id")
