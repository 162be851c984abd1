"""The SQL statements of a company's ticket policy."""

from __future__ import annotations

from typing import Any

from asyncpg import Record
from sqlalchemy import BigInteger, select, update
from sqlalchemy.dialects.postgresql import insert

from chassis.db.database import Connection
from chassis.db.statements import Statement, param
from svc_tickets import tables as t

POLICY = ("photo_required_to_complete", "stale_after_hours")

_company_id = param("company_id", BigInteger)
_mine = t.ticket_policy.c.company_id == _company_id
# A company that never set one has the columns' defaults.
_PUT = Statement(insert(t.ticket_policy).values(company_id=_company_id).on_conflict_do_nothing())
_HELD = Statement(select(*(t.ticket_policy.c[name] for name in POLICY)).where(_mine).with_for_update(key_share=True))
_SAVE = Statement(
    update(t.ticket_policy).where(_mine).values({name: param(name, t.ticket_policy.c[name].type) for name in POLICY})
)


async def policy_for_update(connection: Connection, company_id: int) -> Record:
    """The company's policy, held until the end of the transaction."""
    await connection.execute(_PUT, company_id=company_id)
    row = await connection.row(_HELD, company_id=company_id)
    assert row is not None
    return row


async def save_policy(connection: Connection, company_id: int, **policy: Any) -> None:
    await connection.execute(_SAVE, company_id=company_id, **policy)
