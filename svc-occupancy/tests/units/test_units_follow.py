"""The effect of an import of turns on GET /units, with NATS and without it; and units that the replica lacks."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import grpc

from chassis.auth.clients import ServiceClient
from chassis.auth.identity import TokenSigner
from chassis.db.database import Database
from chassis.messaging.consumer import Consumer
from chassis.messaging.transport import Transport
from makeready.catalog.v1 import places_pb2
from makeready.events.v1 import events_pb2
from makeready_local.nats import Nats
from svc_occupancy import tables as t
from svc_occupancy.replicas import consumers
from svc_occupancy.units import rules as unit_rules
from testkit.patience import took
from testkit.services import RunningService

from ..harness import until


async def test_a_unit_shows_its_turns_soon(company: Any) -> None:
    await company.make_units("U1", "U2")
    assert await company.units() == {"U1": (None, None), "U2": (None, None)}
    turn = {"external_id": "T1", "unit": "U1", "move_out_date": "2020-03-31", "projected_ready_on": "2020-04-15"}
    await company.put("turns", turn)
    await until(company.units, {"U1": ("Vacant Not Ready", "2020-04-15"), "U2": (None, None)})
    steps = [
        ({"projected_ready_on": "2020-04-20", "unit_status": "Vacant Ready"}, ("Vacant Ready", "2020-04-20")),
        ({"move_out_date": "", "projected_ready_on": ""}, ("Occupied", None)),
        ({"status": "Completed"}, ("Vacant Not Ready", None)),
    ]
    seconds: list[float] = []
    for change, expected in steps:
        assert await company.put("turns", {"external_id": "T1", "unit": "U1"} | change) == ["changed"]
        seconds.append(await until(company.units, {"U1": expected, "U2": (None, None)}))
        took(f"a unit shows {expected}", seconds[-1])
    # About 0.1 s. A reconciliation comes each 30 s: without events, they would all have waited for one.
    assert min(seconds) < 10


async def test_svc_catalog_takes_every_status_that_a_unit_may_have(company: Any) -> None:
    units = {f"U{number}": status for number, status in enumerate(unit_rules.UNIT_STATUSES)}
    await company.make_units(*units)
    await company.put(
        "turns", *({"external_id": u, "unit": u, "unit_status": occupancies} for u, occupancies in units.items())
    )
    await until(company.units, {unit: (status, None) for unit, status in units.items()})


async def test_units_and_turns_at_once_while_nats_is_away_lose_no_row(
    company: Any, no_nats: Nats, occupancy: RunningService
) -> None:
    """Without events, each batch fetches its units, and their states do not reach svc-catalog."""
    await company.put("properties", {"external_id": "P1", "name": "Elm Court", "address": "1 Elm St"})
    for start in (0, 400):
        numbers = range(start, start + 400)
        units = [{"external_id": f"U{n}", "property": "P1", "name": f"Unit {n}"} for n in numbers]
        assert set(await company.put("units", *units)) == {"created"}
        turns = [{"external_id": f"T{n}", "unit": f"U{n}"} for n in numbers]
        assert set(await company.put("turns", *turns)) == {"created"}
    unknown = await company.put("turns", {"external_id": "X", "unit": "nowhere"}, {"external_id": "T0", "unit": "U0"})
    assert unknown == ["rejected unit", "unchanged"]
    (turn, *_) = await company.turns()
    assert (turn["unit"]["name"], turn["property"]["name"]) == ("Unit 0", "Elm Court")
    # The comparison with the outbox, every 30 s, may have brought some.
    assert set((await company.units()).values()) <= {(None, None), ("Occupied", None)}
    no_nats.start()

    async def shown() -> set[Any]:
        return set((await company.units()).values())

    await until(shown, {("Occupied", None)})


async def test_a_unit_that_came_before_its_property_is_asked_for_too(
    company: Any, no_nats: Nats, served: Database
) -> None:
    await company.make_units("U1")
    listed = await company.house("ListUnits", places_pb2.ListUnitsRequest(limit=1), company.caller)
    (unit,) = json.loads(listed.page.data)
    early = events_pb2.UnitReference(
        id=unit["entity_id"],
        version=1,
        company_id=company.id,
        property_id=unit["property"]["id"],
        name="Unit U1",
        external_id="U1",
    )
    async with served.transaction() as connection:
        await consumers.put_references(connection, [events_pb2.References(units=[early])])
    assert await company.put("turns", {"external_id": "T1", "unit": "U1"}) == ["created"]
    (turn,) = await company.turns()
    assert turn["property"] == unit["property"]


async def test_while_svc_catalog_is_away_known_units_import_and_turns_are_served(
    company: Any, catalog: RunningService
) -> None:
    await company.make_units("U1", "U2")
    await company.put("turns", {"external_id": "T1", "unit": "U1"})
    await company.put("turns", {"external_id": "T2", "unit": "U2"})
    unheard_of = {"external_id": "T3", "unit": "unheard of"}

    async def asked() -> list[str] | grpc.StatusCode:
        try:
            return await company.put("turns", unheard_of)  # type: ignore[no-any-return]
        except grpc.aio.AioRpcError as error:
            return error.code()

    catalog.kill()
    try:
        assert [turn["external_id"] for turn in await company.turns()] == ["T1", "T2"]
        changed = {"external_id": "T1", "unit": "U1", "move_out_date": "2020-01-31"}
        assert await company.put("turns", changed, {"external_id": "T2", "unit": "U2"}) == ["changed", "unchanged"]
        assert await asked() == grpc.StatusCode.UNAVAILABLE
    finally:
        catalog.start()
    # gRPC retries a failed connection within a second; like the command line, the test repeats the batch meanwhile.
    await until(asked, ["rejected unit"])
    await until(company.units, {"U1": ("Vacant Not Ready", None), "U2": ("Occupied", None)})


async def test_the_states_of_a_batch_come_in_one_event(
    company: Any, database: Database, occupancy: RunningService
) -> None:
    await company.make_units("U1", "U2")
    taken: list[events_pb2.Event] = []

    async def keep(_connection: Any, events: Any) -> None:
        taken.extend(message for message in events if message.company_id == company.id)

    client = ServiceClient("svc-occupancy", occupancy.target, TokenSigner(occupancy.keys.folder / "svc-catalog.jwk"))
    away = Transport("nats://127.0.0.1:1", "tests")
    listener = Consumer(
        "tests", database, t.inbox, away, keep, {"svc-occupancy": ["references"]}, {"svc-occupancy": client}
    )
    rows = [{"external_id": f"T{n}", "unit": f"U{n}"} for n in (1, 2)]
    try:
        await company.put("turns", *rows)
        await company.put("turns", *rows)
        await company.put("turns", rows[0] | {"status": "Completed"}, {"external_id": "T3", "unit": "U1"})
        await listener.catch_up()
    finally:
        await client.close()
    occupancies = [
        [(occupancy.version, occupancy.unit_status) for occupancy in event.references.unit_occupancies]
        for event in taken
    ]
    # A new resident in the unit changes nothing that svc-catalog serves.
    assert occupancies == [[(1, "Occupied"), (1, "Occupied")]]


async def test_two_imports_at_once_leave_one_active_turn(company: Any) -> None:
    await company.make_units(*(f"U{n}" for n in range(50)))
    files = [[{"external_id": f"{mark}{n}", "unit": f"U{n}"} for n in range(50)] for mark in "ab"]
    outcomes = await asyncio.gather(*(company.put("turns", *rows) for rows in files))
    assert sorted(outcomes) == [["created"] * 50, ["rejected unit"] * 50]
    active = [turn["unit"]["external_id"] for turn in await company.turns(status=1)]
    assert sorted(active) == sorted(f"U{n}" for n in range(50))
