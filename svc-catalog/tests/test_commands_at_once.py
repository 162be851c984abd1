"""Holds and failed rows take effect once, wherever the process is killed and however many requests run at once."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import grpc
import pytest

from chassis.db.database import Database
from makeready.catalog.v1 import inspection_commands_pb2, vendor_commands_pb2

from .published import audited, events


async def prepared(company: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The fields that identify a vendor, and those that identify an inspection's row."""
    vendor = json.loads((await company.command(vendor_commands_pb2, "AddVendor", name="Ace")).document.json)
    (place,) = await company.list("properties")
    plan = {"property_id": place["entity_id"], "title": "Fire", "scheduled_date": "2031-03-07", "row": ["Door"]}
    planned = json.loads((await company.command(inspection_commands_pb2, "ScheduleInspection", **plan)).document.json)
    about = {"inspection_id": planned["entity_id"]}
    (row,) = (await company.command(inspection_commands_pb2, "ListInspectionRows", **about)).rows
    return {"vendor_id": vendor["entity_id"], "reason": "r"}, about | {"row_id": row.row_id}


async def effects(company: Any, database: Database) -> list[Any]:
    """The events, then the audit entries of the vendor and the row."""
    published = [event for _, event in await events(database, company.id)]
    fired = [event.public.event for event in published if event.HasField("public")]
    caused = [event.inspection_row_failed.row_id for event in published if event.HasField("inspection_row_failed")]
    actions = [entry[1] for entry in await audited(database, company.id)]
    return [fired, caused, [action for action in actions if action in ("vendor.held", "inspection.row_failed")]]


async def test_any_number_at_once_hold_and_fail_once(company: Any, elm: Any, database: Database) -> None:
    hold, row = await prepared(company)
    await asyncio.gather(
        *(company.command(vendor_commands_pb2, "HoldVendor", **hold) for _ in range(6)),
        *(company.command(inspection_commands_pb2, "FailInspectionRow", **row) for _ in range(6)),
    )
    fired, caused, done = await effects(company, database)
    assert (fired, caused) == (["vendor.hold"], [row["row_id"]])
    assert sorted(done) == ["inspection.row_failed", "vendor.held"]


@pytest.mark.parametrize(
    ("act", "point"), [("HoldVendor", "write-after-commit"), ("FailInspectionRow", "write-before-commit")]
)
async def test_what_was_cut_off_happens_once(
    company: Any, elm: Any, service: Any, database: Database, act: str, point: str
) -> None:
    hold, row = await prepared(company)
    contract, values = (vendor_commands_pb2, hold) if act == "HoldVendor" else (inspection_commands_pb2, row)
    await asyncio.to_thread(service.stop)
    await asyncio.to_thread(service.start, MAKEREADY_KILL_AT=point)
    with pytest.raises(grpc.aio.AioRpcError):
        await company.command(contract, act, idempotency_key="K", **values)
    assert await asyncio.to_thread(service.process.wait, 20) == -9, f"{point} was not reached"
    await asyncio.to_thread(service.start)
    for _ in range(2):
        await company.command(contract, act, idempotency_key="K", **values)
    fired, caused, done = await effects(company, database)
    assert fired + caused == (["vendor.hold"] if act == "HoldVendor" else [row["row_id"]])
    assert len(done) == 1
