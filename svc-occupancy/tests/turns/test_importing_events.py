"""The public events of an import of turns: none unless the request asks for them."""

from __future__ import annotations

import asyncio
import datetime
import json
from typing import Any

from chassis.db.database import Database
from makeready.occupancy.v1 import turns_pb2

from ..harness import Company, published

STATUS, SCHEDULE = "turn.status_changed", "turn.schedule_changed"


class Published:
    """The public events of a company, step by step."""

    def __init__(self, served: Database, company: Company) -> None:
        self._served = served
        self._company = company
        self._known = 0

    async def __call__(self) -> list[tuple[Any, ...]]:
        """The new events: event, the turn's external_id, from and to. Asserts that the data equal GET /turns/{id}."""
        events = await published(self._served, self._company)
        public = [event for event in events if event.company_id == self._company.id and event.HasField("public")]
        new, self._known = public[self._known :], len(public)
        fired = []
        for event in new:
            request = turns_pb2.GetTurnRequest(turn_id=event.public.entity_id)
            response = await self._company.house("GetTurn", request, self._company.caller)
            assert event.public.data == response.document.json and event.request_id == "req-test"
            change = json.loads(event.public.change)
            named = {STATUS: "unit_status", SCHEDULE: "projected_ready_on"}[event.public.event]
            assert list(change) == ["field", "from", "to"] and change["field"] == named
            external_id = json.loads(event.public.data)["external_id"]
            fired.append((event.public.event, external_id, change["from"], change["to"]))
        instants = [(event.public.entity_id, event.occurred_at.ToNanoseconds()) for event in public]
        assert len(set(instants)) == len(instants), "two events of one turn share occurred_at"
        return sorted(fired, key=lambda entry: (entry[1], entry[0]))


TURN = {"external_id": "T1", "unit": "U1"}


async def test_an_import_is_silent_unless_events_are_asked_for(company: Company, served: Database) -> None:
    published = Published(served, company)
    await company.make_units("U1")
    await company.put("turns", TURN)
    await company.put("turns", TURN | {"move_out_date": "2999-01-31", "projected_ready_on": "2999-02-09"})
    assert await published() == []
    await company.put("turns", TURN | {"move_out_date": "", "projected_ready_on": ""}, events=True, dry_run=True)
    assert await published() == []


async def test_each_change_of_a_unit_and_of_a_ready_date_is_an_event(company: Company, served: Database) -> None:
    published = Published(served, company)
    await company.make_units("U1", "U2")
    steps: list[tuple[dict[str, str], list[tuple[Any, ...]]]] = [
        ({}, [(STATUS, "T1", None, "Occupied")]),
        ({}, []),
        ({"move_in_date": "2024-04-01"}, []),
        (
            {"move_out_date": "2999-01-31", "projected_ready_on": "2999-02-09"},
            [(SCHEDULE, "T1", None, "2999-02-09"), (STATUS, "T1", "Occupied", "Notice")],
        ),
        ({"projected_ready_on": "2999-02-12"}, [(SCHEDULE, "T1", "2999-02-09", "2999-02-12")]),
        ({"projected_ready_on": ""}, [(SCHEDULE, "T1", "2999-02-12", None)]),
        ({"unit_status": "Down"}, [(STATUS, "T1", "Notice", "Down")]),
        ({"status": "Completed"}, []),
    ]
    for change, expected in steps:
        await company.put("turns", TURN | change, events=True)
        assert await published() == expected, change
    new = {"external_id": "T2", "unit": "U2", "move_out_date": "2020-01-31", "projected_ready_on": "2020-02-09"}
    await company.put("turns", {"external_id": "T3", "unit": "U1"}, new, events=True)
    assert await published() == [(STATUS, "T2", None, "Vacant Not Ready"), (STATUS, "T3", "Down", "Occupied")]


async def test_a_unit_without_an_active_turn_speaks_by_its_newest(company: Company, served: Database) -> None:
    published = Published(served, company)
    await company.make_units("U1")
    old = {"external_id": "T0", "unit": "U1", "status": "Completed"}
    await company.put("turns", old, TURN, {"external_id": "T2", "unit": "U1", "status": "Cancelled"}, events=True)
    assert await published() == [(STATUS, "T1", None, "Occupied")]
    await company.put("turns", TURN | {"status": "Completed"}, events=True)
    assert await published() == [(STATUS, "T2", "Occupied", "Vacant Not Ready")]


async def test_a_rejected_row_is_no_event(company: Company, served: Database) -> None:
    published = Published(served, company)
    await company.make_units("U1")
    rows = [TURN, {"external_id": "T2", "unit": "U1"}, {"external_id": "T3", "unit": "nowhere"}]
    assert await company.put("turns", *rows, events=True) == ["created", "rejected unit", "rejected unit"]
    assert await published() == [(STATUS, "T1", None, "Occupied")]


async def test_a_file_that_waited_for_a_unit_comes_after_what_it_waited_for(company: Company, served: Database) -> None:
    """Its event may be of another turn of the unit than the event that it waited for."""
    unit_id = await company.known_unit(served)
    async with served.transaction() as connection:
        await connection.raw.execute(f"SELECT FROM unit WHERE id = {unit_id} FOR NO KEY UPDATE")
        waiting = asyncio.create_task(company.put("turns", TURN, events=True))
        done, _ = await asyncio.wait({waiting}, timeout=0.5)  # short: it waits for the lock
        assert not done
        before = datetime.datetime.now(datetime.UTC)
    assert await waiting == ["created"]
    events = await published(served, company)
    (event,) = [message for message in events if message.company_id == company.id and message.HasField("public")]
    assert event.occurred_at.ToDatetime(datetime.UTC) > before
