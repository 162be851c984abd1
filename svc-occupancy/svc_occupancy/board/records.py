"""The rows of the turn board."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from makeready.occupancy.v1 import turn_board_pb2
from svc_occupancy.messages import filled
from svc_occupancy.replicas.queries import NOBODY, People
from svc_occupancy.turn_tasks.records import turn_task
from svc_occupancy.turn_tasks.tables import StoredTask
from svc_occupancy.turns.tables import StoredTurn
from svc_occupancy.units.rules import STATUS_CAUSES, StatusCause, UnitStatus


class BoardUnit(NamedTuple):
    """A unit on the board, with its current turn; the turn's fields are null if it has none."""

    unit_id: int
    name: str
    property_id: int
    property: str
    unit_status: UnitStatus | None
    turn_id: int | None
    move_in_date: datetime.date | None
    move_out_date: datetime.date | None
    projected_ready_on: datetime.date | None
    tasks_open: int
    unit_status_since: datetime.datetime | None
    """None if it is not on record."""
    since_or_earlier: bool
    """Whether the unit may have had its status before: a file brought it as the unit's first one."""
    next_move_in: datetime.date | None
    """The first planned turn's move-in date."""
    tasks_late: int
    empty_since: datetime.date | None
    """Of a unit that nobody lives in: the last resident's move-out date, if it is before today."""
    next_turn_id: int | None
    """The first planned turn."""
    next_resident: str | None
    """The name of that turn's first leaseholder."""
    has_left: bool
    """Whether the current turn's resident has left."""
    is_clash: bool
    """Whether a resident stays beyond the move-in date of the turn that follows."""
    floorplan: str | None
    """The name of its floorplan."""
    ready_on: datetime.date | None
    """The unit's own ready date, by which lists are ordered. It equals its current turn's."""


class PlannedTurn(NamedTuple):
    """A planned turn of a unit."""

    turn_id: int
    move_in_date: datetime.date
    move_out_date: datetime.date | None
    predecessor_id: int | None

    @property
    def vacated_on(self) -> None:
        """Nobody has left who has not moved in."""
        return


class StatusChange(NamedTuple):
    """A change of a unit's status, as listed."""

    version: int
    changed_at: datetime.datetime
    from_status: UnitStatus | None
    to_status: UnitStatus
    cause: StatusCause
    actor: str
    turn_id: int | None


class Resident(NamedTuple):
    """A party of a turn's lease, without contacts."""

    turn_id: int
    first_name: str | None
    last_name: str | None
    role: str | None


def board_unit(unit: BoardUnit, tasks: Sequence[StoredTask] = (), people: People = NOBODY) -> turn_board_pb2.BoardUnit:
    """people: at least those that the tasks have."""
    message = filled(turn_board_pb2.BoardUnit, unit._asdict() | {"tasks": None})
    message.tasks.extend(turn_task(task, people) for task in tasks)
    return message


def resident(party: Resident) -> turn_board_pb2.Resident:
    return filled(turn_board_pb2.Resident, party._asdict())


def planned_turn(turn: PlannedTurn, parties: Sequence[Resident], *, is_clash: bool) -> turn_board_pb2.PlannedTurn:
    message = filled(turn_board_pb2.PlannedTurn, turn._asdict() | {"residents": None, "is_clash": is_clash})
    message.residents.extend(map(resident, parties))
    return message


def status_change(change: StatusChange) -> turn_board_pb2.UnitStatusChange:
    # The enum has the causes in their order, after its value for none.
    cause = STATUS_CAUSES.index(change.cause) + 1
    return filled(turn_board_pb2.UnitStatusChange, change._asdict() | {"cause": cause})


def notice(turn: StoredTurn) -> turn_board_pb2.NoticeToVacate:
    values = msgspec.structs.asdict(turn) | {"external_id": turn.notice_external_id}
    return filled(turn_board_pb2.NoticeToVacate, values)
