"""A unit that a write holds, and what the write makes of it."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from asyncpg import Record

from svc_occupancy import queries, rules
from svc_occupancy import rules_residencies as residencies
from svc_occupancy import tables as t

Row = Mapping[str, Any]


class HeldUnit:
    """A unit whose row is locked, with its active transition and its state."""

    def __init__(self, row: Record, day: datetime.date) -> None:
        """row: of `queries_residencies`; day: today in the company's timezone."""
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

    def state(self, company_id: int, status: rules.UnitStatus, turn: Row) -> Row | None:
        """The unit's row of unit_state once this transition is its active one; None where it stays."""
        ready_on = turn["projected_ready_on"]
        if (status, ready_on) == (self.status, self._row["unit_ready_on"]):
            return None
        return {
            "company_id": company_id,
            "unit_id": self.id,
            "version": (self._row["state_version"] or 0) + 1,
            "unit_status": status,
            "projected_ready_on": ready_on,
        }
