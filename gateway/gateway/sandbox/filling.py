"""Fills new sandboxes with what they start with: other services do the work, and the gateway asks until all is done."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import functools
from collections.abc import Mapping
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import structlog
from asyncpg import Record

from chassis.auth.clients import ServiceClient
from chassis.auth.identity import Call, Identity
from chassis.auth.rpcs import response_to
from chassis.db.database import Database
from chassis.refusals import Refusal, Unavailable
from gateway.identity.companies import queries
from gateway.identity.companies.rules import COPY
from gateway.identity.staff.service import StaffService
from gateway.sandbox.clock.contexts import ContextClocks
from importing.demo import story
from importing.demo.units import Row
from importing.kinds import KINDS, Kind
from importing.rows import SourceRow
from importing.sending import DEADLINE_SECONDS, Entry, Sender
from makeready.catalog.v1 import sandbox_copies_pb2
from makeready.common.v1 import documents_pb2

FILL_SECONDS = 5
BATCH = 500

log = structlog.stdlib.get_logger(__name__)


class SandboxFilling:
    """Any number of gateways may run it at once, and each may be killed: what is done a second time changes nothing."""

    def __init__(
        self, database: Database, clients: Mapping[str, ServiceClient], staff: StaffService, gateway: Identity
    ) -> None:
        """The gateway calls the contexts by `clients`, and its own `staff` as `gateway`."""
        self._database, self._clients = database, clients
        self._staff, self._gateway = staff, gateway
        self._contexts = ContextClocks(clients)

    async def look(self, _slot: datetime.datetime) -> None:
        """Fills each sandbox that lacks something; one whose company has not arrived in a context waits."""
        for row in await queries.sandboxes_to_fill(self._database):
            fill = self._copy if row["content"] == COPY else self._import_demo
            try:
                await fill(row)
            except (Unavailable, Refusal) as error:
                log.info("sandbox_waits", company_id=row["id"], reason=str(error))
                continue
            await queries.note_filled(self._database, row["id"])
            log.info("sandbox_filled", company_id=row["id"])

    async def _copy(self, sandbox: Record) -> None:
        request = sandbox_copies_pb2.CopyPlacesRequest(from_company_id=sandbox["sandbox_of"], company_id=sandbox["id"])
        while (await self._clients["svc-catalog"].call(request, sandbox_copies_pb2.CopyPlacesResponse)).rows:
            pass

    async def _import_demo(self, sandbox: Record) -> None:
        # A company that has not arrived has no time zone: what is overdue in it would be announced later.
        await self._contexts.next_due(sandbox["id"])
        # The day stays the same however often the import begins anew.
        day = sandbox["created_at"].astimezone(ZoneInfo(sandbox["timezone"])).date()
        rows = await asyncio.to_thread(story.rows, day, sandbox["timezone"])
        for name, of_kind in rows.items():
            # A batch that was stored before is not compared again: people may have changed its records since.
            ask = functools.partial(self._ask, sandbox["id"])
            sender = Sender(ask, KINDS[name], dry_run=False, events=False, key="demo")
            for start in range(0, len(of_kind), BATCH):
                entries = [_entry(line, row) for line, row in enumerate(of_kind[start : start + BATCH], start + 1)]
                for result in await sender.send(entries):
                    if result.outcome == documents_pb2.IMPORT_OUTCOME_REJECTED:
                        log.warning(
                            "sandbox_row_rejected",
                            company_id=sandbox["id"],
                            kind=name,
                            line=result.line,
                            field=result.field,
                            reason=result.reason,
                        )

    async def _ask(self, company_id: int, kind: Kind, request: Any) -> Any:
        """See `importing.sending.Ask`; raises Unavailable and Refusal, as the job looks again soon."""
        if kind.service in self._clients:
            client = self._clients[kind.service]
            return await client.call(
                request, response_to(type(request)), company_id=company_id, deadline_seconds=DEADLINE_SECONDS
            )
        call = Call(dataclasses.replace(self._gateway, company_id=company_id), "")
        return await self._staff.ImportStaff(request, call)


def _entry(line: int, row: Row) -> Entry:
    return Entry(SourceRow(line, "", {}), msgspec.json.encode(row))
