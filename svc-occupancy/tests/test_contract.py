"""Proto, rules, SQL and identity agree."""

from __future__ import annotations

import json
import typing
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import grpc
import pytest
from sqlalchemy import CheckConstraint

from chassis.auth.identity import KINDS, Identity, TokenSigner
from chassis.auth.rpcs import path_of
from chassis.db.database import Database
from chassis.records.bodies import Text
from makeready.common.v1 import audit_pb2, company_clock_pb2, options_pb2, retention_pb2, sweeps_pb2
from makeready.events.v1 import events_pb2
from makeready.occupancy.v1 import residencies_pb2, turn_board_pb2, turn_tasks_pb2, turn_templates_pb2, turns_pb2
from svc_occupancy import tables as t
from svc_occupancy.residencies import rules as residency_rules
from svc_occupancy.residencies.inputs import PartyCreate
from svc_occupancy.turn_tasks import rules as task_rules
from svc_occupancy.turns import rules as turn_rules
from svc_occupancy.units import rules as unit_rules
from testkit.services import RunningService, issuer_of

SERVICES = [
    turns_pb2.DESCRIPTOR.services_by_name["TurnsService"],
    residencies_pb2.DESCRIPTOR.services_by_name["ResidenciesService"],
    turn_board_pb2.DESCRIPTOR.services_by_name["TurnBoardService"],
    turn_tasks_pb2.DESCRIPTOR.services_by_name["TurnTasksService"],
    turn_templates_pb2.DESCRIPTOR.services_by_name["TurnTemplatesService"],
    audit_pb2.DESCRIPTOR.services_by_name["AuditService"],
    sweeps_pb2.DESCRIPTOR.services_by_name["ScheduledSweepsService"],
    company_clock_pb2.DESCRIPTOR.services_by_name["CompanyClockService"],
    events_pb2.DESCRIPTOR.services_by_name["OutboxService"],
    events_pb2.DESCRIPTOR.services_by_name["ConsumerService"],
    retention_pb2.DESCRIPTOR.services_by_name["RetentionService"],
]


@pytest.fixture(scope="module")
async def channel(occupancy: RunningService) -> AsyncIterator[grpc.aio.Channel]:
    async with occupancy.channel() as channel:
        yield channel


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rpc", [rpc for service in SERVICES for rpc in service.methods], ids=lambda rpc: rpc.name)
async def test_each_rpc_opens_to_the_kinds_that_its_proto_names(
    occupancy: RunningService, channel: grpc.aio.Channel, rpc: Any, kind: str
) -> None:
    allowed = KINDS[kind] in rpc.GetOptions().Extensions[options_pb2.allowed]
    issuer = issuer_of(kind, rpc)
    token = TokenSigner(occupancy.keys.folder / f"{issuer}.jwk").token(
        "svc-occupancy", Identity(kind, issuer, 7, scope="write")
    )
    code = await code_of(channel, rpc, token)
    assert (code is not grpc.StatusCode.PERMISSION_DENIED) == allowed


@pytest.mark.parametrize("fault", ["none", "garbage", "other_audience", "kind_of_another"])
async def test_a_token_that_proves_nothing_opens_nothing(
    occupancy: RunningService, channel: grpc.aio.Channel, fault: str
) -> None:
    who, folder = Identity("caller", "gateway", 7, 1, "write", 3), occupancy.keys.folder
    token = {
        "none": "",
        "garbage": "ey.J.x",
        "other_audience": TokenSigner(folder / "gateway.jwk").token("svc-webhooks", who),
        "kind_of_another": TokenSigner(folder / "svc-webhooks.jwk").token("svc-occupancy", who),
    }[fault]
    for service in SERVICES:
        for rpc in service.methods:
            assert await code_of(channel, rpc, token) is grpc.StatusCode.PERMISSION_DENIED


async def code_of(channel: grpc.aio.Channel, rpc: Any, token: str) -> grpc.StatusCode:
    call: Any = channel.unary_unary(path_of(rpc))
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
        ({"notice_external_id": "repeat('x', 121)"}, "transition_notice_external_id"),
        ({"ntv_reason_code": "repeat('x', 20001)"}, "transition_ntv_reason_code"),
        ({"departure_destination_code": "repeat('x', 20001)"}, "transition_departure_destination_code"),
        ({"notes": "repeat('x', 20001)"}, "transition_notes"),
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


async def test_what_feeds_send_may_bear_one_external_id_many_times(database: Database) -> None:
    async with database.transaction() as connection:
        await connection.raw.execute("INSERT INTO property (id, company_id) VALUES (3, 1)")
        await connection.raw.execute("INSERT INTO unit (id, company_id, property_id) VALUES (3, 1, 3)")
        for source in ("api", "api", "import", "staff"):
            row = GOOD | {"unit_id": "3", "property_id": "3", "status": "'completed'", "source": f"'{source}'"}
            await connection.raw.execute(
                f"INSERT INTO transition ({', '.join(row)}, external_id) VALUES ({', '.join(row.values())}, 'R1')"
            )


@pytest.fixture
async def transitions(database: Database) -> None:
    """Two transitions of one unit."""
    async with database.connection() as connection:
        await connection.raw.execute(
            "INSERT INTO property (id, company_id) VALUES (4, 1) ON CONFLICT DO NOTHING;"
            "INSERT INTO unit (id, company_id, property_id) VALUES (4, 1, 4) ON CONFLICT DO NOTHING;"
            "INSERT INTO transition (company_id, id, status, property_id, unit_id, created_at, updated_at, source)"
            " SELECT 1, 9000 + n, 'completed', 4, 4, now(), now(), 'api' FROM generate_series(0, 1) n"
            " ON CONFLICT DO NOTHING"
        )


LEASE = {"company_id": "1", "id": "10", "transition_id": "9000", "start_date": "'2026-01-01'"}
PARTY = {"company_id": "1", "id": "20", "transition_id": "9000", "position": "1"}


@pytest.mark.parametrize(
    ("table", "columns", "constraint"),
    [
        ("lease", {"end_date": "'2025-12-31'"}, "lease_end_date"),
        ("lease", {"id": "11"}, "lease_of_transition"),
        ("lease", {"transition_id": "9999"}, "lease_company_id_transition_id_fkey"),
        ("lease", {"company_id": "2"}, "lease_company_id_transition_id_fkey"),
        ("party", {"role": "'tenant'"}, "party_role"),
        ("party", {"position": "0"}, "party_order"),
        ("party", {"position": "-1"}, "party_position"),
        ("party", {"position": "20"}, "party_position"),
        ("party", {"transition_id": "9001"}, "party_company_id_transition_id_fkey"),
        ("party", {"company_id": "2"}, "party_company_id_transition_id_fkey"),
        ("party", {"first_name": "repeat('x', 81)"}, "party_first_name"),
        ("party", {"last_name": "repeat('x', 81)"}, "party_last_name"),
        ("party", {"email": "repeat('x', 151)"}, "party_email"),
        ("party", {"phone": "repeat('x', 21)"}, "party_phone"),
        ("party", {"external_id": "repeat('x', 121)"}, "party_external_id"),
    ],
)
@pytest.mark.usefixtures("transitions")
async def test_the_database_refuses_leases_and_parties_that_cannot_be(
    database: Database, table: str, columns: dict[str, str], constraint: str
) -> None:
    """One transition has a lease with a party, the other has neither."""
    async with database.connection() as connection:
        await connection.raw.execute(
            f"INSERT INTO lease ({', '.join(LEASE)}) VALUES ({', '.join(LEASE.values())}) ON CONFLICT DO NOTHING;"
            "INSERT INTO party (company_id, id, transition_id, position) VALUES (1, 19, 9000, 0) ON CONFLICT DO NOTHING"
        )
        good = {"lease": LEASE | {"id": "12", "transition_id": "9001"}, "party": PARTY}[table]
        row = (LEASE if constraint == "lease_of_transition" else good) | columns
        with pytest.raises(asyncpg.IntegrityConstraintViolationError) as refused:
            await connection.raw.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join(row.values())})")
        assert refused.value.constraint_name == constraint


def test_the_rules_and_the_tables_know_the_same_caps() -> None:
    """PostgreSQL's log quotes a row that breaks a CHECK, so the service must refuse private values before."""
    assert {name: _cap(PartyCreate, name) for name in PartyCreate.__struct_fields__ if name != "role"} == {
        "first_name": 80,
        "last_name": 80,
        "email": 150,
        "phone": 20,
        "external_id": 120,
    }
    checks = {
        constraint.name: str(constraint.sqltext)
        for constraint in t.party.constraints
        if isinstance(constraint, CheckConstraint)
    }
    for name in PartyCreate.__struct_fields__:
        if name != "role":
            assert checks[f"party_{name}"] == f"char_length({name}) <= {_cap(PartyCreate, name)}"
    assert all(value in checks["party_role"] for value in residency_rules.PARTY_ROLES)


def _cap(kind: Any, name: str) -> int:
    hint = typing.get_type_hints(kind, include_extras=True)[name]
    (marker,) = [
        mark for arm in typing.get_args(hint) for mark in getattr(arm, "__metadata__", ()) if type(mark) is Text
    ]
    return int(marker.longest)


TASK = {
    "company_id": "1",
    "id": "30",
    "transition_id": "9000",
    "unit_id": "4",
    "task_type": "'Paint'",
    "status": "'open'",
    "created_at": "now()",
    "updated_at": "now()",
    "source": "'staff'",
}


@pytest.mark.parametrize(
    ("columns", "constraint"),
    [
        ({"status": "'Open'"}, "turn_task_status"),
        ({"source": "'api'"}, "turn_task_source"),
        ({"status": "'completed'"}, "turn_task_completed_at"),
        ({"completed_at": "now()"}, "turn_task_completed_at"),
        ({"status": "'cancelled'"}, "turn_task_cancelled_at"),
        ({"cancelled_at": "now()"}, "turn_task_cancelled_at"),
        ({"task_type": f"repeat('x', {task_rules.TASK_TYPE_POINTS_MAX + 1})"}, "turn_task_task_type"),
        ({"created_at": "now() + interval '1 second'"}, "turn_task_updated_after_created"),
        ({"transition_id": "9999"}, "turn_task_company_id_transition_id_fkey"),
        ({"company_id": "2"}, "turn_task_company_id_transition_id_fkey"),
    ],
)
@pytest.mark.usefixtures("transitions")
async def test_the_database_refuses_tasks_that_cannot_be(
    database: Database, columns: dict[str, str], constraint: str
) -> None:
    row = TASK | columns
    async with database.connection() as connection:
        with pytest.raises(asyncpg.IntegrityConstraintViolationError) as refused:
            await connection.raw.execute(f"INSERT INTO turn_task ({', '.join(row)}) VALUES ({', '.join(row.values())})")
        assert refused.value.constraint_name == constraint


def test_the_rules_and_the_tables_know_the_same_states_of_tasks() -> None:
    checks = {
        constraint.name: str(constraint.sqltext)
        for constraint in t.turn_task.constraints
        if isinstance(constraint, CheckConstraint)
    }
    assert checks["turn_task_status"] == f"status IN {task_rules.TASK_STATUSES}"


def test_every_enum_of_the_contract_has_the_words_of_the_rules_in_their_order() -> None:
    """Both sides must map a number to the same word, because a filter by status is sent as a number."""
    enums = {
        name: tuple(value.GetOptions().Extensions[options_pb2.label] for value in enum.values[1:])
        for contract in (residencies_pb2, turn_board_pb2, turn_tasks_pb2, turns_pb2)
        for name, enum in contract.DESCRIPTOR.enum_types_by_name.items()
    }
    assert enums == {"TurnStatus": turn_rules.TURN_STATUSES, "UnitStatusCause": unit_rules.STATUS_CAUSES}


def test_svc_catalog_serves_the_statuses_of_units_that_the_rules_know() -> None:
    """Contexts do not import each other; they share the schema of the public record."""
    proto = Path(turns_pb2.__file__).parents[4]
    kept = json.loads((proto / "makeready/catalog/v1/records.json").read_text())
    assert set(kept["$defs"]["UnitStatus"]["enum"]) == set(unit_rules.UNIT_STATUSES)
