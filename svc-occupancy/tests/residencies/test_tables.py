"""The tables of docs/decisions/turns.md on real units: every row and pair, by feeds and by staff, with what changes."""

from __future__ import annotations

import datetime
import itertools
from typing import Any

import pytest

from chassis.db.database import Database
from chassis.refusals import Refusal
from svc_occupancy.residencies import rules
from testkit.clocks import today

from ..harness import ANA, Company, fired, published
from .test_rules import MOVE_INS, NAMED, NOBODY, NOTICES

DAY = datetime.timedelta(days=1)
LEASE: dict[str, Any] = {"lease_start_date": "2026-01-01", "parties": [ANA]}
# The days of a notice about a resident whose date was ten days ago, and behind whom another one comes in twenty days.
LEFT, NEXT = -10, 20
DATES = dict(zip(rules.NOTICE_DATES, (LEFT, LEFT - 1, -5, 5, NEXT), strict=True))


class Writer:
    """Records notices and move-ins in a unit, as a feed or as staff do. Returns the turn's id."""

    def __init__(self, company: Company, unit_id: int, *, by_staff: bool) -> None:
        self.company, self.unit_id, self.by_staff = company, unit_id, by_staff
        self.today = today()

    def date(self, days: int) -> str:
        return str(self.today + days * DAY)

    async def notice(self, days: int) -> int:
        date = self.date(days)
        if self.by_staff:
            document = await self.company.command("AddNotice", unit_id=self.unit_id, move_out_date=date)
        else:
            document = await self.company.notice(self.unit_id, date)
        return int(document["entity_id"])

    async def move_in(self, days: int, predecessor: int | None = None) -> int:
        fields: dict[str, Any] = {"move_in_date": self.date(days)}
        if predecessor is not None:
            fields["predecessor_transition_id"] = predecessor
        if self.by_staff:
            document = await self.company.command("AddMoveIn", unit_id=self.unit_id, **LEASE, **fields)
        else:
            document = await self.company.move_in(self.unit_id, **fields)
        return int(document["entity_id"])

    async def set_vacant(self) -> None:
        await self.company.command("SetUnitStatus", unit_id=self.unit_id, unit_status="Vacant Ready")


async def last_of(writer: Writer, last: str) -> int | None:
    """Brings the unit to the case; returns the id of its last active turn."""
    if last == "none":
        return None
    if last.startswith("planned"):
        turn_id = await writer.move_in(NEXT)
        if last == "planned_leaving":
            await writer.notice(NEXT + 30)
        return turn_id
    turn_id = await writer.move_in(-400)
    if last in ("leaving", "left early"):
        await writer.notice(5)
    elif last == "lapsed":
        await writer.notice(LEFT)
    if last == "left early":
        await writer.set_vacant()
    return turn_id


async def shown(company: Company, served: Database) -> Any:
    return await company.turns(), await published(served, company)


CASES = [
    (last, named)
    for last, named in itertools.product([*MOVE_INS, "left early"], NAMED)
    if (last, named) != ("none", NAMED[1])
]


@pytest.mark.parametrize("by_staff", [False, True], ids=["feed", "staff"])
@pytest.mark.parametrize(("last", "named"), CASES)
async def test_every_unit_met_by_every_move_in(
    company: Company, served: Database, last: str, named: str, by_staff: bool
) -> None:
    await company.make_units("U1", "U2")
    ids = await company.unit_ids()
    writer, elsewhere = (Writer(company, ids[unit], by_staff=by_staff) for unit in ("U1", "U2"))
    cancelled = await writer.move_in(-500)
    await company.command("CancelTurn", turn_id=cancelled)
    last_id = await last_of(writer, last)
    predecessor = {
        "nothing": None,
        "the last active turn": last_id,
        "another turn of the unit": cancelled,
        "a turn of another unit": await elsewhere.move_in(-400),
        "an id that nobody has": 0,
    }[named]
    expected = MOVE_INS["lapsed" if last == "left early" else last][NAMED.index(named)]
    before = await shown(company, served)
    if expected is not None:
        for days in (0, NEXT + 60):
            with pytest.raises(Refusal, match=expected) as refused:
                await writer.move_in(days, predecessor)
            assert (refused.value.status, refused.value.code) == (422, "invalid_request")
        assert await shown(company, served) == before
        return
    # A later date changes nothing but that there is one more turn.
    planned = await writer.move_in(NEXT + 60, predecessor)
    turns, events = await shown(company, served)
    assert events == before[1] and [turn for turn in turns if turn["entity_id"] != planned] == before[0]
    (residency,) = [listed for listed in await company.residencies(writer.unit_id) if listed.turn_id == planned]
    assert residency.is_planned and residency.predecessor_id == (last_id or 0)
    # Today's begins at once, and ends the current turn; behind a planned one it waits.
    await company.command("CancelTurn", turn_id=planned)
    begun = await writer.move_in(0, predecessor)
    turns = {turn["entity_id"]: turn["status"] for turn in await company.turns()}
    waits = last == "planned_leaving"
    assert turns[begun] == "Active" and (last_id is None or turns[last_id] == ("Active" if waits else "Completed"))
    happened = [
        fired_event[2:]
        for fired_event in (await fired(served, company))[len([e for e in events if e.HasField("public")]) :]
    ]
    assert [after for _, after in happened] == ([] if waits else ["Occupied"])


@pytest.mark.parametrize("by_staff", [False, True], ids=["feed", "staff"])
@pytest.mark.parametrize(("resident", "date"), list(itertools.product(NOTICES, rules.NOTICE_DATES)))
async def test_every_unit_met_by_every_notice(
    company: Company, served: Database, resident: str, date: rules.NoticeDate, by_staff: bool
) -> None:
    writer = Writer(company, await company.known_unit(served), by_staff=by_staff)
    current = planned = None
    if resident in ("there", "left"):
        current = await writer.move_in(-400)
        await writer.notice(LEFT)
    if resident == "left":
        await writer.set_vacant()
    if resident != "nobody":
        planned = await writer.move_in(NEXT)
    expected = NOTICES[resident][rules.NOTICE_DATES.index(date)]
    before = await shown(company, served)
    status = (await company.command("ListBoard"))[0].unit_status
    events = await fired(served, company)
    days = DATES[date]
    if expected == NOBODY:
        with pytest.raises(Refusal, match="no active resident") as refused:
            await writer.notice(days)
        assert (refused.value.status, refused.value.code) == (422, "invalid_request")
        assert await shown(company, served) == before
        return
    assert await writer.notice(days) == (planned if expected == "next_departs" else current)
    turns = {turn["entity_id"]: turn["move_out_date"] for turn in await company.turns()}
    own_date = writer.date(LEFT)
    if expected == "next_departs":
        assert turns[planned] == writer.date(days) and turns.get(current, own_date) == own_date
    else:
        assert turns == {current: writer.date(days), planned: None}
    becomes = "Notice" if expected == "departs" else status
    assert (await company.command("ListBoard"))[0].unit_status == becomes
    happened = [] if becomes == status else [("turn.status_changed", current, status, becomes)]
    assert (await fired(served, company))[len(events) :] == happened
