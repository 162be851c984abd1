"""The RPCs of deliveries: sweeps, and lists of a subscription's deliveries."""

from __future__ import annotations

from collections.abc import Sequence

from chassis.auth import identity
from chassis.auth.identity import may_administer
from chassis.db.database import Database
from chassis.refusals import invalid_request
from chassis.schedule.instants import Clock
from makeready.webhooks.v1 import webhooks_pb2 as pb
from svc_webhooks.administration import records
from svc_webhooks.administration.inputs import event_id_of, instant_of, state_of
from svc_webhooks.administration.queries import deliveries as queries
from svc_webhooks.dispatch.scheduler import Scheduler
from svc_webhooks.http_client.response import EXCERPT_BYTES_MAX
from svc_webhooks.subscriptions.rules import no_such_subscription

DELIVERIES_DEFAULT, DELIVERIES_MAX = 50, 200
YEAR_MAX = 9000
LAST_EXCERPT_BYTES_MAX = 512  # for lists of last attempts alone, which can have a hundred thousand entries
# For one response: bytes that are not UTF-8 become three times as long, and a message may have 32 MiB.
EXCERPTS_BYTES_MAX = 8 * 1024 * 1024


class DeliveriesService:
    """Sweeps and lists deliveries."""

    def __init__(self, database: Database, scheduler: Scheduler, clock: Clock) -> None:
        self.database = database
        self.scheduler = scheduler
        self.clock = clock

    async def SweepDeliveries(
        self, request: pb.SweepDeliveriesRequest, _call: identity.Call
    ) -> pb.SweepDeliveriesResponse:
        now = instant_of(request.now, "now") if request.HasField("now") else self.clock()
        if now.year > YEAR_MAX:
            raise invalid_request("now is too far ahead for a ladder to follow it.", "now")
        stored, counts = await self.scheduler.sweep(now)
        response = pb.SweepDeliveriesResponse(
            stored=stored,
            attempted=counts.attempted,
            succeeded=counts.succeeded,
            failed=counts.failed,
            parked=counts.parked,
            waiting_for_host=counts.waiting_for_host,
        )
        response.now.FromDatetime(now)
        return response

    async def ListDeliveries(self, request: pb.ListDeliveriesRequest, call: identity.Call) -> pb.ListDeliveriesResponse:
        before = event_id_of(request.before_event_id) if request.before_event_id else None
        if request.before_event_id and before is None:
            raise invalid_request("before_event_id must be the id of an event.", "before_event_id")
        limit = min(request.limit, DELIVERIES_MAX) if request.limit > 0 else DELIVERIES_DEFAULT
        state = state_of(request.state)
        company_id = await queries.company_of(self.database, request.sub_id)
        if company_id is None or not may_administer(call, company_id):
            raise no_such_subscription()
        rows = await queries.deliveries_newest(self.database, request.sub_id, state, before, limit)
        return pb.ListDeliveriesResponse(deliveries=await shown(self.database, rows))


async def shown(
    database: Database, rows: Sequence[queries.ShownDelivery], *, last_alone: bool = False
) -> list[pb.Delivery]:
    """Deliveries with their attempts, or with only the last one."""
    attempts = len(rows) if last_alone else sum(row.attempts for row in rows)
    longest = LAST_EXCERPT_BYTES_MAX if last_alone else EXCERPT_BYTES_MAX
    excerpt_bytes = min(longest, EXCERPTS_BYTES_MAX // max(attempts, 1))
    found = {(row.event_id, row.subscription_id): records.delivery(row) for row in rows}
    for row in await queries.attempts_of(database, rows, excerpt_bytes=excerpt_bytes, last_alone=last_alone):
        found[row.event_id, row.subscription_id].attempts.append(records.attempt(row))
    return list(found.values())
