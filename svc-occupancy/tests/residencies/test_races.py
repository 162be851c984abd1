"""Notices, move-ins and imports of one unit at once: each sees the previous one's changes (real PostgreSQL)."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import Any

import grpc
import pytest
from sqlalchemy import select

from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.refusals import Refusal
from makeready.events.v1.events_pb2 import Event
from svc_occupancy import tables as t

from ..harness import Company, move_in, notice, published

ROUNDS = 12


async def outcome(company: Company, rpc: str, unit_id: int, body: Any) -> dict[str, Any] | str:
    """The OccupancyRecord, or the message of the refusal."""
    try:
        record: dict[str, Any] = json.loads((await company.write(rpc, unit_id, body)).body)
    except Refusal as refusal:
        assert (refusal.status, refusal.code) == (422, "invalid_request")
        return refusal.message
    return record


async def rows_of(served: Database, company: Company) -> list[dict[str, Any]]:
    rows = await served.rows(
        Statement(select(t.transition).where(t.transition.c.company_id == company.id).order_by(t.transition.c.id))
    )
    return [dict(row) for row in rows]


async def test_of_many_who_move_into_one_unit_one_does(company: Company, served: Database) -> None:
    unit_id = await company.known_unit(served)
    outcomes = await asyncio.gather(*(outcome(company, "RecordMoveIn", unit_id, move_in()) for _ in range(30)))
    (record,) = [reply for reply in outcomes if isinstance(reply, dict)]
    assert Counter(map(str, outcomes)).most_common(1)[0][1] == 29
    assert [row["id"] for row in await rows_of(served, company)] == [record["entity_id"]]
    of_company = t.party.c.company_id == company.id
    assert len(await served.rows(Statement(select(t.party.c.id).where(of_company)))) == 1


async def test_of_many_successors_of_one_resident_one_moves_in(company: Company, served: Database) -> None:
    unit_id = await company.known_unit(served)
    first = await company.move_in(unit_id)
    await company.notice(unit_id)
    body = move_in() | {"predecessor_transition_id": first["entity_id"]}
    outcomes = await asyncio.gather(*(outcome(company, "RecordMoveIn", unit_id, body) for _ in range(20)))
    assert len([reply for reply in outcomes if isinstance(reply, dict)]) == 1
    assert [row["status"] for row in await rows_of(served, company)] == ["completed", "active"]


async def test_notices_move_ins_and_imports_at_once_lose_nothing(company: Company, served: Database) -> None:
    """For each unit: notices, a move-in after the resident who leaves, and a file that sets a ready date."""
    names = [f"U{n}" for n in range(ROUNDS)]
    await company.make_units(*names)
    files = [{"external_id": f"T{name}", "unit": name, "move_out_date": "2999-01-01"} for name in names]
    assert set(await company.put("turns", *files)) == {"created"}
    firsts = {row["unit_id"]: row["id"] for row in await rows_of(served, company)}

    async def import_plans(part: int) -> list[str]:
        plans = [{"external_id": turn["external_id"], "unit": turn["unit"]} for turn in files[part::3]]
        return await company.put("turns", *(plan | {"projected_ready_on": "2999-01-09"} for plan in plans))

    async def of_unit(unit_id: int) -> tuple[dict[str, Any] | str, ...]:
        succeed = move_in() | {"predecessor_transition_id": firsts[unit_id]}
        return await asyncio.gather(
            outcome(company, "RecordNotice", unit_id, notice("2999-02-01")),
            outcome(company, "RecordMoveIn", unit_id, succeed),
            outcome(company, "RecordNotice", unit_id, notice("2999-03-01")),
            outcome(company, "RecordMoveIn", unit_id, succeed),
        )

    outcomes, imported = await asyncio.gather(
        asyncio.gather(*(of_unit(unit_id) for unit_id in firsts)),
        asyncio.gather(*(import_plans(part) for part in range(3))),
    )
    assert {reply for many in imported for reply in many} == {"changed"}
    rows = await rows_of(served, company)
    events = await published(served, company)
    for unit_id, (early, moved, late, moved_too) in zip(firsts, outcomes, strict=True):
        (won,) = [reply for reply in (moved, moved_too) if isinstance(reply, dict)]
        assert isinstance(early, dict) and isinstance(late, dict)
        ended, active = [row for row in rows if row["unit_id"] == unit_id]
        assert (ended["id"], ended["status"]) == (firsts[unit_id], "completed")
        assert (active["id"], active["status"]) == (won["entity_id"], "active")
        # Each notice is on the turn in its response; the later one prevails; the turn's version counts both.
        for row, others in ((ended, 2), (active, 0)):
            mine = sorted(
                (record for record in (early, late) if record["entity_id"] == row["id"]),
                key=lambda record: record["occupancy_fed_at"],
            )
            assert row["version"] == 1 + others + len(mine)
            if mine:
                assert str(row["move_out_date"]) == mine[-1]["move_out_date"]
        assert str(ended["projected_ready_on"]) == "2999-01-09"
    await _states_follow(served, company, events, rows)


async def _states_follow(served: Database, company: Company, events: list[Event], rows: list[dict[str, Any]]) -> None:
    """Each change of a unit was published once and starts from the previous one's result; the last one follows from the
    active turn. All units began on notice."""
    states = {
        row["unit_id"]: row
        for row in await served.rows(Statement(select(t.unit_state).where(t.unit_state.c.company_id == company.id)))
    }
    published: dict[int, list[Any]] = {unit_id: [] for unit_id in states}
    for event in events:
        for occupancy in event.references.unit_occupancies:
            if occupancy.company_id == company.id:
                published[occupancy.id].append(occupancy)
    unit_of = {row["id"]: row["unit_id"] for row in rows}
    last: dict[int, Any] = dict.fromkeys(states, "Notice")
    public = [event for event in events if event.company_id == company.id and event.HasField("public")]
    for event in sorted(public, key=lambda message: message.occurred_at.ToNanoseconds()):
        change = json.loads(event.public.change)
        assert change["from"] == last[unit_of[event.public.entity_id]]
        last[unit_of[event.public.entity_id]] = change["to"]
    assert last == {unit_id: state["unit_status"] for unit_id, state in states.items()}
    for unit_id, state in states.items():
        versions = sorted(published[unit_id], key=lambda occupancy: occupancy.version)
        assert [occupancy.version for occupancy in versions] == list(range(1, state["version"] + 1))
        assert versions[-1].unit_status == state["unit_status"]
        (active,) = [row for row in rows if row["unit_id"] == unit_id and row["status"] == "active"]
        assert state["unit_status"] == ("Occupied" if active["move_out_date"] is None else "Notice")


async def test_a_unit_that_an_import_holds_is_waited_for(company: Company, served: Database) -> None:
    unit_id = await company.known_unit(served)
    await company.move_in(unit_id)
    async with served.transaction() as connection:
        await connection.raw.execute(f"SELECT FROM unit WHERE id = {unit_id} FOR NO KEY UPDATE")
        waiting = asyncio.create_task(outcome(company, "RecordNotice", unit_id, notice()))
        done, _ = await asyncio.wait({waiting}, timeout=0.5)  # short: it waits for the lock
        assert not done
        # The decision depends on the unit as it is once the lock is acquired.
        await connection.raw.execute(f"UPDATE transition SET status = 'completed' WHERE unit_id = {unit_id}")
    assert await waiting == "The unit has no active resident; record the move-in before a notice."


async def test_a_unit_that_is_held_too_long_is_a_fault_of_ours_and_leaves_nothing(
    company: Company, served: Database
) -> None:
    unit_id = await company.known_unit(served)
    async with served.transaction() as connection:
        await connection.raw.execute(f"SELECT FROM unit WHERE id = {unit_id} FOR NO KEY UPDATE")
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await company.write("RecordMoveIn", unit_id, move_in(), key="again")
        assert failed.value.code() is grpc.StatusCode.UNAVAILABLE
    reply = await company.write("RecordMoveIn", unit_id, move_in(), key="again")
    assert (reply.status, reply.replayed) == (201, False)


async def test_the_index_has_the_last_word_on_who_lives_in_a_unit(company: Company, served: Database) -> None:
    """A transaction without the unit's lock inserts a turn into it meanwhile."""
    unit_id = await company.known_unit(served)
    async with served.transaction() as connection:
        await connection.raw.execute(
            "INSERT INTO transition (company_id, property_id, unit_id, status, created_at, updated_at, source)"
            f" SELECT company_id, property_id, id, 'active', now(), now(), 'staff' FROM unit WHERE id = {unit_id}"
        )
        waiting = asyncio.create_task(outcome(company, "RecordMoveIn", unit_id, move_in()))
        done, _ = await asyncio.wait({waiting}, timeout=0.5)  # short: it waits for the lock
        assert not done
    assert "already occupies" in str(await waiting)
    assert len(await rows_of(served, company)) == 1
    ledger = Statement(select(t.idempotency.c.status).where(t.idempotency.c.company_id == company.id))
    assert await served.rows(ledger) == []
