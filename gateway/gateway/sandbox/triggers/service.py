"""The RPC of TriggersService."""

from __future__ import annotations

from collections.abc import Mapping

from chassis.auth import identity
from chassis.auth.clients import ServiceClient
from chassis.auth.identity import Call
from chassis.db.database import Connection, Database
from chassis.records import bodies
from chassis.refusals import Refusal, created_by_missing
from chassis.runtime.failpoints import failpoint
from chassis.schedule.clocks import CompanyClocks
from chassis.writes import idempotency
from gateway.identity.companies import queries as companies
from gateway.sandbox.triggers import events, rules
from gateway.sandbox.triggers.causes import CAUSES
from gateway.sandbox.triggers.records import TriggerCreate
from gateway.sandbox.triggers.steps import TRIGGER, Steps, begun, is_answer
from gateway.sandbox.triggers.trigger import Trigger
from makeready.common.v1.documents_pb2 import WriteReply
from makeready.identity.v1 import sandbox_pb2 as pb

CREATED = 201


class TriggersService:
    """Triggers of all sandboxes."""

    def __init__(self, database: Database, clients: Mapping[str, ServiceClient], clocks: CompanyClocks) -> None:
        self._database, self._clients, self._clocks = database, clients, clocks

    async def CreateTrigger(self, request: pb.CreateTriggerRequest, call: Call) -> pb.CreateTriggerResponse:
        caller = identity.caller(call)
        create, same = bodies.decode(TriggerCreate, request.body)
        named = create.named()
        rules.check_record(create.event, named)
        claim = idempotency.claim_of(request, caller, "POST /sandbox/triggers", same)
        stored = await TRIGGER.stored(self._database, claim)
        if stored is None:
            if caller.administrator_id is None:
                raise created_by_missing()
            position = await events.newest_position(self._clients["svc-webhooks"], call)

            async def begin(_connection: Connection) -> bytes:
                return begun(position)

            stored = await TRIGGER.once(self._database, claim, begin)
        if is_answer(stored.body):
            reply = WriteReply(status=CREATED, body=stored.body, replayed=stored.replayed)
            return pb.CreateTriggerResponse(reply=reply)
        steps = Steps(self._database, claim, stored.body)
        try:
            body = await self._event(create, await self._trigger(call, create.event, named, steps))
        except Refusal as refusal:
            if refusal.status != 409:  # another request with the key is under way
                await steps.refused()
            raise
        failpoint("trigger-step")
        return pb.CreateTriggerResponse(reply=WriteReply(status=CREATED, body=await steps.answered(body)))

    async def _trigger(self, call: Call, event: rules.EventKey, named: Mapping[str, int], steps: Steps) -> Trigger:
        field = rules.RECORD_FIELDS[event]
        row = await companies.company(self._database, call.identity.company_id)
        assert row is not None
        now = self._clocks.ahead_by(row["clock_offset"])()
        noun = field.removesuffix("_id")
        return Trigger(call, self._clients, steps, named.get(field), noun, row["timezone"], now)

    async def _event(self, create: TriggerCreate, trigger: Trigger) -> bytes:
        caused = await CAUSES[create.event](trigger)
        return await events.stored_event(trigger, create.event, caused)
