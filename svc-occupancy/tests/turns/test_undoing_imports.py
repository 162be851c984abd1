"""Undoing imports over two contexts: turns and their units' states, and the units and properties themselves."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from typing import Any

import grpc
import pytest
from sqlalchemy import select

from chassis.db.database import Database
from chassis.db.statements import Statement
from importing.sending import NoAnswer
from importing.undo import Undo, UndoOutcome
from makeready.occupancy.v1 import turns_pb2
from svc_occupancy import tables as t

from ..harness import Company, published, until

TODAY = datetime.datetime.now(datetime.UTC).date()
AGO, SOON, LATER = (str(TODAY + datetime.timedelta(days)) for days in (-40, 20, 60))
ALL = ("properties", "units", "turns", "turn-tasks")


def turn(external_id: str, unit: str = "U1", **fields: Any) -> dict[str, Any]:
    return {"external_id": external_id, "unit": unit, **fields}


async def undone(company: Company, *kinds: str, dry_run: bool = False, key: str = "one") -> UndoOutcome:
    """Undoes an import in both contexts; the others have nothing of the company."""
    house: Any = company.house
    services = {"svc-catalog": house._catalog, "svc-occupancy": house._occupancy}

    async def ask(name: str, request: Any) -> Any:
        if name not in services:
            return type(request).__name__.startswith("Release") and _NOTHING
        service, channel = services[name]
        try:
            return await service.call(channel, request, company.operator)
        except grpc.aio.AioRpcError as error:
            raise NoAnswer(str(error), is_transient=error.code() == grpc.StatusCode.UNAVAILABLE) from None

    async def progress(_outcome: UndoOutcome) -> None:
        """Nobody watches."""

    return await Undo(ask, key, dry_run=dry_run).run(kinds, progress)


class _NOTHING:
    used: Sequence[Any] = ()


def counts(outcome: UndoOutcome) -> dict[str, tuple[int, int, int]]:
    return {kind.kind: (kind.withdrawn, kind.restored, kind.kept) for kind in outcome.kinds}


def reasons(outcome: UndoOutcome) -> set[tuple[str, str]]:
    return {(kept.kind, kept.used_by) for kept in outcome.kept}


async def feed(company: Company, position: bytes = b"") -> tuple[list[tuple[int, bool]], bytes]:
    request = turns_pb2.ListTurnChangesRequest(position=position, limit=200)
    page = (await company.house("ListTurnChanges", request, company.caller)).feed
    documents = [json.loads(document) for document in page.documents]
    return [(document["entity_id"], document["gone"]) for document in documents], page.position


async def test_a_turn_goes_and_its_unit_is_as_before(company: Company, served: Database) -> None:
    await company.make_units("U1", "U2")
    await company.put("turns", turn("T1", move_in_date=AGO))
    before = await company.turns()
    _, position = await feed(company)
    rows = [
        turn("T1", status="Completed", move_in_date=AGO, move_out_date=AGO),
        turn("T2", move_in_date=AGO, move_out_date=SOON, projected_ready_on=LATER),
        turn("T3", "U2", move_in_date=AGO),
    ]
    assert await company.put("turns", *rows, import_key="one") == ["changed", "created", "created"]
    ids = {record["external_id"]: record["entity_id"] for record in await company.turns()}
    await until(company.units, {"U1": ("Notice", LATER), "U2": ("Occupied", None)})
    told = len(await published(served, company))
    assert counts(await undone(company, "turns")) == {"turns": (2, 1, 0)}
    (after,) = await company.turns()
    assert (
        after | {"updated_at": ""} == before[0] | {"updated_at": ""} and after["updated_at"] > before[0]["updated_at"]
    )
    await until(company.units, {"U1": ("Occupied", None), "U2": (None, None)})
    changes, _ = await feed(company, position)
    assert sorted(changes) == sorted([(ids["T1"], False), (ids["T2"], True), (ids["T3"], True)])
    events = (await published(served, company))[told:]
    assert not [event for event in events if event.HasField("public")]
    assert await company.put("turns", *rows) == ["changed", "created", "created"]
    assert {record["external_id"]: record["entity_id"] for record in await company.turns()} == ids


async def test_turns_of_a_unit_whose_status_staff_have_set_stay(company: Company, served: Database) -> None:
    await company.make_units("U1", "U2")
    await company.put("turns", turn("T1"), turn("T2", "U2"), import_key="one")
    unit_id = (await company.unit_ids())["U1"]
    await company.command("SetUnitStatus", unit_id=unit_id, unit_status="Down")
    outcome = await undone(company, "turns")
    assert counts(outcome) == {"turns": (1, 0, 1)} and reasons(outcome) == {("turns", "")}
    assert [record["external_id"] for record in await company.turns()] == ["T1"]


async def test_all_kinds_of_one_import_go_in_order(company: Company, served: Database) -> None:
    await company.put("properties", {"external_id": "P1", "name": "Elm", "address": "1 Elm St"}, import_key="one")
    units = [{"external_id": f"U{n}", "property": "P1", "name": f"Unit {n}"} for n in (1, 2)]
    await company.put("units", *units, import_key="one")
    await company.put("turns", turn("T1", move_in_date=AGO), turn("T2", "U2", move_in_date=LATER), import_key="one")
    await company.put("turn-tasks", {"external_id": "K", "turn": "T1", "task_type": "Paint"}, import_key="one")
    expected = {"turn-tasks": (1, 0, 0), "turns": (2, 0, 0), "units": (2, 0, 0), "properties": (1, 0, 0)}
    assert counts(await undone(company, *ALL, dry_run=True)) == expected
    assert len(await company.turns()) == 2
    assert counts(await undone(company, *ALL)) == expected
    assert await company.units() == {} and await company.turns() == []
    units_there = Statement(select(t.unit.c.id).where(t.unit.c.company_id == company.id, t.unit.c.version > 0))
    await until(lambda: served.rows(units_there), [])
    assert await company.put("units", units[0] | {"property": "P1"}) == ["rejected property"]


@pytest.mark.parametrize("used_by", ["transition", "unit_status"])
async def test_a_unit_that_another_context_uses_stays_with_its_property(
    company: Company, served: Database, used_by: str
) -> None:
    await company.put("properties", {"external_id": "P1", "name": "Elm", "address": "1 Elm St"}, import_key="one")
    units = [{"external_id": f"U{n}", "property": "P1", "name": f"Unit {n}"} for n in (1, 2)]
    await company.put("units", *units, import_key="one")
    if used_by == "transition":
        await company.put("turns", turn("T1"))
    else:
        unit_id = (await company.unit_ids())["U1"]
        await company.command("SetUnitStatus", unit_id=unit_id, unit_status="Down")
    expected = {"units": (1, 0, 1), "properties": (0, 0, 1)}
    dry = await undone(company, "properties", "units", dry_run=True)
    assert counts(dry)["units"] == expected["units"]
    outcome = await undone(company, "properties", "units")
    assert counts(outcome) == expected and reasons(outcome) == {("units", used_by), ("properties", "unit")}
    assert list(await company.units()) == ["U1"]
    # What stays can be used as before, and nothing of the other is left to use.
    await company.put("turns", turn("T1", move_in_date=AGO))
    assert await company.put("turns", turn("T2", "U2")) == ["rejected unit"]
