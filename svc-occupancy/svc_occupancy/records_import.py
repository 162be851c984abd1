"""The rows of files in imports of turns and of make-ready tasks."""

from __future__ import annotations

import datetime
from typing import Annotated

import msgspec

from chassis.records.bodies import Text
from svc_occupancy import rules, rules_board
from svc_occupancy.records_board import TaskType

ExternalId = Annotated[str, Text(longest=rules.EXTERNAL_ID_POINTS_MAX, blank=False)]


class TurnRow(msgspec.Struct, kw_only=True):
    """A turn's row in an import. unit is the external_id of that unit; unit_status is the unit's, not the turn's."""

    external_id: ExternalId
    unit: ExternalId
    status: rules.TurnStatus | None = None
    move_out_date: datetime.date | None = None
    move_in_date: datetime.date | None = None
    projected_ready_on: datetime.date | None = None
    occupancy_source: str | None = None
    occupancy_fed_at: datetime.datetime | None = None
    unit_status: rules.UnitStatus | None = None
    created_at: datetime.datetime | None = None
    updated_at: datetime.datetime | None = None


class TaskRow(msgspec.Struct, kw_only=True):
    """A make-ready task's row in an import. turn is the external_id of its turn."""

    external_id: ExternalId
    turn: ExternalId
    task_type: TaskType
    scheduled_date: datetime.date | None = None
    status: rules_board.ShownTaskStatus | None = None
    completed_at: datetime.datetime | None = None
    cancelled_at: datetime.datetime | None = None
    created_at: datetime.datetime | None = None
    updated_at: datetime.datetime | None = None
