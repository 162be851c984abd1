"""Dispatchers in the test's own process, on the running service's database and with its key; helpers that add rows."""

import datetime
import json
import os
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from chassis.db.database import Connection, Database
from chassis.messaging.consumer import Consumer
from chassis.messaging.transport import Transport
from chassis.schedule.clocks import CompanyClocks
from makeready.events.v1 import events_pb2
from svc_webhooks import tables
from svc_webhooks.dispatch.attempts import Attempts
from svc_webhooks.dispatch.hosts import Hosts
from svc_webhooks.dispatch.scheduler import Scheduler
from svc_webhooks.dispatch.sender import Sender
from svc_webhooks.events.queries.events import StoredEvent, store_events
from svc_webhooks.http_client.client import HttpClient
from svc_webhooks.rules.deliveries import Ladder
from svc_webhooks.rules.subscriptions import EVENTS
from svc_webhooks.vault.keyring import Vault

VAULT = Vault({"k1": b"v" * 32})  # the running service's key, see conftest
LADDER: Ladder = tuple(datetime.timedelta(hours=hours) for hours in (1, 2, 4, 8, 24))
SUBSCRIBE = """
INSERT INTO subscription (id, company_id, destination_url, events, secret_prefix, secret_key_id, secret_sealed,
  created_at, source) VALUES ($1, $2, $3, '{ticket.created}', 'whsec_test', $4, $5, now(), 'api')
"""


def now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def claims_stay_good(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attempts may begin a minute after their claim: a busy machine gives none up, to wait for the claim."""
    monkeypatch.setattr("svc_webhooks.dispatch.sender.BEGIN_SECONDS_MAX", 60.0)
    monkeypatch.setattr("svc_webhooks.dispatch.attempts.CLAIM_SECONDS", 120)


@asynccontextmanager
async def dispatcher(
    database: Database,
    ca_file: Path,
    hosts: Mapping[str, tuple[str, int]],
    *,
    deadline_seconds: float = 10.0,
    ladder: Ladder = LADDER,
    period_seconds: int = 3600,
    clock: Callable[[], datetime.datetime] = now,
) -> AsyncIterator[Scheduler]:
    """Consumes no events: the tests insert the rows."""

    async def nothing(_connection: Connection, _events: Sequence[events_pb2.Event]) -> None:
        """Never called: no event arrives."""

    consumer = Consumer("tests", database, tables.inbox, Transport("nats://127.0.0.1:1", "tests"), nothing, {}, {})
    http = HttpClient(
        overrides=hosts, ca_file=ca_file, user_agent="Makeready-Webhooks/1", deadline_seconds=deadline_seconds
    )
    clocks, clocks_of_slots = (CompanyClocks(database, tables.company, real) for real in (now, clock))
    attempts = Attempts(database, Sender(http, Hosts(database), VAULT, clocks), ladder)
    scheduler = Scheduler(database, consumer, attempts, clocks_of_slots, period_seconds=period_seconds)
    try:
        yield scheduler
    finally:
        await scheduler.stop()
        await http.close()


async def subscribed(database: Database, company_id: int, urls: Sequence[str], secret: str = "whsec_test") -> list[int]:
    """Inserts a subscription for each URL directly into the table."""
    async with database.transaction() as connection:
        sub_ids = []
        for url in urls:
            sub_id: int = await connection.raw.fetchval("SELECT nextval('subscription_id')")
            sealed = VAULT.seal(sub_id, secret)
            await connection.raw.execute(SUBSCRIBE, sub_id, company_id, url, sealed.key_id, sealed.sealed)
            sub_ids.append(sub_id)
    return sub_ids


def event_id(number: int = 0) -> uuid.UUID:
    """A UUIDv7 of this instant."""
    milliseconds = int(now().timestamp() * 1000)
    low = int.from_bytes(os.urandom(8)) & ((1 << 62) - 1)
    return uuid.UUID(int=milliseconds << 80 | 0x7 << 76 | (number & 0xFFF) << 64 | 0b10 << 62 | low)


async def happened(
    database: Database,
    company_id: int,
    events: int = 1,
    *,
    due_at: datetime.datetime | None = None,
    occurred_at: datetime.datetime | None = None,
) -> list[uuid.UUID]:
    """Stores events, each with a delivery for every subscription of the company, due for a minute by default; in a
    sandbox when they occurred, by default now."""
    stored = [
        StoredEvent(
            event_id=event_id(number),
            company_id=company_id,
            event=EVENTS[3],
            entity_id=number,
            occurred_at=occurred_at or now(),
            request_id="",
            traceparent=None,
            body=json.dumps({"number": number}).encode(),
            due_at=due_at or (now() if occurred_at else now() - datetime.timedelta(minutes=1)),
        )
        for number in range(events)
    ]
    async with database.transaction() as connection:
        await store_events(connection, stored)
    return [event.event_id for event in stored]
