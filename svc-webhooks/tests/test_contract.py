"""Proto, rules, SQL and identity agree."""

from typing import Any

import asyncpg
import grpc
import pytest
from google.protobuf.message_factory import GetMessageClass

from chassis.auth.identity import KINDS, Identity, TokenSigner
from chassis.auth.rpcs import method_on
from chassis.db.database import Database
from chassis.messaging.outbox import EVENT_KEYS, uuid7
from makeready.common.v1 import options_pb2, retention_pb2
from makeready.events.v1 import events_pb2
from makeready.webhooks.v1 import webhooks_pb2 as pb
from svc_webhooks import tables
from svc_webhooks.administration.rules import EVENT_OUTCOMES
from svc_webhooks.administration.service.deliveries import STEP_NAMES
from svc_webhooks.administration.signatures import VERDICTS
from svc_webhooks.rules import deliveries as rules
from svc_webhooks.rules.events import ENTITY_TYPES, STORED_EVENTS
from svc_webhooks.rules.subscriptions import EVENTS
from testkit.revise import differences
from testkit.services import issuer_of

from .harness import Harness

SERVICES = [
    pb.DESCRIPTOR.services_by_name["SubscriptionsService"],
    pb.DESCRIPTOR.services_by_name["DeliveriesService"],
    pb.DESCRIPTOR.services_by_name["AdministrationService"],
    events_pb2.DESCRIPTOR.services_by_name["ConsumerService"],
    retention_pb2.DESCRIPTOR.services_by_name["RetentionService"],
]


async def test_a_migrated_database_is_what_the_tables_say(service: Harness) -> None:
    url = service.webhooks.environment["MAKEREADY_DATABASE_OWNER_URL"]
    assert await differences(url, tables.metadata) == []


def test_the_proto_lists_the_delivery_states_of_the_rules_in_their_order() -> None:
    labels = [value.GetOptions().Extensions[options_pb2.label] for value in pb.DeliveryState.DESCRIPTOR.values[1:]]
    assert tuple(labels) == rules.DELIVERY_STATES


def test_the_proto_lists_the_causes_of_an_attempt_of_the_rules_in_their_order() -> None:
    labels = [value.GetOptions().Extensions[options_pb2.label] for value in pb.AttemptCause.DESCRIPTOR.values[1:]]
    assert tuple(labels) == rules.ATTEMPT_CAUSES


def test_the_proto_lists_outcomes_verdicts_and_steps_of_the_rules_in_their_order() -> None:
    for enum, expected in (
        (pb.EventOutcome, EVENT_OUTCOMES),
        (pb.SignatureVerdict, VERDICTS),
        (pb.StatsStep, tuple(STEP_NAMES.values())),
    ):
        labels = [value.GetOptions().Extensions[options_pb2.label] for value in enum.DESCRIPTOR.values[1:]]
        assert tuple(labels) == expected


def test_every_event_that_is_stored_has_a_kind_of_record() -> None:
    assert set(ENTITY_TYPES) == set(EVENTS) | {"webhook.test"} == set(STORED_EVENTS)


def test_all_ten_events_may_be_subscribed_to() -> None:
    assert len(set(EVENTS)) == 10
    assert list(EVENTS) == sorted(EVENTS)
    assert set(EVENTS) == EVENT_KEYS


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rpc", [rpc for service in SERVICES for rpc in service.methods], ids=lambda rpc: rpc.name)
async def test_each_rpc_opens_to_the_kinds_that_its_proto_names(
    service: Harness, channel: grpc.aio.Channel, database: Database, rpc: Any, kind: str
) -> None:
    issuer = issuer_of(kind, rpc)
    token = TokenSigner(service.keys / f"{issuer}.jwk").token("svc-webhooks", Identity(kind, issuer, 7, scope="write"))
    request = GetMessageClass(rpc.input_type)
    code = grpc.StatusCode.OK
    try:
        await method_on(channel, request)(request(), metadata=[("authorization", token)], timeout=30)
    except grpc.aio.AioRpcError as error:
        code = error.code()
    if KINDS[kind] in rpc.GetOptions().Extensions[options_pb2.allowed]:
        assert code in (grpc.StatusCode.OK, grpc.StatusCode.FAILED_PRECONDITION)  # served, or refused by a rule
    else:
        assert code == grpc.StatusCode.PERMISSION_DENIED


@pytest.mark.parametrize(
    ("constraint", "statement"),
    [
        ("subscription_events", "UPDATE subscription SET events = '{}'"),
        ("subscription_events", "UPDATE subscription SET events = '{ticket.deleted}'"),
        ("subscription_health", "UPDATE subscription SET health = 'sick', failures_in_a_row = 1"),
        ("subscription_paused_at", "UPDATE subscription SET paused_at = now()"),
        ("subscription_failures_in_a_row", "UPDATE subscription SET failures_in_a_row = 1"),
        ("delivery_state", "UPDATE delivery SET state = 'lost', due_at = NULL, settled_at = now()"),
        ("delivery_due_at", "UPDATE delivery SET due_at = NULL"),
        ("delivery_settled_at", "UPDATE delivery SET settled_at = now()"),
        ("delivery_settled_at", "UPDATE delivery SET state = 'parked', due_at = NULL"),
        (
            "delivery_leased_until",
            "UPDATE delivery SET state = 'parked', due_at = NULL, settled_at = now(), leased_until = now()",
        ),
        ("delivery_rung", "UPDATE delivery SET rung = 1"),
    ],
)
async def test_the_database_refuses_states_that_contradict_themselves(
    database: Database, constraint: str, statement: str
) -> None:
    async with database.connection() as connection:
        await connection.raw.execute(
            "INSERT INTO subscription (id, company_id, destination_url, events, secret_prefix, secret_key_id,"
            " secret_sealed, created_at, source) VALUES (-1, 7, 'u', '{pm.stale}', 'p', 'k', '', now(), 'api')"
        )
        await connection.raw.execute(
            "INSERT INTO delivery (event_id, subscription_id, due_at) VALUES ($1, -1, now())", uuid7()
        )
        with pytest.raises(asyncpg.CheckViolationError, match=f'"{constraint}"'):
            await connection.raw.execute(statement)
