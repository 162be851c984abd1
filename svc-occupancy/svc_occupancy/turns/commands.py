"""What every command on a turn does first: it holds the turn's unit."""

from __future__ import annotations

from chassis.refusals import Refusal
from chassis.writes.commands import Command
from svc_occupancy.turns import queries
from svc_occupancy.turns.queries import HeldUnit, Row


def not_of_company(what: str) -> Refusal:
    """Another company's record answers like one that nobody has."""
    return Refusal(404, "not_found", f"The company has no {what} with this id.")


async def held_turn(command: Command, turn_id: int) -> tuple[HeldUnit, Row]:
    """A turn as it is once its unit is held, and the unit. Raises Refusal 404."""
    found = await queries.stored_turn(command.connection, command.company_id, turn_id)
    unit = None if found is None else await queries.held_unit(command.connection, command.company_id, found["unit_id"])
    if found is None or unit is None:
        raise not_of_company("turn")
    turn = await queries.stored_turn(command.connection, command.company_id, turn_id)
    assert turn is not None
    return unit, dict(turn)
