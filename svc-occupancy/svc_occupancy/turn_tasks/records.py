"""What is shown of a task. Tasks have no public record but the data of turn.task.stale."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

import msgspec
from asyncpg import Record

from makeready.occupancy.v1 import turn_tasks_pb2
from svc_occupancy.turn_tasks import rules


class StaleTurnTask(msgspec.Struct, frozen=True, gc=False):
    """The data of turn.task.stale (spec 6.1). property and unit are names."""

    task_type: str
    property: str
    unit: str
    url: str


class TaskLinks:
    """Renders rows of `queries.TASKS_TOLD_OF` with links that start at the given address."""

    def __init__(self, links_url: str) -> None:
        self._prefix = f"{links_url}/turns/"

    def stale_task(self, row: Record) -> StaleTurnTask:
        """A task is opened on its turn's page."""
        url = f"{self._prefix}{row['transition_id']}"
        return StaleTurnTask(row["task_type"], row["property"], row["unit"], url)


def turn_task(row: Mapping[str, Any] | Record) -> turn_tasks_pb2.TurnTask:
    """A row of turn_task."""
    task = turn_tasks_pb2.TurnTask()
    renamed = {"task_id": row["id"], "turn_id": row["transition_id"], "status": rules.shown_task(row["status"])}
    fill(task, dict(row) | renamed)
    return task


def fill(message: Any, row: Mapping[str, Any] | Record) -> None:
    for name in message.DESCRIPTOR.fields_by_name:
        value = row[name]
        if isinstance(value, datetime.datetime):
            getattr(message, name).FromDatetime(value)
        elif value is not None:
            setattr(message, name, value.isoformat() if isinstance(value, datetime.date) else value)
