"""Long random walks of notices and move-ins over a few units; a model of the contract predicts each step."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import pytest
from sqlalchemy import select

from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.refusals import Refusal
from svc_occupancy import tables as t

from ..harness import Company

STEPS, PAST, FUTURE = 60, ("2019-12-31", "2020-01-31"), ("2998-12-31", "2999-01-31")


@dataclass
class Unit:
    """The model of a unit by the contract."""

    id: int
    status: str | None = None
    active: int | None = None
    move_out_date: str | None = None
    turns: dict[int, tuple[str, str | None]] = field(default_factory=dict)
    """Status and move_out_date of each turn, by id."""

    def notice(self, day: str) -> str | None:
        """Returns the reason of the refusal; None if it is accepted."""
        if self.active is None:
            return "no active resident"
        self.move_out_date, self.status = day, "Notice"
        self.turns[self.active] = ("Active", day)
        return None

    def move_in(self, predecessor: int | None) -> str | None:
        """Like `notice`; the caller sets the new turn afterwards."""
        if predecessor is None:
            if self.active is not None and self.move_out_date not in PAST:
                return "already occupies"
        elif predecessor != self.active:
            return "No outgoing transition"
        elif self.move_out_date is None:
            return "has no move_out_date"
        return None

    def moved_in(self, turn_id: int) -> None:
        if self.active is not None:
            self.turns[self.active] = ("Completed", self.move_out_date)
        self.active, self.move_out_date, self.status = turn_id, None, "Occupied"
        self.turns[turn_id] = ("Active", None)


@pytest.mark.parametrize("seed", range(6))
async def test_every_step_of_a_walk_ends_where_the_contract_says(company: Company, served: Database, seed: int) -> None:
    draw = random.Random(seed)
    names = ["U1", "U2", "U3"]
    await company.make_units(*names)
    ids = await company.unit_ids()
    units = [Unit(ids[name]) for name in names]
    met: set[str | None] = set()
    for _ in range(STEPS):
        unit = draw.choice(units)
        if draw.random() < 0.5:
            day = draw.choice(PAST + FUTURE)
            expected = unit.notice(day)
            record = await outcome(company.notice(unit.id, day), expected)
            assert record is None or (record["entity_id"], record["move_out_date"]) == (unit.active, day)
        else:
            others = [turn_id for other in units for turn_id in other.turns]
            predecessor = draw.choice([None, None, unit.active, unit.active, *others[-3:], 1, 0, -7, 2**70])
            expected = unit.move_in(predecessor)
            record = await outcome(company.move_in(unit.id, predecessor_transition_id=predecessor), expected)
            if record is not None:
                unit.moved_in(record["entity_id"])
        met.add(expected)
    assert len(met) >= 4
    for unit in units:
        turns = await company.turns(unit_id=unit.id)
        stored = {turn["entity_id"]: (turn["status"], turn["move_out_date"]) for turn in turns}
        assert stored == unit.turns and list(stored) == sorted(stored)
        kept = select(t.unit_state.c.unit_status).where(t.unit_state.c.unit_id == unit.id)
        assert await served.value(Statement(kept)) == unit.status


async def outcome(work: Any, refused: str | None) -> dict[str, Any] | None:
    """The record; None if it is refused as expected."""
    if refused is None:
        record: dict[str, Any] = await work
        return record
    with pytest.raises(Refusal, match=refused) as refusal:
        await work
    assert (refusal.value.status, refusal.value.code) == (422, "invalid_request")
    return None
