"""What every command on a turn does first: it holds the turn's unit."""

from __future__ import annotations

from chassis.writes.commands import Command
from svc_occupancy.turns import queries, rules
from svc_occupancy.turns.queries import HeldUnit


async def hold_unit_of(command: Command, turn_id: int) -> HeldUnit:
    """Locks the unit of a turn, which is to be read after that: whoever changes a unit's turns holds the unit first,
    so that nobody who holds a turn waits for its unit. Raises Refusal 404."""
    turn = await queries.stored_turn(command.connection, command.company_id, turn_id)
    unit = None if turn is None else await queries.held_unit(command.connection, command.company_id, turn.unit_id)
    if unit is None:
        raise rules.not_of_company("turn")
    return unit
