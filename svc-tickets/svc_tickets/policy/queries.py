"""The SQL statements of a company's ticket policy."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import BigInteger, Boolean, ColumnElement, Label, func, select, text, update
from sqlalchemy.dialects.postgresql import insert

from chassis.db.database import Connection, Database
from chassis.db.statements import Query, Statement, param
from svc_tickets.policy import rules
from svc_tickets.policy.tables import ticket_policy


class Policy(NamedTuple):
    """A company's policy."""

    photo_required_to_complete: bool
    stale_after_hours: int


_company_id = param("company_id", BigInteger)
_mine = ticket_policy.c.company_id == _company_id
# A company that never set a policy has the columns' defaults.
_PUT = Statement(insert(ticket_policy).values(company_id=_company_id).on_conflict_do_nothing())
_columns = [ticket_policy.c[name] for name in Policy._fields]
_READ = Query(Policy, select(*_columns).where(_mine))
_HELD = Query(Policy, select(*_columns).where(_mine).with_for_update(key_share=True))
_SAVE = Statement(
    update(ticket_policy).where(_mine).values({column.name: param(column.name, column.type) for column in _columns})
)


async def policy(database: Database, company_id: int) -> Policy:
    """The company's policy."""
    policy = await _READ.row(database, company_id=company_id)
    return policy or Policy(False, rules.STALE_AFTER_HOURS)


async def policy_for_update(connection: Connection, company_id: int) -> Policy:
    """The company's policy, locked until the end of the transaction."""
    await connection.execute(_PUT, company_id=company_id)
    policy = await _HELD.row(connection, company_id=company_id)
    assert policy is not None
    return policy


async def save_policy(connection: Connection, company_id: int, policy: Policy) -> None:
    await connection.execute(_SAVE, company_id=company_id, **policy._asdict())


def photo_required(company_id: ColumnElement[int]) -> Label[bool]:
    """For statements on tickets of this company: whether it requires a photo to complete a ticket."""
    required = select(ticket_policy.c.photo_required_to_complete).where(ticket_policy.c.company_id == company_id)
    return func.coalesce(required.scalar_subquery(), text("false"), type_=Boolean).label("photo_required")


_THRESHOLD = Statement(select(ticket_policy.c.stale_after_hours).where(_mine))


async def stale_after_hours(connection: Connection | Database, company_id: int) -> int:
    """The number of quiet hours after which a ticket of the company is stale."""
    hours: int | None = await connection.value(_THRESHOLD, company_id=company_id)
    return rules.STALE_AFTER_HOURS if hours is None else hours
