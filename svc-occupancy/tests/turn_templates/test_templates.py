"""Templates: what administrators keep, and what a turn gets of one in one act."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from chassis.auth.identity import ADMINISTRATOR, Identity
from chassis.db.database import Database
from chassis.refusals import Refusal
from svc_occupancy.turn_templates import rules

from ..harness import Company, lived_in, people

DAY = datetime.date(2026, 3, 10)


class Place:
    """A company with a turn whose resident leaves, and people who do work."""

    def __init__(self, company: Company, turn_id: int, staff: int, vendor: int, held: int) -> None:
        self.company, self.turn_id = company, turn_id
        self.staff, self.vendor, self.held = staff, vendor, held
        self.administrator = Identity(ADMINISTRATOR, "gateway", company.id, administrator_id=4)

    async def add(self, *tasks: dict[str, Any], name: str = "Standard turn", **more: Any) -> Any:
        return await self.company.command("AddTurnTemplate", self.administrator, name=name, tasks=tasks, **more)

    async def update(self, template: Any, **more: Any) -> Any:
        request = {"template_id": template.template_id, **more}
        return await self.company.command("UpdateTurnTemplate", self.administrator, **request)

    async def listed(self) -> list[Any]:
        return list(await self.company.command("ListTurnTemplates"))

    async def apply(self, template: Any, turn_id: int = 0) -> Any:
        request = {"turn_id": turn_id or self.turn_id, "template_id": template.template_id}
        return await self.company.response("ApplyTurnTemplate", **request)

    async def tasks(self, turn_id: int = 0) -> list[tuple[str, str]]:
        tasks = await self.company.command("ListTasks", turn_id=turn_id or self.turn_id)
        return [(task.task_type, task.scheduled_date) for task in tasks]


@pytest.fixture
async def place(going: Company, served: Database) -> Place:
    _, turn_id = await lived_in(going, served, "2980-03-11")
    return Place(going, turn_id, *await people(served, going))


async def test_a_template_is_kept_changed_and_removed(place: Place) -> None:
    paint = {"task_type": "Paint", "days_after_move_out": 2, "assignee_id": place.staff, "vendor_id": place.vendor}
    template = await place.add(paint, {"task_type": "Keys"}, floorplan="A1")
    assert [
        (task.task_type, task.days_after_move_out, task.assignee_name, task.vendor_name) for task in template.tasks
    ] == [
        ("Paint", 2, "Ana Ruiz", "Ridge Paint"), ("Keys", 0, "", ""),
    ]  # fmt: skip
    assert not template.tasks[1].HasField("days_after_move_out")
    assert await place.listed() == [template]
    property_id = (await place.company.turns())[0]["property"]["id"]
    changed = await place.update(template, property_id=property_id, clear=["floorplan"], version=1)
    assert (changed.version, changed.property, changed.floorplan, list(changed.tasks)) == (
        2, "Elm Court", "", list(template.tasks),
    )  # fmt: skip
    with pytest.raises(Refusal, match="meanwhile") as refused:
        await place.update(template, name="Other", version=1)
    assert (refused.value.status, refused.value.field) == (422, "version")
    assert await place.update(template, name="Standard turn") == changed
    fewer = await place.update(template, tasks=[{"task_type": "Floors"}])
    assert [task.task_type for task in fewer.tasks] == ["Floors"]
    removed = await place.company.command("RemoveTurnTemplate", place.administrator, template_id=template.template_id)
    assert removed == fewer and await place.listed() == []
    entries = [entry for entry in await place.company.audited() if entry[1].startswith("turn_template")]
    assert [entry[1] for entry in entries] == [
        "turn_template.added", "turn_template.changed", "turn_template.changed", "turn_template.removed",
    ]  # fmt: skip
    assert entries[1][3:] == ({"property_id": None, "floorplan": "A1"}, {"property_id": property_id, "floorplan": None})


async def test_what_no_template_can_be_is_refused(place: Place) -> None:
    await place.add({"task_type": "Paint"})
    other_company = 2**40
    for status, field, task, more in (
        (422, "name", {"task_type": "Paint"}, {}),
        (400, "tasks", None, {"name": "Empty"}),
        (422, "tasks", {"task_type": " paint "}, {"name": "Twice"}),
        (400, "", {"task_type": " "}, {"name": "Blank"}),
        (400, "", {"task_type": "Paint", "days_after_move_out": 366}, {"name": "Late"}),
        (404, "property_id", {"task_type": "Paint"}, {"name": "Elsewhere", "property_id": other_company}),
        (404, "vendor_id", {"task_type": "Paint", "vendor_id": other_company}, {"name": "Nobody"}),
    ):
        tasks = [] if task is None else [task, {"task_type": "Paint"}] if field == "tasks" else [task]
        with pytest.raises(Refusal) as refused:
            await place.add(*tasks, **more)
        assert refused.value.status == status, (more, refused.value)
        assert refused.value.field == field or not field
    assert len(await place.listed()) == 1


async def test_staff_use_templates_and_administrators_keep_them(place: Place) -> None:
    template = await place.add({"task_type": "Paint"})
    with pytest.raises(Exception, match="may not call"):
        await place.company.command("AddTurnTemplate", name="Mine", tasks=[{"task_type": "Paint"}])
    assert len((await place.apply(template)).tasks) == 1


async def test_one_act_adds_all_tasks_of_a_template_once(place: Place) -> None:
    await place.company.command("AddTask", turn_id=place.turn_id, task_type="PAINT")
    template = await place.add(
        {"task_type": "Trash-out", "days_after_move_out": 1, "assignee_id": place.staff},
        {"task_type": "Paint", "days_after_move_out": 2, "vendor_id": place.vendor},
        {"task_type": "Walk", "days_after_move_out": -1, "vendor_id": place.vendor},
        {"task_type": "Keys", "vendor_id": place.held},
    )
    applied = await place.apply(template)
    assert [(task.task_type, task.scheduled_date, task.assignee_name, task.vendor_name) for task in applied.tasks] == [
        ("Trash-out", "2980-03-12", "Ana Ruiz", ""), ("Walk", "2980-03-10", "", "Ridge Paint"), ("Keys", "", "", ""),
    ]  # fmt: skip
    assert (list(applied.present), list(applied.vendors_on_hold)) == (["Paint"], ["Held Plumbing"])
    again = await place.apply(template)
    assert (list(again.tasks), len(again.present)) == ([], 4)
    assert len([entry for entry in await place.company.audited() if entry[1] == "turn_task.added"]) == 4
    # One that was cancelled can be added again.
    await place.company.command("CancelTask", task_id=applied.tasks[0].task_id)
    assert [task.task_type for task in (await place.apply(template)).tasks] == ["Trash-out"]


async def test_a_turn_without_a_move_out_date_gets_tasks_without_dates(place: Place) -> None:
    await place.company.make_units("U2")
    unit_id = (await place.company.unit_ids())["U2"]
    turn_id = (await place.company.move_in(unit_id))["entity_id"]
    template = await place.add({"task_type": "Paint", "days_after_move_out": 2})
    await place.apply(template, turn_id)
    assert await place.tasks(turn_id) == [("Paint", "")]


async def test_a_turn_that_is_over_gets_none(place: Place) -> None:
    template = await place.add({"task_type": "Paint"})
    await place.company.command("CancelTurn", turn_id=place.turn_id)
    with pytest.raises(Refusal, match="The turn is cancelled") as refused:
        await place.apply(template)
    assert refused.value.status == 422


def test_a_date_that_is_past_becomes_today() -> None:
    assert rules.scheduled_on(DAY, 2, DAY) == datetime.date(2026, 3, 12)
    assert rules.scheduled_on(DAY, 2, datetime.date(2026, 3, 12)) == datetime.date(2026, 3, 12)
    assert rules.scheduled_on(DAY, 2, datetime.date(2026, 3, 13)) == datetime.date(2026, 3, 13)
    assert rules.scheduled_on(None, 2, DAY) is None and rules.scheduled_on(DAY, None, DAY) is None
