"""A whole Makeready whose processes can be killed or held one by one, and queries of its databases."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import asyncpg
import grpc
from google.protobuf.message import Message

from chassis.auth.identity import OPERATOR, Identity
from makeready.events.v1.events_pb2 import CatchUpRequest, Event
from makeready.identity.v1 import identity_pb2

from ..e2e.receiver import Receiver
from ..e2e.system import Company
from .processes import PATIENCE_SECONDS, Listener, Processes

NOT_YET = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
OPERATOR_IDENTITY = Identity(OPERATOR, "operator")
PRODUCERS, PUBLIC = ("svc-catalog", "svc-tickets", "svc-occupancy"), "subject LIKE '%.public.%'"
DOCUMENTED = 8  # kinds of records whose JSON is stored
HOOK, HEARD = "/chaos", ["ticket.created", "ticket.status_changed", "turn.status_changed"]


class Harness(Processes):
    """Operator calls, companies and database checks on the running processes. Use `running_harness`."""

    async def sandbox(self, name: str) -> Company:
        return await self.company(name, is_sandbox=True)

    async def company(self, name: str, *, is_sandbox: bool = False) -> Company:
        created = await self.operator("gateway", identity_pb2.CreateCompanyRequest(name=name, is_sandbox=is_sandbox))
        company_id: int = created.company.id
        email = f"admin@{company_id}.test"
        request = identity_pb2.CreateAdministratorRequest(company_id=company_id, email=email)
        await self.operator("gateway", request)
        company = Company(self.system, company_id, email, {})
        company.keys = {"write": await self.key(company), "read": await self.key(company)}
        return company

    async def key(self, company: Company) -> str:
        """A key of scope write, minted by the company's administrator."""
        request = identity_pb2.MintKeyRequest(
            company_id=company.company_id, scope=identity_pb2.SCOPE_WRITE, administrator_email=company.email
        )
        minted: str = (await self.operator("gateway", request)).key
        return minted

    async def operator(self, name: str, request: Message) -> Any:
        """A service's answer to the operator."""
        service = self.services[name]
        async with service.channel() as channel:
            return await service.call(channel, request, OPERATOR_IDENTITY)

    # Databases

    async def query(self, name: str, sql: str, *values: Any) -> list[asyncpg.Record]:
        connection = await asyncpg.connect(self.services[name].database_url, timeout=PATIENCE_SECONDS)
        try:
            rows: list[asyncpg.Record] = await connection.fetch(sql, *values)
        finally:
            await connection.close()
        return rows

    async def clear_documents(self) -> None:
        """Clears the stored JSON of all records: the next reads render them, as if nothing had been stored."""
        tables = "SELECT table_name AS name FROM information_schema.columns WHERE column_name = 'document_shape'"
        cleared = [
            table["name"]
            for name in PRODUCERS
            for table in await self.query(name, tables)
            if await self.query(name, f"UPDATE {table['name']} SET document_shape = NULL RETURNING id")
        ]
        assert len(cleared) == len(set(cleared)) == DOCUMENTED, cleared

    async def events(self, company_id: int) -> dict[str, Event]:
        """The public events of a company, by id, from the producers' outboxes."""
        events = {}
        for name in PRODUCERS:
            for row in await self.query(name, "SELECT message FROM outbox WHERE " + PUBLIC):
                event = Event.FromString(row["message"])
                if event.company_id == company_id:
                    events[event.event_id] = event
        return events

    async def unpublished(self) -> int:
        """How many events NATS has not acknowledged."""
        sql = "SELECT count(*) AS waiting FROM outbox WHERE published_at IS NULL"
        return sum([(await self.query(name, sql))[0]["waiting"] for name in PRODUCERS])

    async def all_published(self) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while await self.unpublished():
            assert time.monotonic() < deadline, "the outboxes did not empty"
            await asyncio.sleep(0.05)

    async def delivered_once(self, company: Company) -> None:
        """Sweeps, then checks that each event of the company has arrived exactly once."""
        await self.all_events_arrived()
        swept = await asyncio.to_thread(self.system.makeready, "sweep", "webhooks")
        assert swept["failed"] == 0 and isinstance(self.receiver, Receiver), swept
        arrived = Counter(delivery.json["event_id"] for delivery in self.receiver.at(HOOK))
        once = Counter(dict.fromkeys(await self.events(company.company_id), 1))
        assert not (missing := once - arrived), f"never arrived: {dict(missing)}"
        assert not (more := arrived - once), f"arrived again: {dict(more)}"

    async def _catch_up(self, name: str) -> None:
        """Retries while the service has not yet reconnected to a producer that was restarted."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                await self.operator(name, CatchUpRequest())
                return
            except grpc.aio.AioRpcError as error:
                assert error.code() in NOT_YET and time.monotonic() < deadline, error
                await asyncio.sleep(0.2)

    async def relay_rests(self, name: str) -> None:
        """Waits until every event in the service's outbox is published or claimed."""
        sql = "SELECT count(*) AS waiting FROM outbox WHERE published_at IS NULL AND claimed_until < now()"
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (await self.query(name, sql))[0]["waiting"]:
            assert time.monotonic() < deadline, f"the outbox of {name} did not empty"
            await asyncio.sleep(0.05)

    async def all_events_arrived(self) -> None:
        """Waits for the relays, catches the consumers up, then checks. No write may be under way.

        svc-webhooks must store every public event exactly once; svc-catalog's units must agree with svc-occupancy's.
        """
        event_ids = set()
        for name in PRODUCERS:
            await self.relay_rests(name)
            event_ids |= {
                row["event_id"] for row in await self.query(name, "SELECT event_id FROM outbox WHERE " + PUBLIC)
            }
        for name in ("svc-webhooks", "svc-catalog"):
            await self._catch_up(name)
        stored = [row["event_id"] for row in await self.query("svc-webhooks", "SELECT event_id FROM event")]
        assert len(stored) == len(set(stored))
        assert not event_ids - set(stored), f"never stored: {sorted(event_ids - set(stored))}"
        assert not set(stored) - event_ids, f"nobody's: {sorted(set(stored) - event_ids)}"
        columns = "unit_status, projected_ready_on"
        states = await self.query("svc-occupancy", f"SELECT unit_id, version, {columns} FROM unit_state ORDER BY 1")
        sql = f"SELECT id, occupancy_version, {columns} FROM unit WHERE occupancy_version > 0 ORDER BY 1"
        assert [tuple(row) for row in await self.query("svc-catalog", sql)] == [tuple(row) for row in states]


@contextmanager
def running_harness(
    folder: Path,
    receiver: Listener,
    *,
    dispatchers: int = 1,
    fsync: bool = False,
    webhooks: Mapping[str, str] | None = None,
) -> Iterator[Harness]:
    """A running Makeready. Its processes are stopped at the end, frozen ones too."""
    with ExitStack() as undo:
        harness = Harness(folder, receiver, dispatchers=dispatchers, fsync=fsync, webhooks=webhooks)
        harness.start_all(undo)
        yield harness
