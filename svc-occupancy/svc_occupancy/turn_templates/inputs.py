"""The fields of a template in requests."""

from __future__ import annotations

from typing import Annotated

import msgspec

from chassis.records.bodies import Between, RecordId, Text
from svc_occupancy.turn_tasks.rules import TASK_TYPE_POINTS_MAX
from svc_occupancy.turn_templates import rules

Name = Annotated[str, Text(longest=rules.NAME_POINTS_MAX, blank=False)]


class TemplateTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task of a template."""

    task_type: Annotated[str, Text(longest=TASK_TYPE_POINTS_MAX, blank=False)]
    days_after_move_out: Annotated[int, Between(rules.DAYS_MIN, rules.DAYS_MAX)] | None = None
    assignee_id: RecordId | None = None
    vendor_id: RecordId | None = None


class NewTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """A template to add."""

    name: Name
    property_id: RecordId | None = None
    floorplan: Name | None = None
    tasks: Annotated[list[TemplateTask], Between(1, rules.TASKS_MAX)]


class TemplateChange(msgspec.Struct, frozen=True, kw_only=True):
    """What is to change in a template. No tasks: they stay."""

    name: Name | None = None
    property_id: RecordId | None = None
    floorplan: Name | None = None
    tasks: Annotated[list[TemplateTask], Between(0, rules.TASKS_MAX)]
