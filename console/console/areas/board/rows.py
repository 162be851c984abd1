"""The residents of a unit in a row: the current turn, and the planned ones behind it. Pure."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from console.areas.board.cards import Days, date_of, overlap
from console.kit.texts import _
from makeready.occupancy.v1 import turn_board_pb2, turn_tasks_pb2

UnitResponse = turn_board_pb2.GetBoardUnitResponse
NOW, PLANNED = "now", "planned"


@dataclass(frozen=True, slots=True)
class Stay:
    """A turn in the row of a unit. residents: of its lease; came, leaves: None if that is not on record."""

    turn_id: int
    is_planned: bool
    has_left: bool
    came: datetime.date | None
    leaves: datetime.date | None
    residents: Sequence[turn_board_pb2.Resident]


def row_of(response: UnitResponse) -> list[Stay]:
    """The unit's active turns, in the order in which they begin."""
    unit, row = response.unit, []
    if unit.turn_id:
        came, leaves = date_of(unit.move_in_date), date_of(unit.move_out_date)
        row.append(Stay(unit.turn_id, False, unit.has_left, came, leaves, response.residents))
    for planned in response.planned:
        came, leaves = date_of(planned.move_in_date), date_of(planned.move_out_date)
        row.append(Stay(planned.turn_id, True, False, came, leaves, planned.residents))
    return row


def stay_of(response: UnitResponse, turn_id: int) -> tuple[Stay | None, Stay | None, Stay | None]:
    """The turn as a stay in the row, the one before it and the one behind it; None for each that there is not."""
    row: list[Stay | None] = [None, *row_of(response), None]
    for number, stay in enumerate(row):
        if stay is not None and stay.turn_id == turn_id:
            return stay, row[number - 1], row[number + 1]
    return None, None, None


def last_of(response: UnitResponse) -> Stay | None:
    """The turn behind which a new resident is let in; None if the unit has no active turn."""
    return next(reversed(row_of(response)), None)


def can_be_let(response: UnitResponse) -> bool:
    """Whether a move-in can be recorded: the last resident of the row leaves, or has left."""
    last = last_of(response)
    return last is None or last.has_left or last.leaves is not None


def left_over(response: UnitResponse) -> list[turn_tasks_pb2.TurnTask]:
    """Open tasks of turns that are over."""
    active = {stay.turn_id for stay in row_of(response)}
    return [task for task in response.unit.tasks if task.status == "Open" and task.turn_id not in active]


def open_tasks(response: UnitResponse, turn_id: int) -> list[turn_tasks_pb2.TurnTask]:
    """The turn's open tasks, as far as the board has them."""
    return [task for task in response.unit.tasks if task.status == "Open" and task.turn_id == turn_id]


def notice_of(response: UnitResponse, leaves: datetime.date | None, today: datetime.date) -> Stay | None:
    """Whose notice a departure on this day is; None if nobody can give one.

    It is the current resident's. Once that one has left, and a resident is to move in by then, it is the next one's.
    """
    row = row_of(response)
    current = row[0] if row and not row[0].is_planned else None
    following = next((stay for stay in row if stay.is_planned), None)
    if current is None or (current.has_left and following and leaves and following.came and leaves >= following.came):
        return following
    return current


@dataclass(frozen=True, slots=True)
class Effect:
    """What a form does with the dates that stand in it, before it is sent.

    kind: NOW or PLANNED for a move-in, whose day decides it, empty as long as its day is not known; for a notice the id
    of the turn whose resident leaves. oddities: what is
    unusual about the order of its dates, in sentences.
    """

    kind: str
    oddities: Sequence[str] = ()
    dates: str = ""
    """Of which dates this is said."""

    @property
    def sure(self) -> str:
        """What the tick bears that says that unusual dates are right; empty if none is needed."""
        return f"{self.dates}/{len(self.oddities)}" if self.oddities else ""

    def is_seen(self, sent: Mapping[str, str]) -> bool:
        """Whether the person who sent the form has read what it does, and ticked what is unusual."""
        return (sent.get("seen", ""), sent.get("sure", "")) == (self.kind, self.sure)


def effect_of_move_in(response: UnitResponse, came: datetime.date | None, days: Days) -> Effect:
    last = last_of(response)
    if came is None:
        return Effect(PLANNED if last and last.is_planned else "")
    is_planned = came > days.today or (last is not None and last.is_planned)
    return Effect(PLANNED if is_planned else NOW, _behind(last, came, days), came.isoformat())


def effect_of_change(
    stay: Stay, before: Stay | None, behind: Stay | None, came: datetime.date | None, days: Days
) -> Effect:
    """Of another move-in date of a turn, between two others."""
    if came is None:
        return Effect("")
    oddities = _behind(before, came, days)
    if stay.leaves is not None and came > stay.leaves:
        oddities.append(_("That is after this resident's move-out on %(day)s.") % {"day": days.words(stay.leaves)})
    if behind is not None and behind.came is not None and came >= behind.came:
        oddities.append(
            _("That is not before the next resident's move-in on %(day)s.") % {"day": days.words(behind.came)}
        )
    return Effect(PLANNED if came > days.today or stay.is_planned else NOW, oddities, came.isoformat())


def effect_of_notice(response: UnitResponse, leaves: datetime.date | None, days: Days) -> Effect:
    stay = notice_of(response, leaves, days.today)
    if stay is None or leaves is None:
        return Effect(str(stay.turn_id) if stay else "")
    _stay, _before, behind = stay_of(response, stay.turn_id)
    oddities = []
    if stay.came is not None and leaves < stay.came:
        oddities.append(_("That is before this resident's move-in on %(day)s.") % {"day": days.words(stay.came)})
    if behind is not None and behind.came is not None and leaves > behind.came:
        oddities.append(overlap(days.words(behind.came), days.words(leaves)))
    return Effect(str(stay.turn_id), oddities, leaves.isoformat())


def _behind(before: Stay | None, came: datetime.date, days: Days) -> list[str]:
    """What is unusual about a move-in on a day, behind a turn."""
    if before is None:
        return []
    oddities = []
    if before.leaves is not None and came < before.leaves:
        oddities.append(
            _("That is before the previous resident's move-out on %(day)s.") % {"day": days.words(before.leaves)}
        )
    if before.came is not None and came <= before.came:
        oddities.append(
            _("That is not after the previous resident's move-in on %(day)s.") % {"day": days.words(before.came)}
        )
    return oddities
