"""Units as this context knows them: what a write finds of one, what is kept in `unit_state`, what svc-catalog hears."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from asyncpg import Record
from sqlalchemy import select
from sqlalchemy.dialects.postgresql import Insert, insert

from chassis.db.rows import offered
from makeready.events.v1.events_pb2 import References
from svc_occupancy import queries, rules
from svc_occupancy import rules_residencies as residencies
from svc_occupancy import tables as t

Row = Mapping[str, Any]
STATE_NAMES = ("company_id", "unit_id", "version", "unit_status", "projected_ready_on")


def put_states(prefix: str = "") -> Insert:
    """Stores whole rows, given as columns of these names after the prefix."""
    rows = offered(t.unit_state, STATE_NAMES, prefix)
    put = insert(t.unit_state).from_select(list(STATE_NAMES), select(*rows.c), include_defaults=False)
    changed = {name: put.excluded[name] for name in STATE_NAMES[2:]}
    return put.on_conflict_do_update(index_elements=["company_id", "unit_id"], set_=changed)


def tell(told: References, state: Mapping[str, Any]) -> None:
    """Adds a row of unit_state to what svc-catalog will hear."""
    one = told.unit_occupancies.add(
        id=state["unit_id"],
        version=state["version"],
        company_id=state["company_id"],
        unit_status=state["unit_status"],
    )
    if state["projected_ready_on"] is not None:
        one.projected_ready_on = state["projected_ready_on"].isoformat()


class HeldUnit:
    """A unit whose row is locked, with its active transition and its state."""

    def __init__(self, row: Record, day: datetime.date = datetime.date.min) -> None:
        """row: of `queries_residencies`; day: today in the company's timezone, where `residency` is asked for."""
        self._row = row
        self.turn: Row | None = None
        """The active transition as it is stored; None where the unit has none."""
        if row["id"] is not None:
            self.turn = {column.name: row[column.name] for column in t.transition.c}
        self.id: int = row["held_unit_id"]
        self.property_id: int = row["held_property_id"]
        self.residency = residencies.residency(self.turn is not None, row["move_out_date"], day)
        self.status: rules.UnitStatus | None = row["unit_status"]

    def shown(self, turn: Row) -> tuple[Any, ...]:
        """A transition of this unit as the columns of `queries.TURN_COLUMNS`."""
        return tuple(
            turn[column.name] if column.table is t.transition else self._row[f"held_{column.table.name}_{column.name}"]
            for column in queries.TURN_COLUMNS
        )

    def state(self, company_id: int, status: rules.UnitStatus, turn: Row | None) -> Row | None:
        """The unit's row of unit_state once this transition is its active one; None where it stays."""
        ready_on = None if turn is None else turn["projected_ready_on"]
        if (status, ready_on) == (self.status, self._row["unit_ready_on"]):
            return None
        return {
            "company_id": company_id,
            "unit_id": self.id,
            "version": (self._row["state_version"] or 0) + 1,
            "unit_status": status,
            "projected_ready_on": ready_on,
        }
