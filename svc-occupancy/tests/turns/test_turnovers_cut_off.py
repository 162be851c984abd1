"""Beginnings that are cut off anywhere, or that several processes take at once: each happens once, whole."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from chassis.db.database import Connection, Database
from chassis.db.statements import Statement
from chassis.messaging.outbox import Outbox
from chassis.writes.audit import Audit
from makeready.common.v1.sweeps_pb2 import RunScheduledSweepsRequest
from makeready_local.nats import Nats
from svc_occupancy import tables as t
from svc_occupancy.turns.records import TURN
from svc_occupancy.turns.sweeps import Turnovers
from testkit.services import Keys, RunningService

from ..board.test_crashes import killed
from ..harness import Company, fired, published
from .test_planned_turns import ARRIVES, LEAVES, ON_ARRIVAL, let_ahead, statuses

NOW = datetime.datetime.fromisoformat(ON_ARRIVAL)


class CutOffError(Exception):
    """Where the connection is lost."""


async def test_a_beginning_that_is_cut_off_at_any_statement_leaves_nothing(
    going: Company, served: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The departure and the arrival are due at once: two steps in one transaction."""
    _, current, planned = await let_ahead(going, served)
    turnovers = Turnovers(
        served, Audit(t.audit, served), Outbox("svc-occupancy", t.outbox), TURN.renderer("https://app.test")
    )
    before = await published(served, going), await statuses(going)
    statements_left = 0

    def cut_off(name: str) -> None:
        run = getattr(Connection, name)

        async def cut(self: Connection, *args: Any, **values: Any) -> Any:
            nonlocal statements_left
            statements_left -= 1
            if statements_left == 0:
                raise CutOffError
            return await run(self, *args, **values)

        monkeypatch.setattr(Connection, name, cut)

    for name in ("rows", "row", "value", "execute"):
        cut_off(name)
    number = 0
    while True:
        statements_left = number = number + 1
        with pytest.raises(CutOffError):
            await turnovers.sweep(NOW)
        statements_left = 0
        if await statuses(going) != before[1]:
            break  # the transaction is committed: cut off in the next look for what is due
        assert await published(served, going) == before[0], number
    assert number > 15, "each step has several statements"
    assert (await fired(served, going))[-2:] == [
        ("turn.status_changed", current, "Notice", "Vacant Not Ready"),
        ("turn.status_changed", planned, "Vacant Not Ready", "Occupied"),
    ]
    assert await statuses(going) == {current: "Completed", planned: "Active"}
    after = await published(served, going)
    vacated, begun = [message for message in after if message.HasField("public")][-2:]
    assert vacated.occurred_at.ToNanoseconds() < begun.occurred_at.ToNanoseconds(), "they are of two turns of one unit"
    await turnovers.sweep(NOW)
    assert await published(served, going) == after


@pytest.mark.chaos
@pytest.mark.parametrize("point", ["sweep-under-way", "sweep-before-commit"])
async def test_a_process_that_is_killed_at_a_beginning_leaves_it_to_the_next_sweep(
    going: Company, served: Database, occupancy: RunningService, point: str
) -> None:
    _, current, planned = await let_ahead(going, served)
    before = await fired(served, going)
    await killed(occupancy, point, lambda: going.sweep(ON_ARRIVAL))
    assert await fired(served, going) == before
    assert await statuses(going) == {current: "Active", planned: "Active"}
    for _ in range(2):
        await going.sweep(ON_ARRIVAL)
    assert (await fired(served, going))[len(before) :] == [
        ("turn.status_changed", current, "Notice", "Vacant Not Ready"),
        ("turn.status_changed", planned, "Vacant Not Ready", "Occupied"),
    ]


@pytest.fixture
async def another(
    occupancy: RunningService, keys: Keys, own_nats: Nats, tmp_path: Path
) -> AsyncIterator[RunningService]:
    """A second process of svc-occupancy on the same database."""
    service = RunningService(
        "svc-occupancy", keys, occupancy.database_url, own_nats.url, tmp_path / "log", addresses=occupancy.addresses
    )
    await asyncio.to_thread(service.start)
    yield service
    await asyncio.to_thread(service.stop)


async def test_two_processes_that_sweep_at_once_take_each_step_once(
    going: Company, served: Database, another: RunningService
) -> None:
    names = [f"U{n}" for n in range(120)]
    await going.make_units(*names)
    rows = [{"external_id": f"T{name}", "unit": name, "move_out_date": LEAVES} for name in names]
    rows += [{"external_id": f"N{name}", "unit": name, "move_in_date": ARRIVES} for name in names]
    assert set(await going.put("turns", *rows)) == {"created"}
    request = RunScheduledSweepsRequest(yes_for_all_companies=True)
    request.now.FromJsonString(ON_ARRIVAL)
    async with another.channel() as channel:

        async def elsewhere() -> None:
            await another.call(channel, request, going.operator)

        await asyncio.gather(*(going.sweep(ON_ARRIVAL) for _ in range(3)), *(elsewhere() for _ in range(3)))
    turn = t.transition.c
    stored = select(turn.id, turn.unit_id, turn.status).where(turn.company_id == going.id).order_by(turn.id)
    turns = {row["id"]: row for row in await served.rows(Statement(stored))}
    assert [row["status"] for row in turns.values()] == ["completed"] * 120 + ["active"] * 120
    events = await fired(served, going)
    of_unit: dict[int, list[tuple[Any, Any]]] = {}
    for _, turn_id, before, after in events:
        of_unit.setdefault(turns[turn_id]["unit_id"], []).append((before, after))
    assert len(of_unit) == 120
    assert set(map(tuple, of_unit.values())) == {
        (("Notice", "Vacant Not Ready"), ("Vacant Not Ready", "Occupied")),
    }
