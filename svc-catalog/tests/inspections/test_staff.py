"""Assignees of inspections: members of staff, fetched from the gateway if the replica lacks them."""

from __future__ import annotations

import json
import secrets
from typing import Any

import grpc
import pytest

from chassis.auth.identity import OPERATOR, Identity
from chassis.db.database import Database
from makeready.catalog.v1 import inspections_pb2 as pb
from makeready.common.v1.documents_pb2 import ImportRow
from makeready.identity.v1 import identity_pb2, staff_pb2
from testkit.services import RunningService

P = {"external_id": "P1", "name": "P1", "address": "A"}
I = {"external_id": "I1", "property": "P1"}  # noqa: E741 - beside P, U and A of the other kinds


class Staffed:
    """A company of the gateway, with its calls to svc-catalog."""

    def __init__(self, gateway: RunningService, company_id: int) -> None:
        self.gateway = gateway
        self.id = company_id
        self.operator = Identity(OPERATOR, "operator", company_id)

    async def hire(self, *external_ids: str) -> None:
        rows = [{"external_id": external_id, "name": f"Name of {external_id}"} for external_id in external_ids]
        sent = [ImportRow(line=line, json=json.dumps(row).encode()) for line, row in enumerate(rows, start=2)]
        async with self.gateway.channel() as channel:
            await self.gateway.call(channel, staff_pb2.ImportStaffRequest(rows=sent), self.operator)


@pytest.fixture
async def staffed(gateway: RunningService) -> Staffed:
    """A new company of the gateway."""
    async with gateway.channel() as channel:
        request = identity_pb2.CreateCompanyRequest(name=f"Staffed {secrets.token_hex(4)}")
        response = await gateway.call(channel, request, Identity(OPERATOR, "operator"))
    return Staffed(gateway, response.company.id)


async def test_staff_whom_the_replica_lacks_are_asked_of_the_gateway_once(
    staffed: Staffed, company: Any, database: Database
) -> None:
    theirs = type(company)(company.catalog, staffed.id)
    await theirs.put("properties", P)
    await staffed.hire("S1", "S2")
    rows = [I | {"external_id": assignee, "assignee": assignee} for assignee in ("S1", "S2", "nobody")]
    assert await theirs.put("inspections", *rows) == ["created", "created", "rejected assignee"]
    assignees = {
        name: record["assignee"]["name"] for name, record in (await theirs.by_external_id("inspections")).items()
    }
    assert assignees == {"S1": "Name of S1", "S2": "Name of S2"}
    # The response is stored: without the gateway, known members can still be assigned.
    staffed.gateway.stop()
    assert await theirs.put("inspections", *rows[:2], rows[0] | {"external_id": "again"}) == [
        "unchanged",
        "unchanged",
        "created",
    ]
    with pytest.raises(grpc.aio.AioRpcError) as away:
        await theirs.put("inspections", I | {"external_id": "new", "assignee": "somebody new"})
    assert away.value.code() == grpc.StatusCode.UNAVAILABLE
    assert "new" not in await theirs.by_external_id("inspections")
    # Members of another company's staff cannot be assigned, even if the replica has them.
    await company.put("properties", P)
    assert await company.put("inspections", I) == ["created"]
    sent = [ImportRow(line=2, json=json.dumps(I | {"assignee": "S1"}).encode())]
    with pytest.raises(grpc.aio.AioRpcError):
        await company.catalog("ImportInspections", pb.ImportInspectionsRequest(rows=sent), company.operator)


async def test_a_blank_assignee_is_null(staffed: Staffed, company: Any) -> None:
    theirs = type(company)(company.catalog, staffed.id)
    await theirs.put("properties", P)
    await staffed.hire("S1")
    assert await theirs.put("inspections", I | {"assignee": "S1"}) == ["created"]
    assert await theirs.put("inspections", I) == ["unchanged"]
    assert await theirs.put("inspections", I | {"assignee": ""}) == ["changed"]
    assert (await theirs.list("inspections"))[0]["assignee"] is None
