"""Which unit status and which schedule staff may set. Pure."""

from __future__ import annotations

import datetime

from chassis.refusals import invalid_request
from svc_occupancy.turns.rules import TransitionStatus
from svc_occupancy.units.rules import VACANT, UnitStatus


def check_unit_status(status: UnitStatus, *, is_lived_in: bool, move_out_date: datetime.date | None) -> None:
    """Raises Refusal 422 if the unit's active turn does not allow the status. is_lived_in: whether it has one."""
    if status in VACANT:
        return
    if not is_lived_in:
        message = f"{status} needs an active turn: the unit has no resident on record; record the move-in instead."
        raise invalid_request(message, "unit_status", 422)
    if status == "Notice" and move_out_date is None:
        message = "Notice needs a move_out_date on the unit's active turn; record the notice instead."
        raise invalid_request(message, "unit_status", 422)


def check_schedule(
    status: TransitionStatus, move_out_date: datetime.date | None, projected_ready_on: datetime.date | None
) -> None:
    """Raises Refusal 422 if a turn cannot have this projected ready date."""
    if status != "active":
        raise invalid_request(f"The turn is {status}; an active one alone has work left to schedule.", status=422)
    if projected_ready_on is not None and move_out_date is None:
        raise invalid_request("projected_ready_on needs a move_out_date.", "projected_ready_on", 422)
