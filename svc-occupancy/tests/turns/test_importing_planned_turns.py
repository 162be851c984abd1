"""Files that let units ahead: which rows are planned, in which order they come, and what they cannot do."""

from __future__ import annotations

import datetime
import itertools
from typing import Any

import pytest
from sqlalchemy import select

from chassis.db.database import Database
from chassis.db.statements import Statement
from svc_occupancy import tables as t
from testkit.clocks import today

from ..harness import Company, fired, published

DAY = datetime.timedelta(days=1)
HELD = "The unit has another active turn; complete that one in an earlier row."


def date(days: int) -> str:
    return str(today() + days * DAY)


def row(external_id: str, unit: str = "U1", **fields: Any) -> dict[str, Any]:
    return {"external_id": external_id, "unit": unit, **fields}


async def places(served: Database, company: Company) -> dict[str, tuple[str, bool, str | None]]:
    """Each turn's status, whether it has begun, and the turn before it, all by external_id."""
    turn = t.transition.c
    rows = await served.rows(Statement(select(t.transition).where(turn.company_id == company.id).order_by(turn.id)))
    names = {turn["id"]: turn["external_id"] for turn in rows}
    return {
        turn["external_id"]: (turn["status"], turn["has_begun"], names.get(turn["predecessor_id"])) for turn in rows
    }


async def status(company: Company, served: Database) -> Any:
    state = Statement(select(t.unit_state.c.unit_status).where(t.unit_state.c.company_id == company.id))
    return await served.value(state)


async def test_a_row_with_a_later_move_in_is_planned(company: Company, served: Database) -> None:
    await company.make_units("U1")
    rows = [row("T1", move_in_date="2024-01-01", move_out_date=date(20)), row("T2", move_in_date=date(30))]
    assert await company.put("turns", *rows, events=True) == ["created"] * 2
    assert await places(served, company) == {"T1": ("active", True, None), "T2": ("active", False, "T1")}
    assert [event[2:] for event in await fired(served, company)] == [(None, "Notice")]
    before = await company.turns()
    assert await company.put("turns", *rows, events=True) == ["unchanged"] * 2
    assert await company.turns() == before
    # The unit's status is the current turn's, whatever the planned turn's row says of it.
    planned = rows[1] | {"unit_status": "Vacant Ready"}
    assert await company.put("turns", planned) == ["unchanged"]
    assert await status(company, served) == "Notice"


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
async def test_active_rows_of_a_unit_come_in_any_order(
    company: Company, served: Database, order: tuple[int, ...]
) -> None:
    await company.make_units("U1")
    rows = [
        row("NOW", move_in_date="2024-01-01", move_out_date=date(20)),
        row("NEXT", move_in_date=date(30), move_out_date=date(50)),
        row("LATER", move_in_date=date(60)),
    ]
    expected = {"NOW": ("active", True, None), "NEXT": ("active", False, "NOW"), "LATER": ("active", False, "NEXT")}
    assert await company.put("turns", *(rows[n] for n in order)) == ["created"] * 3
    assert await places(served, company) == expected
    assert await company.put("turns", *rows) == ["unchanged"] * 3
    # One row in each request.
    other = Company(company.house, company.id)
    await other.put("units", {"external_id": "U2", "property": "P1", "name": "2"})
    for n in order:
        second_row = rows[n] | {"external_id": f"{rows[n]['external_id']} 2", "unit": "U2"}
        assert await other.put("turns", second_row) == ["created"]
    stored = await places(served, company)
    assert {name.removesuffix(" 2"): stored[name] for name in stored if name.endswith(" 2")} == {
        name: (status, begun, before and f"{before} 2") for name, (status, begun, before) in expected.items()
    }


async def test_a_second_row_that_has_begun_is_rejected(company: Company, served: Database) -> None:
    await company.make_units("U1")
    rows = [row("T1", move_in_date=date(30)), row("T2"), row("T3", move_in_date=date(0))]
    results = await company.results("turns", rows)
    assert [result.reason for result in results] == ["", "", HELD] and results[2].field == "unit"
    assert await places(served, company) == {"T1": ("active", False, "T2"), "T2": ("active", True, None)}


async def test_a_file_un_begins_nothing(company: Company, served: Database) -> None:
    await company.make_units("U1")
    await company.put("turns", row("T1", move_in_date=date(-3)))
    before = await company.turns()
    (result,) = await company.results("turns", [row("T1", move_in_date=date(3))])
    assert (result.field, result.reason) == (
        "move_in_date",
        "The turn has begun: its move_in_date can be moved to today or to an earlier day only.",
    )
    assert await company.turns() == before
    assert await company.put("turns", row("T1", move_in_date=date(0))) == ["changed"]
    # What had begun with a later date, before dates counted, stays as it is.
    async with served.transaction() as connection:
        await connection.raw.execute(
            "UPDATE transition SET move_in_date = current_date + 9 WHERE company_id = $1", company.id
        )
    stored = (await company.turn("T1"))["move_in_date"]
    assert await company.put("turns", row("T1", move_in_date=stored)) == ["unchanged"]
    assert await places(served, company) == {"T1": ("active", True, None)}


async def test_a_file_moves_a_planned_move_in(company: Company, served: Database) -> None:
    await company.make_units("U1")
    await company.put("turns", row("T1", move_out_date=date(20)), row("T2", move_in_date=date(30)))
    assert await company.put("turns", row("T2", move_in_date=date(40))) == ["changed"]
    # Its day has come, but the resident before is still there: it waits.
    assert await company.put("turns", row("T2", move_in_date=date(0))) == ["changed"]
    assert await places(served, company) == {"T1": ("active", True, None), "T2": ("active", False, "T1")}
    assert await company.put("turns", row("T2", move_in_date="")) == ["rejected move_in_date"]
    assert await status(company, served) == "Notice"
    (board,) = await company.command("ListBoard")
    assert board.is_clash and board.next_move_in == date(0)


@pytest.mark.parametrize("says_so", [{"move_in_date": 0}, {"unit_status": "Occupied"}])
async def test_a_planned_turn_begins_by_a_file_that_says_so(
    company: Company, served: Database, says_so: dict[str, Any]
) -> None:
    await company.make_units("U1")
    await company.put("turns", row("T1", move_out_date=date(20)), row("T2", move_in_date=date(-2 + 32)))
    fields = {name: date(value) if isinstance(value, int) else value for name, value in says_so.items()}
    if "move_in_date" not in fields:  # the day has come, and no sweep has run
        async with served.transaction() as connection:
            await connection.raw.execute(
                "UPDATE transition SET move_in_date = current_date - 1 WHERE company_id = $1 AND NOT has_begun",
                company.id,
            )
    ended, next_one = row("T1", status="Completed"), row("T2", **fields)
    assert await company.put("turns", ended, next_one, events=True) == ["changed", "changed"]
    assert await places(served, company) == {"T1": ("completed", True, None), "T2": ("active", True, "T1")}
    second = (await company.turn("T2"))["entity_id"]
    assert await fired(served, company) == [("turn.status_changed", second, "Notice", "Occupied")]
    assert await company.put("turns", ended, next_one, events=True) == ["unchanged"] * 2


async def test_a_file_that_says_nothing_leaves_the_beginning_to_the_sweep(going: Company, served: Database) -> None:
    await going.make_units("U1")
    await going.put("turns", row("T1", move_out_date="2980-03-01"), row("T2", move_in_date="2980-03-10"))
    ended = row("T1", status="Completed")
    assert await going.put("turns", ended, events=True) == ["changed"]
    first, second = [(await going.turn(name))["entity_id"] for name in ("T1", "T2")]
    assert await fired(served, going) == [("turn.status_changed", first, "Notice", "Vacant Not Ready")]
    assert await going.put("turns", row("T2", move_in_date="2980-03-10")) == ["unchanged"]
    await going.sweep("2980-03-10T12:00:00Z")
    assert (await fired(served, going))[-1] == ("turn.status_changed", second, "Vacant Not Ready", "Occupied")
    assert await going.put("turns", ended, row("T2", move_in_date="2980-03-10")) == ["unchanged"] * 2


async def test_a_unit_with_planned_turns_alone_has_no_status_but_a_files(company: Company, served: Database) -> None:
    await company.make_units("U1")
    planned = row("T1", move_in_date=date(30))
    assert await company.put("turns", planned, events=True) == ["created"]
    assert await published(served, company) == [] and await status(company, served) is None
    assert await company.put("turns", planned | {"unit_status": "Occupied"}, events=True) == ["unchanged"]
    assert await status(company, served) is None
    assert await company.put("turns", planned | {"unit_status": "Vacant Ready"}, events=True) == ["changed"]
    assert [event[2:] for event in await fired(served, company)] == [(None, "Vacant Ready")]


async def test_a_planned_turn_that_a_file_cancels_lets_its_successor_move_up(
    company: Company, served: Database
) -> None:
    await company.make_units("U1")
    rows = [row("T1", move_out_date=date(20)), row("T2", move_in_date=date(30)), row("T3", move_in_date=date(60))]
    await company.put("turns", *rows)
    assert await company.put("turns", rows[1] | {"status": "Cancelled"}) == ["changed"]
    assert await places(served, company) == {
        "T1": ("active", True, None),
        "T2": ("cancelled", False, "T1"),
        "T3": ("active", False, "T1"),
    }
    # It comes back into the row, in its place.
    assert await company.put("turns", rows[1] | {"status": "Active"}) == ["changed"]
    assert (await places(served, company))["T3"] == ("active", False, "T2")
    # A planned turn that is over has begun.
    assert await company.put("turns", rows[1] | {"status": "Completed"}) == ["changed"]
    assert (await places(served, company))["T2"][:2] == ("completed", True)


async def test_a_file_goes_on_with_what_a_feed_has_planned(company: Company, served: Database) -> None:
    unit_id = await company.known_unit(served)
    current = (await company.move_in(unit_id, external_id="R1"))["entity_id"]
    await company.notice(unit_id, date(20))
    await company.move_in(unit_id, external_id="R2", move_in_date=date(30), predecessor_transition_id=current)
    assert await company.put("turns", row("R2", move_in_date=date(35), move_out_date=date(90))) == ["changed"]
    assert await places(served, company) == {"R1": ("active", True, None), "R2": ("active", False, "R1")}
    assert (await company.turn("R2"))["move_out_date"] == date(90)
    assert await status(company, served) == "Notice"
