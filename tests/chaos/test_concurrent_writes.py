"""Fifty clients at once: one shared key has one effect; with a key each, the changes happen in one order."""

import asyncio
import itertools
import json
from collections import Counter
from typing import Any

import pytest

from makeready.common.v1 import sweeps_pb2

from .effects import Effect, counted, since
from .harness import Harness
from .writes import KINDS, Caller, Records, Reply, Write, move_in, notice

pytestmark = pytest.mark.chaos

CLIENTS = 50


def without_secret(body: bytes) -> Any:
    """Only the first answer contains the subscription's secret (spec 2.12)."""
    record = json.loads(body)
    record.pop("secret", None)
    return record


@pytest.mark.parametrize("name", KINDS)
async def test_fifty_clients_with_one_key_have_one_effect(
    harness: Harness, caller: Caller, records: Records, alone: dict[str, Effect], name: str
) -> None:
    kind = KINDS[name]
    write, api_key, key = kind.make(records), await harness.key(caller.company), f"fifty {name}"
    before = await counted(harness, kind.service)
    replies = await asyncio.gather(*(caller.send(write, api_key, key) for _ in range(CLIENTS)))
    firsts = [reply for reply in replies if reply.status in (200, 201) and not reply.replayed]
    replays = [reply for reply in replies if reply.replayed]
    waiting = [reply for reply in replies if reply.status == 409]
    assert len(firsts) == 1 and len(firsts) + len(replays) + len(waiting) == CLIENTS, Counter(
        (reply.status, reply.replayed) for reply in replies
    )
    assert {reply.code for reply in waiting} <= {"idempotency_in_progress"}
    again = await caller.send(write, api_key, key)
    assert again.replayed and {reply.status for reply in (*replays, again)} == {firsts[0].status}
    assert {replay.body for replay in replays} <= {again.body}
    if name == "create webhook":
        assert again.json == without_secret(firsts[0].body)
    else:
        assert again.body == firsts[0].body
    assert since(before, await counted(harness, kind.service)) == alone[name]


async def test_fifty_changes_of_one_ticket_happen_in_one_order(
    harness: Harness, caller: Caller, records: Records
) -> None:
    ticket_id, api_key = records.ticket(), await harness.key(caller.company)
    statuses = ["In Progress", "On Hold", "Open", "Cancelled", "Completed"]
    with_them = {
        "Cancelled": {"cancellation_reason_code": "no_access_repeated"},
        "Completed": {"note": "new washer fitted and tested"},
    }
    writes = [
        Write("", "PATCH", f"/tickets/{ticket_id}", {"status": status, **with_them.get(status, {})})
        for status in itertools.islice(itertools.cycle(statuses), CLIENTS)
    ]
    replies = await asyncio.gather(*(caller.insist(write, api_key, f"order {n}") for n, write in enumerate(writes)))
    assert {reply.status for reply in replies} == {200}
    assert Counter(reply.json["status"] for reply in replies) == Counter(reply.body["status"] for reply in writes)
    history = await harness.query(
        "svc-tickets",
        "SELECT version, occurred_at, from_status, to_status FROM ticket_status_change WHERE ticket_id = $1 ORDER BY 1",
        ticket_id,
    )
    versions = [row["version"] for row in history]
    assert versions == list(range(versions[0], versions[0] + len(versions)))
    (last,) = await harness.query("svc-tickets", "SELECT version FROM ticket WHERE id = $1", ticket_id)
    assert last["version"] == versions[-1]
    instants = [row["occurred_at"] for row in history]
    assert instants == sorted(set(instants))
    moves = [(row["from_status"], row["to_status"]) for row in history]
    assert all(move[1] == other[0] for move, other in itertools.pairwise(moves)) and moves[0][0] == "Open"
    events = [
        (event.occurred_at.ToNanoseconds() // 1000, json.loads(event.public.change))
        for event in (await harness.events(caller.company.company_id)).values()
        if event.public.entity_id == ticket_id and event.public.event == "ticket.status_changed"
    ]
    events_in_order = [(change["from"], change["to"]) for _, change in sorted(events, key=lambda event: event[0])]
    # Completed again is another closing; Cancelled again, with the stored reason, is nothing.
    assert events_in_order == [move for move in moves if move[0] != move[1] or move[1] == "Completed"]
    assert len({instant for instant, _ in events}) == len(events)


async def test_fifty_move_ins_into_one_unit_have_one_winner_and_hold_nothing_of_the_others(
    harness: Harness, caller: Caller, records: Records, alone: dict[str, Effect]
) -> None:
    unit_id, api_key = records.vacant_unit(), await harness.key(caller.company)
    before = await counted(harness, "svc-occupancy")
    keys = [f"winner {n}" for n in range(CLIENTS)]
    replies = await asyncio.gather(*(caller.insist(move_in(unit_id), api_key, key) for key in keys))
    assert Counter((reply.status, reply.code) for reply in replies) == {
        (201, ""): 1,
        (422, "invalid_request"): CLIENTS - 1,
    }
    assert since(before, await counted(harness, "svc-occupancy")) == alone["move-in"]
    losers = [key for key, reply in zip(keys, replies, strict=True) if reply.status == 422]
    # A 422 stores no key: another request may use it without a mismatch.
    others = [caller.send(move_in(records.vacant_unit()), api_key, key) for key in losers]
    assert {(reply.status, reply.replayed) for reply in await asyncio.gather(*others)} == {(201, False)}


async def test_move_ins_notices_and_an_import_at_once_leave_one_resident_a_unit_and_publish_every_change(
    harness: Harness, caller: Caller, records: Records
) -> None:
    lived_in, empty = [records.occupied_unit() for _ in range(6)], [records.vacant_unit() for _ in range(4)]
    units = [*lived_in, *empty]
    turns = {turn["unit"]["id"]: turn for turn in caller.company.walk("/turns") if turn["unit"]["id"] in lived_in}
    writes = []
    for unit_id in units:
        # The move-out date is in the past: the notice has lapsed already, so the next move-in needs no predecessor.
        writes += [notice(unit_id, "2020-01-31"), move_in(unit_id), notice(unit_id), move_in(unit_id)]
    for unit_id in lived_in:
        writes.append(move_in(unit_id, predecessor_transition_id=turns[unit_id]["entity_id"]))
    # Files that change the same turns; the second also changes the units' status.
    names = {
        unit_id: {"external_id": turn["external_id"], "unit": turn["unit"]["external_id"]}
        for unit_id, turn in turns.items()
    }
    moved = lived_in[:2]
    fed = [{**row, "occupancy_source": "Yardi"} for row in names.values()]
    leaving = {"move_out_date": "2981-01-31", "projected_ready_on": "2981-02-05"}
    files = asyncio.create_task(
        asyncio.to_thread(
            lambda: [
                caller.company.import_rows("turns", rows)
                for rows in (fed, [{**names[unit_id], **leaving} for unit_id in moved])
            ]
        )
    )
    replies: list[Reply] = []
    while not files.done() or not replies:  # bounded: the import's command has a timeout of minutes
        wave = len(replies)
        sent = [caller.insist(write, caller.api_key(), f"mixed {wave} {n}") for n, write in enumerate(writes)]
        replies += await asyncio.gather(*sent)
    assert {(reply.status, reply.code) for reply in replies} == {(201, ""), (422, "invalid_request")}
    assert [done["changed"] for done in await files] == [len(lived_in), len(moved)]
    await harness.all_events_arrived()  # this also compares svc-catalog with svc-occupancy
    active = await harness.query(
        "svc-occupancy", "SELECT unit_id FROM transition WHERE status = 'active' AND unit_id = any($1)", units
    )
    assert len(active) == len({row["unit_id"] for row in active})
    states = await harness.query("svc-occupancy", "SELECT unit_id, unit_status FROM unit_state")
    status = {row["unit_id"]: row["unit_status"] for row in states}
    changes: dict[int, list[tuple[int, str | None, str]]] = {unit_id: [] for unit_id in units}
    for event in (await harness.events(caller.company.company_id)).values():
        unit_id = json.loads(event.public.data)["unit"]["id"] if event.public.event == "turn.status_changed" else 0
        if unit_id in changes:
            change = json.loads(event.public.change)
            changes[unit_id].append((event.occurred_at.ToNanoseconds(), change["from"], change["to"]))
    for unit_id in set(units) - set(moved):  # a file without --events changes a unit without an event
        moves = sorted(changes[unit_id], key=lambda move: move[0])
        assert moves[0][1] == ("Occupied" if unit_id in lived_in else None)
        assert all(move[2] == other[1] for move, other in itertools.pairwise(moves)), moves
        assert moves[-1][2] == status[unit_id]
    # A resident whose notice has lapsed may be left. Moved out now, or the sweep of a later restart would do it while
    # another test counts what a write leaves.
    request = sweeps_pb2.RunScheduledSweepsRequest(yes_for_all_companies=True)
    await harness.operator("svc-occupancy", request)
