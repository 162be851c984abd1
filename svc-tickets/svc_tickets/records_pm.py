"""Preventive-maintenance tasks: what requests and files say of one, what it is told as, the shape of pm.stale."""

from __future__ import annotations

import datetime
from typing import Annotated, Any

import msgspec
from asyncpg import Record

from chassis.records.bodies import Between, RecordId, Text
from makeready.tickets.v1 import pm_tasks_pb2 as pb
from svc_tickets import rules_pm
from svc_tickets.records import ShortText, encode

Name = Annotated[str, Text(longest=200, blank=False)]
Days = Annotated[int, Between(1, rules_pm.REPEAT_DAYS_MAX)]
Months = Annotated[int, Between(1, rules_pm.REPEAT_MONTHS_MAX)]


class PmTaskNew(msgspec.Struct, kw_only=True):
    """A task to add."""

    property_id: RecordId
    task_name: Name
    due_date: datetime.date
    unit_id: RecordId | None = None
    area: Name | None = None
    asset_id: RecordId | None = None
    repeat_days: Days | None = None
    repeat_months: Months | None = None
    external_id: Name | None = None


class PmTaskChange(msgspec.Struct, kw_only=True):
    """What is to change in a task."""

    task_name: Name | None = None
    due_date: datetime.date | None = None
    unit_id: RecordId | None = None
    area: Name | None = None
    asset_id: RecordId | None = None
    repeat_days: Days | None = None
    repeat_months: Months | None = None
    external_id: Name | None = None


class PmTaskRow(msgspec.Struct, kw_only=True):
    """A task's row in an import. property, unit and asset are the external_id of those records."""

    external_id: Name
    property: ShortText
    task_name: Name
    due_date: datetime.date
    unit: ShortText | None = None
    area: Name | None = None
    asset: ShortText | None = None
    repeat_days: Days | None = None
    repeat_months: Months | None = None
    status: rules_pm.PmStatus | None = None
    completed_at: datetime.datetime | None = None
    cancelled_at: datetime.datetime | None = None
    created_at: datetime.datetime | None = None


class StalePmTask(msgspec.Struct, frozen=True, gc=False):
    """The data of pm.stale (spec 6.1): exactly these keys, plain texts."""

    task_name: str
    property: str
    unit: str
    due_date: datetime.date
    url: str


_INSTANTS = ("completed_at", "cancelled_at", "stale_at", "created_at", "updated_at")
_PLAIN = (
    "task_name",
    "status",
    "property_id",
    "unit_id",
    "area",
    "asset_id",
    "repeat_days",
    "repeat_months",
    "external_id",
    "source",
)


class PmTaskLinks:
    """Tells of tasks with links that start at the given address. row: of `queries_pm.TASKS`."""

    def __init__(self, links_url: str) -> None:
        self._prefix = f"{links_url}/pm-tasks/"

    def task(self, row: Record) -> pb.PmTask:
        given: dict[str, Any] = {name: row[name] for name in _PLAIN if row[name] is not None}
        task = pb.PmTask(
            pm_task_id=row["id"],
            due_date=row["due_date"].isoformat(),
            property=row["property"],
            unit=rules_pm.label(row["unit"], row["area"]),
            url=f"{self._prefix}{row['id']}",
            **given,
        )
        if row["previous_id"] is not None:
            task.previous_pm_task_id = row["previous_id"]
        if row["next_id"] is not None:
            task.next_pm_task_id = row["next_id"]
        for name in _INSTANTS:
            if row[name] is not None:
                getattr(task, name).FromDatetime(row[name])
        return task

    def stale(self, row: Record) -> bytes:
        unit = rules_pm.label(row["unit"], row["area"])
        url = f"{self._prefix}{row['id']}"
        return encode(StalePmTask(row["task_name"], row["property"], unit, row["due_date"], url))
