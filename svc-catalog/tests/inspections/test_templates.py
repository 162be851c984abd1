"""Templates of inspections: kept by administrators, and the rows of what is planned with them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chassis.auth.identity import ADMINISTRATOR, STAFF, Identity
from chassis.db.database import Database
from chassis.refusals import Refusal
from makeready.catalog.v1 import inspection_commands_pb2, inspection_templates_pb2

from ..published import audited

ROWS = ["Walls and ceilings", "Smoke alarm", "Windows"]


async def call(company: Any, rpc: str, **values: Any) -> Any:
    who = Identity(ADMINISTRATOR, "gateway", company.id, administrator_id=4)
    return await company.command(inspection_templates_pb2, rpc, who=who, **values)


async def names(company: Any) -> list[tuple[str, int, bool]]:
    templates = (await call(company, "ListInspectionTemplates")).templates
    return [(template.name, template.version, template.is_default) for template in templates]


async def plan(company: Any, property_id: int, **values: Any) -> tuple[str | None, list[str]]:
    """The type and the rows of a new inspection."""
    values = {"title": "Walk", "scheduled_date": "2031-03-07", "property_id": property_id} | values
    answer = await company.command(inspection_commands_pb2, "ScheduleInspection", **values)
    inspection = json.loads(answer.document.json)
    rows = (
        await company.command(inspection_commands_pb2, "ListInspectionRows", inspection_id=inspection["entity_id"])
    ).rows
    return inspection["inspection_type"], [row.label for row in rows]


@pytest.fixture
async def property_id(company: Any) -> int:
    await company.put("properties", {"external_id": "P1", "name": "Elm Court", "address": "A"})
    (property_,) = await company.list("properties")
    record_id: int = property_["entity_id"]
    return record_id


async def test_an_inspection_has_the_rows_of_its_template_or_of_its_types_default(
    company: Any, property_id: int
) -> None:
    out = (await call(company, "AddInspectionTemplate", name="Move-out", inspection_type="Move-out", is_default=True,
                      rows=ROWS)).template  # fmt: skip
    short = (await call(company, "AddInspectionTemplate", name="Quick look", rows=ROWS[:1])).template
    assert await plan(company, property_id) == (None, [])
    assert await plan(company, property_id, inspection_type="General") == ("General", [])
    assert await plan(company, property_id, inspection_type="move-out") == ("move-out", ROWS)
    assert await plan(company, property_id, inspection_type="Move-out", row=["Door"]) == ("Move-out", ["Door"])
    assert await plan(company, property_id, template_id=out.template_id) == ("Move-out", ROWS)
    chosen = await plan(company, property_id, template_id=short.template_id, inspection_type="Move-out")
    assert chosen == ("Move-out", ROWS[:1])
    with pytest.raises(Refusal) as refused:
        await plan(company, property_id, template_id=10**12)
    assert (refused.value.status, refused.value.field) == (404, "template_id")
    # What was planned keeps its rows.
    await call(company, "RemoveInspectionTemplate", template_id=out.template_id)
    assert await plan(company, property_id, inspection_type="Move-out") == ("Move-out", [])


async def test_templates_are_changed_and_removed_and_the_audit_log_says_so(company: Any, database: Database) -> None:
    template = (await call(company, "AddInspectionTemplate", name="Turn", rows=ROWS)).template
    assert (template.version, list(template.rows), template.HasField("inspection_type")) == (1, ROWS, False)
    changed = (
        await call(company, "UpdateInspectionTemplate", template_id=template.template_id, name="turn",
                   inspection_type="Turn", is_default=True)
    ).template  # fmt: skip
    assert (changed.version, changed.name, list(changed.rows), changed.is_default) == (2, "turn", ROWS, True)
    rows = ["Doors", *ROWS]
    again = (await call(company, "UpdateInspectionTemplate", template_id=template.template_id, rows=rows)).template
    assert (again.version, list(again.rows), again.inspection_type) == (3, rows, "Turn")
    same = (await call(company, "UpdateInspectionTemplate", template_id=template.template_id, rows=rows)).template
    assert same == again and await names(company) == [("turn", 3, True)]
    with pytest.raises(Refusal) as refused:
        await call(company, "UpdateInspectionTemplate", template_id=template.template_id, clear=["inspection_type"])
    assert refused.value.field == "inspection_type"
    gone = (await call(company, "RemoveInspectionTemplate", template_id=template.template_id)).template
    assert gone == again and await names(company) == []
    with pytest.raises(Refusal) as refused:
        await call(company, "RemoveInspectionTemplate", template_id=template.template_id)
    assert refused.value.status == 404
    actions = [entry[1] for entry in await audited(database, company.id)]
    assert actions == ["inspection_template.added", *["inspection_template.changed"] * 2, "inspection_template.removed"]


async def test_what_a_template_cannot_have_is_refused_beside_its_field(company: Any) -> None:
    await call(company, "AddInspectionTemplate", name="Turn", inspection_type="Turn", is_default=True, rows=ROWS)
    for values, status, field in (
        ({"name": "TURN", "rows": ROWS}, 422, "name"),
        ({"name": " ", "rows": ROWS}, 400, "name"),
        ({"name": "x" * 201, "rows": ROWS}, 400, "name"),
        ({"name": "Empty"}, 400, "rows"),
        ({"name": "Long", "rows": ["x" * 151]}, 400, "rows[0]"),
        ({"name": "Blank", "rows": ["Door", " "]}, 400, "rows[1]"),
        ({"name": "Many", "rows": ["x"] * 501}, 400, "rows"),
        ({"name": "Other", "inspection_type": "turn", "is_default": True, "rows": ROWS}, 422, "is_default"),
        ({"name": "Untyped", "is_default": True, "rows": ROWS}, 422, "inspection_type"),
    ):
        with pytest.raises(Refusal) as refused:
            await call(company, "AddInspectionTemplate", **values)
        assert (refused.value.status, refused.value.field) == (status, field), values
    assert await names(company) == [("Turn", 1, True)]
    # Staff read them, and another company's are not there.
    staff = Identity(STAFF, "gateway", company.id, staff_id=3)
    listed = await company.command(inspection_templates_pb2, "ListInspectionTemplates", who=staff)
    assert [template.name for template in listed.templates] == ["Turn"]
    other = Identity(ADMINISTRATOR, "gateway", company.id + 500_000, administrator_id=4)
    assert not (await company.command(inspection_templates_pb2, "ListInspectionTemplates", who=other)).templates
