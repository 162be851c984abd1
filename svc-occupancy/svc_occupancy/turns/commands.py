"""The first step of every command on a turn: it locks the turn's unit."""

from __future__ import annotations

from chassis.writes.commands import Command
from svc_occupancy.turns import queries, rules
from svc_occupancy.turns.queries import HeldUnit


async def hold_unit_of(command: Command, turn_id: int) -> HeldUnit:
    """Locks a turn's unit; the caller reads the turn afterwards. Every writer locks a unit before its turns, so a
    transaction that holds a turn never waits for its unit. Raises Refusal 404."""
    turn = await queries.stored_turn(command.connection, command.company_id, turn_id)
    unit = None if turn is None else await queries.held_unit(command.connection, command.company_id, turn.unit_id)
    if unit is None:
        raise rules.not_of_company("turn")
    return unit
