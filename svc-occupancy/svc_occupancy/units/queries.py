"""The SQL statements of what units are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import Insert, insert

from chassis.db.database import Connection
from chassis.db.rows import offered, turned
from chassis.db.statements import Statement
from svc_occupancy.units import tables

STATE_NAMES = ("company_id", "unit_id", "version", "unit_status", "projected_ready_on")


def put_states(prefix: str = "") -> Insert:
    """Stores whole rows, given as columns of these names after the prefix."""
    rows = offered(tables.unit_state, STATE_NAMES, prefix)
    put = insert(tables.unit_state).from_select(list(STATE_NAMES), select(*rows.c), include_defaults=False)
    changed = {name: put.excluded[name] for name in STATE_NAMES[2:]}
    return put.on_conflict_do_update(index_elements=["company_id", "unit_id"], set_=changed)


_SAVE_STATES = Statement(put_states())


async def save_states(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    """Stores whole rows of unit_state."""
    if rows:
        await connection.execute(_SAVE_STATES, **turned(rows, STATE_NAMES))
