"""The rows of the turn board."""

from __future__ import annotations

import datetime
from typing import NamedTuple

from makeready.occupancy.v1 import turn_board_pb2
from svc_occupancy.messages import filled
from svc_occupancy.units.rules import UnitStatus


class BoardUnit(NamedTuple):
    """A unit on the board, with its active turn; the turn's fields are null if it has none."""

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


def board_unit(unit: BoardUnit) -> turn_board_pb2.BoardUnit:
    return filled(turn_board_pb2.BoardUnit, unit._asdict())
