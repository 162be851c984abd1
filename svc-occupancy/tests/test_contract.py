"""Proto, rules, SQL and identity say the same."""

from __future__ import annotations

from typing import Any

import asyncpg
import grpc
import pytest

from chassis.database import Database
from chassis.identity import KINDS, Identity, Issuer
from makeready.common.v1 import options_pb2, retention_pb2
from makeready.events.v1 import events_pb2
from makeready.occupancy.v1 import occupancy_pb2, residencies_pb2
from makeready_local.running import RunningService

SERVICES = [
    occupancy_pb2.DESCRIPTOR.services_by_name["TurnsService"],
    residencies_pb2.DESCRIPTOR.services_by_name["ResidenciesService"],
    events_pb2.DESCRIPTOR.services_by_name["OutboxService"],
    events_pb2.DESCRIPTOR.services_by_name["ConsumerService"],
    retention_pb2.DESCRIPTOR.services_by_name["RetentionService"],
]
ISSUERS = {"caller": "gateway", "staff": "gateway", "operator": "operator", "service": "svc-webhooks"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rpc", [rpc for service in SERVICES for rpc in service.methods], ids=lambda rpc: rpc.name)
async def test_each_rpc_opens_to_the_kinds_that_its_proto_names(occupancy: RunningService, rpc: Any, kind: str) -> None:
    allowed = KINDS[kind] in rpc.GetOptions().Extensions[options_pb2.allowed]
    issuer = Issuer(occupancy.keys.folder / f"{ISSUERS[kind]}.jwk")
    found = await code_of(occupancy, rpc, issuer.token("svc-occupancy", Identity(kind, ISSUERS[kind], 7)))
    assert (found is not grpc.StatusCode.PERMISSION_DENIED) == allowed


@pytest.mark.parametrize("fault", ["none", "garbage", "other_audience", "kind_of_another"])
async def test_a_token_that_proves_nothing_opens_nothing(occupancy: RunningService, fault: str) -> None:
    who, folder = Identity("caller", "gateway", 7, 1, "write", 3), occupancy.keys.folder
    token = {
        "none": "",
        "garbage": "ey.J.x",
        "other_audience": Issuer(folder / "gateway.jwk").token("svc-webhooks", who),
        "kind_of_another": Issuer(folder / "svc-webhooks.jwk").token("svc-occupancy", who),
    }[fault]
    for service in SERVICES:
        for rpc in service.methods:
            assert await code_of(occupancy, rpc, token) is grpc.StatusCode.PERMISSION_DENIED


async def code_of(occupancy: RunningService, rpc: Any, token: str) -> grpc.StatusCode:
    async with occupancy.channel() as channel:
        call: Any = channel.unary_unary(f"/{rpc.containing_service.full_name}/{rpc.name}")
        try:
            await call(b"", metadata=[("authorization", token)], timeout=20, wait_for_ready=True)
        except grpc.aio.AioRpcError as error:
            return error.code()
        return grpc.StatusCode.OK


GOOD = {
    "company_id": "1",
    "status": "'active'",
    "property_id": "1",
    "unit_id": "1",
    "created_at": "now()",
    "updated_at": "now()",
    "source": "'import'",
}


@pytest.mark.parametrize(
    ("columns", "constraint"),
    [
        ({"status": "'Active'"}, "transition_status"),
        ({"source": "'resident_portal'"}, "transition_source"),
        ({"projected_ready_on": "'2026-01-01'"}, "transition_ready_after_move_out"),
        ({"occupancy_fed_at": "now()"}, "transition_fed_by_somebody"),
        ({"occupancy_source": "''"}, "transition_occupancy_source"),
        ({"occupancy_source": "repeat('x', 41)"}, "transition_occupancy_source"),
        ({"created_at": "now() + interval '1 second'"}, "transition_updated_after_created"),
        ({"external_id": "'T1'", "status": "'completed'"}, "transition_external_id"),
        ({}, "transition_active_in_unit"),
    ],
)
async def test_the_database_refuses_what_cannot_be(
    database: Database, columns: dict[str, str], constraint: str
) -> None:
    async with database.connection() as connection:
        await connection.raw.execute(
            "INSERT INTO property (id, company_id) VALUES (1, 1) ON CONFLICT DO NOTHING;"
            "INSERT INTO unit (id, company_id, property_id) VALUES (1, 1, 1) ON CONFLICT DO NOTHING;"
            f"INSERT INTO transition ({', '.join(GOOD)}, external_id) VALUES ({', '.join(GOOD.values())}, 'T1')"
            " ON CONFLICT DO NOTHING"
        )
        row = GOOD | columns
        with pytest.raises(asyncpg.IntegrityConstraintViolationError) as refused:
            await connection.raw.execute(
                f"INSERT INTO transition ({', '.join(row)}) VALUES ({', '.join(row.values())})"
            )
        assert refused.value.constraint_name == constraint


async def test_a_unit_has_one_active_turn_and_any_number_that_are_over(database: Database) -> None:
    async with database.transaction() as connection:
        await connection.raw.execute("INSERT INTO property (id, company_id) VALUES (2, 1)")
        await connection.raw.execute("INSERT INTO unit (id, company_id, property_id) VALUES (2, 1, 2)")
        for status in ("active", "completed", "completed", "cancelled", "cancelled"):
            row = GOOD | {"unit_id": "2", "property_id": "2", "status": f"'{status}'"}
            await connection.raw.execute(
                f"INSERT INTO transition ({', '.join(row)}) VALUES ({', '.join(row.values())})"
            )
