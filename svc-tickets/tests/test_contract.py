"""Proto, rules, SQL and identity agree."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from sqlalchemy import text

from chassis.auth.identity import KINDS, Identity
from chassis.auth.rpcs import path_of
from chassis.db.database import Database
from makeready.common.v1 import audit_pb2, company_clock_pb2, maintenance_pb2, options_pb2, retention_pb2, sweeps_pb2
from makeready.events.v1 import events_pb2
from makeready.tickets.v1 import pm_tasks_pb2, ticket_commands_pb2, ticket_views_pb2
from makeready.tickets.v1 import tickets_pb2 as pb
from svc_tickets import tables
from svc_tickets.tickets.rules import fields
from testkit.revise import differences
from testkit.services import issuer_of

SERVICES = [
    pb.DESCRIPTOR.services_by_name["TicketsService"],
    ticket_commands_pb2.DESCRIPTOR.services_by_name["TicketCommandsService"],
    pm_tasks_pb2.DESCRIPTOR.services_by_name["PmTasksService"],
    ticket_views_pb2.DESCRIPTOR.services_by_name["TicketViewsService"],
    sweeps_pb2.DESCRIPTOR.services_by_name["ScheduledSweepsService"],
    company_clock_pb2.DESCRIPTOR.services_by_name["CompanyClockService"],
    audit_pb2.DESCRIPTOR.services_by_name["AuditService"],
    events_pb2.DESCRIPTOR.services_by_name["OutboxService"],
    events_pb2.DESCRIPTOR.services_by_name["ConsumerService"],
    retention_pb2.DESCRIPTOR.services_by_name["RetentionService"],
]


@pytest.mark.parametrize(
    ("enum", "words"),
    [
        (pb.TicketStatus.DESCRIPTOR, fields.STATUSES),
        (maintenance_pb2.TicketCategory.DESCRIPTOR, fields.CATEGORIES),
        (maintenance_pb2.TicketPriority.DESCRIPTOR, fields.PRIORITIES),
        (ticket_commands_pb2.Opener.DESCRIPTOR, fields.OPENERS),
        (ticket_commands_pb2.Author.DESCRIPTOR, fields.AUTHORS),
    ],
    ids=lambda parameter: getattr(parameter, "name", ""),
)
def test_the_proto_spells_the_words_of_the_rules_in_their_order(enum: Any, words: tuple[str, ...]) -> None:
    assert tuple(value.GetOptions().Extensions[options_pb2.label] for value in enum.values[1:]) == words


def test_every_enum_of_tickets_is_held_to_the_rules() -> None:
    files = (pb, ticket_commands_pb2, ticket_views_pb2, pm_tasks_pb2, maintenance_pb2)
    names = {name for file in files for name in file.DESCRIPTOR.enum_types_by_name}
    of_lists = {"TicketOrder", "TimelineKind", "PmTaskOrder"}
    assert names == {"TicketStatus", "TicketCategory", "TicketPriority", "Opener", "Author"} | of_lists


async def test_a_migrated_database_is_what_the_tables_say(service: Any) -> None:
    assert await differences(service.database_url, tables.metadata) == []


@pytest.mark.parametrize("state", ["completed_at", "cancelled_at"])
@pytest.mark.usefixtures("places")
async def test_the_database_refuses_a_state_without_its_instant(database: Database, state: str) -> None:
    status = {"completed_at": "Completed", "cancelled_at": "Cancelled"}[state]
    import asyncpg

    columns = "id, company_id, version, title, category, priority, status, property_id, permission_to_enter, "
    columns += "created_at, updated_at, source"
    values = f"-1, 7, 1, 'x', 'HVAC', 'Low', '{status}', 10, false, now(), now(), 'api'"
    async with database.connection() as connection:
        with pytest.raises(asyncpg.CheckViolationError, match=f"ticket_{state}"):
            await connection.raw.execute(str(text(f"INSERT INTO ticket ({columns}) VALUES ({values})")))


@pytest.fixture(scope="module")
async def channel(service: Any, client: Any) -> AsyncIterator[grpc.aio.Channel]:
    """client: the service is ready once it has one."""
    async with service.channel() as channel:
        yield channel


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rpc", [rpc for contract in SERVICES for rpc in contract.methods], ids=lambda rpc: rpc.name)
async def test_each_rpc_opens_to_the_kinds_that_its_proto_names(
    service: Any, channel: grpc.aio.Channel, rpc: Any, kind: str
) -> None:
    from chassis.auth.identity import TokenSigner

    allowed = KINDS[kind] in rpc.GetOptions().Extensions[options_pb2.allowed]
    issuer = issuer_of(kind, rpc)
    token = TokenSigner(service.keys.folder / f"{issuer}.jwk").token(
        "svc-tickets", Identity(kind, issuer, 7, scope="write")
    )
    code = await code_of(channel, rpc, token)
    assert (code is not grpc.StatusCode.PERMISSION_DENIED) == allowed


@pytest.mark.parametrize("fault", ["none", "garbage", "other_audience", "kind_of_another"])
async def test_a_token_that_proves_nothing_opens_nothing(service: Any, channel: grpc.aio.Channel, fault: str) -> None:
    from chassis.auth.identity import TokenSigner

    who = Identity("caller", "gateway", 7, 1, "write", 3)
    token = {
        "none": "",
        "garbage": "ey.J.x",
        "other_audience": TokenSigner(service.keys.folder / "gateway.jwk").token("svc-webhooks", who),
        "kind_of_another": TokenSigner(service.keys.folder / "svc-webhooks.jwk").token("svc-tickets", who),
    }[fault]
    for contract in SERVICES:
        for rpc in contract.methods:
            assert await code_of(channel, rpc, token) is grpc.StatusCode.PERMISSION_DENIED


async def code_of(channel: grpc.aio.Channel, rpc: Any, token: str) -> grpc.StatusCode:
    call: Any = channel.unary_unary(path_of(rpc))
    try:
        await call(b"", metadata=[("authorization", token)], timeout=20, wait_for_ready=True)
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK
