"""`makeready sweep …`: what the services do by themselves when it is time, done now, or as of another instant."""

from __future__ import annotations

import argparse
import asyncio

from chassis.clients import PeerUnavailable
from gateway.cli import arguments as types
from gateway.cli.answers import Answer, instant
from gateway.cli.failures import Failed
from gateway.cli.system import Operator, is_unknown, told
from makeready.common.v1 import retention_pb2
from makeready.common.v1.retention_pb2_grpc import RetentionServiceStub
from makeready.webhooks.v1 import webhooks_pb2
from makeready.webhooks.v1.webhooks_pb2_grpc import DeliveriesServiceStub

# A sweep does everything that is due: attempts of up to 10 s each, rows by the million.
SWEEP_SECONDS = 3600.0


def add(commands: types.Commands) -> None:
    verbs = types.group(commands, "sweep", "do now what the clock would start")
    sweeping = types.command(
        verbs,
        "webhooks",
        "attempt every delivery that is due",
        description="Waits until every event committed before the call is stored, attempts every delivery that is "
        "due, and returns when the attempts are recorded, whether they succeeded or not. Retries count from the same "
        "instant: what fails as of an instant ahead is due after it, and the clock's own sweeps wait until then.",
    )
    sweeping.add_argument("--now", metavar="TIME", type=types.instant, help="what is due as of then (default: now)")
    sweeping.set_defaults(run=sweep_deliveries)

    forgetting = types.command(
        verbs,
        "retention",
        "delete what was kept for as long as promised",
        description="Deletes in every service what it does not keep any longer: idempotency keys of 30 days, with the "
        "replies kept for them, and days of events whose end is 30 days ago, with their deliveries and attempts, "
        "delivered or not. The services do the same every hour. A key that a request holds at this moment stays until "
        "the next sweep.",
    )
    forgetting.add_argument("--now", metavar="TIME", type=types.instant, help="ages count up to then (default: now)")
    forgetting.set_defaults(run=sweep_retention)


async def sweep_deliveries(operator: Operator, arguments: argparse.Namespace) -> Answer:
    deliveries = DeliveriesServiceStub(operator.channel("svc-webhooks"))
    request = webhooks_pb2.SweepDeliveriesRequest()
    if arguments.now is not None:
        request.now.FromDatetime(arguments.now)
    swept = await operator.call("svc-webhooks", deliveries.SweepDeliveries, request, deadline_seconds=SWEEP_SECONDS)
    value = {
        "now": instant(swept.now),
        "stored": swept.stored,
        "attempted": swept.attempted,
        "succeeded": swept.succeeded,
        "failed": swept.failed,
        "parked": swept.parked,
    }
    return Answer(
        value,
        f"As of {value['now']}: {swept.stored} events stored, {swept.attempted} deliveries attempted, "
        f"{swept.succeeded} succeeded, {swept.failed} failed, {swept.parked} parked.",
    )


async def sweep_retention(operator: Operator, arguments: argparse.Namespace) -> Answer:
    request = retention_pb2.SweepRetentionRequest()
    if arguments.now is not None:
        request.now.FromDatetime(arguments.now)

    async def sweep(service: str) -> retention_pb2.SweepRetentionResponse | str | None:
        """What went; where it failed, why; None where the service keeps nothing."""
        stub = RetentionServiceStub(operator.channel(service))
        try:
            return await operator.ask(service, stub.SweepRetention, request, deadline_seconds=SWEEP_SECONDS)
        except PeerUnavailable as error:
            return None if is_unknown(error) else told(service, error)
        except Failed as refused:
            return str(refused)

    # All, even where one is away: the others' rows need not wait for it.
    answers = await asyncio.gather(*(sweep(service) for service in operator.system.services))
    failures = [answer for answer in answers if isinstance(answer, str)]
    if failures:
        raise Failed("; ".join(failure.removesuffix(".") for failure in failures) + ".")
    swept = [answer for answer in answers if isinstance(answer, retention_pb2.SweepRetentionResponse)]
    # Without --now each service asks its own clock: all that was due at the earliest of their instants is gone.
    value = {
        "now": min(instant(answer.now) for answer in swept),
        "idempotency_keys": sum(answer.idempotency_keys for answer in swept),
        "days": sum(answer.days for answer in swept),
    }
    return Answer(
        value,
        f"As of {value['now']}: {value['idempotency_keys']} idempotency keys forgotten, "
        f"{value['days']} days of events dropped.",
    )
