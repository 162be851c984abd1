"""Two concurrent writes, by people or files: the second one sees the first one's changes, and nothing fails."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest

from chassis.db.database import Database
from makeready.catalog.v1 import (
    inspection_commands_pb2,
    meter_commands_pb2,
    notices_pb2,
    place_commands_pb2,
    vendor_commands_pb2,
)

# For each kind: the RPC that adds one, its fields, and the import row for the same record.
PLAN = {"title": "Fire", "scheduled_date": "2031-03-07"}
NOTICE = {"subject": "Water", "body": "None.", "when": "Monday"}
GAS = meter_commands_pb2.UTILITY_TYPE_GAS
KINDS: dict[str, tuple[Any, str, dict[str, Any], dict[str, Any]]] = {
    "properties": (place_commands_pb2, "AddProperty", {"name": "Oak", "address": "1"}, {"name": "Oak", "address": "1"}),
    "units": (place_commands_pb2, "AddUnit", {"name": "101"}, {"name": "101"}),
    "vendors": (vendor_commands_pb2, "AddVendor", {"name": "Ace"}, {"name": "Ace"}),
    "inspections": (inspection_commands_pb2, "ScheduleInspection", PLAN, PLAN),
    "meters": (
        meter_commands_pb2,
        "AddMeter",
        {"name": "M", "utility_type": GAS},
        {"name": "M", "utility_type": "gas"},
    ),
    "notices": (notices_pb2, "ComposeNotice", NOTICE, NOTICE),
}
WITHOUT_PROPERTY = ("properties", "vendors")
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


@asynccontextmanager
async def nobody_finishes(database: Database) -> AsyncIterator[Any]:
    """Blocks every command after its changes and before its audit entry, until the context ends."""
    async with database.transaction() as connection:
        await connection.raw.execute("LOCK TABLE audit IN EXCLUSIVE MODE")

        async def wait_for(many: int) -> None:
            for _ in range(1000):
                if await connection.raw.fetchval(WAITING) >= many:
                    return
                await asyncio.sleep(0.02)
            raise AssertionError(f"{many} do not wait")

        yield wait_for


async def until_taken(call: Callable[[], Awaitable[Any]]) -> Any:
    """Repeats a call that has waited for a lock for too long (UNAVAILABLE), as the command line does."""
    while True:
        try:
            return await call()
        except grpc.aio.AioRpcError as error:
            assert error.code() == grpc.StatusCode.UNAVAILABLE, error.details()


def acting(company: Any, contract: Any, rpc: str, **values: Any) -> asyncio.Task[Any]:
    """A person's command, under way."""
    key = f"{rpc} at once"
    return asyncio.create_task(until_taken(lambda: company.command(contract, rpc, idempotency_key=key, **values)))


def importing_of(company: Any, kind: str, row: dict[str, Any]) -> asyncio.Task[Any]:
    """An import of one row, under way."""
    return asyncio.create_task(until_taken(lambda: company.put(kind, row)))


@pytest.mark.parametrize("kind", KINDS)
async def test_a_file_meets_what_a_person_is_adding(company: Any, elm: Any, database: Database, kind: str) -> None:
    contract, rpc, fields, row = KINDS[kind]
    of_person, of_file = {"external_id": "X", **fields}, {"external_id": "X", **row}
    if kind not in WITHOUT_PROPERTY:
        of_person["property_id"], of_file["property"] = elm["entity_id"], "P1"
    async with nobody_finishes(database) as wait_for:
        act = acting(company, contract, rpc, **of_person)
        await wait_for(1)
        importing = importing_of(company, kind, of_file)
        await wait_for(2)
    await act
    assert await importing in (["unchanged"], ["changed"])


async def test_a_number_that_a_person_takes_meanwhile_is_not_a_files(
    company: Any, elm: Any, database: Database
) -> None:
    async with nobody_finishes(database) as wait_for:
        plan = PLAN | {"property_id": elm["entity_id"]}
        act = acting(company, inspection_commands_pb2, "ScheduleInspection", **plan)
        await wait_for(1)
        row = {"external_id": "X", "property": "P1", "title": "Pool", "inspection_number": 1}
        importing = importing_of(company, "inspections", row)
        await wait_for(2)
    await act
    assert await importing == ["rejected inspection_number"]


async def test_a_transaction_that_waits_for_a_vendor_finds_it_with_its_new_business(
    company: Any, database: Database
) -> None:
    vendor_id = (await company.command(vendor_commands_pb2, "AddVendor", name="Ace")).document.entity_id
    async with nobody_finishes(database) as wait_for:
        change = {"vendor_id": vendor_id, "legal_name": "Ace North LLC"}
        changing = acting(company, vendor_commands_pb2, "UpdateVendor", **change)
        await wait_for(1)
        hold = {"vendor_id": vendor_id, "reason": "No answer."}
        holding = acting(company, vendor_commands_pb2, "HoldVendor", **hold)
        await wait_for(2)
    changed, held = await changing, await holding
    assert json.loads(held.document.json) == json.loads(changed.document.json)
