"""Preventive maintenance in the back office: adding, changing, completing, repeating; audited, once for each key."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from sqlalchemy import func, select

from chassis.auth.identity import ADMINISTRATOR, Identity
from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.refusals import Refusal
from makeready.catalog.v1 import places_pb2
from makeready.common.v1.documents_pb2 import ImportRow
from svc_tickets import tables as t
from testkit.services import RunningService

from ..companies import Company, new_company
from ..tickets.commands import audited
from .pm import Pm

WHOLE = {"area": "Roof", "repeat_days": 30, "external_id": "X1"}


@pytest.fixture
async def company(database: Database) -> Company:
    return await new_company(database)


@pytest.fixture
def pm(service: RunningService, company: Company) -> Pm:
    return Pm(service, company)


async def refused(answer: Any) -> tuple[int, str]:
    with pytest.raises(Refusal) as refusal:
        await answer
    assert refusal.value.message.endswith(".")
    return refusal.value.status, refusal.value.message


async def test_a_task_is_listed_as_it_was_added(pm: Pm, company: Company) -> None:
    task = await pm.add(**WHOLE)
    values = {field.name: value for field, value in task.ListFields()}
    for name in ("created_at", "updated_at"):
        values.pop(name)
    assert values == {
        "pm_task_id": task.pm_task_id,
        "task_name": "Filters",
        "status": "Open",
        "due_date": "2040-03-05",
        "property": "Elm",
        "unit": "Roof",
        "property_id": company.id,
        "area": "Roof",
        "repeat_days": 30,
        "external_id": "X1",
        "source": "staff",
        "url": f"https://app.test/pm-tasks/{task.pm_task_id}",
    }
    assert await pm.tasks() == [task]


async def test_where_a_task_is_in_words(pm: Pm, company: Company) -> None:
    assert (await pm.add(unit_id=company.id)).unit == "1A"
    assert (await pm.add(area="Boiler room", asset_id=company.id)).unit == "Boiler room"
    assert (await pm.add()).unit == "Whole property"


async def test_every_act_is_audited_and_an_act_that_changes_nothing_is_not(
    pm: Pm, company: Company, client: Any
) -> None:
    task = await pm.add(repeat_months=1, area="Roof")
    number = task.pm_task_id
    await pm.update(number, due_date="2040-03-31", unit_id=company.id)
    assert await pm.update(number, due_date="2040-03-31") == (await pm.tasks())[0]
    done = await pm.complete(number)
    assert await pm.complete(number) == done
    administrator = Identity(ADMINISTRATOR, "gateway", company.id, administrator_id=3)
    entries = await audited(client, administrator, "pm_task", number)
    actor = f"staff:{company.id}"
    assert [(entry["actor"], entry["action"]) for entry in entries] == [
        (actor, "pm_task.added"),
        (actor, "pm_task.changed"),
        (actor, "pm_task.completed"),
    ]
    assert entries[0]["after"] == {
        "property_id": company.id,
        "task_name": "Filters",
        "due_date": "2040-03-05",
        "area": "Roof",
        "repeat_months": 1,
        "day_of_month": 5,
    }
    assert entries[1]["before"] == {"due_date": "2040-03-05", "unit_id": None, "area": "Roof", "day_of_month": 5}
    assert entries[1]["after"] == {"due_date": "2040-03-31", "unit_id": company.id, "area": None, "day_of_month": 31}
    assert entries[2]["before"]["status"] == "Open" and entries[2]["after"]["status"] == "Completed"
    (successor,) = await audited(client, administrator, "pm_task", done.next_pm_task_id)
    assert (successor["action"], successor["after"]["due_date"]) == ("pm_task.added", "2040-04-30")


async def test_one_that_comes_round_has_one_successor_due_from_its_own_due_date(pm: Pm) -> None:
    first = await pm.add(due_date="2020-01-31", repeat_months=1, external_id="F")
    done = await pm.complete(first.pm_task_id)
    assert done.status == "Completed" and done.HasField("completed_at")
    (second,) = await pm.tasks(open=True)
    assert (second.pm_task_id, second.previous_pm_task_id) == (done.next_pm_task_id, first.pm_task_id)
    assert (second.due_date, second.repeat_months, second.HasField("external_id")) == ("2020-02-29", 1, False)
    await pm.complete(second.pm_task_id)
    (third,) = await pm.tasks(open=True)
    assert third.due_date == "2020-03-31"
    await pm.cancel(third.pm_task_id)
    assert await pm.tasks(open=True) == []
    assert [task.status for task in await pm.tasks()] == ["Completed", "Completed", "Cancelled"]


async def test_one_that_a_file_opens_again_is_done_again_without_another_successor(pm: Pm) -> None:
    row = {"external_id": "X1", "status": "Open", "repeat_months": 1}
    await pm.bring(row)
    (first,) = await pm.tasks()
    await pm.complete(first.pm_task_id)
    await pm.bring(row)
    assert (await pm.tasks())[0].status == "Open"
    again = await pm.complete(first.pm_task_id)
    _, successor = await pm.tasks()
    assert (again.status, again.next_pm_task_id) == ("Completed", successor.pm_task_id)


async def test_two_who_complete_it_at_once_make_one_successor(pm: Pm) -> None:
    task = await pm.add(repeat_days=7)
    done = await asyncio.gather(*(pm.complete(task.pm_task_id) for _ in range(5)))
    assert len({reply.next_pm_task_id for reply in done}) == 1
    assert len(await pm.tasks()) == 2


@pytest.mark.parametrize("rpc", ["add", "update", "complete", "cancel"])
async def test_the_same_request_again_is_answered_alike_and_done_once(pm: Pm, rpc: str) -> None:
    task = await pm.add(repeat_days=7)
    words = {"update": {"task_name": "Belts"}, "add": {}}.get(rpc, {})
    places = () if rpc == "add" else (task.pm_task_id,)
    act = getattr(pm, rpc)
    first = await act(*places, idempotency_key="same", **words)
    many = len(await pm.tasks())
    assert await act(*places, idempotency_key="same", **words) == first
    assert len(await pm.tasks()) == many
    other = {"add": {"area": "Roof"}, "update": {"task_name": "Ducts"}}.get(rpc)
    again = act(*places, idempotency_key="same", **other) if other else act(2**40, idempotency_key="same")
    assert (await refused(again))[0] == 409


async def test_what_is_given_takes_the_place_of_what_it_does_not_go_with(pm: Pm, company: Company) -> None:
    task = await pm.add(area="Roof", repeat_days=30)
    moved = await pm.update(task.pm_task_id, unit_id=company.id, repeat_months=2)
    assert (moved.unit_id, moved.HasField("area")) == (company.id, False)
    assert (moved.repeat_months, moved.HasField("repeat_days")) == (2, False)
    back = await pm.update(task.pm_task_id, area="Roof", clear=["repeat_months"])
    assert (back.area, back.HasField("unit_id"), back.HasField("repeat_months")) == ("Roof", False, False)


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"task_name": " "}, 400),
        ({"task_name": "x" * 201}, 400),
        ({"task_name": "a\0b"}, 400),
        ({"due_date": "tomorrow"}, 400),
        ({"due_date": "2040-02-30"}, 400),
        ({"due_date": ""}, 400),
        ({"repeat_days": 0}, 400),
        ({"repeat_days": 3651}, 400),
        ({"repeat_months": 121}, 400),
        ({"repeat_days": 1, "repeat_months": 1}, 422),
        ({"unit_id": "here", "area": "Roof"}, 422),
        ({"area": ""}, 400),
        ({"unit_id": 100}, 404),
        ({"unit_id": -1}, 404),
        ({"asset_id": 500}, 404),
        ({"external_id": "TAKEN"}, 422),
    ],
)
@pytest.mark.parametrize("rpc", ["add", "update"])
@pytest.mark.usefixtures("catalog", "places")
async def test_what_makes_no_sense_is_refused_and_leaves_nothing(
    pm: Pm, company: Company, fields: dict[str, Any], status: int, rpc: str
) -> None:
    words = {name: company.id if value == "here" else value for name, value in fields.items()}
    task = await pm.add()
    await pm.add(external_id="TAKEN")
    before = await pm.tasks()
    answer = pm.add(**words) if rpc == "add" else pm.update(task.pm_task_id, **words)
    assert (await refused(answer))[0] == status
    assert await pm.tasks() == before


@pytest.mark.usefixtures("catalog")
async def test_another_companys_task_is_no_task(pm: Pm, service: RunningService, database: Database) -> None:
    stranger = Pm(service, await new_company(database))
    task = await pm.add()
    for act in (stranger.complete, stranger.cancel):
        status, message = await refused(act(task.pm_task_id))
        assert (status, "company has no" in message) == (404, True)
    assert (await refused(stranger.update(task.pm_task_id, due_date="2041-01-01")))[0] == 404
    assert (await refused(stranger.add(property_id=pm.company.id)))[0] == 404
    assert await stranger.tasks() == [] and await pm.tasks() == [task]


async def test_a_closed_task_changes_no_more(pm: Pm) -> None:
    done, dropped = (await pm.add()).pm_task_id, (await pm.add()).pm_task_id
    await pm.complete(done)
    await pm.cancel(dropped)
    for answer in (
        pm.update(done, due_date="2041-01-01"),
        pm.update(dropped, task_name="x"),
        pm.cancel(done),
        pm.complete(dropped),
    ):
        assert (await refused(answer))[0] == 422


async def test_a_required_field_can_not_be_cleared(pm: Pm) -> None:
    task = await pm.add()
    for name in ("task_name", "due_date"):
        assert (await refused(pm.update(task.pm_task_id, clear=[name])))[0] == 400


async def test_tasks_are_listed_in_pages_by_property_and_whether_they_are_open(pm: Pm, company: Company) -> None:
    ids = [(await pm.add()).pm_task_id for _ in range(5)]
    await pm.cancel(ids[1])
    assert [task.pm_task_id for task in await pm.tasks(open=True)] == [ids[0], *ids[2:]]
    assert [task.pm_task_id for task in await pm.tasks(open=False)] == [ids[1]]
    assert [task.pm_task_id for task in await pm.tasks(property_id=company.id, open=True)] == [ids[0], *ids[2:]]
    assert await pm.tasks(property_id=1) == []
    task_ids: list[int] = []
    answer = await pm("ListPmTasks", limit=2)
    while True:
        task_ids += [task.pm_task_id for task in answer.tasks]
        if not answer.HasField("next_after_id"):
            break
        answer = await pm("ListPmTasks", limit=2, after_id=answer.next_after_id)
    assert task_ids == ids
    assert (await refused(pm("ListPmTasks", limit=0)))[0] == 400


async def test_a_property_that_has_not_come_yet_is_asked_of_its_owner(
    service: RunningService, catalog: RunningService, database: Database
) -> None:
    company = await new_company(database)
    async with catalog.channel() as channel:
        row = ImportRow(line=1, json=b'{"external_id": "Q", "name": "Oak", "address": "2 Oak St"}')
        request = places_pb2.ImportPropertiesRequest(rows=[row])
        await catalog.call(channel, request, company.operator)
        listing = places_pb2.ListPropertiesRequest(limit=1)
        page = (await catalog.call(channel, listing, company.caller)).page
    property_id = int(page.data.decode().split('"entity_id":')[1].split(",")[0])
    task = await Pm(service, company).add(property_id=property_id)
    assert task.property == "Oak"


async def test_killed_on_the_way_it_is_done_once(service: RunningService, database: Database, company: Company) -> None:
    pm = Pm(service, company)
    task = await pm.add(repeat_days=7)
    service.stop()
    service.start(MAKEREADY_KILL_AT="write-before-commit")
    with pytest.raises(Exception):  # noqa: B017 - a lost connection raises several kinds
        await pm.complete(task.pm_task_id, idempotency_key="killed")
    service.kill()
    service.start()
    done = await pm.complete(task.pm_task_id, idempotency_key="killed")
    assert done.status == "Completed"
    rows = select(func.count()).where(t.pm_task.c.company_id == company.id)
    assert await database.value(Statement(rows)) == 2


async def test_a_task_has_an_assignee_whom_its_successor_keeps(service: RunningService, database: Database) -> None:
    company = await new_company(database)
    pm = Pm(service, company)
    task = await pm.add(assignee_id=company.id, repeat_months=1)
    other = await pm.add()
    assert (task.assignee_id, task.assignee_name) == (company.id, "Ada") and not other.HasField("assignee_id")
    assert [each.pm_task_id for each in await pm.tasks(assignee_id=company.id, open=True)] == [task.pm_task_id]
    done = await pm.complete(task.pm_task_id)
    (successor,) = await pm.tasks(assignee_id=company.id, open=True)
    assert successor.pm_task_id == done.next_pm_task_id
    assert not (await pm.update(successor.pm_task_id, clear=["assignee_id"])).HasField("assignee_id")
    (result,) = await pm.bring({"external_id": "M", "assignee": "S"})
    assert result.reason == ""
    (task,) = await pm.tasks(assignee_id=company.id, open=True)
    assert task.external_id == "M"
