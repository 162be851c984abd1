"""Scheduled sweeps: every sweep runs, counts are returned by name, and an impossible instant is refused."""

from __future__ import annotations

import datetime
from collections.abc import Mapping

import pytest

from chassis.refusals import Refusal
from chassis.schedule.sweeps import ScheduledSweeps, Sweep
from makeready.common.v1 import sweeps_pb2 as pb

from ..parcels import operator

NOON = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)


class Swept:
    """Sweeps that record the instants of their runs."""

    def __init__(self) -> None:
        self.instants: list[tuple[str, datetime.datetime]] = []

    def sweep(self, name: str, fault: Exception | None = None) -> Sweep:
        async def one(now: datetime.datetime) -> Mapping[str, int]:
            self.instants.append((name, now))
            if fault is not None:
                raise fault
            return {name: len(self.instants)}

        return one


async def test_every_sweep_runs_in_order_and_reports_its_counts() -> None:
    swept = Swept()
    sweeps = ScheduledSweeps([swept.sweep("late"), swept.sweep("lost")])
    assert await sweeps.sweep(NOON) == {"late": 1, "lost": 2}
    assert swept.instants == [("late", NOON), ("lost", NOON)]


async def test_a_sweep_that_fails_holds_up_no_other_and_its_fault_is_raised() -> None:
    swept, first, second = Swept(), RuntimeError("first"), RuntimeError("second")
    sweeps = ScheduledSweeps([swept.sweep("a", first), swept.sweep("b"), swept.sweep("c", second)])
    with pytest.raises(RuntimeError, match="first"):
        await sweeps.sweep(NOON)
    assert [name for name, _ in swept.instants] == ["a", "b", "c"]


async def test_an_operator_says_when_or_leaves_it_to_the_clock() -> None:
    swept = Swept()
    sweeps, request = ScheduledSweeps([swept.sweep("late")]), pb.RunScheduledSweepsRequest()
    before = datetime.datetime.now(datetime.UTC)
    response = await sweeps.RunScheduledSweeps(request, operator())
    assert before <= swept.instants[0][1] <= datetime.datetime.now(datetime.UTC)
    request.now.FromDatetime(NOON)
    response = await sweeps.RunScheduledSweeps(request, operator())
    assert response.now.ToDatetime(datetime.UTC) == NOON and dict(response.done) == {"late": 2}


@pytest.mark.parametrize("seconds", [0, 253_402_300_799, -(10**11), 10**15])
async def test_a_year_that_nothing_can_be_reckoned_for_is_refused(seconds: int) -> None:
    swept, request = Swept(), pb.RunScheduledSweepsRequest()
    request.now.seconds = seconds
    with pytest.raises(Refusal) as refusal:
        await ScheduledSweeps([swept.sweep("late")]).RunScheduledSweeps(request, operator())
    assert (refusal.value.status, refusal.value.field, swept.instants) == (400, "now", [])
