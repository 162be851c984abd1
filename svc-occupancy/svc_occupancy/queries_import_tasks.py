"""The SQL statements of an import of make-ready tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from asyncpg import Record
from sqlalchemy import BigInteger, and_, func, literal_column, select

from chassis.db.database import Connection
from chassis.db.statements import TEXTS, Statement, param
from chassis.imports.importer import ImportTable
from svc_occupancy import tables as t

_company_id = param("company_id", BigInteger)

TASKS = ImportTable(
    t.turn_task,
    "transition_id",
    "unit_id",
    "task_type",
    "status",
    "scheduled_date",
    "completed_at",
    "cancelled_at",
    "stale_at",
    "created_at",
)


def _turns() -> Statement:
    rows: Any = func.unnest(param("external_ids", TEXTS))
    named = rows.table_valued("external_id").render_derived(name="named")
    each = t.transition.alias("each")
    one = (
        select(each.c.id)
        .where(each.c.company_id == _company_id, each.c.external_id == named.c.external_id)
        .order_by(each.c.id.desc())
        .limit(literal_column("1"))
    )
    # Literals, for each of them has an index of its own.
    filed = one.where(each.c.source == literal_column("'import'")).correlate(named).scalar_subquery()
    fed = one.where(each.c.source != literal_column("'import'")).correlate(named).scalar_subquery()
    found = select(named.c.external_id, func.coalesce(filed, fed).label("id"))
    wanted = found.offset(literal_column("0")).subquery("wanted")
    turn = t.transition
    here = and_(turn.c.company_id == _company_id, turn.c.id == wanted.c.id)
    return Statement(select(wanted.c.external_id, turn.c.id, turn.c.unit_id).select_from(wanted.join(turn, here)))


TURNS = _turns()


async def turns(connection: Connection, company_id: int, external_ids: Sequence[str]) -> dict[str, Record]:
    """The turns that bear these external ids, with `id` and `unit_id`: the one that a file made, else the newest that a
    feed did."""
    rows = await connection.rows(TURNS, company_id=company_id, external_ids=external_ids)
    return {row["external_id"]: row for row in rows}
