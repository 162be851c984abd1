"""The story of one turnover, swept day by day: the notice, the day of the departure, the ready date, the arrival.

The arrival is the day of a change of summer time, where the timezone has one: in Santiago that day begins at 01:00.
"""

from __future__ import annotations

import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from chassis.db.database import Database
from makeready.occupancy.v1.turn_board_pb2 import GetBoardUnitRequest

from ..harness import Company, fired, until

DAY = datetime.timedelta(days=1)
QUARTER = datetime.timedelta(minutes=15)


def slots(day: datetime.date, zone: ZoneInfo) -> list[tuple[str, datetime.datetime]]:
    """The quarter hours of a local day at which something may happen, with the one before it."""
    noon = datetime.datetime.combine(day, datetime.time(12), zone).astimezone(datetime.UTC)
    first = next(
        moment for hours in range(4 * 16, 0, -1) if (moment := noon - hours * QUARTER).astimezone(zone).date() == day
    )
    six = datetime.datetime.combine(day, datetime.time(6), zone).astimezone(datetime.UTC)
    return [("the night before", first - QUARTER), ("midnight", first), ("before six", six - QUARTER), ("six", six)]


def change_of_clocks(zone: ZoneInfo) -> datetime.date:
    """The day of 2980 on which the clocks go forward; without one, any day."""

    def offset(day: datetime.date) -> Any:
        return datetime.datetime.combine(day, datetime.time(12), zone).utcoffset()

    days = [datetime.date(2980, 1, 1) + n * DAY for n in range(366)]
    return next((day for day in days if offset(day) > offset(day - DAY)), datetime.date(2980, 9, 14))


@pytest.mark.parametrize("timezone", ["America/Toronto", "America/Santiago", "Asia/Kolkata"])
@pytest.mark.parametrize("is_late", [False, True])
async def test_each_day_says_what_is_true_on_it(
    company: Company, served: Database, timezone: str, is_late: bool
) -> None:
    """is_late: one sweep on the last day alone, which fires the same."""
    zone = ZoneInfo(timezone)
    await company.know(served, timezone=timezone)
    unit_id = await company.known_unit(served)
    arrives = change_of_clocks(zone)
    leaves, ready = arrives - 5 * DAY, arrives - 2 * DAY
    first = (await company.move_in(unit_id))["entity_id"]
    await company.notice(unit_id, str(leaves))
    await company.command("ScheduleTurn", turn_id=first, projected_ready_on=str(ready))
    second = (await company.move_in(unit_id, move_in_date=str(arrives), predecessor_transition_id=first))["entity_id"]
    ahead = await fired(served, company)
    vacated = ("turn.status_changed", first, "Notice", "Vacant Not Ready")
    occupied = ("turn.status_changed", second, "Vacant Not Ready", "Occupied")
    assert ahead == [
        ("turn.status_changed", first, None, "Occupied"),
        ("turn.status_changed", first, "Occupied", "Notice"),
        ("turn.schedule_changed", first, None, str(ready)),
    ]
    by_day: dict[str, tuple[str | None, str | None]] = {}
    for day in (leaves - DAY + n * DAY for n in range(8)):
        for name, moment in slots(day, zone):
            if is_late and day <= arrives:
                continue
            await company.sweep(moment.strftime("%Y-%m-%dT%H:%M:%SZ"))
            has_left = moment >= slots(leaves + DAY, zone)[3][1]
            has_come = moment >= slots(arrives, zone)[1][1]
            expected = [*ahead, *[vacated] * has_left, *[occupied] * has_come]
            assert await fired(served, company) == expected, (day, name)
            turns = {turn["entity_id"]: turn for turn in await company.turns()}
            assert {turn_id: turn["status"] for turn_id, turn in turns.items()} == {
                first: "Completed" if has_come else "Active",
                second: "Active",
            }
            assert turns[first]["projected_ready_on"] == str(ready)
            page = await company.house("GetBoardUnit", GetBoardUnitRequest(unit_id=unit_id), company.staff)
            unit = page.unit
            assert unit.turn_id == (second if has_come else first)
            assert (unit.has_left, unit.is_clash) == (has_left and not has_come, False)
            assert (unit.next_turn_id, unit.next_move_in) == ((0, "") if has_come else (second, str(arrives)))
            status = "Occupied" if has_come else "Vacant Not Ready" if has_left else "Notice"
            assert unit.unit_status == status
            state = (status, None if has_come else str(ready))
            if by_day.get("U1") != state:
                await until(company.units, {"U1": state})
                by_day["U1"] = state
    assert len(ahead) + 2 == len(await fired(served, company))
