"""Tasks with an assignee, a vendor and an order."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from chassis.db.database import Database
from chassis.refusals import Refusal
from svc_occupancy.turn_tasks import rules

from ..harness import Company, lived_in, people

TASK = {"external_id": "K1", "turn": "T1", "task_type": "Paint"}


class Place:
    """A company with a turn, and people who do work."""

    def __init__(self, company: Company, turn_id: int, staff: int, vendor: int, held: int) -> None:
        self.company, self.turn_id = company, turn_id
        self.staff, self.vendor, self.held = staff, vendor, held

    async def add(self, task_type: str, **more: Any) -> Any:
        return await self.company.command("AddTask", turn_id=self.turn_id, task_type=task_type, **more)

    async def names(self) -> list[str]:
        return [task.task_type for task in await self.company.command("ListTasks", turn_id=self.turn_id)]


@pytest.fixture
async def place(going: Company, served: Database) -> Place:
    _, turn_id = await lived_in(going, served)
    staff, vendor, held = await people(served, going)
    return Place(going, turn_id, staff, vendor, held)


async def test_a_task_has_an_assignee_and_a_vendor_with_their_names(place: Place) -> None:
    task = await place.add("Paint", assignee_id=place.staff, vendor_id=place.vendor)
    assert (task.assignee_id, task.assignee_name, task.vendor_id, task.vendor_name) == (
        place.staff, "Ana Ruiz", place.vendor, "Ridge Paint",
    )  # fmt: skip
    fetched = (await place.company.command("GetTask", task_id=task.task_id)).task
    assert fetched == task
    task = await place.company.command("UpdateTask", task_id=task.task_id, clear=["assignee_id", "vendor_id"])
    assert not task.HasField("assignee_id") and task.assignee_name == "" and not task.HasField("vendor_id")
    assert (await place.company.audited())[-1][1:] == (
        "turn_task.changed", task.task_id, {"assignee_id": place.staff, "vendor_id": place.vendor},
        {"assignee_id": None, "vendor_id": None},
    )  # fmt: skip


async def test_who_does_a_task_stays_if_it_has_changed_since_the_person_looked(place: Place) -> None:
    task = await place.add("Paint", assignee_id=place.staff)
    about = {"task_id": task.task_id, "from_assignee_id": 0, "from_vendor_id": 0}
    with pytest.raises(Refusal) as refused:
        await place.company.command("UpdateTask", **about, clear=["assignee_id"])
    assert (refused.value.status, refused.value.field) == (422, "from_assignee_id")
    # What has become what they want is no conflict; what the request does not change does not matter.
    same = await place.company.command("UpdateTask", **about, assignee_id=place.staff)
    assert same.updated_at == task.updated_at
    task = await place.company.command("UpdateTask", **about, vendor_id=place.vendor)
    assert (task.assignee_id, task.vendor_id) == (place.staff, place.vendor)
    with pytest.raises(Refusal) as refused:
        await place.company.command("UpdateTask", **about, clear=["vendor_id"])
    assert refused.value.field == "from_vendor_id"


async def test_a_vendor_on_hold_keeps_its_task_and_gets_no_other(place: Place, served: Database) -> None:
    task = await place.add("Paint", vendor_id=place.vendor)
    await people(served, place.company, version=2, hold=place.vendor)
    renamed = await place.company.command(
        "UpdateTask", task_id=task.task_id, task_type="Paint walls", vendor_id=place.vendor
    )
    assert renamed.vendor_id == place.vendor
    for call in (
        place.add("Floors", vendor_id=place.vendor),
        place.company.command("UpdateTask", task_id=(await place.add("Keys")).task_id, vendor_id=place.vendor),
    ):
        with pytest.raises(Refusal, match="on hold") as refused:
            await call
        assert (refused.value.status, refused.value.field) == (422, "vendor_id")


@pytest.mark.parametrize("field", ["assignee_id", "vendor_id"])
async def test_nobody_of_another_company_gets_a_task(
    place: Place, field: str, new_company: Any, served: Database
) -> None:
    other = await people(served, await new_company())
    # Its own company does not have them, says the owner of vendors; no gateway answers in these tests.
    if field == "vendor_id":
        with pytest.raises(Refusal, match="no vendor") as refused:
            await place.add("Paint", vendor_id=other[1])
        assert (refused.value.status, refused.value.field) == (404, field)
    else:
        with pytest.raises(Exception, match="gateway"):
            await place.add("Paint", assignee_id=other[0])
    assert await place.names() == []


async def test_open_tasks_are_found_by_person_vendor_and_by_nobody(place: Place) -> None:
    await place.add("Paint", assignee_id=place.staff, scheduled_date="2980-03-14")
    await place.add("Floors", vendor_id=place.vendor, scheduled_date="2980-03-13")
    await place.add("Keys")
    await place.add("Walk", assignee_id=place.staff, scheduled_date="2980-03-12")

    async def found(**filters: Any) -> list[str]:
        tasks = await place.company.command("ListOpenTasks", **filters)
        assert all(task.task.HasField("assignee_name") == task.task.HasField("assignee_id") for task in tasks)
        return [task.task.task_type for task in tasks]

    property_id = (await place.company.command("ListOpenTasks"))[0].property_id
    assert await found(assignee_id=place.staff) == ["Walk", "Paint"]
    assert await found(assignee_id=place.staff, due_by="2980-03-13") == ["Walk"]
    assert await found(vendor_id=place.vendor) == ["Floors"]
    assert await found(unassigned=True) == ["Keys"]
    assert await found(assignee_id=place.staff, property_id=property_id) == ["Walk", "Paint"]
    assert await found(unassigned=True, property_id=property_id + 1) == []
    assert await found(assignee_id=place.staff, vendor_id=place.vendor) == []


async def test_tasks_go_by_their_dates_until_a_person_puts_them_in_order(place: Place) -> None:
    paint = await place.add("Paint", scheduled_date="2980-03-14")
    keys = await place.add("Keys")
    walk = await place.add("Walk", scheduled_date="2980-03-12")
    assert await place.names() == ["Walk", "Paint", "Keys"]
    order: dict[str, Any] = {"turn_id": place.turn_id, "task_ids": [keys.task_id, walk.task_id]}
    listed = await place.company.command("OrderTasks", **order)
    assert [(task.task_type, task.position) for task in listed] == [("Keys", 1), ("Walk", 2), ("Paint", 3)]
    assert (await place.company.audited())[-1][1:] == (
        "turn.tasks_ordered", place.turn_id, {"task_ids": [walk.task_id, paint.task_id, keys.task_id]},
        {"task_ids": [keys.task_id, walk.task_id, paint.task_id]},
    )  # fmt: skip
    await place.add("Floors", scheduled_date="2980-03-11")
    assert await place.names() == ["Keys", "Walk", "Paint", "Floors"]
    # Done work stands first, by when it was done.
    await place.company.command("CompleteTask", task_id=paint.task_id)
    await place.company.command("CompleteTask", task_id=keys.task_id)
    assert await place.names() == ["Paint", "Keys", "Walk", "Floors"]
    unit_id = (await place.company.command("GetTask", task_id=walk.task_id)).task.unit_id
    board = (await place.company.command("GetBoardUnit", unit_id=unit_id)).tasks
    assert [task.task_type for task in board] == ["Paint", "Keys", "Walk", "Floors"]
    # An id that is no open task of the turn does not count, and the same order again changes nothing.
    number = len(await place.company.audited())
    again = [2**40, keys.task_id, walk.task_id]
    await place.company.command("OrderTasks", turn_id=place.turn_id, task_ids=again)
    assert [task.position for task in (await place.company.command("ListTasks", turn_id=place.turn_id))[2:]] == [1, 2]
    await place.company.command("OrderTasks", turn_id=place.turn_id, task_ids=again)
    assert len(await place.company.audited()) == number + 1
    await place.company.command("OrderTasks", turn_id=place.turn_id)
    assert await place.names() == ["Paint", "Keys", "Floors", "Walk"]


async def test_a_file_assigns_tasks_by_external_ids(place: Place) -> None:
    company = place.company
    await company.make_units("U2")
    assert await company.put("turns", {"external_id": "T1", "unit": "U2"}) == ["created"]
    turn_id = (await company.turn("T1"))["entity_id"]
    row = TASK | {"assignee": "S1", "assigned_vendor": "V1"}
    assert await company.put("turn-tasks", row) == ["created"]
    assert await company.put("turn-tasks", row) == ["unchanged"]
    (task,) = await company.command("ListTasks", turn_id=turn_id)
    assert (task.assignee_name, task.vendor_name) == ("Ana Ruiz", "Ridge Paint")
    assert await company.put("turn-tasks", TASK | {"assigned_vendor": "nobody"}) == ["rejected assigned_vendor"]
    assert await company.put("turn-tasks", TASK | {"assignee": "", "assigned_vendor": ""}) == ["changed"]
    (task,) = await company.command("ListTasks", turn_id=turn_id)
    assert not task.HasField("assignee_id") and not task.HasField("vendor_id")


class _Task:
    def __init__(self, task_id: int, position: int | None) -> None:
        self.id, self.position, self.scheduled_date = task_id, position, None


def test_every_order_that_is_asked_for_is_the_order() -> None:
    tasks = [_Task(1, None), _Task(2, 2), _Task(3, 1)]
    assert [task.id for task in rules.ordered(tasks, ())] == [3, 2, 1]
    for task_ids in itertools.permutations([1, 2, 3]):
        assert [task.id for task in rules.ordered(tasks, task_ids)] == list(task_ids)
    assert [task.id for task in rules.ordered(tasks, [1, 9, 1])] == [1, 3, 2]
