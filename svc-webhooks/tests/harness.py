"""A running svc-webhooks, producers with outboxes of their own, and a client of both."""

import asyncio
import dataclasses
import datetime
import itertools
import json
import signal
import urllib.request
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.message import Message

from chassis.auth.clients import refusal_of
from chassis.auth.identity import INTEGRATION, OPERATOR, Identity, TokenSigner
from chassis.auth.rpcs import method_on
from chassis.db.database import Database
from chassis.messaging.consumer import ACK_SECONDS
from chassis.messaging.outbox import Outbox, OutboxEvent
from makeready.common.v1 import retention_pb2
from makeready.events.v1 import events_pb2
from makeready.webhooks.v1 import webhooks_pb2 as pb
from makeready_local.services import is_serving
from testkit import processes
from testkit.patience import PATIENCE_SECONDS

from .producer import outbox as producer_outbox

# A message that a lost connection took along comes again after ACK_SECONDS; it may be lost once more.
AGAIN_SECONDS = 5 * ACK_SECONDS
HERE = Path(__file__).parent
URL = "https://receiver.test/hook"
HOUR = datetime.timedelta(hours=1)
companies = itertools.count(1000)


class Process(processes.Process):
    """One service process that tests can stop, kill and start again."""

    def __init__(self, command: Sequence[str], environment: dict[str, str], target: str, log: Path) -> None:
        super().__init__(command, log, environment, warm=True)
        self.target = target
        self.more: dict[str, str] = {}

    @property
    def as_always(self) -> bool:
        """Whether the process runs with the usual settings."""
        return self.is_running and not self.more

    def start(self, **more: str) -> None:
        self.more = more
        self.launch(**more)

    def stop(self) -> None:
        if self.is_running:
            assert self.end() == 0, self.log_tail()

    async def killed(self) -> None:
        """Waits until the process has ended by SIGKILL."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while self.is_running:  # noqa: ASYNC110 - a process sets no event
                await asyncio.sleep(0.05)
        assert self.exit_status == -signal.SIGKILL, self.log_tail()

    def metrics(self) -> str:
        """The process's Prometheus metrics."""
        with urllib.request.urlopen(
            f"http://{self.environment['MAKEREADY_METRICS_LISTEN']}/metrics", timeout=60
        ) as read:
            text: bytes = read.read()
        return text.decode()

    async def serving(self) -> None:
        await asyncio.to_thread(self.wait_until, lambda: is_serving(self.target))


@dataclass
class Harness:
    """svc-webhooks, its producers and its receivers."""

    webhooks: Process
    producers: dict[str, Process]
    keys: Path
    issuers: dict[str, TokenSigner] = field(default_factory=dict)

    def token(self, who: Identity) -> str:
        issuer = "operator" if who.kind == OPERATOR else "gateway"
        if issuer not in self.issuers:
            self.issuers[issuer] = TokenSigner(self.keys / f"{issuer}.jwk")
        return self.issuers[issuer].token("svc-webhooks", who)


def caller(company_id: int, api_key_id: int = 1, administrator_id: int | None = 3) -> Identity:
    return Identity(INTEGRATION, "gateway", company_id, api_key_id, "write", administrator_id)


def operator(company_id: int = 0) -> Identity:
    return Identity(OPERATOR, "operator", company_id)


class Client:
    """Calls svc-webhooks for one company; a refusal is raised as Refusal."""

    def __init__(self, service: Harness, channel: grpc.aio.Channel, company_id: int) -> None:
        self.service = service
        self.company_id = company_id
        self._channel = channel

    def of(self, company_id: int) -> "Client":
        return Client(self.service, self._channel, company_id)

    async def call(self, request: Message, who: Identity | None = None) -> Any:
        metadata = [("authorization", self.service.token(who or caller(self.company_id)))]
        try:
            return await method_on(self._channel, type(request))(
                request, metadata=metadata, timeout=60, wait_for_ready=True
            )
        except grpc.aio.AioRpcError as error:
            refused = refusal_of(error)
            if refused is None:
                raise
            raise refused from None

    async def create(
        self, body: Any = None, key: str | None = None, *, raw: bytes | None = None, who: Identity | None = None
    ) -> tuple[int, dict[str, Any], bool]:
        """Status, body, replayed."""
        fields = {"destination_url": URL, "events": ["ticket.created"]} if body is None else body
        request = pb.CreateSubscriptionRequest(
            idempotency_key=key or str(uuid.uuid4()), body=json.dumps(fields).encode() if raw is None else raw
        )
        reply = (await self.call(request, who)).reply
        return reply.status, json.loads(reply.body), reply.replayed

    async def page(self, after_id: int = 0, limit: int = 50, who: Identity | None = None) -> Any:
        request = pb.ListSubscriptionsRequest(after_id=after_id, limit=limit)
        return (await self.call(request, who)).page

    async def subscriptions(self) -> list[dict[str, Any]]:
        subscriptions: list[dict[str, Any]] = json.loads((await self.page()).data)
        return subscriptions

    async def delete(self, sub_id: int) -> None:
        await self.call(pb.DeleteSubscriptionRequest(sub_id=sub_id))

    async def sweep(self, now: datetime.datetime | None = None) -> dict[str, int]:
        request = pb.SweepDeliveriesRequest()
        if now is not None:
            request.now.FromDatetime(now)
        answer = await self.call(request, operator())
        counts = {name: getattr(answer, name) for name in ("attempted", "succeeded", "failed", "parked")}
        return counts | ({"waiting_for_host": answer.waiting_for_host} if answer.waiting_for_host else {})

    async def forget(self, now: datetime.datetime) -> int:
        """The number of days of events that `sweep retention --now` drops."""
        request = retention_pb2.SweepRetentionRequest(yes_for_all_companies=True)
        request.now.FromDatetime(now)
        days: int = (await self.call(request, operator())).days
        return days

    async def acknowledged(self) -> None:
        """Waits until NATS has no undelivered or unacknowledged message."""
        async with asyncio.timeout(AGAIN_SECONDS):
            request = events_pb2.GetLagRequest()
            while (await self.call(request, operator())).pending:  # noqa: ASYNC110 - polls a process
                await asyncio.sleep(0.2)

    async def deliveries(self, sub_id: int, limit: int = 0) -> list[pb.Delivery]:
        request = pb.ListDeliveriesRequest(sub_id=sub_id, limit=limit)
        return list((await self.call(request, operator())).deliveries)


class Producer:
    """Commits events to a producer's outbox, as its service would."""

    def __init__(self, name: str, database: Database) -> None:
        self.database = database
        self.outbox = Outbox(name, producer_outbox)

    async def ticket_created(self, company_id: int, ticket_id: int = 1, **more: Any) -> str:
        """Returns the event id. made_at: when the producer made the id; now by default."""
        made_at = more.pop("made_at", None)
        data = more.pop("data", json.dumps({"entity_id": ticket_id, "title": "Fuite d'eau é\u2028"}).encode())
        event = self.outbox.public(
            more.pop("event", "ticket.created"),
            company_id=company_id,
            entity_id=ticket_id,
            occurred_at=more.pop("occurred_at", datetime.datetime.now(datetime.UTC)),
            data=data,
            request_id=more.pop("request_id", "req-1"),
            **more,
        )
        if made_at is not None:
            event = _minted(event, made_at)
        async with self.database.transaction() as connection:
            await self.outbox.add(connection, event)
        return str(event.event_id)

    async def company(self, company_id: int, version: int, *, active: bool) -> None:
        reference = events_pb2.CompanyReference(
            id=company_id, version=version, name="Acme", active=active, timezone="UTC"
        )
        references = events_pb2.References(companies=[reference])
        row = self.outbox.references(references, company_id=company_id, occurred_at=datetime.datetime.now(datetime.UTC))
        async with self.database.transaction() as connection:
            await self.outbox.add(connection, row)


def _minted(event: OutboxEvent, made_at: datetime.datetime) -> OutboxEvent:
    """The same event with an id of another time."""
    bits = event.event_id.int & ((1 << 80) - 1)
    event_id = uuid.UUID(int=int(made_at.timestamp() * 1000) << 80 | bits)
    message = events_pb2.Event.FromString(event.message)
    message.event_id = str(event_id)
    return dataclasses.replace(event, event_id=event_id, message=message.SerializeToString())


async def until(condition: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - nothing here sets an event
            await asyncio.sleep(0.02)
