"""Scheduled sweeps: every sweep runs, counts are returned by name, and an impossible instant is refused."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

import pytest

from chassis.auth.identity import Call
from chassis.refusals import Refusal
from chassis.schedule.clocks import LIVE, Companies, CompanyClocks
from chassis.schedule.future_instants import RecordSweep
from chassis.schedule.sweeps import ROUNDS_MAX, Due, ScheduledSweeps, Sweep
from makeready.common.v1 import sweeps_pb2 as pb

from ..parcels import operator

NOON = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)


class Swept:
    """Sweeps that record the instants of their runs."""

    def __init__(self) -> None:
        self.instants: list[tuple[str, datetime.datetime]] = []

    def sweep(self, name: str, fault: Exception | None = None) -> Sweep:
        return _Noting(self, name, fault)


class _Noting:
    def __init__(self, swept: Swept, name: str, fault: Exception | None) -> None:
        self._swept, self._name, self._fault = swept, name, fault

    async def sweep(self, now: datetime.datetime, companies: Companies = LIVE) -> Mapping[str, int]:
        assert companies is LIVE
        self._swept.instants.append((self._name, now))
        if self._fault is not None:
            raise self._fault
        return {self._name: len(self._swept.instants)}

    async def next_due(self, company_id: int) -> Due | None:
        return None


WITHOUT_SANDBOXES: Any = None
REAL = CompanyClocks(WITHOUT_SANDBOXES)


def scheduled(*sweeps: Sweep, record: RecordSweep | None = None) -> ScheduledSweeps:
    return ScheduledSweeps(sweeps, REAL, record)


async def test_every_sweep_runs_in_order_and_reports_its_counts() -> None:
    swept = Swept()
    sweeps = scheduled(swept.sweep("late"), swept.sweep("lost"))
    assert await sweeps.sweep(NOON) == {"late": 1, "lost": 2}
    assert swept.instants == [("late", NOON), ("lost", NOON)]


async def test_a_sweep_that_fails_holds_up_no_other_and_its_fault_is_raised() -> None:
    swept, first, second = Swept(), RuntimeError("first"), RuntimeError("second")
    sweeps = scheduled(swept.sweep("a", first), swept.sweep("b"), swept.sweep("c", second))
    with pytest.raises(RuntimeError, match="first"):
        await sweeps.sweep(NOON)
    assert [name for name, _ in swept.instants] == ["a", "b", "c"]


async def test_an_operator_says_when_or_leaves_it_to_the_clock() -> None:
    swept = Swept()
    sweeps, request = scheduled(swept.sweep("late")), pb.RunScheduledSweepsRequest()
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
        await scheduled(swept.sweep("late")).RunScheduledSweeps(request, operator())
    assert (refusal.value.status, refusal.value.field, swept.instants) == (400, "now", [])


@pytest.mark.parametrize("minutes", [16, 60 * 24 * 70])
async def test_a_sweep_ahead_of_the_clock_is_refused_unless_it_is_confirmed(minutes: int) -> None:
    swept, noted = Swept(), []

    async def note(call: Call, sweep: str, now: datetime.datetime, account: str) -> None:
        noted.append((call.identity.actor, sweep, now, account, len(swept.instants)))

    sweeps, request = scheduled(swept.sweep("late"), record=note), pb.RunScheduledSweepsRequest()
    now = (datetime.datetime.now(datetime.UTC) + datetime.timedelta(minutes=minutes)).replace(microsecond=0)
    request.now.FromDatetime(now)
    with pytest.raises(
        Refusal, match=r"ahead of the clock: the sweep vacates the units .* in every company"
    ) as refusal:
        await sweeps.RunScheduledSweeps(request, operator())
    assert (refusal.value.status, refusal.value.field) == (400, "now")
    assert (swept.instants, noted) == ([], [])
    request.yes_for_all_companies, request.requested_by = True, "ada"
    assert (await sweeps.RunScheduledSweeps(request, operator())).done == {"late": 1}
    assert noted == [("operator", "stale", now, "ada", 0)], "recorded before the sweep, which may be cut off"
    for account in ("a\0", "a" * 101):
        request.requested_by = account
        with pytest.raises(Refusal, match="requested_by"):
            await sweeps.RunScheduledSweeps(request, operator())


@pytest.mark.parametrize("minutes", [14, 0, -60 * 24 * 70])
async def test_a_sweep_of_the_past_or_of_a_clock_somewhat_ahead_needs_no_confirmation(minutes: int) -> None:
    async def note(*_arguments: object) -> None:
        raise AssertionError("nothing to record")

    swept, request = Swept(), pb.RunScheduledSweepsRequest()
    request.now.FromDatetime(datetime.datetime.now(datetime.UTC) + datetime.timedelta(minutes=minutes))
    assert (await scheduled(swept.sweep("late"), record=note).RunScheduledSweeps(request, operator())).done


class Ripe:
    """Sandboxes with a clock each, and a sweep that does what is due in them: instants by company."""

    def __init__(self, due: dict[int | None, list[datetime.datetime]]) -> None:
        self.due, self.done = due, list[tuple[int | None, datetime.datetime]]()
        self.ahead = {7: datetime.timedelta(days=3), 8: datetime.timedelta()}

    async def sandboxes(self) -> list[Companies]:
        return [await self.sandbox(company_id) for company_id in self.ahead]

    async def sandbox(self, company_id: int) -> Companies:
        return Companies(lambda: NOON + self.ahead[company_id], company_id)

    async def sweep(self, now: datetime.datetime, companies: Companies = LIVE) -> Mapping[str, int]:
        ripe = [at for at in self.due.get(companies.sandbox_id, []) if at <= now][:1]  # one at a time
        for at in ripe:
            self.due[companies.sandbox_id].remove(at)
            self.done.append((companies.sandbox_id, companies.clock()))
        return {"ripened": len(ripe)}

    async def next_due(self, company_id: int) -> Due | None:
        return Due.of(min(self.due[company_id], default=None), "ripened")

    def scheduled(self) -> ScheduledSweeps:
        clocks: Any = self
        return ScheduledSweeps([self], clocks)


async def test_sandboxes_are_swept_after_live_companies_as_of_their_own_clocks() -> None:
    ripe = Ripe({None: [NOON], 7: [NOON + datetime.timedelta(days=3)], 8: [NOON + datetime.timedelta(minutes=1)]})
    request = pb.RunScheduledSweepsRequest(yes_for_all_companies=True)
    request.now.FromDatetime(NOON + datetime.timedelta(days=2))
    response = await ripe.scheduled().RunScheduledSweeps(request, operator())
    assert (dict(response.done), dict(response.done_in_sandboxes)) == ({"ripened": 1}, {"ripened": 1})
    assert ripe.done[1:] == [(7, NOON + datetime.timedelta(days=3))] and ripe.done[0][0] is None


async def test_a_sandbox_is_brought_up_to_its_clock_whatever_it_takes() -> None:
    days = [NOON + datetime.timedelta(days=day) for day in (1, 2, 3, 4)]
    ripe = Ripe({7: list(days)})
    assert await ripe.scheduled().next_due(7) == Due(days[0], "ripened")
    assert await ripe.scheduled().do_due(7) == {"ripened": 3}
    assert ripe.due[7] == days[3:] and await ripe.scheduled().next_due(7) == Due(days[3], "ripened")
    assert await ripe.scheduled().do_due(7) == {"ripened": 0}
    ripe.due[7] = []
    assert await ripe.scheduled().next_due(7) is None


async def test_a_sweep_that_always_finds_something_ends_with_a_fault() -> None:
    ripe = Ripe({7: [NOON] * 100})
    with pytest.raises(RuntimeError, match="something is due yet in company 7"):
        await ripe.scheduled().do_due(7)
    assert len(ripe.due[7]) == 100 - ROUNDS_MAX


async def test_a_fault_of_one_sandbox_holds_up_no_other() -> None:
    class Faulty(Ripe):
        async def sweep(self, now: datetime.datetime, companies: Companies = LIVE) -> Mapping[str, int]:
            if companies.sandbox_id == 7:
                raise RuntimeError("seven")
            return await super().sweep(now, companies)

    faulty = Faulty({None: [], 8: [NOON]})
    with pytest.raises(RuntimeError, match="seven"):
        await faulty.scheduled().sweep(NOON)
    assert faulty.done == [(8, NOON)]
    with pytest.raises(RuntimeError, match="seven"):
        await faulty.scheduled().do_due(7)
