"""Any sequence of notices, move-ins, cancellations, files and mornings keeps a unit's row of turns a row."""

from __future__ import annotations

import datetime
import itertools
from typing import Any

import grpc
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.refusals import Refusal
from svc_occupancy import tables as t
from testkit.clocks import today
from testkit.examples import examples

from ..harness import ANA, Company, fired

DAY = datetime.timedelta(days=1)
days = st.integers(-4, 24)
STATUSES = ("Vacant Not Ready", "Vacant Ready", "Down", "Occupied", "Notice")

acts = st.one_of(
    st.tuples(st.just("notice"), days, st.booleans()),
    st.tuples(st.just("move in"), days, st.booleans(), st.booleans()),
    st.tuples(st.just("move in"), days, st.booleans(), st.booleans()),
    st.tuples(st.just("change move-in"), days, st.integers(0, 3)),
    st.tuples(st.just("cancel turn"), st.integers(0, 3)),
    st.tuples(st.just("cancel notice")),
    st.tuples(st.just("status"), st.sampled_from(STATUSES)),
    st.tuples(st.just("schedule"), days, st.integers(0, 3)),
    st.tuples(
        st.just("file"),
        st.lists(
            st.fixed_dictionaries(
                {"external_id": st.sampled_from(["T1", "T2", "T3"])},
                optional={
                    "status": st.sampled_from(["Active", "Completed", "Cancelled"]),
                    "move_in_date": days | st.just(""),
                    "move_out_date": days | st.just(""),
                    "unit_status": st.sampled_from(["", *STATUSES]),
                },
            ),
            min_size=1,
            max_size=3,
            unique_by=lambda row: row["external_id"],
        ),
    ),
    st.tuples(st.just("sweep"), st.integers(0, 3), st.sampled_from([0, 7])),
    st.tuples(st.just("sweep"), st.integers(0, 12), st.sampled_from([0, 7])),
)


class Story:
    """One company's unit, to which things happen. Refusals are expected; faults are not."""

    def __init__(self, company: Company, unit_id: int, served: Database, day: datetime.date) -> None:
        self.company, self.unit_id, self.served = company, unit_id, served
        self.today = self.horizon = day
        """horizon: the latest day that a sweep has been told of."""
        self.silent = 0
        """How many changes of the status there were before the unit had any turn: they are no events."""

    def date(self, number: int | str) -> str:
        return str(self.today + number * DAY) if isinstance(number, int) else number

    async def act(self, act: tuple[Any, ...]) -> None:
        name, *arguments = act
        try:
            await getattr(self, name.replace(" ", "_").replace("-", "_"))(*arguments)
        except Refusal as refusal:
            assert refusal.status == 422, (act, refusal.message)

    async def notice(self, number: int, by_staff: bool) -> None:
        if by_staff:
            await self.company.command("AddNotice", unit_id=self.unit_id, move_out_date=self.date(number))
        else:
            await self.company.notice(self.unit_id, self.date(number))

    async def move_in(self, number: int, names: bool, by_staff: bool) -> None:
        fields: dict[str, Any] = {"move_in_date": self.date(number)}
        if names and (active := [row for row in await self.turns() if row["status"] == "active"]):
            succeeded = {row["predecessor_id"] for row in active}
            fields["predecessor_transition_id"] = next(row["id"] for row in active if row["id"] not in succeeded)
        if by_staff:
            lease: dict[str, Any] = {"lease_start_date": "2026-01-01", "parties": [ANA]}
            await self.company.command("AddMoveIn", unit_id=self.unit_id, **lease, **fields)
        else:
            await self.company.move_in(self.unit_id, **fields)

    async def change_move_in(self, number: int, place: int) -> None:
        if turn_id := await self.turn(place):
            await self.company.command("ChangeMoveIn", turn_id=turn_id, move_in_date=self.date(number))

    async def cancel_turn(self, place: int) -> None:
        if turn_id := await self.turn(place):
            await self.company.command("CancelTurn", turn_id=turn_id)

    async def cancel_notice(self) -> None:
        await self.company.command("CancelNotice", unit_id=self.unit_id)

    async def status(self, status: str) -> None:
        await self.company.command("SetUnitStatus", unit_id=self.unit_id, unit_status=status)

    async def schedule(self, number: int, place: int) -> None:
        if turn_id := await self.turn(place):
            await self.company.command("ScheduleTurn", turn_id=turn_id, projected_ready_on=self.date(number))

    async def file(self, rows: list[dict[str, Any]]) -> None:
        dates = ("move_in_date", "move_out_date")
        sent = [
            {"unit": "U1"} | {name: self.date(value) if name in dates else value for name, value in row.items()}
            for row in rows
        ]
        await self.company.put("turns", *sent, events=True)

    async def sweep(self, number: int, hour: int) -> None:
        self.horizon = max(self.horizon, self.today + number * DAY)
        moment = datetime.datetime.combine(self.today + number * DAY, datetime.time(hour), datetime.UTC)
        await self.company.sweep(moment.strftime("%Y-%m-%dT%H:%M:%SZ"))

    async def turns(self) -> list[dict[str, Any]]:
        turn = t.transition
        rows = await self.served.rows(
            Statement(select(turn).where(turn.c.company_id == self.company.id).order_by(turn.c.id))
        )
        return [dict(row) for row in rows]

    async def turn(self, place: int) -> int | None:
        turns = await self.turns()
        return turns[place]["id"] if place < len(turns) else None

    async def check(self) -> None:
        """What always holds."""
        turns = await self.turns()
        active = [row for row in turns if row["status"] == "active"]
        current, planned = ([row for row in active if row["has_begun"] is begun] for begun in (True, False))
        assert len(current) <= 1
        # One row: each planned turn but the first is behind another one, and no two are behind the same.
        behind = [row["predecessor_id"] for row in planned]
        ids = {row["id"] for row in planned}
        assert len([turn_id for turn_id in behind if turn_id not in ids]) == min(1, len(planned)), turns
        assert len(set(behind)) == len(behind)
        for row in turns:
            if row["has_begun"] and row["began_at"] is not None and row["status"] == "active":
                assert row["move_in_date"] is None or row["move_in_date"] <= self.horizon  # a file may clear it
        states = await self.served.rows(
            Statement(select(t.unit_state).where(t.unit_state.c.company_id == self.company.id))
        )
        status = states[0]["unit_status"] if states else None
        ready_on = states[0]["projected_ready_on"] if states else None
        if status in ("Occupied", "Notice"):
            assert current, "somebody lives there"
            came = current[0]["move_in_date"]
            assert came is None or came <= self.horizon
        assert ready_on == (current[0]["projected_ready_on"] if current else None)
        # Each change of the status is announced once, and the next one begins where it led.
        stored = await self.served.rows(
            Statement(
                select(t.unit_status_change.c.from_status, t.unit_status_change.c.to_status)
                .where(t.unit_status_change.c.company_id == self.company.id)
                .order_by(t.unit_status_change.c.version)
            )
        )
        changes = [tuple(row) for row in stored]
        if not turns:
            self.silent = len(changes)
        announced = [
            fired_event[2:]
            for fired_event in await fired(self.served, self.company)
            if fired_event[0] == "turn.status_changed"
        ]
        assert announced == changes[self.silent :]
        assert all(before != after for before, after in changes)
        assert all(change[1] == following[0] for change, following in itertools.pairwise(changes)), changes
        assert (changes[0][0], changes[-1][1]) == (None, status) if changes else status is None


@settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(acts, min_size=2, max_size=12))
async def test_a_units_turns_stand_in_a_row_whatever_happens(
    new_company: Any, served: Database, sequence: list[tuple[Any, ...]]
) -> None:
    company: Company = await new_company()
    await company.know(served, timezone="UTC")
    unit_id = await company.known_unit(served)
    story = Story(company, unit_id, served, today())
    for act in sequence:
        try:
            await story.act(act)
        except grpc.aio.AioRpcError as fault:
            raise AssertionError((act, fault.code())) from fault
        await story.check()
    await company.know(served, timezone="UTC", active=False)
