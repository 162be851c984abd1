"""What a notice and a move-in do to a unit that is locked: the same for feeds and for staff."""

from __future__ import annotations

import datetime
from typing import Any, NamedTuple

from svc_occupancy.residencies import rules
from svc_occupancy.residencies.inputs import NoticeCreate, StaffNotice
from svc_occupancy.turns.queries import HeldUnit
from svc_occupancy.turns.tables import StoredTurn
from svc_occupancy.units.rules import UnitStatus


class NoticeEffect(NamedTuple):
    """The turn that a notice is recorded on, and what changes."""

    turn: StoredTurn
    changes: dict[str, Any]
    """The turn's new values by column, with its next `planned_version`."""
    status: UnitStatus | None
    """The unit's new status; None if it stays."""


def notice(unit: HeldUnit, notice: NoticeCreate | StaffNotice, today: datetime.date) -> NoticeEffect:
    """Raises Refusal 422 if nobody in the unit could leave on the date. today: in the company's timezone."""
    current, following, date = unit.turn, unit.next, notice.move_out_date
    stored = None if current is None else current.move_out_date
    notice_date = rules.notice_date(date, stored, None if following is None else following.move_in_date, today)
    outcome = rules.record_notice(
        rules.resident(current, unit.state.unit_status, is_next=following is not None), notice_date
    )
    turn = following if outcome == "next_departs" else current
    assert turn is not None
    changes: dict[str, Any] = {
        "move_out_date": date,
        "notice_external_id": notice.external_id,
        "ntv_reason_code": notice.ntv_reason_code,
        "departure_destination_code": notice.departure_destination_code,
        "notes": notice.notes,
        "vacated_on": rules.vacated_on(outcome, date, turn.vacated_on),
        "planned_version": turn.next_planned_version,
    }
    return NoticeEffect(turn, changes, rules.NOTICE_STATUS if outcome == "departs" else None)


class MoveInEffect(NamedTuple):
    """Where a new turn stands in the unit's row of active turns."""

    begins: bool
    """Whether it begins at once; else it is planned."""
    predecessor: int | None
    """The turn before it: if it begins at once, the current one, which it ends."""

    @property
    def columns(self) -> dict[str, Any]:
        """The new turn's columns that say so."""
        return {
            "has_begun": self.begins,
            "planned_version": None if self.begins else 1,
            "predecessor_id": self.predecessor,
        }


def move_in(
    unit: HeldUnit, move_in_date: datetime.date, predecessor_id: int | None, today: datetime.date
) -> MoveInEffect:
    """Raises Refusal 422 if the unit cannot take the move-in. predecessor_id: that the request names; today: in the
    company's timezone."""
    last = rules.last_turn(unit.turn, unit.last, unit.state.unit_status, today)
    turn = unit.last or unit.turn
    last_id = None if turn is None else turn.id
    rules.check_move_in(last, rules.named(predecessor_id, last_id))
    return MoveInEffect(rules.begins_at_once(move_in_date, last, today), last_id)
