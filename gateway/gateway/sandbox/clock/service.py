"""The RPCs about the clocks of sandboxes."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable

from asyncpg import Record

from chassis.auth.identity import INTEGRATION, Call, company_id
from chassis.db.database import Connection, Database
from chassis.records import bodies
from chassis.schedule.clocks import OFFSET_MAX
from chassis.schedule.instants import Clock, printed
from chassis.writes.audit import Audit
from chassis.writes.commands import claim_of_actor
from chassis.writes.idempotency import Claim, Ledger, claim_of
from gateway.identity.companies import queries as companies
from gateway.sandbox.clock import queries, records, rules
from gateway.sandbox.clock.contexts import ContextClocks, ServiceMissing
from gateway.sandbox.rules import no_sandbox
from makeready.common.v1.documents_pb2 import Document
from makeready.identity.v1 import sandbox_pb2 as pb

_OPERATION = "POST /sandbox/clock"


class SandboxClockService:
    """The clocks of sandboxes."""

    def __init__(
        self,
        database: Database,
        ledger: Ledger,
        audit: Audit,
        contexts: ContextClocks,
        clock: Clock,
        wake: Callable[[], None],
    ) -> None:
        """`wake` says that an advance has begun."""
        self.database, self.ledger, self.audit = database, ledger, audit
        self.contexts, self.clock, self.wake = contexts, clock, wake

    async def GetSandboxClock(self, _request: pb.GetSandboxClockRequest, call: Call) -> pb.GetSandboxClockResponse:
        company = company_id(call)
        row = await queries.clock_of(self.database, company)
        if row is None or not row["is_sandbox"]:
            raise no_sandbox()
        waiting, next_due = None, None
        if not row["is_advancing"]:
            waiting, next_due = await self._next_due(company)
        elif row["missing"] and row["missing_seconds"] >= rules.STUCK.total_seconds():
            waiting = rules.waits_for(row["missing"], row["missing_seconds"])
        record = self._clock(row, waiting, next_due)
        return pb.GetSandboxClockResponse(document=Document(json=records.encode(record), entity_id=company))

    async def AdvanceSandboxClock(
        self, request: pb.AdvanceSandboxClockRequest, call: Call
    ) -> pb.AdvanceSandboxClockResponse:
        body, canonical = bodies.decode(records.SandboxClockAdvance, request.body)
        rules.check_ways((body.advance_to, body.advance_by).count(None))
        by = None if body.advance_by is None else rules.duration(body.advance_by)
        company = company_id(call)

        async def begin(connection: Connection) -> bytes:
            row = await companies.company_for_update(connection, company)
            if row is None or not row["is_sandbox"]:
                raise no_sandbox()
            now = self.clock() + row["clock_offset"]
            length = by if body.advance_to is None else body.advance_to - now
            assert length is not None
            rules.check_advance(length, row["clock_offset"], OFFSET_MAX)
            target = now + length
            if not await queries.begin(connection, company, now, target):
                raise rules.clock_advancing()
            after = {"from": printed(now), "to": printed(target)}
            await self.audit.add(connection, call, company, "clock.advanced", "company", company, {}, after)
            begun = await queries.clock_of(connection, company)
            assert begun is not None
            return records.encode(self._clock(begun))

        reply = await self.ledger.once(self.database, self._claim(request, call, canonical), begin, status=202)
        self.wake()
        return pb.AdvanceSandboxClockResponse(reply=reply)

    def _claim(self, request: pb.AdvanceSandboxClockRequest, call: Call, canonical: bytes) -> Claim:
        if call.identity.kind == INTEGRATION:
            return claim_of(request, call.identity, _OPERATION, canonical)
        return claim_of_actor(call, request, company_id(call))

    async def _next_due(self, company: int) -> tuple[str | None, records.NextDue | None]:
        """What falls due next, or a sentence that says why it is not known."""
        try:
            dues = await self.contexts.next_due(company)
        except ServiceMissing as missing:
            return rules.not_known(missing.service), None
        if not dues:
            return None, None
        first = min(dues.values())
        return None, records.NextDue(at=printed(first.at), event=first.what_is_due)

    def _clock(
        self, row: Record, waiting: str | None = None, next_due: records.NextDue | None = None
    ) -> records.SandboxClock:
        now: datetime.datetime = self.clock() + row["clock_offset"]
        return records.SandboxClock(
            now=printed(now),
            status="advancing" if row["is_advancing"] else "ready",
            start=printed(row["start_at"]),
            target=printed(row["target_at"]),
            done=json.loads(row["done"] or "{}"),
            waiting=waiting,
            next_due=next_due,
        )
