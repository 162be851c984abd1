"""The RPCs about deliveries: sweeps, and what became of a subscription's deliveries."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Callable, Sequence

from asyncpg import Record
from google.protobuf.timestamp_pb2 import Timestamp

from chassis.auth import identity
from chassis.db.database import Database
from chassis.refusals import invalid_request
from makeready.webhooks.v1 import webhooks_pb2 as pb
from svc_webhooks.administration.queries import deliveries as queries
from svc_webhooks.administration.rules import held_by
from svc_webhooks.dispatch import rules
from svc_webhooks.dispatch.scheduler import Sweeper
from svc_webhooks.events.days import expires_at
from svc_webhooks.http_client.response import EXCERPT_BYTES_MAX
from svc_webhooks.subscriptions.rules import no_such_subscription

DELIVERIES_DEFAULT, DELIVERIES_MAX = 50, 200
YEAR_MAX = 9000
LAST_EXCERPT_BYTES_MAX = 512  # where one attempt stands for all: such a list may be of a hundred thousand
# Of one answer: bytes that are no UTF-8 grow threefold on the way, and a message may have 32 MiB.
EXCERPTS_BYTES_MAX = 8 * 1024 * 1024

Clock = Callable[[], datetime.datetime]

_STATES = {state: number for number, state in enumerate(rules.DELIVERY_STATES, start=1)}
_CAUSES = {cause: number for number, cause in enumerate(rules.ATTEMPT_CAUSES, start=1)}


class DeliveriesService:
    """Sweeps, and shows what became of deliveries."""

    def __init__(self, database: Database, sweeper: Sweeper, clock: Clock) -> None:
        self.database = database
        self.sweeper = sweeper
        self.clock = clock

    async def SweepDeliveries(
        self, request: pb.SweepDeliveriesRequest, _call: identity.Call
    ) -> pb.SweepDeliveriesResponse:
        now = instant_of(request.now, "now") if request.HasField("now") else self.clock()
        if now.year > YEAR_MAX:
            raise invalid_request("now is too far ahead for a ladder to follow it.", "now")
        stored, counts = await self.sweeper.sweep(now)
        response = pb.SweepDeliveriesResponse(
            stored=stored,
            attempted=counts.attempted,
            succeeded=counts.succeeded,
            failed=counts.failed,
            parked=counts.parked,
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
        if company_id is None or not administers(call, company_id):
            raise no_such_subscription()
        rows = await queries.deliveries_newest(self.database, request.sub_id, state, before, limit)
        return pb.ListDeliveriesResponse(deliveries=await shown(self.database, rows))


def administers(call: identity.Call, company_id: int) -> bool:
    """Whether the caller looks after this company: an administrator after one, the operator after all."""
    return call.identity.kind != identity.ADMINISTRATOR or call.identity.company_id == company_id


def instant_of(given: Timestamp, name: str) -> datetime.datetime:
    """Raises Refusal 400 where no calendar has it."""
    try:
        return given.ToDatetime(datetime.UTC)
    except (ValueError, OverflowError):
        raise invalid_request(f"{name} must lie in the years 1 to 9999.", name) from None


def event_id_of(text: str) -> uuid.UUID | None:
    """None where the text is not as an event's id is printed."""
    try:
        found = uuid.UUID(text)
    except ValueError:
        return None
    return found if str(found) == text else None


def state_of(number: int) -> str | None:
    """The state that a request names; None where it names none. Raises Refusal 422."""
    if number == pb.DELIVERY_STATE_UNSPECIFIED:
        return None
    if number not in _STATES.values():
        raise invalid_request(f"state must be one of: {', '.join(rules.DELIVERY_STATES)}.", "state", status=422)
    return rules.DELIVERY_STATES[number - 1]


async def shown(database: Database, rows: Sequence[Record], *, last_alone: bool = False) -> list[pb.Delivery]:
    """Deliveries with their attempts, or with the last alone. rows: of queries_deliveries."""
    attempts = len(rows) if last_alone else sum(row["attempts"] for row in rows)
    longest = LAST_EXCERPT_BYTES_MAX if last_alone else EXCERPT_BYTES_MAX
    excerpt_bytes = min(longest, EXCERPTS_BYTES_MAX // max(attempts, 1))
    found = {(row["event_id"], row["subscription_id"]): _delivery(row) for row in rows}
    for row in await queries.attempts_of(database, rows, excerpt_bytes=excerpt_bytes, last_alone=last_alone):
        found[row["event_id"], row["subscription_id"]].attempts.append(_attempt(row))
    return list(found.values())


def _delivery(row: Record) -> pb.Delivery:
    found = pb.Delivery(
        event_id=str(row["event_id"]),
        sub_id=row["subscription_id"],
        event=row["event"],
        state=pb.DeliveryState.ValueType(_STATES[row["state"]]),
        destination_url=row["destination_url"],
        held_by=held_by(row["state"], row["health"], row["active"]),
    )
    found.occurred_at.FromDatetime(row["occurred_at"])
    found.expires_at.FromDatetime(expires_at(row["event_id"]))
    if row["due_at"] is not None:
        found.due_at.FromDatetime(row["due_at"])
    return found


def _attempt(row: Record) -> pb.Attempt:
    found = pb.Attempt(
        number=row["number"],
        duration_milliseconds=row["duration_milliseconds"],
        status=row["status"],
        error=row["error"],
        response_excerpt=row["response_excerpt"].decode(errors="replace"),
        connect_milliseconds=row["connect_milliseconds"],
        tls_milliseconds=row["tls_milliseconds"],
        first_byte_milliseconds=row["first_byte_milliseconds"],
        address=row["address"],
        state=pb.DeliveryState.ValueType(_STATES[row["state"]]),
        cause=pb.AttemptCause.ValueType(_CAUSES[row["cause"]]),
    )
    found.started_at.FromDatetime(row["started_at"])
    if row["due_at"] is not None:
        found.due_at.FromDatetime(row["due_at"])
    return found
