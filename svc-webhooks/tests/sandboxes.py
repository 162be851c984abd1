"""Sandboxes, whose clocks the tests move as the gateway does; and an advance in the test's own process."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from chassis.auth.identity import SERVICE, Identity
from chassis.db.database import Database
from chassis.schedule.clocks import CompanyClocks
from chassis.schedule.instants import slot_of
from makeready.common.v1 import company_clock_pb2 as pb
from svc_webhooks.dispatch.sandboxes import Sandboxes
from svc_webhooks.events.partitions import Partitions
from svc_webhooks.schema import company

from .dispatcher import dispatcher, now
from .harness import HOUR, Client, caller
from .receivers import Authority, Receiver

GATEWAY = Identity(SERVICE, "gateway")
DAY = 24 * HOUR


async def make_sandbox(database: Database, company_id: int) -> None:
    async with database.connection() as connection:
        await connection.raw.execute(
            "INSERT INTO company (id, version, is_sandbox) VALUES ($1, 1, true)"
            " ON CONFLICT (id) DO UPDATE SET is_sandbox = true, clock_offset = '0'",
            company_id,
        )


class SandboxClient:
    """The gateway's calls of a running svc-webhooks about one sandbox, and those of an integration of it."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.caller = replace(caller(client.company_id), is_sandbox=True)

    async def ask(self, request: Any) -> Any:
        request.company_id = self.client.company_id
        return await self.client.call(request, GATEWAY)

    async def set_clock(self, offset: datetime.timedelta) -> None:
        request = pb.SetClockRequest()
        request.offset.FromTimedelta(offset)
        await self.ask(request)

    async def do_due(self) -> dict[str, int]:
        return {name: count for name, count in (await self.ask(pb.DoDueRequest())).done.items() if count}


class Advance:
    """Advances of one sandbox by a dispatcher with hourly slots."""

    def __init__(self, sandboxes: Sandboxes, clocks: CompanyClocks, company_id: int) -> None:
        self.sandboxes, self.clocks, self.company_id = sandboxes, clocks, company_id

    async def began(self, days: int = 1) -> datetime.datetime:
        """Moves the clock so many days ahead, to ten minutes after a slot. No test is near one then."""
        began = slot_of(now(), 3600) + days * DAY + datetime.timedelta(minutes=10)
        await self.to(began)
        return began

    async def to(self, instant: datetime.datetime) -> None:
        """Moves the clock there, unless it is later already, without doing what is due."""
        await self.clocks.advance(self.company_id, max(instant - now(), datetime.timedelta()))

    async def until(self, target: datetime.datetime) -> tuple[list[datetime.datetime], Counter[str]]:
        """Does what is due until the target, in the order of time. Returns the instants, and what was done."""
        instants, done = [], Counter[str]()
        while (due := await self.sandboxes.next_due(self.company_id)) is not None and due.at <= target:
            await self.to(due.at)
            instants.append(due.at)
            done.update(await self.sandboxes.do_due(self.company_id))
        await self.to(target)
        done.update(await self.sandboxes.do_due(self.company_id))
        return instants, +done


@asynccontextmanager
async def advancing(
    database: Database,
    company_id: int,
    authority: Authority,
    receivers: dict[str, Receiver],
    **options: Any,
) -> AsyncIterator[Advance]:
    hosts = {host: ("127.0.0.1", receiver.port) for host, receiver in receivers.items()}
    async with dispatcher(database, authority.file, hosts, **options) as scheduler:
        clocks = CompanyClocks(database, company)
        sandboxes = Sandboxes(scheduler, clocks)
        sandboxes.retention.append(Partitions(database, now).expire)
        yield Advance(sandboxes, clocks, company_id)
