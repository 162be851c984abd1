"""`makeready sweep …`: runs the services' scheduled sweeps now, or as of another instant."""

from __future__ import annotations

import argparse
import asyncio
import getpass
import os
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from chassis.auth.clients import ServiceUnavailable
from chassis.schedule import future_instants, instants
from makeready.common.v1 import retention_pb2, sweeps_pb2
from makeready.webhooks.v1 import webhooks_pb2
from makeready_cli import argument_types as types
from makeready_cli.calls import Operator, is_unknown, unavailable_message
from makeready_cli.errors import CommandError
from makeready_cli.output import Answer, instant
from makeready_cli.parsers import Commands, command, group
from makeready_cli.rpc.command import RpcCommand, add_commands

# A sweep does everything that is due: attempts of up to 10 s each, and millions of rows.
SWEEP_SECONDS = 3600.0


def add(commands: Commands) -> None:
    verbs = group(commands, "sweep", "do now what the clock would start")
    add_commands(
        verbs,
        RpcCommand(
            "webhooks",
            webhooks_pb2.DESCRIPTOR.services_by_name["DeliveriesService"].methods_by_name["SweepDeliveries"],
            "attempt every delivery that is due",
            description="Waits until every event committed before the call is stored, attempts every delivery that is "
            "due, and returns when the attempts are recorded, whether they succeeded or not. Deliveries to a host that "
            "is at its limit of attempts are counted, and attempted later. Retries count from the same instant: "
            "what fails as of an instant ahead is due after it, and the clock's own sweeps wait until then.",
            company=False,
            deadline_seconds=SWEEP_SECONDS,
            answer=_swept_deliveries,
        ),
    )

    forgetting = command(
        verbs,
        "retention",
        "delete what was kept for as long as promised",
        description="Deletes in every service what it does not keep any longer: idempotency keys of 30 days, with the "
        "replies kept for them, and days of events whose end is 30 days ago, with their deliveries and attempts, "
        "delivered or not. The services do the same every hour. A key that a request holds at this moment stays until "
        "the next sweep.",
    )
    forgetting.add_argument("--now", metavar="TIME", type=types.instant, help="ages count up to then (default: now)")
    _add_confirmation(forgetting)
    forgetting.set_defaults(run=sweep_retention)

    telling = command(
        verbs,
        "stale",
        "announce what is overdue, and vacate units whose residents have left",
        description="Does in every service what the clock starts: fires ticket.stale, inspection.stale, "
        "turn.task.stale and pm.stale where they are due, vacates units the morning after their residents leave, "
        "looks at vendors' insurance. What was done once is not done again. The services do the same at every quarter "
        "of an hour. Sandboxes come after live companies, each as of its own clock, whatever --now says.",
    )
    telling.add_argument("--now", metavar="TIME", type=types.instant, help="what is due as of then (default: now)")
    _add_confirmation(telling)
    telling.set_defaults(run=sweep_stale)


def _add_confirmation(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--yes-for-all-companies",
        action="store_true",
        help="needed with a --now more than 15 minutes ahead of the clock: the sweep does, for every company and for "
        "good, what is not due yet",
    )


def _confirm(sweep: str, arguments: argparse.Namespace, request: Any) -> None:
    """Passes the confirmation on. Raises CommandError if it is missing; the services ask for it as well."""
    clock = instants.now()
    if arguments.now is None or not future_instants.is_future(arguments.now, clock):
        return
    if not arguments.yes_for_all_companies:
        sentence = future_instants.consequence(sweep, arguments.now, clock)
        raise CommandError(f"{sentence}. Repeat it with --yes-for-all-companies to do that.")
    request.yes_for_all_companies = True
    request.requested_by = account()


def account() -> str:
    """The account that runs the command, for the audit log."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = f"uid {os.getuid()}"
    return name.replace("\0", "")[: future_instants.ACCOUNT_LENGTH_MAX]


def _swept_deliveries(swept: webhooks_pb2.SweepDeliveriesResponse, _arguments: argparse.Namespace) -> Answer:
    value = {
        "now": instant(swept.now),
        "stored": swept.stored,
        "attempted": swept.attempted,
        "succeeded": swept.succeeded,
        "failed": swept.failed,
        "parked": swept.parked,
        "waiting_for_host": swept.waiting_for_host,
    }
    text = (
        f"As of {value['now']}: {swept.stored} events stored, {swept.attempted} deliveries attempted, "
        f"{swept.succeeded} succeeded, {swept.failed} failed, {swept.parked} parked."
    )
    if swept.waiting_for_host:
        text += (
            f"\n{swept.waiting_for_host} wait for their host, which is at its limit of attempts; "
            "they follow without another command."
        )
    return Answer(value, text)


Swept = TypeVar("Swept")
Ask = Callable[[str], Awaitable[Swept]]


async def _everywhere(operator: Operator, ask: Ask[Swept]) -> dict[str, Swept | None]:
    """Each service's answer; None if it does not implement the sweep. Raises CommandError with all failures, once every
    service has answered: a failure must not cut short the others' work."""

    async def one(service: str) -> Swept | CommandError | None:
        try:
            return await ask(service)
        except ServiceUnavailable as error:
            return None if is_unknown(error) else CommandError(unavailable_message(service, error))
        except CommandError as refused:
            return refused

    services = operator.system.services
    answers = dict(zip(services, await asyncio.gather(*map(one, services)), strict=True))
    failures = [str(answer).removesuffix(".") for answer in answers.values() if isinstance(answer, CommandError)]
    if failures:
        raise CommandError("; ".join(failures) + ".")
    return {service: answer for service, answer in answers.items() if not isinstance(answer, CommandError)}


async def sweep_retention(operator: Operator, arguments: argparse.Namespace) -> Answer:
    request = retention_pb2.SweepRetentionRequest()
    if arguments.now is not None:
        request.now.FromDatetime(arguments.now)
    _confirm("retention", arguments, request)

    async def ask(service: str) -> retention_pb2.SweepRetentionResponse:
        return await operator.ask(
            service, request, retention_pb2.SweepRetentionResponse, deadline_seconds=SWEEP_SECONDS
        )

    swept = [answer for answer in (await _everywhere(operator, ask)).values() if answer is not None]
    # Without --now each service uses its own clock. Everything that was due at the earliest of their instants is gone.
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


async def sweep_stale(operator: Operator, arguments: argparse.Namespace) -> Answer:
    # One instant for all services: the sweeps of one unit's morning in two services must agree.
    request = sweeps_pb2.RunScheduledSweepsRequest()
    request.now.FromDatetime(arguments.now or instants.now())
    _confirm("stale", arguments, request)

    async def ask(service: str) -> sweeps_pb2.RunScheduledSweepsResponse:
        return await operator.ask(
            service, request, sweeps_pb2.RunScheduledSweepsResponse, deadline_seconds=SWEEP_SECONDS
        )

    answers = await _everywhere(operator, ask)
    done: Counter[str] = Counter()
    in_sandboxes: Counter[str] = Counter()
    for answer in answers.values():
        if answer is not None:
            done.update(answer.done)
            in_sandboxes.update(answer.done_in_sandboxes)
    idle = [service for service, answer in answers.items() if answer is None]
    if len(idle) == len(answers):
        raise CommandError("No service that runs has such a sweep; are they of another release?")
    value: dict[str, object] = {"now": instant(request.now), "done": dict(sorted(done.items()))}
    lines = [f"As of {value['now']}:", *(f"  {name}: {count}" for name, count in sorted(done.items()))]
    if any(in_sandboxes.values()):
        value["done_in_sandboxes"] = dict(sorted(in_sandboxes.items()))
        lines.append("In sandboxes, each as of its own clock:")
        lines += [f"  {name}: {count}" for name, count in sorted(in_sandboxes.items())]
    if idle:
        lines.append(f"Nothing of the kind is done by {', '.join(idle)}.")
    return Answer(value, "\n".join(lines))
