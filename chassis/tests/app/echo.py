"""A service for the tests of `App`: it answers, refuses or fails as its request says. `python -m tests.app.echo`."""

from __future__ import annotations

import asyncio
import datetime
import os
import sys
from typing import Any

from chassis.app.process import run_process
from chassis.app.server import App
from chassis.auth.identity import Call, IdentityError
from chassis.refusals import Refusal, Unavailable
from chassis.runtime.settings import ServiceSettings, service_settings
from chassis.schedule.clocks import LIVE, Companies
from chassis.schedule.sweeps import Due

from ..contract import EchoResponse, service
from ..parcels import audit, claims, metadata, outbox

NAME = "svc-echo"


def say(text: str) -> None:
    """Prints a line that the test reads."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


class Echo:
    async def Echo(self, request: Any, call: Call) -> Any:
        text = request.text
        if text == "refuse":
            raise Refusal(422, "too_heavy", "It is too heavy; send it in two parts.", "text")
        if text == "identity":
            raise IdentityError("the token names no company")
        if text == "away":
            raise Unavailable("the depot does not answer")
        if text == "fault":
            raise RuntimeError("a secret of the depot's")
        if text == "who":
            return EchoResponse(text=f"{call.identity.kind} {call.identity.company_id} {call.request_id}")
        if text == "slow":
            say("slow")
            await asyncio.sleep(5)  # longer than the test's drain
        return EchoResponse(text=text)


class Faltering:
    """Background work that fails at first."""

    def __init__(self) -> None:
        self.times = 0

    async def run(self) -> None:
        self.times += 1
        say(f"background {self.times}")
        if self.times == 1:
            raise RuntimeError
        await asyncio.sleep(600)


async def swallow() -> None:
    """Background work whose first cancellation is lost."""
    try:
        await asyncio.sleep(600)
    except asyncio.CancelledError:
        say("swallowed")
    await asyncio.sleep(600)


class Swept:
    async def sweep(self, _now: datetime.datetime, _companies: Companies = LIVE) -> dict[str, int]:
        return {"ticket.stale": 3}

    async def next_due(self, _company_id: int) -> Due | None:
        return None


def assemble(settings: ServiceSettings) -> App:
    app = App(NAME, settings)
    app.commands(claims, audit, app.produces(outbox, consumers={}))
    app.sweeps(Swept())
    app.serve(service("EchoService"), Echo())
    app.background("faltering", Faltering().run)
    if "SWALLOW" in os.environ:
        app.background("swallowing", swallow)
    for place in ("on_start", "before_ready", "on_stop"):
        for number in (1, 2):
            getattr(app.lifecycle, place)(_step(f"{place} {number}"))
    return app


def _step(text: str) -> Any:
    async def step() -> None:
        say(text)

    return step


if __name__ == "__main__":
    run_process(NAME, metadata, "tests.app", service_settings, assemble)
