"""What the turn board takes and shows. Tasks have no public record."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from asyncpg import Record

from chassis.records.bodies import Text
from makeready.occupancy.v1 import turn_board_pb2, turn_tasks_pb2
from svc_occupancy import rules, rules_board

TaskType = Annotated[str, Text(longest=rules_board.TASK_TYPE_POINTS_MAX, blank=False)]


class StatusOfUnit(msgspec.Struct):
    """What somebody says of a unit."""

    unit_status: rules.UnitStatus


class Schedule(msgspec.Struct):
    """When a turn's work will be done."""

    projected_ready_on: datetime.date | None = None


class Task(msgspec.Struct):
    """A task as somebody wants it."""

    task_type: TaskType
    scheduled_date: datetime.date | None = None


def board_unit(row: Record) -> turn_board_pb2.BoardUnit:
    """A row of `queries_board.BOARD`."""
    unit = turn_board_pb2.BoardUnit()
    _fill(unit, row)
    return unit


def turn_task(row: Mapping[str, Any] | Record) -> turn_tasks_pb2.TurnTask:
    """A row of turn_task."""
    task = turn_tasks_pb2.TurnTask()
    renamed = {"task_id": row["id"], "turn_id": row["transition_id"], "status": rules_board.shown_task(row["status"])}
    _fill(task, dict(row) | renamed)
    return task


def _fill(message: Any, row: Mapping[str, Any] | Record) -> None:
    for name in message.DESCRIPTOR.fields_by_name:
        value = row[name]
        if isinstance(value, datetime.datetime):
            getattr(message, name).FromDatetime(value)
        elif value is not None:
            setattr(message, name, value.isoformat() if isinstance(value, datetime.date) else value)
