"""`makeready wait`: returns once no event is on its way between the services."""

from __future__ import annotations

import argparse
import asyncio
import time
from dataclasses import dataclass, field

from chassis.auth.clients import ServiceUnavailable
from makeready.events.v1 import events_pb2 as pb
from makeready_cli import argument_types as types
from makeready_cli.calls import Operator, is_unknown, unavailable_message
from makeready_cli.errors import CommandError
from makeready_cli.output import Answer
from makeready_cli.parsers import Commands, command

TIMEOUT_SECONDS = 60.0
PAUSE_SECONDS = 0.1
# An event may cause a second one in its consumer, and that one a third: catalog, tickets, webhooks.
QUIET_ROUNDS = 3


def add(commands: Commands) -> None:
    waiting = command(
        commands,
        "wait",
        "wait until every event is published and every replica caught up",
        description="Returns when no service has an unpublished event and every consumer has taken in all that was "
        "recorded; exits with 1, and says what is behind, when that takes too long.",
    )
    waiting.add_argument(
        "--timeout", metavar="S", type=types.seconds, default=TIMEOUT_SECONDS, help="seconds (default 60)"
    )
    waiting.set_defaults(run=wait)


@dataclass(slots=True)
class Round:
    """The result of looking at all services once."""

    behind: list[str] = field(default_factory=list)
    fetched: int = 0


async def wait(operator: Operator, arguments: argparse.Namespace) -> Answer:
    started = time.monotonic()
    deadline = started + arguments.timeout
    quiet = 0
    while True:
        pending = await _round(operator, max(deadline - time.monotonic(), 0.5))
        quiet = quiet + 1 if not pending.behind and not pending.fetched else 0
        if quiet == QUIET_ROUNDS:
            break
        if time.monotonic() >= deadline:
            behind = "; ".join(pending.behind) or "events go on arriving"
            raise CommandError(f"Not caught up after {arguments.timeout:g} s: {behind}")
        if pending.behind:
            await asyncio.sleep(PAUSE_SECONDS)
    waited = round(time.monotonic() - started, 3)
    return Answer({"waited_seconds": waited}, f"All caught up after {waited:g} s.")


async def _round(operator: Operator, deadline_seconds: float) -> Round:
    pending = Round()
    services = list(operator.system.services)
    await asyncio.gather(*(_look_at_outbox(operator, service, deadline_seconds, pending) for service in services))
    if not pending.behind:
        await asyncio.gather(*(_catch_up(operator, service, deadline_seconds, pending) for service in services))
    return pending


async def _look_at_outbox(operator: Operator, service: str, deadline_seconds: float, pending: Round) -> None:
    try:
        answer = await operator.ask(
            service, pb.GetOutboxRequest(), pb.GetOutboxResponse, deadline_seconds=deadline_seconds
        )
    except ServiceUnavailable as error:
        if not is_unknown(error):  # a service without events of its own has no outbox
            pending.behind.append(unavailable_message(service, error).removesuffix("."))
        return
    if answer.unpublished:
        pending.behind.append(f"{service} has {answer.unpublished} unpublished events")


async def _catch_up(operator: Operator, service: str, deadline_seconds: float, pending: Round) -> None:
    try:
        answer = await operator.ask(service, pb.CatchUpRequest(), pb.CatchUpResponse, deadline_seconds=deadline_seconds)
    except ServiceUnavailable as error:
        if not is_unknown(error):
            pending.behind.append(unavailable_message(service, error).removesuffix("."))
        return
    pending.fetched += answer.fetched
