"""The SQL of receivers that have answered 2xx, ever."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Text, func, select
from sqlalchemy.dialects.postgresql import ARRAY, insert

from chassis.db.database import Connection, Database
from chassis.db.statements import Statement, param
from svc_webhooks.tables.deliveries import answered_receiver

_ANSWERED = Statement(
    select(answered_receiver.c.receiver).where(
        answered_receiver.c.receiver == func.any(param("receivers", ARRAY(Text)))
    )
)
_STORE = Statement(
    insert(answered_receiver)
    .from_select(["receiver"], select(func.unnest(param("receivers", ARRAY(Text)))), include_defaults=False)
    .on_conflict_do_nothing()
)


async def answered(database: Database, receivers: Collection[str]) -> set[str]:
    """Those of `receivers` that have answered."""
    return {row["receiver"] for row in await database.rows(_ANSWERED, receivers=list(receivers))}


async def answers_stored(connection: Connection, receivers: Collection[str]) -> None:
    """In the order of their names, so that two processes that store the same ones do not wait for each other in
    turn."""
    await connection.execute(_STORE, receivers=sorted(receivers))
