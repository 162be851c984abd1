"""What the turn board shows."""

from __future__ import annotations

from asyncpg import Record

from makeready.occupancy.v1 import turn_board_pb2
from svc_occupancy.turn_tasks.records import fill


def board_unit(row: Record) -> turn_board_pb2.BoardUnit:
    """A row of `queries.BOARD`."""
    unit = turn_board_pb2.BoardUnit()
    fill(unit, row)
    return unit
