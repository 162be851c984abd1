"""The SQL statements of unit states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import Insert, insert

from chassis.db.database import Connection
from chassis.db.rows import array_rows_of
from chassis.db.statements import Statement
from svc_occupancy.units import tables
from svc_occupancy.units.rules import UnitState

_NAMES = ("company_id", "unit_id", "version", "unit_status", "projected_ready_on")


def put_states(prefix: str = "") -> Insert:
    """Upserts whole rows of unit_state; parameters: `columns_of_states`."""
    rows = array_rows_of(tables.unit_state, _NAMES, prefix)
    put = insert(tables.unit_state).from_select(list(_NAMES), select(*rows.c), include_defaults=False)
    changed = {name: put.excluded[name] for name in _NAMES[2:]}
    return put.on_conflict_do_update(index_elements=["company_id", "unit_id"], set_=changed)


def columns_of_states(states: Sequence[UnitState], prefix: str = "") -> dict[str, list[Any]]:
    """The parameters of `put_states`."""
    return {prefix + name: [getattr(state, name) for state in states] for name in _NAMES}


_SAVE_STATES = Statement(put_states())


async def save_states(connection: Connection, states: Sequence[UnitState]) -> None:
    if states:
        await connection.execute(_SAVE_STATES, **columns_of_states(states))
