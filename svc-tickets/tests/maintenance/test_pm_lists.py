"""Upkeep as people look for it: by due date, place and state, page by page; counts; a task with its chain."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from chassis.db.database import Database
from chassis.refusals import Refusal
from testkit.clocks import today
from testkit.services import RunningService

from ..companies import new_company
from .pm import Pm

DUE = 2


def day(days: int) -> str:
    return (today() + datetime.timedelta(days=days)).isoformat()


@pytest.fixture
async def pm(service: RunningService, database: Database) -> Pm:
    return Pm(service, await new_company(database))


async def _planned(pm: Pm) -> None:
    company_id = pm.company.id
    for days, place in (
        (9, {"unit_id": company_id}),
        (-3, {"asset_id": company_id}),
        (0, {}),
        (3, {"unit_id": company_id}),
        (40, {}),
    ):
        await pm.add(due_date=day(days), task_name=f"in {days}", **place)
    closed = await pm.add(due_date=day(1), task_name="closed")
    await pm.complete(closed.pm_task_id)


def names(answer: Any) -> list[str]:
    return [task.task_name for task in answer.tasks]


async def test_tasks_in_the_order_of_their_due_dates(pm: Pm) -> None:
    await _planned(pm)
    company_id = pm.company.id
    for values, right in (
        ({}, ["in -3", "in 0", "closed", "in 3", "in 9", "in 40"]),
        ({"open": True}, ["in -3", "in 0", "in 3", "in 9", "in 40"]),
        ({"open": False}, ["closed"]),
        ({"unit_id": company_id}, ["in 3", "in 9"]),
        ({"asset_id": company_id}, ["in -3"]),
        ({"property_id": company_id, "due_from": day(3), "due_to": day(9)}, ["in 3", "in 9"]),
        ({"open": True, "due_to": day(-1)}, ["in -3"]),
        ({"unit_id": company_id + 1}, []),
    ):
        assert names(await pm("ListPmTasks", order=DUE, **values)) == right, values
    by_id = names(await pm("ListPmTasks", unit_id=company_id))
    assert by_id == ["in 9", "in 3"]


async def test_pages_forwards_and_backwards_while_tasks_are_added(pm: Pm) -> None:
    await _planned(pm)
    first = await pm("ListPmTasks", order=DUE, open=True, limit=2)
    assert names(first) == ["in -3", "in 0"] and not first.HasField("previous")
    await pm.add(due_date=day(-9), task_name="came between")
    second = await pm("ListPmTasks", order=DUE, open=True, limit=2, after=first.next)
    third = await pm("ListPmTasks", order=DUE, open=True, limit=2, after=second.next)
    assert names(second) + names(third) == ["in 3", "in 9", "in 40"] and not third.HasField("next")
    assert names(await pm("ListPmTasks", order=DUE, open=True, limit=2, before=third.previous)) == names(second)
    back = await pm("ListPmTasks", order=DUE, open=True, limit=9, before=second.previous)
    assert names(back) == ["came between", "in -3", "in 0"] and not back.HasField("previous")


async def test_counts_by_when_tasks_are_due(pm: Pm, service: RunningService, database: Database) -> None:
    await _planned(pm)
    counts = await pm("CountPmTasks")
    assert (counts.today, counts.overdue, counts.this_week, counts.later) == (day(0), 1, 2, 2)
    assert counts.next.task_name == "in 0"
    assert await pm("CountPmTasks", property_id=pm.company.id) == counts
    stranger = Pm(service, await new_company(database))
    empty = await stranger("CountPmTasks", property_id=pm.company.id)
    assert (empty.overdue, empty.this_week, empty.later, empty.HasField("next")) == (0, 0, 0, False)
    assert names(await stranger("ListPmTasks", order=DUE, unit_id=pm.company.id)) == []


async def test_a_task_has_the_chain_before_and_after_it(pm: Pm, service: RunningService, database: Database) -> None:
    task = await pm.add(due_date=day(0), repeat_months=1, asset_id=pm.company.id)
    chain = [task.pm_task_id]
    for _ in range(4):
        chain.append((await pm.complete(chain[-1])).next_pm_task_id)
    details = await pm("GetPmTask", pm_task_id=chain[2])
    assert [linked.pm_task_id for linked in details.earlier] == chain[:2]
    assert [linked.pm_task_id for linked in details.later] == chain[3:]
    assert (details.task.pm_task_id, details.asset_name) == (chain[2], "Lift")
    stranger = Pm(service, await new_company(database))
    sentences = set()
    for pm_task_id in (chain[2], 10**15):
        with pytest.raises(Refusal) as refused:
            await stranger("GetPmTask", pm_task_id=pm_task_id)
        sentences.add((refused.value.status, refused.value.message))
    assert len(sentences) == 1 and sentences.pop()[0] == 404


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"due_from": "22.11.2026"}, "due_from"), ({"due_to": "2026-W01-1"}, "due_to"), ({"order": 9}, "order"),
        ({"order": DUE, "after": "x"}, ""), ({"order": DUE, "after": "2026-11-22.1", "before": "x"}, "before"),
    ],
)  # fmt: skip
async def test_a_list_without_sense_is_refused(pm: Pm, values: dict[str, Any], field: str) -> None:
    with pytest.raises(Refusal) as refused:
        await pm("ListPmTasks", **values)
    assert refused.value.field == field
